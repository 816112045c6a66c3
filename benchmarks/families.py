"""Yes/no answers and counts from releases of sums: what is lost, how far slopes are off, and how
often intervals hold.

A run makes 20,000 rows of six correlated features (0.3), draws slopes whose sum x'β has standard
deviation 1 over rows, sets the constant so that the outcome has the rate asked for, and publishes
(replace-one, δ = 1e-6, everything at its default). The features are

- `normal`, range ±4 sd;
- `skewed`, exponential, range 0 to 8 means;
- `binary`, levels with shares 0.1 to 0.6;
- `mixed`, two of each, the levels of one feature being three;
- `heavy`, lognormal with s = 0.7, range 0 to exp(3.5·s): more skewed than a release can tell, with
  `heavy, log` the same rows where the study has log(x). It is shown, and has no bar.

Loss: share of what logistic regression on the same rows gains in log-loss over the rate alone that
is lost, on fresh rows, at ε = 1. Bias: mean of β̂'Vβ/β'Vβ − 1 over runs at ε = 100, V the
covariance of features; and the largest mean error of a slope over the root mean square of slopes.
Coverage: share of slopes whose 90 % interval holds the truth, that is of odds ratios. Times: a fit
at d = 20 with ten holders. A public table: `families_table.py`.

Floor: what the best reading without bias loses by the noise alone (`families_floor.py`). A reading
with a prior may lose a little less, as ours does where noise is large.

Visits: the same studies with several, of which no floor is known.

Bars (--check): at ε = 1, J = 1 at most 0.5 % lost on `normal` and 1.5 % on `skewed`, `binary` and
`mixed`, for rates of 5 to 95 %; where the floor and the loss are above that, no more than 1.2 times
the floor (its 99 % limits); slopes within 3 % at ε = 100; coverage of every cell 87 to 93 % for
rates of 5 to 95 %, of probit and Poisson too (missed when its 99 % limits leave the band out: one
cell in a hundred that is at the band's edge); a fit under a second of one core's time.

Cells that differ in ε or in visits have the same rows, which are made, summed and fitted without
privacy once. 100 runs of every cell (--runs 0.5) take about 25 minutes of one core, 200 twice that.

    python benchmarks/families.py [--quick] [--check] [--runs 1.0] [--processes 1]
"""

import itertools
import math
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

import numpy as np
from families_floor import noise_alone
from families_made import DESIGNS, SHOWN, Array, Cell, Made, study_of
from frame import Bench
from scipy import stats

from tacit.analyst.collection import collect
from tacit.analyst.families.links import Link
from tacit.analyst.fit import fit
from tacit.analyst.posterior.posterior import Posterior
from tacit.holder.charge import Purpose
from tacit.holder.perturb import privatise
from tacit.holder.statistics import Statistics, statistics_of
from tacit.simulation import seeded, simulate, simulate_visits

BAND = (0.87, 0.93)
CONFIDENCE = 0.99
RATES = (0.05, 0.2, 0.5, 0.8, 0.95)
MOST_LOST = {"normal": 0.005, "skewed": 0.015, "binary": 0.015, "mixed": 0.015}
MANY = 50
"""Runs from which a mean loss is judged as it is: of fewer (--quick), by its 99 % limits."""
NEAR_FLOOR = 1.2
"""Loss over what noise alone costs, up to which it is as little as noise allows."""
MOST_BIAS = 0.03
MOST_SECONDS = 1.0
Outcome = dict[str, object]


def regression(link: Link, x: Array, y: Array) -> Array:
    """Without privacy: maximum likelihood, by Fisher's scoring."""
    beta = np.zeros(x.shape[1])
    beta[0] = link.inverse(float(np.clip(y.mean(), 1e-3, None)))
    for _ in range(50):
        eta = x @ beta
        mean = link.mean(eta)
        slope = link.slope(eta)
        weight = slope / np.maximum(link.variance(mean), 1e-12)
        information = (x * (weight * slope)[:, None]).T @ x
        step = np.linalg.lstsq(information, x.T @ (weight * (y - mean)))[0]
        beta = beta + step
        if np.abs(step).max() < 1e-8:
            break
    return beta


def loss(link: Link, mean: Array, told: Array) -> float:
    """Expected loss of told means where `mean` is the truth."""
    if link.binary:
        told = np.clip(told, 1e-12, 1 - 1e-12)
        return float(-np.mean(mean * np.log(told) + (1 - mean) * np.log1p(-told)))
    return float(np.mean(told - mean * np.log(told)))


