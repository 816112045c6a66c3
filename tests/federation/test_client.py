"""tacit.federation.client (answer, app, policy, requests) and wire: what a site answers.

Policy first, then ledger, then a person; and nothing that could hold data.

Covers `tacit.federation.client.answer`, `tacit.federation.client.app`,
`tacit.federation.client.policy`, `tacit.federation.client.requests`, `tacit.federation.wire`.
"""

import logging
import sqlite3
from contextlib import closing

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from sites import STUDY, changed, charges, make_site, table

from tacit.errors import FederationError, LedgerError, PolicyError
from tacit.federation.client.answer import answer
from tacit.federation.client.app import app
from tacit.federation.client.policy import Policy
from tacit.federation.client.requests import MOST_WAITING, Requests
from tacit.federation.flower import identify
from tacit.federation.local import LocalGrid
from tacit.federation.wire import (
    MOST_STUDY_BYTES,
    Answer,
    Reason,
    read_answer,
    record_of,
    request_of,
)
from tacit.holder.ledger import Ledger
from tacit.release import Release
from tacit.study.toml import study_toml

TEXT = study_toml(STUDY)


def ask(path, content=None, **config):
    """Send a message to the ClientApp and read its answer."""
    LocalGrid({})
    identify()
    message = Message(request_of(TEXT) if content is None else content, 1, "query")
    context = Context(1, 1, {"policy": str(path)} if path else {}, RecordDict(), config)
    return read_answer(app(message, context).content)


# The release.


def test_a_site_publishes_through_its_ledger(tmp_path):
    policy = make_site(tmp_path, signed=True)
    reply = ask(policy)
    assert (reply.state, reply.reason) == ("released", Reason.NONE)
    release = Release.from_json(reply.release)
    assert (release.holder, release.study_hash, release.simulated, release.n) == (
        "north",
        STUDY.hash,
        False,
        400,
    )
    assert release.signature is not None
    (charge,) = charges(policy)
    assert (charge.dataset, charge.epsilon, charge.release) == ("patients", 1.0, reply.release)


def test_asking_again_gives_the_same_release_and_costs_nothing(tmp_path):
    policy = make_site(tmp_path)
    first = ask(policy)
    assert [ask(policy) for _ in range(3)] == [first] * 3
    assert len(charges(policy)) == 1


SEX = {"name": "sex", "levels": ["female", "male"]}


@pytest.mark.parametrize(
    "telling",
    [{"features": [SEX]}, {"missing": "refuse"}],
    ids=["levels without other", "missing refused"],
)
def test_a_study_that_rows_could_refuse_waits_for_a_person(tmp_path, telling):
    study = changed(**telling)
    asked = request_of(study_toml(study))
    unattended = make_site(tmp_path / "unattended")
    named = make_site(tmp_path / "named", studies=[study.hash])
    assert ask(unattended, asked) == Answer("waiting", Reason.WAITING)
    assert charges(unattended) == []
    assert ask(named, asked).state == "released"


def test_a_site_that_died_after_paying_answers_without_paying_again(tmp_path, monkeypatch):
    policy = make_site(tmp_path, most={"epsilon_in_all": 1.0})
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "record", lambda *_arguments: 1 / 0)
        assert ask(policy) == Answer("refused", Reason.SITE)
    (paid,) = charges(policy)
    assert paid.release is None
    reply = ask(policy)
    assert reply.state == "released"
    (finished,) = charges(policy)
    assert (finished.id, finished.mu, finished.release) == (paid.id, paid.mu, reply.release)


# The policy.


