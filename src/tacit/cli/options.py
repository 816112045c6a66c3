"""Options that several commands share, and `--quiet`, which all of them have."""

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.models import CommandInfo

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", help="Ledger file. [default: $TACIT_LEDGER or one per user]"),
]
Probability = Annotated[float, typer.Option("--interval", help="Probability of the intervals.")]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="Say nothing but errors: no progress, no result (other than --json)."
    ),
]
_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


def with_quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same command, which can be told to say nothing but errors, and the JSON that was asked for."""

    @functools.wraps(function)
    def command(*arguments: Any, quiet: bool = False, **options: Any) -> Any:  # noqa: ANN401 - those of the command
        token = _quiet.set(quiet)
        try:
            with quietly() if quiet and not options.get("as_json") else contextlib.nullcontext():
                return function(*arguments, **options)
        finally:
            _quiet.reset(token)

    signature = inspect.signature(function)
    option = inspect.Parameter(
        "quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Quiet
    )
    setattr(  # noqa: B010 - not in its type
        command,
        "__signature__",
        signature.replace(parameters=[*signature.parameters.values(), option]),
    )
    command.__annotations__ = {**function.__annotations__, "quiet": Quiet}
    return command


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """What is printed goes nowhere; errors are still told."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):  # noqa: PTH123
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
