"""Secure sums in every visit: fresh sessions, one charge, one question for all.

Covers `tacit.visits.sitting`, `tacit.holder.share` and `tacit.federation.server.app` where a study
has several visits and a secure sum.
"""

import json

import numpy as np
import pytest
from sites import SLOPE, SURE, charges, make_site, table
from sums import NAMES, Wire, grid_of, sites, summing

from tacit.analyst.collection import collect
from tacit.analyst.fit import fit
from tacit.errors import FederationError, ReleaseError, SignatureError, StudyError
from tacit.federation.client.policy import Policy
from tacit.federation.client.requests import Requests
from tacit.federation.secure_sum.server import Sum
from tacit.federation.server.app import Order, federate
from tacit.federation.server.ask import Patience
from tacit.federation.server.gather import Inquiry
from tacit.federation.wire import Step
from tacit.holder.statistics import Statistics
from tacit.holder.tally import total_of
from tacit.holder.visits import mapped
from tacit.release import Release
from tacit.release.attestation import attesting
from tacit.release.question import Question
from tacit.simulation import simulate_sum
from tacit.study.toml import study_toml
from tacit.study.visits import visit_mechanism
from tacit.visits.ask import next_question
from tacit.visits.messages import load_message, refuse_other
from tacit.visits.sitting import Sitting

__all__ = ["sites"]
PATIENCE = Patience(deadline=1.0, poll=0.3, pause=0.0)
VISITS = {"visits": 3, "planned_rows": [200] * 5}


def order(study, folder):
    return Order(Inquiry(study, PATIENCE), folder / "out", "noise-aware", "weak")


def sittings(sites, study, visits):
    """The messages of so many visits, and the session of the first."""
    grid = grid_of(sites)
    first = Sum(grid, Sitting(study), PATIENCE)
    messages = [first.run()]
    while len(messages) < visits:
        sitting = Sitting(study, next_question(study, messages[-1:]), first.session)
        messages.append(Sum(grid, sitting, PATIENCE, before=messages[-1]).run())
    return messages, first.session


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """A study of three visits, and the messages of all of them."""
    folder = tmp_path_factory.mktemp("three")
    houses = {
        name: make_site(folder / name, name, rows=200 + 10 * k, seed=k, signed=True)
        for k, name in enumerate(NAMES)
    }
    study = summing(houses, **VISITS)
    return study, sittings(houses, study, 3)[0]


def test_every_visit_is_a_sum_and_one_charge_pays_for_all(sites, tmp_path):
    study = summing(sites, **VISITS)
    posterior = federate(grid_of(sites), order(study, tmp_path))
    low, high = posterior.interval(SURE)[posterior.names().index("age")]
    assert low < SLOPE < high
    for path in sites.values():
        entries = [(charge.study, charge.epsilon, charge.mu > 0) for charge in charges(path)]
        assert entries == [
            ("length-of-stay (sum)", 1.0, True),
            ("length-of-stay (sum, visit 2)", 0.0, False),
            ("length-of-stay (sum, visit 3)", 0.0, False),
        ]
    release = Release.load(tmp_path / "out/releases/sum.json")
    assert [answer.survivors for answer in release.answers] == [5, 5]
    assert release.visit.places.survivors == 5
    sessions = {attestation.session for _, attestation in release.attested}
    assert len(sessions) == 3, "every visit has a session of its own"
    assert set(attesting(release)) <= set(NAMES)
    assert fit(collect(tmp_path / "out/releases")).mean().tolist() == posterior.mean().tolist()


def test_a_sum_is_that_of_mapped_rows(three):
    """Every entry within 8 sd of the exact sum: a false alarm in 1e13 runs; masks are larger."""
    study, messages = three
    question = messages[-1].visit.question
    totals = [total_of(mapped(question), study, table(200 + 10 * k, k)) for k in range(len(NAMES))]
    total = sum(totals, Statistics.zero(study))
    release = messages[-1]
    gram = np.ldexp(total.gram.astype(float), -36)
    assert release.n == total.n
    assert np.all(np.abs(np.diag(release.gram - gram[:-1, :-1])) < 8 * release.noise.xtx_diagonal)
    assert np.all(np.abs(release.moment - gram[:-1, -1]) < 8 * release.noise.xty)
    assert abs(release.yty - gram[-1, -1]) < 8 * release.noise.yty


@pytest.mark.parametrize("number", [2, 3])
def test_honest_shares_have_the_visits_noise(three, number):
    study, _ = three
    sitting = Sitting(study, question(study, visit=number), "ab" * 16)
    share = sitting.mechanism(1).noise.by_part()
    needed = visit_mechanism(study, number, study.budget()).noise.by_part()
    for part, sd in needed.items():
        assert sd <= np.sqrt(study.secure_sum.covering) * share[part] <= sd * (1 + 1e-11)


def question(study, **changes):
    fields = {
        "study_hash": study.hash,
        "visit": 2,
        "map": np.eye(study.d).tolist(),
        "offset": [0.0] * study.d,
        "radius": 1.0,
        "bound": 1.0,
    }
    return Question.model_validate(fields | changes)


class Later(Wire):
    """A server at a later visit, which may tell each site another question."""

    def __init__(self, sites, sitting, session):
        super().__init__(sites, sitting.study, session)
        self.told = dict.fromkeys(sites, sitting)

    def ask(self, name, round_, payload):
        sitting = self.told[name]
        step = Step(
            study=study_toml(self.study),
            session=self.session,
            round=round_,
            payload=payload,
            question=sitting.question.to_json(),
            opening=sitting.opening,
        )
        return self.answered(name, step)


