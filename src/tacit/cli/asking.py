"""`tacit next`: from all holders' latest releases to what they are asked next."""

import os
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.options import AllowSimulated
from tacit.errors import ReleaseError


def ask(
    releases: Annotated[
        list[Path],
        typer.Argument(help="Every holder's latest release of a study of several visits."),
    ],
    out: Annotated[Path | None, typer.Option(help="File for the question.")] = None,
    verify: Annotated[
        Path | None,
        typer.Option(help="Instead: whether this question is the one that the releases lead to."),
    ] = None,
    *,
    allow_simulated: AllowSimulated = False,
) -> None:
    """Make the next question of a study of several visits, from releases that are public already.

    It holds nothing but what follows from them: any holder who has them can make it again, or
    check one with --verify. Holders answer it with `tacit publish --question`.

    Example: `tacit next north.json south.json --out question2.json`
    """
    from tacit.analyst.plausibility import check_plausible
    from tacit.release.question import Question
    from tacit.visits import messages as talk

    if (out is None) == (verify is None):
        raise ReleaseError("give either --out, the file for the question, or --verify")
    messages = [talk.load_message(path) for path in releases]
    check_plausible(messages)
    if verify is not None:
        talk.refuse_other(Question.load(verify), messages)
        typer.echo(f"{verify}: just what these releases lead to, and nothing else")
        return
    if out is None:  # pragma: no cover
        raise AssertionError
    if os.path.lexists(out):
        raise ReleaseError(f"{str(out)!r} exists already: choose another --out, or remove it")
    question = talk.ask(messages, allow_simulated=allow_simulated)
    question.save(out)
    study = messages[0].study
    typer.echo(
        f"{out}: the question of visit {question.visit} of {study.visit_count}, made of "
        f"{len(messages)} releases and of nothing else"
    )
    typer.echo(
        "every holder answers it with `tacit publish ... --question`, at no further cost: "
        "the first visit paid for all"
    )
