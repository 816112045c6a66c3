"""Questions.

How often 90 % intervals hold the truth for every kind of question that releases are asked, whether
model probabilities are right as often as they say, and how long answers take.

A run draws 20,000 rows of d columns split over J holders: an intercept, a binary feature a that
goes with x1, correlated normal features x1, x2, …, and the product a:x1. The response is θ'x plus
normal noise (sd 0.25 of a range of ±2), θ ~ N(0, 0.3²/max(1, p/3)); rows go through the encoder
and mechanism (seeded noise, δ = 1e-6), and everything is at its default. The truth of a question is
that of the law of the rows, weighted as shrunk rows count: with G = E[α²xx'] (two million rows)
the sub-model of columns s has coefficients G_ss⁻¹(Gθ)_s, which the columns left out go into.

Kinds: `submodel` (x2 and a:x1 left out, with d = 15 also x5), `R2`, `standardised`, `contrast` (the
average treatment effect of a, standardised over rows; the slope of x1 averaged over a), `mean` (the
marginal mean at a = 1, the mean response), `at` (the effect of a at x1 = 1), and, in runs of their
own, `averaged`: the mean response of random rows, averaged over all sub-models. There each term is
in the truth with probability ½, lower terms kept, and probabilities of models and terms are held
against what was true.

Studies of one visit, and of ten (one holder) or three, of which the truth is that of whole rows.

Bars (--check): a kind's cell fails when its 99 % limits (Student, over runs) miss 87 to 93 %
altogether; the likeliest models' mean probability must lie within 99 % limits, or 0.05, of how
often they are true, and so must models given 0.7 to 0.9; with 20 terms and J = 10 every fit,
family, sub-model, effect and comparison of two takes at most a second of processor time, of one
visit and of three, and selection over 2²⁰ sub-models a minute (question_times.py).

    python benchmarks/questions.py [--quick] [--check] [--runs 200] [--processes 1]

The full grid takes about 40 minutes of one core.
"""

import math
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise, product
from multiprocessing import get_context

import numpy as np
import pyarrow as pa
from frame import Bench
from question_times import tell_times
from scipy import stats

from tacit.analyst.collection import Collection, collect
from tacit.analyst.comparison.compare import select_terms
from tacit.analyst.fit import fit
from tacit.simulation import simulate, simulate_visits
from tacit.study import Study

ROWS = 20_000
RESIDUAL_SD = 0.25
HALF = 2.0
"""Half the response's range."""
ROOT = math.sqrt(3)
BAND = (0.87, 0.93)
CONFIDENCE = 0.99
LIKELY = (0.7, 0.9)
CLOSE = 0.05
LEAST_SD = {"R2": 0.25, "at": 0.25}
"""Sd of runs' shares that limits assume at least, as few runs may all agree: that of one answer a
run at the edge of the band, or of several (`LEAST_SHARED_SD`)."""
LEAST_SHARED_SD = 0.1
KINDS = ("submodel", "R2", "standardised", "contrast", "mean", "at", "averaged")
Array = np.ndarray


@dataclass(frozen=True)
class Cell:
    """A size, a number of holders, a budget and a number of visits."""

    d: int
    holders: int
    epsilon: float
    visits: int = 1


@dataclass
class Tally:
    """What the runs of one cell found."""

    shares: dict[str, list[float]] = field(default_factory=dict)  # per run
    models: list[tuple[float, bool]] = field(default_factory=list)  # the likeliest: p, is it true
    terms: list[tuple[float, bool]] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        for kind, shares in other.shares.items():
            self.shares.setdefault(kind, []).extend(shares)
        self.models += other.models
        self.terms += other.terms


# Made data.


def study_of(d: int, epsilon: float, planned: dict[str, object] | None = None) -> Study:
    names = [f"x{k}" for k in range(1, d - 2)]
    features = [{"name": "a", "levels": ["0", "1"]}]
    features += [{"name": name, "range": [-10, 10], "typical": [-ROOT, ROOT]} for name in names]
    terms = [{"product": [feature["name"]]} for feature in features]
    return Study.from_document(
        {
            "name": "made",
            "epsilon": epsilon,
            "delta": 1e-6,
            "response": {"name": "y", "range": [-HALF, HALF]},
            "features": features,
            "terms": [*terms, {"product": ["a", "x1"]}],
        }
        | (planned or {})
    )


def features_of(rng: np.random.Generator, n: int, d: int) -> tuple[Array, Array]:
    """The binary feature and the others."""
    x = rng.normal(size=(n, d - 3))
    for k in range(1, x.shape[1]):
        x[:, k] = 0.4 * x[:, k - 1] + math.sqrt(1 - 0.4**2) * x[:, k]
    binary = rng.random(n) < 1 / (1 + np.exp(0.5 - x[:, 0]))
    return binary.astype(float), x


def design(binary: Array, x: Array) -> Array:
    """Encoded rows, as long as they are."""
    one = np.ones(len(binary))
    return np.column_stack([one, binary, x / ROOT, binary * x[:, 0] / ROOT])