@dataclass(frozen=True)
class Known:
    """Rows of one run, and what all cells that share them need of these."""

    made: Made
    sums: list[Statistics]  # of every holder
    base: float  # loss of the rate alone
    best: float  # loss of regression without privacy
    floor: float  # loss by the noise at ε = 1 alone (`noise_alone`)

    @classmethod
    def of(cls, cell: Cell, rng: np.random.Generator) -> "Known":
        """Rows for cells that are alike but for ε and visits."""
        made = Made.of(cell, rng)
        study = study_of(cell)
        link = cell.link
        mean = link.mean(made.new @ made.beta)
        exact = regression(link, made.x, made.y)
        return cls(
            made=made,
            sums=[statistics_of(study, part.to_batches()) for part in made.parts(cell.holders)],
            base=loss(link, mean, np.full(len(mean), made.y.mean())),
            best=loss(link, mean, link.mean(made.new @ exact)),
            floor=noise_alone(cell, study, made),
        )


def posterior_of(cell: Cell, known: Known, rng: np.random.Generator) -> Posterior:
    """What releases of a cell say."""
    study = study_of(cell)
    if cell.visits > 1:
        releases = simulate_visits(study, known.made.parts(cell.holders), rng)
    else:
        releases = [
            privatise(study, sums, Purpose(f"h{j}", "simulated"), seeded(rng))
            for j, sums in enumerate(known.sums)
        ]
    return fit(collect(releases, allow_simulated=True), family=cell.family)  # type: ignore[arg-type]


def run(cells: tuple[Cell, ...], seed: int) -> list[Outcome]:
    """One table, its releases of every cell, and what their fits say."""
    rows = cells[0].rows
    place = [*DESIGNS, *SHOWN].index(rows.design)
    start = [seed, place, round(1000 * rows.rate), rows.holders]
    known = Known.of(rows, np.random.default_rng(start))
    outcomes = []
    for cell in cells:
        rng = np.random.default_rng([*start, round(10 * cell.epsilon), cell.visits])
        outcomes.append(outcome_of(cell, known, posterior_of(cell, known, rng)))
    return outcomes


def outcome_of(cell: Cell, known: Known, posterior: Posterior) -> Outcome:
    """What a fit says, against the truth."""
    made = known.made
    beta = made.beta
    told = posterior.mean()
    low, high = posterior.interval(0.9).T
    link = cell.link
    ours = loss(link, link.mean(made.new @ beta), link.mean(made.new @ told))
    spread = np.cov(made.x[:, 1:], rowvar=False)
    gain = known.base - known.best
    louder = posterior.study.mechanism().noise.xty / study_of(cell.rows).mechanism().noise.xty
    return {
        "lost": (ours - known.best) / gain,
        "noise": known.floor * louder**2 / gain if cell.visits == 1 else math.nan,
        "along": float(told[1:] @ spread @ beta[1:] / (beta[1:] @ spread @ beta[1:]) - 1),
        "errors": (told[1:] - beta[1:]) * np.sign(beta[1:]) / np.sqrt(np.mean(beta[1:] ** 2)),
        "hits": ((low <= beta) & (beta <= high)).astype(float),
        "width": float(np.mean((high - low)[1:] / np.abs(beta[1:]))),
        "cautions": bool(posterior.caveat),
    }


def limits(values: list[float]) -> tuple[float, float]:
    """Mean less and plus its margin at `CONFIDENCE`."""
    spread = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    margin = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * spread
    return float(np.mean(values)) - margin, float(np.mean(values)) + margin


def cells_of(*, quick: bool) -> list[Cell]:
    rates = (0.05, 0.5) if quick else RATES
    cells = [Cell(design, rate, 1.0) for design in DESIGNS for rate in rates]
    cells += [Cell(design, rate, 100.0) for design in DESIGNS for rate in rates]
    cells += [Cell(design, 0.5, epsilon) for design in SHOWN for epsilon in (1.0, 100.0)]
    if not quick:
        cells += [Cell(design, rate, 1.0, 10) for design in DESIGNS for rate in (0.05, 0.5)]
        cells += [Cell(design, rate, 3.0) for design in DESIGNS for rate in (0.05, 0.5)]
        cells += [Cell("mixed", 0.5, 1.0, strength=s) for s in (0.25, 2.0)]
        cells += [Cell("mixed", 0.2, 1.0, features=14)]
    others = (("probit", 0.3), ("poisson", 2.0))
    for (family, rate), design in itertools.product(others, DESIGNS):
        cells.append(Cell(design, rate, 1.0, family=family, strength=0.5))
    return cells + visited_cells(quick=quick)


def visited_cells(*, quick: bool) -> list[Cell]:
    """Ten visits of one holder, three of ten."""
    others = (("logistic", 0.5, 1.0), ("poisson", 2.0, 0.5), ("probit", 0.3, 0.5))
    designs = ("mixed",) if quick else DESIGNS
    cells = [
        Cell(design, rate, 1.0, family=family, strength=strength, visits=10)
        for (family, rate, strength), design in itertools.product(others, designs)
    ]
    if not quick:
        cells += [Cell(design, 0.05, 1.0, visits=10) for design in DESIGNS]
        cells += [Cell(design, 0.5, 1.0, 10, visits=3) for design in DESIGNS]
        cells.append(Cell("mixed", 2.0, 1.0, 10, "poisson", 0.5, visits=3))
    return cells


