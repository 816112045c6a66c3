"""No row decides whether a table can be read: what cannot be read is missing, from every source.

Covers `tacit.rows.text`, `tacit.rows.objects`, `tacit.rows.arrow`, and what uses them in
`tacit.rows.table`, `tacit.rows.sql`, `tacit.rows.arriving` and `tacit.rows.design`.
"""

import math
import re
import sqlite3
import weakref
from contextlib import closing
from decimal import Decimal
from threading import Timer

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from studies import AGE, BMI, WARD, agreed

from tacit.holder.encode import Diagnostics
from tacit.holder.statistics import STATISTICS, statistics_of
from tacit.holder.tally import total_of
from tacit.rows import text as text_files
from tacit.rows.arriving import Text
from tacit.rows.arrow import NUMBER, numbers_in, strings_of
from tacit.rows.reading import Reading
from tacit.rows.sql import sql_table
from tacit.rows.table import table_of
from tacit.rows.written import Format

OTHER = WARD | {"other": "elsewhere"}
STUDIES = {missing: agreed([AGE, OTHER, BMI], missing=missing) for missing in ("drop", "impute")}
ROWS = 40
NAMES = ("age", "ward", "bmi", "days")


def cells():
    """A table as text, each column a list."""
    rng = np.random.default_rng(2)
    return {
        "age": [str(age) for age in rng.integers(18, 100, ROWS)],
        "ward": [str(ward) for ward in rng.integers(1, 4, ROWS)],
        "bmi": [f"{bmi:.1f}" for bmi in rng.normal(28, 4, ROWS)],
        "days": [str(days) for days in rng.integers(0, 30, ROWS)],
    }


def with_cell(column, cell, row=17):
    changed = cells()
    changed[column][row] = cell
    return changed


def as_lines(columns):
    quoted = [",".join(NAMES)] + [
        ",".join("" if cell is None else cell for cell in row)
        for row in zip(*(columns[name] for name in NAMES), strict=True)
    ]
    return "\n".join(quoted) + "\n"


def arrow(columns):
    return pa.table({name: pa.array(columns[name], pa.string()) for name in NAMES})


def write_sqlite(columns, folder):
    with closing(sqlite3.connect(folder / "t.db")) as connection, connection:
        connection.execute("CREATE TABLE t (age NUMERIC, ward, bmi NUMERIC, days NUMERIC)")
        rows = list(zip(*(columns[name] for name in NAMES), strict=True))
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    return sql_table(f"sqlite:///{folder}/t.db", "SELECT * FROM t")


def write_duckdb(columns, folder):
    pq.write_table(arrow(columns), folder / "d.parquet")
    return sql_table("duckdb://", f"SELECT * FROM '{folder}/d.parquet'")


def written(columns, path, write):
    write(arrow(columns), path)
    return path


def write_csv(columns, path):
    path.write_text(as_lines(columns), encoding="utf-8")
    return path


def mixed(columns):
    """Numbers where the text is one, and text where it is not, in the same column."""
    return {name: [_value(cell) for cell in column] for name, column in columns.items()}


def _value(cell):
    is_number = cell is not None and re.fullmatch(r"-?\d+(\.\d+)?", cell, re.ASCII)
    return float(cell) if is_number else cell


SOURCES = {
    "csv": lambda columns, folder: write_csv(columns, folder / "t.csv"),
    "parquet": lambda columns, folder: written(columns, folder / "t.parquet", pq.write_table),
    "feather": lambda columns, folder: written(
        columns, folder / "t.feather", pyarrow.feather.write_feather
    ),
    "arrow": lambda columns, _folder: arrow(columns),
    "pandas": lambda columns, _folder: pd.DataFrame(mixed(columns)),
    "pandas, text": lambda columns, _folder: pd.DataFrame(columns),
    "mapping": lambda columns, _folder: mixed(columns),
    "array": lambda columns, _folder: (
        np.array([mixed(columns)[name] for name in NAMES], dtype=object).T
    ),
    "sqlite": write_sqlite,
    "duckdb": write_duckdb,
}
UNREADABLE = ["<0.1", "1.5 mg", "abc", "1_000", "0x10", "--", "12e", "½", "1 2", "٣"]


def statistics(study, source):
    return total_of(STATISTICS, study, source)


def same(first, second):
    return first.n == second.n and np.array_equal(first.gram, second.gram)


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("missing", STUDIES)
def test_a_number_that_cannot_be_read_is_a_missing_value(tmp_path, kind, missing):
    study = STUDIES[missing]
    for column in ("age", "bmi", "days"):
        expected = statistics(study, arrow(with_cell(column, None)))
        assert expected.n == ROWS
        for place, cell in enumerate(UNREADABLE):
            folder = tmp_path / f"{column}{place}"
            folder.mkdir()
            source = SOURCES[kind](with_cell(column, cell), folder)
            assert same(statistics(study, source), expected), (column, cell)


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("missing", STUDIES)
@pytest.mark.parametrize("cell", ["1234.5", "north", "2.50"])
def test_any_other_level_is_the_other_one(tmp_path, kind, missing, cell):
    study = STUDIES[missing]
    expected = statistics(study, arrow(with_cell("ward", "elsewhere")))
    source = SOURCES[kind](with_cell("ward", cell), tmp_path)
    assert same(statistics(study, source), expected)


@pytest.mark.parametrize("wards", [[1.0, 2.0, 1234.5], [1.0, 2.0, -math.inf], [1.0, 2.0, 1e300]])
def test_floats_that_are_not_whole_are_the_other_level(wards):
    """One such value used to refuse the whole table, and its absence to publish it."""
    others = {"age": [40.0] * 3, "bmi": [20.0] * 3, "days": [1.0] * 3}
    expected = statistics(STUDIES["drop"], others | {"ward": ["1", "2", "elsewhere"]})
    for column in (wards, np.array(wards), pa.array(wards), pd.Series(wards)):
        assert same(statistics(STUDIES["drop"], others | {"ward": column}), expected)


