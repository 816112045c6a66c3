"""Every kind of place where a site's rows may lie, tried by `check` and published from.

Covers `tacit.federation.client.sources`.
"""

import sqlite3
import sys
from pathlib import Path

import pytest
from sites import STUDY, charges, make_site, table

from tacit.errors import PolicyError
from tacit.federation.client.answer import answer
from tacit.federation.client.lean import stay_small
from tacit.federation.client.policy import Policy
from tacit.federation.client.sources import source_trouble
from tacit.federation.wire import Reason
from tacit.study.toml import study_toml

sys.path.insert(0, str(Path(__file__).parents[1] / "rows"))
QUERY = "select age, sex, days from stays"


def database_of(path, connect):
    """The rows of a site as a table of a database."""
    connection = connect(path)
    connection.execute("create table stays (age real, sex text, days real)")
    connection.executemany(
        "insert into stays values (?, ?, ?)",
        list(zip(*(table()[name].to_pylist() for name in ("age", "sex", "days")), strict=True)),
    )
    connection.commit()
    connection.close()


def assert_publishes(policy):
    assert source_trouble(Policy.load(policy)) is None
    assert answer(study_toml(STUDY), Policy.load(policy)).state == "released"
    assert len(charges(policy)) == 1


def test_sqlite_beside_the_policy(tmp_path):
    policy = make_site(
        tmp_path, data=["sqlite:///ward.db"], query=QUERY, columns=["age", "days", "sex"]
    )
    database_of(tmp_path / "ward.db", sqlite3.connect)
    assert_publishes(policy)


def test_duckdb_whose_address_lies_in_a_file(tmp_path):
    import duckdb

    policy = make_site(tmp_path, data=["file:database"], query=QUERY)
    database_of(str(tmp_path / "ward.duckdb"), duckdb.connect)
    (tmp_path / "database").write_text(f"duckdb:///{tmp_path}/ward.duckdb\n")
    (tmp_path / "database").chmod(0o644)
    assert "chmod o=" in (source_trouble(Policy.load(policy)) or "")
    (tmp_path / "database").chmod(0o640)
    assert_publishes(policy)


@pytest.mark.slow
def test_postgresql_with_a_password_outside_the_policy(tmp_path):
    from postgres import PASSWORD, Server

    with Server() as server:
        server.execute("create table stays (age float8, sex text, days float8)")
        rows = zip(*(table()[name].to_pylist() for name in ("age", "sex", "days")), strict=True)
        values = ", ".join(f"({age!r}, '{sex}', {days!r})" for age, sex, days in rows)
        server.execute(f"insert into stays values {values}")
        policy = make_site(tmp_path, data=["file:database"], query=QUERY)
        (tmp_path / "database").write_text(server.url.replace("@", f":{PASSWORD}@"))
        (tmp_path / "database").chmod(0o600)
        assert_publishes(policy)
        assert PASSWORD not in policy.read_text()


@pytest.mark.slow
def test_a_spark_table(tmp_path):
    stay_small()
    name = f"parquet.`{tmp_path}/rows.parquet`"
    policy = make_site(tmp_path, data=[f"spark:{name}"], spark_master="local[1]", least_rows=400)
    assert_publishes(policy)
    few = make_site(tmp_path / "few", data=[f"spark:{name}"], least_rows=401)
    assert answer(study_toml(STUDY), Policy.load(few)).reason == Reason.ROWS


def test_check_names_a_column_that_is_not_there(tmp_path):
    policy = make_site(tmp_path, data=["sqlite:///ward.db"], query=QUERY, columns=["age", "bmi"])
    database_of(tmp_path / "ward.db", sqlite3.connect)
    assert "no column 'bmi'" in (source_trouble(Policy.load(policy)) or "")


def test_check_says_what_cannot_be_opened(tmp_path):
    absent = make_site(tmp_path, data=["sqlite:///nowhere.db"], query=QUERY)
    assert source_trouble(Policy.load(absent)) is not None
    files = make_site(tmp_path / "files", data=["nowhere.parquet"])
    assert "nothing at" in (source_trouble(Policy.load(files)) or "")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"data": ["postgresql://me:secret@host/x"], "query": QUERY}, "must hold no password"),
        ({"data": ["spark:a", "spark:b"]}, "stands alone"),
        ({"data": ["rows.parquet"], "spark_master": "local"}, "goes with a Spark table"),
        ({"data": ["sqlite:///x.db"]}, "needs a query"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_policy_that_cannot_be_meant_is_refused(tmp_path, fields, words):
    with pytest.raises(PolicyError, match=words) as refused:
        Policy.load(make_site(tmp_path, **fields))
    assert "secret" not in str(refused.value)
