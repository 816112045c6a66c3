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
from tacit.federation.clock import CLOCK_LIMIT
from tacit.federation.server.fetch import Fetcher
from tacit.federation.wire import Answer, Reason, read_answer, read_version

Document = TypeVar("Document")
State = Literal["released", "refused", "rejected", "waiting", "silent"]
FINAL = {"released", "refused", "rejected"}
PASSING = {Reason.SITE, Reason.LEDGER, Reason.CROWDED}
"""Reasons that may pass while we wait: such a site is asked again."""
LONGEST_POLL = 30.0
"""Seconds after which a node that says nothing is asked again, at most."""
QUIET = 45.0
"""Seconds of silence after which it is said of a node that is connected."""
LONGEST_PAUSE = 2.0
"""Seconds between two looks for answers while none come, at most."""
AWAY = "its SuperNode is not connected"
DEAF = (
    "it is connected and has said nothing for a while: `tacit federate status` at the site says why"
)


@dataclass(frozen=True)
class Patience:
    """Seconds to wait in all, until a node is asked again, and between looks for answers.

    While nothing comes the looks become rarer, since people may take days. With `silence`, who has
    said nothing for so long is lost, and not waited for. A site at work on a large table says so
    every few seconds.
    """

    deadline: float
    poll: float = 10.0
    pause: float = 0.2
    silence: float | None = None


@dataclass(frozen=True)
class Question(Generic[Document]):
    """What a node is asked, and how its document is read.

    Asking ends when `wanted` nodes have answered or refused, and, where silence counts, when
    `least` have and the others are lost, or no longer can. `request` gives None for a node that
    is not asked; `accept` raises a `TacitError` for a document that does not count. Of `expected`
    nodes it is said that they are not connected.
    """

    request: Callable[[int], RecordDict | None]
    accept: Callable[[int, str], Document]
    wanted: int
    patience: Patience
    least: int = 1
    expected: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Standing(Generic[Document]):
    """Where one node stands: its state, the reason for it, and what it gave.

    `ahead` is how far its clock was ahead when it answered, and `version` its Tacit.
    """

    node: int
    state: State = "silent"
    reason: str = "no answer yet"
    document: Document | None = None
    ahead: float | None = field(default=None, compare=False)
    version: str | None = field(default=None, compare=False)


@dataclass
class _Round(Generic[Document]):
    """Where each node stands, what it was sent and when, when it was heard and may be asked."""

    standings: dict[int, Standing[Document]] = field(default_factory=dict)
    under_way: dict[int, dict[str, float]] = field(default_factory=dict)
    ask_at: dict[int, float] = field(default_factory=dict)
    spacing: dict[int, float] = field(default_factory=dict)
    heard: dict[int, float] = field(default_factory=dict)
    away: set[int] = field(default_factory=set)

    def is_over(self, question: Question[Document]) -> bool:
        """Whether enough have answered or refused, or no longer can."""
        states = [standing.state for standing in self.standings.values()]
        if states.count("released") + states.count("refused") >= question.wanted:
            return True
        if question.patience.silence is None:
            return False
        open_nodes = [node for node, standing in self.standings.items() if self._may_come(standing)]
        lost = [node for node in open_nodes if self._is_lost(node, question.patience.silence)]
        coming = states.count("released") + len(open_nodes) - len(lost)
        if question.expected and coming < question.least:
            return True
        return len(lost) == len(open_nodes) and states.count("released") >= question.least

    def _may_come(self, standing: Standing[Document]) -> bool:
        return standing.state not in FINAL

    def _is_lost(self, node: int, silence: float) -> bool:
        return time.monotonic() - self.heard[node] > silence


def ask(
    grid: Grid,
    question: Question[Document],
    on_change: Callable[[Standing[Document]], None] = lambda _standing: None,
) -> list[Standing[Document]]:
    """Where every node that was asked stands in the end."""
    state: _Round[Document] = _Round()
    fetcher = Fetcher(grid)
    patience = question.patience
    end = time.monotonic() + patience.deadline
    pause = patience.pause

    def change(standing: Standing[Document]) -> None:
        if standing != state.standings.get(standing.node):
            state.standings[standing.node] = standing
            on_change(standing)

    while True:
        _send(grid, question, state, end)
        answers = list(_pull(fetcher, state))
        for node, message in answers:
            change(_read(message, node, question, state))
        for node in list(state.standings):
            change(_listened(state, node))
        left = end - time.monotonic()
        if state.is_over(question) or left <= 0:
            break
        pause = patience.pause if answers else min(1.2 * pause, LONGEST_PAUSE)
        time.sleep(min(pause, left))
    return [
        replace(standing, reason=standing.reason or "published")
        for standing in state.standings.values()
    ]


