"""Spark tables: every partition is added up where it lies, and whole numbers alone come back.

An executor runs over its partition's batches the same function that a file's batches go through.
What it gives is a short list of whole numbers; Spark adds them up across partitions, on the
executors too, and the driver collects one row per number. Whole numbers add up to the same in any
order, so the total is that of a local table to the last bit, and a partition that is computed again
after an executor died counts once.

An error on an executor is not raised there, since Spark would log it and try again; its sentence,
which holds no value, comes back among the numbers.
"""

import os
import sys
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tacit.errors import TableError
from tacit.holder.encode import Diagnostics
from tacit.holder.persons import Repeats
from tacit.holder.tally import OnRows, Tally, Total
from tacit.rows.arrow import Batches
from tacit.rows.drivers import rewritten
from tacit.rows.table import ONE, ROWS
from tacit.study import Study

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "kind string, name string, position int, number decimal(38, 0)"
_ARROW = pa.schema(
    [
        ("kind", pa.string()),
        ("name", pa.string()),
        ("position", pa.int32()),
        ("number", pa.decimal128(38, 0)),
    ]
)

Numbered = tuple[str, str, int, int]
"""What is counted (a kind and a name), its place, and a whole number to add up."""


def total_of_partitions(
    tally: Tally[Total],
    study: Study,
    frame: "DataFrame",
    *,
    diagnostics: Diagnostics | None,
    on_rows: OnRows,
) -> Total:
    """What the rows of a Spark DataFrame add up to; `on_rows` hears of all of them at the end."""
    total = tally.to_numbers(tally.add_up(study, iter(())))
    counted = diagnostics is not None
    with rewritten(_REASONS, _FAILED):
        sums = numbers_of_partitions(tally, study, frame, count=counted).collect()
    numbers = [tuple(row) for row in sums]
    complaints = sorted(name for kind, name, _, _ in numbers if kind == "complaint")
    if complaints:
        raise TableError(complaints[0])
    for kind, name, position, number in sorted(numbers, key=itemgetter(2)):
        if kind == "total":
            total[position] += int(number)
        elif kind == "read":
            on_rows(int(number))
        elif diagnostics is not None:
            _count(diagnostics, kind, name, int(number))
    return tally.from_numbers(study, total)


def numbers_of_partitions(
    tally: Tally[Any], study: Study, frame: "DataFrame", *, count: bool
) -> "DataFrame":
    """Whole numbers added up over all partitions, as a DataFrame: all that the driver sees."""
    from pyspark.sql import functions

    for name in study.table_names:
        if frame.columns.count(name) != 1:
            raise TableError(
                f"the Spark table needs exactly one column named {name!r}, as the study says"
            )
    # By place: Spark would take dots and capitals in a name its own way.
    names = [name for name in study.table_names if name != study.person]
    places = [f"c{frame.columns.index(name)}" for name in names]
    by_place = frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))
    chosen = by_place.select(*places)
    if study.person is not None:
        names += [ROWS, ONE]
        chosen = _by_person(by_place, places, f"c{frame.columns.index(study.person)}")
    partition = _Partition(tally, study.document(), names, count)
    counted = chosen.mapInArrow(partition.numbers, SCHEMA)
    return counted.groupBy("kind", "name", "position").agg(functions.sum("number"))


def repeats_in(frame: "DataFrame", column: str) -> Repeats:
    """How often a column's values come back, counted by Spark; for the holder's own eyes."""
    from pyspark.sql import functions

    if frame.columns.count(column) != 1:
        raise TableError(f"the Spark table needs exactly one column named {column!r}")
    values = frame.toDF(*(f"c{place}" for place in range(len(frame.columns)))).select(
        f"c{frame.columns.index(column)}"
    )
    rows = functions.col("count")
    counted = values.dropna().groupBy(*values.columns).count()
    totals = counted.agg(
        functions.count(rows), functions.sum((rows > 1).cast("long")), functions.max(rows)
    )
    with rewritten(_REASONS, _FAILED):
        persons, repeated, most_rows = totals.collect()[0]
    return Repeats(persons=persons, repeated=repeated or 0, most_rows=most_rows or 0)


