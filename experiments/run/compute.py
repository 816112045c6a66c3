"""The chains of `simulated` and of `real`, where there is a GPU and little else.

It needs NumPy, SciPy and jax alone:

    PYTHONPATH=src python3 -m experiments compute (simulated | one) --out DIR
        [--quick] [--runs N] [--seed N] [--methods ...] [--processes N]
    PYTHONPATH=src python3 -m experiments compute real --data FOLDER --out DIR [...]
    JAX_PLATFORMS=cpu PYTHONPATH=src python3 -m experiments compute runtimes --out DIR

writes one file per method and d (or data set) into DIR, whole, and goes on where it stopped. It
prints seconds per method with a floor by bytes: what reading every problem once and reading and
writing every state once per iteration costs at the memory bandwidth. Put the files into
OUT/parts/simulated or OUT/parts/real and run `python -m experiments simulated --out OUT` where the
package is installed: it finds them, adds the closed forms, and makes tables and figures.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.model.data import available
from experiments.run import real, runtimes, simulated
from experiments.run.apart import Line, Piece, pieces_at_a_time, run, whole
from experiments.run.chains import SAMPLERS, Plan, compile_ahead, start
from experiments.run.parts import Part, part_of
from experiments.settings import RealSettings, SimulatedSettings, settings_of
from tacit.analyst.methods.sampling import double_precision, jax, jnp, random

BANDWIDTH = 4.8e12  # bytes per second of an H200

Settings = SimulatedSettings | RealSettings


class Job(NamedTuple):
    """A part to be made."""

    name: str  # of its d or data set
    method: str
    path: Path
    make: Callable[[], Part]
    problems: Callable[[int, Settings], Any]  # from J and settings, to problems
    plan: Plan


def tick(_iterations: int) -> None:
    """A dot per chunk."""
    print(".", end="", flush=True)


def jobs_of(options: argparse.Namespace, settings: Settings) -> Iterator[Job]:
    """Every part, in order."""
    for method in options.methods:
        if options.experiment in {"simulated", "one"}:
            for d in settings.columns:
                yield Job(
                    f"d={d}",
                    method,
                    simulated.part_path(options.out, method, d),
                    lambda method=method, d=d: simulated.chains_part(method, d, settings, tick),
                    lambda holders, own, method=method, d=d: simulated.problems_of(
                        method, d, holders, own
                    )[0],
                    simulated.plan_of(method, settings),
                )
        else:
            for name in available(options.data):
                yield Job(
                    name,
                    method,
                    real.chain_path(options.out, name, method),
                    real.chain_maker(options.data, name, method, settings, tick),
                    lambda holders, own, method=method, name=name: real.problems_of(
                        real.loaded(options.data, name), method, holders, own
                    )[0],
                    Plan(settings.iterations, settings.seed),
                )


def chains_of(method: str, settings: Settings) -> int:
    """Chains per J."""
    allowed = SAMPLERS[method].calibrations
    if isinstance(settings, RealSettings):
        return len(real.cells_of(settings, allowed))
    return len(simulated.cells_of(settings, allowed))


def warm(jobs: list[Job], settings: Settings) -> None:
    """Compile for every shape, as many at once as there are cores: it takes longer than running."""
    wanted = [
        (job, job.problems(holders, replace(settings, runs=1)))
        for job in jobs
        if not job.path.exists()
        for holders in settings.holders
    ]
    if len(wanted) == 1:  # a piece: compiled where it runs
        return
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [
            pool.submit(
                compile_ahead,
                SAMPLERS[job.method],
                problems,
                chains_of(job.method, settings),
                job.plan,
            )
            for job, problems in wanted
        ]
        for each in found:
            each.result()


def floor_seconds(job: Job, holders: int, settings: Settings) -> float:
    """Seconds below which the chains of one J cannot run, by bytes."""
    with double_precision():
        problems = jax.tree.map(jnp.asarray, job.problems(holders, replace(settings, runs=1)))
        _, states = jax.eval_shape(
            partial(start, SAMPLERS[job.method].kernel), random.key(0), problems
        )
    read, state = (
        sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
        for tree in (problems, states)
    )
    return float(settings.runs * job.plan.iterations * (read + 2 * state) / BANDWIDTH)


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment", choices=["simulated", "one", "real", "runtimes"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, help="folder with the UCI files, for real")
    parser.add_argument("--quick", action="store_true", help="fewer runs and iterations")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--methods", nargs="+", choices=list(SAMPLERS), default=list(simulated.PAPER_SAMPLERS)
    )
    parser.add_argument(
        "--processes",
        type=int,
        default=pieces_at_a_time(),
        help="pieces that are run at a time (20 where a GPU can be shared, otherwise 1)",
    )
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("--holders", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--times", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.experiment == "real" and options.data is None:
        parser.error("--data is needed for real")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run, and print a table."""
    options = parsed(arguments)
    settings = settings_of(
        options.experiment, quick=options.quick, runs=options.runs, seed=options.seed
    )
    if options.holders is not None:
        settings = replace(settings, holders=(options.holders,))
    options.out.mkdir(parents=True, exist_ok=True)
    if options.experiment == "runtimes":
        runtimes.run_parts(options.out, settings, lambda name: print(name, flush=True))
        return 0
    began = time.perf_counter()
    jobs = [job for job in jobs_of(options, settings) if options.only in {None, job.name}]
    if options.processes > 1:
        lines = apart(jobs, options, settings)
        device = lines[0]["device"]
    else:
        device = f"{jax.devices()[0].device_kind}, jax {jax.__version__}"
        print(device, flush=True)
        lines = here(jobs, settings)
    total = time.perf_counter() - began
    about = {"device": device, "total": total, "settings": asdict(settings)}
    report(lines, about, options.times or options.out / "times.json")
    return 0