def _send(grid: Grid, question: Question[Document], state: _Round[Document], end: float) -> None:
    """Ask every node that is not done and was not asked just now."""
    moment = time.monotonic()
    connected = set(grid.get_node_ids())
    for node in sorted(connected | question.expected):
        if (content := question.request(node)) is None:
            continue
        standing = state.standings.setdefault(node, Standing(node))
        state.heard.setdefault(node, moment)
        if node not in connected:
            state.away.add(node)
            continue
        if node in state.away:  # it is back: what it was asked before is lost
            state.away.discard(node)
            state.heard[node] = moment
            state.ask_at.pop(node, None)
            state.spacing.pop(node, None)
            standing = Standing(node) if standing.reason == AWAY else standing
            state.standings[node] = standing
        if standing.state in FINAL or moment < state.ask_at.get(node, 0.0):
            continue
        # A site's clock may be ahead, and finds the message in time all the same.
        seconds = max(1.0, end - moment) + CLOCK_LIMIT
        message = Message(content, node, MessageType.QUERY, ttl=seconds)
        asked = state.under_way.setdefault(node, {})
        asked |= dict.fromkeys(grid.push_messages([message]), time.time())
        _space(question.patience, state, node, moment)


def _space(patience: Patience, state: _Round[Document], node: int, moment: float) -> None:
    """When a node is asked again: later each time, so that questions do not pile up at a slow one.

    Where silence counts it is asked steadily, since it must be heard in time.
    """
    spacing = state.spacing.get(node, patience.poll)
    state.ask_at[node] = moment + spacing
    if patience.silence is None:
        state.spacing[node] = min(2 * spacing, max(patience.poll, LONGEST_POLL))


def _pull(fetcher: Fetcher, state: _Round[Document]) -> Iterable[tuple[int, Message | None]]:
    """Answers that have come, by node, and None for one that cannot be read: it hides no other."""
    open_nodes = {
        node: list(sent)
        for node, sent in state.under_way.items()
        if sent and state.standings[node].state not in FINAL
    }
    for fetching in fetcher.fetched(open_nodes):
        for message in [None] if fetching.failed else fetching.messages:
            yield fetching.node, message


def _read(
    message: Message | None, node: int, question: Question[Document], state: _Round[Document]
) -> Standing[Document]:
    """Where a node stands after a message from it."""
    before = state.standings[node]
    if message is None:
        return Standing(node, "rejected", "answer: it cannot be read")
    asked_at = state.under_way[node].pop(message.metadata.reply_to_message_id, None)
    if before.state in FINAL or asked_at is None:
        return before
    if message.has_error():  # the node was away, or died while it worked
        return Standing(node, "silent", "the node did not answer, and is asked again")
    moment = time.monotonic()
    state.heard[node] = moment
    try:
        standing = _heard(read_answer(message.content), node, question)
        version = read_version(message.content)
    except TacitError as error:
        return Standing(node, "rejected", str(error))
    except Exception as error:  # noqa: BLE001  (nor may an answer that breaks its reader)
        return Standing(node, "rejected", f"answer: it cannot be read ({type(error).__name__})")
    if standing.reason == Reason.WORKING.value:
        state.spacing.pop(node, None)
        state.ask_at[node] = min(state.ask_at[node], moment + question.patience.poll)
    ahead = _ahead(message.metadata.created_at, asked_at, time.time())
    return replace(standing, ahead=ahead, version=version)


def _ahead(created: float, asked: float, read: float) -> float:
    """How far a node's clock must be ahead of ours at least, that its answer came in between."""
    return created - min(max(created, asked), read)


def _heard(answer: Answer, node: int, question: Question[Document]) -> Standing[Document]:
    if answer.state == "waiting" or answer.reason in PASSING:
        return Standing(node, "waiting", answer.reason.value)
    if answer.state == "refused":
        return Standing(node, "refused", answer.reason.value)
    return Standing(node, "released", "", question.accept(node, answer.release))


def _listened(state: _Round[Document], node: int) -> Standing[Document]:
    """Where a node stands that may have said nothing for a while."""
    standing = state.standings[node]
    if standing.state in FINAL:
        return standing
    if node in state.away:
        return replace(standing, state="silent", reason=AWAY)
    if time.monotonic() - state.heard[node] > QUIET:
        return replace(standing, state="silent", reason=DEAF)
    return standing