def judge(bench: Bench, cell: Cell, outcomes: list[Outcome]) -> tuple[object, ...]:
    """A row of the table, and its bars."""
    lost = float(np.mean([outcome["lost"] for outcome in outcomes]))
    along = float(np.mean([outcome["along"] for outcome in outcomes]))
    errors = np.mean([outcome["errors"] for outcome in outcomes], axis=0)
    shares = [float(np.mean(outcome["hits"][1:])) for outcome in outcomes]  # type: ignore[index]
    words = f"{cell.family}, {cell.design}, rate {cell.rate:g}, ε = {cell.epsilon:g}, "
    words += f"J = {cell.holders}, sd {cell.strength:g}, {cell.visits} visits"
    barred = cell.design in DESIGNS and cell.strength <= 1
    floor = float(np.mean([outcome["noise"] for outcome in outcomes]))
    if barred and cell.is_whole_bar:
        most = MOST_LOST[cell.design]
        least, _ = limits([float(outcome["lost"]) for outcome in outcomes])  # type: ignore[arg-type]
        if min(floor, lost) <= most:
            told = lost if len(outcomes) >= MANY else least
            bench.bar(f"{words}: at most {100 * most:g} % lost", met=told <= most)
        else:
            name = f"{words}: as little lost as noise allows, {100 * floor:.2f} %"
            bench.bar(name, met=least <= NEAR_FLOOR * floor)
    if barred and cell.epsilon == 100:
        bench.bar(f"{words}: slopes within 3 %", met=abs(along) <= MOST_BIAS)
    if barred and cell.epsilon < 100:
        low, high = limits(shares)
        bench.bar(f"{words}: covers 87 to 93 %", met=low <= BAND[1] and high >= BAND[0])
    return (
        *(cell.family, cell.design, cell.rate, cell.epsilon, cell.holders, cell.visits),
        *(cell.strength, len(outcomes), 100 * lost, 100 * floor, 100 * along),
        100 * float(np.abs(errors).max()),
        100 * float(np.mean(shares)),
        100 * float(np.std(shares)) / math.sqrt(len(shares)),
        100 * float(np.mean([outcome["hits"][0] for outcome in outcomes])),  # type: ignore[index]
        float(np.mean([outcome["width"] for outcome in outcomes])),
        float(np.mean([outcome["cautions"] for outcome in outcomes])),
    )


def measure(bench: Bench, runs: int, processes: int, *, quick: bool) -> None:
    columns = {"family": "<9", "features": "<11", "rate": "g", "ε": "g", "J": "d", "visits": "d"}
    columns |= {"sd": "g", "runs": "d", "% lost": ".2f", "% floor": ".2f", "% bias": ".1f"}
    columns |= {"worst": ".1f", "covers": ".1f"}
    columns |= {"±": ".1f", "constant": ".0f", "width": ".2f", "warned": ".0f%"}
    table = bench.table("made", columns)
    cells = cells_of(quick=quick)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for rows in dict.fromkeys(cell.rows for cell in cells):
            alike = tuple(cell for cell in cells if cell.rows == rows)
            told = list(pool.map(partial(run, alike), range(runs), chunksize=4))
            for place, cell in enumerate(alike):
                table.row(*judge(bench, cell, [outcomes[place] for outcomes in told]))


def timed(bench: Bench) -> None:
    """A fit at d = 20, J = 10."""
    cell = Cell("mixed", 0.3, 1.0, 10, features=15)
    rng = np.random.default_rng(0)
    made = Made.of(cell, rng)
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        releases = [
            simulate(study_of(cell), part, rng, holder=f"h{j}")
            for j, part in enumerate(made.parts(cell.holders))
        ]
        posterior = fit(collect(releases, allow_simulated=True), family="logistic")
        seconds.append(time.process_time() - begun)
    parts = bench.table("time", {"d": "d", "J": "d", "seconds": ".2f"})
    parts.row(posterior.study.d, cell.holders, min(seconds))
    bench.bar("releases and fit at d = 20, J = 10 under a second", met=min(seconds) < MOST_SECONDS)


def main() -> None:
    bench = Bench(__doc__, quick="few runs of rates 5 and 50 %")
    bench.option("--runs", type=float, default=1.0, help="multiplies the runs of every cell")
    bench.option("--processes", type=int, default=1, help="cells are run in so many")
    options = bench.options()
    timed(bench)
    runs = max(4, round((4 if options.quick else 200) * options.runs))
    measure(bench, runs, options.processes, quick=options.quick)
    bench.finish()


if __name__ == "__main__":
    main()
