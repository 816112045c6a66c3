"""Writes docs/cli.md, the reference of the command line, from the very texts that `--help` shows.

python docs/commands.py
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from tacit.cli import app

PAGE = Path(__file__).with_name("cli.md")
HEAD = """# Commands

Written by `docs/commands.py` from the texts of `--help`; a test compares. Every command takes
`--help` and `--quiet`, with which it says nothing but errors and the JSON that was asked for. Where
a command has `--json`, it prints one JSON document instead of words.
[Exit codes](files.md#exit-codes). Completion: `tacit --install-completion`.
"""
SHARED = {"quiet", "help"}


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - typer's commands have no public class
    """Every command with its whole name, groups opened."""
    if hasattr(command, "commands"):
        for inner in command.commands.values():
            yield from commands(inner, f"{name} {inner.name}")
    else:
        yield name, command


def section(name: str, command: Any) -> str:  # noqa: ANN401
    """A command's help and its parameters as a table."""
    lines = [f"## `{name}`", "", (command.help or "").strip(), ""]
    rows = [row(parameter) for parameter in command.params if parameter.name not in SHARED]
    if rows:
        lines += ["| | meaning |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def row(parameter: Any) -> str:  # noqa: ANN401
    """One argument or option."""
    if parameter.param_type_name == "option":
        needed = " (needed)" if parameter.required else ""
        names = (
            ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts)) + needed
        )
        default = f" Default: `{parameter.default}`." if _is_told(parameter) else ""
    else:
        names, default = f"`{(parameter.human_readable_name or '').upper()}`", ""
    text = " ".join((getattr(parameter, "help", None) or "").split()).replace("|", "\\|")
    return f"| {names} | {text}{default} |"


def _is_told(option: Any) -> bool:  # noqa: ANN401
    return not (option.is_flag or option.default in (None, (), []) or callable(option.default))


def page() -> str:
    """The whole page."""
    return (
        "\n".join(
            [
                HEAD,
                *(section(name, command) for name, command in commands(get_command(app), "tacit")),
            ]
        ).rstrip()
        + "\n"
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
