"""`tacit stream`: rows arrive, each full batch is published and forgotten."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options
from tacit.cli.stopping import stopping
from tacit.errors import ReleaseError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.holder.account import Charge
    from tacit.holder.stream.ledger import Batch
    from tacit.holder.stream.publish import Report


Source = Annotated[str, typer.Argument(help="A CSV file that grows, or - for standard input.")]
BatchRows = Annotated[
    int, typer.Option(help="Rows of a batch: a public number, fixed for the whole stream.")
]
BatchesPerPerson = Annotated[
    int,
    typer.Option(
        help="Most batches that one person's rows may be in; "
        "the ledger is charged for so many at once."
    ),
]
Idle = Annotated[
    float | None,
    typer.Option(min=0, help="End after so many seconds without new rows. [default: never]"),
]
PublishRest = Annotated[
    bool, typer.Option("--publish-rest", help="At the end publish the last, partial batch too.")
]


def stream(
    study: options.StudyFile,
    holder: options.HolderName,
    batch_rows: BatchRows,
    log: Annotated[Path, typer.Option(help="Release log: one line for each batch is added to it.")],
    source: Source = "-",
    ledger: options.LedgerFile = None,
    dataset: options.Dataset = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    sign: options.SigningKey = None,
    batches_per_person: BatchesPerPerson = 1,
    idle: Idle = None,
    *,
    publish_rest: PublishRest = False,
    new_dataset: options.NewDataset = False,
    as_json: options.Json = False,
) -> None:
    """Publish rows as they arrive: each full batch is a line of the log, and is then forgotten.

    The guarantee is for each person whose rows are in one batch only: the whole stream then costs
    what one release costs, and the ledger is charged that once, when the first row is there. A
    person in k batches has √k times the μ: say so with --batches-per-person (docs/stream.md).

    Standard input ends when it is closed; a file never does: use --idle, or end the command with
    Ctrl-C, which is clean. A later run goes on where this one ended.

    Example: `tacit stream study.toml stays.csv --holder north --batch-rows 1000 --log north.log`
    """
    from tacit.holder.ledger import Ledger, default_path
    from tacit.holder.stream.publish import stream as run_stream
    from tacit.rows.arriving import Text
    from tacit.rows.wiped import wipe_what_is_freed
    from tacit.study import Study

    agreement = Study.load(study)
    book = Ledger(ledger or default_path())
    path = _check_place(log, source, [study, book.path, *([sign] if sign else [])])
    paying = book.paying(dataset)
    is_new = new_dataset or options.confirmed(book, paying)
    say: Callable[[str], None] = (lambda _line: None) if as_json else typer.echo
    wipe_what_is_freed()
    with stopping() as stopped:
        report = run_stream(
            agreement,
            Text(agreement, path, idle=idle, stopped=stopped),
            holder=holder,
            ledger=book,
            log=log,
            batch_rows=batch_rows,
            dataset=paying,
            epsilon=epsilon,
            delta=delta,
            key=sign,
            batches_per_person=batches_per_person,
            publish_rest=publish_rest,
            new_dataset=is_new,
            on_start=lambda charge: say(_unit(charge, batches_per_person)),
            on_batch=lambda batch: say(_batch(batch)),
        )
    typer.echo(json.dumps(_facts(report, log)) if as_json else _end(report, log))


def _check_place(log: Path, source: str, read: list[Path]) -> Path | None:
    """The file that rows come from, or None for standard input; it must not be the log."""
    path = None if source == "-" else Path(source)
    if log.resolve() in {file.resolve() for file in [*read, *([path] if path else [])]}:
        raise ReleaseError(
            f"--log {str(log)!r} would be mixed with what is read: choose another file"
        )
    return path


def _unit(charge: "Charge", batches_per_person: int) -> str:
    from tacit.privacy.gaussian import epsilon_of

    where = "one batch only" if batches_per_person == 1 else f"at most {batches_per_person} batches"
    more = epsilon_of(charge.mu * 2**0.5, charge.delta)
    return (
        f"guarantee: epsilon = {charge.epsilon:.4g} at delta = {charge.delta:g} "
        f"for each person whose rows are in {where};\n"
        f"           one in twice as many has epsilon = {more:.4g}. "
        f"Charged once, for the whole stream, to data set {charge.dataset!r}"
    )


def _batch(batch: "Batch") -> str:
    rows = f"batch {batch.number}: rows {batch.first_row:,} to {batch.last_row:,}"
    if batch.entry is None:
        return f"{rows} LOST: taken, and not published before the run ended"
    return f"{rows} published"


def _facts(report: "Report", log: Path) -> dict[str, Any]:
    lost = [
        {"batch": batch.number, "first_row": batch.first_row, "last_row": batch.last_row}
        for batch in report.lost
    ]
    return {
        "log": str(log),
        "stream": report.stream,
        "published": report.published,
        "rows": report.rows,
        "lost": lost,
        "waiting": report.waiting,
        "mended": report.mended,
        "epsilon": report.charge.epsilon,
        "delta": report.charge.delta,
        "dataset": report.charge.dataset,
    }


def _end(report: "Report", log: Path) -> str:
    if report.stream is None:
        return "no row came: nothing was published, and nothing was charged"
    parts = [f"{log}: {report.published} batches of this run, {report.rows:,} rows"]
    if report.mended:
        parts.append(f"{report.mended} lines that a crash kept out of the log were added")
    if report.waiting:
        parts.append(f"{report.waiting:,} rows wait in the file for a full batch")
    parts.append("the log, and nothing else, may leave the house")
    return "; ".join(parts)
