"""tacit.federation.status and what it looks at, at a site and at the server.

Covers `tacit.federation.status`, `tacit.federation.client.health`,
`tacit.federation.client.place`, `tacit.federation.clock`, `tacit.federation.server.health`,
`tacit.federation.server.sites`, `tacit.cli.federate_status`.
"""

import json
import re
import shutil
import threading

import httpx
import pytest
from sites import STUDY, make_site

from tacit.federation.client.health import site_status
from tacit.federation.client.place import Place
from tacit.federation.client.policy import Policy
from tacit.federation.client.presence import Presence
from tacit.federation.client.requests import Requests
from tacit.federation.clock import CLOCK_LIMIT, Door, look
from tacit.federation.keys import ensure_keys
from tacit.federation.project import Project, write_project
from tacit.federation.server.control import AwayError
from tacit.federation.server.health import server_status
from tacit.federation.server.opening import certify
from tacit.federation.server.sites import Sites
from tacit.federation.status import Check, healthy, in_json, in_metrics, in_words, serve_status

SAMPLE = [
    Check("ledger", good=True, words="there", value=3),
    Check("said", good=False, words="refused", about='no"rth'),
]
METRIC = re.compile(
    r'^[a-z_]+(\{[a-z]+="([^"\\]|\\.)*"(,[a-z]+="([^"\\]|\\.)*")*\})? -?[0-9.e+-]+$'
)


@pytest.fixture
def site(tmp_path):
    policy = make_site(tmp_path / "north", approval=True)
    ensure_keys(tmp_path / "north")
    (tmp_path / "north/site.toml").write_text(Place(tmp_path, "127.0.0.1:1", 1).text())
    return policy


def named(status):
    return {check.name: check for check in status}


def test_a_status_in_words_json_and_metrics():
    assert in_words(SAMPLE).splitlines() == [
        "  ledger       there",
        '! no"rth       said: refused',
    ]
    assert json.loads(in_json(SAMPLE))["healthy"] is False
    lines = [line for line in in_metrics(SAMPLE).splitlines() if not line.startswith("#")]
    assert all(METRIC.match(line) for line in lines), lines
    assert 'tacit_check{check="said",holder="no\\"rth"} 0' in lines
    assert 'tacit_value{check="ledger"} 3' in lines
    assert "tacit_healthy 0" in lines
    assert healthy(SAMPLE[:1])


def test_metrics_are_served_on_loopback_alone():
    server = serve_status(lambda: SAMPLE, 0)
    assert server.server_address[0] == "127.0.0.1"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    place = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        assert "tacit_healthy 0" in httpx.get(f"{place}/metrics").text
        assert httpx.get(f"{place}/status").json()["healthy"] is False
        assert httpx.get(f"{place}/health").status_code == 503
        assert httpx.get(f"{place}/other").status_code == 404
    finally:
        server.shutdown()
        server.server_close()


def test_a_site_says_what_does_not_run(site):
    seen = named(site_status(site))
    assert seen["policy"].good
    assert seen["data"].good
    assert seen["budget"].value == 2.0
    assert not seen["executor"].good
    assert "systemctl start tacit-site" in seen["executor"].words
    assert "systemctl start tacit-supernode" in seen["supernode"].words
    assert "cannot be read" in seen["server"].words, "the authority's certificate is not there"


def test_an_executor_is_seen_by_its_lock(site):
    presence = Presence(site.with_name("secret"))
    presence.take()
    assert named(site_status(site))["executor"].good
    presence.leave()
    assert not named(site_status(site))["executor"].good


def test_a_request_that_waits_needs_a_person(site):
    Requests(Policy.load(site).requests).ask(STUDY)
    check = named(site_status(site))["requests"]
    assert (check.good, check.value) == (False, 1)
    assert "tacit federate approve" in check.words


def test_a_budget_that_is_spent_is_named(site):
    from tacit.holder.publish import publish

    text = site.read_text().replace("epsilon_in_all = 2.0", "epsilon_in_all = 1.0")
    site.write_text(text)
    policy = Policy.load(site)
    publish(STUDY, list(policy.data), holder="north", ledger=policy.ledger, dataset="patients")
    check = named(site_status(site))["budget"]
    assert "out of budget" in check.words
    assert (check.good, check.value) == (False, 0.0)


def test_a_policy_that_cannot_be_read_is_one_line(site):
    site.write_text("holder = 3\n")
    assert not named(site_status(site))["policy"].good


def test_no_check_tells_of_the_data(site):
    """The whole status is the same whatever the rows say."""
    first = in_json(site_status(site))
    make_site(site.parent / "other", seed=9, rows=400)
    shutil.copy(site.parent / "other/rows.parquet", site.with_name("rows.parquet"))
    steady = re.compile(r'"[0-9]+ MB free[^"]*", "value": [0-9]+')
    assert steady.sub("", in_json(site_status(site))) == steady.sub("", first)


@pytest.mark.parametrize(
    ("ahead", "word"), [(CLOCK_LIMIT + 1, "ahead of"), (-CLOCK_LIMIT - 1, "behind")]
)
def test_a_clock_beyond_the_limit_is_a_sentence(ahead, word):
    assert word in (Door(ahead=ahead).clock_trouble or "")
    assert Door(ahead=ahead / 2).clock_trouble is None


def test_a_server_that_is_not_there_and_an_authority_that_is_none(tmp_path):
    assert "cannot be read" in (look("127.0.0.1:1", tmp_path / "ca.crt").trouble or "")


class Stub:
    """What a SuperLink says of its nodes; the real one is asked in test_faults.py."""

    def __init__(self, nodes):
        self.answer = nodes

    def nodes(self):
        if self.answer is None:
            raise AwayError("the SuperLink 'tacit' cannot be reached")
        return self.answer


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "stay"
    out = str(tmp_path / "out")
    write_project(Project(STUDY, ("north", "south"), "localhost:8443", out=out), folder)
    certify(folder, anew=False)
    return folder


def test_the_server_names_every_holder(project, tmp_path):
    sites = Sites(project / "app")
    ensure_keys(tmp_path)
    for name, number in (("north", "1"), ("south", "2")):
        sites.add(name, "key", (tmp_path / "node.key.pub").read_text(), number)
    (tmp_path / "out").mkdir()
    said = {"node": "1", "state": "waiting", "reason": "waiting for approval", "tacit": "0.1.0"}
    record = {"study": "stay", "outcome": "running", "written": "now", "nodes": [said]}
    (tmp_path / "out/federation.json").write_text(json.dumps(record))
    kept = {sites.node_key("south"): {"ahead": 421, "at": 0}}
    (tmp_path / "clocks.json").write_text(json.dumps(kept))
    nodes = [
        {"node-id": "1", "status": "online"},
        {"node-id": "2", "status": "offline", "offline-at": "2026-01-01"},
    ]
    status = server_status(project / "app", Stub(nodes), project / "superlink", tmp_path)
    words = in_words(status)
    assert "  north        connected: online" in words
    assert "! north        said: waiting: waiting for approval (Tacit 0.1.0" in words
    assert "! south        connected: its clock is +421 s off" in words
    assert named(status)["certificate"].value > 300
    gone = server_status(project / "app", Stub(None), project / "superlink", tmp_path)
    assert not named(gone)["superlink"].good


def test_the_command_ends_with_a_code_for_monitors(tacit, site):
    code, out, _ = tacit("federate", "status", site, "--json")
    assert code == 3
    assert json.loads(out)["healthy"] is False
    assert tacit("federate", "status", "nowhere.toml")[0] == 2
