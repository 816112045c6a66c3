"""tacit.federation.server (app, ask, gather) and local: what the analyst's half does with answers.

It asks again, checks, leaves out what is wrong, and fits the rest.

Covers `tacit.federation.server.app`, `tacit.federation.server.ask`,
`tacit.federation.server.gather`, `tacit.federation.local`.
"""

import base64
import json
import logging

import numpy as np
import pytest
from flwr.app import ConfigRecord, Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from sites import STUDY, SURE, changed, charges, make_site

from tacit.analyst.posterior.posterior import Posterior
from tacit.errors import FederationError
from tacit.federation.client.app import app
from tacit.federation.client.policy import Policy
from tacit.federation.client.requests import Requests
from tacit.federation.local import LocalGrid, Node
from tacit.federation.server.app import Order, federate, in_one_sentence
from tacit.federation.server.ask import Patience
from tacit.federation.server.gather import Inquiry, _check_answer, enough, gather
from tacit.federation.wire import Answer, Reason, record_of
from tacit.release import Release
from tacit.release.signature import load_key
from tacit.simulation import simulate_visits
from tacit.study import Study
from tacit.study.toml import study_toml

HOLDERS = ("north", "south", "east", "west", "centre")


def site(folder, holder="north", **policy):
    return Node(
        app, {"policy": str(make_site(folder / holder, holder, seed=len(holder), **policy))}
    )


def inquiry(**changes):
    waiting = {
        name: changes.pop(name, default)
        for name, default in {"deadline": 20.0, "poll": 0.0, "pause": 0.0}.items()
    }
    return Inquiry(**({"study": STUDY, "patience": Patience(**waiting), "least": 1} | changes))


def saying(content):
    """A node that says the same to everything."""
    rogue = ClientApp()

    @rogue.query()
    def say(message: Message, context: Context) -> Message:
        del context
        return Message(content, reply_to=message)

    return Node(rogue, {})


