"""`tacit report`: a posterior as a page for everybody."""

import json
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.options import Json, PosteriorFile, Probability


def report(
    posterior: PosteriorFile,
    out: Annotated[Path, typer.Option(help="File for the page, ending in .html.")],
    probability: Probability = 0.9,
    *,
    as_json: Json = False,
) -> None:
    """Write one page that a reader who is no statistician can open, print and keep.

    It tells findings, guarantee, predictions, and how to redo it. The page holds everything it
    needs: it loads nothing and runs no script.

    Example: `tacit report posterior.parquet --out report.html`
    """
    from tacit.analyst.posterior.posterior import Posterior
    from tacit.errors import PosteriorError
    from tacit.files import refuse_unwritable

    if out.suffix != ".html":
        raise PosteriorError(f"a report's name must end in .html; got {out.name!r}")
    refuse_unwritable(out)
    fitted = Posterior.load(posterior)
    fitted.report(out, probability)
    if as_json:
        facts = {
            "report": str(out),
            "study": fitted.study.hash,
            "method": fitted.method,
            "probability": probability,
        }
        typer.echo(json.dumps(facts))
        return
    typer.echo(f"{out}: open it in a browser, or print it; it holds all it needs")
