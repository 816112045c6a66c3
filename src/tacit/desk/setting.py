"""Setting: what the desk was started with, and the tables that may be picked."""

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.source import Asked, files_of
from tacit.desk.uploads import Upload, digest_of
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

    def digests(self) -> tuple[str, ...]:
        """Digests of these files, as they are now."""
        return tuple(digest_of(path) for path in self.files())


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


def picked(asked: Asked) -> Source:
    """What a command line names, as a page offers it."""
    name = ", ".join(asked.data)
    if asked.sql is not None:
        name = f"query: {asked.sql}"
    elif asked.spark_table is not None:
        name = f"Spark table: {asked.spark_table}"
    return Source(id=secrets.token_urlsafe(9), name=name, asked=asked)


def asked_of(
    data: list[str],
    sql: str | None = None,
    database: str | None = None,
    spark_table: str | None = None,
    spark_master: str | None = None,
) -> Asked:
    """What a command line would say of a source."""
    return Asked(
        data=data,
        sql=sql,
        database=database,
        spark_table=spark_table,
        spark_master=spark_master,
    )


def policy_source(policy: "Policy") -> Source:
    """What a site's policy names as its data."""
    if policy.query is None:
        return picked(asked_of(list(policy.data)))
    return picked(asked_of([], sql=policy.query, database=policy.data[0]))


def uploaded_source(upload: Upload) -> Source:
    """A table that was handed over."""
    return Source(id=upload.id, name=upload.name, asked=asked_of([str(upload.path)]), upload=True)


def source_named(sources: tuple[Source, ...], number: str) -> Source:
    """The source that a form chose."""
    if not number:
        raise TableError("choose a table: drop a file here, or pick one of the sources")
    for source in sources:
        if source.id == number:
            return source
    raise DeskError("this table is no longer at the desk: choose it once more")
