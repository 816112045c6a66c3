"""SQLite and DuckDB as sources of rows: the same statistics as from files, read only, and no error
quotes a value.

Covers `tacit.rows.sql` with SQLite and DuckDB, and `tacit.rows.drivers`.
"""

import sqlite3
import subprocess
import sys
from contextlib import closing

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from studies import agreed

from tacit.errors import TableError
from tacit.holder.statistics import STATISTICS
from tacit.holder.tally import total_of
from tacit.rows.sql import SQLITE_ROWS, database_file, sql_table

SECRET = "SECRET9953"  # noqa: S105
STUDY = agreed()
COUNT = SQLITE_ROWS + 500
"""More than is fetched at once."""


def rows():
    rng = np.random.default_rng(8)
    bmi = np.where(rng.random(COUNT) < 0.02, np.nan, rng.normal(28, 6, COUNT))
    bmi[:SQLITE_ROWS] = np.nan  # a column that was added late: empty in all that is fetched first
    columns = {
        "age": rng.integers(10, 110, COUNT),
        "ward": rng.integers(1, 4, COUNT),
        "bmi": pa.array(bmi, from_pandas=True),
        "days": rng.gamma(2, 4, COUNT),
    }
    return pa.table(columns)


ROWS = rows()
EXPECTED = total_of(STATISTICS, STUDY, ROWS)


def make_sqlite(path):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE stays (age INTEGER, ward INTEGER, bmi REAL, days REAL, note TEXT)"
        )
        values = [(*row.values(), SECRET) for row in ROWS.to_pylist()]
        connection.executemany("INSERT INTO stays VALUES (?, ?, ?, ?, ?)", values)


def make_duckdb(path):
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TYPE place AS ENUM ('3', '2', '1')")
        connection.register("given", ROWS)
        columns = (
            f"age::HUGEINT AS age, ward::VARCHAR::place AS ward, bmi, days, '{SECRET}' AS note"
        )
        query = f"SELECT {columns} FROM given"
        connection.execute(f"CREATE TABLE stays AS {query}")


MAKERS = {"sqlite": make_sqlite, "duckdb": make_duckdb}


@pytest.fixture(params=MAKERS, scope="module")
def database(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("database") / f"a b#%?.{request.param}"
    MAKERS[request.param](str(path))
    before = path.read_bytes()
    yield f"{request.param}:///{path}"
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def statistics(database, query):
    return total_of(STATISTICS, STUDY, sql_table(database, query))


def same(first, second):
    return first.n == second.n and np.array_equal(first.gram, second.gram)


def refusal(database, query, source=None):
    with pytest.raises(TableError) as caught:
        total_of(STATISTICS, STUDY, source if source is not None else sql_table(database, query))
    sentence = str(caught.value)
    assert SECRET not in sentence
    assert "\n" not in sentence
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return sentence


def test_a_query_gives_the_statistics_of_the_same_rows(database):
    assert same(statistics(database, "SELECT * FROM stays"), EXPECTED)
    assert same(
        statistics(
            database,
            "WITH s AS (SELECT days, bmi, ward, age FROM stays) SELECT * FROM s ORDER BY bmi",
        ),
        EXPECTED,
    )


def test_a_path_may_be_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for scheme, make in MAKERS.items():
        make(f"t.{scheme}")
        assert same(statistics(f"{scheme}:///t.{scheme}", "SELECT * FROM stays"), EXPECTED)
        assert str(database_file(f"{scheme}:///t.{scheme}")) == f"t.{scheme}"
    assert database_file("postgresql://host/name") is None


def test_no_rows_are_a_table_if_the_columns_are_there(database):
    assert statistics(database, "SELECT * FROM stays WHERE age < 0").n == 0
    for rows in ("", "WHERE age < 0"):
        assert "exactly one column named 'bmi'" in refusal(
            database, f"SELECT age, ward, days FROM stays {rows}"
        )
        assert "exactly one column named 'age'" in refusal(
            database, f"SELECT age AS age, age AS age, ward, bmi, days FROM stays {rows}"
        )


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM stays",
        "DELETE FROM stays RETURNING *",
        "CREATE TABLE mine AS SELECT * FROM stays",
        "SELECT * FROM stays; DELETE FROM stays",
        "ATTACH 'other.db' AS other",
        "VACUUM INTO 'copy.db'",
        "COPY stays TO 'copy.csv'",
        "PRAGMA user_version = 7",
        "",
    ],
)
def test_a_statement_that_does_more_than_read_is_refused(database, query, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refusal(database, query)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (
            f'SELECT "{SECRET}".x FROM stays',
            "the query names a table or column that the database does not have",
        ),
        (
            f"SELECT * FROM {SECRET}",
            "the query names a table or column that the database does not have",
        ),
        (f"SELEC {SECRET}", "the query is not one valid SELECT"),
        (
            "SELECT age, note AS ward, bmi, days FROM stays",
            "column 'ward' holds a level that the study does not list",
        ),
    ],
)
def test_no_error_quotes_the_query_or_a_value(database, query, sentence):
    assert refusal(database, query).startswith(sentence)


