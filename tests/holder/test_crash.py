"""Killed, interrupted or crowded, a holder may waste budget but never overspends it, and no release
is half-written.

Covers `tacit.holder.publish`, `tacit.holder.charge` and `tacit.holder.ledger`.
"""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from crashing import ROWS, STUDY, admitting

from tacit.errors import BudgetError, LedgerError, TacitError
from tacit.holder import perturb as perturbing
from tacit.holder import publish as publishing
from tacit.holder.ledger import Ledger
from tacit.holder.publish import publish


def run(work, folder, *arguments, **environment):
    script = Path(__file__).with_name("crashing.py")
    done = subprocess.run(
        [sys.executable, script, work, folder, json.dumps(arguments)],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def charges(path):
    (account,) = Ledger(path).accounts()
    return account.charges


def test_100_kills(tmp_path):
    """Of 200 kills about 100 fell into a write of the ledger and 45 into one of a release."""
    totals = run("kills", tmp_path, 100, 1)
    assert totals["kills"] == 100
    assert totals["files"] > 25
    assert totals["in_ledger"] > 5, (
        "no kill fell into a write of the ledger: the test does not test"
    )
    assert totals["in_release"] > 3, (
        "no kill fell into a write of a release: the test does not test"
    )
    assert 0 < totals["lost"] < totals["charges"]


def test_kills_with_persons(tmp_path):
    totals = run("kills", tmp_path, 40, 3, CRASH_PERSON="id")
    assert totals["kills"] == 40
    assert totals["files"] > 5
    assert 0 < totals["lost"] < totals["charges"]


@pytest.mark.slow
def test_2000_kills(tmp_path):
    assert run("kills", tmp_path, 2000, 2)["kills"] == 2000


@pytest.mark.parametrize("persons", [{}, {"CRASH_PERSON": "id"}], ids=["rows", "persons"])
def test_a_kill_before_any_sql_statement_wastes_at_most_one_charge(tmp_path, persons):
    *killed, survived = run("statements", tmp_path, **persons)
    assert survived == {"charges": 1, "lost": 0, "files": 1, "killed": 0}
    stages = [(outcome["charges"], outcome["lost"], outcome["files"]) for outcome in killed]
    assert set(stages) == {(0, 0, 0), (1, 1, 0)}, (
        "nothing is paid; then it is paid and lost; with its release stored nothing runs any more"
    )
    assert stages == sorted(stages)


@pytest.mark.parametrize("admitted", [5, 16])
def test_16_processes_at_once_are_admitted_up_to_the_limit(tmp_path, admitted):
    found = run("at_once", tmp_path, 16, admitted)
    assert found == {
        "charges": admitted,
        "lost": 0,
        "files": admitted,
        "published": admitted,
        "refused": 16 - admitted,
    }


def test_16_processes_at_once_make_one_ledger(tmp_path):
    found = run("at_once", tmp_path, 16, None)
    assert found == {"charges": 1, "lost": 0, "files": 1, "published": 1, "refused": 15}


# Faults between the steps.


class FaultError(Exception):
    """Something that breaks at the worst moment."""


def breaks(*_arguments, **_options):
    raise FaultError


@pytest.mark.parametrize("step", ["privatise", "record"])
def test_a_fault_after_the_charge_is_made_good_by_publishing_again(tmp_path, monkeypatch, step):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.set_limit("default", admitting(1), STUDY.delta)
    with monkeypatch.context() as patch:
        patch.setattr(publishing if step == "privatise" else Ledger, step, breaks)
        with pytest.raises(FaultError):
            publish(STUDY, ROWS, holder="north", ledger=ledger)
    (lost,) = charges(ledger.path)
    assert lost.release is None
    with pytest.raises(LedgerError, match="publish the study again"):
        ledger.release(lost.id)
    with pytest.raises(BudgetError):  # what another holder's name paid for is not theirs
        publish(STUDY, ROWS, holder="south", ledger=ledger)
    release = publish(STUDY, ROWS, holder="north", ledger=ledger)
    (finished,) = charges(ledger.path)
    assert (finished.id, finished.release) == (lost.id, release.to_json())
    with pytest.raises(BudgetError):
        publish(STUDY, ROWS, holder="north", ledger=ledger, again=True)


def test_of_two_who_finish_one_charge_only_one_publishes(tmp_path, monkeypatch):
    ledger, draw = Ledger(tmp_path / "ledger.db"), publishing.privatise
    first = []

    def overtaken(*arguments):
        monkeypatch.setattr(publishing, "privatise", draw)
        first.append(publish(STUDY, ROWS, holder="north", ledger=ledger))
        return draw(*arguments)

    monkeypatch.setattr(publishing, "privatise", overtaken)
    with pytest.raises(LedgerError, match="no charge 1 that waits"):
        publish(STUDY, ROWS, holder="north", ledger=ledger)
    (charge,) = charges(ledger.path)
    assert charge.release == first[0].to_json()


def test_a_fault_inside_the_charge_leaves_nothing(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.set_limit("default", admitting(1), STUDY.delta)
    with monkeypatch.context() as patch:
        patch.setattr("tacit.holder.ledger._refuse_mixed", breaks)
        with pytest.raises(FaultError):
            publish(STUDY, ROWS, holder="north", ledger=ledger)
    assert charges(ledger.path) == ()


def test_the_charge_is_on_disk_before_noise_is_drawn(tmp_path, monkeypatch):
    path, draw, found = tmp_path / "ledger.db", perturbing.secure_noise, []

    def looks_first(sds, lattice):
        with closing(sqlite3.connect(path)) as database:
            found.extend(database.execute("SELECT mu, release FROM charge").fetchall())
        return draw(sds, lattice)

    monkeypatch.setattr(perturbing, "secure_noise", looks_first)
    release = publish(STUDY, ROWS, holder="north", ledger=path)
    assert found == [(release.mu, None)]


def test_no_noise_is_drawn_when_the_budget_is_exhausted(tmp_path, monkeypatch):
    publish(STUDY, ROWS, holder="north", ledger=tmp_path / "ledger.db")
    monkeypatch.setattr(perturbing, "secure_noise", breaks)
    with pytest.raises(BudgetError):
        publish(STUDY, ROWS, holder="north", ledger=tmp_path / "ledger.db", again=True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"holder": ""},
        {"holder": "two\nlines"},
        {"holder": "x" * 201},
        {"epsilon": 2.0},
        {"delta": 0.0},
        {"key": "no such key"},
        {"table": {"x": [0.5]}},
        {"table": {"x": pa.array([[0.5]]), "y": [0.5]}},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_what_cannot_be_published_is_found_before_it_is_paid(tmp_path, wrong):
    options = {"holder": "north", "table": ROWS} | wrong
    with pytest.raises(TacitError):
        publish(STUDY, options.pop("table"), ledger=tmp_path / "ledger.db", **options)
    assert not (tmp_path / "ledger.db").exists()


def test_too_many_rows_for_the_eigenvalue_are_found_before_they_are_paid(tmp_path, monkeypatch):
    study = STUDY.model_copy(
        update={"release": STUDY.release.model_copy(update={"smallest_eigenvalue": True})}
    )
    monkeypatch.setattr(perturbing, "MOST_ROWS_FOR_EIGENVALUE", 10)
    with pytest.raises(TacitError, match="smallest_eigenvalue is published for tables of at most"):
        publish(study, ROWS, holder="north", ledger=tmp_path / "ledger.db")
    assert not (tmp_path / "ledger.db").exists()
