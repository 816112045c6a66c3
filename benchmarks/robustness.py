"""Robustness: made data whose model is wrong, or too small for their columns.

The default must never predict worse than the mean.

Each cell draws rows by one of the `SCENARIOS`, splits them over J holders, publishes them through
the real encoder and mechanism (seeded noise, replace-one, δ = 1e-6) and scores predictions of new
rows by R² against the pooled mean of the holders' responses. Beside the default stand least squares
without privacy, on the same columns, and `fixed-s-fast` on the same releases.

Bars (--check), each with two standard errors of grace:

- The default's R², averaged over runs, is at least −0.02. In the cells of `SWAMPED` the holders'
  own mean, as the releases give it, is too noisy for that (`noisy mean`: intercept-only prediction
  from the same releases, by the ratio of the pooled noisy sums): there the default is at least as
  good as it, less 0.02, and the summary says in nearly every run that the releases carry too
  little.
- Where they carry enough (the default's R² is at least nine tenths of that of least squares, and
  that is above 0.1) it does not say so.

`--intercept C` gives rows (C, x) in place of (1, x), which spends more of the budget on the mean
response. It needs no field of its own: (C, x) in a ball of radius R is C times (1, x/C) in one of
radius R/C, so typical intervals are widened C times. The bars are for C = 1.

    python benchmarks/robustness.py [--quick] [--check] [--runs 12] [--intercept 1]
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from frame import Bench

from tacit.analyst.collection import Collection, collect
from tacit.analyst.fit import fit
from tacit.simulation import simulate
from tacit.study import Study
from tacit.study.form import NEAR_USUAL

NEW_ROWS = 10_000
LEAST = -0.02
ENOUGH = 0.9
WARNED, SPARED = 0.8, 0.2
"""Shares of runs with a warning.

At least so many where it is due, at most so many where it is not.
"""

Rows = tuple[np.ndarray, np.ndarray]
Make = Callable[[np.random.Generator, int, np.random.Generator], Rows]
"""Rows and responses of one holder.

