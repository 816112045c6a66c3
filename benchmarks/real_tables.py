"""Real tables, where the line is not straight: what is lost, and how often intervals hold.

Every file NAME.csv or NAME.csv.gz of DIR/real, or of DIR where there is no such folder, is a table
of numbers without a header, response last. `default` states the ranges of the data and leaves the
number of visits to the study's rule, as who writes a study and plans its rows does; `centred` does
so without an intercept, features and response less their means, ranges about 0. Two further ways
are of studies that state one visit: `ranges`, which are those of the data, and `typical`, where
beside them each feature has a typical interval, mean ± √3 sd within its range. These miss some of
the bars (docs/accuracy.md). Columns that depend linearly on earlier ones are left out. δ = 1e-6,
replace-one, everything else at its defaults.

Loss: (θ − b)'X'X(θ − b) over the variance that least squares b explains, both over the whole table;
θ is the posterior mean from a release of the table. Median over runs, with the study's rows planned
and without a plan, whose form does not depend on rows and ε.

Coverage: a run draws n rows of the table with replacement, as if the table were the population,
and asks how many 90 % intervals hold the table's own least-squares coefficients; beside it least
squares without privacy, with robust (HC3) errors, on the same rows. Predictive: how many 90 %
intervals for a new response hold those of rows of the table. And in how many of the runs that lost
half of what can be explained, and of the others, the summary warns; and how many intervals of the
mean response hold the table's, and of R² its R².

Plan: width of 90 % intervals over what `tacit plan` says of the study at its defaults, median over
coefficients of medians over runs; and the share of coefficients within the plan's band, with a
quarter of grace at each end.

Bars (--check), for each way to state ranges:

- with planned rows no table with more than 1,000 rows loses over 2 % at ε = 100; the geometric
  mean over tables is no larger than without a plan at ε = 1, and 1.5 times smaller at ε = 10 (1.2
  times with ranges in one visit), less a tenth for chance; no table's loss rises with ε.
- over all tables, coefficients cover 86 to 94 % at each ε, predictions 88 to 92 (94 in one visit).
- no table covers over five points less than HC3, with two standard errors of grace.
- the median over tables of width over planned lies between 0.8 and 1.25 at each ε.

Beside them it is said, as "without grace", what the same figures give where nothing is allowed for
chance: no table over five points below HC3, predictions 88 to 92 %, no larger a mean loss at ε = 1,
1.5 times less at ε = 10 in every way, and no loss that rises with ε at all. With a dozen runs the
share of a table has a standard error of 1 to 10 points, so that of 27 cells which all cover as HC3
does several fall below by chance.

    python benchmarks/real_tables.py --data DIR [--runs 16] [--ways default] [--holders 1]
        [--processes N] [--quick] [--check]
"""

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from frame import Bench
from public_tables import Population, load, planned_of, posterior_of

from tacit.analyst.posterior.posterior import Posterior
from tacit.plan import forecast
from tacit.study import Study

LOSS_EPSILONS = (1.0, 3.0, 10.0, 100.0)
COVER_EPSILONS = (1.0, 3.0, 10.0)
WAYS = ("default", "centred", "ranges", "typical")
GAIN = {"ranges": 1.2, "typical": 1.5, "default": 1.5, "centred": 1.5}
"""How many times smaller the loss at ε = 10 is to be with planned rows."""
CHANCE = 0.9
MOST_LOST = 0.02
LARGE = 1000
PROBABILITY = 0.9
MOST_PREDICTED = {"ranges": 0.94, "typical": 0.94, "default": 0.92, "centred": 0.92}
"""Most that predictive intervals may cover."""
FAR = 0.07
"""How far from what they say intervals for a new response may be before they are rough."""
HALF = 0.5
"""Share of the explainable variance whose loss a summary is to warn of."""
GRACE = 1.25
"""How far from planned a width may be, as a factor."""
NEW_ROWS = 1000


@dataclass(frozen=True)
class Asked:
    """What all cells have in common."""

    way: str
    holders: int
    runs: int


Job = tuple[Path, float]
"""A table and ε."""
Cells = Callable[[Callable[[Job], Any], Iterable[Job]], list[Any]]
"""What becomes of every job, in their order."""


def population_of(path: Path, way: str) -> Population:
    """A table as one of the ways has it."""
    population = load(path)
    return population.centred() if way == "centred" else population


