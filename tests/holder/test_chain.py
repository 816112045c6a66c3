"""The chain of charges, its witness, and the names of data sets.

Covers `tacit.holder.chain`, `tacit.holder.ledger_file`, `tacit.holder.account`,
`tacit.holder.refusals`, `tacit.privacy.account`.
"""

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from tacit import Study, publish
from tacit.errors import LedgerError
from tacit.holder.account import Charge
from tacit.holder.chain import GENESIS, Mark, Witness, next_head
from tacit.holder.ledger import Ledger
from tacit.holder.ledger_file import canonical_name
from tacit.release import Release

STUDY = Study.from_toml('name="s"\nepsilon=1\ndelta=1e-6\n[response]\nname="y"\nrange=[0,1]')
OTHER = Study.from_toml('name="t"\nepsilon=1\ndelta=1e-6\n[response]\nname="y"\nrange=[0,2]')
ROWS = {"y": [0.5, 0.25, 0.75]}
CHARGE = Charge(
    id=0,
    dataset="patients",
    study="study",
    study_hash="sha256:one",
    holder="north",
    epsilon=0.1,
    delta=1e-6,
    mu=0.02,
    time="2026-01-31T09:30:00Z",
    release=None,
)


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.set_limit("patients", 5.0, 1e-6)
    return ledger


def charged(ledger, count):
    for number in range(count):
        ledger.pay(replace(CHARGE, study_hash=f"sha256:{number}"), "replace-one")


def publish_to(ledger, study=STUDY, **options):
    return publish(study, ROWS, holder="north", ledger=ledger, dataset="patients", **options)


# The chain.


def test_a_release_states_the_charge_that_paid_for_it_and_the_head(ledger):
    charged(ledger, 2)
    release = publish_to(ledger)
    assert release.ledger == ledger.receipt(3)
    assert Release.from_json(release.to_json()).ledger == release.ledger
    heads = {ledger.receipt(number).head for number in (1, 2, 3)}
    assert len(heads) == 3
    assert GENESIS not in heads


def test_every_field_of_a_charge_is_in_its_head():
    fields = ("patients", "study", "sha256:one", "north", 1.0, 1e-6, 0.2, "2026-01-31T09:30:00Z")
    head = next_head(GENESIS, fields)
    for place, value in enumerate(fields):
        other = "x" if isinstance(value, str) else value * (1 + 2.0**-52)
        assert next_head(GENESIS, (*fields[:place], other, *fields[place + 1 :])) != head
    assert next_head(head, fields) != head


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE charge SET mu = mu / 2 WHERE id = 2",
        "UPDATE charge SET epsilon = 0.01 WHERE id = 1",
        "UPDATE charge SET dataset = 'other' WHERE id = 3",
        "DELETE FROM charge WHERE id = 1",
        "UPDATE charge SET head = NULL WHERE id = 3",
    ],
)
def test_a_number_changed_in_the_file_is_noticed_at_once(ledger, change):
    charged(ledger, 3)
    with closing(sqlite3.connect(ledger.path)) as database:
        database.execute(change)
        database.commit()
    for use in (ledger.accounts, lambda: charged(ledger, 1)):
        with pytest.raises(LedgerError, match=r"was changed: charge \d does not fit its hash"):
            use()


# A ledger put back from an older copy.


def test_an_older_copy_publishes_nothing(ledger, tmp_path):
    charged(ledger, 2)
    shutil.copy(ledger.path, tmp_path / "backup.db")
    publish_to(ledger)
    shutil.copy(tmp_path / "backup.db", ledger.path)
    with pytest.raises(LedgerError, match="lacks charges that were made before"):
        publish_to(ledger, OTHER)
    assert len(ledger.accounts()[0].charges) == 2, "it can still be read"


def test_an_emptied_ledger_is_noticed_too(ledger):
    charged(ledger, 1)
    ledger.path.unlink()
    ledger.set_limit("patients", 5.0, 1e-6)
    with pytest.raises(LedgerError, match="lacks charges"):
        publish_to(ledger)


def test_another_history_of_the_same_length_is_noticed(ledger, tmp_path):
    charged(ledger, 1)
    shutil.copy(ledger.path, tmp_path / "backup.db")
    publish_to(ledger)
    shutil.copy(tmp_path / "backup.db", ledger.path)
    Witness(ledger.path).path.unlink()
    publish_to(ledger, OTHER)
    first = Mark(charges=2, head=ledger.receipt(2).head)
    Witness(ledger.path).replace(replace(first, head=GENESIS))
    with pytest.raises(LedgerError, match="lacks charges"):
        charged(ledger, 3)


