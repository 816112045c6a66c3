"""`tacit compare`: how likely models are given the same releases, and their average."""

import json
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.options import Json

Posteriors = Annotated[
    list[Path],
    typer.Argument(help="Posteriors of the same releases; of one, all its sub-models are weighed."),
]
Without = Annotated[
    list[str] | None,
    typer.Option(help="Compare one posterior with its sub-model without these terms."),
]
Inclusion = Annotated[
    float, typer.Option(help="Of all sub-models: how likely each term is beforehand.")
]
EVEN = 0.5
Out = Annotated[Path | None, typer.Option(help="File for the averaged posterior (Parquet).")]


def compare(
    posteriors: Posteriors,
    without: Without = None,
    inclusion: Inclusion = EVEN,
    out: Out = None,
    *,
    as_json: Json = False,
) -> None:
    """Weigh models of the same releases against each other, at no further budget.

    Of one posterior, all its sub-models (up to 20 terms) are weighed: probabilities of terms, and
    coefficients averaged over models.

    Example: `tacit compare posterior.parquet --without age:sex`
    """
    from tacit.analyst.comparison.compare import compare as weigh
    from tacit.analyst.comparison.compare import select_terms
    from tacit.analyst.posterior.posterior import Posterior
    from tacit.errors import PosteriorError
    from tacit.files import refuse_overwriting, refuse_unwritable

    if without and len(posteriors) > 1:
        raise PosteriorError("--without goes with one posterior: several are compared as they are")
    if inclusion != EVEN and (without or len(posteriors) > 1):
        raise PosteriorError(
            "--inclusion goes with one posterior, of which all sub-models are weighed: models that "
            "are named are equally likely beforehand"
        )
    if out is not None:
        refuse_unwritable(out)
        refuse_overwriting(out, posteriors)
    fitted = [Posterior.load(path) for path in posteriors]
    if without:
        fitted.append(fitted[0].submodel(without=without))
    comparison = weigh(*fitted) if len(fitted) > 1 else select_terms(fitted[0], inclusion)
    if out is not None:
        comparison.average.save(out)
    if as_json:
        typer.echo(json.dumps(comparison.to_dict()))
        return
    typer.echo(str(comparison))
    if out is not None:
        typer.echo(f"\n{out}: the posterior averaged over models")
