"""tacit.federation.secure_sum.holder before a malicious server: the explorer, and that it can fail.

J holders of whom m must stay and t may collude, with c who do; all faults and tricks.
"""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from adversary import AWAY, FAULTS, Case
from explorer import LARGE, RANDOM, SMALL, exhaust, label
from old_sum import OldHolder
from wander import retried, visited, wander

from tacit.federation.secure_sum.holder import Holder
from tacit.visits.sitting import Sitting

POWER_CUTS = tuple(fault for fault in FAULTS if fault != AWAY)


def assert_kept(case):
    count = exhaust(case)
    assert count.violations == []
    assert count.unmasked > 0, "with everybody honest there is a sum"


@pytest.mark.parametrize("case", SMALL, ids=label)
def test_no_server_unmasks_fewer_shares_than_promised(case):
    assert_kept(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", LARGE, ids=label)
def test_no_server_unmasks_fewer_of_four(case):
    assert_kept(case)


def assert_wanders_well(case, histories):
    walks = [wander(case, seed, 15 * case.holders) for seed in range(histories)]
    assert [reason for reason, _ in walks if reason] == []
    sums = sum(unmasked for _, unmasked in walks)
    assert sums > histories / 10, "histories in which nothing comes out show nothing"


@pytest.mark.parametrize("case", RANDOM, ids=label)
def test_no_random_server_unmasks_fewer_shares_than_promised(case):
    assert_wanders_well(case, 40)


@pytest.mark.slow
@pytest.mark.parametrize("case", RANDOM, ids=label)
def test_no_random_server_in_many_histories(case):
    assert_wanders_well(case, 1000)


def assert_begins_anew_well(case, histories):
    """Sessions that were left open for lack of holders give a server nothing, nor do all together.

    Nobody is charged in a session in which it never came to masking.
    """
    sums = 0
    for seed in range(histories):
        reason, unmasked, memories = retried(case, seed, 5 * case.holders)
        assert reason is None, (seed, reason)
        sums += unmasked
        for memory in memories.values():
            sessions = dict(memory.sessions)
            for session, _ in memory.ledger:
                state = sessions[session]
                assert not any(f'"state":"{early}"' in state for early in ("keyed", "shared"))
    assert sums > histories / 10, "histories in which nothing comes out show nothing"


@pytest.mark.parametrize("case", [Case(5, 3, 0, 0), Case(5, 4, 1, 1)], ids=label)
def test_sums_that_begin_anew_leak_nothing(case):
    assert_begins_anew_well(case, 30)


@pytest.mark.slow
@pytest.mark.parametrize("case", [Case(5, 3, 0, 0), Case(5, 4, 1, 1), Case(6, 4, 1, 1)], ids=label)
def test_many_sums_that_begin_anew_leak_nothing(case):
    assert_begins_anew_well(case, 1000)


VISITED = [
    Case(4, 3, 0, 0, visits=3),
    Case(4, 3, 1, 1, visits=3),
    Case(5, 4, 1, 1, visits=3),
]


def assert_visits_well(case, histories):
    """At each visit one sum of one question, of enough shares, whatever is mixed."""
    walks = [visited(case, seed, 6 * case.holders) for seed in range(histories)]
    assert [reason for reason, _ in walks if reason] == []
    sums = sum(later for _, later in walks)
    assert sums > histories / 4, "histories in which no later visit comes out show nothing"


@pytest.mark.parametrize("case", VISITED, ids=label)
def test_no_server_learns_more_from_several_visits(case):
    assert_visits_well(case, 60)


@pytest.mark.slow
@pytest.mark.parametrize("case", VISITED, ids=label)
def test_no_server_learns_more_from_many_histories_of_visits(case):
    assert_visits_well(case, 1000)


class Unbound(Sitting):
    """A sum whose keys and signatures do not say which visit and question they are for."""

    @property
    def subject(self):
        return self.study.hash


def test_it_finds_that_the_question_is_bound():
    """Where it is not, holders who were told different questions add up."""
    case = Case(4, 3, 0, 0, visits=3, sitting=Unbound)
    reasons = [visited(case, seed, 24)[0] or "" for seed in range(25)]
    assert any(reason.startswith("a sum of answers to different questions") for reason in reasons)


def test_it_finds_that_a_visit_is_answered_once():
    """Where every session of a visit is answered, two sums of one visit come out."""
    case = Case(4, 3, 0, 0, visits=3, once=False)
    reasons = [visited(case, seed, 24)[0] or "" for seed in range(25)]
    assert any(reason.startswith("2 different sums are unmasked") for reason in reasons)


# The explorer finds what was wrong: each of these fails on today's holder.


def found_in(case):
    count = exhaust(case, stop=True)
    return count.violations[0][0] if count.violations else ""


def test_it_finds_that_an_outage_let_a_server_unmask_one_holder():
    """Without a colluder: a table is away for a moment, and its holder is asked with fewer."""
    case = Case(3, 2, 0, 0, OldHolder, faults=(None, AWAY))
    assert found_in(case).startswith("1 honest shares of noise, and 2 were promised")
    assert not found_in(Case(3, 2, 0, 0, OldHolder, faults=(None,)))


def test_it_finds_that_a_power_cut_did_so_too():
    case = Case(3, 2, 0, 0, OldHolder, faults=POWER_CUTS)
    assert found_in(case).startswith("1 honest shares of noise, and 2 were promised")


LOW_ORDER = {
    "tricks": 1.0,
    "surprise": 0.0,
    "faults": 0.0,
    "sharers": (tuple("abcdef"), tuple("bcde")),
    "survivors": dict.fromkeys("bcdef", "abcf"),
}
"""The colluder a shows a key of low order; whom it fails is asked again without a and f."""


def test_it_finds_that_a_key_of_low_order_let_a_server_unmask_two_holders():
    """With one colluder, within what the study allows for, and without any fault."""
    settings = {"faults": (None,), "tricks": ("low",)}
    old = Case(6, 4, 1, 1, OldHolder, **settings)
    reasons = [wander(old, seed, 60, **LOW_ORDER)[0] for seed in range(40)]
    assert any((reason or "").startswith("2 honest shares of noise, and 3") for reason in reasons)
    new = Case(6, 4, 1, 1, **settings)
    assert not any(wander(new, seed, 60, **LOW_ORDER)[0] for seed in range(40))


def test_it_finds_that_a_colluder_with_anothers_key_cancelled_a_mask():
    """Not known before the explorer: masks were made from keys alone, so a twin's had no name."""
    case = Case(3, 3, 1, 1, OldHolder, faults=(None,), tricks=("twin",))
    assert "unequal weights" in found_in(case) or "1 honest shares" in found_in(case)
    assert not found_in(Case(3, 3, 1, 1, OldHolder, faults=(None,), tricks=()))


class Credulous(Holder):
    """A holder that unmasks without counting signatures."""

    def _ended(self, session, step, payload, question):
        believing = SimpleNamespace(is_signed=lambda *_arguments: True)
        gullible = replace(self, arithmetic=believing)
        everyone = dict.fromkeys(session.vectors, "")
        return Holder._ended(gullible, session, step, payload | everyone, question)


STORIES = {
    "tricks": 0.0,
    "surprise": 0.0,
    "faults": 0.0,
    "survivors": {"a": "abc", "b": "abd", "c": "abc", "d": "abd", "e": "abe"},
}
"""Each is told that a, b and itself stayed, or one more: only a and b are in all stories."""


def test_it_finds_that_agreement_is_needed():
    """Where no agreement is asked for, five stories unmask two holders."""
    reason, _ = wander(Case(5, 3, 0, 0, Credulous), 1, 100, **STORIES)
    assert (reason or "").startswith("2 honest shares of noise, and 3 were promised")
    assert wander(Case(5, 3, 0, 0), 1, 100, **STORIES) == (None, 0)
