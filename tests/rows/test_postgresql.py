"""PostgreSQL as a source of rows, on a real server: types, snapshots, credentials, lost
connections, memory.

Covers `tacit.rows.sql` with PostgreSQL.
"""

import subprocess
import sys
from decimal import Decimal

import adbc_driver_postgresql.dbapi
import numpy as np
import pyarrow as pa
import pytest
from postgres import OWNER, PASSWORD, Server
from studies import AGE, BMI, agreed

from tacit.errors import TableError
from tacit.holder.publish import publish
from tacit.holder.statistics import STATISTICS
from tacit.holder.tally import total_of
from tacit.rows.sql import sql_table

pytestmark = pytest.mark.xdist_group("postgresql")  # one server, not one per process

SECRET = "SECRET8842"  # noqa: S105
WARD = {"name": "ward", "levels": ["east", "north", "west"]}
URGENT = {"name": "urgent", "levels": ["false", "true"]}
STUDY = agreed([AGE, WARD, BMI, URGENT])
COUNT = 3000


def rows():
    rng = np.random.default_rng(5)
    return {
        "age": rng.integers(10, 110, COUNT).tolist(),
        "ward": rng.choice(["east", "north", "west"], COUNT).tolist(),
        "bmi": [
            None if rng.random() < 0.02 else Decimal(f"{value:.3f}")
            for value in rng.normal(28, 6, COUNT)
        ],
        "urgent": rng.choice([True, False], COUNT).tolist(),
        "days": rng.gamma(2, 4, COUNT).tolist(),
    }


ROWS = rows()
EXPECTED = total_of(STATISTICS, STUDY, pa.table(ROWS))


@pytest.fixture(scope="module")
def server():
    with Server() as server:
        server.execute(
            "CREATE TYPE compass AS ENUM ('north', 'east', 'west')",
            "CREATE TABLE stays (id int, age int2, ward compass, bmi numeric(9, 3), urgent bool, "
            "days float8, note text)",
            "CREATE SEQUENCE tickets",
            "CREATE TABLE others (age int, ward text, bmi float4, urgent bool, days numeric)",
            "CREATE ROLE stranger LOGIN PASSWORD '" + PASSWORD + "'",
            "INSERT INTO stays VALUES " + ", ".join(map(_values, zip(*ROWS.values(), strict=True))),
        )
        yield server


def _values(row):
    age, ward, bmi, urgent, days = row
    return f"(1, {age}, '{ward}', {'NULL' if bmi is None else bmi}, {urgent}, {days!r}, '{SECRET}')"


@pytest.fixture(autouse=True)
def _password(monkeypatch):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)


def statistics(server, query, url=None):
    return total_of(STATISTICS, STUDY, sql_table(url or server.url, query))


def refusal(server, query, url=None):
    with pytest.raises(TableError) as caught:
        statistics(server, query, url)
    return clean(caught.value)


def clean(error):
    """The sentence of an error that shows neither a value nor a secret."""
    sentence = str(error)
    assert SECRET not in sentence
    assert PASSWORD not in sentence
    assert "\n" not in sentence
    assert error.__suppress_context__ or error.__context__ is None
    return sentence


def same(first, second):
    return first.n == second.n and np.array_equal(first.gram, second.gram)


# What arrives.


def test_a_query_gives_the_statistics_of_the_same_rows(server):
    assert same(statistics(server, "SELECT * FROM stays"), EXPECTED)
    assert same(
        statistics(server, "SELECT days, urgent, bmi, ward, age FROM stays ORDER BY days"), EXPECTED
    )
    assert same(statistics(server, "WITH s AS (SELECT * FROM stays) SELECT * FROM s"), EXPECTED)


@pytest.mark.parametrize("kind", ["numeric", "numeric(12, 3)", "float8"])
def test_every_kind_of_number_is_the_same_number(server, kind):
    assert same(
        statistics(server, f"SELECT age::{kind}, ward, bmi::{kind}, urgent, days FROM stays"),
        EXPECTED,
    )


@pytest.mark.parametrize("kind", ["text", "varchar", "varchar(5)", "name"])
def test_every_kind_of_text_names_levels(server, kind):
    assert same(
        statistics(
            server, f"SELECT age, ward::text::{kind}, bmi, urgent::text::{kind}, days FROM stays"
        ),
        EXPECTED,
    )


def test_extreme_numerics_are_clamped_or_missing_like_floats(server):
    row = "'east' AS ward, 25.5 AS bmi, true AS urgent, 3 AS days"
    for text in ("NaN", "1e300", "-1e300", "1e-300", "98765432109876543210.5"):
        as_numeric = statistics(server, f"SELECT '{text}'::numeric AS age, {row}")
        assert same(as_numeric, statistics(server, f"SELECT '{text}'::float8 AS age, {row}")), text


