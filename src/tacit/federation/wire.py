"""What travels: a request holds a study, an answer a release or one of a fixed set of reasons.

A reason is chosen from a list that was written before there was data, so that no refusal can carry
any. Reading is strict: a message with a field missing, extra, too long or of another type is
refused.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import version
from typing import Literal

from tacit.errors import FederationError
from tacit.release.texts import MOST_BYTES

try:
    from flwr.app import ConfigRecord, RecordDict
except ModuleNotFoundError:  # pragma: no cover
    raise FederationError("a federation needs Flower: pip install 'tacit-dp[flower]'") from None

VERSION = 1
MOST_STUDY_BYTES = 2**20
"""Longest study that a site reads."""

State = Literal["released", "waiting", "refused"]


class Reason(StrEnum):
    """Every reason a site may give; the detail stays in the site's own log."""

    NONE = ""
    UNREADABLE = "request: it is not a study that this site can read"
    STUDY = "policy: the study is not one that this site takes part in"
    COLUMNS = "policy: the study asks for a column that this site does not offer"
    EPSILON = "policy: epsilon above the site's limit"
    DELTA = "policy: delta above the site's limit"
    COUNT = (
        "policy: this site asks for a least number of rows, and the study keeps that number private"
    )
    PEERS = "policy: the study's keys of holders are not those that this site knows"
    ROWS = "policy: fewer rows than this site publishes about"
    WORKING = "at work on it"
    WAITING = "waiting for approval"
    CROWDED = "waiting for approval: too many requests wait already"
    DECLINED = "refused by the site's data officer"
    BUDGET = "ledger: what is left of the budget does not cover the study"
    LEDGER = "ledger: it does not admit this charge"
    TABLE = "the table does not fit the study"
    SUM = "secure sum: what the server sent does not fit the study, or what was sent before"
    SITE = "site: its own set-up needs attention"


@dataclass(frozen=True)
class Answer:
    """What a site says to a study.

    `release` is a release's text, or a round's document in a secure sum, and else empty.
    """

    state: State
    reason: Reason = Reason.NONE
    release: str = ""


def request_of(study: str) -> RecordDict:
    """A study's text as a request."""
    return RecordDict({"request": ConfigRecord({"version": VERSION, "study": study})})


def read_request(content: RecordDict) -> str:
    """The text of the study in a request."""
    fields = _fields(content, "request", {"version": int, "study": str})
    study = str(fields["study"])
    if len(study.encode(errors="replace")) > MOST_STUDY_BYTES:
        raise FederationError(f"a request's study is at most {MOST_STUDY_BYTES // 2**20} MB long")
    return study


@dataclass(frozen=True)
class Visit:
    """A later visit of a study: its text, and the question that is to be answered (JSON)."""

    study: str
    question: str


def visit_request(visit: Visit) -> RecordDict:
    """A later visit's request."""
    return RecordDict({"visit": ConfigRecord({"version": VERSION, **vars(visit)})})


def read_visit(content: RecordDict) -> Visit:
    """The visit that a request asks for."""
    fields = _fields(content, "visit", {"version": int, "study": str, "question": str})
    study = str(fields["study"])
    question = str(fields["question"])
    if len(study.encode(errors="replace")) > MOST_STUDY_BYTES:
        raise FederationError(f"visit: a study is at most {MOST_STUDY_BYTES // 2**20} MB long")
    if len(question.encode(errors="replace")) > MOST_BYTES:
        raise FederationError(f"visit: a question is at most {MOST_BYTES // 2**20} MB long")
    return Visit(study=study, question=question)


Round = Literal["keys", "shares", "masked", "agree", "unmask"]
ROUNDS: tuple[Round, ...] = ("keys", "shares", "masked", "agree", "unmask")


@dataclass(frozen=True)
class Step:
    """One round of a secure sum: study, session, and what the others said before (JSON).

    In a later visit of several also its question (JSON), and the session of the first visit.
    """

    study: str
    session: str
    round: Round
    payload: str
    question: str = ""
    opening: str = ""


