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
import tempfile
from pathlib import Path

from frame import Bench, cpu_time, measured_apart, peak_memory

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
    bench = Bench(__doc__, quick="1 million rows instead of 5")
    bench.option("--repeats", type=int, default=5, help="runs of each; the smallest counts")
    bench.option("--measure", nargs=2, metavar=("WHAT", "PATH"), help=argparse.SUPPRESS)
    options = bench.options()
    if options.measure:
        what, path = options.measure
        print(json.dumps(MEASURES[what](path)))
        return
    sizes = (200_000, 1_000_000) if options.quick else (1_000_000, 5_000_000)
    compare(bench, *sizes, options.repeats)
    bench.finish()


def compare(bench: Bench, few: int, many: int, repeats: int) -> None:
    """Measure both sizes, and set the bars."""
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder:
        small = make_table(Path(folder) / "small.parquet", few)
        large = make_table(Path(folder) / "large.parquet", many)
        loops = []
        runs = []
        for _ in range(repeats):  # in turn, so that a busy spell meets both
            loops.append(measured_apart(__file__, "bare", large))
            runs.append(measured_apart(__file__, "ours", large))
        little = [measured_apart(__file__, "ours", small) for _ in range(2)]
    columns = {"": "<12", "rows": ",", "CPU, s": ".2f", "peak, MB": ".0f", "start-up, s": ".2f"}
    table = bench.table("publish", columns)
    named = (("bare loop", many, loops), ("publish", many, runs), ("publish", few, little))
    for name, rows, measures in named:
        table.row(
            name,
            rows,
            least(measures, "cpu"),
            least(measures, "peak") / 1e6,
            least(measures, "imports"),
        )
    peak = least(runs, "peak")
    growth = peak / least(little, "peak")
    ratio = least(runs, "cpu") / least(loops, "cpu")
    bench.bar(
        f"peak memory {peak / 1e6:.0f} of at most {MOST_MEMORY / 1e6:.0f} MB",
        met=peak <= MOST_MEMORY,
    )
    bench.bar(
        f"memory ratio {growth:.2f} of at most {MOST_GROWTH} for {many / few:.0f} times the rows",
        met=growth <= MOST_GROWTH,
    )
    bench.bar(
        f"CPU ratio {ratio:.2f} of at most {MOST_RATIO}, publish to bare loop",
        met=ratio <= MOST_RATIO,
    )
    bench.say(f"CPU ratio {ratio:.2f}, publish to bare loop; least of {repeats} runs")


def least(runs: list[dict[str, float]], figure: str) -> float:
    """The smallest of a figure over some runs."""
    return min(run[figure] for run in runs)


def make_table(path: Path, rows: int, seed: int | None = None) -> Path:
    """Normal columns in full precision, in row groups.

    One value in 370 lies outside the study's range of ±3.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(rows if seed is None else seed)
    with pq.ParquetWriter(path, pa.schema([(name, pa.float64()) for name in COLUMNS])) as writer:
        for start in range(0, rows, GROUP_ROWS):
            size = min(GROUP_ROWS, rows - start)
            writer.write_table(pa.table({name: rng.standard_normal(size) for name in COLUMNS}))
    return path


def bare(path: str) -> dict[str, float]:
    """Read and multiply, nothing else."""
    import numpy as np
    import pyarrow.parquet as pq

    from tacit.rows.pieces import MOST_BATCH_ROWS, READ_BYTES

    start = cpu_time()
    gram = np.zeros((len(COLUMNS),) * 2)
    buffer = np.empty((len(COLUMNS), BARE_ROWS))
    file = pq.ParquetFile(path, pre_buffer=False, buffer_size=READ_BYTES)
    for batch in file.iter_batches(batch_size=MOST_BATCH_ROWS, columns=COLUMNS, use_threads=False):
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


if __name__ == "__main__":
    main()
