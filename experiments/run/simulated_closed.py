"""Simulated data, continued.

The closed forms, the package's default and the non-private posterior, which no GPU is needed for.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.model.design import Truth, simulated_rows
from experiments.model.priors import paper_prior
from experiments.model.release import Budget, Standard, Statistics, standard_noise
from experiments.run.chains import KEPT
from experiments.run.closed import (
    TEXT,
    ada_ssp_of,
    ada_ssp_text,
    fixed_s_fast_of,
    non_private_of,
)
from experiments.run.ours import collected, default_study, informed
from experiments.run.parts import Part, joined, record
from experiments.run.simulated import Cell, cells_of, data_of, labels
from experiments.settings import SimulatedSettings as Settings
from tacit.analyst.fit import fit
from tacit.analyst.posterior.posterior import Posterior

Array = NDArray[np.float64]
OWN = "noise-aware"
INFORMED = "noise-aware, paper's prior"
LEVEL = 0.9
"""Of the intervals whose coverage is counted."""
MANY = 2000
"""Draws of the non-private posterior, as many as the published code takes."""


class Law(NamedTuple):
    """What is scored of a posterior; a point has no covariance and no draws."""

    mean: Array
    covariance: Array | None = None
    draws: Array | None = None  # (KEPT, d)
    covered: float = np.nan  # share of coefficients that their 90 % intervals hold


class Own(NamedTuple):
    """The default method on one release."""

    default: Law
    informed: Law


def noise_of(settings: Settings, statistics: Statistics, run: int) -> Standard:
    """The run's noise, the same as for the samplers."""
    rng = np.random.default_rng([settings.seed, statistics.d, run, statistics.holders])
    return standard_noise(rng, statistics.holders, statistics.d)


def closed_part(d: int, settings: Settings) -> Part:
    """Errors of the paper's closed forms at one d, all J, with draws where d is the smallest."""
    truths, statistics = data_of(settings, d)
    parts, kept = [], {}
    for holders in settings.holders:
        for method, cells, laws in (
            ("fixed-s-fast", cells_of(settings), list(fast(statistics[holders], truths, settings))),
            ("ada-ssp", cells_of(settings), list(ada(statistics[holders], settings))),
            (TEXT, text_cells(settings), list(ada_text(statistics[holders], settings))),
            (
                "non-private",
                bare_cells(settings),
                list(bare(statistics[holders], truths, settings)),
            ),
        ):
            parts.append(record(labels(method, d, holders, cells) | scores(cells, laws, truths)))
            if laws[0].draws is not None:
                kept[f"draws:{method}:{holders}"] = np.array([law.draws for law in laws])
    return joined(parts) | (kept if d == min(settings.columns) else {})


def own_part(d: int, holders: int, settings: Settings) -> Part:
    """Errors, draws and coverage of the package's default at one d and J.

    With its own prior and with the paper's; fits of a tenth of a second each, so a part of its own.
    `covered` goes with the columns, row by row.
    """
    cells = own_cells(settings)
    truths = data_of(settings, d)[0]
    fits = list(own(d, holders, settings))
    kinds = {OWN: [each.default for each in fits], INFORMED: [each.informed for each in fits]}
    parts = [
        record(labels(method, d, holders, cells) | scores(cells, laws, truths))
        for method, laws in kinds.items()
    ]
    return joined(parts) | {
        "draws": np.array([law.draws for law in kinds[OWN]]),
        "covered": np.array([law.covered for laws in kinds.values() for law in laws]),
    }


def own_path(out: Path, d: int, holders: int) -> Path:
    """Where that part lies."""
    return out / f"{OWN}-d{d}-j{holders}.npz"


def own_cells(settings: Settings) -> list[Cell]:
    """The default release is honest and nothing else."""
    return [cell for cell in cells_of(settings) if cell.calibration == "honest"]


def bare_cells(settings: Settings) -> list[Cell]:
    """Without privacy there is one fit per run; it stands at ε = ∞."""
    return [Cell("honest", np.inf, run) for run in range(settings.runs)]


