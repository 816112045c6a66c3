"""One account by default, a ledger that explains itself or was put back, a study by questions.

Covers `tacit.cli.ledger`, `tacit.cli.options`, `tacit.cli.study_questions`,
`tacit.holder.explanation`.
"""

import shutil

from tacit.study import Study

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


def test_the_ledger_explains_how_charges_add_up(tacit):
    tacit("ledger", "limit", "--dataset", "patients", "--epsilon", "2", "--delta", "1e-6")
    tacit(*PUBLISH)
    code, out, _ = tacit("ledger", "explain")
    assert code == 0
    words = " ".join(out.split())
    assert "Spent: 1. Left: 1.673" in words
    assert "squares of these add up" in words
    assert max(map(len, out.splitlines())) <= 80
    assert "squares add up" in tacit("ledger", "show")[1]
    code, _, err = tacit("ledger", "explain", "--dataset", "other")
    assert (code, "no data set 'other'" in err) == (2, True)


def test_a_near_name_of_a_data_set_is_asked_about(tacit):
    tacit("ledger", "limit", "--dataset", "patients", "--epsilon", "2", "--delta", "1e-6")
    code, _, err = tacit(*PUBLISH, "--dataset", "patient")
    assert code == 2
    assert "did you mean 'patients'?" in err


def test_the_ledger_fits_eighty_columns_without_breaking_words(tacit, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    tacit(*PUBLISH)
    out = tacit("ledger", "show")[1]
    assert max(map(len, out.splitlines())) <= 80
    assert "length-of-stay" in out
    assert "stored" in out


def test_the_tutorials_tables_are_written_once_and_overwrite_nothing(tacit, house):
    (house / "study.toml").unlink()
    code, out, _ = tacit("demo", "--tables")
    assert code == 0
    names = {"study.toml", "patients.csv", "south.csv", "east.csv"}
    assert all((house / name).exists() and name in out for name in names)
    assert tacit("demo", "--tables")[0] == 0
    (house / "south.csv").write_text("mine", encoding="utf-8")
    code, _, err = tacit("demo", "--tables")
    assert (code, "exists already and is another file" in err) == (2, True)
    assert (house / "south.csv").read_text(encoding="utf-8") == "mine"


def test_a_study_is_written_by_answering_questions(tacit, house, monkeypatch):
    columns = ["days", "days:0..30", "age", "age:18..100", "sex:f|m", ""]
    answers = iter([*columns, 2.0, 1e-6, "5,000", "0", "5000 8000"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.prompt", lambda *_words, **_options: next(answers))
    code, out, _ = tacit("study", "new", "--out", "asked.toml")
    assert code == 0
    assert out.count("must be NAME:LOW..HIGH") == 2
    study = Study.load(house / "asked.toml")
    assert (study.epsilon, study.columns) == (2.0, ("(intercept)", "age", "sex[m]"))
    assert (out.count("without a comma"), study.planned_rows) == (2, (5000, 8000))
    assert study.visit_count > 1
    answers = iter([*columns, 2.0, 1e-6, ""])
    assert tacit("study", "new", "--out", "unknown.toml")[0] == 0
    assert Study.load(house / "unknown.toml").planned_rows == ()
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert "give --response" in tacit("study", "new", "--out", "other.toml")[2]


def test_a_new_study_may_say_more(tacit, house):
    said = ("--relation", "add-remove", "--missing", "impute", "--typical", "age:30..80")
    columns = ("--response", "days:0..30", "--columns", "age:18..100", "--holder", "north")
    assert tacit("study", "new", *columns, *said, "--out", "more.toml")[0] == 0
    study = Study.load(house / "more.toml")
    assert (study.relation, study.missing, study.holders) == ("add-remove", "impute", ("north",))
    assert study.features[0].typical == (30, 80)
    wrong = tacit("study", "new", *columns, "--typical", "bmi:1..2", "--out", "no.toml")[2]
    assert "--typical must be" in wrong
