"""Ask: put a question to every node until enough have answered, or the time is up.

A site gives the same answer to the same question however often it is asked, so whoever has not
answered is simply asked again: a node that waits for its data officer, was restarted while it
worked, or whose answer was lost. What a node sends is checked before it counts, and a node that
sends something wrong is left out with a reason; the others go on.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, TypeVar

from flwr.app import Message, MessageType, RecordDict
from flwr.serverapp import Grid

from tacit.errors import TacitError
from tacit.federation.wire import Answer, Reason, read_answer

Document = TypeVar("Document")
State = Literal["released", "refused", "rejected", "waiting", "silent"]
FINAL = {"released", "refused", "rejected"}
PASSING = {Reason.SITE, Reason.LEDGER, Reason.CROWDED}
"""Reasons that may pass while we wait: such a site is asked again."""


@dataclass(frozen=True)
class Patience:
    """Seconds to wait in all, until a node is asked again, and between looks for answers."""

    deadline: float
    poll: float = 30.0
    pause: float = 1.0


@dataclass(frozen=True)
class Question(Generic[Document]):
    """What a node is asked, and how its document is read.

    Asking ends when `wanted` nodes have answered or refused. `request` gives None for a node that
    is not asked; `accept` raises a `TacitError` for a document that does not count.
    """

    request: Callable[[int], RecordDict | None]
    accept: Callable[[int, str], Document]
    wanted: int
    patience: Patience


@dataclass(frozen=True)
class Standing(Generic[Document]):
    """Where one node stands: its state, the reason for it, and what it gave."""

    node: int
    state: State = "silent"
    reason: str = "no answer yet"
    document: Document | None = None


@dataclass
class _Round(Generic[Document]):
    """Where each node stands, the messages under way, and when each node may be asked again."""

    standings: dict[int, Standing[Document]] = field(default_factory=dict)
    under_way: dict[str, int] = field(default_factory=dict)
    ask_at: dict[int, float] = field(default_factory=dict)

    def is_over(self, wanted: int) -> bool:
        """Whether enough have answered or refused."""
        return (
            sum(standing.state in {"released", "refused"} for standing in self.standings.values())
            >= wanted
        )


def ask(
    grid: Grid,
    question: Question[Document],
    on_change: Callable[[Standing[Document]], None] = lambda _standing: None,
) -> list[Standing[Document]]:
    """Where every node that was asked stands in the end."""
    state: _Round[Document] = _Round()
    patience = question.patience
    end = time.monotonic() + patience.deadline
    while not state.is_over(question.wanted) and time.monotonic() < end:
        _send(grid, question, state, end)
        for message in _pull(grid, state):
            standing = _read(
                message, state.under_way.pop(message.metadata.reply_to_message_id), question, state
            )
            if standing != state.standings[standing.node]:
                state.standings[standing.node] = standing
                on_change(standing)
        if not state.is_over(question.wanted):
            time.sleep(max(0.0, min(patience.pause, end - time.monotonic())))
    return [
        replace(standing, reason=standing.reason or "published")
        for standing in state.standings.values()
    ]


def _send(grid: Grid, question: Question[Document], state: _Round[Document], end: float) -> None:
    """Ask every node that is not done and was not asked just now."""
    moment = time.monotonic()
    for node in grid.get_node_ids():
        if (content := question.request(node)) is None:
            continue
        standing = state.standings.setdefault(node, Standing(node))
        if standing.state in FINAL or moment < state.ask_at.get(node, 0.0):
            continue
        message = Message(content, node, MessageType.QUERY, ttl=max(1.0, end - moment))
        for sent in grid.push_messages([message]):
            state.under_way[sent] = node
        state.ask_at[node] = moment + question.patience.poll


def _pull(grid: Grid, state: _Round[Document]) -> Iterable[Message]:
    """Answers that have come, each fetched by itself: an unreadable one hides no other."""
    for sent, node in list(state.under_way.items()):
        try:
            yield from grid.pull_messages([sent])
        except Exception:  # noqa: BLE001  (whatever a node sent must not stop the rest)
            del state.under_way[sent]
            state.standings[node] = Standing(node, "rejected", "answer: it cannot be read")


def _read(
    message: Message, node: int, question: Question[Document], state: _Round[Document]
) -> Standing[Document]:
    """Where a node stands after a message from it."""
    before = state.standings[node]
    if before.state in FINAL:
        return before
    if message.has_error():  # the node was away, or died while it worked
        return Standing(node, "silent", "the node did not answer, and is asked again")
    try:
        return _heard(read_answer(message.content), node, question)
    except TacitError as error:
        return Standing(node, "rejected", str(error))
    except Exception as error:  # noqa: BLE001  (nor may an answer that breaks its reader)
        return Standing(node, "rejected", f"answer: it cannot be read ({type(error).__name__})")


def _heard(answer: Answer, node: int, question: Question[Document]) -> Standing[Document]:
    if answer.state == "waiting" or answer.reason in PASSING:
        return Standing(node, "waiting", answer.reason.value)
    if answer.state == "refused":
        return Standing(node, "refused", answer.reason.value)
    return Standing(node, "released", "", question.accept(node, answer.release))
