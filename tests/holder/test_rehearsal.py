"""A rehearsal counts what is there, shouts where it must, costs nothing, and stays in the house.

Covers `tacit.holder.rehearsal`, `tacit.holder.rehearse`, `tacit.holder.rehearsal_words`,
`tacit.holder.remarks`, `tacit.holder.watch`, `tacit.holder.paying`.
"""

import json
import re
import sqlite3
import stat

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest
from studies import AGE, BMI, DAYS, agreed

from tacit.errors import TableError
from tacit.holder.ledger import Ledger
from tacit.holder.publish import publish, rehearse
from tacit.holder.rehearsal import STAYS_HERE, Persons
from tacit.holder.rehearsal_words import picture
from tacit.holder.remarks import likely_person
from tacit.holder.watch import LevelsSeen
from tacit.privacy.gaussian import epsilon_of, mu_of
from tacit.rows.sql import sql_table

SEX = {"name": "sex", "levels": ["f", "m"], "other": "other"}
STUDY = agreed([AGE, SEX, BMI])
COUNT = 400


def columns(**changed):
    rng = np.random.default_rng(7)
    plain = {
        "age": rng.uniform(20, 90, COUNT),
        "sex": rng.choice(["f", "m"], COUNT),
        "bmi": rng.normal(28, 4, COUNT),
        "days": rng.uniform(1, 20, COUNT),
    }
    return plain | changed


def seen(table, study=STUDY, **fields):
    return rehearse(study, table, holder="north", ledger="ledger.db", **fields)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def column(rehearsal, name):
    return next(each for each in rehearsal.columns if each.name == name)


def test_an_ordinary_table_is_not_shouted_at_and_nothing_is_left_behind(folder):
    rehearsal = seen(columns())
    assert rehearsal.shouts == ()
    assert (rehearsal.rows, rehearsal.incomplete) == (COUNT, 0)
    assert [each.name for each in rehearsal.columns] == ["age", "sex", "bmi", "days"]
    assert list(folder.iterdir()) == []


def test_every_column_is_counted_exactly_over_any_batches():
    table = pa.table(columns(age=np.r_[np.full(3, 17.0), np.full(5, 101.0), np.arange(392) % 83]))
    table = table.set_column(2, "bmi", pa.array([None] * 7 + [20.0] * 393))
    whole = seen(table)
    age = column(whole, "age")
    values = table["age"].to_numpy()
    assert age.below == np.count_nonzero(values < 18)
    assert age.above == 5
    expected, _ = np.histogram(values, bins=24, range=(18, 100))
    assert age.counts == tuple(expected)
    assert (age.least, age.most) == (values.min(), values.max())
    assert column(whole, "bmi").missing == 7
    assert column(whole, "bmi").first.missing == (1, 2, 3, 4, 5)
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=17))
    pieces = seen(reader)
    for one, other in zip(whole.columns, pieces.columns, strict=True):
        assert (one.counts, one.levels, one.missing) == (other.counts, other.levels, other.missing)
        assert one.first == other.first
    assert pieces.lengths == whole.lengths


def test_values_at_both_ends_lie_inside():
    age = column(seen(columns(age=np.r_[np.full(200, 18.0), np.full(200, 100.0)])), "age")
    assert age.clamped == 0
    assert age.counts[0] == age.counts[-1] == 200


def test_the_lengths_are_those_of_the_encoded_rows():
    study = agreed([AGE], intercept=True)
    ages = np.full(COUNT, 100.0)
    rehearsal = seen({"age": ages, "days": np.full(COUNT, 3.0)}, study)
    assert rehearsal.lengths.longest == study.longest_row
    assert rehearsal.lengths.counts[-1] == COUNT
    assert rehearsal.lengths.shrunk == COUNT


def test_a_radius_that_a_question_will_tell_is_not_told():
    """Rows of several visits are shrunk as each question says, and not as the study does."""
    table = {"age": np.full(COUNT, 100.0), "days": np.full(COUNT, 3.0)}
    rehearsal = seen(table, agreed([AGE], intercept=True, planned_rows=[COUNT], visits=4))
    assert rehearsal.lengths is None
    assert rehearsal.document()["lengths"] is None
    assert "radius" not in str(rehearsal)


