"""Tables as they come: each of a collection is read right, or refused with the way out.

Covers `tacit.rows.written`, `tacit.rows.text`, `tacit.rows.cells`, `tacit.rows.codes`,
`tacit.rows.names`, `tacit.rows.sheets`, `tacit.rows.packages`, `tacit.rows.reading`.
"""

import re

import numpy as np
import pyarrow as pa
import pytest
from messy import AGES, BMIS, CASES, DAYS, SEXES, text
from studies import agreed

from tacit.errors import TableError
from tacit.holder.publish import rehearse
from tacit.holder.statistics import statistics_of
from tacit.rows.cells import Numbers
from tacit.rows.codes import levels_in
from tacit.rows.names import near
from tacit.rows.reading import Reading, numbers_in_files
from tacit.rows.table import table_of
from tacit.rows.written import Format

STUDY = agreed(
    [
        {"name": "age", "range": [18, 100]},
        {"name": "bmi", "range": [15, 50]},
        {"name": "sex", "levels": ["f", "m"]},
    ]
)
PATIENTS = {"age": AGES, "bmi": BMIS, "sex": SEXES, "days": DAYS}


def statistics(source, form=Format()):  # noqa: B008 - a frozen record
    return statistics_of(STUDY, table_of(source, STUDY, form=form).batches())


EXPECTED = statistics(pa.table(PATIENTS))


def test_the_collection_is_large_and_each_file_has_its_name():
    assert len(CASES) >= 60
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_table_is_read_right_or_refused_with_the_way_out(tmp_path, case):
    path = tmp_path / case.name
    case.write(path)
    if case.refusal is not None:
        with pytest.raises(TableError, match=case.refusal) as caught:
            statistics(path, case.said)
        assert not any(str(days) in str(caught.value) for days in DAYS if days != int(days))
        return
    source = table_of(path, STUDY, form=case.said)
    if case.shouts is not None:
        rehearsal = rehearse(STUDY, source, holder="h", ledger=tmp_path / "l.db")
        said = "\n".join(remark.sentence for remark in rehearsal.remarks)
        assert re.search(case.shouts, said), said
        return
    total = statistics_of(STUDY, source.batches())
    assert total.n == EXPECTED.n + case.extra
    assert np.array_equal(total.gram, EXPECTED.gram)
    assert source.readings()[0].given == len(AGES)


@pytest.mark.parametrize(
    ("decimal", "cells"),
    [
        ("plain", {"3.5": 3.5, " 4 ": 4, "3,5": None, "1 234": None, "1e3": 1000, "": None}),
        ("free", {"3.5": 3.5, "3,5": 3.5, "1.234,5": 1234.5, "1 234,5": 1234.5, ",5": 0.5}),
        ("free", {"1'234.5": 1234.5, "1'234": 1234, "1.234": 1.234, "1,2,3": None, "-3,5": -3.5}),
        (",", {"1.234": 1234, "3,5": 3.5, "1.234,5": 1234.5, "12.5": None, "1.5": None}),
        (".", {"1,234": 1234, "3.5": 3.5, "3,5": None, "1,234,567.8": 1234567.8, "1 000": 1000}),
    ],
)
def test_what_a_cell_means(decimal, cells):
    read = Numbers(decimal).read(pa.array(list(cells)), "x").to_pylist()
    expected = [float("nan") if value is None else value for value in cells.values()]
    np.testing.assert_array_equal(np.array(read, dtype=float), np.array(expected))


def test_a_cell_means_the_same_whatever_stands_beside_it():
    """One row must not decide how all others are read."""
    cells = ["3,5", "1.234", "1.234,5", "7", "x", None, "1'000"]
    for decimal in ("plain", "free", ",", "."):
        together = Numbers(decimal).read(pa.array(cells), "x").to_pylist()
        alone = [Numbers(decimal).read(pa.array([c], pa.string()), "x")[0].as_py() for c in cells]
        np.testing.assert_array_equal(np.array(together, dtype=float), np.array(alone, dtype=float))


@pytest.mark.parametrize("line", ["1.234;2", "3,5;2", '"', "ü", "sep=,", "age;days", "-----"])
def test_no_row_changes_how_the_others_are_read(tmp_path, line):
    path = tmp_path / "table.csv"
    lines = text(";").splitlines()
    quiet = "13;50;25;f;3;"
    for added in (quiet, f"13;50;25;f;3;{line}" if line != '"' else quiet, line):
        if added == '"':
            continue  # an open quotation mark ends nowhere: such a file is not whole
        path.write_text("\n".join([*lines, added]) + "\n", encoding="utf-8")
        batches = list(table_of(path, STUDY).batches())
        ages = [age for batch in batches for age in batch["age"].to_pylist()]
        assert ages[: len(AGES)] == AGES


def test_bytes_that_are_no_utf8_are_read_one_by_one(tmp_path):
    path = tmp_path / "table.csv"
    study = agreed([{"name": "ward", "levels": ["Küche", "Öl"]}])
    rows = [b"ward,days", "Küche,1".encode(), "Küche,2".encode("cp1252"), b"\xd6l,3"]
    path.write_bytes(b"\n".join(rows) + b"\n")
    (batch, _) = table_of(path, study).batches()
    assert batch["ward"].to_pylist() == ["Küche", "Küche", "Öl"]


def test_a_level_is_itself_before_it_is_a_code():
    texts = pa.array(["-", "?", " 1.0 ", "2.", "3.5", None, "NA"])
    values, places = levels_in(texts, ["1", "2", "-"])
    assert places.to_pylist() == [2, None, 0, 1, None, None, None]
    assert values.to_pylist() == ["-", None, " 1.0 ", "2.", "3.5", None, None]


def test_codes_that_are_levels_are_refused(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(text(), encoding="utf-8")
    with pytest.raises(TableError, match="'f' is a level of the study"):
        table_of(path, STUDY, form=Format(missing=("f",)))


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"separator": "ab"}, "separator must be one sign"),
        ({"decimal": ";"}, "decimal must be"),
        ({"decimal": ",", "thousands": ","}, "two different signs"),
        ({"encoding": "latin-99"}, "encoding 'latin-99' is not known"),
        ({"encoding": "rot13"}, "encoding 'rot13' is not known"),
        ({"header": 0}, "from 1 on"),
    ],
)
def test_what_cannot_be_said_of_a_file_is_refused(fields, rule):
    with pytest.raises(TableError, match=rule):
        Format(**fields)


def test_rows_are_named_as_the_file_numbers_them(tmp_path):
    path = tmp_path / "table.csv"
    lines = text().splitlines()
    lines[3:3] = ["13,44"]  # the third row is out of shape, and the last stands for it
    path.write_text("\n".join([*lines, "14,200,20,f,3,"]) + "\n", encoding="utf-8")
    rehearsal = rehearse(STUDY, table_of(path, STUDY), holder="h", ledger=tmp_path / "l.db")
    age = rehearsal.columns[0]
    assert age.first.outside == (14,)
    assert 3 in age.first.missing
    assert "1 row" in "\n".join(remark.sentence for remark in rehearsal.remarks)
    several = (Reading("a.csv", "text", given=5), Reading("b.csv", "text", given=5))
    assert numbers_in_files([5, 6], several) == ("a.csv:5", "b.csv:1")


def test_near_names_are_near():
    assert near("age", ["Age ", "wage", "patient"]) == ["Age ", "wage"]
    assert near("length_of_stay", ["LengthOfStay", "los"]) == ["LengthOfStay"]
    assert near("age", ["52", "31.5", "f"]) == []
