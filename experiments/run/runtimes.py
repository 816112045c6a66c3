"""Time per iteration against d: the samplers, and bernstein-sheldon as it is usually written.

CPU time of one chain on one core, the least of some runs after one that compiles; n = 10,000 rows
over J holders, noise of ε = 1, honestly calibrated.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from experiments.model.design import simulated_rows
from experiments.model.priors import prior_for
from experiments.model.release import Budget, noise_sds, noisy, standard_noise, statistics_of
from experiments.run.chains import SAMPLERS, Sampler, Unit
from experiments.run.dense import Dense
from experiments.run.parts import Part, joined, part_of, record
from experiments.settings import RuntimesSettings as Settings
from tacit.analyst.methods import bernstein_sheldon
from tacit.analyst.methods.method import Settings as SamplerSettings
from tacit.analyst.methods.sampling import run

TIMED = {
    "fixed-s": SAMPLERS["fixed-s"],
    "normal-x": SAMPLERS["normal-x"],
    "bernstein-sheldon": SAMPLERS["bernstein-sheldon"],
    "bernstein-sheldon, dense": Sampler(
        Dense(),
        lambda evidence, prior, _: Unit(*bernstein_sheldon.problem_of(evidence, prior)),
        "triple",
    ),
}


def problem_of(sampler: Sampler, d: int, holders: int, settings: Settings) -> Any:  # noqa: ANN401 - any pytree
    """The problem at one (d, J)."""
    x, y, truth = simulated_rows(settings.seed, d, 0, settings.rows)
    statistics, budget = statistics_of(x, y, holders), Budget(1.0, 1 / settings.rows)
    noise = standard_noise(np.random.default_rng([settings.seed, d, holders]), holders, d)
    evidence = noisy(
        statistics, noise_sds("honest", sampler.form, statistics, budget), noise, budget
    )
    prior = prior_for("normal-x", "honest", truth.feature_scale)
    return sampler.unit(evidence, prior, statistics.response_bound).problem


def microseconds(sampler: Sampler, d: int, holders: int, settings: Settings) -> float:
    """Per iteration."""
    problem = problem_of(sampler, d, holders, settings)
    half = settings.iterations // 2
    plan = SamplerSettings(chains=1, draws=half, warmup=half, seed=settings.seed)
    run(sampler.kernel, problem, plan)
    least = np.inf
    for _ in range(settings.repeats):
        began = time.process_time()
        run(sampler.kernel, problem, plan)
        least = min(least, time.process_time() - began)
    return float(least / settings.iterations * 1e6)


def run_parts(out: Path, settings: Settings, report: Callable[[str], None]) -> list[Part]:
    """One part per d, all on one core."""

    def timed(d: int) -> Part:
        lines = []
        for (method, sampler), holders in product(TIMED.items(), settings.holders):
            report(f"d = {d}, J = {holders}: {method}")
            figures = {
                "method": method,
                "d": d,
                "holders": holders,
                "microseconds": microseconds(sampler, d, holders, settings),
            }
            lines.append(record(figures))
        return joined(lines)

    with one_core():
        return [
            part_of(out / f"d{d}.npz", settings, lambda d=d: timed(d)) for d in settings.columns
        ]


@contextmanager
def one_core() -> Iterator[None]:
    """Hold this process to one core, where the system can, and let go of it afterwards."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
