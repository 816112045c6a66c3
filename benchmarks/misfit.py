"""Intervals beyond the straight line: no intercept, bent, skewed, and unequal scatter.

`origin` is the simulated design of Alparslan, Yıldırım and Birbil (2023): θ ~ N(0, I), x ~ N(0, Σ),
Σ inverse Wishart, no intercept, residual sd 1, 100,000 rows; public ranges are the largest values
in the data, as theirs are. The other designs have an intercept, four features and 20,000 rows, and
their truth is the best straight line, by least squares on 400,000 other rows:

- `bent`: two features act by their squares and a sine;
- `skewed`: features are lognormal, and one acts by its logarithm;
- `unequal`: the residual's sd grows e-fold over two standard deviations of a feature.

Typical intervals are ±√3 sd, and ranges as wide as the rows. Studies plan their rows, and have as
many visits as their rule says. Shares of 90 % intervals that hold the truth, and of predictive
intervals that hold new responses, with the standard error over runs; beside them the share of
coefficients in one visit, and `without` planned rows, which is one visit too.

Bars (--check): a cell's 99 % limits (Student, runs − 1 degrees) reach into 87 to 93 % for
coefficients, and into 86 to 94 % for predictions; in one visit they reach 87 %. `skewed` is
excepted: long rows count for less there, the relation bends just where they are, and the estimate
is of another line.

    python benchmarks/misfit.py [--runs 60] [--processes N] [--quick] [--check]
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from multiprocessing import get_context

import numpy as np
from frame import Bench
from scipy import stats

from tacit.analyst.collection import collect
from tacit.analyst.fit import fit
from tacit.simulation import simulate, simulate_visits
from tacit.study import Study

PROBABILITY = 0.9
BAND = (0.87, 0.93)
PREDICTIVE_BAND = (0.86, 0.94)
CONFIDENCE = 0.99
PAPER_ROWS = 100_000
ROWS = 20_000
POPULATION = 400_000
NEW_ROWS = 1000
FEATURES = 4
EXCEPTED = {"skewed"}

Rows = tuple[np.ndarray, np.ndarray]
Make = Callable[[np.random.Generator, int], Rows]


def bent(rng: np.random.Generator, n: int) -> Rows:
    x = rng.normal(size=(n, FEATURES))
    signal = 0.3 * x[:, 0] - 0.2 * x[:, 1] + 0.2 * x[:, 2] ** 2 + 0.4 * np.sin(2 * x[:, 3])
    return x, signal + 0.4 * rng.normal(size=n)


def skewed(rng: np.random.Generator, n: int) -> Rows:
    x = np.exp(0.7 * rng.normal(size=(n, FEATURES)))
    return x, 0.5 * np.log(x[:, 0]) + 0.2 * x[:, 1] - 0.1 * x[:, 2] + 0.4 * rng.normal(size=n)


def unequal(rng: np.random.Generator, n: int) -> Rows:
    x = rng.normal(size=(n, FEATURES))
    spread = 0.3 * np.exp(np.clip(0.5 * x[:, 0], -1.5, 1.5))
    return x, 0.3 * x[:, 0] - 0.2 * x[:, 1] + spread * rng.normal(size=n)


MADE: dict[str, Make] = {"bent": bent, "skewed": skewed, "unequal": unequal}


def origin(rng: np.random.Generator, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The paper's rows, responses and θ."""
    theta = rng.normal(size=d)
    root = rng.normal(size=(d, d))
    covariance = stats.invwishart.rvs(d + 1, root.T @ root, random_state=rng)
    x = rng.multivariate_normal(np.zeros(d), np.atleast_2d(covariance), size=PAPER_ROWS)
    return x, x @ theta + rng.normal(size=PAPER_ROWS), theta


PLANS = ("default", "one visit", "without")
"""Rows planned, and visits by the study's rule; rows planned for one visit; no rows planned."""


def study_of(
    x: np.ndarray, y: np.ndarray, epsilon: float, plan: dict[str, object], *, intercept: bool
) -> Study:
    """Ranges from rows, which nobody's release may do: here the design is public."""
    features = []
    for k in range(x.shape[1]):
        column = x[:, k]
        feature = {"name": f"x{k}", "range": [float(column.min()), float(column.max())]}
        if intercept:
            reach = math.sqrt(3) * float(column.std())
            low = max(float(column.min()), float(column.mean()) - reach)
            feature["typical"] = [low, min(float(column.max()), float(column.mean()) + reach)]
        else:
            most = float(np.abs(column).max())
            feature["range"] = [-most, most]
        features.append(feature)
    most = float(np.abs(y).max())
    return Study.from_document(
        {
            "name": "misfit",
            "epsilon": epsilon,
            "delta": 1e-5,
            "intercept": intercept,
            "response": {"name": "y", "range": [-most, most]},
            "features": features,
        }
        | plan
    )