The second generator is the run's own, the same for each of its holders and for the new rows.
"""


@dataclass(frozen=True)
class Scenario:
    """How rows are made, and what the study publicly says of them.

    The response's range and each feature's (range, typical).
    """

    make: Make
    p: int
    rows: int = 20_000
    response: tuple[float, float] = (-3.0, 3.0)
    feature: tuple[tuple[float, float], tuple[float, float]] = (
        (-6.0, 6.0),
        (-math.sqrt(3), math.sqrt(3)),
    )

    def study(self, epsilon: float, intercept: float = 1.0) -> Study:
        """The study.

        With an `intercept` C other than 1, the radius is the default rule's for rows (C, x), in
        units of C.
        """
        wide, (low, high) = self.feature
        reach = (intercept - 1) * (high - low) / 2
        typical = (max(low - reach, wide[0]), min(high + reach, wide[1]))
        radius = max(1.0, NEAR_USUAL * math.sqrt(1 + self.p / (3 * intercept**2)))
        return Study.from_document(
            {
                "name": "robustness",
                "epsilon": epsilon,
                "delta": 1e-6,
                "response": {"name": "y", "range": self.response},
                "features": [
                    {"name": f"x{k}", "range": wide, "typical": typical} for k in range(self.p)
                ],
                "release": {} if intercept == 1 else {"row_radius": radius},
            }
        )


def normal(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return rng.normal(size=(n, p))


def curved(rng: np.random.Generator, n: int, _world: np.random.Generator) -> Rows:
    x = normal(rng, n, 5)
    return x, 0.3 * x[:, 0] - 0.2 * x[:, 1] + 0.3 * (x[:, 2] ** 2 - 1) + 0.5 * np.sin(
        3 * x[:, 3]
    ) + 0.3 * rng.normal(size=n)


def interacting(rng: np.random.Generator, n: int, _world: np.random.Generator) -> Rows:
    x = normal(rng, n, 5)
    return x, 0.25 * x[:, 0] + 0.4 * x[:, 1] * x[:, 2] - 0.3 * x[:, 3] * x[:, 4] + 0.3 * rng.normal(
        size=n
    )


def heavy_features(rng: np.random.Generator, n: int, _world: np.random.Generator) -> Rows:
    x = rng.standard_t(3, size=(n, 5)) / math.sqrt(3)
    return x, x @ np.array([0.4, -0.3, 0.2, 0.0, 0.0]) + 0.4 * rng.normal(size=n)


def heavy_residuals(rng: np.random.Generator, n: int, _world: np.random.Generator) -> Rows:
    x = rng.standard_t(3, size=(n, 5)) / math.sqrt(3)
    return x, x @ np.array([0.4, -0.3, 0.2, 0.0, 0.0]) + 0.4 * rng.standard_t(
        3, size=n
    ) / math.sqrt(3)


def skewed(rng: np.random.Generator, n: int, _world: np.random.Generator) -> Rows:
    x = normal(rng, n, 5)
    return x, np.exp(x @ np.array([0.4, -0.3, 0.2, 0.0, 0.0]) + 0.4 * rng.normal(size=n))


def collinear(rng: np.random.Generator, n: int, _world: np.random.Generator) -> Rows:
    x = normal(rng, n, 6)
    x[:, 1::2] = 0.99 * x[:, ::2] + math.sqrt(1 - 0.99**2) * x[:, 1::2]
    return x, x @ np.array([0.4, 0.0, 0.3, -0.3, 0.0, 0.2]) + 0.4 * rng.normal(size=n)


def many_columns(rng: np.random.Generator, n: int, world: np.random.Generator) -> Rows:
    x = normal(rng, n, 19)
    return x, 0.5 + x @ (0.6 / math.sqrt(19) * world.normal(size=19)) + 0.4 * rng.normal(size=n)


def unlike_features(rng: np.random.Generator, n: int, world: np.random.Generator) -> Rows:
    slopes = 0.25 * world.normal(size=5)
    x = 0.7 * rng.normal(size=5) + rng.uniform(0.3, 1.2, size=5) * normal(rng, n, 5)
    return x, x @ slopes + 0.4 * rng.normal(size=n)


def unlike_coefficients(rng: np.random.Generator, n: int, world: np.random.Generator) -> Rows:
    slopes = 0.25 * world.normal(size=5) + 0.15 * rng.normal(size=5)
    x = normal(rng, n, 5)
    return x, 0.3 * rng.normal() + x @ slopes + 0.4 * rng.normal(size=n)


def unrelated(rng: np.random.Generator, n: int, _world: np.random.Generator) -> Rows:
    return normal(rng, n, 9), 1.0 + 0.5 * rng.normal(size=n)


HEAVY = ((-1000.0, 1000.0), (-math.sqrt(3), math.sqrt(3)))
SCENARIOS = {
    "curved": Scenario(curved, 5),
    "interactions": Scenario(interacting, 5),
    "heavy features": Scenario(heavy_features, 5, response=(-6.0, 6.0), feature=HEAVY),
    "heavy residuals": Scenario(heavy_residuals, 5, response=(-6.0, 6.0), feature=HEAVY),
    "skewed, off centre": Scenario(skewed, 5, response=(0.0, 20.0)),
    "collinear": Scenario(collinear, 6),
    "1,000 rows, d = 20": Scenario(many_columns, 19, rows=1_000),
    "2,500 rows, d = 20": Scenario(many_columns, 19, rows=2_500),
    "5,000 rows, d = 20": Scenario(many_columns, 19, rows=5_000),
    "unlike features": Scenario(unlike_features, 5),
    "unlike coefficients": Scenario(unlike_coefficients, 5),
    "nothing to find": Scenario(unrelated, 9),
}
SWAMPED = {
    ("1,000 rows, d = 20", 1, 0.3),
    ("1,000 rows, d = 20", 10, 0.3),
    ("1,000 rows, d = 20", 10, 1.0),
    ("2,500 rows, d = 20", 10, 0.3),
    ("5,000 rows, d = 20", 10, 0.3),
}
"""Cells (scenario, J, ε) in which even the mean response is lost, and the summary must say so."""
Key = tuple[str, int, float]


@dataclass
class Scores:
    """R² of each run, and whether the default's summary warned."""

    ours: list[float] = field(default_factory=list)
    fixed: list[float] = field(default_factory=list)
    least_squares: list[float] = field(default_factory=list)
    noisy_mean: list[float] = field(default_factory=list)
    warned: list[bool] = field(default_factory=list)


def holders_of(scenario: Scenario, holders: int, run: int) -> tuple[list[np.ndarray], np.ndarray]:
    """The holders' tables and new rows of the same holders, response last."""
    tables = []
    new = []
    for k in range(holders):
        n = scenario.rows // holders
        x, y = scenario.make(
            np.random.default_rng([run, 1 + k]),
            n + NEW_ROWS // holders,
            np.random.default_rng([run, 0]),
        )
        rows = np.column_stack([x, y])
        tables.append(rows[:n])
        new.append(rows[n:])
    return tables, np.concatenate(new)