def test_a_reader_or_an_own_cursor_is_a_table_too(server):
    with (
        adbc_driver_postgresql.dbapi.connect(server.url) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT * FROM stays")
        assert same(total_of(STATISTICS, STUDY, cursor.fetch_record_batch()), EXPECTED)


def test_no_rows_are_a_table_if_the_columns_are_there(server):
    assert statistics(server, "SELECT * FROM stays WHERE false").n == 0
    assert (
        refusal(server, "SELECT age, ward, days FROM stays WHERE false")
        == "the table needs exactly one column named 'bmi'"
    )
    assert "exactly one column named 'age'" in refusal(server, "SELECT age, * FROM stays")


def test_dates_money_and_odd_types_are_refused(server):
    for value in (
        "current_date",
        "now()",
        "interval '1 day'",
        "ARRAY[1]",
        "gen_random_uuid()",
        "'x'::bytea",
    ):
        assert "'age' must hold numbers" in refusal(
            server, f"SELECT {value} AS age, ward, bmi, urgent, days FROM stays"
        )
    assert "money, which arrives in hundredths" in refusal(
        server, "SELECT 12.3::money AS age, ward, bmi, urgent, days FROM stays"
    )
    assert "'ward' must hold text" in refusal(
        server, "SELECT age, current_date AS ward, bmi, urgent, days FROM stays"
    )


# What is only read.


def test_the_transaction_is_a_read_only_snapshot(server):
    query = (
        "SELECT current_setting('transaction_read_only') AS a, "
        "current_setting('transaction_isolation') AS b"
    )
    facts = [row for batch in sql_table(server.url, query).batches() for row in batch.to_pylist()]
    assert facts == [{"a": "on", "b": "repeatable read"}]


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM stays RETURNING *",
        "CREATE TABLE mine AS SELECT * FROM stays",
        "SELECT nextval('tickets') AS age, ward, bmi, urgent, days FROM stays",
        "SELECT * INTO mine FROM stays",
        "SELECT * FROM stays; DELETE FROM stays",
        "SELECT * FROM stays) TO STDOUT; DELETE FROM stays; --",
        "COMMIT",
    ],
)
def test_a_query_that_would_change_the_database_is_refused(server, query):
    refusal(server, query)
    assert same(statistics(server, "SELECT * FROM stays"), EXPECTED)
    assert refusal(server, "SELECT * FROM mine").startswith("the query names a table")


# Errors.


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (
            f"SELECT {SECRET} FROM stays",
            "the query names a table or column that the database does not have",
        ),
        (
            f"SELECT * FROM {SECRET}",
            "the query names a table or column that the database does not have",
        ),
        (f"SELEC {SECRET}", "the query is not one valid SELECT"),
        (f"SELECT '{SECRET}'::int", "the query fails on a row"),
        ("SELECT note::int AS age, ward, bmi, urgent, days FROM stays", "the query fails on a row"),
        (
            "SELECT days::int / (age - age) AS age, ward, bmi, urgent, days FROM stays",
            "the query fails on a row",
        ),
        (
            "SELECT age, note AS ward, bmi, urgent, days FROM stays",
            "column 'ward' holds a level that the study does not list",
        ),
    ],
)
def test_no_error_quotes_the_query_or_a_value(server, query, sentence):
    assert refusal(server, query).startswith(sentence)


def test_a_value_that_fails_in_the_middle_of_the_stream_is_not_quoted(server, tmp_path):
    failing = f"CASE WHEN i = 900000 THEN ('{SECRET}' || i)::int ELSE 50 END AS age"
    with pytest.raises(TableError) as caught:
        publish(
            STUDY,
            sql_table(server.url, _long(failing)),
            holder="north",
            ledger=tmp_path / "ledger.db",
        )
    assert clean(caught.value).startswith("the query fails on a row")
    assert not (tmp_path / "ledger.db").exists()


def test_a_user_without_the_right_is_told_so(server):
    assert "may not" in refusal(
        server, "SELECT * FROM stays", server.url.replace(OWNER, "stranger")
    )


def test_a_connection_that_breaks_in_the_middle_costs_nothing(server, tmp_path):
    read = []

    def cut_after_a_while(count):
        read.append(count)
        if sum(read) > 0 and len(read) < 5:
            server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE "
                "'%generate_series%' AND pid <> pg_backend_pid()"
            )

    with pytest.raises(TableError) as caught:
        publish(
            STUDY,
            sql_table(server.url, _long("50 AS age")),
            holder="north",
            ledger=tmp_path / "ledger.db",
            on_rows=cut_after_a_while,
        )
    assert (
        clean(caught.value)
        == "the connection to the database broke off: nothing was published or paid; try again"
    )
    assert 0 < sum(read) < 1_000_000
    assert not (tmp_path / "ledger.db").exists()


def _long(age):
    others = "'east' AS ward, 25.0::float8 AS bmi, true AS urgent, (i % 30)::float8 AS days"
    return f"SELECT {age}, {others} FROM generate_series(1, 1000000) i"


# Credentials.


