"""The ledger: limits, exact composition, and what it refuses."""

import math
import sqlite3
import threading
from dataclasses import replace

import numpy as np
import pytest

from tacit.errors import BudgetError, LedgerError
from tacit.holder.account import Charge
from tacit.holder.ledger import Ledger, default_path
from tacit.holder.publish import publish
from tacit.holder.stream.ledger import Terms, start_stream
from tacit.privacy.gaussian import epsilon_of, mu_of
from tacit.study import Study

STUDY = Study.from_document(
    {
        "name": "ledger-test",
        "epsilon": 1.0,
        "delta": 1e-6,
        "response": {"name": "y", "range": [0, 1]},
        "features": [{"name": "x", "range": [0, 1]}],
    }
)
ROWS = {"x": np.linspace(0, 1, 50), "y": np.linspace(1, 0, 50)}


def charge_of(epsilon=1.0, delta=1e-6, study_hash="sha256:one", dataset="patients"):
    return Charge(
        0,
        dataset,
        "study",
        study_hash,
        "north",
        epsilon,
        delta,
        mu_of(epsilon, delta),
        "2026-01-31T09:30:00Z",
        None,
    )


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.db")


def account(ledger, dataset="patients"):
    return next(account for account in ledger.accounts() if account.dataset == dataset)


# Limits and composition.


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(1e-3, 1e-15), (0.1, 1e-9), (1.0, 1e-6), (1 / 3, 1e-5), (8.0, 1e-12), (100.0, 0.1)],
)
def test_the_first_charge_sets_the_limit_and_fills_it_exactly(ledger, epsilon, delta):
    ledger.pay(charge_of(epsilon, delta), "replace-one")
    state = account(ledger)
    assert (state.epsilon, state.delta) == (epsilon, delta)
    assert state.spent == state.limit
    assert state.epsilon_left == 0.0
    with pytest.raises(BudgetError):
        ledger.pay(charge_of(1e-3, delta, "sha256:two"), "replace-one")


def test_charges_compose_as_the_root_of_the_sum_of_squares(ledger):
    ledger.set_limit("patients", 10.0, 1e-6)
    budgets = [(1.0, 1e-6), (0.5, 1e-7), (2.0, 1e-9), (0.1, 1e-6)]
    for number, budget in enumerate(budgets):
        ledger.pay(charge_of(*budget, f"sha256:{number}"), "replace-one")
    expected = math.sqrt(sum(mu_of(*budget) ** 2 for budget in budgets))
    assert account(ledger).spent == pytest.approx(expected, rel=1e-15)
    assert account(ledger).epsilon_spent == pytest.approx(epsilon_of(expected, 1e-6), rel=1e-12)


@pytest.mark.parametrize("releases", [2, 7, 25])
def test_a_limit_admits_as_many_charges_as_fit_and_no_more(ledger, releases):
    each = charge_of(0.5)
    limit = epsilon_of(each.mu * math.sqrt(releases), 1e-6) * (1 + 1e-9)
    ledger.set_limit("patients", limit, 1e-6)
    for number in range(releases):
        ledger.pay(replace(each, study_hash=f"sha256:{number}"), "replace-one")
    with pytest.raises(BudgetError):
        ledger.pay(replace(each, study_hash="sha256:last"), "replace-one")
    state = account(ledger)
    assert len(state.charges) == releases
    assert state.spent <= state.limit


def test_what_is_left_can_be_spent_and_then_nothing_is_left(ledger):
    ledger.set_limit("patients", 2.0, 1e-6)
    ledger.pay(charge_of(1.0), "replace-one")
    left = account(ledger).epsilon_left
    assert 0 < left < 2.0
    ledger.pay(charge_of(left * (1 - 1e-9), study_hash="sha256:two"), "replace-one")
    assert account(ledger).spent == pytest.approx(account(ledger).limit, rel=1e-6)
    with pytest.raises(BudgetError):
        ledger.pay(charge_of(0.01, study_hash="sha256:three"), "replace-one")


def test_a_refusal_says_how_much_is_left_and_charges_nothing(ledger):
    ledger.set_limit("patients", 1.2, 1e-6)
    ledger.pay(charge_of(1.0), "replace-one")
    left = account(ledger).epsilon_left
    with pytest.raises(
        BudgetError,
        match=f"epsilon = {left:.4g} at delta = 1e-06 left of its limit 1.2: nothing was published",
    ):
        ledger.pay(charge_of(1.0, study_hash="sha256:two"), "replace-one")
    assert len(account(ledger).charges) == 1