def r_squared(beta: np.ndarray, new: np.ndarray, mean: float) -> float:
    """1 − the mean square error of a prediction over that of the training mean."""
    y = new[:, -1]
    return 1 - float(
        np.mean((y - beta[0] - new[:, :-1] @ beta[1:]) ** 2) / np.mean((y - mean) ** 2)
    )


def noisy_mean(collection: Collection) -> np.ndarray:
    """Coefficients of the intercept-only prediction, in the user's units.

    Pooled noisy Σα²y over pooled noisy Σα².
    """
    evidence, study = collection.evidence, collection.study
    middle, half = study.response.mapping
    share = np.clip(evidence.moments[:, 0].sum() / max(evidence.grams[:, 0, 0].sum(), 1e-9), -1, 1)
    return np.concatenate([[middle + half * share], np.zeros(study.d - 1)])


def measure(name: str, holders: int, epsilon: float, runs: int, intercept: float = 1.0) -> Scores:
    """One cell."""
    scenario = SCENARIOS[name]
    scores = Scores()
    study = scenario.study(epsilon, intercept)
    for run in range(runs):
        tables, new = holders_of(scenario, holders, run)
        whole = np.concatenate(tables)
        mean = float(whole[:, -1].mean())
        design = np.column_stack([np.ones(len(whole)), whole[:, :-1]])
        rng = np.random.default_rng([run, holders, round(10 * epsilon)])
        releases = [simulate(study, table, rng, holder=f"h{k}") for k, table in enumerate(tables)]
        collection = collect(releases, allow_simulated=True)
        ours = fit(collection)
        scores.ours.append(r_squared(ours.mean(), new, mean))
        scores.fixed.append(r_squared(fit(collection, "fixed-s-fast").mean(), new, mean))
        scores.least_squares.append(
            r_squared(np.linalg.lstsq(design, whole[:, -1], rcond=None)[0], new, mean)
        )
        scores.noisy_mean.append(r_squared(noisy_mean(collection), new, mean))
        scores.warned.append("too little" in ours.summary().caveat)
    return scores


def error_of(values: list[float]) -> float:
    return float(np.std(values, ddof=1)) / math.sqrt(len(values))


def complaints(key: Key, scores: Scores) -> list[str]:
    """Which bars a cell misses."""
    ours = float(np.mean(scores.ours))
    most = float(np.mean(scores.least_squares))
    warned = float(np.mean(scores.warned))
    missed = []
    if key not in SWAMPED and ours + 2 * error_of(scores.ours) < LEAST:
        missed.append("worse than the mean")
    gain = [ours - other for ours, other in zip(scores.ours, scores.noisy_mean, strict=True)]
    if key in SWAMPED and float(np.mean(gain)) + 2 * error_of(gain) < LEAST:
        missed.append("worse than the noisy mean")
    if key in SWAMPED and warned < WARNED:
        missed.append("no warning")
    if warned > SPARED and most > 0.1 and ours > ENOUGH * most:
        missed.append("needless warning")
    return missed


COLUMNS = {"scenario": "<20", "J": "d", "epsilon": "g", "least squares": ".3f"}
COLUMNS |= {"noise-aware": ".3f", "±": ".3f", "worst": ".3f", "fixed-s-fast": ".3f"}
COLUMNS |= {"noisy mean": ".3f", "warned": ".0f%"}


def main() -> None:
    bench = Bench(__doc__, quick="three runs: under a minute")
    bench.option("--runs", type=int, default=12)
    bench.option("--intercept", type=float, default=1.0, help="C of rows (C, x)")
    options = bench.options()
    runs = 3 if options.quick else options.runs
    table = bench.table("r-squared", COLUMNS)
    for key in itertools.product(SCENARIOS, (1, 10), (0.3, 1.0)):
        scores = measure(*key, runs, options.intercept)
        missed = complaints(key, scores)
        table.row(
            *key,
            np.mean(scores.least_squares),
            np.mean(scores.ours),
            error_of(scores.ours),
            min(scores.ours),
            np.mean(scores.fixed),
            np.mean(scores.noisy_mean),
            np.mean(scores.warned),
            note=", ".join(missed),
        )
        name, holders, epsilon = key
        told = f"{name}, J = {holders}, epsilon {epsilon:g}"
        bench.bar(": ".join([told, *missed]), met=not missed)
    bench.say(f"R² against the pooled mean, {runs} runs")
    bench.finish()


if __name__ == "__main__":
    main()
