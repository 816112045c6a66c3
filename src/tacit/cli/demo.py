"""`tacit demo`: the whole story, from the agreement to the report."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.options import quietly
from tacit.errors import TableError

if TYPE_CHECKING:
    from tacit.demo.hospitals import Story


def demo(
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for everything the demonstration writes; it must not exist yet."),
    ] = None,
    *,
    tables: Annotated[
        bool,
        typer.Option(
            "--tables", help="Write the tutorials' study and tables to this folder, and stop."
        ),
    ] = False,
) -> None:
    """Tell the whole story: holders publish, an analyst fits, predicts and reports.

    The commands are those that real ones would use. The holders are sixteen airlines with the
    flights that left New York in 2013, if the extra `demo` is installed; otherwise three invented
    hospitals.

    The tutorials' tables alone, in the folder where you are: `tacit demo --tables`

    Example: `tacit demo --out demo`
    """
    if tables:
        _write_tables(out or Path())
        return
    if out is None:
        raise TableError("give --out, a folder for the demonstration, or --tables")
    from tacit.cli.fit import fit
    from tacit.cli.ledger import show
    from tacit.cli.predict import predict
    from tacit.cli.report import report
    from tacit.cli.study import check
    from tacit.demo.airlines import airlines, is_available
    from tacit.demo.hospitals import hospitals

    _make(out)
    story = (airlines if is_available() else hospitals)(out)
    analyst = out / "analyst"
    analyst.mkdir()
    _say(f"1. The {story.holders} and the analyst agree on a study.")
    typer.echo(f"$ tacit study check {story.study}")
    check(story.study)
    _publish(story, analyst)
    first = min(story.tables)
    _say(f"3. This is all that left {first} ({analyst / first}.json), its study left out:")
    typer.echo(_without_study((analyst / f"{first}.json").read_text(encoding="utf-8")))
    ledger = story.tables[first].parent / "ledger.db"
    _say("4. And this is its own record of what was spent.")
    typer.echo(f"$ tacit ledger show --ledger {ledger}")
    show(ledger)
    posterior = analyst / "posterior.parquet"
    predictions = analyst / "predictions.csv"
    page = analyst / "report.html"
    _say("5. The analyst infers the coefficients from these files alone.")
    typer.echo(f"$ tacit fit {analyst} --out {posterior}")
    fit([analyst], out=posterior)
    typer.echo(f"\n{story.truth}")
    _say("6. And predicts rows that nobody published.")
    kept = " ".join(f"--keep {name}" for name in story.kept)
    typer.echo(f"$ tacit predict {posterior} {story.new} --out {predictions} {kept}")
    predict(posterior, [str(story.new)], out=predictions, keep=list(story.kept))
    typer.echo(_compared(predictions, story.response))
    _say("7. Last, a page for everybody.")
    typer.echo(f"$ tacit report {posterior} --out {page}")
    report(posterior, out=page)
    _say(
        f"Open {page} in a browser; {analyst / first}.json and {story.study} show "
        "what crossed the wall, and on what terms."
    )


def _write_tables(folder: Path) -> None:
    """Write what the tutorials work with; nothing that is there is overwritten."""
    from tacit.demo.hospitals import write_tables

    names = write_tables(folder)
    typer.echo(f"written to {folder.resolve()}: {', '.join(names)}")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise TableError(
            f"{str(folder)!r} exists already: choose another --out, or remove it"
        ) from None
    except OSError as error:
        raise TableError(f"cannot make the folder {str(folder)!r}: {error.strerror}") from None


def _publish(story: "Story", analyst: Path) -> None:
    """Every holder publishes; what the command says is shown for the first."""
    from tacit.cli.publish import publish

    _say(
        f"2. Each {story.holder} publishes where its rows lie. Only the JSON file leaves the house."
    )
    for place, (holder, table) in enumerate(story.tables.items()):
        release = analyst / f"{holder}.json"
        ledger = table.parent / "ledger.db"
        quiet = " --quiet" if place else ""
        typer.echo(
            f"$ tacit publish {story.study} {table} --holder {holder} --out {release} "
            f"--ledger {ledger}{quiet}"
        )
        with quietly() if place else nullcontext():
            publish(story.study, holder, release, [str(table)], ledger=ledger)


def _compared(predictions: Path, response: str) -> str:
    """How the intervals fared, now that the responses are known."""
    import pyarrow.compute as pc
    from pyarrow.csv import read_csv

    table = read_csv(predictions)
    inside = pc.and_(
        pc.greater_equal(table[response], table["low"]),
        pc.less_equal(table[response], table["high"]),
    )
    share = pc.mean(inside).as_py()
    count = pc.count(inside).as_py()
    return (
        f"What really happened lies inside the 90 % interval for {100 * share:.1f} % "
        f"of the {count:,} rows whose response is known."
    )


def _say(text: str) -> None:
    typer.echo(typer.style(f"\n{text}", bold=True))


def _without_study(text: str) -> str:
    begin = text.index('  "study": {')
    return text[:begin] + text[text.index("\n  },\n", begin) + 6 :]