def step_request(step: Step) -> RecordDict:
    """A round's request to one holder."""
    fields = {name: text for name, text in vars(step).items() if name not in _LATER or text}
    return RecordDict({"step": ConfigRecord({"version": VERSION, **fields})})


_LATER = ("question", "opening")
"""Fields that a step of a later visit has, and no other."""


def read_step(content: RecordDict) -> Step:
    """The round that a request asks for."""
    types = {"version": int, "study": str, "session": str, "round": str, "payload": str}
    record = content.get("step")
    if isinstance(record, ConfigRecord) and set(_LATER) & set(record):
        types |= dict.fromkeys(_LATER, str)
    fields = _fields(content, "step", types)
    study = str(fields["study"])
    question = str(fields.get("question", ""))
    opening = str(fields.get("opening", ""))
    session = str(fields["session"])
    name = str(fields["round"])
    payload = str(fields["payload"])
    if not re.fullmatch("[0-9a-f]{32}", session) or name not in ROUNDS:
        raise FederationError("step: its session or round is not one that can be")
    if len(study.encode(errors="replace")) > MOST_STUDY_BYTES:
        raise FederationError(f"step: a study is at most {MOST_STUDY_BYTES // 2**20} MB long")
    if len(payload) > MOST_BYTES:
        raise FederationError(f"step: a payload is at most {MOST_BYTES // 2**20} MB long")
    if len(question.encode(errors="replace")) > MOST_BYTES:
        raise FederationError(f"step: a question is at most {MOST_BYTES // 2**20} MB long")
    if bool(question) != (re.fullmatch("[0-9a-f]{32}", opening) is not None):
        raise FederationError("step: a question goes with the session of the first visit")
    return Step(
        study=study,
        session=session,
        round=name,
        payload=payload,
        question=question,
        opening=opening,
    )


def record_of(answer: Answer) -> RecordDict:
    """An answer as a message's content."""
    record = ConfigRecord(
        {
            "version": VERSION,
            "state": answer.state,
            "reason": answer.reason.value,
            "release": answer.release,
        }
    )
    return RecordDict({"answer": record, "site": ConfigRecord({"tacit": version("tacit-dp")})})


def read_version(content: RecordDict) -> str | None:
    """The Tacit that answered, where it says so."""
    if "site" not in content:
        return None
    told = str(_fields(content, "site", {"tacit": str}, beside={"answer"})["tacit"])
    return told if re.fullmatch(r"[0-9a-z.+-]{1,40}", told) else None


def read_answer(content: RecordDict) -> Answer:
    """The answer in a message's content; whether its release is one, the caller must see."""
    types = {"version": int, "state": str, "reason": str, "release": str}
    fields = _fields(content, "answer", types, beside={"site"})
    state = fields["state"]
    release = str(fields["release"])
    if len(release.encode(errors="replace")) > MOST_BYTES:
        raise FederationError(f"answer: a release is at most {MOST_BYTES // 2**20} MB long")
    if state not in {"released", "waiting", "refused"} or fields["reason"] not in set(Reason):
        raise FederationError("answer: its state or reason is not one of the agreed ones")
    reason = Reason(str(fields["reason"]))
    if (state == "released") != (release != "") or (state == "released") != (reason == Reason.NONE):
        raise FederationError("answer: it must hold either a release or a reason")
    return Answer(state, reason, release)


def _fields(
    content: RecordDict, name: str, types: dict[str, type], beside: Collection[str] = ()
) -> dict[str, object]:
    """The record of a message, if it has just the fields it should; what else may lie `beside`."""
    record = content.get(name)
    alone = set(content) - set(beside) == {name}
    if not alone or not isinstance(record, ConfigRecord) or set(record) != set(types):
        raise FederationError(f"{name}: it must be one record with the fields {', '.join(types)}")
    fields: dict[str, object] = dict(record)
    if any(type(fields[field]) is not wanted for field, wanted in types.items()):
        raise FederationError(f"{name}: a field is of the wrong type")
    if fields.get("version", VERSION) != VERSION:
        raise FederationError(f"{name}: version must be {VERSION}, or one side runs another Tacit")
    return fields
