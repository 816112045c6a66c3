"""`tacit publish`: from a table to a release."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options
from tacit.cli.progress import rows_bar
from tacit.cli.source import Asked, files_of, source_of, written_as
from tacit.errors import ReleaseError, TableError

if TYPE_CHECKING:
    from tacit.holder.encode import Diagnostics
    from tacit.holder.ledger import Ledger
    from tacit.holder.rehearsal import Rehearsal
    from tacit.release.document import Published
    from tacit.release.statistics import Visit


Tables = Annotated[
    list[str] | None,
    typer.Argument(
        help="Tables: files, folders or patterns (CSV and other text, Parquet, Feather/Arrow, "
        "Excel, Stata, SPSS, SAS)."
    ),
]
Query = Annotated[
    str | None, typer.Option(help="Instead of files: the rows of this query on --database.")
]
Database = Annotated[
    str | None,
    typer.Option(
        help="postgresql://host/name, sqlite:///file.db or duckdb:///file.db, "
        "or env:NAME for one; without a password."
    ),
]
SparkTable = Annotated[
    str | None,
    typer.Option(help="Instead of files: a table of Spark's catalogue."),
]
SparkMaster = Annotated[
    str | None,
    typer.Option(help="Spark's master, such as spark://host:7077. [default: as Spark is set up]"),
]
Separator = Annotated[
    str | None, typer.Option(help="What separates cells of a text. [default: found in its names]")
]
Decimal = Annotated[
    str | None,
    typer.Option(
        help="The decimal sign, . or , [default: . where commas separate cells, else both]"
    ),
]
Thousands = Annotated[str | None, typer.Option(help="The sign between groups of three digits.")]
Encoding = Annotated[
    str | None,
    typer.Option(
        help="Such as windows-1252. [default: by its mark, else UTF-8 with Windows bytes]"
    ),
]
Header = Annotated[
    int | None,
    typer.Option(help="Number of the line that holds the names. [default: the first that does]"),
]
MissingCodes = Annotated[
    list[str] | None, typer.Option(help="A code for a missing value, as -999. Repeat it.")
]
Sheet = Annotated[
    str | None,
    typer.Option(help="Sheet of a spreadsheet. [default: the only one with the study's names]"),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(help="A column of the study that the table names otherwise, as age=Age. Repeat."),
]
AskedQuestion = Annotated[
    Path | None,
    typer.Option(help="A later visit: the question that `tacit next` made of all releases."),
]
Processes = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Processes that read Parquet, Arrow or several files, of about 300 MB each. "
        "[default: $TACIT_PROCESSES, or one for each core]",
    ),
]
Again = Annotated[bool, typer.Option("--again", help="Pay for a second release of the same study.")]
LocalDiagnostics = Annotated[
    bool,
    typer.Option(
        "--local-diagnostics",
        help="Show on this screen alone how many values were clamped, rows shrunk or incomplete.",
    ),
]
Rehearse = Annotated[
    bool,
    typer.Option(
        "--rehearse",
        help="Show on this screen alone what the table holds, what would leave and what it would "
        "cost; nothing is paid or published.",
    ),
]
KeepRehearsal = Annotated[
    Path | None,
    typer.Option(
        "--keep-rehearsal",
        help="With --rehearse: a file for it, which stays here (.json: as a record).",
    ),
]
Person = Annotated[
    str | None,
    typer.Option(
        help="With --rehearse: a column that tells persons apart, to see whether some have "
        "several rows. [default: the study's person, or a column whose name says that it is one]"
    ),
]
Anyway = Annotated[
    bool,
    typer.Option("--anyway", help="Publish although the rehearsal would say STOP."),
]


def publish(
    study: options.StudyFile,
    holder: options.HolderName,
    out: Annotated[Path | None, typer.Option(help="File for the release.")] = None,
    data: Tables = None,
    sql: Query = None,
    database: Database = None,
    spark_table: SparkTable = None,
    spark_master: SparkMaster = None,
    separator: Separator = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    encoding: Encoding = None,
    header: Header = None,
    missing: MissingCodes = None,
    sheet: Sheet = None,
    column: Columns = None,
    ledger: options.LedgerFile = None,
    dataset: options.Dataset = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    question: AskedQuestion = None,
    sign: options.SigningKey = None,
    processes: Processes = None,
    *,
    again: Again = False,
    new_dataset: options.NewDataset = False,
    local_diagnostics: LocalDiagnostics = False,
    rehearse: Rehearse = False,
    keep_rehearsal: KeepRehearsal = None,
    person: Person = None,
    anyway: Anyway = False,
    as_json: options.Json = False,
) -> None:
    """Publish a table's noisy statistics as one JSON file that may leave the house.

    The table is read, the ledger is charged on disk, and only then is noise drawn and the release
    written. Where something looks wrong with the table, a column that is mostly clamped say, this
    is told and asked about first.

    Rehearse first: `tacit publish study.toml patients.csv --holder north --rehearse`

    Example: `tacit publish study.toml patients.csv --holder north --out north.json`

    From a database: `--sql "SELECT age, bmi, days FROM stays" --database postgresql://host/ward`
    instead of files.

    From Spark: `--spark-table ward.stays --spark-master spark://host:7077` instead of files.

    In a study of several visits: `--question question2.json` answers the second one, and so on.
    """
    _set_processes(processes)
    from tacit.holder.encode import Diagnostics
    from tacit.holder.ledger import Ledger, default_path

    written = written_as(
        separator=separator,
        decimal=decimal,
        thousands=thousands,
        encoding=encoding,
        header=header,
        missing=missing,
        sheet=sheet,
        columns=column,
    )
    asked = Asked(data or [], sql, database, spark_table, spark_master, written)
    book = Ledger(ledger or default_path())
    paying = book.paying(dataset)
    read = [study, book.path, *([sign] if sign else []), *files_of(asked)]
    purpose: dict[str, Any] = {
        "holder": holder,
        "ledger": book,
        "dataset": paying,
        "epsilon": epsilon,
        "delta": delta,
        "again": again,
    }
    if question is not None:
        purpose["question"] = question
    if rehearse:
        purpose |= {"new_dataset": new_dataset, "person": person}
        _rehearse(study, asked, keep_rehearsal, read, **purpose)
        return
    if out is None or keep_rehearsal is not None:
        raise ReleaseError("give --out, the file for the release; or --rehearse, which needs none")
    diagnostics = Diagnostics() if local_diagnostics else None
    _check_place(out, read)
    release = _published(
        study,
        asked,
        key=sign,
        new_dataset=new_dataset or options.confirmed(book, paying),
        diagnostics=diagnostics,
        confirm=None if anyway else confirmed_aloud,
        **purpose,
    )
    _save(release, out)
    if diagnostics is not None:
        _show(diagnostics)
    _tell(release, out, book, paying, as_json=as_json)


def _set_processes(count: int | None) -> None:
    """Say how many processes read, each on one core."""
    from tacit.holder.processes import VARIABLE

    if count is not None:
        os.environ[VARIABLE] = str(count)


def _published(
    study: Path,
    asked: Asked,
    **purpose: Any,  # noqa: ANN401
) -> "Published":
    """Read, charge, perturb: what `publish` of the library does."""
    from tacit.holder.publish import publish as publish_statistics
    from tacit.study import Study

    agreement = Study.load(study)
    source = source_of(asked, agreement)
    with rows_bar(getattr(source, "rows", None)) as on_rows:
        return publish_statistics(agreement, source, on_rows=on_rows, **purpose)


def _rehearse(
    study: Path,
    asked: Asked,
    keep: Path | None,
    read: list[Path],
    **purpose: Any,  # noqa: ANN401
) -> None:
    """Show a rehearsal, on the error stream so that no pipe carries it off, and keep it if asked.

    With --quiet nothing is shown: then it is for the file.
    """
    from tacit.files import refuse_overwriting
    from tacit.holder.publish import rehearse as rehearse_statistics
    from tacit.study import Study

    if keep is not None:
        refuse_overwriting(keep, read)
        _refuse_foreign(keep, "rehearsal", "--keep-rehearsal")
    agreement = Study.load(study)
    source = source_of(asked, agreement)
    with rows_bar(getattr(source, "rows", None)) as on_rows:
        rehearsal = rehearse_statistics(agreement, source, on_rows=on_rows, **purpose)
    if not options.is_quiet():
        typer.echo(str(rehearsal), err=True)
    if keep is not None:
        rehearsal.save(keep)
        typer.echo(f"{keep}: the rehearsal; it stays here", err=True)


def confirmed_aloud(rehearsal: "Rehearsal") -> None:
    """Tell what is loud about a table, on this screen alone, and ask whether to pay all the same.

    Without a terminal nobody can be asked: nothing is paid then. The sentence that says so names
    no column, for it may end up in a log; what it means was told on the screen.
    """
    if not rehearsal.shouts:
        return
    typer.echo("for this screen only, never to be passed on:", err=True)
    for sentence in rehearsal.shouts:
        typer.echo(options.wrapped(f"! {sentence}", "  "), err=True)
    if sys.stdin.isatty() and typer.confirm("Publish it as it is?", err=True):
        return
    raise TableError(
        "the table does not look like what the study describes: nothing was published or paid; "
        "see it with --rehearse, correct it, or say --anyway"
    )


def _check_place(out: Path, read: list[Path]) -> None:
    """Find out before anything is paid that the release cannot stand there."""
    from tacit.files import refuse_overwriting, refuse_unwritable

    refuse_unwritable(out)
    refuse_overwriting(out, read)
    _refuse_foreign(out, "release", "--out")


def _refuse_foreign(out: Path, kind: str, option: str) -> None:
    """A query or a Spark table may read any file: only one of its own kind is overwritten."""
    if not out.is_file():
        return
    try:
        with out.open("rb") as file:
            begin = file.read(64)
    except OSError:
        begin = b"what may not be read"
    is_rehearsal = b'"format": "tacit-rehearsal' in begin
    if begin and (b'"format": "tacit-' not in begin or is_rehearsal != (kind == "rehearsal")):
        raise ReleaseError(
            f"{str(out)!r} exists already and is no {kind}: choose another {option}, or remove it"
        )


def _save(release: "Published", out: Path) -> None:
    try:
        release.save(out)
    except ReleaseError as error:
        raise ReleaseError(
            f"{error}; it is paid and in the ledger: `tacit ledger show` gives its number, "
            "`tacit ledger export` writes it elsewhere"
        ) from None


def _show(diagnostics: "Diagnostics") -> None:
    """Counts for the holder's eyes, on the error stream so that no pipe carries them off."""
    typer.echo("for this screen only, never to be passed on:", err=True)
    typer.echo(
        f"  rows {diagnostics.rows}, incomplete {diagnostics.incomplete}, "
        f"shrunk to the radius {diagnostics.shrunk}",
        err=True,
    )
    for name, count in diagnostics.clamped.items():
        typer.echo(f"  {name}: {count} values outside the public range, clamped", err=True)