SHOUTS = {
    "mostly clamped": ({"bmi": np.linspace(40, 60, COUNT)}, "'bmi'.*outside 15 to 50"),
    "a code outside": (
        {"bmi": np.r_[np.full(40, -999.0), np.full(360, 25.0) + np.arange(360) / 99]},
        "-999 is there 40 times",
    ),
    "a code inside": (
        {"days": np.r_[np.zeros(250), np.linspace(10, 20, 150)]},
        "0 makes up .* apart from all other values",
    ),
    "text": ({"age": ["3,5"] * 40 + ["44"] * 360}, "'age': 40 of 400 values .* are no numbers"),
    "all text": ({"age": ["44 years"] * COUNT}, "'age' has no value that can be used"),
    "mostly missing": ({"bmi": np.r_[np.full(300, np.nan), np.full(100, 25)]}, "'bmi'.*missing"),
    "strange levels": ({"sex": ["F"] * 200 + ["m"] * 200}, r"not list \('F'\), near 'f'"),
    "no row": ({name: [] for name in columns()}, "no row"),
}


@pytest.mark.parametrize("case", SHOUTS)
def test_what_is_wrong_is_shouted(case):
    changed, words = SHOUTS[case]
    table = columns(**changed)
    rehearsal = seen(table)
    assert re.search(words, "\n".join(rehearsal.shouts)), rehearsal.remarks


@pytest.mark.parametrize(
    "changed",
    [
        {"age": np.r_[np.full(5, 130.0), np.full(395, 50.0)]},
        {"bmi": np.r_[np.full(30, 60.0) + np.arange(30) / 9, np.full(370, 25.0)]},
        {"days": np.arange(COUNT) % 8},
        {"age": np.tile([20.0, 50.0, 80.0, 99.0], 100)},
        {"sex": ["x"] * 8 + ["f"] * 392},
    ],
    ids=["few outside", "some outside", "counts with many zeros", "few values", "few strangers"],
)
def test_what_may_well_be_right_is_remarked_at_most(changed):
    assert seen(columns(**changed)).shouts == ()


def test_a_level_that_would_be_refused_is_shown_with_its_rows_and_refused_when_paying():
    study = agreed([AGE, {"name": "sex", "levels": ["f", "m"]}, BMI])
    table = columns(sex=["f"] * 398 + ["x", "x"])
    sex = column(seen(table, study), "sex")
    assert (sex.unknown, sex.strangers, sex.first.unknown) == (2, (("x", 2),), (399, 400))
    with pytest.raises(TableError, match="a level that the study does not list") as caught:
        publish(study, table, holder="north", ledger="ledger.db", confirm=lambda _rehearsal: None)
    assert "399" not in str(caught.value)
    assert not Ledger("ledger.db").exists()


def test_a_table_with_gaps_that_the_study_refuses_is_shown_and_refused_when_paying():
    study = agreed([AGE, BMI], missing="refuse")
    table = columns(bmi=np.r_[np.nan, np.full(399, 25.0)])
    assert any("refuses such a table" in sentence for sentence in seen(table, study).shouts)
    with pytest.raises(TableError, match="missing values"):
        publish(study, table, holder="north", ledger="ledger.db", confirm=lambda _rehearsal: None)


def test_what_it_would_cost_is_what_it_then_costs():
    book = Ledger("ledger.db")
    book.set_limit("default", 2.0, 1e-6)
    first = seen(columns()).cost
    publish(STUDY, columns(), holder="north", ledger=book)
    (account,) = book.accounts()
    assert first.spent_afterwards == account.epsilon_spent
    assert first.left_afterwards == account.epsilon_left
    assert (first.refusal, first.limit, first.is_new) == (None, 2.0, True)
    left = (mu_of(2.0, 1e-6) ** 2 - mu_of(1.0, 1e-6) ** 2) ** 0.5
    assert first.left_afterwards == pytest.approx(epsilon_of(left, 1e-6))
    second = seen(columns()).cost
    assert "published from data set 'default' already" in second.refusal
    assert seen(columns(), again=True).cost.refusal is None
    assert "not 'other'" in seen(columns(), dataset="other").cost.refusal
    assert len(book.accounts()[0].charges) == 1


def test_confirming_sees_the_rows_that_are_published_and_can_stop():
    heard = []
    publish(STUDY, columns(), holder="north", ledger="a.db", confirm=heard.append)
    assert heard[0].rows == COUNT

    def stop(_rehearsal):
        raise TableError("no")

    with pytest.raises(TableError, match="no"):
        publish(STUDY, columns(), holder="north", ledger="b.db", confirm=stop)
    assert not Ledger("b.db").exists()


