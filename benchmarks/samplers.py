"""Speed of the samplers on one core, against the published code and a hand-written C++ loop.

The published code is MATLAB's, run under Octave. Time is CPU time of this process, held to one
core, after compilation: µs per iteration and chain, four chains. Effective draws are those of the
worst-mixing coefficient, per second of a whole run (warm-up included). Evidence has n = 10,000 rows
in all. `normal-x` is the paper's Metropolis kernel here; its gradient sampler is timed by
mixing.py.

Bars, checked by --check:

- at least 20 times the published code where its time is known, 200 times for bernstein-sheldon at
  (20, 10);
- at most 5 times the C++ loop at d ≥ 5;
- fixed-s with 10,000 holders at d = 10 and fixed-s-fast with 100,000: within the seconds and the
  memory per holder of SCALE.

    python benchmarks/samplers.py [--quick] [--check]
"""

import os

os.environ["JAX_PLATFORMS"] = "cpu"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # before jax starts its threads

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator

import numpy as np
from arviz_stats.base import array_stats
from frame import Bench, Table, measured_apart, peak_memory

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
    """µs per iteration and chain, least of some runs after one that compiles; effective draws/s."""
    evidence = evidence_of(*cell)
    prior = Prior.weak(cell[0])
    settings = Settings(draws=1000, warmup=1000, sampler="metropolis")
    method.fit(evidence, prior, settings)
    seconds = math.inf
    for _ in range(repeats):
        start = time.process_time()
        draws = method.fit(evidence, prior, settings)
        seconds = min(seconds, time.process_time() - start)
    assert isinstance(draws, Draws)  # noqa: S101 - samplers give draws
    iterations = (settings.draws + settings.warmup) * settings.chains
    return seconds / iterations * 1e6, effective(draws) / seconds


def speed(bench: Bench, table: Table, method: Method, cell: tuple[int, int], repeats: int) -> None:
    """Measure one method at one (d, J)."""
    micros, rate = time_method(method, cell, repeats)
    published = PUBLISHED[method.name].get(cell)
    cpp = CPP.get(method.name, {}).get(cell)
    faster = published / micros if published else None
    slower = micros / cpp if cpp else None
    table.row(method.name, *cell, micros, rate, faster, slower)
    place = f"{method.name} at {cell}"
    if faster is not None:
        least = FACTORS.get(method.name, PUBLISHED_FACTOR)
        bench.bar(f"{place}: {faster:.0f} times published, least {least:g}", met=faster >= least)
    if slower is not None:
        bench.bar(f"{place}: {slower:.2f} of C++, most {CPP_FACTOR:g}", met=slower <= CPP_FACTOR)


def scale_here(name: str, holders: int) -> dict[str, float]:
    """Fit many holders in this process: seconds, and KiB per holder beyond a run with few."""
    method = method_named(name)
    prior = Prior.weak(SCALE_COLUMNS)
    method.fit(evidence_of(SCALE_COLUMNS, 10), prior, Settings(draws=10, warmup=10))
    evidence = evidence_of(SCALE_COLUMNS, holders, rows=12 * holders)
    before = peak_memory()
    start = time.process_time()
    method.fit(evidence, prior, Settings())
    more = max(0.0, peak_memory() - before) / 1024 / holders
    return {"seconds": time.process_time() - start, "kib": more}


def scale(bench: Bench, table: Table, name: str) -> None:
    """Run `scale_here` in a process of its own, so that its peak memory is its own."""
    holders, most_seconds, most_kib = SCALE[name]
    figures = measured_apart(__file__, name, holders)
    table.row(name, SCALE_COLUMNS, holders, figures["seconds"], figures["kib"])
    bench.bar(
        f"{name}, {holders:,} holders: at most {most_seconds:g} s",
        met=figures["seconds"] <= most_seconds,
    )
    bench.bar(
        f"{name}, {holders:,} holders: at most {most_kib:g} KiB each",
        met=figures["kib"] <= most_kib,
    )


def known(names: tuple[str, ...]) -> Iterator[Method]:
    """The methods that can be imported."""
    for name in names:
        try:
            yield method_named(name)
        except ImportError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)


def main() -> None:
    bench = Bench(__doc__, quick="two cells and no scale: under a minute")
    bench.option("--measure", nargs=2, metavar=("METHOD", "HOLDERS"), help=argparse.SUPPRESS)
    options = bench.options()
    if options.measure:
        print(json.dumps(scale_here(options.measure[0], int(options.measure[1]))))
        return
    columns = {"method": "<18", "d": "d", "J": "d", "µs/iteration": ".1f"}
    columns |= {"effective/s": ".0f", "times published": ".0f", "of C++": ".2f"}
    table = bench.table("speed", columns)
    for method in known(METHODS):
        for cell in QUICK_CELLS if options.quick else CELLS:
            speed(bench, table, method, cell, 2 if options.quick else 3)
    if not options.quick:
        columns = {"method": "<18", "d": "d", "J": ",", "seconds": ".1f", "KiB per holder": ".2f"}
        table = bench.table("scale", columns)
        for method in known(tuple(SCALE)):
            scale(bench, table, method.name)
    bench.finish()


if __name__ == "__main__":
    main()
