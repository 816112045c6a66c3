"""Setting: what the desk was started with, and the tables that may be picked."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.source import Asked, files_of
from tacit.errors import DeskError, TableError
from tacit.holder.ledger import Ledger

if TYPE_CHECKING:
    from tacit.federation.client.policy import Policy


@dataclass(frozen=True)
class Source:
    """A table by the name that a page shows: a configured one, or one that was handed over."""

    id: str
    name: str
    asked: Asked
    upload: bool = False

    def files(self) -> tuple[Path, ...]:
        """The files that are read; none where rows come from a server."""
        return tuple(files_of(self.asked))


@dataclass(frozen=True)
class Setting:
    """Which ledger pays, which key signs, who publishes, and from which sources."""

    ledger: Ledger
    key: Path
    holder: str = ""
    sources: tuple[Source, ...] = ()
    policy: "Policy | None" = None

    @property
    def signing_key(self) -> Path | None:
        """The key that signs, where there is one."""
        return self.key if self.key.is_file() else None

    def make_key(self) -> str:
        """Make a key to sign with; gives its public half."""
        from tacit.release.signature import new_key

        return new_key(self.key)

    def public_key(self) -> str | None:
        """What releases will be checked with."""
        if self.signing_key is None:
            return None
        from tacit.release.signature import load_key, public_key

        return public_key(load_key(self.signing_key))


def files_source(place: str) -> Source:
    """Files, a folder or a pattern that may be picked."""
    return Source(id=_number(), name=place, asked=_asked(data=[place]))


def query_source(sql: str, database: str) -> Source:
    """The rows of a query."""
    return Source(id=_number(), name=f"query: {sql}", asked=_asked(sql=sql, database=database))


def spark_source(table: str, master: str | None) -> Source:
    """A table of Spark's."""
    asked = _asked(spark_table=table, spark_master=master)
    return Source(id=_number(), name=f"Spark table: {table}", asked=asked)


def policy_sources(policy: "Policy") -> Iterator[Source]:
    """What a site's policy names as its data."""
    if policy.query is not None:
        yield query_source(policy.query, policy.data[0])
    else:
        yield Source(
            id=_number(), name=", ".join(policy.data), asked=_asked(data=list(policy.data))
        )


def uploaded_source(number: str, name: str, path: Path) -> Source:
    """A table that was handed over."""
    return Source(id=number, name=name, asked=_asked(data=[str(path)]), upload=True)


def source_named(sources: tuple[Source, ...], number: str) -> Source:
    """The source that a form chose."""
    if not number:
        raise TableError("choose a table: drop a file here, or pick one of the sources")
    for source in sources:
        if source.id == number:
            return source
    raise DeskError("this table is no longer at the desk: choose it once more")


def _asked(
    data: list[str] | None = None,
    sql: str | None = None,
    database: str | None = None,
    spark_table: str | None = None,
    spark_master: str | None = None,
) -> Asked:
    return Asked(data or [], sql, database, spark_table, spark_master)


def _number() -> str:
    return secrets.token_urlsafe(9)
