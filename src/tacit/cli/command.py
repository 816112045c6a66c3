"""What every command has in common: `--quiet`."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import click
import typer
from typer.core import TyperCommand
from typer.models import CommandInfo

_QUIET = "tacit.quiet"


class Command(TyperCommand):
    """A command that can be told to say nothing but errors, and the JSON that was asked for."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - those of its parent
        super().__init__(*arguments, **options)
        text = "Say nothing but errors: no progress, no result (other than --json)."
        self.params.append(click.Option(["--quiet", "-q"], is_flag=True, expose_value=False, callback=_remember, help=text))

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401
        """Run the command, its words going nowhere if it is to be quiet."""
        with quietly() if is_quiet() and not ctx.params.get("as_json") else contextlib.nullcontext():
            return super().invoke(ctx)


def _remember(ctx: click.Context, _option: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
    ctx.meta[_QUIET] = value


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """What is printed goes nowhere; errors are still told."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):  # noqa: PTH123
        yield


def is_quiet() -> bool:
    """Whether the running command was told to be quiet."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_QUIET))


def every_command(app: typer.Typer) -> Iterator[CommandInfo]:
    """The commands of an app and of its groups."""
    yield from app.registered_commands
    for group in app.registered_groups:
        if group.typer_instance is not None:
            yield from every_command(group.typer_instance)
