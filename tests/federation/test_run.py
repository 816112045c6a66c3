"""tacit.federation.server.run: how a study ended, also where its last words were lost.

Covers `tacit.federation.server.run`, `tacit.federation.environment`.
"""

import pytest

from tacit.federation.environment import QUIET, SUPERLINK, SUPERNODE
from tacit.federation.server.control import Started
from tacit.federation.server.minutes import END
from tacit.federation.server.run import Follow


class Scripted:
    """A SuperLink that has one run, of which it knows the log and the status."""

    def __init__(self, log, status, details=""):
        self._log = [f"INFO :      {line}\n" for line in log]
        self._status = {"status": status, "status-details": details}

    def start(self, _app, _config=""):
        return Started("7", iter(self._log[:1]))

    def lines(self, _number):
        return iter(self._log)

    def run(self, _number):
        return self._status


@pytest.fixture
def app(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.flwr.app.config]\nout = "/results"\n')
    return tmp_path


def test_the_end_is_what_the_run_says(app):
    said = []
    end = '{"outcome": "fitted", "failure": null, "out": "x"}'
    log = ["tacit: north: released", "Flower's own", "tacit: south: released", f"{END}{end}"]
    ended = Follow(Scripted(log, "finished:completed"), app, on_line=said.append).run()
    assert ended == {"outcome": "fitted", "failure": None, "out": "x"}
    assert said == ["run 7 is started", "north: released", "south: released"]


@pytest.mark.parametrize(("config", "out"), [("", "/results"), ("poll=2.0 out='/else'", "/else")])
def test_a_run_whose_last_words_were_lost_ended_as_flower_says(app, config, out):
    """Flower drops what a ServerApp says last where the SuperLink takes it slowly."""
    ended = Follow(Scripted(["tacit: north: released"], "finished:completed"), app, config).run()
    assert ended == {"outcome": "fitted", "failure": None, "out": out}


@pytest.mark.parametrize(
    ("details", "failure"),
    [
        ("ServerApp failed with exception: 0 of at least 2 holders", "0 of at least 2 holders"),
        ("No heartbeat", "the run is finished:failed (No heartbeat); run it again: what was"),
    ],
)
def test_a_run_that_failed_without_a_word_says_why(app, details, failure):
    ended = Follow(Scripted(["Flower's own"], "finished:failed", details), app).run()
    assert ended["outcome"] == "failed"
    assert ended["failure"].startswith(failure)


def test_no_program_of_flowers_tells_anybody_outside():
    assert QUIET == {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
    assert QUIET.items() <= SUPERLINK.items()
    assert QUIET.items() <= SUPERNODE.items()
