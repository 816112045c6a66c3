"""The command `tacit`: one thin function per verb."""

import functools
import os
import sys
from collections.abc import Callable

import typer

from tacit.cli import (
    asking,
    compare,
    demo,
    desk,
    doctor,
    effect,
    exchange,
    federate,
    fit,
    follow,
    key,
    ledger,
    plan,
    predict,
    publish,
    report,
    stream,
    study,
)
from tacit.cli.options import QuietCommand, every_command
from tacit.cores import keep_to_one_thread
from tacit.errors import TacitError

app = typer.Typer(
    name="tacit",
    help=(
        "Fit one Bayesian linear regression over several data holders "
        "without showing a row to anyone."
    ),
    epilog=(
        "Exit codes: 0 done, 2 wrong input or exhausted budget (one sentence says which), "
        "130 interrupted, 1 anything else."
    ),
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.add_typer(study.app, name="study")
app.add_typer(ledger.app, name="ledger")
app.add_typer(key.app, name="key")
app.add_typer(federate.app, name="federate")
app.add_typer(exchange.app, name="exchange")
app.command("plan")(plan.plan)
app.command("publish")(publish.publish)
app.command("desk")(desk.desk)
app.command("next")(asking.ask)
app.command("stream")(stream.stream)
app.command("fit")(fit.fit)
app.command("follow")(follow.follow)
app.command("summary")(fit.summary)
app.command("predict")(predict.predict)
app.command("compare")(compare.compare)
app.command("effect")(effect.effect)
app.command("report")(report.report)
app.command("demo")(demo.demo)
app.command("doctor")(doctor.doctor)
for command in every_command(app):
    command.cls = QuietCommand


def _version(wanted: bool) -> None:  # noqa: FBT001
    if wanted:
        from importlib.metadata import version

        typer.echo(f"tacit {version('tacit-dp')}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and stop."
    ),
) -> None:
    pass


@functools.cache
def _command() -> Callable[[], object]:
    """The command with all its options: built once, which takes longer than many a command."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the command; a `TacitError` becomes one sentence and exit code 2.

    Anything unforeseen is reported by its type alone, since its text could quote data;
    TACIT_DEBUG=1 shows it in full.
    """
    keep_to_one_thread()
    try:
        _command()()
    except TacitError as error:
        _fail(_with_options(str(error)), 2)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except Exception as error:
        if os.environ.get("TACIT_DEBUG"):
            raise
        _fail(
            f"unexpected {type(error).__name__}: please report it; "
            "TACIT_DEBUG=1 shows where, on the holder's own screen",
            1,
        )


def _with_options(sentence: str) -> str:
    """What a sentence calls by its name in Python, as it is written here."""
    for argument in ("again", "new_dataset"):
        sentence = sentence.replace(f"`{argument}`", f"`--{argument.replace('_', '-')}`")
    return sentence


def _fail(sentence: str, code: int) -> None:
    typer.echo(f"tacit: {sentence}", err=True)
    sys.exit(code)
