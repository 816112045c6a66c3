"""`tacit stream`: rows arrive, each full batch is published and forgotten."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import Json, LedgerFile

if TYPE_CHECKING:
    from tacit.holder.account import Charge
    from tacit.holder.stream.ledger import Batch
    from tacit.holder.stream.publish import Report


def stream(
    study: Annotated[Path, typer.Argument(help="The study file all holders agreed on.")],
    holder: Annotated[str, typer.Option(help="This holder's name, as the releases will state it.")],
    batch_rows: Annotated[
        int, typer.Option(help="Rows of a batch: a public number, fixed for the whole stream.")
    ],
    log: Annotated[Path, typer.Option(help="Release log: one line for each batch is added to it.")],
    source: Annotated[
        str, typer.Argument(help="A CSV file that grows, or - for standard input.")
    ] = "-",
    ledger: LedgerFile = None,
    dataset: Annotated[
        str, typer.Option(help="Which data set pays: tables about the same persons share one.")
    ] = "default",
    epsilon: Annotated[
        float | None, typer.Option(help="Spend less than the study's epsilon.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="Spend less than the study's delta.")] = None,
    sign: Annotated[
        Path | None,
        typer.Option(help="Private key to sign each release with (see `tacit key new`)."),
    ] = None,
    batches_per_person: Annotated[
        int,
        typer.Option(
            help="Most batches that one person's rows may be in; the ledger is charged for so many at once."
        ),
    ] = 1,
    idle: Annotated[
        float | None,
        typer.Option(min=0, help="End after so many seconds without new rows. [default: never]"),
    ] = None,
    *,
    publish_rest: Annotated[
        bool, typer.Option("--publish-rest", help="At the end publish the last, partial batch too.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Publish rows as they arrive: each full batch becomes one line of the release log, and its rows are forgotten.

    The guarantee is for each person whose rows are in one batch only: the whole stream then costs what one release costs, and
    the ledger is charged that once, when the first row is there. A person in k batches has √k times the μ: say so with
    --batches-per-person. docs/stream.md has the details.

    Standard input ends when it is closed; a file never does: use --idle, or end the command with Ctrl-C, which is clean. A later run
    goes on where this one ended.

    Example: `tacit stream study.toml admissions.csv --holder north --batch-rows 1000 --log north.log`
    """
    from tacit.errors import ReleaseError
    from tacit.holder.ledger import Ledger, default_path
    from tacit.holder.stream.publish import stream as run_stream
    from tacit.rows.arriving import Text, wipe_what_is_freed
    from tacit.study import Study

    agreement = Study.load(study)
    book = Ledger(ledger or default_path())
    path = None if source == "-" else Path(source)
    if log.resolve() in {
        file.resolve() for file in (study, book.path, path, sign) if file is not None
    }:
        raise ReleaseError(
            f"--log {str(log)!r} would be mixed with what is read: choose another file"
        )
    say: Callable[[str], None] = (lambda _line: None) if as_json else typer.echo
    wipe_what_is_freed()
    with _stopping() as stopped:
        report = run_stream(
            agreement,
            Text(agreement, path, idle=idle, stopped=stopped),
            holder=holder,
            ledger=book,
            log=log,
            batch_rows=batch_rows,
            dataset=dataset,
            epsilon=epsilon,
            delta=delta,
            key=sign,
            batches_per_person=batches_per_person,
            publish_rest=publish_rest,
            on_start=lambda charge: say(_unit(charge, batches_per_person)),
            on_batch=lambda batch: say(_batch(batch)),
        )
    typer.echo(json.dumps(_facts(report, log)) if as_json else _end(report, log))


@contextmanager
def _stopping() -> Iterator[Callable[[], bool]]:
    """Make Ctrl-C and SIGTERM ask for a clean end; a second one breaks off."""
    asked: list[int] = []

    def ask(number: int, _frame: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    import pyarrow as pa

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    pa.enable_signal_handlers(
        False
    )  # its own would break off the parsing of rows that were read already
    try:
        yield lambda: bool(asked)
    finally:
        pa.enable_signal_handlers(True)
        for number, handler in before.items():
            signal.signal(number, handler)


def _unit(charge: "Charge", batches_per_person: int) -> str:
    from tacit.privacy.gaussian import epsilon_of

    where = "one batch only" if batches_per_person == 1 else f"at most {batches_per_person} batches"
    more = epsilon_of(charge.mu * 2**0.5, charge.delta)
    return (
        f"guarantee: epsilon = {charge.epsilon:.4g} at delta = {charge.delta:g} for each person whose rows are in {where};\n"
        f"           one in twice as many has epsilon = {more:.4g}. Charged once, for the whole stream, to data set {charge.dataset!r}"
    )


def _batch(batch: "Batch") -> str:
    rows = f"batch {batch.number}: rows {batch.first_row:,} to {batch.last_row:,}"
    return (
        f"{rows} published"
        if batch.entry is not None
        else f"{rows} LOST: taken, and not published before the run ended"
    )


def _facts(report: "Report", log: Path) -> dict[str, Any]:
    lost = [
        {"batch": batch.number, "first_row": batch.first_row, "last_row": batch.last_row}
        for batch in report.lost
    ]
    facts = {
        "log": str(log),
        "stream": report.stream,
        "published": report.published,
        "rows": report.rows,
        "lost": lost,
    }
    spent = {
        "epsilon": report.charge.epsilon,
        "delta": report.charge.delta,
        "dataset": report.charge.dataset,
    }
    return facts | {"waiting": report.waiting, "mended": report.mended} | spent


def _end(report: "Report", log: Path) -> str:
    if report.stream is None:
        return "no row came: nothing was published, and nothing was charged"
    mended = (
        f"; {report.mended} lines that a crash kept out of the log were added"
        if report.mended
        else ""
    )
    waiting = (
        f"; {report.waiting:,} rows wait in the file for a full batch" if report.waiting else ""
    )
    done = f"{log}: {report.published} batches of this run, {report.rows:,} rows{mended}{waiting}"
    return f"{done}; the log, and nothing else, may leave the house"
