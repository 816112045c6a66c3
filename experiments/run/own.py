"""The parts that the package's default has in the experiments, side by side on all cores.

    python -m experiments.run.own --out DIR [--data DIR] [--processes N] [--quick]

`python -m experiments one | simulated | real` make the same parts one after the other where they
are not there; this needs neither jax nor matplotlib. Parts are left as they are where they exist.
"""

import argparse
import os
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from experiments.model.data import available
from experiments.run.parts import part_of
from experiments.run.real import closed, loaded
from experiments.run.simulated_closed import own_part, own_path
from experiments.settings import RealSettings, SimulatedSettings, settings_of

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")


class Task(NamedTuple):
    """One part: of simulated data at one d and J, or of one public set."""

    name: str
    d: int = 0
    holders: int = 0
    data: Path | None = None
    set: str = ""


def tasks_of(data: Path | None, *, quick: bool) -> list[Task]:
    """All of them, the longest first."""
    tasks = []
    for name in ("one", "simulated"):
        settings: SimulatedSettings = settings_of(name, quick=quick)
        pairs = product(settings.columns, settings.holders)
        tasks += [Task(name, d=d, holders=holders) for d, holders in pairs]
    if data is not None:
        real: RealSettings = settings_of("real", quick=quick)
        sets = [each for each in real.sets if each in available(data)]
        tasks += [Task("real", data=data, set=each) for each in sets]
    return sorted(tasks, key=lambda task: (task.name != "real", -task.d, -task.holders))


def made(out: Path, task: Task, *, quick: bool) -> str:
    """Make one part; its path."""
    settings = settings_of(task.name, quick=quick)
    folder = out / "parts" / task.name
    if task.data is None:
        path = own_path(folder, task.d, task.holders)
        part_of(path, settings, partial(own_part, task.d, task.holders, settings))
    else:
        path = folder / f"{task.set}-closed.npz"
        rows = loaded(task.data, task.set)
        part_of(path, settings, partial(closed, task.set, rows, settings))
    return str(path)


def main(arguments: list[str] | None = None) -> int:
    """Make all parts."""
    parser = argparse.ArgumentParser(prog="python -m experiments.run.own", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for results")
    parser.add_argument("--data", type=Path, help="folder with the UCI files, for real")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    os.environ.update(dict.fromkeys(THREADS, "1"))
    tasks = tasks_of(options.data, quick=options.quick)
    with get_context("spawn").Pool(options.processes) as pool:
        make = partial(made, options.out, quick=options.quick)
        for path in pool.imap_unordered(make, tasks):
            print(path, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
