"""What counting persons costs.

CPU time and memory of `publish` on 5 million rows of 1 million persons in 20 columns, from one
Parquet file in random order, with and without `person` in the study; ids are whole numbers, or text
of 36 letters as of a UUID. Beside it, DuckDB's `GROUP BY` count of the same column alone, which is
the least that any program must do: it divides no row and adds nothing up.

Each measure is a process of its own, on one thread. CPU time is user plus system, from after the
imports to the end; the smallest of several runs counts. Memory is the process's peak, imports and
all.

    python benchmarks/person_counting.py [--quick] [--check]

`--quick` takes 1 million rows of 200,000 persons; `--check` exits 1 when a bar is missed.
"""

import argparse
import json
import tempfile
from pathlib import Path

from frame import Bench, cpu_time, measured_apart, peak_memory

MOST_RATIO = 2.0
"""Bar: CPU time with persons, against that without."""
MOST_MEMORY = 500e6
"""Bar: peak memory in bytes."""
FEATURES = [f"x{i}" for i in range(19)]
ROWS_PER_PERSON = 5
GROUP_ROWS = 250_000


def main() -> None:
    bench = Bench(__doc__, quick="1 million rows instead of 5")
    bench.option("--repeats", type=int, default=3, help="runs of each; the smallest counts")
    bench.option("--measure", nargs=2, metavar=("WHAT", "PATH"), help=argparse.SUPPRESS)
    options = bench.options()
    if options.measure:
        what, path = options.measure
        print(json.dumps(MEASURES[what](path)))
        return
    compare(bench, 1_000_000 if options.quick else 5_000_000, options.repeats)
    bench.finish()


def compare(bench: Bench, rows: int, repeats: int) -> None:
    """Measure each, in turn, and set the bars."""
    runs: dict[str, list[dict[str, float]]] = {what: [] for what in MEASURES}
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder:
        path = make_table(Path(folder) / "visits.parquet", rows)
        for _ in range(repeats):  # in turn, so that a busy spell meets all
            for what in MEASURES:
                runs[what].append(measured_apart(__file__, what, path))
    table = bench.table("person counting", {"": "<34", "CPU, s": ".2f", "peak, MB": ".0f"})
    for what, measured in runs.items():
        table.row(WORDS[what], least(measured, "cpu"), least(measured, "peak") / 1e6)
    plain = least(runs["plain"], "cpu")
    for what in ("numbers", "letters"):
        ratio = least(runs[what], "cpu") / plain
        peak = least(runs[what], "peak")
        bench.bar(f"{WORDS[what]}: CPU {ratio:.2f} of at most {MOST_RATIO} times", met=ratio <= 2)
        bench.bar(
            f"{WORDS[what]}: peak memory {peak / 1e6:.0f} of at most {MOST_MEMORY / 1e6:.0f} MB",
            met=peak <= MOST_MEMORY,
        )
        bench.say(f"{WORDS[what]}: {ratio:.2f} times the CPU of publishing rows")


def least(runs: list[dict[str, float]], figure: str) -> float:
    """The smallest of a figure over some runs."""
    return min(run[figure] for run in runs)


def make_table(path: Path, rows: int) -> Path:
    """Normal columns, and persons in random order."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    rng = np.random.default_rng(rows)
    columns = [*((name, pa.float64()) for name in [*FEATURES, "y"])]
    schema = pa.schema([*columns, ("number", pa.int64()), ("letters", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, GROUP_ROWS):
            size = min(GROUP_ROWS, rows - start)
            ids = pa.array(rng.integers(0, rows // ROWS_PER_PERSON, size))
            padded = pc.utf8_lpad(pc.cast(ids, pa.string()), 12, "0")
            text = pc.binary_join_element_wise("0b3f9a52-77c1-4e0d-9b1a-", padded, "")
            values = [pa.array(rng.standard_normal(size)) for _ in columns]
            writer.write_table(pa.table([*values, ids, text], schema=schema))
    return path


def published(path: str, person: str | None) -> dict[str, float]:
    """Publish, ledger and noise included."""
    from tacit import Study, publish
    from tacit.privacy.noise import secure_noise

    document = {
        "name": "benchmark",
        "epsilon": 1.0,
        "delta": 1e-6,
        "person": person,
        "response": {"name": "y", "range": [-3, 3]},
        "features": [{"name": name, "range": [-3, 3]} for name in FEATURES],
    }
    study = Study.from_document(document)
    secure_noise([1.0], -32)  # imports OpenDP
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder:
        start = cpu_time()
        publish(study, path, holder="benchmark", ledger=Path(folder) / "ledger.db")
        spent = cpu_time() - start
    return {"cpu": spent, "peak": peak_memory()}


def plain(path: str) -> dict[str, float]:
    """Each row is a person."""
    return published(path, None)


def numbers(path: str) -> dict[str, float]:
    """Persons by whole numbers."""
    return published(path, "number")


def letters(path: str) -> dict[str, float]:
    """Persons by 36 letters."""
    return published(path, "letters")


def grouped(path: str) -> dict[str, float]:
    """DuckDB's count of rows by person, on one thread, and nothing else."""
    import duckdb

    with duckdb.connect(config={"threads": 1}) as connection:
        start = cpu_time()
        counted = "SELECT number, count(*) AS rows FROM read_parquet(?) GROUP BY number"
        connection.execute(f"SELECT max(rows) FROM ({counted})", [path]).fetchall()
        return {"cpu": cpu_time() - start, "peak": peak_memory()}


def grouped_letters(path: str) -> dict[str, float]:
    """The same by 36 letters."""
    import duckdb

    with duckdb.connect(config={"threads": 1}) as connection:
        start = cpu_time()
        counted = "SELECT letters, count(*) AS rows FROM read_parquet(?) GROUP BY letters"
        connection.execute(f"SELECT max(rows) FROM ({counted})", [path]).fetchall()
        return {"cpu": cpu_time() - start, "peak": peak_memory()}


MEASURES = {
    "plain": plain,
    "numbers": numbers,
    "letters": letters,
    "grouped": grouped,
    "grouped_letters": grouped_letters,
}
WORDS = {
    "plain": "publish, a row is a person",
    "numbers": "publish, persons by numbers",
    "letters": "publish, persons by 36 letters",
    "grouped": "DuckDB: GROUP BY number alone",
    "grouped_letters": "DuckDB: GROUP BY letters alone",
}


if __name__ == "__main__":
    main()
