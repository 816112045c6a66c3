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

os.environ["OPENBLAS_NUM_THREADS"] = (
    "1"  # before NumPy: holders' matrices are small, and threads would wait for each other
)

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

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
    parser = argparse.ArgumentParser(
        description="Measure collecting and fitting many holders' releases."
    )
    parser.add_argument("--quick", action="store_true", help="200 and 1,000 holders")
    parser.add_argument("--check", action="store_true", help="exit 1 when a bar is missed")
    parser.add_argument("--measure", metavar="HOLDERS", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measured(int(arguments.measure))))
        return
    sizes()
    missed = points(*((200, 1_000) if arguments.quick else (1_000, 10_000)))
    sys.exit(1 if arguments.check and missed else 0)


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


def sizes() -> None:
    """Print how long a release is, as a file and compressed."""
    import gzip

    print("bytes of a release, and compressed by gzip")
    for d in FEW_COLUMNS:
        text = release(agreement(d), np.random.default_rng(d), "north").to_json().encode()
        print(f"  d = {d:3}  {len(text):10,}  {len(gzip.compress(text)):10,}")


def points(few: int, many: int) -> bool:
    """Measure both sizes, print them and the line through them, and say whether a bar is missed."""
    low, high = (run(holders) for holders in (few, many))
    print(f"{'holders':>9} {'collect':>10} {'fit':>10} {'peak memory':>12}")
    for holders, point in ((few, low), (many, high)):
        print(
            f"{holders:9,} {point['collect']:8.1f} s {point['fit']:8.1f} s {point['peak'] / 1e6:9.0f} MB"
        )
    slopes = {name: (high[name] - low[name]) / (many - few) for name in low}
    far = {name: high[name] + slopes[name] * (MANY - many) for name in low}
    print(
        f"{MANY:9,} {far['collect']:8.0f} s {far['fit']:8.0f} s {far['peak'] / 1e6:9.0f} MB  (a line through the two)"
    )
    print(
        f"per holder: collect {slopes['collect'] * 1e3:.2f} ms, fit {slopes['fit'] * 1e3:.2f} ms, {slopes['peak'] / 1e3:.0f} kB"
    )
    return (
        slopes["collect"] > MOST_COLLECT or slopes["fit"] > MOST_FIT or slopes["peak"] > MOST_MEMORY
    )


def run(holders: int) -> dict[str, float]:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, "--measure", str(holders)]
    result: dict[str, float] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )
    return result


def measured(holders: int) -> dict[str, float]:
    """Write so many releases, collect them and fit."""
    study, rng = agreement(), np.random.default_rng(holders)
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
