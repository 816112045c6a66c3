"""Where ranges are hard to choose: several visits against one.

Three simulated holders of 5,000 rows and six features. Each feature has a generous public range, of
which an even spread with the same variance would fill a given share, off its centre by up to 0.7 of
what room is left. The response is linear in the features with a signal-to-noise ratio that gives R²
of about 0.65. Where the share is 1 the features are evenly spread over the ranges; else they are
correlated normals, clamped at the ranges.

`one` publishes once with ranges alone; `several` has as many visits as the study's rule gives, of
which the first asks where values lie; `known` is told m ± √3 sd and publishes once; `rows` is least
squares without privacy. All are at the same (ε, 1e-6) per holder, replace-one, planned rows,
default method; R² on 5,000 rows held out, averaged over runs that differ in data and noise.

Bars (--check): several visits beat one wherever features fill a tenth of their ranges or less, and
lose at most 0.02 of R² where they fill them.

    python benchmarks/wide_ranges.py [--runs 20] [--quick] [--check]
"""

import math

import numpy as np
from frame import Bench

from tacit.analyst.collection import collect
from tacit.analyst.fit import fit
from tacit.simulation import simulate_visits
from tacit.study import Study

FILLS = (1.0, 0.35, 0.1, 0.05, 0.02)
EPSILONS = (0.3, 1.0, 3.0)
ROWS, HOLDERS, FEATURES = 5000, 3, 6
LOW, HIGH = 0.0, 1000.0
MOST_LOSS = 0.02
Rows = tuple[np.ndarray, np.ndarray]


class World:
    """Means, spreads and coefficients of one run, and rows drawn from them."""

    def __init__(self, rng: np.random.Generator, fill: float) -> None:
        self.rng = rng
        self.fill = fill
        half = (HIGH - LOW) / 2
        self.mean = LOW + half * (1 + (1 - fill) * rng.uniform(-0.7, 0.7, FEATURES))
        self.sd = np.full(FEATURES, fill * half / math.sqrt(3))
        direction = rng.normal(size=FEATURES)
        self.beta = 0.25 * direction / np.linalg.norm(direction)

    def rows(self, count: int) -> Rows:
        if self.fill == 1:
            z = self.rng.uniform(-math.sqrt(3), math.sqrt(3), (count, FEATURES))
        else:
            z = 0.9 * self.rng.normal(size=(count, FEATURES)) + math.sqrt(
                1 - 0.81
            ) * self.rng.normal(size=(count, 1))
        y = np.clip(z @ self.beta + 0.18 * self.rng.normal(size=count), -1, 1)
        return np.clip(self.mean + self.sd * z, LOW, HIGH), y

    def known(self) -> list[list[float]]:
        reach = math.sqrt(3) * self.sd
        return [[max(LOW, m - r), min(HIGH, m + r)] for m, r in zip(self.mean, reach, strict=True)]


def study_of(epsilon: float, visits: int | None, typical: list[list[float]] | None = None) -> Study:
    features = [
        {"name": f"x{k}", "range": [LOW, HIGH], "typical": typical and typical[k]}
        for k in range(FEATURES)
    ]
    response = {"name": "y", "range": [-1, 1]}
    return Study.from_document(
        {
            "name": "wide ranges",
            "epsilon": epsilon,
            "delta": 1e-6,
            "planned_rows": [ROWS] * HOLDERS,
            "visits": visits,
            "response": response,
            "features": features,
        }
    )


def r_squared(beta: np.ndarray, test: Rows) -> float:
    x, y = test
    return 1 - float(np.mean((y - beta[0] - x @ beta[1:]) ** 2) / y.var())


def private(study: Study, parts: list[Rows], test: Rows, rng: np.random.Generator) -> float:
    """R² of the default method on what holders publish for the study."""
    releases = simulate_visits(study, [np.column_stack(part) for part in parts], rng)
    return r_squared(fit(collect(releases, allow_simulated=True)).mean("user"), test)


def cell(fill: float, epsilon: float, runs: int) -> dict[str, float]:
    """Mean R² of each way in one cell."""
    scores: dict[str, list[float]] = {}
    for run in range(runs):
        world = World(np.random.default_rng([run, int(1000 * fill)]), fill)
        parts = [world.rows(ROWS) for _ in range(HOLDERS)]
        test = world.rows(ROWS)
        rng = np.random.default_rng([run, int(1000 * epsilon)])
        x, y = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
        least_squares = np.linalg.lstsq(np.column_stack([np.ones(len(y)), x]), y, rcond=None)[0]
        studies = {
            "one": study_of(epsilon, visits=1),
            "several": study_of(epsilon, visits=None),
            "known": study_of(epsilon, visits=1, typical=world.known()),
        }
        for name, study in studies.items():
            scores.setdefault(name, []).append(private(study, parts, test, rng))
        scores.setdefault("rows", []).append(r_squared(least_squares, test))
    return {name: float(np.mean(values)) for name, values in scores.items()}


def main() -> None:
    bench = Bench(__doc__, quick="three runs")
    bench.option("--runs", type=int, default=20)
    options = bench.options()
    columns = {"fill": "g", "ε": "g", "one visit": ".3f", "several visits": ".3f"}
    columns |= {"one, places known": ".3f", "no privacy": ".3f"}
    table = bench.table("r-squared", columns)
    for fill in FILLS:
        for epsilon in EPSILONS:
            means = cell(fill, epsilon, 3 if options.quick else options.runs)
            table.row(fill, epsilon, *(means[way] for way in ("one", "several", "known", "rows")))
            gain = means["several"] - means["one"]
            sentence = f"fill {fill:g}, epsilon {epsilon:g}: several over one {gain:+.4f}"
            bench.bar(sentence, met=(gain > 0 or fill > 0.1) and (gain >= -MOST_LOSS or fill < 1))
    bench.finish()


if __name__ == "__main__":
    main()
