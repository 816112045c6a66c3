"""tacit.federation.secure_sum.server: sums that finish early, whoever is lost, and what that costs.

Two of five holders are lost in each round, and come back or not.
"""

import time

import pytest
from sites import charges
from sums import NAMES, sites, summing

from tacit.errors import FederationError
from tacit.federation.client.app import app
from tacit.federation.local import LocalGrid, Node
from tacit.federation.secure_sum.server import Sum
from tacit.federation.server.ask import Patience
from tacit.federation.wire import ROUNDS
from tacit.holder.ledger import Ledger
from tacit.visits.sitting import Sitting

__all__ = ["sites"]
SILENCE = 0.6
PATIENCE = Patience(deadline=60.0, poll=0.1, pause=0.01, silence=SILENCE)
LOST = (2, 4)


class Outage(LocalGrid):
    """Two nodes are gone when a round begins, with its question unheard, and perhaps come back.

    They are back after so many seconds, or with the first message of which `back_with` holds.
    """

    def __init__(self, sites, round_, back_after=None, back_with=lambda _step: False):
        nodes = {k: Node(app, {"policy": str(path)}) for k, path in enumerate(sites.values(), 1)}
        super().__init__(nodes)
        self._round = round_
        self._back_after = back_after
        self._back_with = back_with
        self._is_back = False
        self._begun = None
        self.asked = set()

    def _is_gone(self, node):
        if node not in LOST or self._begun is None or self._is_back:
            return False
        return self._back_after is None or time.monotonic() - self._begun <= self._back_after

    def get_node_ids(self):
        return [node for node in super().get_node_ids() if not self._is_gone(node)]

    def push_messages(self, messages):
        messages = list(messages)
        for message in messages:
            step = message.content["step"]
            name = step["round"]
            self._is_back |= self._back_with(step)
            self.asked.add((message.metadata.dst_node_id, name))
            if name == self._round and self._begun is None:
                self._begun = time.monotonic()
        kept = [message for message in messages if not self._is_gone(message.metadata.dst_node_id)]
        return super().push_messages(kept)


def paid(sites):
    return {name for name, path in sites.items() if charges(path)}


@pytest.mark.parametrize("round_", ROUNDS)
def test_without_two_of_five_there_is_a_sum_where_three_are_enough(sites, round_):
    under_way = Sum(Outage(sites, round_), Sitting(summing(sites, least=3, colluding=0)), PATIENCE)
    begun = time.monotonic()
    release = under_way.run()
    assert time.monotonic() - begun < 30
    early = round_ in {"keys", "shares", "masked"}
    assert release.survivors == (3 if early else 5)
    assert paid(sites) == ({"ash", "cedar", "fir"} if early else set(NAMES))


def test_who_did_not_agree_is_not_waited_for_again(sites):
    """It could not unmask: rounds come one after the other."""
    grid = Outage(sites, "agree", back_with=lambda step: step["round"] == "unmask")
    Sum(grid, Sitting(summing(sites, least=3, colluding=0)), PATIENCE).run()
    assert {node for node, name in grid.asked if name == "unmask"} == {1, 3, 5}


@pytest.mark.parametrize("round_", ROUNDS)
def test_who_comes_back_in_time_goes_on_where_it_was(sites, round_):
    patient = Patience(deadline=60.0, poll=0.1, pause=0.01, silence=30.0)
    under_way = Sum(Outage(sites, round_, 0.2), Sitting(summing(sites)), patient)
    assert under_way.run().survivors == 5
    assert under_way.missing == {}
    assert [len(charges(path)) for path in sites.values()] == [1] * 5


def test_where_four_are_needed_it_is_said_who_was_missing_and_who_paid(sites):
    under_way = Sum(
        Outage(sites, "masked"), Sitting(summing(sites, least=4, colluding=0)), PATIENCE
    )
    begun = time.monotonic()
    with pytest.raises(FederationError, match="so there is no sum") as failure:
        under_way.run()
    assert time.monotonic() - begun < 30
    assert set(under_way.missing) == {"birch", "elm"}
    assert set(under_way.paid) == paid(sites)
    assert "it is charged at ash" in str(failure.value)


def test_an_attempt_in_which_no_vector_was_asked_for_is_free_and_begun_anew(sites):
    """The shares never come together; the next session, with everybody back, gives the sum."""
    grid = Outage(sites, "shares", back_with=lambda step: step["session"] != first)
    under_way = Sum(grid, Sitting(summing(sites, least=4, colluding=0)), PATIENCE)
    first = under_way.session
    assert under_way.run().survivors == 5
    assert under_way.session != first
    assert [len(charges(path)) for path in sites.values()] == [1] * 5


def test_who_never_comes_costs_nobody_anything(sites):
    patience = Patience(deadline=2.0, poll=0.1, pause=0.01, silence=SILENCE)
    under_way = Sum(
        Outage(sites, "shares"), Sitting(summing(sites, least=4, colluding=0)), patience
    )
    with pytest.raises(FederationError, match="nobody has paid for it"):
        under_way.run()
    assert paid(sites) == set()


def lost(name, sites, monkeypatch, step):
    """A grid on which a holder's masked vector is lost: after its charge, or once it is stored."""
    ledger = sites[name].with_name("ledger.db")
    record = Ledger.record

    def dying(self, number, release):
        if self.path == ledger:
            raise OSError("killed")
        record(self, number, release)

    if step == "at_charge":
        monkeypatch.setattr(Ledger, "record", dying)
    number = 1 + NAMES.index(name)
    masked = []

    def on_reply(node, reply):
        if node == number and charges(sites[name]):
            masked.append(reply)
            return None
        return reply

    grid = LocalGrid(
        {k: Node(app, {"policy": str(path)}) for k, path in enumerate(sites.values(), 1)}, on_reply
    )
    return grid, masked


@pytest.mark.parametrize("step", ["at_charge", "after_record"])
def test_who_dies_between_charge_and_sending_stays_charged_for_that_session(
    sites, monkeypatch, step
):
    """It cannot know that nothing left; the next session is charged by itself (docs/deploy.md)."""
    study = summing(sites, least=3, colluding=0)
    grid, masked = lost("birch", sites, monkeypatch, step)
    under_way = Sum(grid, Sitting(study), PATIENCE)
    assert under_way.run().survivors == 4
    assert masked
    assert "birch" in under_way.missing
    assert [len(charges(path)) for path in sites.values()] == [1] * 5
    monkeypatch.undo()
    again = Sum(LocalGrid(grid.nodes), Sitting(study), PATIENCE)
    assert again.run().survivors == 5
    assert [len(charges(path)) for path in sites.values()] == [2] * 5


@pytest.mark.parametrize("step", ["at_charge", "after_record"])
def test_who_dies_after_its_charge_and_is_back_in_time_pays_no_more(sites, monkeypatch, step):
    """It finishes the charge, or sends the vector that it had recorded."""
    study = summing(sites, least=3, colluding=0)
    patient = Patience(deadline=60.0, poll=0.1, pause=0.01, silence=30.0)
    grid, masked = lost("birch", sites, monkeypatch, step)
    dropping = grid._on_reply

    def once(node, reply):
        if masked:
            monkeypatch.undo()
            return reply
        return dropping(node, reply)

    grid._on_reply = once
    assert Sum(grid, Sitting(study), patient).run().survivors == 5
    assert masked
    assert [len(charges(path)) for path in sites.values()] == [1] * 5
