"""What adding up costs beside reading, source by source.

Parquet, PostgreSQL, DuckDB, SQLite and Spark.

The same rows, 19 features and a response, lie in each source. Two measures of each, in processes of
their own: `read` takes every batch and does nothing with it; `statistics` adds them up as `publish`
does. CPU time is user plus system, of this process alone for databases (a server's own work is the
reader's either way), of every process of the session for Spark, whose rate is taken from two sizes,
so that start-up cancels. The smallest of several runs counts. BLAS keeps to one thread.

    python benchmarks/sources.py [--quick] [--check] [--only NAME ...]

`--quick` takes a tenth of the rows; `--check` exits 1 when adding up takes more than
MOST_MICROSECONDS of CPU per row beyond reading, or memory grows with the rows (but for DuckDB,
which keeps what it read in a cache of its own). A source whose server or extra is missing is left
out, and said so.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frame import Bench, cpu_time, measured_apart, peak_memory

sys.path.append(str(Path(__file__).parents[1] / "tests" / "rows"))

ROWS = 2_000_000
SPARK_ROWS = 4_000_000
REPEATS = 3
PARTITIONS = 8
MOST_MICROSECONDS = 2.0
"""Bar: CPU time per row of 20 columns beyond reading it."""
MOST_GROWTH = 1.25
"""Bar: peak memory against a fifth of the rows."""
FEATURES = [f"x{k}" for k in range(19)]
COLUMNS = [*FEATURES, "y"]
SOURCES = ("parquet", "postgresql", "duckdb", "sqlite")


COLUMNS_SHOWN = {"source": "<11", "rows": ",", "reading, µs per row": ".2f", "with sums": ".2f"}
COLUMNS_SHOWN |= {"rows per second and core": ",", "peak, MB": ".0f", "with a fifth, MB": ".0f"}


def main() -> None:
    bench = Bench(__doc__, quick="a tenth of the rows")
    bench.option("--only", nargs="+", choices=[*SOURCES, "spark"], default=[*SOURCES, "spark"])
    bench.option("--measure", nargs=3, metavar=("WHAT", "ADDRESS", "ROWS"), help=argparse.SUPPRESS)
    options = bench.options()
    if options.measure:
        what, address, rows = options.measure
        print(json.dumps(MEASURES[what](address, int(rows))))
        return
    share = 10 if options.quick else 1
    table = bench.table("sources", COLUMNS_SHOWN)
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder:
        for name in options.only:
            try:
                if name == "spark":
                    figures = spark(SPARK_ROWS // share)
                else:
                    figures = database(name, Path(folder), ROWS // share)
            except (ImportError, OSError, subprocess.CalledProcessError) as error:
                bench.say(f"{name} left out: {type(error).__name__}")
                continue
            table.row(name, *figures.shown)
            bar(bench, name, figures)
    bench.say(f"CPU µs per row of {len(COLUMNS)} columns")
    bench.finish()


@dataclass(frozen=True)
class Figures:
    """CPU µs per row; peak memory in bytes with all rows and with a fifth, but for Spark."""

    rows: int
    reading: float
    summing: float
    peak: float | None = None
    peak_of_few: float | None = None

    @property
    def shown(self) -> list[float | None]:
        """A row of the table."""
        peaks = [None if peak is None else peak / 1e6 for peak in (self.peak, self.peak_of_few)]
        return [self.rows, self.reading, self.summing, round(1e6 / self.summing, -4), *peaks]


def bar(bench: Bench, name: str, figures: Figures) -> None:
    """The bars of one source."""
    more = figures.summing - figures.reading
    bench.bar(
        f"{name}: {more:.2f} of at most {MOST_MICROSECONDS:g} µs beyond reading",
        met=more <= MOST_MICROSECONDS,
    )
    if figures.peak is not None and figures.peak_of_few is not None and name != "duckdb":
        growth = figures.peak / figures.peak_of_few
        bench.bar(
            f"{name}: memory {growth:.2f} of at most {MOST_GROWTH}", met=growth <= MOST_GROWTH
        )


def database(name: str, folder: Path, rows: int) -> Figures:
    """Measure one source that lies on this machine."""
    with MAKERS[name](folder, rows) as address:
        reads = [measured_apart(__file__, "read", address, rows) for _ in range(REPEATS)]
        sums = [measured_apart(__file__, "statistics", address, rows) for _ in range(REPEATS)]
        few = [measured_apart(__file__, "statistics", address, rows // 5) for _ in range(2)]
    least = min(sums, key=lambda run: run["cpu"])
    return Figures(
        rows=rows,
        reading=min(run["cpu"] for run in reads) / rows * 1e6,
        summing=least["cpu"] / rows * 1e6,
        peak=least["peak"],
        peak_of_few=min(run["peak"] for run in few),
    )


def study() -> Any:  # noqa: ANN401
    """The agreement that is measured: every range is ±3."""
    from tacit import Study

    features = [{"name": name, "range": [-3, 3]} for name in FEATURES]
    return Study.from_document(
        {
            "name": "benchmark",
            "epsilon": 1.0,
            "delta": 1e-6,
            "response": {"name": "y", "range": [-3, 3]},
            "features": features,
        }
    )


def table(address: str, rows: int) -> Any:  # noqa: ANN401
    """The first rows of a source: what `publish` would take."""
    from tacit import sql_table
    from tacit.rows.table import Table, table_of

    if "://" in address:
        return sql_table(address, f"SELECT * FROM benchmark LIMIT {rows}")
    whole = table_of(address, study())

    def first() -> Iterator[Any]:
        left = rows
        for batch in whole.batches():
            yield batch.slice(0, left)
            left -= batch.num_rows
            if left <= 0:
                return

    return Table(first)


def read(address: str, rows: int) -> dict[str, float]:
    """Take every batch, and nothing else."""
    source = table(address, rows)
    start = cpu_time()
    count = sum(batch.num_rows for batch in source.batches())
    return {"cpu": cpu_time() - start, "peak": peak_memory(), "rows": count}


def statistics(address: str, rows: int) -> dict[str, float]:
    """Add them up, as `publish` does."""
    from tacit.holder.statistics import STATISTICS
    from tacit.holder.tally import total_of

    agreement = study()
    source = table(address, rows)
    start = cpu_time()
    total = total_of(STATISTICS, agreement, source)
    return {"cpu": cpu_time() - start, "peak": peak_memory(), "rows": total.n}


MEASURES: dict[str, Callable[[str, int], dict[str, float]]] = {
    "read": read,
    "statistics": statistics,
}


# Where the rows lie.


def blocks(rows: int) -> Iterator[Any]:
    """The rows, piece by piece."""
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(rows)
    for start in range(0, rows, 100_000):
        size = min(100_000, rows - start)
        yield pa.table({name: rng.standard_normal(size) for name in COLUMNS})


class Made:
    """A source that is there while `with` lasts; gives its address."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.folder = folder
        self.rows = rows

    def __exit__(self, *_: object) -> None:
        """Nothing stays but what the folder takes with it."""