def here(jobs: list[Job], settings: Settings) -> list[Line]:
    """Run jobs one after the other in this process."""
    began = time.perf_counter()
    warm(jobs, settings)
    print(f"compiled in {time.perf_counter() - began:.1f} s", flush=True)
    lines: list[Line] = []
    for job in jobs:
        first = time.perf_counter()
        part = part_of(job.path, settings, job.make)
        wall = time.perf_counter() - first
        sampling = part["seconds"].tolist()
        floor = sum(floor_seconds(job, holders, settings) for holders in settings.holders)
        lines.append(
            {
                "method": job.method,
                "name": job.name,
                "chains": chains_of(job.method, settings) * len(settings.holders),
                "wall": wall,
                "sampling": sampling,
                "floor": floor,
            }
        )
        told = np.round(sampling, 1).tolist()
        print(f" {job.method} {job.name}: {wall:.1f} s, sampling {told}", flush=True)
    return lines


def apart(jobs: list[Job], options: argparse.Namespace, settings: Settings) -> list[Line]:
    """Run the jobs' pieces in processes of their own, then put them together."""
    wanted = [job for job in jobs if not job.path.exists()]
    pieces = [
        Piece(job.method, job.name, holders) for job in wanted for holders in settings.holders
    ]
    lines = run(pieces, options)
    for job in wanted:
        paths = [
            Piece(job.method, job.name, holders).folder(options.out) / job.path.name
            for holders in settings.holders
        ]
        part_of(job.path, settings, lambda paths=paths: whole(paths))
    return lines


def report(lines: list[Line], about: dict[str, Any], path: Path) -> None:
    """Print the table and leave it beside the parts."""
    print(f"\n{about['settings']['iterations']:,} iterations; times in seconds")
    print(f"{'method':<30}{'':<12}{'chains':>8}{'wall':>9}{'sampling':>10}{'floor':>10}")
    for line in lines:
        figures = f"{line['wall']:>9.1f}{sum(line['sampling']):>10.1f}{line['floor']:>10.4f}"
        print(f"{line['method']:<30}{line['name']:<12}{line['chains']:>8,}{figures}")
    print(f"in all {about['total']:.1f} s, compilation included")
    path.write_text(json.dumps(about | {"lines": lines}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
