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
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what adding up costs beside reading.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--check", action="store_true", help="exit 1 when a bar is missed")
    parser.add_argument(
        "--only", nargs="+", choices=[*SOURCES, "spark"], default=[*SOURCES, "spark"]
    )
    parser.add_argument(
        "--measure", nargs=3, metavar=("WHAT", "ADDRESS", "ROWS"), help=argparse.SUPPRESS
    )
    arguments = parser.parse_args()
    if arguments.measure:
        what, address, rows = arguments.measure
        print(json.dumps(MEASURES[what](address, int(rows))))
        return
    share = 10 if arguments.quick else 1
    missed = False
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder:
        print(
            f"CPU µs per row of {len(COLUMNS)} columns; peak memory with all rows and with a fifth"
        )
        print(f"{'source':11} {'rows':>11} {'read':>9} {'with sums':>9}")
        for name in arguments.only:
            try:
                missed |= (
                    spark(SPARK_ROWS // share)
                    if name == "spark"
                    else database(name, Path(folder), ROWS // share)
                )
            except (ImportError, OSError, subprocess.CalledProcessError) as error:
                print(f"{name:11} left out: {type(error).__name__}", file=sys.stderr)
    sys.exit(1 if arguments.check and missed else 0)


def database(name: str, folder: Path, rows: int) -> bool:
    """Measure one source that lies on this machine; print, and say whether a bar is missed."""
    with MAKERS[name](folder, rows) as address:
        read = min(
            (measure("read", address, rows) for _ in range(REPEATS)), key=lambda run: run["cpu"]
        )
        ours = min(
            (measure("statistics", address, rows) for _ in range(REPEATS)),
            key=lambda run: run["cpu"],
        )
        few = min(measure("statistics", address, rows // 5)["peak"] for _ in range(2))
    per_read, per_row = read["cpu"] / rows * 1e6, ours["cpu"] / rows * 1e6
    peaks = f"{ours['peak'] / 1e6:4.0f} MB, {few / 1e6:4.0f} MB"
    print(
        f"{name:11} {rows:11,} {per_read:9.2f} {per_row:9.2f}  {peaks}; {1e6 / per_row:,.0f} rows per second and core"
    )
    grows = name != "duckdb" and ours["peak"] > MOST_GROWTH * few
    return per_row - per_read > MOST_MICROSECONDS or grows


def measure(what: str, address: str, rows: int) -> dict[str, float]:
    """Run one measure in a fresh process."""
    command = [sys.executable, __file__, "--measure", what, address, str(rows)]
    environment = os.environ | {
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    result: dict[str, float] = json.loads(
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    )
    return result


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
    source, start = table(address, rows), cpu_time()
    count = sum(batch.num_rows for batch in source.batches())
    return {"cpu": cpu_time() - start, "peak": peak_memory(), "rows": count}


def statistics(address: str, rows: int) -> dict[str, float]:
    """Add them up, as `publish` does."""
    from tacit.holder.statistics import STATISTICS
    from tacit.holder.tally import total_of

    agreement, source = study(), table(address, rows)
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
        self.folder, self.rows = folder, rows

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


def spark(rows: int) -> bool:
    """Measure adding up at two sizes in one session; print, and say whether a bar is missed."""
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
        columns = [
            f"hash(id, {k}) / 715827882.7D AS {name}" for k, name in enumerate(COLUMNS)
        ]  # even on ±3
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
    per_read, per_row = (min(runs) / (rows - few) * 1e6 for runs in differences)
    print(
        f"{'spark':11} {rows:11,} {per_read:9.2f} {per_row:9.2f}  {1e6 / per_row:,.0f} rows per second and core"
    )
    return per_row - per_read > MOST_MICROSECONDS


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


def cpu_time() -> float:
    """User and system seconds of this process so far, all threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_memory() -> float:
    """Largest resident size of this process in bytes."""
    line = next(
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmHWM")
    )
    return float(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