class Parquet(Made):
    def __enter__(self) -> str:
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.folder / "benchmark.parquet"
        with pq.ParquetWriter(
            path, pa.schema([(name, pa.float64()) for name in COLUMNS])
        ) as writer:
            for block in blocks(self.rows):
                writer.write_table(block)
        return str(path)


class DuckDB(Made):
    def __enter__(self) -> str:
        import duckdb

        path = self.folder / "benchmark.duckdb"
        with duckdb.connect(path) as connection:
            connection.execute(
                f"CREATE TABLE benchmark ({', '.join(f'{name} DOUBLE' for name in COLUMNS)})"
            )
            for block in blocks(self.rows):
                connection.register("block", block)
                connection.execute("INSERT INTO benchmark SELECT * FROM block")
        return f"duckdb:///{path}"


class SQLite(Made):
    def __enter__(self) -> str:
        import sqlite3

        path = self.folder / "benchmark.db"
        connection = sqlite3.connect(path)
        connection.execute(
            f"CREATE TABLE benchmark ({', '.join(f'{name} REAL' for name in COLUMNS)})"
        )
        for block in blocks(self.rows):
            values = zip(*(block[name].to_pylist() for name in COLUMNS), strict=True)
            connection.executemany(
                f"INSERT INTO benchmark VALUES ({', '.join('?' * len(COLUMNS))})", values
            )
        connection.commit()
        connection.close()
        return f"sqlite:///{path}"