def test_sqlite_columns_of_several_kinds_hold_missing_values(tmp_path):
    make_sqlite(tmp_path / "t.db")
    address = f"sqlite:///{tmp_path}/t.db"
    expected = statistics(
        address,
        "SELECT CASE age % 3 WHEN 1 THEN age END AS age, ward, bmi, days FROM stays",
    )
    mixed = "CASE age % 3 WHEN 0 THEN note WHEN 1 THEN age ELSE x'FFFE' END AS age"
    assert same(statistics(address, f"SELECT {mixed}, ward, bmi, days FROM stays"), expected)
    broken = "CASE age % 3 WHEN 1 THEN age ELSE CAST(x'FF' || age AS TEXT) END AS age"
    assert same(statistics(address, f"SELECT {broken}, ward, bmi, days FROM stays"), expected)
    assert "holds a level that the study does not list" in refusal(
        address, "SELECT age, CAST(x'FF' || note AS TEXT) AS ward, bmi, days FROM stays"
    )


def test_a_duckdb_value_that_fails_is_not_quoted(tmp_path):
    make_duckdb(str(tmp_path / "t.db"))
    failing = "SELECT note::INT AS age, ward, bmi, days FROM stays"
    assert refusal(f"duckdb:///{tmp_path}/t.db", failing).startswith("the query fails on a row")
    with duckdb.connect(tmp_path / "t.db", read_only=True) as connection:
        refusal("", "", connection.sql(failing + " WHERE note::INT > 0"))


def test_a_duckdb_relation_is_a_table_too(tmp_path):
    make_duckdb(str(tmp_path / "t.db"))
    with duckdb.connect(tmp_path / "t.db", read_only=True) as connection:
        assert same(total_of(STATISTICS, STUDY, connection.sql("SELECT * FROM stays")), EXPECTED)


def test_duckdb_without_a_file_queries_files(tmp_path):
    pa.parquet.write_table(ROWS, tmp_path / "t.parquet")
    assert same(statistics("duckdb://", f"SELECT * FROM '{tmp_path}/t.parquet'"), EXPECTED)


@pytest.mark.parametrize("scheme", MAKERS)
def test_what_is_no_database_is_refused(tmp_path, scheme):
    (tmp_path / "text.db").write_text(SECRET * 1000)
    assert refusal(f"{scheme}:///{tmp_path}/text.db", "SELECT * FROM stays").startswith(
        "cannot open the database"
    )
    assert "no file at" in refusal(f"{scheme}:///{tmp_path}/absent.db", "SELECT 1")
    assert "no file at" in refusal(f"{scheme}:///{tmp_path}", "SELECT 1")
    assert not (tmp_path / "absent.db").exists()