def test_a_wrong_password_and_a_wrong_place_are_told_apart(server, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", SECRET)
    assert refusal(server, "SELECT 1").startswith("the database refuses the login")
    monkeypatch.delenv("PGPASSWORD")
    monkeypatch.setenv("PGPASSFILE", "/nonexistent")
    assert refusal(server, "SELECT 1").startswith("the database refuses the login")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    for url in (
        "postgresql://localhost:1/postgres",
        f"postgresql://?host=/nonexistent&dbname={SECRET}",
        f"postgresql://?service={SECRET}",
    ):
        assert refusal(server, "SELECT 1", url).startswith("cannot open the database")
    assert refusal(server, "SELECT 1", server.url.replace("/postgres?", f"/{SECRET}?")).startswith(
        "cannot open the database"
    )


def test_a_password_comes_from_where_libpq_looks(server, monkeypatch, tmp_path):
    monkeypatch.delenv("PGPASSWORD")
    passwords, services = tmp_path / "pgpass", tmp_path / "services"
    passwords.write_text(f"*:*:*:{OWNER}:{PASSWORD}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    assert same(statistics(server, "SELECT * FROM stays"), EXPECTED)
    monkeypatch.delenv("PGPASSFILE")
    services.write_text(
        f"[ward]\nhost={server.folder}\nuser={OWNER}\ndbname=postgres\npassword={PASSWORD}\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    assert same(statistics(server, "SELECT * FROM stays", "postgresql://?service=ward"), EXPECTED)
    monkeypatch.setenv("WARD_DATABASE", server.url.replace("@", f":{PASSWORD}@"))
    assert same(statistics(server, "SELECT * FROM stays", "env:WARD_DATABASE"), EXPECTED)


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://owner:{SECRET}@host/db",
        f"postgresql://owner:{SECRET}@host1,host2:99/db",
        f"postgres://host/db?user=owner&password={SECRET}",
        f"postgresql://host/db?pass%77ord={SECRET}",
        f"postgresql://host/db?sslpassword={SECRET}",
    ],
)
def test_a_password_in_an_address_is_refused_and_not_shown(server, address):
    assert "env:NAME" in refusal(server, "SELECT 1", address)


def test_no_secret_is_written_down(server, monkeypatch, tmp_path):
    monkeypatch.setenv("WARD_DATABASE", server.url.replace("@", f":{PASSWORD}@"))
    table = sql_table("env:WARD_DATABASE", "SELECT * FROM stays")
    release = publish(STUDY, table, holder="north", ledger=tmp_path / "ledger.db")
    release.save(tmp_path / "north.json")
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for private in (PASSWORD, str(server.folder), "FROM stays", OWNER):
        assert private.encode() not in written
    assert PASSWORD not in repr(table)


# Memory.

MEASURE = """
import sys
from pathlib import Path
from tacit.holder.statistics import STATISTICS
from tacit.holder.tally import total_of
from tacit.rows.sql import sql_table
from tacit.study import Study
names = [f"x{k}" for k in range(15)]
features = [{"name": name, "range": [0, 1]} for name in names]
study = Study.from_document({"name": "s", "epsilon": 1.0, "delta": 1e-6,
    "response": {"name": "y", "range": [0, 1]}, "features": features})
columns = ", ".join(f"random() AS {name}" for name in [*names, "y"])
query = f"SELECT {columns} FROM generate_series(1, {sys.argv[2]})"
total = total_of(STATISTICS, study, sql_table(sys.argv[1], query))
status = Path("/proc/self/status").read_text().splitlines()
peak = next(line for line in status if line.startswith("VmHWM"))
print(total.n, int(peak.split()[1]) / 1024)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is read from /proc")
def test_memory_is_flat_in_the_number_of_rows(server):
    peaks = []
    for count in (200_000, 1_000_000):
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, server.url, str(count)],
            check=True,
            capture_output=True,
            text=True,
        )
        read, peak = done.stdout.split()
        assert int(read) == count
        peaks.append(float(peak))
    assert peaks[1] < peaks[0] + 30  # MiB; the 800,000 further rows are 98 MiB
    assert peaks[1] < 400


# Persons.


@pytest.mark.parametrize("kind", ["int", "text", "uuid"])
def test_persons_are_counted_by_the_server(server, kind):
    """A uuid, too, which is never sent."""
    study = agreed([AGE, WARD, BMI, URGENT], person="who")
    whose = {"int": "age % 40", "text": "(age % 40)::text", "uuid": "md5((age % 40)::text)::uuid"}
    query = f"WITH s AS (SELECT *, {whose[kind]} AS who FROM stays) SELECT * FROM s ORDER BY days;"
    local = pa.table(ROWS | {"who": [age % 40 for age in ROWS["age"]]})
    expected = total_of(STATISTICS, study, local)
    found = total_of(STATISTICS, study, sql_table(server.url, query))
    assert found.n == 40
    assert same(found, expected)
