"""The chains of `simulated`, which `mmd` reads too, on a machine that has NumPy, SciPy and jax and perhaps nothing else of ours.

    PYTHONPATH=src python3 -m experiments.compute simulated --out DIR [--quick] [--runs N] [--seed N] [--methods ...]

writes one file per method and d into DIR, whole, and goes on where it stopped. It prints seconds per method with a floor: what reading
every problem once and reading and writing every state once per iteration costs at the memory bandwidth, and the floating-point
operations that XLA counts in one iteration at the peak rate. Put the files into OUT/parts/simulated and run
`python -m experiments simulated --out OUT` where the package is installed: it finds them, adds the closed forms, and makes
tables and figures.
"""

import argparse
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from experiments.chains import SAMPLERS, compile_ahead, start
from experiments.parts import part_of
from experiments.settings import settings_of
from experiments.simulated import PAPER_SAMPLERS, Settings, cells_of, chains_part, part_path, plan_of, problems_of
from tacit.analyst.sampling import double_precision, jax, jnp, random

BANDWIDTH = 4.8e12  # bytes per second of an H200
PEAK = 34e12  # double-precision operations per second of an H200, without its tensor cores


def floor_seconds(method: str, d: int, holders: int, settings: Settings) -> tuple[float, float]:
    """Seconds below which the chains of one (d, J) cannot run: by bytes and by operations."""
    kernel = SAMPLERS[method].kernel
    problems, _ = problems_of(method, d, holders, settings | {"runs": 1})
    scale = settings["runs"] * plan_of(method, settings).iterations
    with double_precision():
        problems = jax.tree.map(jnp.asarray, problems)
        keys, states = start(kernel, random.key(0), problems)
        step = jax.jit(jax.vmap(kernel.step, (0, 0, 0, None)))
        cost: Any = step.lower(keys, states, problems, jnp.zeros(())).cost_analysis() or {}
    read, state = (sum(leaf.nbytes for leaf in jax.tree.leaves(tree)) for tree in (problems, states))
    return scale * (read + 2 * state) / BANDWIDTH, scale * float(cost.get("flops", 0.0)) / PEAK


def warm(methods: list[str], settings: Settings, out: Path) -> None:
    """Compile for every shape, as many at once as there are cores, since compilation takes longer than sampling."""
    wanted = [(method, d) for method in methods for d in settings["columns"] if not part_path(out, method, d).exists()]
    shapes = [
        (method, *problems_of(method, d, holders, settings | {"runs": 1})[:1]) for method, d in wanted for holders in settings["holders"]
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        count = len(cells_of(settings))
        jobs = [pool.submit(compile_ahead, SAMPLERS[method], problems, count, plan_of(method, settings)) for method, problems in shapes]
        for job in jobs:
            job.result()


def main(arguments: list[str] | None = None) -> int:
    """Run, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=["simulated"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true", help="fewer runs and iterations")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", nargs="+", choices=list(SAMPLERS), default=list(PAPER_SAMPLERS))
    options = parser.parse_args(arguments)
    settings = settings_of("simulated", quick=options.quick, runs=options.runs, seed=options.seed)
    began, lines = time.perf_counter(), []
    options.out.mkdir(parents=True, exist_ok=True)
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}, Python {sys.version.split()[0]}", flush=True)
    warm(options.methods, settings, options.out)
    print(f"compiled in {time.perf_counter() - began:.1f} s", flush=True)
    for method in options.methods:
        for d in settings["columns"]:
            start_part, path = time.perf_counter(), part_path(options.out, method, d)
            part = part_of(
                path, settings, lambda method=method, d=d: chains_part(method, d, settings, lambda _: print(".", end="", flush=True))
            )
            lines.append({"method": method, "d": d, "seconds": time.perf_counter() - start_part, "sampling": part["seconds"].tolist()})
            print(f" {method} d={d}: {lines[-1]['seconds']:.1f} s, sampling {np.round(part['seconds'], 1).tolist()}", flush=True)
    for line in lines:
        floors = [floor_seconds(line["method"], line["d"], holders, settings) for holders in settings["holders"]]
        line["floor_bytes"], line["floor_operations"] = (sum(column) for column in zip(*floors, strict=True))
    report(lines, time.perf_counter() - began, settings, options.out)
    return 0


def report(lines: list[dict[str, Any]], total: float, settings: Settings, out: Path) -> None:
    """Print the table and leave it beside the parts."""
    chains = len(cells_of(settings)) * len(settings["holders"])
    print(f"\n{chains} chains per line; iterations {settings['iterations']}; times in seconds")
    print(f"{'method':<20}{'d':>3}{'wall':>9}{'sampling':>10}{'floor, bytes':>14}{'operations':>12}")
    for line in lines:
        figures = f"{line['seconds']:>9.1f}{sum(line['sampling']):>10.1f}{line['floor_bytes']:>14.4f}{line['floor_operations']:>12.4f}"
        print(f"{line['method']:<20}{line['d']:>3}{figures}")
    print(f"in all {total:.1f} s")
    device = jax.devices()[0].device_kind
    text = json.dumps({"device": device, "total": total, "settings": settings, "lines": lines}, indent=1)
    (out / "times.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
