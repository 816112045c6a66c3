"""Where a command's rows come from: exactly one source, of which nothing is shown or overwritten.

Covers `tacit.cli.source`.
"""

import sqlite3
from contextlib import closing

import pytest

from tacit.release import Release

SECRET = "SECRET3391"  # noqa: S105
STUDY = """name = "sources"
epsilon = 1
delta = 1e-6
response = { name = "y", range = [0, 1] }
features = [{ name = "x", range = [0, 1] }]
"""
OPTIONS = ("--holder", "north", "--out", "north.json")
QUERY = ("--sql", "SELECT * FROM t", "--database", "sqlite:///t.db")


@pytest.fixture
def ward(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TACIT_LEDGER", str(tmp_path / "ledger.db"))
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "t.csv").write_text("x,y\n0.5,0.5\n")
    with closing(sqlite3.connect("t.db")) as connection, connection:
        connection.execute("CREATE TABLE t (x REAL, y REAL)")
        connection.executemany(
            "INSERT INTO t VALUES (?, ?)", [(k / 100, 1 - k / 100) for k in range(100)]
        )
    return tmp_path


def test_a_query_is_published(tacit, ward):
    code, out, err = tacit("publish", "study.toml", *QUERY, *OPTIONS)
    assert (code, err) == (0, "")
    assert "north.json" in out
    assert Release.load(ward / "north.json").n == 100


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "give one source of rows"),
        (("t.csv", *QUERY), "give one source of rows"),
        (("t.csv", "--spark-table", "t"), "give one source of rows"),
        ((*QUERY, "--spark-table", "t"), "give one source of rows"),
        (("--sql", f"SELECT '{SECRET}'"), "--sql and --database go together"),
        (("--database", f"postgresql://u:{SECRET}@h/n"), "--sql and --database go together"),
        (("t.csv", "--spark-master", "local"), "--spark-master goes with --spark-table"),
        (
            ("--sql", "SELECT 1", "--database", f"postgresql://u:{SECRET}@h/n"),
            "database: an address must hold no password",
        ),
        (
            ("--sql", f"SELECT '{SECRET}'", "--database", "sqlite:///t.db"),
            "the table needs exactly one column named ",
        ),
        (
            ("--sql", f"SELECT {SECRET} FROM t", "--database", "sqlite:///t.db"),
            "the query names a table or column",
        ),
    ],
)
def test_what_is_no_source_is_refused_in_one_sentence_and_costs_nothing(
    tacit, ward, arguments, sentence
):
    code, out, err = tacit("publish", "study.toml", *arguments, *OPTIONS)
    assert (code, out) == (2, "")
    assert err.startswith(f"tacit: {sentence}")
    assert err.count("\n") == 1
    assert SECRET not in err
    assert not (ward / "ledger.db").exists()
    assert not (ward / "north.json").exists()


def test_a_database_is_not_overwritten(tacit, ward):
    before = (ward / "t.db").read_bytes()
    code, _, err = tacit("publish", "study.toml", *QUERY, "--holder", "north", "--out", "t.db")
    assert code == 2
    assert "would overwrite what is read" in err
    assert (ward / "t.db").read_bytes() == before


def test_nothing_but_an_earlier_release_is_overwritten(tacit, ward):
    (ward / "other.csv").write_text("rows that a query may read\n", encoding="utf-8")
    code, _, err = tacit("publish", "study.toml", *QUERY, "--holder", "north", "--out", "other.csv")
    assert (code, err) == (
        2,
        "tacit: 'other.csv' exists already and is no release: choose another --out, or remove it\n",
    )
    assert not (ward / "ledger.db").exists()
    for dataset in ("a", "b"):
        assert (
            tacit(
                "publish",
                "study.toml",
                *QUERY,
                "--holder",
                "north",
                "--out",
                "north.json",
                "--dataset",
                dataset,
                "--new-dataset",
            )[0]
            == 0
        )