@cache
def second_moments(d: int, visits: int) -> Array:
    """G: E[α²xx']; several visits shrink next to no row here."""
    radius = study_of(d, 1.0).row_radius if visits == 1 else math.inf
    rng = np.random.default_rng(99)
    total = np.zeros((d, d))
    for _ in range(20):
        rows = design(*features_of(rng, 100_000, d))
        weights = np.minimum(1.0, radius**2 / np.sum(rows**2, axis=1))
        total += (rows * weights[:, None]).T @ rows / 2e6
    return total


def theta_of(rng: np.random.Generator, d: int) -> Array:
    slopes = rng.normal(0, 0.3 / math.sqrt(max(1, (d - 1) / 3)), d - 1)
    return np.concatenate([[rng.normal(0, 0.2)], slopes]) / HALF


def released(rng: np.random.Generator, cell: Cell, theta: Array) -> Collection:
    binary, x = features_of(rng, ROWS, cell.d)
    y = HALF * design(binary, x) @ theta + rng.normal(0, RESIDUAL_SD, ROWS)
    table = pa.table({f"x{k + 1}": x[:, k] for k in range(x.shape[1])})
    levels = pa.array(["0", "1"]).take(pa.array(binary.astype(int)))
    table = table.append_column("a", levels).append_column("y", pa.array(y))
    size = ROWS // cell.holders
    tables = [table.slice(j * size, size) for j in range(cell.holders)]
    if cell.visits > 1:
        planned = {"planned_rows": [size] * cell.holders, "visits": cell.visits}
        releases = simulate_visits(study_of(cell.d, cell.epsilon, planned), tables, rng)
    else:
        study = study_of(cell.d, cell.epsilon)
        releases = [simulate(study, each, rng, holder=f"h{j}") for j, each in enumerate(tables)]
    return collect(releases, allow_simulated=True)


# Truths.


def held(intervals: Array, truth: Array) -> float:
    inside = (intervals[:, 0] <= truth) & (truth <= intervals[:, 1])
    return float(np.mean(inside))


def spread_of(second: Array) -> Array:
    mean = second[0] / second[0, 0]
    return second / second[0, 0] - np.outer(mean, mean)


def run(cell: Cell, seed: int) -> Tally:
    """One run of every kind but `averaged`."""
    rng = np.random.default_rng([seed, cell.d, cell.holders, int(10 * cell.epsilon)])
    theta = theta_of(rng, cell.d)
    posterior = fit(released(rng, cell, theta))
    second = second_moments(cell.d, cell.visits)
    shares = {"submodel": [_submodel(posterior, second, theta, cell.d)]}
    spread = spread_of(second)
    explained = float(theta @ spread @ theta)
    variance = explained + (RESIDUAL_SD / HALF) ** 2
    told = posterior.explained()
    shares["R2"] = [float(told.low <= explained / variance <= told.high)]
    standard = (theta * np.sqrt(np.diag(spread) / variance))[1:]
    shares["standardised"] = [held(posterior.interval(units="standardised"), standard)]
    mean = second[0] / second[0, 0]
    treated = theta[1] + theta[-1] * mean[2]
    slope = (theta[2] + theta[-1] * mean[1]) / ROOT
    level = theta[0] + theta[1] + theta[2:-1] @ mean[2:-1] + theta[-1] * mean[2]
    asked = {
        "contrast": {"a: 1 - 0": treated, "x1 * 1": slope},
        "mean": {"a: 1": level, "mean": theta @ mean},
        "at": {"a[1] * 1 at x1 = 1": theta[1] + theta[-1] / ROOT},
    }
    for kind, questions in asked.items():
        rows = posterior.effects(*questions).rows
        intervals = np.array([[row.low, row.high] for row in rows])
        shares[kind] = [held(intervals, HALF * np.array(list(questions.values())))]
    return Tally(shares=shares)


def _submodel(posterior: object, second: Array, theta: Array, d: int) -> float:
    without = ["a:x1", "x2"] + (["x5"] if d > 8 else [])
    small = posterior.submodel(without=without)  # type: ignore[attr-defined]
    names = posterior.model.columns  # type: ignore[attr-defined]
    kept = [k for k, name in enumerate(names) if name in small.model.columns]
    target = np.linalg.solve(second[np.ix_(kept, kept)], (second @ theta)[kept])
    return held(small.interval(units="scaled"), target)


def run_models(cell: Cell, seed: int) -> Tally:
    """One run with a sparse truth: probabilities of models, and averages over them."""
    rng = np.random.default_rng([seed, 7, cell.d, cell.holders, int(10 * cell.epsilon)])
    bits = rng.random(cell.d - 1) < 0.5
    while bits[-1] and not (bits[0] and bits[1]):
        bits = rng.random(cell.d - 1) < 0.5
    theta = theta_of(rng, cell.d)
    theta[1:] *= bits
    comparison = select_terms(fit(released(rng, cell, theta)))
    names = np.array(["a", *(f"x{k}" for k in range(1, cell.d - 2)), "a:x1"])
    true = " + ".join(names[bits]) or "(intercept) alone"
    likeliest = comparison.models[0]
    rows = design(*features_of(rng, 20, cell.d))
    draws = comparison.average.outcome.flat @ rows.T
    intervals = np.quantile(draws, [0.05, 0.95], axis=0).T
    terms = {term.term: term.probability for term in comparison.inclusion}
    return Tally(
        shares={"averaged": [held(intervals, rows @ theta)]},
        models=[(likeliest.probability, likeliest.terms == true)],
        terms=[(terms[name], bool(bit)) for name, bit in zip(names, bits, strict=True)],
    )


