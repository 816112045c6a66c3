"""`tacit ledger`: what was spent, what may be, and releases again."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import HOW, WIDTH, Dataset, Json, LedgerFile, wrapped
from tacit.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from tacit.holder.account import Account, Charge
    from tacit.holder.ledger import Ledger
    from tacit.release.document import Published

app = typer.Typer(help="See and bound what was spent on each data set.", no_args_is_help=True)


@app.command()
def show(ledger: LedgerFile = None, *, as_json: Json = False) -> None:
    """Show every data set: its limit, its charges, and what is left.

    Example: `tacit ledger show`
    """
    from tacit.holder.ledger import Ledger, default_path

    book = Ledger(ledger or default_path())
    accounts = book.accounts()
    if as_json:
        typer.echo(json.dumps([_facts(account) for account in accounts]))
        return
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    for account in accounts:
        console.print(_state(account), highlight=False, soft_wrap=True)
        console.print(_charges(account))


@app.command()
def explain(dataset: Dataset = None, ledger: LedgerFile = None) -> None:
    """Explain how charges add up: why what is spent and what is left are not the limit together.

    Example: `tacit ledger explain --dataset patients`
    """
    from tacit.holder.explanation import explanation
    from tacit.holder.ledger import Ledger, default_path

    book = Ledger(ledger or default_path())
    name = book.paying(dataset)
    accounts = [account for account in book.accounts() if account.dataset == name]
    if not accounts:
        raise LedgerError(f"the ledger has no data set {name!r}: `tacit ledger show` lists them")
    paragraphs = explanation(accounts[0])
    typer.echo("\n\n".join(wrapped(paragraph) for paragraph in paragraphs))


def _facts(account: "Account") -> dict[str, Any]:
    charges = [
        {**vars(charge), "release": charge.release is not None} for charge in account.charges
    ]
    for charge in charges:
        del charge["person"]  # its data set has it
    return {
        "dataset": account.dataset,
        "relation": account.relation,
        "person": account.person,
        "limit": {"epsilon": account.epsilon, "delta": account.delta},
        "epsilon_spent": account.epsilon_spent,
        "epsilon_left": account.epsilon_left,
        "charges": charges,
    }


def _state(account: "Account") -> str:
    unit = "" if account.person is None else f", of persons by {account.person!r}"
    state = (
        f"data set {account.dataset!r} ({account.relation or 'not charged yet'}{unit}): "
        f"spent epsilon = {account.epsilon_spent:.4g}, "
        f"left {account.epsilon_left:.4g} of {account.epsilon:g}, at delta = {account.delta:g}"
    )
    return wrapped(state if not account.adds_up else f"{state} ({HOW})")


def _charges(account: "Account") -> "Table":
    """Every charge of a data set as a line of a table."""
    from rich.table import Table

    table = Table()
    for heading in ("charge", "time", "study", "holder", "epsilon", "delta", "release"):
        is_whole = heading not in {"study", "holder", "release"}
        table.add_column(heading, overflow="fold", no_wrap=is_whole)
    for charge in account.charges:
        state = "stored" if charge.release is not None else "interrupted: publish again"
        if charge.batches is not None:
            state = f"stream: {charge.batches} batches"
        table.add_row(
            str(charge.id),
            charge.time[:10],
            charge.study,
            charge.holder,
            f"{charge.epsilon:g}",
            f"{charge.delta:g}",
            state,
        )
    return table


@app.command()
def limit(
    epsilon: Annotated[
        float, typer.Option(help="Most epsilon that may ever be spent on the data set.")
    ],
    delta: Annotated[float, typer.Option(help="The delta at which epsilon is meant.")],
    dataset: Annotated[str, typer.Option(help="The data set.")] = "default",
    ledger: LedgerFile = None,
) -> None:
    """Set the limit of a data set; without one, the first release's own budget is the limit.

    Example: `tacit ledger limit --dataset patients --epsilon 2 --delta 1e-6`
    """
    from tacit.holder.ledger import Ledger, default_path

    account = Ledger(ledger or default_path()).set_limit(dataset, epsilon, delta)
    typer.echo(
        f"data set {dataset!r}: limit epsilon = {epsilon:g} at delta = {delta:g}; "
        f"left {account.epsilon_left:.4g}"
    )


@app.command()
def export(
    charge: Annotated[
        int, typer.Argument(help="Number of the charge, as `tacit ledger show` lists it.")
    ],
    out: Annotated[Path, typer.Option(help="File for the release.")],
    ledger: LedgerFile = None,
) -> None:
    """Write a release, or the log of a stream, that was paid for once more, at no cost.

    It is the same document.

    Example: `tacit ledger export 1 --out north.json`
    """
    from tacit.files import refuse_overwriting, write_whole
    from tacit.holder.ledger import Ledger, default_path

    book = Ledger(ledger or default_path())
    refuse_overwriting(out, [book.path])
    write_whole(out, book.release(charge))
    typer.echo(f"{out}: release of charge {charge}, at no cost")


@app.command()
def mend(
    releases: Annotated[
        list[Path], typer.Argument(help="Releases that left the house after the copy was made.")
    ],
    dataset: Annotated[str, typer.Option(help="The data set that paid for them.")],
    ledger: LedgerFile = None,
    *,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Go on although charges stay unknown.")
    ] = False,
) -> None:
    """Enter the charges that a ledger put back from an older copy lacks, from the releases.

    A ledger remembers beside it how many charges it had, and publishes nothing while some are
    missing. What a stream spent cannot be entered so: put the newest ledger back.

    Example: `tacit ledger mend north.json --dataset patients`
    """
    from tacit.holder.ledger import Ledger, default_path
    from tacit.visits.messages import load_message

    book = Ledger(ledger or default_path())
    documents = [load_message(path) for path in releases]
    missing = _missing(documents, book, dataset)
    relations = {each.relation for each in documents}
    if len(relations) > 1:
        raise LedgerError("releases of one data set have one relation: mend each by itself")
    mark = book.mend(missing, *relations, accept_loss=accept_loss)
    typer.echo(f"{book.path}: {len(missing)} charges entered, {mark.charges} in all")


def _missing(documents: "Sequence[Published]", book: "Ledger", dataset: str) -> "list[Charge]":
    """The charges behind these documents that the ledger does not know."""
    from tacit.holder.charge import charges_behind

    entered = [charge for account in book.accounts() for charge in account.charges]
    texts = {charge.release for charge in entered}
    names = {(charge.dataset, charge.study_hash) for charge in entered}
    missing = []
    for document in sorted(documents, key=lambda each: each.created):
        for charge in charges_behind(document, dataset):
            name = (charge.dataset, charge.study_hash)
            visited = document.study.visit_count > 1 and name in names
            if charge.release not in texts and not visited:
                missing.append(charge)
                names.add(name)
    return missing
