"""The paper's tables and figures.

    python -m experiments NAME --out DIR [--data DIR] [--runs N] [--quick] [--seed N]
    python -m experiments compute (simulated | real | runtimes) --out DIR [...]

NAME is one of simulated, mmd, runtimes, real, audit, all, or page, which writes docs/paper.md from
what DIR holds. A run that was killed goes on where it stopped. Results: DIR/NAME.parquet,
DIR/tables (Markdown and LaTeX), DIR/figures (SVG and PNG).

Examples
--------
    python -m experiments audit --out results
    python -m experiments simulated --quick --out results-quick
    python -m experiments real --data ~/uci --out results
    python -m experiments page --out results
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.model.data import DataError
from experiments.run.parts import Part, PartError, columns_of, joined, part_of
from experiments.run.progress import steps
from experiments.settings import (
    NAMES,
    AuditSettings,
    MmdSettings,
    RealSettings,
    RuntimesSettings,
    SimulatedSettings,
    settings_of,
)
from experiments.show.report import Columns, Report
from tacit.errors import TacitError

EVERY = ("audit", "runtimes", "real", "simulated", "one", "mmd")
SAMPLED = (
    "fixed-s",
    "bernstein-sheldon",
    "normal-x",
    "normal-x-published",
    "bernstein-sheldon-published",
)


def main(arguments: list[str] | None = None) -> int:
    """Run one experiment, or all, or write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "name",
        choices=[*NAMES, "all", "page"],
        metavar="NAME",
        help=", ".join([*NAMES, "all", "page"]),
    )
    parser.add_argument(
        "--out", type=Path, default=Path("results"), help="folder for results (results)"
    )
    parser.add_argument("--data", type=Path, help="folder with the UCI files, for real")
    parser.add_argument("--runs", type=int, help="runs per cell, in place of the settings'")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="fewer runs and iterations, as the settings' [quick] says",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=SAMPLED,
        help="samplers to run or read in simulated and real (all); the rest stay blank",
    )
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == ["compute"]:
        from experiments.run.compute import main as compute

        return compute(words[1:])
    options = parser.parse_args(words)
    try:
        for name in EVERY if options.name == "all" else (options.name,):
            run(name, options)
    except (TacitError, PartError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def run(name: str, options: argparse.Namespace) -> None:
    """One name."""
    if name == "page":
        from experiments.show.page import write_page

        print(write_page(options.out))
        return
    settings = settings_of(name, quick=options.quick, runs=options.runs, seed=options.seed)
    report = RUNNERS[name](options, settings)
    report.save(options.out)
    for table in report.tables:
        print("\n" + table.markdown())


def simulated_name(settings: SimulatedSettings) -> str:
    """That of the experiment: with data drawn anew in every run, or with one data set."""
    return "one" if settings.one_data_set else "simulated"


def simulated_settings(options: argparse.Namespace) -> SimulatedSettings:
    """Those of `simulated`, which mmd shares."""
    settings: SimulatedSettings = settings_of(
        "simulated", quick=options.quick, runs=options.runs, seed=options.seed
    )
    return settings


def simulated_parts(
    options: argparse.Namespace, settings: SimulatedSettings, columns: Sequence[int]
) -> list[Part]:
    """The parts of `simulated` at some d, made where they are not there."""
    from experiments.run.simulated import chains_part, part_path
    from experiments.run.simulated_closed import OWN, closed_part, own_part, own_path

    folder = options.out / "parts" / simulated_name(settings)
    chosen = options.methods or (*SAMPLED, OWN)
    makers: dict[Path, Callable[[], Part]] = {}

    def add(method: str, path: Path, make: Callable[[], Part]) -> None:
        if path.exists() or method in {"closed", *chosen}:
            makers[path] = make

    for d in columns:
        add("closed", part_path(folder, "closed", d), partial(closed_part, d, settings))
        for method in SAMPLED:
            make = partial(chains_part, method, d, settings, lambda _iterations: None)
            add(method, part_path(folder, method, d), make)
        for holders in settings.holders:
            add(OWN, own_path(folder, d, holders), partial(own_part, d, holders, settings))
    parts = []
    with steps(len(makers)) as step:
        for path, make in makers.items():
            step(path.stem)
            parts.append(part_of(path, settings, make))
    return parts


def run_simulated(options: argparse.Namespace, settings: SimulatedSettings) -> Report:
    """Errors on simulated data."""
    from experiments.show.simulated import simulated

    name = simulated_name(settings)
    parts = simulated_parts(options, settings, settings.columns)
    measured = options.out / "parts" / name / "times.json"
    times = json.loads(measured.read_text(encoding="utf-8")) if measured.exists() else None
    return simulated(stored(options, name, parts), settings, times, covered_columns(parts))


def covered_columns(parts: Sequence[Part]) -> Columns | None:
    """Columns of the parts that tell coverage, with it; none where no part does."""
    telling = [part for part in parts if "covered" in part]
    if not telling:
        return None
    covered = np.concatenate([part["covered"] for part in telling])
    return columns_of(joined(telling)) | {"covered": covered}


def run_mmd(options: argparse.Namespace, settings: MmdSettings) -> Report:
    """Distances to the non-private posterior."""
    from experiments.run.mmd import distances
    from experiments.show.simulated import mmd

    shared = simulated_settings(options)
    simulated_parts(options, shared, [min(shared.columns)])
    part = distances(options.out / "parts" / "simulated", shared, settings.bandwidth)
    return mmd(stored(options, "mmd", [part]), shared)


def run_real(options: argparse.Namespace, settings: RealSettings) -> Report:
    """Errors on public data."""
    from experiments.model.data import FILES, available
    from experiments.run.convergence import converged
    from experiments.run.real import run_parts
    from experiments.show.real import real

    if options.data is None or not available(options.data):
        raise DataError(
            f"--data must name a folder that holds {', '.join(FILES.values())}, or some of them: "
            "fetch them from the UCI repository"
        )
    methods = options.methods or (*SAMPLED, "mixing")
    each = 2 + len(methods) + ("mixing" in methods) * (len(settings.holders) - 1)
    chosen = [name for name in settings.sets if name in available(options.data)]
    with steps(len(chosen) * each) as step:
        parts = run_parts(options.data, options.out / "parts" / "real", settings, methods, step)
    mixing = stored(options, "real-mixing", parts["mixing"]) if parts["mixing"] else None
    chains = converged(options.out / "parts" / "real", settings)
    return real(
        stored(options, "real", parts["errors"]),
        stored(options, "real-long", parts["long"]),
        mixing,
        stored(options, "real-convergence", chains) if chains else None,
        settings,
    )


def run_runtimes(options: argparse.Namespace, settings: RuntimesSettings) -> Report:
    """Times, on one core."""
    from experiments.run.runtimes import TIMED, run_parts
    from experiments.show.others import runtimes

    with steps(len(settings.columns) * len(settings.holders) * len(TIMED)) as step:
        found = run_parts(options.out / "parts" / "runtimes", settings, step)
    return runtimes(stored(options, "runtimes", found), settings)


def run_audit(options: argparse.Namespace, settings: AuditSettings) -> Report:
    """The true ε."""
    from experiments.run.audit import audited
    from experiments.show.others import audit

    with steps(1) as step:
        step("audit")
        found = part_of(options.out / "parts" / "audit.npz", settings, lambda: audited(settings))
    return audit(stored(options, "audit", [found]), settings)


RUNNERS: dict[str, Callable[[argparse.Namespace, Any], Report]] = {
    "simulated": run_simulated,
    "one": run_simulated,
    "mmd": run_mmd,
    "real": run_real,
    "runtimes": run_runtimes,
    "audit": run_audit,
}


def stored(options: argparse.Namespace, name: str, parts: list[Part]) -> Columns:
    """The columns of all parts, which are also written as Parquet."""
    import pyarrow as pa
    from pyarrow import parquet

    columns = columns_of(joined(parts))
    options.out.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(columns), options.out / f"{name}.parquet")
    return columns


if __name__ == "__main__":
    sys.exit(main())
