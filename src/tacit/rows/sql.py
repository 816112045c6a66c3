"""Rows of a query: PostgreSQL, SQLite and DuckDB, read only, as a stream of batches.

A database is opened for reading alone, and a query sees one state of it. Passwords come from where
the database's own client takes them, never from an address that a command line or a script would
show. Errors are rewritten, because those of a driver quote the query, the address, and values.
"""

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa

from tacit.errors import TableError
from tacit.rows.arrow import Batches
from tacit.rows.drivers import rewritten
from tacit.rows.objects import texts_of
from tacit.rows.table import BATCH_ROWS, ONE, ROWS, Table
from tacit.study import Study

SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
SQLITE_ROWS = 2**13
"""Rows fetched at once from SQLite, which hands them over as Python objects."""
READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
"""What a statement may do in SQLite, which opened for reading would still copy into other files."""


def sql_table(database: str, query: str) -> Table:
    """Rows of a query on `postgresql://host/name`, `sqlite:///file.db` or `duckdb:///file.db`.

    Three slashes begin a relative path, four an absolute one; `duckdb://` alone is for queries on
    files. `env:NAME` stands for the address in that environment variable, and `file:PATH` for the
    one in a file that only its owner and group may read. A password belongs there, or where libpq
    looks for it: PGPASSWORD, ~/.pgpass or a service file (`postgresql://?service=name`).
    """
    address = _address(database)
    read = _READERS[_scheme(address)]

    def table(what: str) -> Table:
        return Table(lambda: _guarded(read(address, what)))

    return replace(
        table(query),
        by_person=lambda study: _guarded(read(address, _by_person(study, query))),
        columns=lambda: tuple(next(table(_chosen(query, "*", "LIMIT 0")).batches()).schema.names),
        alone=lambda name: table(_chosen(query, f"table_of_rows.{_quoted(name)}")),
    )


def _chosen(query: str, columns: str, behind: str = "") -> str:
    """Some columns of what a query gives."""
    return f"SELECT {columns} FROM (\n{query.rstrip().rstrip(';')}\n) AS table_of_rows {behind}"


def _by_person(study: Study, query: str) -> str:
    """The query's columns that the study needs, and how many of its rows each row's person has.

    The person itself does not leave the database. Every column is told by its table: SQLite takes
    a name in quotation marks that it does not know for a text.
    """
    names = [name for name in study.table_names if name != study.person]
    person = f"table_of_rows.{_quoted(study.person or '')}"
    columns = ", ".join(f"table_of_rows.{_quoted(name)}" for name in names)
    counted = (
        f"CASE WHEN {person} IS NULL THEN NULL ELSE COUNT(*) OVER same END AS {_quoted(ROWS)}, "
        f"CASE WHEN {person} IS NULL THEN 0 WHEN ROW_NUMBER() OVER same = 1 THEN 1 ELSE 0 END "
        f"AS {_quoted(ONE)}"
    )
    return _chosen(query, f"{columns}, {counted}", f"WINDOW same AS (PARTITION BY {person})")


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def database_file(database: str) -> Path | None:
    """The file that is the database, for SQLite and DuckDB."""
    return _file(_address(database))


def _file(address: str) -> Path | None:
    scheme = _scheme(address)
    path = address.removeprefix(f"{scheme}://").removeprefix("/")
    return Path(path) if scheme in {"sqlite", "duckdb"} and path else None


def _address(database: str) -> str:
    if database.startswith("env:"):
        return _from_environment(database.removeprefix("env:"))
    if database.startswith("file:"):
        return _from_file(Path(database.removeprefix("file:")))
    if holds_password(database):
        raise TableError(
            "database: an address must hold no password, as commands and scripts are seen by "
            "others; put it in PGPASSWORD, ~/.pgpass "
            "or a service file, or the whole address in an environment variable and give env:NAME"
        )
    return database


def _from_environment(name: str) -> str:
    if name not in os.environ:
        raise TableError(
            f"database: the environment has no variable {name!r}; set it to the database's address"
        )
    return os.environ[name]


def _from_file(path: Path) -> str:
    """The address in a file that nobody else may read."""
    try:
        others = path.stat().st_mode & 0o007
        address = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise TableError(f"database: {str(path)!r} cannot be read: {error.strerror}") from None
    if others:
        raise TableError(
            f"database: everybody on this machine may read {str(path)!r}, which holds a secret: "
            "chmod o= it"
        )
    return address