@pytest.mark.parametrize(
    ("study", "policy", "reason"),
    [
        ({"epsilon": 2.0}, {}, Reason.EPSILON),
        ({"delta": 1e-5}, {}, Reason.DELTA),
        ({"name": "something-else"}, {}, Reason.STUDY),
        ({}, {"studies": ["sha256:" + "0" * 64]}, Reason.STUDY),
        ({}, {"columns": ["age", "days"]}, Reason.COLUMNS),
        ({}, {"columns": ["age", "sex"]}, Reason.COLUMNS),
        ({"relation": "add-remove"}, {"least_rows": 10}, Reason.COUNT),
        ({}, {"least_rows": 401}, Reason.ROWS),
        ({"response": {"name": "cost", "range": [0, 1]}}, {}, Reason.TABLE),
        ({}, {"data": ["nowhere.parquet"]}, Reason.TABLE),
        ({}, {"key": "nowhere.key"}, Reason.SITE),
    ],
)
def test_the_site_refuses_with_an_agreed_reason_and_pays_nothing(tmp_path, study, policy, reason):
    path = make_site(tmp_path, **policy)
    assert ask(path, request_of(study_toml(changed(**study)))) == Answer("refused", reason)
    assert charges(path) == []


def test_a_policy_takes_hashes_patterns_and_columns(tmp_path):
    for number, policy in enumerate(
        [
            {"studies": [STUDY.hash]},
            {"studies": None, "columns": ["age", "sex", "days", "more"]},
            {"least_rows": 400},
        ]
    ):
        assert ask(make_site(tmp_path / str(number), **policy)).state == "released"
    path = make_site(tmp_path / "add-remove", least_rows=400)
    public = changed(relation="add-remove", release={"count": "public"})
    assert ask(path, request_of(study_toml(public))).state == "released"


def test_what_may_be_spent_in_all_is_the_policys(tmp_path):
    path = make_site(tmp_path, most={"epsilon_in_all": 1.2})
    assert ask(path).state == "released"
    other = request_of(study_toml(changed(name="length-of-life", epsilon=0.9)))
    assert ask(path, other) == Answer("refused", Reason.BUDGET)
    small = request_of(study_toml(changed(name="length-of-life", epsilon=0.3)))
    assert ask(path, small).state == "released"
    (account,) = Ledger(tmp_path / "ledger.db").accounts()
    assert account.epsilon == 1.2
    assert account.epsilon_spent <= 1.2


def test_a_lower_limit_in_the_ledger_stays(tmp_path):
    path = make_site(tmp_path)
    Ledger(tmp_path / "ledger.db").set_limit("patients", 0.5, 1e-6)
    assert ask(path) == Answer("refused", Reason.BUDGET)


def test_the_message_cannot_name_a_policy(tmp_path):
    strict = make_site(tmp_path / "strict", studies=["nothing"])
    open_ = make_site(tmp_path / "open")
    assert ask(strict, policy=str(open_)) == Answer("refused", Reason.STUDY)
    smuggled = RecordDict(
        {"request": ConfigRecord({"version": 1, "study": TEXT, "policy": str(open_)})}
    )
    assert ask(strict, smuggled) == Answer("refused", Reason.UNREADABLE)
    assert ask(None, policy=str(open_)) == Answer("refused", Reason.SITE)


def test_the_policy_wins_over_a_release_that_was_made_before_it(tmp_path):
    ask(make_site(tmp_path))
    assert ask(make_site(tmp_path, studies=["nothing"])) == Answer("refused", Reason.STUDY)


# Requests that cannot be read.


@pytest.mark.parametrize(
    "content",
    [
        RecordDict(),
        RecordDict({"request": ConfigRecord({"version": 1, "study": 5})}),
        RecordDict({"request": ConfigRecord({"version": 2, "study": TEXT})}),
        RecordDict({"request": ConfigRecord({"version": True, "study": TEXT})}),
        RecordDict({"request": ConfigRecord({"study": TEXT})}),
        RecordDict({"request": ConfigRecord({"version": 1, "study": TEXT, "epsilon": 5.0})}),
        RecordDict(
            {"request": ConfigRecord({"version": 1, "study": TEXT}), "more": ConfigRecord()}
        ),
        RecordDict({"request": ArrayRecord()}),
        request_of(""),
        request_of("name = 'x'"),
        request_of(TEXT + "surprise = 1"),
        request_of("[" * 100_000),
        request_of("#" * (MOST_STUDY_BYTES + 1)),
        request_of("name = '\ud800'"),
    ],
)
def test_a_malformed_request_is_refused(tmp_path, content):
    path = make_site(tmp_path)
    assert ask(path, content) == Answer("refused", Reason.UNREADABLE)
    assert charges(path) == []


