"""Many holders.

What it takes to collect and fit releases of 1,000 and 10,000 holders, and how long a release is.

Releases are simulated, 20 columns, 1,000 rows each, and written as files as holders would send
them. Collecting reads and checks every one; fitting is the default method's. Times are CPU time of
one process, BLAS on one thread; memory is its peak. The line for 100,000 holders is drawn through
the two measured points, and says so.

    python benchmarks/holders.py [--quick] [--check]

`--quick` takes 200 and 1,000 holders; `--check` exits 1 when a bar is missed.
"""

import os

# Before NumPy: holders' matrices are small, and threads would wait for each other.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import gzip
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from frame import Bench, measured_apart, peak_memory

from tacit import Study, collect, fit
from tacit.release import Release
from tacit.simulation import simulate

MOST_COLLECT = 4e-3
"""Bar: CPU seconds per release to read and check it."""
MOST_FIT = 25e-3
"""Bar: CPU seconds per holder to fit."""
MOST_MEMORY = 120e3
"""Bar: bytes per holder beyond a run with few."""
MANY = 100_000
FEW_COLUMNS = (5, 20, 100, 511)
DIFFERENT = 50
"""Different releases; the rest are these under other names, to save time in making them."""


def main() -> None:
    bench = Bench(__doc__, quick="200 and 1,000 holders")
    bench.option("--measure", metavar="HOLDERS", help=argparse.SUPPRESS)
    options = bench.options()
    if options.measure:
        print(json.dumps(measured(int(options.measure))))
        return
    sizes(bench)
    points(bench, *((200, 1_000) if options.quick else (1_000, 10_000)))
    bench.finish()


def agreement(d: int = 20) -> Study:
    """A study that encodes to d columns, intercept included."""
    features = [{"name": f"x{k}", "range": [-3, 3]} for k in range(d - 1)]
    return Study.from_document(
        {
            "name": "benchmark",
            "epsilon": 1.0,
            "delta": 1e-6,
            "response": {"name": "y", "range": [-3, 3]},
            "features": features,
        }
    )


def release(study: Study, rng: np.random.Generator, holder: str) -> Release:
    """What a holder with 1,000 rows of this study would send."""
    x = rng.standard_normal((1_000, study.d - 1))
    y = 0.3 * x[:, :10].sum(axis=1) + rng.standard_normal(1_000)
    return simulate(study, np.column_stack([x, y]), rng, holder=holder)


def sizes(bench: Bench) -> None:
    """How long a release is, as a file and compressed."""
    table = bench.table("bytes", {"columns d": "d", "bytes": ",", "compressed by gzip": ","})
    for d in FEW_COLUMNS:
        text = release(agreement(d), np.random.default_rng(d), "north").to_json().encode()
        table.row(d, len(text), len(gzip.compress(text)))


def points(bench: Bench, few: int, many: int) -> None:
    """Both sizes, the line through them, and the bars."""
    low = measured_apart(__file__, few)
    high = measured_apart(__file__, many)
    columns = {"holders": "<32", "collect, s": ".1f", "fit, s": ".1f", "peak memory, MB": ",.0f"}
    table = bench.table("holders", columns)
    slopes = {name: (high[name] - low[name]) / (many - few) for name in low}
    far = {name: high[name] + slopes[name] * (MANY - many) for name in low}
    named = ((f"{few:,}", low), (f"{many:,}", high), (f"{MANY:,}, a line through the two", far))
    for name, point in named:
        table.row(name, point["collect"], point["fit"], point["peak"] / 1e6)
    collect_ms = slopes["collect"] * 1e3
    fit_ms = slopes["fit"] * 1e3
    kilobytes = slopes["peak"] / 1e3
    bench.say(f"per holder: {collect_ms:.2f} ms, {fit_ms:.2f} ms, {kilobytes:.0f} kB")
    bench.bar(
        f"collect: {collect_ms:.2f} of at most {MOST_COLLECT * 1e3:g} ms",
        met=slopes["collect"] <= MOST_COLLECT,
    )
    bench.bar(f"fit: {fit_ms:.2f} of at most {MOST_FIT * 1e3:g} ms", met=slopes["fit"] <= MOST_FIT)
    bench.bar(
        f"memory: {kilobytes:.0f} of at most {MOST_MEMORY / 1e3:g} kB",
        met=slopes["peak"] <= MOST_MEMORY,
    )


def measured(holders: int) -> dict[str, float]:
    """Write so many releases, collect them and fit."""
    study = agreement()
    rng = np.random.default_rng(holders)
    texts = [release(study, rng, "HOLDER").to_json() for _ in range(min(holders, DIFFERENT))]
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder:
        for number in range(holders):
            text = texts[number % len(texts)].replace('"HOLDER"', f'"h{number}"')
            (Path(folder) / f"{number}.json").write_text(text, encoding="utf-8")
        start = time.process_time()
        collection = collect(folder, allow_simulated=True)
        collected = time.process_time()
    fit(collection)
    return {
        "collect": collected - start,
        "fit": time.process_time() - collected,
        "peak": peak_memory(),
    }


if __name__ == "__main__":
    main()
