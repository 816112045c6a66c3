"""Attenuation: how long slopes of several visits are told, over how long they are.

The first answer of a study of several visits and what corrects it go by one X'X, whose error they
share: corrections are too short by its square, along the slopes themselves (docs/visits.md). Here
slopes are told with what makes up for that, and, of the same releases, without.

*length*: β̂'Vβ/β'Vβ, V the covariance of features, the mean over runs, with its standard error;
a posterior mean is a little short by right, by as much of the slopes as noise hides. *R2*: how
often its 90 % interval holds the truth. Straight lines are those of `questions.py`, ten holders of
2,000 rows, d = 15, ε = 1; families those of `families.py`, ten holders, ε = 1, features `mixed`,
a rate of one half or a mean count of 2.

Bar (--check): slopes are told within 3 % of their length (99 % limits).

    python benchmarks/attenuation.py [--runs 100] [--processes 1] [--quick] [--check]

100 runs of every cell take about 15 minutes of one core.
"""

import math
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context

import families
import numpy as np
import questions
from families_made import Cell as FamilyCell
from frame import Bench

from tacit.analyst.fit import fit, refit
from tacit.analyst.posterior.posterior import Posterior

LINES = (2, 3, 4)
"""Visits of straight lines."""
FAMILIES = (
    FamilyCell("mixed", 0.5, 1.0, 10, visits=3),
    FamilyCell("mixed", 2.0, 1.0, 10, "poisson", 0.5, visits=3),
)
MOST = 0.03
Told = tuple[float, float, float, float]
"""Length and whether R² is held, and both without what makes up for the error."""


def left_aside(posterior: Posterior) -> Posterior:
    """The posterior of the same releases as if the error were not shared."""
    source = posterior.source
    frame = None if source is None else source.evidence.frame
    if source is None or frame is None:
        raise AssertionError
    bare = replace(source.evidence, frame=replace(frame, attenuation=None))
    return refit(replace(posterior, source=replace(source, evidence=bare)))


def of_line(visits: int, seed: int) -> Told:
    cell = questions.Cell(15, 10, 1.0, visits)
    rng = np.random.default_rng([seed, visits])
    theta = questions.theta_of(rng, cell.d)
    posterior = fit(questions.released(rng, cell, theta))
    spread = questions.spread_of(questions.second_moments(cell.d, visits))
    signal = float(theta @ spread @ theta)
    truth = signal / (signal + (questions.RESIDUAL_SD / questions.HALF) ** 2)
    told = []
    for each in (posterior, left_aside(posterior)):
        explained = each.explained()
        told.append(float(each.mean("scaled") @ spread @ theta) / signal)
        told.append(float(explained.low <= truth <= explained.high))  # type: ignore[union-attr]
    return tuple(told)  # type: ignore[return-value]


def of_family(cell: FamilyCell, seed: int) -> Told:
    rng = np.random.default_rng([seed, round(10 * cell.rate)])
    known = families.Known.of(cell.rows, rng)
    posterior = families.posterior_of(cell, known, rng)
    told = [
        1 + float(families.outcome_of(cell, known, each)["along"])  # type: ignore[arg-type]
        for each in (posterior, left_aside(posterior))
    ]
    return told[0], math.nan, told[1], math.nan


def main() -> None:
    bench = Bench(__doc__, quick="six runs of three visits")
    bench.option("--runs", type=int, default=100, help="runs of every cell")
    bench.option("--processes", type=int, default=1, help="processes to use")
    options = bench.options()
    runs = min(options.runs, 6) if options.quick else options.runs
    table = bench.table(
        "lengths",
        {"family": "<9", "visits": "d", "runs": "d", "length": ".3f", "±": ".3f", "R2": ".0f%"}
        | {"left aside: length": ".3f", "left aside: R2": ".0f%"},
    )
    cells = [("straight", visits, partial(of_line, visits)) for visits in LINES]
    cells += [(cell.family, cell.visits, partial(of_family, cell)) for cell in FAMILIES]
    if options.quick:
        cells = cells[1:2]
    with ProcessPoolExecutor(options.processes, mp_context=get_context("fork")) as pool:
        for name, visits, work in cells:
            told = np.array(list(pool.map(work, range(runs), chunksize=2)))
            length, held, bare, bare_held = told.mean(axis=0)
            low, high = families.limits(list(told[:, 0]))
            error = float(told[:, 0].std(ddof=1)) / math.sqrt(runs)
            table.row(name, visits, runs, length, error, held, bare, bare_held)
            met = low <= 1 + MOST and high >= 1 - MOST
            bench.bar(f"{name}, {visits} visits: slopes within 3 % of their length", met=met)
    bench.finish()


if __name__ == "__main__":
    main()
