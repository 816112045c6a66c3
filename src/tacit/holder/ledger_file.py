"""The ledger's file: its tables, how older ones grow into them, and what opening it checks."""

import sqlite3
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tacit.errors import LedgerError
from tacit.holder.chain import GENESIS, Mark, check_chain, next_head

_APPLICATION = 0x7AC17
_SCHEMA = """
CREATE TABLE dataset (
    name TEXT PRIMARY KEY,
    relation TEXT,
    epsilon REAL NOT NULL,
    delta REAL NOT NULL
) STRICT;
CREATE TABLE charge (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    dataset TEXT NOT NULL REFERENCES dataset (name),
    study TEXT NOT NULL,
    study_hash TEXT NOT NULL,
    holder TEXT NOT NULL,
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    mu REAL NOT NULL,
    time TEXT NOT NULL,
    release TEXT
) STRICT;
"""
_STREAMS = """
CREATE TABLE IF NOT EXISTS stream (
    charge INTEGER PRIMARY KEY REFERENCES charge (id),
    id TEXT NOT NULL UNIQUE,
    batch_rows INTEGER NOT NULL,
    batches_per_person INTEGER NOT NULL,
    source TEXT NOT NULL,
    taken INTEGER NOT NULL,
    position INTEGER
) STRICT;
CREATE TABLE IF NOT EXISTS batch (
    charge INTEGER NOT NULL REFERENCES stream (charge),
    number INTEGER NOT NULL,
    first_row INTEGER NOT NULL,
    last_row INTEGER NOT NULL,
    time TEXT NOT NULL,
    entry TEXT,
    PRIMARY KEY (charge, number)
) STRICT;
"""
"""Added to a ledger of any age: one charge pays for a whole stream, each batch is there once."""
_ADDED = {"charge": "head", "stream": "digest", "dataset": "person"}
"""Columns that older ledgers lack: the chain's head after a charge.

A digest of what a stream has read. The column that says whose a row is, where all charges of a data
set were made for whole persons.
"""

CHAINED = "dataset, study, study_hash, holder, epsilon, delta, mu, time"
"""What a charge is, and what its head is a hash of."""


def open_tables(database: sqlite3.Connection, path: Path, *, checked: bool) -> None:
    """Make the tables of a new ledger, let an older one grow, refuse what is damaged or none."""
    (application,) = database.execute("PRAGMA application_id").fetchone()
    if application != _APPLICATION:
        _make_new(database, path, application)
        return
    if checked and database.execute("PRAGMA integrity_check").fetchone() != ("ok",):
        raise LedgerError(
            f"the ledger {str(path)!r} is damaged, so what was spent is not certain: "
            "restore it from a backup"
        )
    _make(database, _STREAMS)
    _grow(database)
    if checked:
        mark_of(database, path)


def mark_of(database: sqlite3.Connection, path: Path) -> Mark:
    """How long the chain of charges is, once every link was checked."""
    return check_chain(_links(database), path)


def last_head(database: sqlite3.Connection) -> str:
    """The head of the chain as it is stored."""
    last = database.execute("SELECT head FROM charge ORDER BY id DESC LIMIT 1").fetchone()
    return GENESIS if last is None else str(last[0])


def canonical_name(dataset: str) -> str:
    """A data set's name as the ledger knows it.

    Letter case, spacing and look-alike forms of letters make no other data set.
    """
    name = " ".join(unicodedata.normalize("NFKC", dataset).casefold().split())
    if not name or len(name) > 200 or not name.isprintable():  # noqa: PLR2004
        raise LedgerError("a data set needs a name of 1 to 200 printable letters, such as patients")
    return name


def _links(database: sqlite3.Connection) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for head, *fields in database.execute(f"SELECT head, {CHAINED} FROM charge ORDER BY id"):
        yield head, tuple(fields)


def _make_new(database: sqlite3.Connection, path: Path, application: int) -> None:
    tables = database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if tables != (0,) or application != 0:
        raise LedgerError(f"{str(path)!r} is a database, but not a Tacit ledger")
    _make(database, _SCHEMA + _STREAMS)
    _grow(database)
    database.execute(f"PRAGMA application_id = {_APPLICATION}")


def _make(database: sqlite3.Connection, tables: str) -> None:
    for statement in tables.split(";")[:-1]:
        database.execute(statement)


def _grow(database: sqlite3.Connection) -> None:
    """Add the columns that an older ledger lacks, and its chain."""
    for table, column in _ADDED.items():
        columns = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
        if column in columns:
            continue
        database.execute(f"ALTER TABLE {table} ADD COLUMN {column} TEXT")
        if table == "charge":
            _unite_names(database)
            _chain_up(database)


def _unite_names(database: sqlite3.Connection) -> None:
    """Give the data sets of an older ledger their canonical names.

    Those that become one have the smaller limit; two of different relations, whose charges do not
    add up, stay two.
    """
    relations = dict(database.execute("SELECT name, relation FROM dataset").fetchall())
    for old, relation in relations.items():
        new = canonical_name(old)
        if new == old or relations.get(new) not in {None, relation}:
            continue
        relations[new] = relation
        database.execute(
            "INSERT INTO dataset (name, relation, epsilon, delta) "
            "SELECT ?, relation, epsilon, delta FROM dataset WHERE name = ? "
            "ON CONFLICT (name) DO UPDATE SET epsilon = min(epsilon, excluded.epsilon), "
            "delta = min(delta, excluded.delta), relation = coalesce(relation, excluded.relation)",
            (new, old),
        )
        database.execute("UPDATE charge SET dataset = ? WHERE dataset = ?", (new, old))
        database.execute("DELETE FROM dataset WHERE name = ?", (old,))


def _chain_up(database: sqlite3.Connection) -> None:
    head = GENESIS
    rows = database.execute(f"SELECT id, {CHAINED} FROM charge ORDER BY id").fetchall()
    for number, *fields in rows:
        head = next_head(head, fields)
        database.execute("UPDATE charge SET head = ? WHERE id = ?", (head, number))
