"""Options that several commands share, and `--quiet`, which all of them have."""

import contextlib
import functools
import os
import sys
import textwrap
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand
from typer.models import CommandInfo

if TYPE_CHECKING:
    import click

    from tacit.holder.ledger import Ledger

StudyFile = Annotated[Path, typer.Argument(help="The study file all holders agreed on.")]
HolderName = Annotated[
    str, typer.Option(help="This holder's name, as every release will state it.")
]
PosteriorFile = Annotated[Path, typer.Argument(help="A posterior that `tacit fit` wrote.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", help="Ledger file. [default: $TACIT_LEDGER or one per user]"),
]
Dataset = Annotated[
    str | None,
    typer.Option(
        help="Which data set pays: tables about the same persons share one. "
        "[default: the only one that the ledger knows, or default]"
    ),
]
NewDataset = Annotated[
    bool,
    typer.Option(
        "--new-dataset",
        help="The rows are of other persons than those of every data set in the ledger.",
    ),
]
Epsilon = Annotated[float | None, typer.Option(help="Spend less than the study's epsilon.")]
Delta = Annotated[float | None, typer.Option(help="Spend less than the study's delta.")]
SigningKey = Annotated[
    Path | None, typer.Option(help="Private key to sign with (see `tacit key new`).")
]
Prior = Annotated[str, typer.Option(help="weak, paper, or a TOML file with a [prior] table.")]
Probability = Annotated[float, typer.Option("--interval", help="Probability of the intervals.")]
TrustedKeys = Annotated[
    list[str] | None,
    typer.Option(
        "--trusted-key",
        help="A holder's public key, as north=KEY: take no release but those so signed.",
    ),
]
WithoutImplausible = Annotated[
    bool,
    typer.Option(
        "--without-implausible",
        help="Leave out releases that break the study's public bounds, instead of refusing.",
    ),
]
AllowSimulated = Annotated[
    bool, typer.Option("--allow-simulated", help="Take releases with seeded noise.")
]
WIDTH = 80
"""Columns of a screen that every output fits."""
HOW = "squares add up: `tacit ledger explain`"
"""Where to read why what is spent and what is left are not the limit together."""
_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


def _only_quiet(
    quiet: Annotated[  # noqa: FBT002 - an option
        bool,
        typer.Option(
            "--quiet",
            "-q",
            show_default=False,
            help="Say nothing but errors: no progress, no result (other than --json).",
        ),
    ] = False,
) -> None:
    """Carry the option `--quiet`, which typer makes of it as it makes all others."""


@functools.cache
def _quiet_option() -> Any:  # noqa: ANN401 - typer's own class, which moves
    probe = typer.Typer(add_completion=False)
    probe.command()(_only_quiet)
    options = typer.main.get_command(probe).params
    return next(option for option in options if option.name == "quiet")


class QuietCommand(TyperCommand):
    """A command that can be told to say nothing but errors, and the JSON that was asked for."""

    def __init__(self, *arguments: Any, **fields: Any) -> None:  # noqa: ANN401 - typer's own
        super().__init__(*arguments, **fields)
        self.params.append(_quiet_option())
        for option in self.params:
            if getattr(option, "is_flag", False):
                option.metavar = ""  # newer typers would show a flag as one that takes a value

    def invoke(self, ctx: "click.Context") -> Any:  # noqa: ANN401 - what the command returns
        """Run the command, its words going nowhere where it is to be quiet."""
        is_told = ctx.params.pop("quiet")
        token = _quiet.set(is_told)
        says_nothing = is_told and not ctx.params.get("as_json")
        try:
            with quietly() if says_nothing else contextlib.nullcontext():
                return super().invoke(ctx)
        finally:
            _quiet.reset(token)


def confirmed(ledger: "Ledger", dataset: str) -> bool:
    """Ask at a terminal whether a name that is new to the ledger is of other persons."""
    names = ledger.datasets()
    if not names or dataset in names or not sys.stdin.isatty():
        return False
    from tacit.rows.names import near

    close = near(dataset, names)
    meant = f" Did you mean {close[0]!r}?" if close else ""
    return typer.confirm(
        f"The ledger knows {', '.join(map(repr, names))}, not {dataset!r}.{meant} "
        "Are the rows of other persons than theirs?"
    )


def wrapped(text: str, indent: str = "") -> str:
    """A paragraph in lines of at most eighty columns, no word of which is broken."""
    return textwrap.fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """What is printed goes nowhere; errors are still told."""
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
    ):
        yield


def is_quiet() -> bool:
    """Whether the running command was told to be quiet."""
    return _quiet.get()


def every_command(app: typer.Typer) -> Iterator[CommandInfo]:
    """The commands of an app and of its groups."""
    yield from app.registered_commands
    for group in app.registered_groups:
        if group.typer_instance is not None:
            yield from every_command(group.typer_instance)