def scores(cells: list[Cell], laws: list[Law], truths: list[Truth]) -> dict[str, Any]:
    """Columns of errors."""
    pairs = [(truths[cell.run], law) for cell, law in zip(cells, laws, strict=True)]
    return {
        "estimation": np.array([truth.estimation(law.mean) for truth, law in pairs]),
        "prediction_point": np.array([truth.prediction(law.mean) for truth, law in pairs]),
        "prediction": np.array(
            [truth.prediction(law.mean, second_moment(law)) for truth, law in pairs]
        ),
        "acceptance": np.nan,
    }


def second_moment(law: Law) -> Array | None:
    """E[θθ'], or nothing for a point, whose two predictions are the same."""
    return None if law.covariance is None else law.covariance + np.outer(law.mean, law.mean)


def fast(statistics: list[Statistics], truths: list[Truth], settings: Settings) -> Iterator[Law]:
    """fixed-s-fast."""
    for cell in cells_of(settings):
        table, prior = statistics[cell.run], paper_prior(truths[cell.run].feature_scale)
        budget = Budget(cell.epsilon, 1 / settings.rows)
        found = fixed_s_fast_of(
            cell.calibration, table, noise_of(settings, table, cell.run), budget, prior
        )
        yield Law(
            found.mean(),
            found.covariance(),
            found.sample(KEPT, np.random.default_rng([settings.seed, cell.run]))[0],
        )


def ada(statistics: list[Statistics], settings: Settings) -> Iterator[Law]:
    """ada-ssp."""
    for cell in cells_of(settings):
        table, budget = statistics[cell.run], Budget(cell.epsilon, 1 / settings.rows)
        yield Law(ada_ssp_of(cell.calibration, table, noise_of(settings, table, cell.run), budget))


def text_cells(settings: Settings) -> list[Cell]:
    """The budget of the text is for published noise alone."""
    return cells_of(settings, ("as-published",))


def ada_text(statistics: list[Statistics], settings: Settings) -> Iterator[Law]:
    """ada-ssp with the text's budget."""
    for cell in text_cells(settings):
        table = statistics[cell.run]
        budget = Budget(cell.epsilon, 1 / settings.rows)
        yield Law(ada_ssp_text(table, noise_of(settings, table, cell.run), budget))


def bare(statistics: list[Statistics], truths: list[Truth], settings: Settings) -> Iterator[Law]:
    """The non-private posterior."""
    for run, (table, truth) in enumerate(zip(statistics, truths, strict=True)):
        found = non_private_of(table, paper_prior(truth.feature_scale))
        yield Law(
            found.mean(),
            found.covariance(),
            found.sample(MANY, np.random.default_rng([settings.seed, run, 1]))[0],
        )


def own(d: int, holders: int, settings: Settings) -> Iterator[Own]:
    """The default release and method, cell by cell in the order of `own_cells`."""
    fits: dict[tuple[float, int], Own] = {}
    for run in range(settings.runs):
        which = 0 if settings.one_data_set else run
        x, y, truth = simulated_rows(settings.seed, d, which, settings.rows)
        for epsilon in settings.epsilons:
            largest = float(np.abs(y).max())
            study = default_study(x, largest, holders, epsilon, 1 / settings.rows)
            rng = np.random.default_rng([settings.seed, d, run, holders, 2])
            collection = collected(study, x, y, holders, rng)
            fits[epsilon, run] = Own(
                default=law_of(fit(collection), truth, rng),
                informed=law_of(informed(collection), truth, rng),
            )
    for cell in own_cells(settings):
        yield fits[cell.epsilon, cell.run]


def law_of(posterior: Posterior, truth: Truth, rng: np.random.Generator) -> Law:
    """What is scored of a posterior; an implied intercept, where there is one, comes first."""
    d = len(truth.theta)
    low, high = posterior.interval(LEVEL)[-d:].T
    return Law(
        mean=posterior.mean()[-d:],
        covariance=posterior.covariance()[-d:, -d:],
        draws=posterior.sample(KEPT, rng)[:, -d:],
        covered=float(np.mean((low <= truth.theta) & (truth.theta <= high))),
    )