# The measurement.


def measured(bench: Bench, cells: list[Cell], runs: int, processes: int) -> dict[Cell, Tally]:
    tallies = {cell: Tally() for cell in cells}
    for cell in cells:
        second_moments(cell.d, cell.visits)
    jobs = [(cell, seed) for cell in cells for seed in range(runs)]
    context = get_context("fork")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        for work in (run, run_models):
            results = pool.map(work, *zip(*jobs, strict=True), chunksize=4)
            for (cell, _), tally in zip(jobs, results, strict=True):
                tallies[cell].add(tally)
    bench.say(f"{runs} runs for each of {len(cells)} cells")
    return tallies


def limits(values: list[float], least: float = LEAST_SHARED_SD) -> tuple[float, float, float]:
    """Mean, and its limits."""
    mean = float(np.mean(values))
    error = max(float(np.std(values, ddof=1)), least) / math.sqrt(len(values))
    reach = error * float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1))
    return mean, mean - reach, mean + reach


def tell_coverage(bench: Bench, tallies: dict[Cell, Tally]) -> None:
    columns = {"d": "", "J": "", "ε": "g", "visits": ""} | dict.fromkeys(KINDS, ".1f%")
    table = bench.table("coverage", columns)
    for cell, tally in tallies.items():
        means = []
        for kind in KINDS:
            mean, low, high = limits(tally.shares[kind], LEAST_SD.get(kind, LEAST_SHARED_SD))
            means.append(mean)
            name = f"{kind} at d = {cell.d}, J = {cell.holders}, ε = {cell.epsilon:g}"
            name += f", visits = {cell.visits}"
            bench.bar(f"{name} covers 87 to 93 %", met=low <= BAND[1] and high >= BAND[0])
        table.row(cell.d, cell.holders, cell.epsilon, cell.visits, *means)
    together = [limits([s for t in tallies.values() for s in t.shares[kind]]) for kind in KINDS]
    table.row("all", "", "", "", *(mean for mean, _, _ in together))


def tell_probabilities(bench: Bench, tallies: dict[Cell, Tally]) -> None:
    table = bench.table(
        "probabilities",
        {"of": "<10", "given": "<14", "how many": ",", "mean": ".3f", "true": ".3f"},
    )
    edges = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)
    bins = list(pairwise(edges))
    for of, ranges in (("terms", bins), ("models", [(0.0, 1.0), LIKELY, *bins])):
        pairs = np.array([pair for tally in tallies.values() for pair in getattr(tally, of)])
        for low, high in ranges:
            chosen = pairs[(pairs[:, 0] >= low) & (pairs[:, 0] <= high)]
            if len(chosen):
                mean, share = chosen.mean(axis=0)
                table.row(of, f"{low:g} to {high:g}", len(chosen), mean, share)
    likeliest = np.array([pair for tally in tallies.values() for pair in tally.models])
    for low, high in ((0.0, 1.0), LIKELY):
        chosen = likeliest[(likeliest[:, 0] >= low) & (likeliest[:, 0] <= high)]
        if len(chosen) < 2:
            continue
        given, true = chosen.mean(axis=0)
        sd = math.sqrt(float(np.mean(chosen[:, 0] * (1 - chosen[:, 0]))) / len(chosen))
        close = abs(true - given) <= max(CLOSE, float(stats.norm.ppf((1 + CONFIDENCE) / 2)) * sd)
        bench.bar(f"models given {low:g} to {high:g} are true as often as they say", met=close)


def main() -> None:
    bench = Bench(__doc__, quick="12 runs of two cells")
    bench.option("--runs", type=int, default=200, help="runs of every cell")
    bench.option("--d", type=int, nargs="*", default=[5, 15], help="numbers of columns")
    bench.option("--holders", type=int, nargs="*", default=[1, 10], help="numbers of holders")
    bench.option("--epsilon", type=float, nargs="*", default=[1.0, 3.0], help="budgets")
    bench.option("--processes", type=int, default=1, help="processes to use")
    options = bench.options()
    cells = [
        Cell(d, holders, epsilon)
        for d, holders, epsilon in product(options.d, options.holders, options.epsilon)
    ]
    cells += [replace(cell, visits=10 if cell.holders == 1 else 3) for cell in cells]
    runs = options.runs
    if options.quick:
        cells = [Cell(5, 1, 1.0), Cell(5, 10, 1.0)]
        runs = min(runs, 12)
    tallies = measured(bench, cells, runs, options.processes)
    tell_coverage(bench, tallies)
    tell_probabilities(bench, tallies)
    tell_times(bench)
    bench.finish()


if __name__ == "__main__":
    main()