def test_no_exception_text_leaves_the_site(tmp_path, monkeypatch, caplog):
    def leak(*_arguments, **_options):
        raise ValueError("patient 4711 is 103 years old")

    monkeypatch.setattr("tacit.federation.client.answer.publish", leak)
    with caplog.at_level(logging.ERROR):
        assert ask(make_site(tmp_path)) == Answer("refused", Reason.SITE)
    assert "unexpected ValueError" in caplog.text


def test_a_detail_stays_in_the_sites_log(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "tacit.federation"):
        assert (
            ask(
                make_site(tmp_path),
                request_of(study_toml(changed(response={"name": "cost", "range": [0, 1]}))),
            ).reason
            == Reason.TABLE
        )
    assert "column named 'cost'" in caplog.text


# A person decides.


def test_a_study_waits_until_a_person_approves(tmp_path):
    path = make_site(tmp_path, approval=True)
    assert [ask(path), ask(path)] == [Answer("waiting", Reason.WAITING)] * 2
    assert charges(path) == []
    requests = Requests(Policy.load(path).requests)
    (waiting,) = requests.every()
    assert waiting.agreement() == STUDY.resolved()
    requests.decide(requests.find(STUDY.hash[:20]), "approved")
    assert ask(path).state == "released"
    other = request_of(study_toml(changed(epsilon=0.5)))
    assert ask(path, other).state == "waiting", "an approval is for one study"


def test_a_person_may_refuse(tmp_path):
    path = make_site(tmp_path, approval=True)
    ask(path)
    requests = Requests(Policy.load(path).requests)
    requests.decide(requests.find("length-of-stay"), "refused")
    assert ask(path) == Answer("refused", Reason.DECLINED)
    assert charges(path) == []


def test_a_request_changed_on_disk_approves_nothing(tmp_path):
    path = make_site(tmp_path, approval=True)
    ask(path)
    requests = Requests(Policy.load(path).requests)
    requests.decide(requests.find("length-of-stay"), "approved")
    (file,) = requests.folder.iterdir()
    file.write_text(file.read_text().replace("epsilon = 1.0", "epsilon = 0.5"))
    assert ask(path) == Answer("refused", Reason.SITE)


def test_only_so_many_requests_may_wait(tmp_path):
    requests = Requests(tmp_path)
    for number in range(MOST_WAITING):
        assert requests.ask(changed(name=f"length-of-{number}")) == "waiting"
    assert requests.ask(STUDY) is None
    assert answer(TEXT, Policy.load(make_site(tmp_path / "site"))).state == "released"


def test_a_request_is_found_by_name_or_hash_if_it_is_one(tmp_path):
    requests = Requests(tmp_path)
    with pytest.raises(FederationError, match="no request in"):
        requests.find("length-of-stay")
    for epsilon in (0.5, 1.0):
        requests.ask(changed(epsilon=epsilon))
    with pytest.raises(FederationError, match="2 requests in"):
        requests.find("length-of-stay")
    assert requests.find(STUDY.hash).agreement() == STUDY.resolved()


# A database.


def test_a_sites_rows_may_lie_in_a_database(tmp_path):
    path = tmp_path / "rows.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("create table stays (age real, sex text, days real)")
        rows = table(50).to_pylist()
        database.executemany("insert into stays values (:age, :sex, :days)", rows)
        database.commit()
    address = f"sqlite:////{path.relative_to('/')}"
    policy = make_site(tmp_path / "site", data=[address], query="select * from stays")
    assert Release.from_json(ask(policy).release).n == 50


@pytest.mark.parametrize(
    "fields",
    [
        {"data": ["sqlite:///rows.db"]},
        {"query": "select 1"},
        {"data": ["sqlite:///rows.db", "rows.parquet"], "query": "select 1"},
    ],
)
def test_a_database_needs_a_query_and_files_none(tmp_path, fields):
    with pytest.raises(PolicyError, match="a database stands alone and needs a query"):
        Policy.load(make_site(tmp_path, **fields))


