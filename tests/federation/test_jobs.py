"""What a site's executor is made of: jobs that take long, the lock, the log, a wire to the server.

Covers `tacit.federation.client.jobs`, `tacit.federation.client.presence`,
`tacit.federation.logs`, `tacit.federation.server.fetch`, `tacit.federation.server.minutes`.
"""

import json
import logging
import threading
import time

import pytest
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from sites import STUDY

from tacit.errors import FederationError
from tacit.federation.client import presence
from tacit.federation.client.jobs import Jobs
from tacit.federation.client.presence import Presence, is_present
from tacit.federation.flower import identify
from tacit.federation.logs import Line
from tacit.federation.server import fetch
from tacit.federation.server.ask import Patience, Standing
from tacit.federation.server.fetch import Fetcher
from tacit.federation.server.gather import Inquiry
from tacit.federation.server.minutes import END, Minutes
from tacit.federation.wire import Answer, Reason, read_answer, record_of, request_of

CONTEXT = Context(1, 1, {}, RecordDict(), {})


def app_of(answer):
    app = ClientApp()

    @app.query()
    def reply(message: Message, context: Context) -> Message:
        del context
        return Message(record_of(answer()), reply_to=message)

    return app


def question(text="a study"):
    identify()
    return Message(request_of(text), 1, "query")


def test_who_takes_long_says_so_and_gives_the_answer_when_asked_again():
    begun = []
    ready = threading.Event()

    def slowly():
        begun.append(1)
        ready.wait(120)
        return Answer("refused", Reason.TABLE)

    jobs = Jobs(app_of(slowly), patience=0.05)
    for _ in range(3):
        assert read_answer(jobs.reply(question(), CONTEXT).content).reason == Reason.WORKING
    ready.set()
    heard = (read_answer(jobs.reply(question(), CONTEXT).content).reason for _ in range(1000))
    assert next(reason for reason in heard if reason != Reason.WORKING) == Reason.TABLE
    assert begun == [1], "the question is worked on once"


def test_another_question_waits_for_its_turn():
    order = []

    def answer():
        order.append(threading.current_thread().name)
        time.sleep(0.1)
        return Answer("refused", Reason.TABLE)

    jobs = Jobs(app_of(answer), patience=5.0)
    threads = [
        threading.Thread(target=jobs.reply, args=(question(text), CONTEXT)) for text in ("a", "b")
    ]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - begun >= 0.2
    assert len(order) == 2


def test_what_breaks_is_answered_without_its_words(caplog):
    app = ClientApp()

    @app.query()
    def broken(message: Message, context: Context) -> Message:
        raise ValueError("the row of Mr Smith", message, context)

    reply = Jobs(app).reply(question(), CONTEXT)
    assert reply.has_error()
    assert "Smith" not in reply.error.reason
    formatted = [Line("site").format(record) for record in caplog.records]
    assert formatted
    assert not any("Smith" in line for line in formatted)
    assert json.loads(formatted[0])["error"] == "ValueError"
    assert "test_jobs.py:" in json.loads(formatted[0])["where"]


def test_every_line_of_a_log_is_one_object(monkeypatch):
    monkeypatch.setenv("TACIT_DEBUG", "")
    record = logging.LogRecord("x", logging.INFO, "f", 1, "two\nlines %d", (3,), None)
    line = Line("node").format(record)
    assert "\n" not in line
    assert json.loads(line)["said"] == "two\nlines 3"


def test_a_lock_is_seen_and_held_by_one(tmp_path, monkeypatch):
    monkeypatch.setattr(presence, "LOOK", 0.05)
    secret = tmp_path / "secret"
    secret.write_bytes(b"x")
    first = Presence(secret)
    first.take()
    assert is_present(secret)
    with pytest.raises(FederationError, match="another `tacit federate serve`"):
        Presence(secret).take()
    first.leave()
    assert not is_present(secret)


class Stuck:
    """A grid of which one message never comes whole."""

    def __init__(self):
        self.release = threading.Event()

    def pull_messages(self, numbers):
        if "half" in numbers:
            self.release.wait(120)
            return []
        if "broken" in numbers:
            raise ValueError
        return [*numbers]


def test_a_message_that_is_half_sent_holds_up_no_other(monkeypatch):
    monkeypatch.setattr(fetch, "MOMENT", 0.05)
    grid = Stuck()
    fetcher = Fetcher(grid)
    begun = time.monotonic()
    sent = {1: ["half"], 2: ["a", "b"], 3: ["broken"]}
    came = {}
    while len(came) < 2 and time.monotonic() - begun < 60:  # at once, but on a busy machine
        came |= {each.node: (each.messages, each.failed) for each in fetcher.fetched(sent)}
        sent = {1: ["half"]}
    assert came == {2: (["a", "b"], False), 3: ([], True)}
    assert list(fetcher.fetched({1: ["half"]})) == []
    assert time.monotonic() - begun < 100  # the half message holds for 120
    grid.release.set()


def test_of_a_node_whose_answer_hangs_the_next_one_is_heard(monkeypatch):
    monkeypatch.setattr(fetch, "MOMENT", 0.05)
    grid = Stuck()
    fetcher = Fetcher(grid)
    assert list(fetcher.fetched({1: ["half", "before"]})) == []
    came = [each.messages for each in fetcher.fetched({1: ["half", "before", "after"]})]
    assert came == [["before"], ["after"]]
    grid.release.set()


def test_minutes_are_there_from_the_first_moment_on(tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="flwr")
    logging.getLogger("flwr").propagate = True
    inquiry = Inquiry(STUDY, Patience(1.0), nodes={7: "north"})
    minutes = Minutes(inquiry, tmp_path)
    minutes.tell(Standing(7, "waiting", "waiting for approval", ahead=2.4, version="0.1.0"))
    record = json.loads((tmp_path / "federation.json").read_text())
    assert record["outcome"] == "running"
    assert record["nodes"] == [
        {
            "node": "7",
            "holder": "north",
            "state": "waiting",
            "reason": "waiting for approval",
            "clock_ahead": 2,
            "tacit": "0.1.0",
        }
    ]
    minutes.visit = 1
    minutes.tell(Standing(7, "released", ""))
    minutes.end("failed", "too few")
    said = [record.getMessage() for record in caplog.records]
    assert said[:2] == [
        "tacit: north: waiting: waiting for approval",
        "tacit: north: released at visit 1 of 1",
    ]
    assert json.loads(said[-1].removeprefix(END))["failure"] == "too few"
