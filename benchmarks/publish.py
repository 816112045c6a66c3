"""What publishing costs beside reading the table.

CPU time and memory on 5 million rows of 20 columns.

Ours is `publish` from a Parquet file to a release: statistics with row scaling on, ledger, noise.
It is set against a bare loop that reads the same batches from the same file and multiplies X'X, and
does nothing else: no ranges, no missing values, no bound made true, no noise. The loop has the
fastest layout we know: columns copied into one buffer of rows that stays in cache, whose product
with its own transpose BLAS computes by halves (syrk).

Each measure is a process of its own. CPU time is user plus system over all threads, from after the
imports to the end; the smallest of several runs counts, so that other work on the machine does
little harm. Memory is the process's peak, imports and all. BLAS keeps to one thread on both sides.

    python benchmarks/publish.py [--quick] [--check]

`--quick` takes 1 million and 200,000 rows; `--check` exits 1 when a bar is missed.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

MOST_RATIO = 1.5
"""Bar: CPU time of publishing against the bare loop."""
MOST_MEMORY = 300e6
"""Bar: peak memory in bytes."""
MOST_GROWTH = 1.1
"""Bar: peak memory with five times the rows; flat, but for the allocator's mood."""

FEATURES = [f"x{i}" for i in range(19)]
COLUMNS = [*FEATURES, "y"]
GROUP_ROWS = 250_000
BARE_ROWS = 2**13


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Measure what publishing costs beside reading the table."
    )
    parser.add_argument("--quick", action="store_true", help="1 million rows instead of 5")
    parser.add_argument("--check", action="store_true", help="exit 1 when a bar is missed")
    parser.add_argument(
        "--repeats", type=int, default=5, help="runs of each measure; the smallest counts"
    )
    parser.add_argument("--measure", nargs=2, metavar=("WHAT", "PATH"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        what, path = arguments.measure
        print(json.dumps(MEASURES[what](path)))
        return
    missed = compare(
        *((200_000, 1_000_000) if arguments.quick else (1_000_000, 5_000_000)), arguments.repeats
    )
    sys.exit(1 if arguments.check and missed else 0)


def compare(few: int, many: int, repeats: int) -> bool:
    """Measure both sizes, print, and say whether a bar is missed."""
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder:
        small, large = (
            str(make_table(Path(folder) / f"{rows}.parquet", rows)) for rows in (few, many)
        )
        bare, ours = [], []
        for _ in range(repeats):  # in turn, so that a busy spell meets both
            bare.append(measure("bare", large))
            ours.append(measure("ours", large))
        little = [measure("ours", small) for _ in range(2)]
    bare_cpu, ours_cpu = (min(run["cpu"] for run in runs) for runs in (bare, ours))
    peak, little_peak = (min(run["peak"] for run in runs) for runs in (ours, little))
    print(f"{many:,} rows of {len(COLUMNS)} columns, least CPU time of {repeats} runs")
    print(
        f"  bare loop   {bare_cpu:6.2f} s   peak {min(run['peak'] for run in bare) / 1e6:4.0f} MB"
    )
    print(
        f"  publish     {ours_cpu:6.2f} s   peak {peak / 1e6:4.0f} MB ({little_peak / 1e6:.0f} MB with {few:,} rows)"
    )
    print(
        f"  start-up, once, not counted: bare {min(r['imports'] for r in bare):.2f} s, publish {min(r['imports'] for r in ours):.2f} s"
    )
    print(f"peak memory  {peak / 1e6:.0f} MB (bar {MOST_MEMORY / 1e6:.0f} MB)")
    print(
        f"memory ratio {peak / little_peak:.2f} for {many / few:.0f} times the rows (bar {MOST_GROWTH})"
    )
    print(f"CPU ratio    {ours_cpu / bare_cpu:.2f} publish to bare loop (bar {MOST_RATIO})")
    return (
        ours_cpu / bare_cpu > MOST_RATIO or peak > MOST_MEMORY or peak / little_peak > MOST_GROWTH
    )


def measure(what: str, path: str) -> dict[str, float]:
    """Run one measure in a fresh process."""
    command = [sys.executable, __file__, "--measure", what, path]
    environment = os.environ | {
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    result: dict[str, float] = json.loads(
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    )
    return result


def make_table(path: Path, rows: int) -> Path:
    """Normal columns in full precision, in row groups.

    One value in 370 lies outside the study's range of ±3.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(rows)
    with pq.ParquetWriter(path, pa.schema([(name, pa.float64()) for name in COLUMNS])) as writer:
        for start in range(0, rows, GROUP_ROWS):
            size = min(GROUP_ROWS, rows - start)
            writer.write_table(pa.table({name: rng.standard_normal(size) for name in COLUMNS}))
    return path


def bare(path: str) -> dict[str, float]:
    """Read and multiply, nothing else."""
    import numpy as np
    import pyarrow.parquet as pq

    from tacit.rows.table import BATCH_ROWS, READ_BYTES

    start = cpu_time()
    gram, buffer = np.zeros((len(COLUMNS),) * 2), np.empty((len(COLUMNS), BARE_ROWS))
    file = pq.ParquetFile(path, pre_buffer=False, buffer_size=READ_BYTES)
    for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=COLUMNS, use_threads=False):
        columns = [batch.column(i).to_numpy() for i in range(len(COLUMNS))]
        for first in range(0, batch.num_rows, BARE_ROWS):
            block = buffer[:, : min(BARE_ROWS, batch.num_rows - first)]
            for row, column in zip(block, columns, strict=True):
                row[:] = column[first : first + BARE_ROWS]
            gram += block @ block.T
    return {"cpu": cpu_time() - start, "peak": peak_memory(), "imports": start}


def ours(path: str) -> dict[str, float]:
    """Publish, ledger and noise included."""
    from tacit import Study, publish
    from tacit.privacy.noise import secure_noise

    features = [{"name": name, "range": [-3, 3]} for name in FEATURES]
    document = {
        "name": "benchmark",
        "epsilon": 1.0,
        "delta": 1e-6,
        "response": {"name": "y", "range": [-3, 3]},
        "features": features,
    }
    study = Study.from_document(document)
    secure_noise([1.0], -32)  # imports OpenDP
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder:
        start = cpu_time()
        publish(study, path, holder="benchmark", ledger=Path(folder) / "ledger.db")
        spent = cpu_time() - start
    return {"cpu": spent, "peak": peak_memory(), "imports": start}


MEASURES = {"bare": bare, "ours": ours}


def cpu_time() -> float:
    """User and system seconds of this process so far, all threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_memory() -> float:
    """Largest resident size of this process in bytes.

    Linux's getrusage would count the parent's before exec as well.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return float(line.split()[1]) * 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)  # bytes on macOS


if __name__ == "__main__":
    main()