def planned(plan: str, rows: int, holders: int) -> dict[str, object]:
    """What a study says of its rows and visits."""
    if plan == "without":
        return {}
    said: dict[str, object] = {"planned_rows": [rows // holders] * holders}
    return said if plan == "default" else said | {"visits": 1}


def covered(
    study: Study, rows: Rows, new: Rows, truth: np.ndarray, seed: tuple[int, int]
) -> tuple[float, float]:
    """Shares of coefficients and of new responses inside their intervals, in one run.

    `seed` is the run and the number of holders.
    """
    holders = seed[1]
    rng = np.random.default_rng([*seed, len(study.features), round(10 * study.epsilon)])
    names = [feature.name for feature in study.features]
    tables = [
        dict(zip(names, rows[0][part].T, strict=True)) | {"y": rows[1][part]}
        for part in np.array_split(np.arange(len(rows[1])), holders)
    ]
    if study.visit_count > 1 and holders > 1:
        releases = simulate_visits(study, tables, rng)
    else:
        releases = [simulate(study, table, rng, holder=f"h{k}") for k, table in enumerate(tables)]
    posterior = fit(collect(releases, allow_simulated=True))
    low, high = posterior.interval(PROBABILITY).T
    predicted = posterior.predict(dict(zip(names, new[0].T, strict=True)), PROBABILITY)
    inside = (predicted["low"].to_numpy() <= new[1]) & (new[1] <= predicted["high"].to_numpy())
    return float(np.mean((low <= truth) & (truth <= high))), float(np.mean(inside))


def limits(shares: list[float]) -> tuple[float, float, float, float]:
    """Mean, standard error, and the ends of its limits."""
    spread = float(np.std(shares, ddof=1)) or math.sqrt(PROBABILITY * (1 - PROBABILITY))
    error = spread / math.sqrt(len(shares))
    margin = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(shares) - 1)) * error
    mean = float(np.mean(shares))
    return mean, error, mean - margin, mean + margin


@dataclass(frozen=True)
class Cell:
    """A design, its columns and holders, and ε."""

    design: str
    d: int
    holders: int
    epsilon: float

    def __str__(self) -> str:
        return f"{self.design}, d = {self.d}, J = {self.holders}, ε = {self.epsilon:g}"


Job = tuple[Cell, str, int]
"""A cell, one of PLANS, and a run."""


def shares_of(job: Job) -> tuple[float, float]:
    """Shares of coefficients and of new responses inside their intervals, in one run."""
    cell, plan, run = job
    if cell.design == "origin":
        x, y, theta = origin(np.random.default_rng([run, cell.d]), cell.d)
        said = planned(plan, PAPER_ROWS, cell.holders)
        study = study_of(x, y, cell.epsilon, said, intercept=False)
        new = x[:NEW_ROWS], y[:NEW_ROWS]
        return covered(study, (x, y), new, theta, (run, cell.holders))
    make = MADE[cell.design]
    rng = np.random.default_rng([run + 1, cell.holders])
    rows = make(rng, ROWS)
    said = planned(plan, ROWS, cell.holders)
    study = study_of(*rows, cell.epsilon, said, intercept=True)
    return covered(study, rows, make(rng, NEW_ROWS), best(cell.design), (run, cell.holders))


@cache
def best(design: str) -> np.ndarray:
    """The best straight line of a made design."""
    x, y = MADE[design](np.random.default_rng(0), POPULATION)
    line: np.ndarray = np.linalg.lstsq(np.column_stack([np.ones(len(y)), x]), y, rcond=None)[0]
    return line


def report(bench: Bench, shares: dict[Job, tuple[float, float]], cells: list[Cell]) -> None:
    """The table of all cells, and their bars."""
    columns = {"design": "<10", "d": "d", "J": "d", "ε": "g", "coefficients": ".1f%"}
    columns |= {"±": ".1f%", "predictive": ".1f%", "± ": ".1f%"}
    columns |= {"one visit": ".1f%", "±  ": ".1f%", "without": ".1f%"}
    table = bench.table("coverage", columns)
    runs = 1 + max(run for _, _, run in shares)
    for cell in cells:
        drawn, single, bare = ([shares[cell, plan, run] for run in range(runs)] for plan in PLANS)
        ours = limits([one[0] for one in drawn])
        predictive = limits([one[1] for one in drawn])
        once = limits([one[0] for one in single])
        without = float(np.mean([one[0] for one in bare]))
        figures = (*ours[:2], *predictive[:2], *once[:2], without)
        table.row(cell.design, cell.d, cell.holders, cell.epsilon, *figures)
        reached = ours[2] <= BAND[1] and ours[3] >= BAND[0]
        if cell.design not in EXCEPTED:
            bench.bar(f"{cell}: coefficients cover 87 to 93 %", met=reached)
            bench.bar(f"{cell}: one visit covers 87 %", met=once[3] >= BAND[0])
        low, high = PREDICTIVE_BAND
        reached = predictive[2] <= high and predictive[3] >= low
        bench.bar(f"{cell}: predictions cover 86 to 94 %", met=reached)


def main() -> None:
    bench = Bench(__doc__, quick="six runs, one holder, two budgets")
    bench.option("--runs", type=int, default=60)
    bench.option("--processes", type=int, default=os.cpu_count())
    options = bench.options()
    os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")  # of children
    runs = 6 if options.quick else options.runs
    holders = (1,) if options.quick else (1, 10)
    epsilons = (1.0, 10.0) if options.quick else (0.1, 1.0, 10.0)
    cells = [Cell("origin", *each) for each in product((2, 5), holders, epsilons)]
    cells += [Cell(name, FEATURES + 1, 1, epsilon) for name in MADE for epsilon in (1.0, 10.0)]
    jobs = list(product(cells, PLANS, range(runs)))
    with get_context("spawn").Pool(options.processes) as pool:
        shares = dict(zip(jobs, pool.map(shares_of, jobs, chunksize=1), strict=True))
    report(bench, shares, cells)
    bench.finish()


if __name__ == "__main__":
    main()