def test_a_refused_first_charge_leaves_no_data_set_behind(ledger):
    ledger.set_limit("other", 1.0, 1e-6)
    with pytest.raises(LedgerError):
        ledger.pay(replace(charge_of(), mu=math.inf), "replace-one")
    assert [state.dataset for state in ledger.accounts()] == ["other"]


def test_data_sets_have_budgets_of_their_own(ledger):
    ledger.pay(charge_of(), "replace-one")
    ledger.pay(charge_of(dataset="staff"), "add-remove", new_dataset=True)
    assert [(state.dataset, state.relation) for state in ledger.accounts()] == [
        ("patients", "replace-one"),
        ("staff", "add-remove"),
    ]


def test_a_limit_can_be_raised_but_not_set_below_what_is_spent(ledger):
    ledger.pay(charge_of(1.0), "replace-one")
    with pytest.raises(
        LedgerError, match=r"has already spent epsilon = 1 .*the limit cannot be lower"
    ):
        ledger.set_limit("patients", 0.9, 1e-6)
    assert account(ledger).epsilon == 1.0
    assert ledger.set_limit("patients", 3.0, 1e-6).epsilon_left > 0
    ledger.pay(charge_of(1.0, study_hash="sha256:two"), "replace-one")


def test_the_same_epsilon_at_a_smaller_delta_is_a_lower_limit(ledger):
    ledger.pay(charge_of(1.0, 1e-6), "replace-one")
    with pytest.raises(LedgerError, match="the limit cannot be lower"):
        ledger.set_limit("patients", 1.0, 1e-9)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (0.0, 1e-6),
        (-1.0, 1e-6),
        (math.nan, 1e-6),
        (math.inf, 1e-6),
        (1.0, 0.0),
        (1.0, 0.5),
        (1.0, math.nan),
    ],
)
def test_an_impossible_limit_is_refused(ledger, epsilon, delta):
    with pytest.raises(LedgerError, match=r"a limit needs epsilon in .* and delta in"):
        ledger.set_limit("patients", epsilon, delta)
    assert not ledger.path.exists()


# What is not mixed or repeated.


def test_relations_are_not_mixed(ledger):
    ledger.set_limit("patients", 10.0, 1e-6)
    ledger.pay(charge_of(), "add-remove")
    with pytest.raises(
        LedgerError, match="was charged under add-remove: replace-one cannot be added up with it"
    ):
        ledger.pay(charge_of(study_hash="sha256:two"), "replace-one")
    assert len(account(ledger).charges) == 1


