"""`tacit desk`: the data officer's page, on this machine alone."""

import contextlib
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli import options
from tacit.cli.publish import Database, Query, SparkMaster, SparkTable
from tacit.errors import DeskError

if TYPE_CHECKING:
    from tacit.desk.serve import Opened
    from tacit.desk.setting import Setting, Source


def desk(
    studies: Annotated[
        list[Path] | None, typer.Argument(help="Study files to begin with; others can be opened.")
    ] = None,
    holder: Annotated[str, typer.Option(help="This holder's name, filled in beforehand.")] = "",
    table: Annotated[
        list[str] | None,
        typer.Option(help="A table that may be picked: a file, folder or pattern. Repeat it."),
    ] = None,
    sql: Query = None,
    database: Database = None,
    spark_table: SparkTable = None,
    spark_master: SparkMaster = None,
    policy: Annotated[
        Path | None,
        typer.Option(help="A site's holder.toml: its requests, data, ledger, key and name."),
    ] = None,
    ledger: options.LedgerFile = None,
    sign: Annotated[
        Path | None,
        typer.Option(help="Private key to sign with. [default: sign.key beside the ledger]"),
    ] = None,
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1. [default: a free one]")] = 0,
    *,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Show the address, and open nothing.")
    ] = False,
) -> None:
    """Open a page in the browser, for publishing without a terminal.

    Read a study in words, drop a table, see the rehearsal, confirm the price, save the file; see
    the ledger, and a federation's requests. The page is served on this machine alone, under an
    address that works once.

    Example: `tacit desk study.toml`
    """
    try:
        from tacit.desk.serve import serve
        from tacit.desk.setting import asked_of, picked
    except ModuleNotFoundError:
        raise DeskError(
            "the desk needs packages of its own: pip install 'tacit-dp[desk]'"
        ) from None
    from tacit.study import Study

    sources = [picked(asked_of([place])) for place in table or []]
    if sql or database or spark_table or spark_master:
        sources.append(picked(asked_of([], sql, database, spark_table, spark_master)))
    setting = _setting(policy, ledger, sign, holder, tuple(sources))
    opened = [Study.load(path) for path in studies or []]

    def announce(opened: "Opened") -> None:
        typer.echo(f"the desk is open, for one browser: {opened.address}")
        typer.echo("interrupt to close it")
        if not no_browser:
            threading.Thread(target=webbrowser.open, args=(opened.address,), daemon=True).start()

    with contextlib.suppress(KeyboardInterrupt):
        serve(setting, opened, port, announce)
    typer.echo("the desk is closed; tables that were handed over are removed")


def _setting(
    policy: Path | None,
    ledger: Path | None,
    sign: Path | None,
    holder: str,
    sources: "tuple[Source, ...]",
) -> "Setting":
    """What the command line or, where one is given, a site's policy says."""
    from tacit.desk.setting import Setting, policy_source
    from tacit.holder.ledger import Ledger, default_path

    if policy is None:
        book = Ledger(ledger or default_path())
        key = sign or book.path.with_name("sign.key")
        return Setting(ledger=book, key=key, holder=holder, sources=sources)
    from tacit.federation.client.policy import Policy

    if ledger is not None or sign is not None or holder:
        raise DeskError("--policy names ledger, key and holder already: leave out the others")
    allowed = Policy.load(policy)
    book = Ledger(allowed.ledger)
    return Setting(
        ledger=book,
        key=Path(allowed.key) if allowed.key else book.path.with_name("sign.key"),
        holder=allowed.holder,
        sources=(policy_source(allowed), *sources),
        policy=allowed,
    )