def test_a_power_cut_before_the_witness_is_written_harms_nothing(ledger, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Witness, "write", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            publish_to(ledger)
    assert publish_to(ledger).ledger.charge == 1, "the charge is finished, not made again"
    assert Witness(ledger.path).read() == Mark(charges=1, head=ledger.receipt(1).head)


def test_a_witness_never_goes_back(ledger):
    charged(ledger, 3)
    known = Witness(ledger.path).read()
    Witness(ledger.path).write(Mark(charges=2, head=ledger.receipt(2).head))
    assert Witness(ledger.path).read() == known


def test_a_damaged_witness_is_told(ledger):
    charged(ledger, 1)
    Witness(ledger.path).path.write_text("{", encoding="utf-8")
    with pytest.raises(LedgerError, match="cannot be read"):
        charged(ledger, 2)


def test_missing_charges_are_entered_again_and_the_ledger_goes_on(ledger, tmp_path):
    charged(ledger, 1)
    shutil.copy(ledger.path, tmp_path / "backup.db")
    release = publish_to(ledger)
    spent = ledger.accounts()[0].spent
    shutil.copy(tmp_path / "backup.db", ledger.path)
    with pytest.raises(LedgerError, match="still lacks 1 charges"):
        ledger.mend([], "replace-one")
    lost = replace(
        CHARGE,
        study="s",
        study_hash=release.study_hash,
        epsilon=release.epsilon,
        mu=release.mu,
        release=release.to_json(),
    )
    ledger.mend([lost], "replace-one")
    assert ledger.accounts()[0].spent == spent
    with pytest.raises(LedgerError, match="published from data set 'patients' already"):
        publish_to(ledger)
    publish_to(ledger, OTHER)


def test_a_loss_can_be_accepted_by_name_alone(ledger):
    charged(ledger, 2)
    ledger.path.unlink()
    ledger.set_limit("patients", 5.0, 1e-6)
    ledger.mend([], "replace-one", accept_loss=True)
    publish_to(ledger)


# Names of data sets.


@pytest.mark.parametrize(
    "name", ["patients ", "Patients", " PATIENTS", "pati\uff45nts", "patients\n", "patients\t"]
)
def test_letter_case_and_spacing_make_no_other_data_set(ledger, name):
    charged(ledger, 1)
    ledger.pay(replace(CHARGE, dataset=name), "replace-one")
    ledger.set_limit(name, 4.0, 1e-6)
    ledger.cap(name, 3.0, 1e-6)
    [account] = ledger.accounts()
    assert (account.dataset, len(account.charges), account.epsilon) == ("patients", 2, 3.0)


@pytest.mark.parametrize("name", ["", "  ", "\n", "a\x00b", "x" * 201])
def test_a_name_that_names_nothing_is_refused(ledger, name):
    with pytest.raises(LedgerError, match="needs a name"):
        ledger.pay(replace(CHARGE, dataset=name), "replace-one")
    assert canonical_name("Straße") == canonical_name("STRASSE")


def test_another_name_must_be_said_to_be_of_other_persons(ledger):
    with pytest.raises(LedgerError, match="knows the data set 'patients', not 'default'"):
        publish(STUDY, ROWS, holder="north", ledger=ledger)
    assert ledger.accounts()[0].charges == ()
    publish(STUDY, ROWS, holder="north", ledger=ledger, new_dataset=True)
    with pytest.raises(LedgerError, match="published this study from data set 'default' already"):
        publish_to(ledger)
    publish_to(ledger, new_dataset=True)
    assert [len(account.charges) for account in ledger.accounts()] == [1, 1]


def test_the_data_sets_of_an_older_ledger_are_united(tmp_path):
    path = tmp_path / "ledger.db"
    Ledger(path).set_limit("default", 3.0, 1e-6)
    with closing(sqlite3.connect(path)) as database:
        database.execute("ALTER TABLE charge DROP COLUMN head")
        database.execute("ALTER TABLE dataset DROP COLUMN person")
        for name, epsilon in (("Default", 2.0), ("default ", 4.0)):
            database.execute(
                "INSERT INTO dataset VALUES (?, 'replace-one', ?, 1e-6)", (name, epsilon)
            )
            database.execute(
                "INSERT INTO charge (dataset, study, study_hash, holder, epsilon, delta, mu, time) "
                "VALUES (?, 's', ?, 'n', 1.0, 1e-6, 0.2, '2026-01-31T09:30:00Z')",
                (name, name),
            )
        database.commit()
    [account] = Ledger(path).accounts()
    assert (account.dataset, account.epsilon, account.mus) == ("default", 2.0, (0.2, 0.2))