def losses(asked: Asked, job: Job) -> tuple[float, float]:
    """Median losses without a plan, and with one."""
    path, epsilon = job
    population = population_of(path, asked.way)
    medians = []
    for planned in ([], planned_of(population, asked.holders)):
        study = population.study(asked.way, epsilon, planned)
        drawn = []
        for run in range(asked.runs):
            rng = np.random.default_rng([run, asked.holders])
            posterior = posterior_of(study, population.x, population.y, asked.holders, rng)
            drawn.append(population.loss(posterior.mean()))
        medians.append(float(np.median(drawn)))
    return medians[0], medians[1]


@dataclass(frozen=True)
class Cover:
    """Shares of one run."""

    ours: float
    robust: float
    predictive: float
    caveat: str
    lost: float
    explained: float  # −1, 0 or 1: the table's R² lies below, in or above the interval of R²
    mean: bool  # whether the interval of the mean response holds the table's

    @property
    def warned(self) -> bool:
        return bool(self.caveat)


def robust_cover(population: Population, chosen: np.ndarray) -> float:
    """Share of coefficients that least squares with HC3 errors holds, on chosen rows."""
    design = population.design[chosen]
    inverse = np.linalg.pinv(design.T @ design)
    estimate = inverse @ (design.T @ population.y[chosen])
    leverage = np.einsum("ia,ab,ib->i", design, inverse, design)
    residual = (population.y[chosen] - design @ estimate) / (1 - np.minimum(leverage, 0.999))
    meat = (design * residual[:, None] ** 2).T @ design
    error = np.sqrt(np.maximum(np.diag(inverse @ meat @ inverse), 0.0))
    return float(np.mean(np.abs(estimate - population.slopes) <= 1.645 * error))


def cover(population: Population, study: Study, holders: int, run: int) -> Cover:
    """One run on rows drawn from the table."""
    rng = np.random.default_rng([run, holders, round(10 * study.epsilon)])
    chosen = rng.integers(population.n, size=population.n)
    posterior = posterior_of(study, population.x[chosen], population.y[chosen], holders, rng)
    low, high = posterior.interval(PROBABILITY).T
    new = rng.integers(population.n, size=min(NEW_ROWS, population.n))
    names = [feature.name for feature in study.features]
    table = dict(zip(names, population.x[new].T, strict=True))
    predicted = posterior.predict(table, PROBABILITY)
    y = population.y[new]
    inside = (predicted["low"].to_numpy() <= y) & (y <= predicted["high"].to_numpy())
    share = posterior.explained(PROBABILITY)
    true = population.explained / float(np.sum((population.y - population.y.mean()) ** 2))
    return Cover(
        ours=float(np.mean((low <= population.slopes) & (population.slopes <= high))),
        robust=robust_cover(population, chosen),
        predictive=float(np.mean(inside)),
        caveat=posterior.summary().caveat,
        lost=population.loss(posterior.mean()),
        explained=0 if share is None else float(true > share.high) - float(true < share.low),
        mean=holds_mean(population, posterior),
    )


def holds_mean(population: Population, posterior: Posterior) -> bool:
    """Whether the interval of the mean response, at the table's mean row, holds the table's."""
    row = population.design.mean(axis=0)
    units = posterior.units("user")
    tail = (1 - PROBABILITY) / 2
    ends = posterior.outcome.quantiles(
        np.array([tail, 1 - tail]), (row @ units.matrix)[None], np.array([row @ units.offset])
    )
    low, high = ends[0]
    return bool(low <= population.y.mean() <= high)


def covers(asked: Asked, job: Job) -> list[Cover]:
    """All runs of a cell."""
    path, epsilon = job
    population = population_of(path, asked.way)
    study = population.study(asked.way, epsilon, planned_of(population, asked.holders))
    return [cover(population, study, asked.holders, run) for run in range(asked.runs)]


def measure_losses(bench: Bench, paths: list[Path], asked: Asked, cells: Cells) -> None:
    way = asked.way
    columns = {"table": "<14", "n": ",", "d": "d"}
    columns |= {f"{form} ε={e:g}": ".4f" for e in LOSS_EPSILONS for form in ("without", "planned")}
    table = bench.table(f"loss {way}", columns)
    populations = [population_of(path, way) for path in paths]
    pairs = np.array(cells(partial(losses, asked), product(paths, LOSS_EPSILONS)))
    pairs = pairs.reshape(len(paths), len(LOSS_EPSILONS), 2)
    for each, figures in zip(populations, pairs, strict=True):
        table.row(each.name, each.n, each.design.shape[1], *figures.ravel().tolist())
    without, planned = np.moveaxis(pairs, 2, 0)
    means = [np.exp(np.log(each).mean(axis=0)) for each in (without, planned)]
    figures = [float(figure) for pair in zip(*means, strict=True) for figure in pair]
    table.row("geometric mean", None, None, *figures)
    gains = means[0] / means[1]
    large = [row[-1] for each, row in zip(populations, planned, strict=True) if each.n > LARGE]
    bench.bar(f"{way}: at most 2 % lost at ε = 100", met=max(large, default=0.0) <= MOST_LOST)
    bench.bar(f"{way}: ε = 1 no worse with planned rows", met=gains[0] >= CHANCE)
    bench.bar(f"{way}: ε = 10 is {GAIN[way]} times smaller", met=gains[2] >= CHANCE * GAIN[way])
    rises = any(after > before / CHANCE for row in planned for before, after in pairwise(row))
    bench.bar(f"{way}: no loss rises with ε", met=not rises)
    exact = {
        "the mean loss at ε = 1 is no larger": gains[0] >= 1,
        "it is 1.5 times smaller at ε = 10": gains[2] >= GAIN["default"],
        "no loss rises with ε": all(
            after <= before for row in planned for before, after in pairwise(row)
        ),
    }
    say_exact(bench, f"{way}, losses", exact)