def test_all_holders_must_be_told_the_same_question(sites):
    study = summing(sites, **VISITS)
    _, opening = sittings(sites, study, 1)
    wire = Later(sites, Sitting(study, question(study), opening), "cd" * 16)
    wire.told["birch"] = Sitting(study, question(study, bound=0.5), opening)
    keys = wire.keys()
    assert wire.say("ash", "shares", keys) == "SUM", "birch signed for another question"
    assert wire.say("birch", "shares", keys) == "SUM"
    assert [len(charges(path)) for path in sites.values()] == [1] * 5


def test_a_session_is_of_one_visit_and_a_visit_is_answered_in_one_session(sites):
    study = summing(sites, **VISITS)
    _, opening = sittings(sites, study, 1)
    asked = Sitting(study, question(study), opening)
    again = Later(sites, asked, opening)
    assert again.say("ash", "keys", {}) == "SUM", "the first visit's session"
    Later(sites, asked, "cd" * 16).until_masked()
    other = Later(sites, Sitting(study, question(study, bound=0.5), opening), "ef" * 16)
    assert other.until_masked()[2] == dict.fromkeys(NAMES, "SUM")
    assert [len(charges(path)) for path in sites.values()] == [2] * 5


def test_who_did_not_pay_at_the_first_visit_answers_no_later_one(sites):
    study = summing(sites, **VISITS)
    wire = Later(sites, Sitting(study, question(study), "ab" * 16), "cd" * 16)
    assert wire.until_masked()[2] == dict.fromkeys(NAMES, "LEDGER")
    assert [charges(path) for path in sites.values()] == [[]] * 5


def away(visit):
    """A grid's fault: the second node says nothing while that visit is asked."""
    replies = {"count": 0}

    def on_reply(node, reply):
        replies["count"] += node == 1
        now = (replies["count"] - 1) // 5 + 1
        return None if node == 2 and now == visit else reply

    return on_reply


def test_a_holder_may_miss_a_visit_and_come_back(sites, tmp_path):
    study = summing(sites, least=4, colluding=0, **(VISITS | {"visits": 4}))
    federate(grid_of(sites, away(3)), order(study, tmp_path))
    release = Release.load(tmp_path / "out/releases/sum.json")
    survivors = [release.visit.places.survivors, *(each.survivors for each in release.answers)]
    assert survivors == [5, 5, 4, 5]


def test_with_too_few_at_a_late_visit_the_earlier_ones_are_fitted(sites, tmp_path):
    study = summing(sites, least=5, colluding=0, **(VISITS | {"visits": 4}))
    posterior = federate(grid_of(sites, away(4)), order(study, tmp_path))
    release = Release.load(tmp_path / "out/releases/sum.json")
    assert release.visit.question.visit == 3
    assert posterior.names()[0] == "(intercept)"
    with pytest.raises(FederationError, match="4 of at least 5 holders"):
        federate(grid_of(sites, away(2)), order(study, tmp_path / "again"))


def test_a_question_is_made_of_the_sum_alone_and_can_be_verified(three, tmp_path):
    study, messages = three
    for k, message in enumerate(messages[:2]):
        message.save(tmp_path / f"sum{k}.json")
        loaded = load_message(tmp_path / f"sum{k}.json")
        assert loaded == message
        made = next_question(study, [loaded])
        refuse_other(made, [loaded])
        with pytest.raises(ReleaseError, match="this one was changed"):
            refuse_other(made.model_copy(update={"bound": made.bound / 2}), [loaded])


def test_a_later_sum_that_nobody_signed_is_refused(three):
    _, messages = three
    release = messages[-1]
    attesting(release)
    earlier = release.visit.earlier[0].model_copy(update={"attestation": release.attestation})
    visit = release.visit.model_copy(update={"earlier": (earlier,)})
    forged = release.model_copy(update={"visit": visit})
    with pytest.raises(SignatureError, match="does not verify"):
        attesting(forged)


def test_noise_of_an_earlier_visit_cannot_be_understated(three):
    study, _ = three
    rng = np.random.default_rng(3)
    release = simulate_sum(study, [table(200, k) for k in range(5)], rng)
    document = json.loads(release.to_json())
    document["visit"]["places"]["noise"]["total"] /= 2
    with pytest.raises(ReleaseError, match=r"visit.places: noise is not that of the study"):
        Release.from_json(json.dumps(document))
    document = json.loads(release.to_json())
    document["visit"]["earlier"][0]["survivors"] = 4
    with pytest.raises(ReleaseError, match=r"visit.earlier: noise is not that of the study"):
        Release.from_json(json.dumps(document))


def test_one_approval_covers_every_visit(sites):
    path = sites["ash"]
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("approval = false", "approval = true"), encoding="utf-8")
    study = summing(sites, **VISITS)
    requests = Requests(Policy.load(path).requests)
    with pytest.raises(FederationError, match="waiting for approval"):
        Sum(grid_of({"ash": path, "birch": sites["birch"]}), Sitting(study), PATIENCE).run()
    requests.decide(requests.find(study.hash), "approved")
    sittings(sites, study, 3)
    assert len(requests.every()) == 1


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"visits": 3}, "visits above 1 need planned_rows"),
        ({"visits": 3, "planned_rows": [200]}, "need planned_rows of every holder"),
    ],
)
def test_a_sum_of_visits_needs_the_holders_rows(sites, fields, rule):
    with pytest.raises(StudyError, match=rule):
        summing(sites, **fields)