def holds_password(address: str) -> bool:
    """Whether an address shows a password."""
    try:
        parts = urlsplit(address)
        return parts.password is not None or any(
            "password" in key for key, _ in parse_qsl(parts.query, keep_blank_values=True)
        )
    except ValueError:  # not an address at all: what reads it will say so
        return False


def _scheme(address: str) -> str:
    scheme = address.partition("://")[0]
    if "://" not in address or scheme not in _READERS:
        raise TableError(
            "database: it must be postgresql://host/name, sqlite:///file.db or duckdb:///file.db, "
            "or env:NAME for one of them"
        )
    return scheme


# One reader per kind of database: from its address and a query to batches, the first of which has
# the names even without rows.


def _postgresql(address: str, query: str) -> Batches:
    driver = _extra("adbc_driver_postgresql.dbapi")
    with closing(driver.connect(address)) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(SNAPSHOT)
        cursor.execute(query)
        yield from _named(cursor.fetch_record_batch())


def _sqlite(address: str, query: str) -> Batches:
    path = _existing(address)
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        connection.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_OK if action in READING else sqlite3.SQLITE_DENY
        )
        connection.text_factory = bytes  # its own decoder raises where a value is no UTF-8
        cursor = connection.execute(query)
        names = [column[0] for column in cursor.description or ()]
        rows = cursor.fetchmany(SQLITE_ROWS)
        yield _batch(rows, names)
        while rows := cursor.fetchmany(SQLITE_ROWS):
            yield _batch(rows, names)


def _batch(rows: list[tuple[object, ...]], names: list[str]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    return pa.RecordBatch.from_arrays([texts_of(column) for column in columns], names)


def _duckdb(address: str, query: str) -> Batches:
    driver = _extra("duckdb")
    path = _existing(address) if address != "duckdb://" else None
    with closing(driver.connect(str(path or ":memory:"), read_only=path is not None)) as connection:
        if [statement.type for statement in connection.extract_statements(query)] != [
            driver.StatementType.SELECT
        ]:
            raise TableError(_ONLY_READS)
        yield from _named(connection.sql(query).to_arrow_reader(BATCH_ROWS))


def _named(reader: pa.RecordBatchReader) -> Batches:
    yield pa.RecordBatch.from_pylist([], schema=reader.schema)
    yield from reader


def _existing(address: str) -> Path:
    path = _file(address)
    if path is None or not path.is_file():
        raise TableError(
            f"database: no file at {str(path or '')!r}; three slashes begin a relative path, four "
            "an absolute one"
        )
    return path


def _extra(module: str) -> Any:  # noqa: ANN401
    try:
        return import_module(module)
    except ImportError:
        raise TableError(
            "reading PostgreSQL and DuckDB needs the extra sql: pip install 'tacit-dp[sql]'"
        ) from None


_READERS = {
    "postgresql": _postgresql,
    "postgres": _postgresql,
    "sqlite": _sqlite,
    "duckdb": _duckdb,
}


# Errors.

_ONLY_READS = "the query would change something: give one SELECT, which only reads"
_LOGIN = (
    "the database refuses the login: check the user, "
    "and the password in PGPASSWORD, ~/.pgpass or a service file"
)
_BROKEN = "the connection to the database broke off: nothing was published or paid; try again"
_UNKNOWN_NAME = (
    "the query names a table or column that the database does not have: "
    "try it in the database's own client"
)
_REASONS = (
    (r"authentication failed|no password supplied|pg_hba\.conf|role .* does not exist", _LOGIN),
    (
        r"to connect|unable to open|not a database|IOException",
        "cannot open the database: check its address, and that it runs and may be read",
    ),
    (r"SQLSTATE: 25006|not authorized|prohibited|readonly", _ONLY_READS),
    (
        r"SQLSTATE: 42501|permission denied",
        "the query reads what this user may not: ask for the right to SELECT it",
    ),
    (r"SQLSTATE: 42(P01|703)|no such|BinderException|CatalogException", _UNKNOWN_NAME),
    (
        r"SQLSTATE: 42|syntax error|ParserException|one statement",
        "the query is not one valid SELECT: try it in the database's own client",
    ),
    (
        r"SQLSTATE: (08|57)|terminating connection|server closed|connection not open|no connection",
        _BROKEN,
    ),
)
_FAILED = (
    "the query fails on a row, or a column holds values of several kinds: "
    "try it in the database's own client, or CAST in it"
)


def _guarded(batches: Batches) -> Batches:
    """The batches, a driver's errors rewritten; those of who consumes them do not pass here."""
    with rewritten(_REASONS, _FAILED):
        yield from batches
