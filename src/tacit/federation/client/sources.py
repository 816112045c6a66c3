"""Sources: where a policy's rows lie, opened, and tried before anybody depends on them.

    data = ["/srv/tacit/*.parquet"]                      files, folders, patterns
    data = ["sqlite:////srv/tacit/ward.db"]              and query = "select …"
    data = ["duckdb:////srv/tacit/ward.duckdb"]          and query
    data = ["postgresql://reader@db.ward.example/stays"] and query
    data = ["file:/etc/tacit/database"]                  and query; the address, with its password
    data = ["env:WARD_DATABASE"]                         and query; the same in a variable
    data = ["spark:ward.stays"]                          perhaps spark_master = "spark://…"

A secret never stands in the policy: a password in an address is refused.
"""

import glob
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import TableError, TacitError
from tacit.federation.client.lean import want_pandas
from tacit.federation.client.policy import SPARK, Policy
from tacit.holder.division import persons_in
from tacit.holder.persons import batches_of
from tacit.rows.arrow import Batches
from tacit.rows.sql import sql_table
from tacit.rows.table import Table, table_of
from tacit.study import Study

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TooFewRowsError(TableError):
    """The table has fewer rows, or persons, than the policy asks for."""


def table_at(study: Study, policy: Policy) -> "Table | DataFrame":
    """The policy's rows, refused before anything is paid where they, or their persons, are few."""
    if policy.is_spark:
        frame = _frame(policy)
        if policy.least_rows and _size(study, frame) < policy.least_rows:
            raise _too_few(policy.least_rows)
        return frame
    if policy.query is None:
        return _counted(study, list(policy.data), policy.least_rows)
    return _counted(study, sql_table(policy.data[0], policy.query), policy.least_rows)


def _frame(policy: Policy) -> "DataFrame":
    want_pandas()
    from tacit.holder.spark import spark_table

    return spark_table(policy.data[0].removeprefix(SPARK), policy.spark_master)


def _size(study: Study, frame: "DataFrame") -> int:
    """Rows of a Spark table, or its persons in a study of persons."""
    if study.person is None:
        return frame.count()
    return frame.select(study.person).distinct().count()


def _counted(study: Study, source: object, least: int) -> Table:
    """A source, refused at its end, before anything is paid, where it has too few rows or persons.

    Persons are counted in a study of persons.
    """
    table = table_of(source, study)

    def check(rows: int) -> None:
        if rows < least:
            raise _too_few(least)

    def batches(*_study: Study) -> Batches:
        rows = 0
        for batch in batches_of(study, table):
            rows += batch.num_rows if study.person is None else persons_in(batch)
            yield batch
        check(rows)

    return replace(table, batches=batches, by_person=batches, enough=check)


def _too_few(least: int) -> TooFewRowsError:
    return TooFewRowsError(f"the table has fewer rows than least_rows = {least} of the policy")


def source_trouble(policy: Policy) -> str | None:
    """What is wrong with the policy's source; it is opened, and its column names are looked at."""
    try:
        names = _column_names(policy)
    except TacitError as error:
        return str(error)
    if names is None or policy.columns is None:
        return None
    absent = [column for column in policy.columns if column not in names]
    if absent:
        return f"data: it has no column {', '.join(map(repr, absent))}, which the policy offers"
    return None


def _column_names(policy: Policy) -> list[str] | None:
    """The source's columns; None where they are known with a study only, as those of files."""
    if policy.is_spark:
        return list(_frame(policy).columns)
    if policy.query is None:
        for place in policy.data:
            if not glob.glob(place):  # noqa: PTH207
                raise TableError(f"data: nothing at {place!r}")
            for name in glob.glob(place):  # noqa: PTH207
                _open(Path(name))
        return None
    first = next(iter(sql_table(policy.data[0], policy.query).batches()), None)
    return None if first is None else list(first.schema.names)


def _open(path: Path) -> None:
    """Refuse a file that this user cannot read."""
    try:
        if path.is_dir():
            next(path.iterdir(), None)
            return
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise TableError(f"data: {str(path)!r} cannot be read: {error.strerror}") from None