@pytest.mark.parametrize(
    "address",
    [
        "",
        "stays.db",
        "mysql://host/name",
        f"host=a password={SECRET}",
        f"mysql:{SECRET}",
        "://",
        "http://[x",
    ],
)
def test_other_addresses_are_refused_and_not_shown(address, monkeypatch):
    assert "must be postgresql://host/name" in refusal(address, "SELECT 1")
    monkeypatch.setenv("WARD", address)
    assert "must be postgresql://host/name" in refusal("env:WARD", "SELECT 1")
    monkeypatch.delenv("WARD")
    assert refusal("env:WARD", "SELECT 1").startswith(
        "database: the environment has no variable 'WARD'"
    )


@pytest.mark.parametrize("module", ["duckdb", "adbc_driver_postgresql"])
def test_a_missing_extra_is_named(module, tmp_path):
    make_duckdb(str(tmp_path / "t.db"))
    address = f"duckdb:///{tmp_path}/t.db" if module == "duckdb" else "postgresql://host/name"
    code = (
        f"import sys; sys.modules[{module!r}] = None; from tacit import sql_table; "
        f"list(sql_table({address!r}, 'SELECT 1').batches())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith(
        "TableError: reading PostgreSQL and DuckDB needs the extra sql: pip install 'tacit-dp[sql]'"
    )


# Persons are counted by the database.

PERSONS = agreed(person='odd "name')
ID = np.random.default_rng(3).integers(0, 900, COUNT)
VISITS = ROWS.append_column('odd "name', pa.array(ID.astype(str)))
NOTED = "SELECT *, CAST(age AS INTEGER) * 7 % 13 AS who FROM stays"


@pytest.mark.parametrize("end", ["", ";", " ;\n", " -- a remark"])
def test_persons_are_counted_where_they_lie(database, end):
    study = agreed(person="who")
    ages = ROWS["age"].to_numpy()
    local = ROWS.append_column("who", pa.array(ages * 7 % 13))
    expected = total_of(STATISTICS, study, local)
    found = total_of(STATISTICS, study, sql_table(database, NOTED + end))
    assert found.n == expected.n == len(set((ages * 7 % 13).tolist()))
    assert np.array_equal(found.gram, expected.gram)


def test_ids_with_quotation_marks_and_missing_ones(tmp_path):
    path = tmp_path / "visits.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            'CREATE TABLE stays (age INTEGER, ward INTEGER, bmi REAL, days REAL, "odd ""name" TEXT)'
        )
        values = [tuple(row.values()) for row in VISITS.to_pylist()]
        values[0] = (*values[0][:-1], None)
        connection.executemany("INSERT INTO stays VALUES (?, ?, ?, ?, ?)", values)
    table = sql_table(f"sqlite:///{path}", "SELECT * FROM stays")
    with pytest.raises(TableError, match="without a person"):
        total_of(STATISTICS, PERSONS, table)
    alone = agreed(person='odd "name', missing_person="alone")
    ids = pa.array([None, *VISITS.column(4).to_pylist()[1:]])
    expected = total_of(STATISTICS, alone, VISITS.set_column(4, 'odd "name', ids))
    found = total_of(STATISTICS, alone, table)
    assert found.n == expected.n
    assert np.array_equal(found.gram, expected.gram)


def test_a_query_without_the_person_is_refused(database):
    """SQLite would take the name in quotation marks for a text: all rows of one person."""
    with pytest.raises(TableError, match="names a table or column that the database does not have"):
        total_of(STATISTICS, agreed(person="nobody"), sql_table(database, "SELECT * FROM stays"))


def test_the_person_does_not_leave_the_database(database):
    table = sql_table(database, "SELECT *, note AS who FROM stays")
    names = next(iter(table.by_person(agreed(person="who")))).schema.names
    assert "who" not in names
    assert "note" not in names
