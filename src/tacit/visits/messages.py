"""Messages: all holders' latest answers, read and checked before a question is made of them."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from tacit.errors import ReleaseError
from tacit.release.document import read_text
from tacit.release.places import PlacesRelease
from tacit.release.question import Question
from tacit.release.statistics import Release
from tacit.release.texts import parse, unzipped
from tacit.study import Study
from tacit.visits.ask import next_question

Message = PlacesRelease | Release

ALIKE = 1e-6
"""Relative difference up to which a question made again is the same: machines round differently."""


def load_message(path: str | Path) -> Message:
    """A holder's message of any visit, compressed by gzip or not."""
    text = read_text(path)
    try:
        fields = parse(unzipped(text))
        if fields.get("format") == "tacit-places":
            return PlacesRelease.from_fields(fields)
        return Release.from_fields(fields)
    except ReleaseError as error:
        raise type(error)(f"{path}: {error}") from None


def ask(messages: Iterable[Message], *, allow_simulated: bool = False) -> Question:
    """The next question, from every holder's latest message."""
    given = list(messages)
    study = check_messages(given, allow_simulated=allow_simulated)
    return next_question(study, given)


def check_messages(messages: Sequence[Message], *, allow_simulated: bool) -> Study:
    """Refuse messages that do not belong together; their study."""
    if not messages:
        raise ReleaseError("give every holder's latest release of a study of several visits")
    study = messages[0].study
    if study.visit_count == 1:
        raise ReleaseError("the study has one visit: there is nothing more to ask")
    holders = [message.holder for message in messages]
    if len(set(holders)) < len(holders):
        raise ReleaseError("a holder is there twice: give each holder's latest release once")
    for message in messages:
        if message.study_hash != messages[0].study_hash:
            raise ReleaseError(
                f"{message.holder!r} and {messages[0].holder!r} published for different studies: "
                "all must use the same study file"
            )
        if message.simulated and not allow_simulated:
            raise ReleaseError(
                f"the release of {message.holder!r} is simulated and protects nobody: "
                "allow it with allow_simulated=True"
            )
    return study


def refuse_other(question: Question, messages: Sequence[Message]) -> None:
    """Refuse a question that these messages do not lead to."""
    made = ask(messages, allow_simulated=True)
    named = (question.study_hash, question.visit, question.after)
    if named != (made.study_hash, made.visit, made.after):
        raise ReleaseError(
            "the question was not made of these releases: it names others, or another visit"
        )
    pairs = (
        (question.matrix, made.matrix),
        (question.start, made.start),
        (np.array([question.radius, question.bound]), np.array([made.radius, made.bound])),
    )
    for asked, again in pairs:
        if not np.allclose(asked, again, rtol=ALIKE, atol=ALIKE * float(np.abs(again).max())):
            raise ReleaseError("these releases lead to another question: this one was changed")