@pytest.mark.parametrize(
    "value",
    [
        b"\xff\xfe",
        "\ud800",
        {"a": 1},
        [1],
        object(),
        Decimal("NaN"),
        -(10**9999),
        1j,
        float,
        (),
        "\0",
    ],
    ids=lambda value: type(value).__name__,
)
def test_python_objects_of_any_kind_can_be_read(value):
    columns = {name: [float(cell) for cell in column] for name, column in cells().items()}
    for name in NAMES:
        changed = columns | {name: [*columns[name][:-1], value]}
        for study in STUDIES.values():
            assert statistics(study, changed).n == ROWS
            assert statistics(study, pd.DataFrame(changed, dtype=object)).n == ROWS


@pytest.mark.parametrize("cell", [b"\xff\xfe", b"\xc3\x28", b"\x00"])
def test_bytes_that_are_no_letters_are_values_like_others(tmp_path, cell):
    for column in NAMES:
        text = as_lines(with_cell(column, "@")).encode().replace(b"@", cell)
        (tmp_path / "t.csv").write_bytes(text)
        columns = with_cell(column, None if column != "ward" else "elsewhere")
        expected = statistics(STUDIES["drop"], arrow(columns))
        assert same(statistics(STUDIES["drop"], tmp_path / "t.csv"), expected)


@pytest.mark.parametrize("row", ["1,2", "1,2,3,4,5", "1", "40,1,30,3,", "SECRET", "\udcff\udca5"])
@pytest.mark.parametrize("place", [1, ROWS // 2, ROWS])
def test_a_csv_row_out_of_shape_is_a_row_of_missing_values(tmp_path, row, place):
    """It must stay a row: the number of rows is published."""
    lines = as_lines(cells()).splitlines()
    missing = {
        name: [*column[: place - 1], None, *column[place:]] for name, column in cells().items()
    }
    lines[place] = row
    text = ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")
    (tmp_path / "t.csv").write_bytes(text)
    expected = statistics(STUDIES["drop"], arrow(missing))
    assert same(statistics(STUDIES["drop"], tmp_path / "t.csv"), expected)
    assert expected.n == ROWS
    batches = copies(Text(STUDIES["drop"], tmp_path / "t.csv", idle=0))
    assert same(statistics_of(STUDIES["drop"], batches), expected)


def copies(source):
    """What a stream gives out, before it overwrites it."""
    batches = []
    while source.wait():
        source.read(
            7,
            lambda batch: batches.append(
                pa.RecordBatch.from_pylist(batch.to_pylist(), schema=batch.schema)
            ),
        )
    return batches


def test_a_stream_reads_as_a_file_does(tmp_path):
    for column, cell in [("age", "<0.1"), ("days", "x"), ("ward", "1234.5"), ("bmi", '"1')]:
        write_csv(with_cell(column, cell), tmp_path / "t.csv")
        source = Text(STUDIES["drop"], tmp_path / "t.csv", idle=0)
        batches = copies(source)
        replaced = "elsewhere" if column == "ward" else None
        columns = with_cell(column, replaced)
        if column == "bmi":  # the mark is never closed: the line is no row
            columns = {name: [*values[:17], None, *values[18:]] for name, values in cells().items()}
        expected = statistics(STUDIES["drop"], arrow(columns))
        assert same(statistics_of(STUDIES["drop"], batches), expected)


def test_what_was_not_read_is_counted_for_the_holder():
    diagnostics = Diagnostics()
    table = table_of(arrow(with_cell("bmi", "<0.1")), STUDIES["drop"])
    statistics_of(STUDIES["drop"], table.batches(), diagnostics=diagnostics)
    assert diagnostics.incomplete == 1


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text("+-.eE0123456789infINFaty _x\t"), max_size=20))
def test_any_text_can_be_read_as_numbers(texts):
    column = pa.array(texts, pa.string())
    matched = pc.match_substring_regex(pc.ascii_trim_whitespace(column), NUMBER).to_pylist()
    for number, text, is_number in zip(numbers_in(column).to_pylist(), texts, matched, strict=True):
        assert number == (float(text) if is_number else None)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(width=64), max_size=20))
def test_any_floats_can_be_read_as_levels(floats):
    batch = pa.record_batch({"g": pa.array(floats, pa.float64())})
    for value, name in zip(floats, strings_of(batch, "g").to_pylist(), strict=True):
        if math.isnan(value):
            assert name is None
        elif value.is_integer() and abs(value) < 2**53:
            assert name == str(int(value))
        else:
            assert float(name) == value


def test_a_file_is_let_go_of_before_all_rows_were_given(tmp_path, monkeypatch):
    """Arrow reads in a thread of its own: what that still holds as a program ends aborts it."""
    made = []

    class Lingering(text_files._Decoding):
        def __init__(self, encoding):
            super().__init__(encoding)
            made.append(weakref.ref(self))

        def __call__(self, piece):
            if len(piece) == 0:
                kept = [self]
                Timer(0.2, kept.clear).start()
            return super().__call__(piece)

    monkeypatch.setattr(text_files, "_Decoding", Lingering)
    path = tmp_path / "table.csv"
    path.write_text(as_lines(cells()), encoding="utf-8")
    reading = Reading("table.csv", "text")
    batches = text_files.text_batches(path, NAMES, STUDIES["drop"], Format(), reading)
    assert sum(batch.num_rows for batch in batches) == ROWS
    assert len(made) == 2
    assert [decoding() for decoding in made] == [None, None]