# The policy's file.


def test_paths_in_a_policy_are_beside_it(tmp_path, monkeypatch):
    make_site(tmp_path / "site")
    monkeypatch.chdir(tmp_path)
    policy = Policy.load("site/holder.toml")
    assert (policy.ledger, policy.data) == (
        str(tmp_path / "site/ledger.db"),
        (str(tmp_path / "site/rows.parquet"),),
    )


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ('holder = "north"', "", "holder"),
        ("[most]", "[most]\nepsilons = 1", "epsilons"),
        ('studies = ["length-of-*"]', "", "name studies or columns"),
        ("epsilon = 1.0", "epsilon = 1e9", "epsilon"),
        ('holder = "north"', "holder = north", "not valid TOML"),
        ("approval = false", 'approval = "no"', "approval"),
    ],
)
def test_a_wrong_policy_is_refused_in_one_sentence(tmp_path, old, new, rule):
    path = make_site(tmp_path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(PolicyError, match=rule) as caught:
        Policy.load(path)
    assert "\n" not in str(caught.value)


def test_a_policy_that_is_not_there(tmp_path):
    with pytest.raises(PolicyError, match="cannot read the policy"):
        Policy.load(tmp_path / "holder.toml")


def test_a_ledger_that_cannot_be_used_is_the_sites_affair(tmp_path, monkeypatch):
    def broken(*_arguments):
        raise LedgerError("the ledger is damaged")

    monkeypatch.setattr(Ledger, "cap", broken)
    assert ask(make_site(tmp_path)) == Answer("refused", Reason.LEDGER)


# Answers.


@pytest.mark.parametrize(
    "content",
    [
        RecordDict(),
        record_of(Answer("released")),
        record_of(Answer("refused", Reason.TABLE, "{}")),
        record_of(Answer("refused")),
        record_of(Answer("gone", Reason.TABLE)),
        RecordDict(
            {
                "answer": ConfigRecord(
                    {
                        "version": 1,
                        "state": "refused",
                        "reason": "patient 4711 is ill",
                        "release": "",
                    }
                )
            }
        ),
        RecordDict(
            {
                "answer": ConfigRecord(
                    {"version": 1, "state": "refused", "reason": "", "release": b""}
                )
            }
        ),
    ],
)
def test_an_answer_outside_the_agreement_is_refused(content):
    with pytest.raises(FederationError, match="answer"):
        read_answer(content)


# Persons.


def visits(path, persons, **study):
    """Give a site's table persons, and ask for a study of them."""
    rows = pq.read_table(path.with_name("rows.parquet"))
    ids = pa.array([f"SECRET-{row % persons}" for row in range(len(rows))])
    pq.write_table(rows.append_column("patient", ids), path.with_name("rows.parquet"))
    asked = changed(person="patient", missing_person="alone", **study)
    return ask(path, request_of(study_toml(asked)))


def test_a_site_answers_for_persons_and_counts_those(tmp_path):
    path = make_site(tmp_path, least_rows=90)
    answer = visits(path, 90)
    assert Release.from_json(answer.release).n == 90
    assert "SECRET" not in answer.release
    few = make_site(tmp_path / "few", least_rows=90)
    assert visits(few, 89) == Answer("refused", Reason.ROWS)


def test_a_policy_that_lists_columns_lists_the_person_too(tmp_path):
    path = make_site(tmp_path, studies=None, columns=["age", "sex", "days"])
    assert visits(path, 90) == Answer("refused", Reason.COLUMNS)
    path = make_site(tmp_path / "all", studies=None, columns=["age", "sex", "days", "patient"])
    assert visits(path, 90).state == "released"


def test_a_study_that_refuses_rows_without_a_person_waits_for_one(tmp_path):
    path = make_site(tmp_path)
    asked = changed(person="patient")
    assert ask(path, request_of(study_toml(asked))) == Answer("waiting", Reason.WAITING)
