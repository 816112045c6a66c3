"""Why one visit misses slopes of collinear tables: noise on X'X, or what is expected of slopes.

Tables, rows and releases are those of real_tables.py's way `ranges`: one visit, public ranges of
the data, rows planned, drawn from the table as population. Each release is fitted five times:

- as it is;
- X'X known: without its noise, which nobody could publish at that budget;
- slopes 4: with ρ = 4, the largest share that the default prior lets slopes explain, for all axes;
- slopes 100: with ρ = 100, a prior that hardly shrinks anything;
- both: X'X known, and ρ = 4.

Printed is the share of the table's least-squares coefficients that 90 % intervals hold, and the
median width over that of the first. Tables of over 20,000 rows are left out.

    python benchmarks/one_visit.py --data DIR [--runs 12] [--quick]
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from frame import Bench
from public_tables import Population, load, planned_of

from tacit.analyst.collection import collect
from tacit.analyst.evidence import Evidence
from tacit.analyst.methods import noise_aware
from tacit.analyst.methods.method import Settings
from tacit.analyst.prior import Prior
from tacit.simulation import simulate
from tacit.study import Study

EPSILONS = (1.0, 3.0, 10.0)
MOST_ROWS = 20_000
ENDS = np.array([0.05, 0.95])
READINGS = {
    "as it is": (False, ()),
    "X'X known": (True, ()),
    "slopes 4": (False, (4.0,)),
    "slopes 100": (False, (100.0,)),
    "both": (True, (4.0,)),
}
"""Whether X'X is known, and values of ρ; none for the default's."""


def known_gram(study: Study, x: np.ndarray) -> np.ndarray:
    """X'X of shrunk rows, without noise."""
    rows = np.column_stack([np.ones(len(x)), x])
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    shrunk = rows * np.minimum(1.0, study.row_radius / length)
    return shrunk.T @ shrunk


def readings(study: Study, population: Population, run: int) -> Iterator[np.ndarray]:
    """Ends of intervals by every reading of one release, (d, 2) each."""
    rng = np.random.default_rng([run, 1, round(10 * study.epsilon)])
    chosen = rng.integers(population.n, size=population.n)
    x = population.x[chosen]
    release = simulate(study, np.column_stack([x, population.y[chosen]]), rng, holder="h0")
    evidence = collect([release], allow_simulated=True).evidence
    exact = known_gram(study, x)[None]
    for is_known, shares in READINGS.values():
        read = known(evidence, exact) if is_known else evidence
        prior = replace(Prior.weak(evidence.d), shares=shares)
        outcome = noise_aware.fit(read, prior, Settings())
        yield outcome.quantiles(ENDS, np.eye(evidence.d), np.zeros(evidence.d))


def known(evidence: Evidence, gram: np.ndarray) -> Evidence:
    """The same evidence with X'X exact."""
    none = np.zeros(1)
    return replace(evidence, grams=gram, gram_sd=none, off_diagonal_sd=none)


def measure(population: Population, epsilon: float, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Shares held, and median widths over those of the first, by reading."""
    study = population.study("ranges", epsilon, planned_of(population, 1))
    ends = np.array([list(readings(study, population, run)) for run in range(runs)])
    inside = (ends[..., 0] <= population.slopes) & (population.slopes <= ends[..., 1])
    widths = np.median(ends[..., 1] - ends[..., 0], axis=0)
    return inside.mean(axis=(0, 2)), np.median(widths / widths[0], axis=1)


def main() -> None:
    bench = Bench(__doc__, quick="three runs, three tables")
    bench.option("--data", type=Path, required=True, help="the folder of the tables")
    bench.option("--runs", type=int, default=12)
    options = bench.options()
    folder = options.data / "real" if (options.data / "real").is_dir() else options.data
    paths = sorted(folder.glob("*.csv")) + sorted(folder.glob("*.csv.gz"))
    populations = [each for each in map(load, paths) if each.n <= MOST_ROWS]
    runs = options.runs
    if options.quick:
        populations = populations[:3]
        runs = 3
    columns = {"table": "<14", "ε": "g"} | dict.fromkeys(READINGS, ".0f%")
    table = bench.table("held", columns | {f"{name}: width": ".2f" for name in READINGS})
    for epsilon in EPSILONS:
        shares = []
        for population in populations:
            held, widths = measure(population, epsilon, runs)
            shares.append(held)
            table.row(population.name, epsilon, *held.tolist(), *widths.tolist())
        table.row("all", epsilon, *np.mean(shares, axis=0).tolist(), *[None] * len(READINGS))
    bench.say(f"{runs} runs")
    bench.finish()


if __name__ == "__main__":
    main()