def say_exact(bench: Bench, what: str, exact: dict[str, bool]) -> None:
    """Say which of the bars are missed where nothing is allowed for chance."""
    missed = [name for name, met in exact.items() if not met]
    told = f": {', '.join(missed)}" if missed else ""
    bench.say(f"{what}, without grace: {len(missed)} of {len(exact)} bars missed{told}")


def measure_cover(bench: Bench, paths: list[Path], asked: Asked, cells: Cells) -> None:
    way = asked.way
    columns = {"table": "<14", "ε": "g", "coefficients": ".1f%", "±": ".1f%", "HC3": ".1f%"}
    table = bench.table(f"cover {way}", columns | {"predictive": ".1f%", "warned": "%"})
    exact = {}
    runs = cells(partial(covers, asked), [(p, e) for e in COVER_EPSILONS for p in paths])
    measured = iter(runs)
    behind = dict.fromkeys((load(path).name for path in paths), 0.0)
    for epsilon in COVER_EPSILONS:
        shares = []
        for each in map(load, paths):
            drawn = next(measured)
            ours = [one.ours for one in drawn]
            error = float(np.std(ours, ddof=1)) / math.sqrt(asked.runs)
            means = [float(np.mean([getattr(one, name) for one in drawn])) for name in NAMES]
            shares.append(means)
            behind[each.name] += (means[1] - means[0]) / len(COVER_EPSILONS)
            table.row(each.name, epsilon, means[0], error, *means[1:])
            bench.bar(
                f"{way}: {each.name} at ε = {epsilon:g} covers as HC3 does, less five points",
                met=means[0] >= means[1] - 0.05 - 2 * error,
            )
            exact[f"{each.name} at ε = {epsilon:g}"] = means[0] >= means[1] - 0.05
        pooled = np.mean(shares, axis=0).tolist()
        table.row("all", epsilon, pooled[0], None, *pooled[1:])
        bench.bar(f"{way}: all at ε = {epsilon:g} cover 86 to 94 %", met=0.86 <= pooled[0] <= 0.94)
        most = MOST_PREDICTED[way]
        bench.bar(
            f"{way}: predictive at ε = {epsilon:g} covers 88 to {100 * most:.0f} %",
            met=0.88 <= pooled[2] <= most,
        )
        exact[f"predictive at ε = {epsilon:g}"] = 0.88 <= pooled[2] <= 0.92
    say_exact(bench, f"{way}, cover", exact)
    last = max(behind, key=behind.__getitem__)
    bench.say(
        f"{way}: over all ε together the table furthest below HC3 is {last}, by "
        f"{100 * behind[last]:.1f} points"
    )
    every = [one for drawn in runs for one in drawn]
    say_warned(bench, way, every)
    say_vague(bench, way, every)
    say_explained(bench, way, every)


def say_warned(bench: Bench, way: str, every: list[Cover]) -> None:
    """Say how often a summary warns, and of what, where half is lost and where it is not."""
    for what, chosen in (
        ("lost over half of what can be explained", [one for one in every if one.lost > HALF]),
        ("did not", [one for one in every if one.lost <= HALF]),
    ):
        warned = sum(one.warned for one in chosen)
        counts = [
            f"{sum(words in one.caveat for one in chosen)} {name}"
            for name, words in WARNINGS.items()
        ]
        bench.say(
            f"{way}: of {len(chosen)} runs that {what} the summary warns in {warned}: "
            + ", ".join(counts)
        )


