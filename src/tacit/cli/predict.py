"""`tacit predict`: from a posterior and new rows to predictions."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.options import Json, PosteriorFile, Probability

if TYPE_CHECKING:
    from tacit.analyst.posterior.prediction import RowCounts


Tables = Annotated[
    list[str],
    typer.Argument(help="Tables with the study's features: files, folders or patterns."),
]
Out = Annotated[Path, typer.Option(help="File for the predictions, ending in .parquet or .csv.")]
ForHolder = Annotated[
    str | None,
    typer.Option(
        help="Predict for this holder's own rows, or for a `new` holder; else for the average."
    ),
]
Kept = Annotated[
    list[str] | None,
    typer.Option(help="A column to copy beside the predictions, such as an identifier; repeat it."),
]


def predict(
    posterior: PosteriorFile,
    data: Tables,
    out: Out,
    probability: Probability = 0.9,
    holder: ForHolder = None,
    keep: Kept = None,
    *,
    as_json: Json = False,
) -> None:
    """Predict the response of every row: its mean, and intervals for that and for a new response.

    Rows keep their order. A row with a missing value is treated as the study says; one that would
    be dropped gets no prediction. In a CSV file, a kept text that a spreadsheet would run as a
    formula gets an apostrophe before it.

    Example: `tacit predict posterior.parquet new-patients.csv --out predictions.csv --keep patient`
    """
    from tacit.analyst.posterior.posterior import Posterior
    from tacit.analyst.posterior.prediction import predict_to, refuse_foreign, table_for
    from tacit.cli.progress import rows_bar
    from tacit.files import refuse_overwriting, refuse_unwritable
    from tacit.rows.table import files_at

    fitted = Posterior.load(posterior)
    refuse_unwritable(out)
    refuse_overwriting(out, [posterior, *(file for place in data for file in files_at(place))])
    refuse_foreign(out)
    kept = keep or []
    table = table_for(fitted, data, kept)
    with rows_bar(table.rows) as on_rows:
        tally = predict_to(
            out, fitted, table, probability, holder=holder, keep=kept, on_rows=on_rows
        )
    if as_json:
        facts = {
            "predictions": str(out),
            "rows": tally.rows,
            "incomplete": tally.incomplete,
            "outside": tally.outside,
            "response": fitted.asked.response.name,
            "probability": probability,
        }
        typer.echo(json.dumps(facts))
        return
    typer.echo(
        f"{out}: predictions of {fitted.asked.response.name!r} for {tally.rows:,} rows, "
        f"with {100 * probability:g} % intervals"
    )
    _warn(tally)


def _warn(tally: "RowCounts") -> None:
    if tally.incomplete:
        typer.echo(f"rows with a missing value, which get no prediction: {tally.incomplete:,}")
    for name, count in tally.outside.items():
        typer.echo(f"{name}: values outside the study's range, taken to be at its end: {count:,}")