def _by_person(frame: "DataFrame", places: list[str], person: str) -> "DataFrame":
    """The columns with how many rows each row's person has, and a mark on one row of each.

    Rows of a person meet in one partition, and are counted there.
    """
    from pyspark.sql import Window, functions

    column = functions.col(person)
    if dict(frame.dtypes)[person] in {"float", "double"}:
        column = functions.nanvl(column, functions.lit(None))
    same = Window.partitionBy(column)
    rows = functions.when(column.isNotNull(), functions.count(functions.lit(1)).over(same))
    number = functions.row_number().over(same.orderBy(column))
    one = functions.when(column.isNotNull() & (number == 1), 1).otherwise(0)
    return frame.select(*places, rows.alias("rows"), one.alias("one"))


@dataclass(frozen=True)
class _Partition:
    """What an executor does: everything it needs, as plain values."""

    tally: Tally[Any]
    document: dict[str, Any]
    names: list[str]
    count: bool

    def numbers(self, batches: Batches) -> Batches:
        """One batch of numbers for all batches of a partition."""
        kinds, names, positions, values = zip(*self._numbers(batches), strict=True)
        columns = [
            pa.array(column, kind)
            for column, kind in zip((kinds, names, positions, values), _ARROW.types, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=_ARROW)

    def _numbers(self, batches: Batches) -> list[Numbered]:
        try:
            return self._added_up(batches)
        except TableError as error:
            return [("complaint", str(error), 0, 0)]
        except (OSError, EOFError, MemoryError):  # the machine's fault: Spark tries again elsewhere
            raise
        except Exception:  # noqa: BLE001  (whatever a node sent must not stop the rest)
            return [("complaint", _UNREADABLE, 0, 0)]

    def _added_up(self, batches: Batches) -> list[Numbered]:
        study = Study.from_document(self.document)
        diagnostics = Diagnostics() if self.count else None
        read: list[int] = []
        named = (batch.rename_columns(self.names) for batch in batches)
        total = self.tally.add_up(study, named, diagnostics=diagnostics, on_rows=read.append)
        numbers = [
            ("total", "", place, number)
            for place, number in enumerate(self.tally.to_numbers(total))
        ]
        numbers.append(("read", "", 0, sum(read)))
        if diagnostics is not None:
            numbers += [
                ("count", name, 0, getattr(diagnostics, name))
                for name in ("rows", "shrunk", "incomplete")
            ]
            numbers += [
                ("clamped", name, place, number)
                for place, (name, number) in enumerate(diagnostics.clamped.items())
            ]
        return numbers


def _count(diagnostics: Diagnostics, kind: str, name: str, number: int) -> None:
    if kind == "clamped":
        diagnostics.count_clamped(name, number)
    else:
        setattr(diagnostics, name, getattr(diagnostics, name) + number)


# The session of the command line.


def spark_table(name: str, master: str | None = None) -> "DataFrame":
    """A table of Spark's catalogue by its name, or files as parquet.`path`, in a new session."""
    with rewritten(_REASONS, _FAILED):
        from pyspark.errors import AnalysisException, ParseException

        session = _session(master)
        try:
            frame = session.table(name)
            _ = frame.columns
        except (AnalysisException, ParseException):
            raise TableError(
                f"Spark has no table {name!r} that can be read: check its name, or give files as "
                "parquet.`path`"
            ) from None
        return frame


def _session(master: str | None) -> "SparkSession":
    """A quiet session: its log, on this screen, would quote values of a query that fails."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("tacit publish")
    settings = {
        "spark.log.level": "OFF",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(2**16),
    }
    for setting, value in settings.items():
        builder = builder.config(setting, value)
    return (builder.master(master) if master else builder).getOrCreate()


_REASONS = (
    (
        "^(ModuleNotFound|Import)Error",
        "Spark tables need the extra spark: pip install 'tacit-dp[spark]'",
    ),
    ("JAVA_", "Spark needs Java 17 or later: install it, or set JAVA_HOME"),
    (
        "No module named 'tacit",
        "Spark's executors cannot import tacit: install it in the Python they run (PYSPARK_PYTHON)",
    ),
    (
        "PYTHON_VERSION_MISMATCH",
        "Spark's executors must run the driver's version of Python: set PYSPARK_PYTHON",
    ),
)
_UNREADABLE = (
    "the Spark table cannot be read: check that each column holds values of one plain kind"
)
_FAILED = (
    "Spark could not read the table: its own log, in the holder's house, says why; "
    "nothing was published or paid"
)
