"""One account by default, and a ledger that was put back: `cli/ledger.py`, `cli/options.py`."""

import shutil

PUBLISH = ("publish", "study.toml", "table.csv", "--holder", "north", "--out", "north.json")


def test_the_only_data_set_of_a_ledger_pays(tacit):
    tacit("ledger", "limit", "--dataset", "Patients", "--epsilon", 3, "--delta", 1e-6)
    code, out, err = tacit(*PUBLISH)
    assert (code, err) == (0, "")
    assert "by data set 'patients'" in out


def test_another_name_is_refused_unless_it_is_said_to_be_new(tacit, house):
    tacit("ledger", "limit", "--dataset", "patients", "--epsilon", 3, "--delta", 1e-6)
    code, _, err = tacit(*PUBLISH, "--dataset", "patient")
    assert code == 2
    assert "knows the data set 'patients', not 'patient'" in err
    assert not (house / "north.json").exists()
    code, out, _ = tacit(*PUBLISH, "--dataset", "staff", "--new-dataset")
    assert code == 0
    assert "by data set 'staff'" in out


def test_a_ledger_put_back_is_noticed_and_mended(tacit, house):
    tacit("ledger", "limit", "--epsilon", 3, "--delta", 1e-6)
    shutil.copy(house / "ledger.db", house / "backup.db")
    assert tacit(*PUBLISH)[0] == 0
    left = tacit("ledger", "show")[1].splitlines()[0]
    shutil.copy(house / "backup.db", house / "ledger.db")
    code, _, err = tacit(*PUBLISH)
    assert code == 2
    assert "put back from an older copy" in err
    code, out, err = tacit("ledger", "mend", "north.json", "--dataset", "default")
    assert (code, err) == (0, "")
    assert "1 charges entered, 1 in all" in out
    assert tacit("ledger", "show")[1].splitlines()[0] == left
    assert "already, as charge 1" in tacit(*PUBLISH)[2]
    assert "0 charges entered" in tacit("ledger", "mend", "north.json", "--dataset", "default")[1]


def test_a_gap_must_be_accepted(tacit, house):
    tacit("ledger", "limit", "--epsilon", 3, "--delta", 1e-6)
    assert tacit(*PUBLISH)[0] == 0
    (house / "ledger.db").unlink()
    assert tacit("ledger", "limit", "--epsilon", 3, "--delta", 1e-6)[0] == 0
    (house / "table.csv").write_text((house / "table.csv").read_text() * 2)
    other = house / "other.json"
    shutil.copy(house / "north.json", other)
    code, _, err = tacit("ledger", "mend", "study.toml", "--dataset", "default")
    assert code == 2
    assert "not valid JSON" in err
    assert tacit("ledger", "mend", other, "--dataset", "default")[0] == 0