def say_explained(bench: Bench, way: str, every: list[Cover]) -> None:
    """Say how often intervals of R² hold the table's own."""
    counts = [sum(one.explained == side for one in every) for side in (0, -1, 1)]
    shares = [f"{count / len(every):.0%}" for count in counts]
    bench.say(
        f"{way}: the table's R² lies in its interval in {shares[0]} of runs, below it in "
        f"{shares[1]}, above it in {shares[2]}"
    )
    if way != "centred":  # where it is 0, for certain
        held = sum(one.mean for one in every) / len(every)
        bench.say(f"{way}: the table's mean response lies in its interval in {held:.0%} of runs")


def say_vague(bench: Bench, way: str, every: list[Cover]) -> None:
    """Say what intervals for a new response hold, by whether the residual variance is vague."""
    for what, is_vague in (("is not called vague", False), ("is", True)):
        held = [one.predictive for one in every if (VAGUE in one.caveat) == is_vague]
        if held:
            far = sum(abs(share - PROBABILITY) > FAR for share in held)
            bench.say(
                f"{way}: where the residual variance {what} intervals for a new response hold "
                f"{100 * min(held):.0f} to {100 * max(held):.0f} % in {len(held)} runs, further "
                f"than {100 * FAR:.0f} points from 90 in {far}"
            )


VAGUE = "residual variance"
WARNINGS = {
    "too little is learnt": "carry too little",
    "a spread is hidden": "hides the spread",
    "an interval is the prior's": "expected beforehand",
    "the residual variance is vague": VAGUE,
    "R² is rough": "told roughly",
}
"""What a summary may warn of, and words of the sentence."""
NAMES = ("ours", "robust", "predictive", "warned")


def planned_widths(asked: Asked, job: Job) -> tuple[float, float]:
    """Median width over planned, and the share of coefficients within the plan's band."""
    path, epsilon = job
    population = population_of(path, asked.way)
    rows = planned_of(population, asked.holders)
    study = population.study(asked.way, epsilon, rows)
    [plan] = forecast(study, rows, [epsilon])
    drawn = []
    for run in range(asked.runs):
        rng = np.random.default_rng([run, asked.holders])
        posterior = posterior_of(study, population.x, population.y, asked.holders, rng)
        low, high = posterior.interval(PROBABILITY).T
        drawn.append(high - low)
    widths = np.median(drawn, axis=0)
    within = (widths >= plan.narrow / GRACE) & (widths <= plan.wide * GRACE)
    return float(np.median(widths / plan.widths)), float(np.mean(within))


def measure_plan(bench: Bench, paths: list[Path], asked: Asked, cells: Cells) -> None:
    way = asked.way
    columns = {"table": "<14"}
    columns |= {f"over planned ε={e:g}": ".2f" for e in COVER_EPSILONS}
    columns |= {f"in band ε={e:g}": "%" for e in COVER_EPSILONS}
    table = bench.table(f"plan {way}", columns)
    pairs = np.array(cells(partial(planned_widths, asked), product(paths, COVER_EPSILONS)))
    pairs = pairs.reshape(len(paths), len(COVER_EPSILONS), 2)
    for path, figures in zip(paths, pairs, strict=True):
        table.row(load(path).name, *figures.T.ravel().tolist())
    shares = pairs[:, :, 0]
    medians = np.median(shares, axis=0).tolist()
    table.row("median", *medians, *[None] * len(medians))
    for epsilon, median in zip(COVER_EPSILONS, medians, strict=True):
        bench.bar(
            f"{way}: widths at ε = {epsilon:g} are {median:.2f} of planned, 0.8 to 1.25",
            met=1 / GRACE <= median <= GRACE,
        )


def main() -> None:
    bench = Bench(__doc__, quick="eight runs, tables of at most 2,000 rows, one way")
    bench.option("--data", type=Path, required=True, help="the folder of the tables")
    bench.option("--runs", type=int, default=16)
    bench.option("--holders", type=int, default=1)
    bench.option("--ways", nargs="+", choices=WAYS, default=WAYS)
    bench.option("--processes", type=int, default=os.cpu_count())
    options = bench.options()
    os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")  # of children
    folder = options.data / "real" if (options.data / "real").is_dir() else options.data
    paths = sorted(folder.glob("*.csv")) + sorted(folder.glob("*.csv.gz"))
    runs = options.runs
    ways = options.ways
    if options.quick:
        runs = 8
        ways = ways[:1]
        paths = [path for path in paths if load(path).n <= 2 * LARGE]
    with get_context("spawn").Pool(options.processes) as pool:
        cells = partial(pool.map, chunksize=1)
        for way in ways:
            few = Asked(way, options.holders, max(3, runs // 2))
            measure_losses(bench, paths, few, cells)
            measure_cover(bench, paths, Asked(way, options.holders, runs), cells)
            measure_plan(bench, paths, few, cells)
    bench.finish()


if __name__ == "__main__":
    main()