class PostgreSQL(Made):
    """A server of its own, as the tests start one."""

    def __enter__(self) -> str:
        import adbc_driver_postgresql.dbapi
        from postgres import PASSWORD, Server

        self.server = Server()
        self.server.__enter__()
        os.environ["PGPASSWORD"] = PASSWORD
        with (
            adbc_driver_postgresql.dbapi.connect(self.server.url) as connection,
            connection.cursor() as cursor,
        ):
            for number, block in enumerate(blocks(self.rows)):
                cursor.adbc_ingest("benchmark", block, mode="append" if number else "create")
            connection.commit()
        return self.server.url

    def __exit__(self, *_: object) -> None:
        self.server.__exit__()


MAKERS: dict[str, Any] = {
    "parquet": Parquet,
    "postgresql": PostgreSQL,
    "duckdb": DuckDB,
    "sqlite": SQLite,
}


# Spark, on this machine's cores. Rows are made where they are read, so that no disk is measured.


def spark(rows: int) -> Figures:
    """Measure adding up at two sizes in one session."""
    from pyspark.sql import SparkSession

    from tacit.holder.statistics import STATISTICS
    from tacit.holder.tally import total_of

    os.environ |= {
        "PYSPARK_PYTHON": sys.executable,
        "OPENBLAS_NUM_THREADS": "1",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    settings = {
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
        "spark.ui.showConsoleProgress": "false",
    }
    settings |= {"spark.sql.execution.arrow.maxRecordsPerBatch": str(2**16)}
    builder = SparkSession.builder.master("local[2]").appName("tacit benchmark")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    agreement = study()

    def frame(count: int) -> Any:  # noqa: ANN401
        # Even on ±3.
        columns = [f"hash(id, {k}) / 715827882.7D AS {name}" for k, name in enumerate(COLUMNS)]
        return session.range(0, count, 1, PARTITIONS).selectExpr(*columns)

    def added(count: int) -> float:
        return clocked(lambda: total_of(STATISTICS, agreement, frame(count)).n)

    def only_read(count: int) -> float:
        return clocked(lambda: frame(count).mapInArrow(_nothing(), "n long").count())

    added(rows // 100)  # workers start, classes are compiled
    few = rows // 4
    differences = [
        [work(rows) - work(few) for _ in range(REPEATS - 1)] for work in (only_read, added)
    ]
    session.stop()
    reading, summing = (min(runs) / (rows - few) * 1e6 for runs in differences)
    return Figures(rows=rows, reading=reading, summing=summing)


def _nothing() -> Callable[[Iterator[Any]], Iterator[Any]]:
    """An executor's function that takes every batch and gives none.

    Made here, so that it travels by value.
    """

    def function(batches: Iterator[Any]) -> Iterator[Any]:
        for _ in batches:
            pass
        yield from ()

    return function


def clocked(work: Callable[[], object]) -> float:
    """CPU seconds that this process and all below it spend on some work."""
    start = family_cpu()
    work()
    time.sleep(0.5)
    return family_cpu() - start


def family_cpu() -> float:
    """CPU seconds so far of this process and those it started, Spark's workers included."""
    import psutil

    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(sum(process.cpu_times()[:2]) for process in processes)


if __name__ == "__main__":
    main()
