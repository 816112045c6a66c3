"""`tacit effect`: contrasts, slopes and means that a user names, from a posterior."""

import json
from typing import Annotated

import typer

from tacit.cli.options import Json, PosteriorFile, Probability

Questions = Annotated[
    list[str],
    typer.Argument(
        help='Such as "age: 70 - 40", "sex[male] * 1 at age = 60", "sex: male", "mean".'
    ),
]


def effect(
    posterior: PosteriorFile,
    questions: Questions,
    probability: Probability = 0.9,
    *,
    as_json: Json = False,
) -> None:
    """Answer questions in the response's units: contrasts, slopes and marginal means.

    What a question leaves open is averaged over rows.

    Example: `tacit effect posterior.parquet "age: 70 - 40" "sex: male - female"`
    """
    from tacit.analyst.posterior.posterior import Posterior

    answers = Posterior.load(posterior).effects(*questions, probability=probability)
    typer.echo(json.dumps(answers.to_dict()) if as_json else str(answers))
