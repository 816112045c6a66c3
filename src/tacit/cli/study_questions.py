"""`tacit study new` without options: the same file, question by question."""

from collections.abc import Callable

import typer

from tacit.cli.study_template import check_column, check_response
from tacit.errors import StudyError


def ask_columns() -> tuple[str, list[str]]:
    """The response and the features, as the command line's options would describe them."""
    typer.echo(
        "A study says which columns are used and what values they may have. Both are public\n"
        "knowledge: what is usual for everybody, never what is in somebody's table.\n"
    )
    response = _asked("What is to be explained, and its range, as days:0..30", check_response)
    columns: list[str] = []
    typer.echo("\nBy what? Each as age:18..100 or sex:female|male; nothing when there is no more.")
    while text := typer.prompt(f"Column {len(columns) + 1}", default="", show_default=False):
        try:
            check_column(text)
        except StudyError as error:
            typer.echo(str(error))
        else:
            columns.append(text)
    return response, columns


def ask_budget(epsilon: float, delta: float) -> tuple[float, float]:
    """Epsilon and delta, with what is usual as the answer that is offered."""
    typer.echo("\nHow much may be told of one row: epsilon, from 0.1 (little) to 3 (much).")
    chosen = typer.prompt("epsilon", default=epsilon, type=float)
    typer.echo("And the chance that this is exceeded: well below one over the number of persons.")
    return chosen, typer.prompt("delta", default=delta, type=float)


def ask_rows() -> list[int]:
    """How many rows each holder will have, or nothing where that is not known."""
    typer.echo(
        "\nAbout how many rows will each holder have? Where that is known, several visits may\n"
        "correct a first answer within the same epsilon. As 5000, or 5000 8000 for two holders;\n"
        "nothing where it is not known."
    )
    while True:
        words = str(typer.prompt("Rows", default="", show_default=False)).split()
        if all(word.isascii() and word.isdigit() and int(word) > 0 for word in words):
            return [int(word) for word in words]
        typer.echo("whole numbers without a comma, one for each holder, as 5000 8000")


def _asked(question: str, check: Callable[[str], object]) -> str:
    while True:
        text: str = typer.prompt(question)
        try:
            check(text)
        except StudyError as error:
            typer.echo(str(error))
        else:
            return text
