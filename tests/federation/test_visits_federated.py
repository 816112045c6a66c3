"""Several visits over a federation: all of them in one run, under one approval and one charge.

Covers `tacit.federation.server.app`, `tacit.federation.server.gather` and
`tacit.federation.client.answer` where a study has several visits.
"""

import logging

import pytest
from flwr.app import Context, Message, RecordDict
from sites import SURE, changed, charges, make_site

from tacit.federation.client.app import app, release
from tacit.federation.client.policy import Policy
from tacit.federation.client.requests import Requests
from tacit.federation.flower import identify
from tacit.federation.local import LocalGrid, Node
from tacit.federation.server.app import Order, federate
from tacit.federation.server.ask import Patience
from tacit.federation.server.gather import Inquiry
from tacit.federation.wire import Answer, Reason, Visit, read_answer, visit_request
from tacit.release.question import Question
from tacit.study.toml import study_toml

HOLDERS = ("north", "south", "east")
STUDY = changed(name="stay in visits", visits=4, planned_rows=[2000, 2000, 2000])


def sites(folder, **policy):
    return {
        k: Node(
            app,
            {
                "policy": str(
                    make_site(
                        folder / holder,
                        holder,
                        seed=k,
                        rows=2000,
                        studies=[STUDY.name],
                        **policy,
                    )
                )
            },
        )
        for k, holder in enumerate(HOLDERS)
    }


def order(folder, **changes):
    patience = Patience(deadline=20.0, poll=0.0, pause=0.0)
    inquiry = Inquiry(**({"study": STUDY, "patience": patience, "least": 3} | changes))
    return Order(inquiry, folder / "out", "noise-aware", "weak")


def spent(folder):
    return [
        [charge.epsilon for charge in charges(folder / holder / "holder.toml")]
        for holder in HOLDERS
    ]


def test_all_visits_happen_in_one_run_and_are_paid_once(tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="flwr")
    logging.getLogger("flwr").propagate = True
    posterior = federate(LocalGrid(sites(tmp_path)), order(tmp_path))
    assert {each.holder for each in posterior.contributions} == set(HOLDERS)
    assert spent(tmp_path) == [[STUDY.epsilon, 0.0, 0.0, 0.0]] * 3
    low, high = posterior.interval(SURE)[posterior.names().index("age")]
    assert low < 0.1 < high
    questions = sorted(path.name for path in (tmp_path / "out").glob("question*.json"))
    assert questions == ["question2.json", "question3.json", "question4.json"]
    said = [record.getMessage() for record in caplog.records]
    for visit in (1, 2, 3, 4):
        assert f"tacit: north: released at visit {visit} of 4" in said


def test_a_second_run_asks_the_same_and_costs_nothing(tmp_path):
    grid = LocalGrid(sites(tmp_path))
    first = federate(grid, order(tmp_path))
    again = federate(grid, order(tmp_path))
    assert first.mean().tolist() == again.mean().tolist()
    assert spent(tmp_path) == [[STUDY.epsilon, 0.0, 0.0, 0.0]] * 3


def asked(path, visit):
    identify()
    message = Message(visit_request(visit), 1, "query")
    context = Context(1, 1, {"policy": str(path)}, RecordDict(), {})
    return read_answer(release(message, context).content)


def question(**changes):
    d = STUDY.d
    fields = {
        "study_hash": STUDY.hash,
        "visit": 2,
        "map": [[float(i == k) for k in range(d)] for i in range(d)],
        "offset": [0.0] * d,
        "radius": 1.0,
        "bound": 1.0,
    }
    return Question.model_validate(fields | changes)


def test_a_visit_waits_for_the_studys_approval(tmp_path):
    path = make_site(tmp_path / "north", "north", rows=500, studies=[STUDY.name], approval=True)
    visit = Visit(study=study_toml(STUDY), question=question().to_json())
    assert asked(path, visit) == Answer("waiting", Reason.WAITING)
    assert len(Requests(Policy.load(path).requests).every()) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no question", Reason.UNREADABLE),
        (question(study_hash="sha256:" + "0" * 64).to_json(), Reason.UNREADABLE),
        (question(visit=8).to_json(), Reason.UNREADABLE),
        (question(visit=3).to_json(), Reason.LEDGER),
    ],
)
def test_a_question_that_does_not_belong_is_refused(tmp_path, text, reason):
    path = make_site(tmp_path / "north", "north", rows=500, studies=[STUDY.name])
    answer = asked(path, Visit(study=study_toml(STUDY), question=text))
    assert (answer.state, answer.reason) == ("refused", reason)
    assert charges(path) == []
