"""`tacit next` and `tacit publish --question`: visits by files.

Covers `tacit.cli.asking` and `tacit.visits.messages`.
"""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from typer.testing import CliRunner

from tacit.cli import app
from tacit.errors import ReleaseError, TacitError

STUDY = """
name = "visited"
epsilon = 3.0
delta = 1e-6
planned_rows = [500, 500]
visits = 3

[response]
name = "y"
range = [-50, 100]

[[features]]
name = "a"
range = [0, 200]
"""
NAMES = ("north", "south")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    for seed, name in enumerate(NAMES):
        rng = np.random.default_rng(seed)
        a = rng.normal(60, 8, 500)
        table = pa.table({"a": a, "y": 3 + 0.2 * a + rng.normal(0, 1, 500)})
        pyarrow.csv.write_csv(table, tmp_path / f"{name}.csv")
    return tmp_path


def run(*words, fails=False):
    outcome = CliRunner().invoke(app, list(words), catch_exceptions=True)
    if fails:
        assert isinstance(outcome.exception, ReleaseError)
        return str(outcome.exception)
    assert outcome.exit_code == 0, (outcome.output, outcome.exception)
    return outcome.output


def publish(visit, *more):
    """What is said of the last holder's message."""
    said = [
        run(
            *("publish", "study.toml", f"{name}.csv", "--holder", name),
            *("--ledger", f"{name}.db", "--out", f"{name}{visit}.json", "--anyway", *more),
        )
        for name in NAMES
    ]
    return said[-1]


def test_three_visits_by_files(folder):
    said = publish(1)
    assert "south1.json: visit 1 of 3, the release of 'south' for study" in said
    assert "the next visit costs nothing more: its question is made by `tacit next`" in said
    sentence = run("fit", "north1.json", "--out", "posterior.parquet", fails=True)
    assert "this is the message of a first visit" in sentence
    said = run("next", "north1.json", "south1.json", "--out", "q2.json")
    assert "visit 2 of 3, made of 2 releases and of nothing else" in said
    publish(2, "--question", "q2.json")
    run("next", "north2.json", "south2.json", "--out", "q3.json")
    assert "just what these releases lead to" in run(
        "next", "south2.json", "north2.json", "--verify", "q3.json"
    )
    said = publish(3, "--question", "q3.json")
    assert "south3.json: visit 3 of 3, the release" in said
    assert "next visit" not in said
    run("fit", "north3.json", "south3.json", "--out", "posterior.parquet")
    assert (folder / "posterior.parquet").exists()
    done = run("next", "north3.json", "south3.json", "--out", "q4.json", fails=True)
    assert "all 3 visits are done" in done


def test_a_question_that_was_changed_is_noticed(folder):
    publish(1)
    run("next", "north1.json", "south1.json", "--out", "q2.json")
    question = json.loads((folder / "q2.json").read_text())
    question["bound"] *= 1.01
    (folder / "changed.json").write_text(json.dumps(question))
    sentence = run("next", "north1.json", "south1.json", "--verify", "changed.json", fails=True)
    assert "this one was changed" in sentence
    sentence = run("next", "north1.json", "--verify", "q2.json", fails=True)
    assert "not made of these releases" in sentence


@pytest.mark.usefixtures("folder")
def test_what_does_not_go_together_is_refused():
    publish(1)
    assert "give either --out" in run("next", "north1.json", fails=True)
    assert "twice" in run("next", "north1.json", "north1.json", "--out", "q.json", fails=True)
    assert "cannot read" in run("next", "nothing.json", "--out", "q.json", fails=True)


def test_a_poisoned_release_is_named_before_anything_is_asked(folder):
    publish(1)
    document = json.loads((folder / "north1.json").read_text())
    document["totals"][0] = 1e12
    (folder / "north1.json").write_text(json.dumps(document))
    refusal = run("next", "north1.json", "south1.json", "--out", "q.json", fails=True)
    assert "the release of 'north' is implausible: an entry of totals" in refusal


def test_a_ledger_that_lost_visits_is_mended_and_answers_none_of_them_again(folder):
    """The last message tells of every visit before it; each costs what it did."""
    publish(1)
    backup = (folder / "north.db").read_bytes()
    run("next", "north1.json", "south1.json", "--out", "q2.json")
    publish(2, "--question", "q2.json")
    spent = run("ledger", "show", "--ledger", "north.db", "--json")
    (folder / "north.db").write_bytes(backup)
    mend = ("ledger", "mend", "--ledger", "north.db", "--dataset", "default")
    assert "1 charges entered, 2 in all" in run(*mend, "north1.json", "north2.json")
    left = ("epsilon_left", "epsilon_spent")
    (before,), (after,) = map(
        json.loads, (spent, run("ledger", "show", "--ledger", "north.db", "--json"))
    )
    assert [before[name] for name in left] == [after[name] for name in left]
    (folder / "north.db").unlink()
    (folder / "north.db.witness").unlink(missing_ok=True)
    run("ledger", "limit", "--ledger", "north.db", "--epsilon", "3", "--delta", "1e-6")
    assert "2 charges entered" in run(*mend, "--accept-loss", "north2.json")
    again = CliRunner().invoke(
        app,
        [
            *("publish", "study.toml", "north.csv", "--holder", "north", "--anyway"),
            *("--ledger", "north.db", "--question", "q2.json", "--out", "again.json"),
        ],
    )
    assert isinstance(again.exception, TacitError)
    assert not (folder / "again.json").exists()
