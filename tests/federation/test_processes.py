"""tacit.federation.client.serve and server.app: SuperLink and SuperNodes as separate processes.

They run on loopback, with TLS and node authentication on.

Covers `tacit.federation.client.serve`, `tacit.cli.federate_run`, `tacit.cli.federate_services`.
"""

import json
import sys

import pytest
from processes import at_most, federation, until
from sites import STUDY, changed, charges

from tacit.analyst.posterior.posterior import Posterior
from tacit.federation.client.policy import Policy
from tacit.federation.client.requests import Requests
from tacit.federation.keys import fingerprint
from tacit.release import Release
from tacit.release.attestation import attesting
from tacit.study.toml import study_toml

EVIL_CLIENT = """
from pathlib import Path
from flwr.clientapp import ClientApp

Path({marker!r}).write_text("code from the network was run")
app = ClientApp()
"""
EVIL_SERVER = """
import json
from pathlib import Path
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import ServerApp

app = ServerApp()

@app.main()
def main(grid, context):
    nodes = list(grid.get_node_ids())
    messages = [Message(RecordDict({{"x": ConfigRecord({{}})}}), node, "query") for node in nodes]
    replies = grid.send_and_receive(messages, timeout=150)
    answers = [None if reply.has_error() else dict(reply.content["answer"]) for reply in replies]
    Path({answers!r}).write_text(json.dumps(answers))
"""


def write_evil_app(folder, marker, answers):
    """A Flower app with code of its own in it, as anybody who may start runs could write."""
    (folder / "evil").mkdir()
    project = (folder / "project/app/pyproject.toml").read_text()
    project = project.replace("tacit.federation.server.app:app", "evil_server:app")
    (folder / "evil/pyproject.toml").write_text(
        project.replace("tacit.federation.client.app:app", "evil_client:app")
    )
    (folder / "evil/evil_client.py").write_text(EVIL_CLIENT.format(marker=str(marker)))
    (folder / "evil/evil_server.py").write_text(EVIL_SERVER.format(answers=str(answers)))


def results(folder):
    record = json.loads((folder / "out/federation.json").read_text())
    return {
        node["holder"] or node["reason"]: (node["state"], node["reason"])
        for node in record["nodes"]
    }


def releases(folder):
    texts = [path.read_text() for path in (folder / "out/releases").iterdir()]
    return {Release.from_json(text).holder: text for text in texts}


def approve_sum(made, folder, study, names):
    """Every data officer has approved beforehand, so that rounds need not wait."""
    for name in names:
        policy = folder / name / "holder.toml"
        Requests(Policy.load(policy).requests).ask(study)
        approve = ("tacit", "federate", "approve", str(policy), "length-of-sum", "--yes")
        approved = made.run(sys.executable, "-m", *approve)
        assert approved.returncode == 0, approved.stderr
        assert "at least 3 must stay to the end" in approved.stdout
        assert fingerprint(study.secure_sum.holders["north"]) in approved.stdout


def test_two_sites_a_stranger_and_a_bundle_with_code(tmp_path):
    with at_most(900), federation(tmp_path) as made:
        made.start_superlink(["north", "south"])
        for name in ("north", "south", "stranger"):
            made.add_site(name)
        made.trust("north", "south")
        made.start_node("stranger")  # its key is not registered
        made.register("north", "south")
        turned_away = "may not know this site's key"
        until(lambda: turned_away in made.log("stranger-node"), "the stranger is turned away")
        made.kill("stranger-node")
        made.start_site("north")
        made.start_node("south")
        made.start_dying("south", "half_sent")  # a SuperNode would wait for ever for the rest
        study = made.start_study(deadline=400.0, poll=2.0)
        until(lambda: made.running["south-site"].poll() is not None, "south dies")
        made.kill("south-site")
        made.start_executor("south")
        code, said = made.ended(study, 500)
        assert code == 0, said
        assert "south: released" in said
        assert "started anew" in made.log("south-node")
        assert results(tmp_path) == {
            "north": ("released", "published"),
            "south": ("released", "published"),
        }
        assert Posterior.load(tmp_path / "out/posterior.parquet").study.hash == STUDY.hash
        assert [
            len(charges(tmp_path / name / "holder.toml")) for name in ("north", "south", "stranger")
        ] == [1, 1, 0]
        marker = tmp_path / "executed"
        answers = tmp_path / "answers.json"
        write_evil_app(tmp_path, marker, answers)
        made.finish(made.start_run("evil"), 300)
        assert [answer["state"] for answer in json.loads(answers.read_text())] == ["refused"] * 2
        assert not marker.exists()


