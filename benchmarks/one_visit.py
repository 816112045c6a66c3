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

Then, of the same releases, what coefficients are off by: m − b = −PC⁻¹(b − m₀) + K(S − S̄)b + rest,
at ρ = 1 with P the posterior's covariance, C the prior's, ẑ ↦ Kẑ the estimate and S the true X'X of
shrunk rows. The first is the prior's pull, the second X'X taken for another, and the rest has rows'
own error, noise on X'y and what shrunk rows tell of another line. Each is averaged over runs; root
mean squares over coefficients, in posterior standard deviations.

And, of all tables and both ways to state ranges, how far least squares of shrunk rows lies from
that of rows as they are, without noise: the share of rows that are shrunk, 1 less the mean α² that
a release tells, and the coefficient that is furthest off, in its standard errors.

    python benchmarks/one_visit.py --data DIR [--runs 12] [--quick]
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from frame import Bench
from public_tables import Population, load, planned_of

from tacit.analyst.collection import collect
from tacit.analyst.evidence import Evidence
from tacit.analyst.methods import noise_aware
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.noise_aware.facts import facts_of
from tacit.analyst.methods.noise_aware.model import Model
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


def parts_of(study: Study, population: Population, run: int) -> np.ndarray:
    """By what one run's coefficients are off: pull, X'X and the rest; and their sds, (4, d)."""
    rng = np.random.default_rng([run, 1, round(10 * study.epsilon)])
    chosen = rng.integers(population.n, size=population.n)
    x = population.x[chosen]
    release = simulate(study, np.column_stack([x, population.y[chosen]]), rng, holder="h0")
    evidence = collect([release], allow_simulated=True).evidence
    prior = Prior.weak(evidence.d)
    outcome = noise_aware.fit(evidence, prior, Settings())
    model = Model(facts_of(evidence, prior), 1.0)
    variance = outcome.residual_variance() / outcome.unshrunk
    model.gaussian(variance)
    solution = model.solve(variance)
    basis, d = model.basis, evidence.d
    truth = basis.T @ population.slopes
    covariance = solution.node.covariance
    gain = (solution.joint.covariance @ solution.sums.design[0, :, :-1].T)[:d]
    gain = gain @ np.asarray(solution.sums.white[0])
    error = solution.node.location - truth
    pull = -covariance @ model.precision @ truth
    apart = basis.T @ known_gram(study, x) @ basis - model.facts.grams.mean[0]
    gram = gain @ apart @ truth
    parts = np.array([pull, gram, error - pull - gram]) @ basis.T
    return np.vstack([parts, np.sqrt(np.diag(basis @ covariance @ basis.T))])


def measure_parts(bench: Bench, populations: list[Population], runs: int) -> None:
    columns = {"table": "<14", "ε": "g"}
    table = bench.table("off", columns | dict.fromkeys(("all", "pull", "X'X", "rest"), ".2f"))
    for epsilon in EPSILONS:
        for population in populations:
            study = population.study("ranges", epsilon, planned_of(population, 1))
            drawn = [parts_of(study, population, run) for run in range(runs)]
            *parts, sd = np.mean(drawn, axis=0)
            sizes = [np.sqrt(np.mean((part / sd) ** 2)) for part in (sum(parts), *parts)]
            table.row(population.name, epsilon, *map(float, sizes))


def shrunk_off(population: Population, way: str, epsilon: float) -> tuple[float, float, float]:
    """Share of rows that are shrunk, 1 − mean α², and the largest shift in standard errors."""
    study = population.study(way, epsilon, planned_of(population, 1))
    ends = np.array([each.typical or each.range for each in study.features])
    middle, half = ends.mean(axis=1), np.diff(ends)[:, 0] / 2
    rows = np.column_stack([np.ones(population.n), (population.x - middle) / half])
    alpha = np.minimum(1.0, study.row_radius / np.linalg.norm(rows, axis=1))
    told = np.linalg.lstsq(rows * alpha[:, None], population.y * alpha, rcond=None)[0]
    whole = np.linalg.lstsq(rows, population.y, rcond=None)[0]
    residual = population.y - rows @ whole
    error = np.sqrt(np.diag(np.linalg.inv(rows.T @ rows)) * np.mean(residual**2))
    off = float(np.max(np.abs(told - whole) / error))
    return float(np.mean(alpha < 1)), float(1 - np.mean(alpha**2)), off


def measure_shrunk(bench: Bench, populations: list[Population]) -> None:
    columns = {"table": "<14", "way": "<8", "ε": "g", "shrunk": ".2f%", "1 − α²": ".4f"}
    table = bench.table("shrunk", columns | {"furthest off": ".1f"})
    for population in populations:
        for way, epsilon in product(("ranges", "typical"), EPSILONS):
            table.row(population.name, way, epsilon, *shrunk_off(population, way, epsilon))


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
    every = [load(path) for path in paths]
    runs = options.runs
    if options.quick:
        every = [each for each in every if each.n <= MOST_ROWS][:3]
        runs = 3
    populations = [each for each in every if each.n <= MOST_ROWS]
    columns = {"table": "<14", "ε": "g"} | dict.fromkeys(READINGS, ".0f%")
    table = bench.table("held", columns | {f"{name}: width": ".2f" for name in READINGS})
    for epsilon in EPSILONS:
        shares = []
        for population in populations:
            held, widths = measure(population, epsilon, runs)
            shares.append(held)
            table.row(population.name, epsilon, *held.tolist(), *widths.tolist())
        table.row("all", epsilon, *np.mean(shares, axis=0).tolist(), *[None] * len(READINGS))
    measure_parts(bench, populations, runs)
    measure_shrunk(bench, every)
    bench.say(f"{runs} runs")
    bench.finish()


if __name__ == "__main__":
    main()
