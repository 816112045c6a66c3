"""Speed of the samplers on one core, against the published MATLAB code (run under Octave) and a hand-written C++ loop.

Time is CPU time of this process, held to one core, after compilation: µs per iteration and chain, four chains. Effective draws are
those of the worst-mixing coefficient, per second of a whole run (warm-up included). Evidence has n = 10,000 rows in all. `normal-x`
is the paper's Metropolis kernel here; its gradient sampler is timed by mixing.py.

Bars, checked by --check:

- at least 20 times the published code where its time is known, 200 times for bernstein-sheldon at (20, 10);
- at most 5 times the C++ loop at d ≥ 5;
- fixed-s with 10,000 holders at d = 10 and fixed-s-fast with 100,000: within the seconds and the memory per holder of SCALE.

    python benchmarks/samplers.py [--quick] [--check]
"""

import os

os.environ["JAX_PLATFORMS"] = "cpu"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # before jax starts its threads

import argparse
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from arviz_stats.base import array_stats

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods import method_named
from tacit.analyst.methods.method import Draws, Method, Settings
from tacit.analyst.prior import Prior

PUBLISHED_FACTOR = 20.0
PUBLISHED = {  # µs per iteration under Octave at (d, J)
    "normal-x": {
        (2, 1): 740.0,
        (5, 5): 2540.0,
        (2, 10): 5100.0,
        (10, 10): 6100.0,
        (20, 10): 7000.0,
    },
    "fixed-s": {(2, 1): 185.0, (5, 5): 713.0, (2, 10): 850.0, (10, 10): 1280.0, (20, 10): 1260.0},
    "bernstein-sheldon": {(20, 10): 50_000.0},
}
FACTORS = {"bernstein-sheldon": 200.0}
CPP_FACTOR = 5.0
CPP = {  # µs per iteration of a hand-written loop
    "normal-x": {(5, 5): 10.0, (10, 10): 78.0, (20, 10): 220.0},
    "fixed-s": {(5, 5): 4.0, (10, 10): 25.0, (20, 10): 95.0},
}
SCALE = {
    "fixed-s": (10_000, 60.0, 20.0),
    "fixed-s-fast": (100_000, 60.0, 20.0),
}  # holders, seconds, KiB per holder
SCALE_COLUMNS = 10
METHODS = ("normal-x", "fixed-s", "bernstein-sheldon")
CELLS = [(d, holders) for d in (1, 2, 5, 10, 15, 20) for holders in (1, 5, 10)]
QUICK_CELLS = [(2, 1), (10, 10)]
ROWS = 10_000
NOISE_SD = 3.73  # noise multiplier at ε = 1, δ = 1e-5, for rows in the unit ball


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    cell: str
    figures: str
    met: bool | None  # None where no bar is set