def test_a_rehearsal_is_written_for_the_holder_alone_and_says_that_it_stays(folder):
    rehearsal = seen(columns(bmi=np.full(COUNT, -999.0)))
    rehearsal.save("kept.json")
    document = json.loads((folder / "kept.json").read_text(encoding="utf-8"))
    assert list(document)[:2] == ["format", "mark"]
    assert document["mark"] == STAYS_HERE
    assert stat.S_IMODE((folder / "kept.json").stat().st_mode) == 0o600
    rehearsal.save("kept.txt")
    text = (folder / "kept.txt").read_text(encoding="utf-8")
    assert text.startswith("Rehearsal; stays here")
    assert max(map(len, text.splitlines())) <= 80
    assert "STOP" in text


def test_pictures_show_whatever_is_there():
    assert picture((0, 1, 1000, 500)) == " ▁█▄"
    assert picture((0, 0)) == "  "


def test_identifiers_are_remarked():
    rehearsal = seen(columns(age=np.arange(COUNT) + 10_000.0))
    assert any("as identifiers are" in remark.sentence for remark in rehearsal.remarks)


def test_the_response_is_a_column_too():
    days = column(seen(columns(days=np.full(COUNT, 31.0) + np.arange(COUNT))), "days")
    assert days.role == "response"
    assert days.expected == f"a number from {DAYS['range'][0]} to {DAYS['range'][1]}"
    assert days.above == COUNT


def test_persons_with_several_rows_are_loud_unless_the_study_is_of_persons():
    table = pa.table(columns(patient=np.arange(COUNT) // 4))
    pa.csv.write_csv(table, "table.csv")
    rehearsal = seen("table.csv", person="patient")
    assert rehearsal.persons == Persons("patient", persons=100, repeated=100, most_rows=4)
    assert any('person = "patient"' in sentence for sentence in rehearsal.shouts)
    of_persons = seen("table.csv", agreed([AGE, SEX, BMI], person="patient"))
    assert of_persons.persons.repeated == 100
    assert of_persons.shouts == ()


def test_letters_that_are_none_are_a_level_like_any_other():
    broken = pa.array([b"\xe4\xa5", b"female"], pa.binary()).view(pa.string())
    seen = LevelsSeen(("female", "male"))
    seen.add(broken, pa.array([None, 0], pa.int32()))
    assert seen.unknown == 1
    assert list(seen.strangers) == ["\ufffd"]


PERSONS = ("patient", "Patient ID", "PATIENT_NR", "subjid", "usubjid", "MRN", "id", "personHash")
OTHERS = ("ward_id", "patients_seen", "identity", "days", "idle", "paid", "member_since")


@pytest.mark.parametrize("name", PERSONS)
def test_a_column_that_says_whose_a_row_is_is_known_by_its_name(name):
    assert likely_person(["age", *OTHERS, name], STUDY) == name


@pytest.mark.parametrize("name", OTHERS)
def test_other_columns_are_not_taken_for_persons(name):
    assert likely_person(["age", name], STUDY) is None


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather", "pandas", "polars", "sql"])
def test_a_likely_identifier_that_repeats_is_loud_from_every_source(kind):
    rows = pd.DataFrame(columns()).assign(patient_id=np.arange(COUNT) % 100)
    assert seen(rows.drop(columns="patient_id")).persons is None
    rehearsal = seen(source_of(kind, rows))
    assert rehearsal.persons == Persons(
        "patient_id", persons=100, repeated=100, most_rows=COUNT // 100
    )
    assert any('person = "patient_id"' in sentence for sentence in rehearsal.shouts)


def source_of(kind, rows):
    """The same rows, as people have them."""
    if kind == "sql":
        with sqlite3.connect("table.db") as database:
            rows.to_sql("visits", database, index=False)
        return sql_table("sqlite:///table.db", "SELECT * FROM visits;")
    if kind in {"pandas", "polars"}:
        return rows if kind == "pandas" else pl.from_pandas(rows)
    write = {"csv": rows.to_csv, "parquet": rows.to_parquet, "feather": rows.to_feather}[kind]
    write(f"table.{kind}", **({"index": False} if kind == "csv" else {}))
    return f"table.{kind}"


def test_all_visits_are_said_to_leave():
    study = agreed([AGE, SEX, BMI], planned_rows=[COUNT], visits=4)
    places, times, *rest = seen(pd.DataFrame(columns()), study).leaves
    assert places.startswith("sums and squares, with noise, of the response")
    assert times.startswith("3 times what follows, of rows as each visit")
    assert any("X'X with noise" in line for line in rest)
    (first, *_) = seen(pd.DataFrame(columns())).leaves
    assert first.startswith("X'X with noise")
