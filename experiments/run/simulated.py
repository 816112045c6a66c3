"""Simulated data: errors of estimation and prediction, per method, calibration, d, J, ε and run.

This file needs NumPy, SciPy and jax alone, so that the chains can be run where there is a GPU and
little else.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.model.design import Truth, simulated_rows
from experiments.model.priors import prior_for
from experiments.model.release import (
    CALIBRATIONS,
    Budget,
    Calibration,
    Form,
    Statistics,
    noise_sds,
    noisy,
    standard_noise,
    statistics_of,
)
from experiments.run.chains import SAMPLERS, Chains, Plan, sample, stacked
from experiments.run.parts import Part, joined, part_of, record
from experiments.settings import SimulatedSettings as Settings
from tacit.analyst.evidence import Evidence

PUBLISHED = ("normal-x-published", "bernstein-sheldon-published")
"""Samplers of the published code, on published noise alone."""
PAPER_SAMPLERS = ("fixed-s", "normal-x", "bernstein-sheldon", *PUBLISHED)


class Cell(NamedTuple):
    """One release."""

    calibration: Calibration
    epsilon: float
    run: int


@lru_cache(maxsize=4)
def data(
    seed: int, d: int, rows: int, runs: int, every_holders: tuple[int, ...], *, one: bool
) -> tuple[list[Truth], dict[int, list[Statistics]]]:
    """The truth of every run, and for every J the statistics of every run."""
    truths: list[Truth] = []
    statistics: dict[int, list[Statistics]] = {holders: [] for holders in every_holders}
    for run in range(1 if one else runs):
        x, y, truth = simulated_rows(seed, d, run, rows)
        truths.append(truth)
        for holders in every_holders:
            statistics[holders].append(statistics_of(x, y, holders))
    if one:
        return truths * runs, {holders: parts * runs for holders, parts in statistics.items()}
    return truths, statistics


def data_of(settings: Settings, d: int) -> tuple[list[Truth], dict[int, list[Statistics]]]:
    """The data of an experiment."""
    return data(
        settings.seed,
        d,
        settings.rows,
        settings.runs,
        settings.holders,
        one=settings.one_data_set,
    )


def cells_of(
    settings: Settings, calibrations: tuple[Calibration, ...] = CALIBRATIONS
) -> list[Cell]:
    """Every release of one (d, J)."""
    return [Cell(*cell) for cell in product(calibrations, settings.epsilons, range(settings.runs))]


def evidence_of(cell: Cell, form: Form, statistics: Statistics, settings: Settings) -> Evidence:
    """The release of a cell; its noise depends on d, J and the run alone."""
    rng = np.random.default_rng([settings.seed, statistics.d, cell.run, statistics.holders])
    budget = Budget(cell.epsilon, 1 / settings.rows)
    noise = standard_noise(rng, statistics.holders, statistics.d)
    return noisy(statistics, noise_sds(cell.calibration, form, statistics, budget), noise, budget)


def chains_part(
    method: str, d: int, settings: Settings, on_progress: Callable[[int], None]
) -> Part:
    """Errors of a sampler at one d, all J, with the kept draws."""
    parts = []
    kept = {}
    seconds = []
    for holders in settings.holders:
        problems, stretch = problems_of(method, d, holders, settings)
        chains = sample(SAMPLERS[method], problems, stretch, plan_of(method, settings, on_progress))
        parts.append(record(scored(method, d, holders, settings, chains)))
        kept[f"draws:{holders}"] = chains.thinned.astype(np.float32)
        seconds.append(chains.seconds)
    return joined(parts) | kept | {"seconds": np.array(seconds)}


def plan_of(
    method: str, settings: Settings, on_progress: Callable[[int], None] = lambda _iterations: None
) -> Plan:
    """How long a method's chains run: those by gradient need fewer iterations."""
    gradient = method == "normal-x-gradient"
    return Plan(
        settings.gradient_iterations if gradient else settings.iterations,
        settings.seed,
        on_progress,
    )


def problems_of(method: str, d: int, holders: int, settings: Settings) -> tuple[Any, Any]:
    """The sampler's problems at one (d, J), in the order of `cells_of`."""
    sampler = SAMPLERS[method]
    truths, statistics = data_of(settings, d)
    cells = cells_of(settings, sampler.calibrations)
    evidences = [
        evidence_of(cell, sampler.form, statistics[holders][cell.run], settings) for cell in cells
    ]
    priors = [prior_for(method, cell.calibration, truths[cell.run].feature_scale) for cell in cells]
    bounds = [statistics[holders][cell.run].response_bound for cell in cells]
    return stacked(sampler, evidences, priors, bounds)


def scored(method: str, d: int, holders: int, settings: Settings, chains: Chains) -> dict[str, Any]:
    """Columns of errors."""
    truths, _ = data_of(settings, d)
    cells = cells_of(settings, SAMPLERS[method].calibrations)
    return labels(method, d, holders, cells) | {
        "estimation": np.array(
            [truths[c.run].estimation(m) for c, m in zip(cells, chains.mean, strict=True)]
        ),
        "prediction_point": np.array(
            [truths[c.run].prediction(m) for c, m in zip(cells, chains.mean, strict=True)]
        ),
        "prediction": np.array(
            [
                truths[c.run].prediction(m, s)
                for c, m, s in zip(cells, chains.mean, chains.second, strict=True)
            ]
        ),
        "acceptance": chains.acceptance[:, 0],
    }


def labels(method: str, d: int, holders: int, cells: Iterable[Cell]) -> dict[str, Any]:
    """Columns that say which result is which."""
    calibrations, epsilons, runs = zip(*cells, strict=True)
    return {
        "method": method,
        "d": d,
        "holders": holders,
        "calibration": np.array(calibrations),
        "epsilon": np.array(epsilons),
        "run": np.array(runs),
    }


def chain_parts(
    out: Path,
    settings: Settings,
    on_progress: Callable[[int], None],
    methods: Iterable[str] = PAPER_SAMPLERS,
) -> None:
    """Run what is not there yet, the cheapest first."""
    for method, d in product(methods, settings.columns):
        part_of(
            part_path(out, method, d),
            settings,
            lambda method=method, d=d: chains_part(method, d, settings, on_progress),
        )


def part_path(out: Path, method: str, d: int) -> Path:
    """Where a method's part lies."""
    return out / f"{method}-d{d}.npz"