def public_key(folder, holder):
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = load_key(folder / holder / "sign.key").public_key()
    return base64.b64encode(key.public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()


def states(standings):
    return {standing.node: (standing.state, standing.reason) for standing in standings}


# A study.


def test_five_sites_give_a_posterior(tmp_path):
    grid = LocalGrid({k: site(tmp_path, holder, rows=3000) for k, holder in enumerate(HOLDERS)})
    order = Order(inquiry(least=5), tmp_path / "out", "noise-aware", "weak")
    posterior = federate(grid, order)
    assert [contribution.holder for contribution in posterior.contributions] == list(HOLDERS)
    low, high = posterior.interval(SURE)[posterior.names().index("age")]
    assert low < 0.1 < high
    saved = Posterior.load(order.out / "posterior.parquet")
    assert saved.mean().tolist() == posterior.mean().tolist()
    assert "age" in (order.out / "summary.txt").read_text()
    assert "5 data holders" in (order.out / "report.html").read_text()
    assert {Release.load(path).holder for path in (order.out / "releases").iterdir()} == set(
        HOLDERS
    )
    record = json.loads((order.out / "federation.json").read_text())
    assert [node["state"] for node in record["nodes"]] == ["released"] * 5


def test_a_formulas_study_gives_all_files_too(tmp_path):
    study = changed(terms=[{"product": [feature.name]} for feature in STUDY.features])
    grid = LocalGrid({1: site(tmp_path, rows=3000)})
    order = Order(inquiry(study=study), tmp_path / "out", "noise-aware", "weak")
    federate(grid, order)
    assert {path.name for path in order.out.iterdir()} == {
        "releases",
        "federation.json",
        "posterior.parquet",
        "summary.txt",
        "report.html",
    }


def test_a_second_run_costs_nothing_and_gets_the_same(tmp_path):
    grid = LocalGrid({k: site(tmp_path, holder) for k, holder in enumerate(HOLDERS[:2])})
    first, second = (
        [standing.document.to_json() for standing in gather(grid, inquiry(least=2))]
        for _ in range(2)
    )
    assert first == second
    assert [len(charges(tmp_path / holder / "holder.toml")) for holder in HOLDERS[:2]] == [1, 1]


def test_too_few_holders_fit_nothing(tmp_path):
    grid = LocalGrid({1: site(tmp_path), 2: site(tmp_path, "south", studies=["other"])})
    order = Order(inquiry(least=2, expected=2), tmp_path / "out", "noise-aware", "weak")
    with pytest.raises(
        FederationError, match=r"1 of at least 2 holders .*node 2: policy: the study is not one"
    ):
        federate(grid, order)
    assert not (tmp_path / "out" / "posterior.parquet").exists()
    record = json.loads((tmp_path / "out" / "federation.json").read_text())
    assert [node["state"] for node in record["nodes"]] == ["released", "refused"]


def test_the_minutes_are_written_whatever_goes_wrong(tmp_path, monkeypatch):
    def broken(*_arguments, **_options):
        raise MemoryError

    monkeypatch.setattr("tacit.analyst.fit.fit", broken)
    order = Order(inquiry(), tmp_path / "out", "noise-aware", "weak")
    with pytest.raises(MemoryError):
        federate(LocalGrid({1: site(tmp_path)}), order)
    record = json.loads((tmp_path / "out" / "federation.json").read_text())
    assert record["failure"] == "unexpected MemoryError"
    assert [node["holder"] for node in record["nodes"]] == ["north"]


def test_flower_logs_a_sentence_and_no_traceback(caplog):
    """As run_serverapp of Flower logs what its app raised."""
    log = logging.getLogger("flwr.test")
    log.addFilter(in_one_sentence)
    for error in (FederationError("too few came"), ZeroDivisionError("a fault")):
        log.error("%s raised an exception", "ServerApp", exc_info=error)
    known, unknown = caplog.records
    assert (known.getMessage(), known.exc_info) == ("nothing was fitted: too few came", None)
    assert unknown.exc_info is not None


def test_nobody_there(tmp_path):
    with pytest.raises(FederationError, match="no node was there"):
        enough(gather(LocalGrid({}), inquiry(deadline=0.05)), inquiry())
    assert list(tmp_path.iterdir()) == []


# Asking again.


def test_an_answer_that_is_lost_is_asked_for_again(tmp_path):
    lost = []

    def lose_first(_node, reply):
        lost.append(reply)
        return None if len(lost) == 1 else reply

    (standing,) = gather(LocalGrid({1: site(tmp_path)}, lose_first), inquiry())
    assert standing.state == "released"
    assert len(charges(tmp_path / "north/holder.toml")) == 1
    assert lost[0].content == lost[1].content


def test_a_node_in_error_is_asked_again(tmp_path):
    seen = []

    def fail_first(_node, reply):
        seen.append(reply)
        return reply if len(seen) > 2 else Message(Error(code=0, reason="away"), reply_to=reply)

    def route(node, reply):
        failed = fail_first(node, reply)
        failed.metadata.__dict__["_reply_to_message_id"] = reply.metadata.reply_to_message_id
        return failed

    changes = []
    (standing,) = gather(LocalGrid({1: site(tmp_path)}, route), inquiry(), changes.append)
    assert standing.state == "released"
    assert [change.state for change in changes] == ["silent", "released"]


def test_a_site_that_waits_for_approval_is_asked_until_a_person_decides(tmp_path):
    node = site(tmp_path, approval=True)
    requests = Requests(Policy.load(tmp_path / "north/holder.toml").requests)
    asked = []

    def approve_third(_node, reply):
        asked.append(reply)
        if len(asked) == 3:
            requests.decide(requests.find("length-of-stay"), "approved")
        return reply

    (standing,) = gather(LocalGrid({1: node}, approve_third), inquiry())
    assert (standing.state, len(asked)) == ("released", 4)


def test_a_straggler_is_reported(tmp_path):
    grid = LocalGrid({1: site(tmp_path), 2: site(tmp_path, "south", approval=True)})
    standings = gather(grid, inquiry(deadline=0.5, expected=2, pause=0.05))
    assert states(standings) == {
        1: ("released", "published"),
        2: ("waiting", "waiting for approval"),
    }


def test_a_node_that_comes_later_is_asked(tmp_path):
    grid = LocalGrid({1: site(tmp_path)})
    late = site(tmp_path, "south")

    def joined(_node, reply):
        grid.nodes[2] = late
        grid._contexts[2] = Context(1, 2, late.config, RecordDict(), {})
        return reply

    grid._on_reply = joined
    assert {standing.state for standing in gather(grid, inquiry(least=2))} == {"released"}


# What is wrong is left out, and the others go on.


def released(release):
    return record_of(Answer("released", release=release))


ROGUES = {
    "an empty message": RecordDict(),
    "another record": RecordDict({"answers": ConfigRecord({"version": 1})}),
    "a reason with data": RecordDict(
        {
            "answer": ConfigRecord(
                {"version": 1, "state": "refused", "reason": "patient 4711 is ill", "release": ""}
            )
        }
    ),
    "no JSON": released("no release"),
    "nested JSON": released("[" * 200_000),
    "an oversized release": released("1" * (33 * 2**20)),
    "not finite": released('{"format": "tacit-release", "version": 1, "n": 1e999}'),
}


@pytest.mark.parametrize("content", ROGUES.values(), ids=ROGUES.keys())
def test_a_rogue_is_rejected_and_the_others_are_fitted(tmp_path, content):
    grid = LocalGrid({1: saying(content), 2: site(tmp_path)})
    standings = {standing.node: standing for standing in gather(grid, inquiry())}
    assert standings[1].state == "rejected"
    assert "4711" not in standings[1].reason
    assert standings[2].state == "released"


def test_a_message_that_cannot_be_fetched_is_rejected(tmp_path):
    class Breaking(LocalGrid):
        def _answer(self, message):
            if message.metadata.dst_node_id == 1:
                raise MemoryError
            return super()._answer(message)

    grid = Breaking({1: site(tmp_path), 2: site(tmp_path, "south")})
    assert states(gather(grid, inquiry()))[1] == ("rejected", "answer: it cannot be read")


def test_a_release_of_another_study_is_rejected(tmp_path):
    other = _release(tmp_path, study=changed(epsilon=0.5))
    grid = LocalGrid({1: saying(released(other)), 2: site(tmp_path)})
    assert states(gather(grid, inquiry()))[1] == (
        "rejected",
        "release: it is of another study than was asked for",
    )


def test_two_nodes_cannot_be_the_same_holder(tmp_path):
    grid = LocalGrid(
        {1: site(tmp_path), 2: saying(released(_release(tmp_path))), 3: site(tmp_path, "south")}
    )
    standings = states(gather(grid, inquiry(least=2)))
    assert standings[1][0] == "released"
    assert standings[2] == (
        "rejected",
        "holder 'north' is there twice: give each holder's release once",
    )


def test_a_simulated_release_is_rejected(tmp_path):
    document = json.loads(_release(tmp_path)) | {"simulated": True}
    grid = LocalGrid({1: saying(released(json.dumps(document))), 2: site(tmp_path, "south")})
    assert "simulated" in states(gather(grid, inquiry()))[1][1]


def test_a_holder_must_sign_with_its_own_key(tmp_path):
    nodes = {
        1: site(tmp_path, signed=True),
        2: site(tmp_path, "south", signed=True),
        3: site(tmp_path, "east"),
    }
    north, south = (public_key(tmp_path, holder) for holder in ("north", "south"))
    keys = {"north": north, "south": north, "east": south}
    standings = states(gather(LocalGrid(nodes), inquiry(keys=keys, expected=1)))
    assert standings[1][0] == "released"
    for node, holder in ((2, "south"), (3, "east")):
        rule = f"the release of {holder!r} is not signed by that holder's trusted key"
        assert standings[node] == ("rejected", rule)
    standings = states(gather(LocalGrid(nodes), inquiry(keys={"north": north, "south": south})))
    assert (standings[1][0], standings[2][0]) == ("released", "released")


def test_a_stranger_with_a_key_of_its_own_is_rejected(tmp_path):
    nodes = {1: site(tmp_path, signed=True), 2: site(tmp_path, "south", signed=True)}
    keys = {"north": public_key(tmp_path, "north")}
    standings = states(gather(LocalGrid(nodes), inquiry(keys=keys)))
    rule = "no trusted key was given for 'south': name it as south=KEY"
    assert standings[2] == ("rejected", rule)


def _release(folder, **changes):
    (standing,) = gather(LocalGrid({1: site(folder / "copied")}), inquiry(**changes))
    return standing.document.to_json()


# The run's configuration.


def test_an_order_is_read_from_the_project(tmp_path):
    (tmp_path / "study.toml").write_text(study_toml(STUDY))
    (tmp_path / "holders.toml").write_text('north = "abc"\nsouth = "def"\n')
    config = {
        "study": "study.toml",
        "holders": "holders.toml",
        "out": "/var/out",
        "deadline": 60,
        "least-holders": 2,
        "poll": 5,
    }
    order = Order.read(config, tmp_path)
    assert (order.inquiry.study.hash, order.inquiry.patience.deadline, order.inquiry.wanted) == (
        STUDY.hash,
        60.0,
        2,
    )
    assert (str(order.out), order.method, order.prior) == ("/var/out", "noise-aware", "weak")
    with pytest.raises(FederationError, match="lacks 'deadline'"):
        Order.read({key: value for key, value in config.items() if key != "deadline"}, tmp_path)
    with pytest.raises(FederationError, match="cannot read the holders' keys"):
        Order.read(config | {"holders": "nowhere.toml"}, tmp_path)
    (tmp_path / "holders.toml").write_text("north = 5")
    with pytest.raises(FederationError, match="must hold one line"):
        Order.read(config, tmp_path)


def test_a_refusal_that_may_pass_is_asked_again():
    said = iter(
        [
            Answer("refused", Reason.SITE),
            Answer("refused", Reason.LEDGER),
            Answer("refused", Reason.TABLE),
        ]
    )
    rogue = ClientApp()

    @rogue.query()
    def say(message: Message, context: Context) -> Message:
        del context
        return Message(record_of(next(said)), reply_to=message)

    standings = gather(LocalGrid({1: Node(rogue, {})}), inquiry())
    assert states(standings) == {1: ("refused", "the table does not fit the study")}


def test_an_answer_to_another_question_is_none():
    """A holder who answers what was not asked is left out; the others' next question stays."""
    agreed = Study.from_document(
        STUDY.document() | {"visits": 2, "planned_rows": [60, 60], "release": {}}
    )
    rng = np.random.default_rng(1)
    rows = {name: rng.uniform(0, 1, 60) for name in agreed.names}
    release, _ = simulate_visits(agreed, [rows, rows], rng)
    _check_answer(release, release.visit.question)
    other = release.visit.question.model_copy(update={"radius": 0.5})
    with pytest.raises(FederationError, match="answers another question"):
        _check_answer(release, other)