def _tell(release: "Published", out: Path, book: "Ledger", dataset: str, *, as_json: bool) -> None:
    """Say what was published, what it cost and what is left."""
    account = next(account for account in book.accounts() if account.dataset == dataset)
    if as_json:
        facts = {
            "release": str(out),
            "study": release.study_hash,
            "epsilon": release.epsilon,
            "delta": release.delta,
            "ledger": str(book.path),
            "dataset": dataset,
            "epsilon_spent": account.epsilon_spent,
            "epsilon_left": account.epsilon_left,
        }
        typer.echo(json.dumps(facts))
        return
    at = _visit_of(release)
    visits = release.study.visit_count
    which = f"visit {at} of {visits}, " if visits > 1 else ""
    typer.echo(
        f"{out}: {which}the release of {release.holder!r} for study {release.study.name!r}; "
        "this file, and nothing else, may leave the house"
    )
    if at < visits:
        typer.echo("the next visit costs nothing more: its question is made by `tacit next`")
    if account.charges[-1].mu == 0:
        typer.echo("paid by the first visit; nothing is charged again")
        return
    typer.echo(
        f"paid: epsilon = {release.epsilon:g} at delta = {release.delta:g}, "
        f"by data set {dataset!r} in {book.path}"
    )
    how = f" ({options.HOW})" if account.adds_up else ""
    typer.echo(
        f"spent in all: epsilon = {account.epsilon_spent:.4g}; "
        f"left: {account.epsilon_left:.4g} of {account.epsilon:g}{how}"
    )


def _visit_of(release: "Published") -> int:
    """The visit that a message answers: a first one tells where values lie, and has no question."""
    visit: Visit | None = getattr(release, "visit", None)
    return 1 if visit is None else visit.question.visit
