"""Where a command's rows come from: files, a query or a Spark table."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import TableError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tacit.rows.table import Table
    from tacit.study import Study


@dataclass(frozen=True)
class Asked:
    """What the command line says of the source, exactly one of which may be said."""

    data: list[str]
    sql: str | None
    database: str | None
    spark_table: str | None
    spark_master: str | None
    written: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.sql is None) != (self.database is None):
            raise TableError(
                "--sql and --database go together: "
                '--sql "SELECT …" --database postgresql://host/name'
            )
        if self.spark_master is not None and self.spark_table is None:
            raise TableError("--spark-master goes with --spark-table")
        is_said = any(self.written[name] for name in self.written if name != "missing")
        if is_said and not self.data:
            raise TableError("how a table is written is said of files alone")
        if bool(self.data) + (self.sql is not None) + (self.spark_table is not None) != 1:
            raise TableError(
                "give one source of rows: files, or --sql with --database, or --spark-table"
            )


def source_of(asked: Asked, study: "Study") -> "Table | DataFrame":
    """What `publish` takes as its table."""
    if asked.spark_table is not None:
        from tacit.holder.spark import spark_table

        return spark_table(asked.spark_table, asked.spark_master)
    from tacit.rows.table import table_of, with_codes
    from tacit.rows.written import Format

    if asked.sql is not None and asked.database is not None:
        from tacit.rows.sql import sql_table

        codes = asked.written.get("missing", ())
        return with_codes(sql_table(asked.database, asked.sql), study, codes)
    return table_of(asked.data, study, form=Format(**asked.written))


def written_as(
    *,
    separator: str | None,
    missing: list[str] | None,
    columns: list[str] | None,
    **others: str | int | None,
) -> dict[str, Any]:
    """What options say of how a table is written, as a format's fields."""
    lists = {"missing": tuple(missing or ()), "columns": _named_columns(columns)}
    return {"separator": "\t" if separator in {"tab", "\\t"} else separator} | lists | others


def _named_columns(pairs: list[str] | None) -> dict[str, str]:
    """The table's names of the study's columns, from texts such as age=Age."""
    columns = {}
    for pair in pairs or []:
        own, equals, theirs = pair.partition("=")
        if not own or not equals or not theirs:
            raise TableError(
                f"--column needs the study's name and the table's, as age=Age; got {pair[:60]!r}"
            )
        columns[own] = theirs
    return columns


def files_of(asked: Asked) -> Iterator[Path]:
    """The files that are read, those in folders and behind patterns among them."""
    from tacit.rows.table import files_at

    for place in asked.data:
        yield from files_at(place)
    if asked.database is not None:
        from tacit.rows.sql import database_file

        if (path := database_file(asked.database)) is not None:
            yield path