def evidence_of(d: int, holders: int, rows: int = ROWS, seed: int = 0) -> Evidence:
    """Noisy statistics of rows in the unit ball, split evenly over holders."""
    rng = np.random.default_rng(seed)
    theta = 0.5 * rng.normal(size=d) / math.sqrt(d)
    features = rng.normal(size=(holders, rows // holders, d)) @ (
        np.eye(d) + rng.normal(size=(d, d)) / math.sqrt(d)
    )
    features /= np.maximum(1.0, np.linalg.norm(features, axis=2, keepdims=True))
    response = features @ theta + 0.2 * rng.normal(size=features.shape[:2])
    transposed = features.swapaxes(1, 2)
    full = NOISE_SD * rng.normal(size=(holders, d, d))
    sd = np.full(holders, NOISE_SD)
    return Evidence(
        grams=transposed @ features + (full + full.swapaxes(1, 2)) / 2,
        moments=(transposed @ response[..., None])[..., 0]
        + NOISE_SD * rng.normal(size=(holders, d)),
        gram_sd=sd,
        off_diagonal_sd=sd / math.sqrt(2),
        moment_sd=sd,
        counts=np.full(holders, float(rows // holders)),
        squares=np.sum(response**2, axis=1) + NOISE_SD * rng.normal(size=holders),
        square_sd=sd,
    )


def effective(draws: Draws) -> float:
    """Effective sample size of the worst coefficient."""
    return min(
        float(array_stats.ess(draws.theta[..., k], chain_axis=0, draw_axis=1))
        for k in range(draws.theta.shape[2])
    )


def time_method(method: Method, cell: tuple[int, int], repeats: int) -> tuple[float, float]:
    """µs per iteration and chain, the least of some runs after a first that compiles, and effective draws per second."""
    evidence, prior, settings = (
        evidence_of(*cell),
        Prior.weak(cell[0]),
        Settings(draws=1000, warmup=1000, sampler="metropolis"),
    )
    method.fit(evidence, prior, settings)
    seconds = math.inf
    for _ in range(repeats):
        start = time.process_time()
        draws = method.fit(evidence, prior, settings)
        seconds = min(seconds, time.process_time() - start)
    assert isinstance(draws, Draws)  # noqa: S101 - samplers give draws
    return seconds / (settings.draws + settings.warmup) / settings.chains * 1e6, effective(
        draws
    ) / seconds


def speed(method: Method, cell: tuple[int, int], repeats: int) -> Row:
    """Measure one method at one (d, J)."""
    micros, rate = time_method(method, cell, repeats)
    published, cpp = PUBLISHED[method.name].get(cell), CPP.get(method.name, {}).get(cell)
    bars = [published / micros >= FACTORS.get(method.name, PUBLISHED_FACTOR)] if published else []
    bars += [micros <= CPP_FACTOR * cpp] if cpp else []
    ratio = f"{published / micros:8.0f}x" if published else f"{'':9}"
    slower = f"{micros / cpp:8.2f}x" if cpp else f"{'':9}"
    return Row(
        method.name,
        f"d={cell[0]:<3} J={cell[1]:<3}",
        f"{micros:9.1f} {rate:12.0f} {ratio} {slower}",
        all(bars) if bars else None,
    )


def peak_kib() -> int:
    """Peak resident memory of this process, KiB."""
    with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123 - not a file
        return int(next(line for line in status if line.startswith("VmHWM")).split()[1])


def scale_here(name: str, holders: int) -> None:
    """Fit many holders in this process.

    Prints seconds, and KiB per holder beyond a run with few.
    """
    method, prior = method_named(name), Prior.weak(SCALE_COLUMNS)
    method.fit(evidence_of(SCALE_COLUMNS, 10), prior, Settings(draws=10, warmup=10))
    evidence = evidence_of(SCALE_COLUMNS, holders, rows=12 * holders)
    before, start = peak_kib(), time.process_time()
    method.fit(evidence, prior, Settings())
    print(time.process_time() - start, max(0, peak_kib() - before) / holders)


def scale(name: str) -> Row:
    """Run `scale_here` in a process of its own, so that its peak memory is its own."""
    holders, most_seconds, most_kib = SCALE[name]
    command = [sys.executable, __file__, "--scale", name, str(holders)]
    seconds, kib = map(
        float, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    )
    met = seconds <= most_seconds and kib <= most_kib
    return Row(
        name, f"d={SCALE_COLUMNS} J={holders}", f"{seconds:9.1f} s {kib:10.2f} KiB per holder", met
    )


def known(names: tuple[str, ...]) -> Iterator[Method]:
    """The methods that can be imported."""
    for name in names:
        try:
            yield method_named(name)
        except ImportError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)


def main() -> int:
    """Measure, print the table, and give 1 where a bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="two cells and no scale: under a minute"
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 where a bar is missed")
    parser.add_argument("--scale", nargs=2, metavar=("METHOD", "HOLDERS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.scale:
        scale_here(arguments.scale[0], int(arguments.scale[1]))
        return 0
    cells, repeats = (QUICK_CELLS, 2) if arguments.quick else (CELLS, 3)
    rows = [speed(method, cell, repeats) for method in known(METHODS) for cell in cells]
    if not arguments.quick:
        rows += [scale(method.name) for method in known(tuple(SCALE))]
    print(
        f"{'method':18} {'cell':12} {'µs/it':>9} {'eff/s':>12} {'published':>9} {'of C++':>9}  bar"
    )
    for row in rows:
        print(
            f"{row.name:18} {row.cell:12} {row.figures}  {'' if row.met is None else 'met' if row.met else 'MISSED'}"
        )
    return int(arguments.check and any(row.met is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
