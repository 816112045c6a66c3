"""Visits from every kind of source: each visit reads the same rows as a local table has.

Covers `tacit.holder.visits` and `tacit.holder.tally` where rows come from files, databases, persons
and formulas.
"""

import sqlite3
from contextlib import closing
from functools import partial
from unittest import mock

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit import Ledger, Study, publish, sql_table
from tacit.errors import TableError
from tacit.holder.charge import Purpose
from tacit.holder.visits import converse, read_table
from tacit.simulation import seeded

PLAIN = Study.from_document(
    {
        "name": "sources",
        "epsilon": 3.0,
        "delta": 1e-6,
        "response": {"name": "y", "range": [-50.0, 100.0]},
        "features": [{"name": "a", "range": [0.0, 200.0]}, {"name": "b", "range": [0.0, 1.0]}],
        "planned_rows": [400],
        "visits": 4,
    }
)
FORMULA = Study.from_formula(
    "y ~ poly(a, 2) + b",
    {"a": (0, 200), "b": (0, 1), "y": (-50, 100)},
    name="sources",
    epsilon=3.0,
    delta=1e-6,
    planned_rows=[400],
    visits=4,
)
PERSONS = Study.from_document(PLAIN.document() | {"person": "id", "release": {}})


def rows(n=400):
    rng = np.random.default_rng(5)
    a = rng.normal(60, 8, n)
    b = rng.uniform(0, 1, n)
    y = 3 + 0.2 * a + b + rng.normal(0, 1, n)
    return {"a": a, "b": b, "y": y, "id": np.arange(n) % 150}


def database(folder):
    path = folder / "rows.db"
    names = list(rows())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE t ({', '.join(names)})")
        lines = [tuple(column.tolist()[k] for column in rows().values()) for k in range(400)]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", lines)
        connection.commit()
    return sql_table(f"sqlite:///{path}", "select * from t")


def parquet(folder):
    pq.write_table(pa.table(rows()), folder / "rows.parquet")
    return folder / "rows.parquet"


def frame(_folder):
    return pl.DataFrame(rows())


def talked(study, source):
    """All answers, with noise of one seed."""
    sampler = seeded(np.random.default_rng(7))
    release = converse(study, partial(read_table, study, source), Purpose("north"), sampler)
    return release.visit.places, release.answers


@pytest.mark.parametrize("study", [PLAIN, FORMULA, PERSONS], ids=["plain", "formula", "persons"])
@pytest.mark.parametrize("source", [database, parquet, frame])
def test_every_visit_reads_the_rows_of_a_local_table(tmp_path, study, source):
    assert talked(study, source(tmp_path)) == talked(study, pa.table(rows()))


def test_a_query_is_published_in_one_message(tmp_path):
    release = publish(PLAIN, database(tmp_path), holder="north", ledger=tmp_path / "ledger.db")
    assert [answer.n for answer in release.answers] == [400] * 3
    (account,) = Ledger(tmp_path / "ledger.db").accounts()
    assert [charge.epsilon for charge in account.charges] == [3.0]


def test_persons_are_counted_at_every_visit(tmp_path):
    release = publish(PERSONS, rows(), holder="north", ledger=tmp_path / "ledger.db")
    assert [answer.n for answer in release.answers] == [150] * 3


def test_a_reader_that_can_be_read_once_is_refused_before_it_is_paid(tmp_path):
    reader = pa.table(rows()).to_reader()
    with pytest.raises(TableError, match="can be read once alone"):
        publish(PLAIN, reader, holder="north", ledger=tmp_path / "ledger.db")
    assert not (tmp_path / "ledger.db").exists()


class Once:
    """A stream of rows that is empty when it is read again."""

    def __init__(self):
        self.batches = pa.table(rows()).to_batches()

    def __arrow_c_stream__(self, requested_schema=None):
        batches = self.batches
        self.batches = []
        table = pa.Table.from_batches(batches, schema=pa.table(rows()).schema)
        return table.__arrow_c_stream__(requested_schema)


def test_rows_that_are_gone_at_a_later_visit_are_refused_before_they_are_paid(tmp_path):
    with pytest.raises(TableError, match="can be read once alone"):
        publish(PLAIN, Once(), holder="north", ledger=tmp_path / "ledger.db")
    assert not (tmp_path / "ledger.db").exists()


def test_it_would_be_noticed_if_a_visit_read_other_rows():
    some = {name: column[:399] for name, column in rows().items()}
    assert talked(PLAIN, some) != talked(PLAIN, rows())
    with mock.patch("tacit.holder.places.BLOCK_ROWS", 7):
        assert talked(PLAIN, rows()) == talked(PLAIN, rows())