def test_a_published_study_is_refused_unless_again(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.set_limit("default", 5.0, 1e-6)
    publish(STUDY, ROWS, holder="north", ledger=ledger)
    with pytest.raises(
        LedgerError,
        match=r"already, as charge 1: `tacit ledger export 1` .* `again` pays for a new one",
    ):
        publish(STUDY, ROWS, holder="north", ledger=ledger)
    assert len(account(ledger, "default").charges) == 1
    publish(STUDY, ROWS, holder="north", ledger=ledger, again=True)
    assert len(account(ledger, "default").charges) == 2


def test_an_interrupted_charge_for_something_else_is_not_taken(ledger):
    ledger.set_limit("default", 5.0, 1e-6)
    ledger.pay(replace(charge_of(dataset="default"), study_hash=STUDY.hash, mu=0.01), "replace-one")
    publish(STUDY, ROWS, holder="north", ledger=ledger)
    assert [charge.release is None for charge in account(ledger, "default").charges] == [
        True,
        False,
    ]


def test_a_stream_and_a_release_never_share_a_charge(ledger):
    ledger.set_limit("default", 5.0, 1e-6)
    charge = replace(charge_of(dataset="default"), study_hash=STUDY.hash)
    interrupted = ledger.pay(charge, "replace-one").charge
    stream = start_stream(
        ledger, charge, "replace-one", Terms(batch_rows=10, batches_per_person=1, source="rows.csv")
    )
    assert stream.charge != interrupted, (
        "whoever was interrupted may still be at work, and store a release"
    )
    with pytest.raises(LedgerError, match="already, as charge"):
        ledger.pay(charge, "replace-one")


def test_a_cap_lowers_a_limit_and_never_raises_it(ledger):
    ledger.cap("default", 2.0, 1e-6)
    assert account(ledger, "default").epsilon == 2.0
    ledger.cap("default", 5.0, 1e-6)
    assert account(ledger, "default").epsilon == 2.0
    ledger.cap("default", 0.5, 1e-6)
    assert account(ledger, "default").epsilon == 0.5


def test_the_release_of_a_study_is_found_again(ledger):
    assert ledger.released("default", STUDY.hash) is None
    release = publish(STUDY, ROWS, holder="north", ledger=ledger)
    assert ledger.released("default", STUDY.hash) == release.to_json()
    assert ledger.released("other", STUDY.hash) is None
    assert ledger.released("default", "sha256:" + "0" * 64) is None


# Releases again.


def test_export_gives_the_same_bytes_and_costs_nothing(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    release = publish(STUDY, ROWS, holder="Sjukhuset i norr – Ω", ledger=ledger)
    release.save(tmp_path / "north.json")
    spent = account(ledger, "default").spent
    assert ledger.release(1).encode() == (tmp_path / "north.json").read_bytes()
    assert ledger.release(1) == ledger.release(1)
    assert account(ledger, "default").spent == spent
    assert len(account(ledger, "default").charges) == 1


def test_a_charge_without_its_release_says_so(ledger):
    ledger.pay(charge_of(), "replace-one")
    with pytest.raises(
        LedgerError, match="charge 1 has no release: publishing was interrupted after it was paid"
    ):
        ledger.release(1)
    with pytest.raises(LedgerError, match="no charge 2"):
        ledger.release(2)


def test_a_release_is_stored_once(ledger):
    number = ledger.pay(charge_of(), "replace-one").charge
    ledger.record(number, "first")
    for wrong in (number, number + 1):
        with pytest.raises(LedgerError, match=f"no charge {wrong} that waits"):
            ledger.record(wrong, "second")
    assert ledger.release(number) == "first"


# Files.


def test_a_ledger_that_is_not_there_is_not_made_by_looking(ledger):
    with pytest.raises(LedgerError, match="there is no ledger at"):
        ledger.accounts()
    assert not ledger.path.exists()


def test_a_ledger_makes_its_folder(tmp_path):
    ledger = Ledger(tmp_path / "a" / "b" / "ledger.db")
    ledger.pay(charge_of(), "replace-one")
    assert len(ledger.accounts()) == 1


def test_a_foreign_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "foreign.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE patients (name TEXT)")
    database.close()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="is a database, but not a Tacit ledger"):
        Ledger(path).pay(charge_of(), "replace-one")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [b"not a database at all" * 100, b"\x00" * 4096, b"SQLite format 3\x00" + b"\xff" * 5000],
)
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "ledger.db"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="cannot be used"):
        Ledger(path).pay(charge_of(), "replace-one")
    assert path.read_bytes() == content


def test_a_damaged_ledger_is_a_ledger_error_wherever_the_damage_is(ledger):
    for number in range(30):
        ledger.pay(charge_of(0.01, dataset=f"data set {number}"), "replace-one", new_dataset=True)
    whole = ledger.path.read_bytes()
    rng = np.random.default_rng(5)
    for start in rng.integers(0, len(whole) - 600, 40):
        damaged = bytearray(whole)
        damaged[start : start + 600] = rng.bytes(600)
        ledger.path.write_bytes(damaged)
        try:
            for state in ledger.accounts():
                assert state.spent >= 0
            ledger.pay(
                charge_of(0.01, study_hash="sha256:two", dataset="data set 3"),
                "replace-one",
                again=True,
            )
        except LedgerError:
            pass


def test_a_folder_in_the_ledgers_place_is_refused(tmp_path):
    with pytest.raises(LedgerError, match="cannot be used"):
        Ledger(tmp_path).pay(charge_of(), "replace-one")
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="cannot be used"):
        Ledger(tmp_path / "file" / "ledger.db").pay(charge_of(), "replace-one")


def test_the_default_path_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("TACIT_LEDGER", raising=False)
    assert default_path() == tmp_path / "tacit" / "ledger.db"
    monkeypatch.setenv("TACIT_LEDGER", str(tmp_path / "mine.db"))
    assert default_path() == tmp_path / "mine.db"


def test_a_charge_waits_for_another_writer(ledger):
    ledger.set_limit("patients", 10.0, 1e-6)
    other = sqlite3.connect(ledger.path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.3, lambda: other.execute("COMMIT"))
    timer.start()
    ledger.pay(charge_of(), "replace-one")
    timer.join()
    other.close()
    assert len(account(ledger).charges) == 1
