"""Gather: ask every node for a study until enough have answered, or the time is up.

A site answers the same study with the same release however often it is asked, so whoever has not answered is simply asked
again: a node that waits for its data officer, was restarted while it worked, or whose answer was lost. What a node sends is
checked before it counts, and a node that sends something wrong is left out with a reason; the others go on.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from flwr.app import Message, MessageType
from flwr.serverapp import Grid

from tacit.analyst.collection import check_together
from tacit.errors import FederationError, TacitError
from tacit.federation.wire import Answer, Reason, read_answer, request_of
from tacit.release import Release
from tacit.study import Study
from tacit.study_file import study_toml

State = Literal["released", "refused", "rejected", "waiting", "silent"]
FINAL = {"released", "refused", "rejected"}
PASSING = {Reason.SITE, Reason.LEDGER, Reason.CROWDED}
"""Reasons that may pass while we wait: such a site is asked again."""


@dataclass(frozen=True)
class Terms:
    """What is asked for, of whom, and how long we wait; times in seconds.

    `least` holders must publish. Asking ends before the deadline once `expected` holders have published or refused: by default
    as many as there are `keys`, or `least`. With `keys`, a public key for each holder's name, a release counts only if its
    holder is among them and signed it.
    """

    study: Study
    deadline: float
    least: int = 1
    expected: int | None = None
    poll: float = 30.0
    pause: float = 1.0
    keys: dict[str, str] | None = None
    allow_simulated: bool = False

    @property
    def wanted(self) -> int:
        """How many who published or refused end the asking."""
        return self.expected or (len(self.keys) if self.keys else self.least)


@dataclass(frozen=True)
class Standing:
    """Where one node stands: its state, the reason for it, and its release."""

    node: int
    state: State = "silent"
    reason: str = "no answer yet"
    release: Release | None = None


@dataclass
class _Round:
    """What goes on: where each node stands, the messages under way, and when each node may be asked again."""

    standings: dict[int, Standing] = field(default_factory=dict)
    under_way: dict[str, int] = field(default_factory=dict)
    ask_at: dict[int, float] = field(default_factory=dict)


def gather(grid: Grid, terms: Terms, on_change: Callable[[Standing], None] = lambda _standing: None) -> list[Standing]:
    """Where every node stands in the end; whether that is `enough`, the caller must ask."""
    state, end = _Round(), time.monotonic() + terms.deadline
    while not _is_over(state, terms) and time.monotonic() < end:
        _ask(grid, terms, state, end)
        for message in _pull(grid, state):
            standing = _read(message, state.under_way.pop(message.metadata.reply_to_message_id), terms, state)
            if standing != state.standings[standing.node]:
                state.standings[standing.node] = standing
                on_change(standing)
        if not _is_over(state, terms):
            time.sleep(max(0.0, min(terms.pause, end - time.monotonic())))
    return [replace(standing, reason=standing.reason or "published") for standing in state.standings.values()]


def _ask(grid: Grid, terms: Terms, state: _Round, end: float) -> None:
    """Send the study to every node that is not done with it and was not asked just now."""
    moment = time.monotonic()
    for node in grid.get_node_ids():
        standing = state.standings.setdefault(node, Standing(node))
        if standing.state in FINAL or moment < state.ask_at.get(node, 0.0):
            continue
        message = Message(request_of(study_toml(terms.study)), node, MessageType.QUERY, ttl=max(1.0, end - moment))
        for sent in grid.push_messages([message]):
            state.under_way[sent] = node
        state.ask_at[node] = moment + terms.poll


def _pull(grid: Grid, state: _Round) -> Iterable[Message]:
    """Answers that have come; each is fetched by itself, so that one that cannot be read does not hide the others."""
    for sent, node in list(state.under_way.items()):
        try:
            yield from grid.pull_messages([sent])
        except Exception:  # noqa: BLE001  (whatever a node sent must not stop the rest)
            del state.under_way[sent]
            state.standings[node] = Standing(node, "rejected", "answer: it cannot be read")


def _read(message: Message, node: int, terms: Terms, state: _Round) -> Standing:
    """Where a node stands after a message from it."""
    before = state.standings[node]
    if before.state in FINAL:
        return before
    if message.has_error():  # the node was away, or died while it worked
        return Standing(node, "silent", "the node did not answer, and is asked again")
    try:
        answer = read_answer(message.content)
        return _heard(answer, node, terms, state)
    except TacitError as error:
        return Standing(node, "rejected", str(error))
    except Exception as error:  # noqa: BLE001  (nor may an answer that breaks its reader)
        return Standing(node, "rejected", f"answer: it cannot be read ({type(error).__name__})")


def _heard(answer: Answer, node: int, terms: Terms, state: _Round) -> Standing:
    if answer.state == "waiting" or answer.reason in PASSING:
        return Standing(node, "waiting", answer.reason.value)
    if answer.state == "refused":
        return Standing(node, "refused", answer.reason.value)
    release = Release.from_json(answer.release)
    _check(release, terms, [held.release for held in state.standings.values() if held.release is not None])
    return Standing(node, "released", "", release)


def _check(release: Release, terms: Terms, held: list[Release]) -> None:
    """Refuse a release that is not of this study, not its holder's, or not fit to be used with the others."""
    if release.study_hash != terms.study.hash:
        message = "release: it is of another study than was asked for"
        raise FederationError(message)
    keys = None if terms.keys is None else [terms.keys.get(release.holder, "")]
    check_together([release], allow_simulated=terms.allow_simulated, trusted_keys=keys)
    check_together([*held, release], allow_simulated=True, trusted_keys=None)


def _is_over(state: _Round, terms: Terms) -> bool:
    states = [standing.state for standing in state.standings.values()]
    return states.count("released") + states.count("refused") >= terms.wanted


def enough(standings: list[Standing], terms: Terms) -> list[Release]:
    """The releases that came; raises where fewer than `least` holders published, and says why."""
    releases = [standing.release for standing in standings if standing.release is not None]
    if len(releases) < terms.least:
        others = "; ".join(f"node {standing.node}: {standing.reason}" for standing in standings if standing.release is None)
        why = others or "no node was there"
        message = f"{len(releases)} of at least {terms.least} holders published in time, so nothing was fitted ({why})"
        raise FederationError(message)
    return releases