def sum_of(made, folder, names):
    """A secure sum of sites that have published already."""
    study = changed(
        name="length-of-sum",
        epsilon=0.5,
        secure_sum={
            "holders": {name: made.public[name] for name in names},
            "least": 3,
            "colluding": 0,
        },
    )
    (folder / "project/app/study.toml").write_text(study_toml(study))
    approve_sum(made, folder, study, names)
    made.finish(made.start_run(deadline=30.0, poll=10.0), 200)
    release = Release.load(folder / "out/releases/sum.json")
    assert (release.holder, release.n) == ("secure sum of 4 holders", 1600)
    assert set(attesting(release)) == set(names)
    paid = {name: len(charges(folder / name / "holder.toml")) for name in names}
    assert paid == dict.fromkeys(names, 2)


@pytest.mark.slow
def test_five_sites_with_everything_that_goes_wrong(tmp_path):
    """One waits for a person, one is late, two die, one refuses; and there are two rogues."""
    holders = ("north", "south", "east", "west", "centre")
    with at_most(600), federation(tmp_path) as made:
        made.start_superlink(holders)
        for name in (*holders, "liar", "giant"):
            made.add_site(
                name,
                **{"north": {"approval": True}, "centre": {"studies": ["other"]}}.get(name, {}),
            )
        made.trust(*holders)
        made.register(*holders, "liar", "giant")
        for name in ("north", "west", "centre"):
            made.start_site(name)
        for name, kind in (("east", "dying"), ("liar", "malformed"), ("giant", "oversized")):
            made.start_node(name)
            made.start_rogue(name, kind)
        config = {"deadline": 150.0, "poll": 5.0, "least_holders": 4}
        run = made.start_run(**config)

        # While it runs: a person approves, the one that died comes back, the late one comes.
        until(
            lambda: list(Policy.load(tmp_path / "north/holder.toml").requests.glob("*.json")),
            "north is asked",
        )
        approve = ("tacit", "federate", "approve", "north/holder.toml", "length-of-stay", "--yes")
        approved = made.run(sys.executable, "-m", *approve)
        assert approved.returncode == 0, approved.stderr
        assert "guess right 50 times in 100" in approved.stdout
        until(lambda: made.running["east-site"].poll() is not None, "east dies")
        assert [charge.release for charge in charges(tmp_path / "east/holder.toml")] == [None]
        made.kill("east-site")
        made.start_executor("east")
        made.start_site("south")
        made.finish(run, 180)
        first = releases(tmp_path)
        said = results(tmp_path)
        assert set(first) == {"north", "south", "east", "west"}
        assert said["policy: the study is not one that this site takes part in"][0] == "refused"
        assert (
            said["answer: it must be one record with the fields version, state, reason, release"][0]
            == "rejected"
        )
        assert said["answer: a release is at most 10 MB long"][0] == "rejected"

        # The same again, after one was killed: nothing is paid twice.
        made.kill("west-site", "liar-site", "giant-site")
        made.stop("west-node")
        made.start_site("west")
        made.finish(made.start_run(**config), 180)
        assert releases(tmp_path) == first
        assert {
            name: len(charges(tmp_path / name / "holder.toml")) for name in holders
        } == dict.fromkeys(holders[:4], 1) | {"centre": 0}
        sum_of(made, tmp_path, holders[:4])
