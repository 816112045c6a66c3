"""Holders that differ: do intervals cover for the average holder, for its spread and for a new one?

A run draws θ (intercept N(0, 0.2²), three slopes N(0, 0.3²), residual sd 0.25) and each
holder's own coefficients about it: in none, in the intercept, in one slope or in all with sd
0.1. Holders have 2,000 rows, or sizes of gamma(1) law with that mean and a tenth of it at
least, and publish through the real encoder and mechanism (seeded noise, replace-one, δ = 1e-6).
Features have unit variance and are declared typical in ±√3; the response's range is ±2.

For each cell: the share of 90 % intervals that hold the truth, of the average holder's
coefficients (all, and those that differ), of τ where holders differ, of 20 new holders'
coefficients (those that differ; all where none does) and of holders' own; and two ratios of
widths, of coefficients that do not differ: over a fit that is told which do (`told`), and,
where none does, over a fit that takes holders to be alike (`common`). Intervals of one fit are
dependent, so limits are those of the mean of per-fit shares.

Bars (--check), for cells and for margins (all cells with one level of one factor, or of J and
another): the 99 % limits must reach 87 to 93 % for the average (85 to 95 at J = 5) and a new
holder, 85 to 95 % for τ; ratios of widths are at most 1.15 (told) and 1.1 (common): in the mean
of a margin, and for a cell, whose widths are compared in few runs, at the lower 99 % limit.
No cell is excepted. `holders_told.py` shows which bars nobody could meet together; where a slope
that differs is held too rarely, the most that any rule can hold at these widths is said.

    python benchmarks/holders_differ.py [--quick] [--check] [--out DIR] [--holders 5,10,30,131]
        [--runs 1.0] [--workers 1]

The full grid takes about half an hour on one core; --quick half a minute.
"""

import itertools
import math
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from multiprocessing import get_context

import numpy as np
from frame import Bench
from scipy import stats

from tacit.analyst.collection import collect
from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.method import Mixture, Settings
from tacit.analyst.methods.noise_aware import fit, net
from tacit.analyst.posterior.holders import spread_bounds
from tacit.analyst.prior import Prior
from tacit.holder.charge import Purpose
from tacit.holder.perturb import privatise
from tacit.holder.statistics import Statistics, statistics_of
from tacit.rows.table import table_of
from tacit.simulation import seeded
from tacit.study import Study

D = 4
ROWS = 2_000
SPREAD = 0.1
REACH = 2.0
"""Half-width of the response's range; scaled coefficients are θ over this."""
KINDS = {"none": (), "intercept": (0,), "slope": (1,), "all": (0, 1, 2, 3)}
RUNS = {5: 100, 10: 80, 30: 50, 131: 24}
COMPARED = 50
"""Runs of a cell whose widths are compared."""
TAILS = np.array([0.05, 0.95])
CONFIDENCE = 0.99
MEASURES = ("average", "differing", "tau", "new", "own")
BANDS = {
    "average": (0.87, 0.93),
    "differing": (0.87, 0.93),
    "new": (0.87, 0.93),
    "tau": (0.85, 0.95),
}
FEW_BAND = (0.85, 0.95)
"""Of the average, with five holders."""
MOST_WIDTH = {"told": 1.15, "common": 1.1}


@dataclass(frozen=True)
class Design:
    """What is common to the cells of all ε."""

    holders: int
    kind: str
    sizes: str


Cell = dict[str, list[float]]
Key = tuple[int, str, str, float]
"""J, kind, sizes, ε."""


def study_of(epsilon: float) -> Study:
    typical = [-math.sqrt(3), math.sqrt(3)]
    features = [{"name": f"x{k}", "range": [-10.0, 10.0], "typical": typical} for k in range(1, D)]
    response = {"name": "y", "range": [-REACH, REACH]}
    budget = {"relation": "replace-one", "epsilon": epsilon, "delta": 1e-6}
    return Study.from_document(
        {"name": "differ", **budget, "response": response, "features": features}
    )


def sizes_of(rng: np.random.Generator, design: Design) -> np.ndarray:
    if design.sizes == "equal":
        return np.full(design.holders, ROWS)
    shares = rng.gamma(1.0, size=design.holders)
    least = ROWS // 10
    return (least + (ROWS - least) * design.holders * shares / shares.sum()).astype(int)


def statistics(
    rng: np.random.Generator, study: Study, own: np.ndarray, sizes: np.ndarray
) -> list[Statistics]:
    """Every holder's, from rows in the user's units; a feature of sd 1 is typical in ±√3."""
    parts = []
    for n, theta in zip(sizes.tolist(), own, strict=True):
        x = rng.normal(size=(n, D - 1))
        y = theta[0] + x @ theta[1:] / math.sqrt(3) + 0.25 * rng.normal(size=n)
        parts.append(statistics_of(study, table_of(np.column_stack([x, y]), study).batches()))
    return parts


def released(study: Study, parts: list[Statistics], rng: np.random.Generator) -> Evidence:
    sampler = seeded(rng)
    releases = [privatise(study, part, Purpose(f"h{k}"), sampler) for k, part in enumerate(parts)]
    return collect(releases, allow_simulated=True).evidence


def told_fit(evidence: Evidence, kind: str) -> Mixture:
    """The fit that is told which coefficients differ."""
    everything = net.telling
    net.telling = lambda _profile: np.array(KINDS[kind])
    try:
        return fit(evidence, Prior.weak(D), Settings())
    finally:
        net.telling = everything


def bounds(mixture: Mixture) -> tuple[np.ndarray, np.ndarray]:
    low, high = mixture.quantiles(TAILS, np.eye(D), np.zeros(D)).T
    return low, high


def held(low: np.ndarray, high: np.ndarray, truth: np.ndarray) -> np.ndarray:
    return (low <= truth) & (truth <= high)


def judge(
    cell: Cell, evidence: Evidence, truths: tuple[np.ndarray, ...], kind: str, *, compared: bool
) -> None:
    """One fit, into the cell."""
    theta, own, new = truths
    differ = np.isin(np.arange(D), KINDS[kind])
    mixture = fit(evidence, Prior.weak(D), Settings())
    low, high = bounds(mixture)
    right = held(low, high, theta)
    differing = mixture.differing
    cell["average"].append(float(right.mean()))
    chosen = differ if differ.any() else ~differ
    wide = held(*bounds(mixture.of_new_holder()), new)
    cell["new"].append(float(wide[:, chosen].mean()))
    mine = [held(*bounds(mixture.of_holder(j)), own[j]).mean() for j in range(min(len(own), 10))]
    cell["own"].append(float(np.mean(mine)))
    if differ.any():
        cell["differing"].append(float(right[differ].mean()))
        spreads = spread_bounds(mixture.weights, differing.spreads[:, differ], TAILS)
        cell["tau"].append(float(held(spreads[:, 0], spreads[:, 1], SPREAD / REACH).mean()))
    if not compared or differ.all():
        return
    if differ.any():
        other = told_fit(evidence, kind)
    else:
        other = fit(evidence, Prior.weak(D), Settings(spread=0.0))
    known = np.subtract(*bounds(other))
    ratio = float(np.mean(((low - high) / known)[~differ]))
    cell["told" if differ.any() else "common"].append(ratio)


def measure(design: Design, epsilons: list[float], runs: int) -> dict[Key, Cell]:
    """All ε of a design on the same rows."""
    keys = {e: (design.holders, design.kind, design.sizes, e) for e in epsilons}
    cells: dict[Key, Cell] = {key: defaultdict(list) for key in keys.values()}
    studies = {epsilon: study_of(epsilon) for epsilon in epsilons}
    place = list(KINDS).index(design.kind)
    for run in range(runs):
        rng = np.random.default_rng([run, design.holders, place, design.sizes == "equal"])
        theta = np.append(0.2 * rng.normal(), 0.3 * rng.normal(size=D - 1))
        tau = np.where(np.isin(np.arange(D), KINDS[design.kind]), SPREAD, 0.0)
        own = theta + tau * rng.normal(size=(design.holders, D))
        new = theta + tau * rng.normal(size=(20, D))
        parts = statistics(rng, studies[epsilons[0]], own, sizes_of(rng, design))
        truths = (theta / REACH, own / REACH, new / REACH)
        for epsilon, study in studies.items():
            evidence = released(study, parts, rng)
            cell = cells[keys[epsilon]]
            judge(cell, evidence, truths, design.kind, compared=run < COMPARED)
    return cells


def limits(values: list[float]) -> tuple[float, float]:
    """Limits at `CONFIDENCE` of the mean of per-fit shares."""
    spread = float(np.std(values, ddof=1)) or 0.3  # few fits may all cover alike
    error = spread / math.sqrt(len(values))
    margin = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * error
    return float(np.mean(values)) - margin, float(np.mean(values)) + margin


def band(measured: str, holders: int | None) -> tuple[float, float]:
    """Where coverage must lie; `holders` of a margin over several J are None."""
    few = holders == 5 and measured in {"average", "differing"}
    return FEW_BAND if few else BANDS[measured]


COLUMNS = {"J": "d", "differ": "<10", "sizes": "<8", "epsilon": "g", "fits": "d"}
COLUMNS |= dict.fromkeys(MEASURES, ".1f%") | dict.fromkeys(MOST_WIDTH, ".3f")


def missed_by(cell: Cell, holders: int | None, *, margin: bool) -> list[str]:
    """The measures whose bar is missed."""
    missed = []
    for measured in BANDS:
        values = cell.get(measured, [])
        least, most = band(measured, holders)
        if values:
            low, high = limits(values)
            missed += [measured] if high < least or low > most else []
    for compared, most in MOST_WIDTH.items():
        values = cell.get(compared, [])
        if values:
            least = float(np.mean(values)) if margin else limits(values)[0]
            missed += [compared] if least > most else []
    return missed


def figures(cell: Cell) -> list[float | int | None]:
    """Fits, and every measure's mean."""
    means = [cell.get(name, []) for name in (*MEASURES, *MOST_WIDTH)]
    return [len(cell["average"]), *(float(np.mean(m)) if m else None for m in means)]


def together(cells: list[Cell]) -> Cell:
    names = {name for cell in cells for name in cell}
    return {name: [v for cell in cells for v in cell.get(name, [])] for name in names}


def show_margins(bench: Bench, cells: dict[Key, Cell]) -> None:
    """All cells with one level of one factor, or of J and another."""
    table = bench.table("margins", COLUMNS)
    for places in ((0,), (1,), (2,), (3,), (0, 1), (0, 2), (0, 3)):
        for level in dict.fromkeys(tuple(key[p] for p in places) for key in cells):
            chosen = [c for key, c in cells.items() if tuple(key[p] for p in places) == level]
            shown = dict(zip(places, level, strict=True))
            cell = together(chosen)
            missed = missed_by(cell, shown.get(0), margin=True)
            labels = [shown.get(0), *(str(shown.get(p, "")) for p in (1, 2)), shown.get(3)]
            table.row(*labels, *figures(cell), note=", ".join(missed))
            bench.bar(f"margin {' '.join(map(str, level))}: {missed or 'all'}", met=not missed)


def say_floors(bench: Bench, cells: dict[Key, Cell]) -> None:
    """What any rule can hold where a slope's average is held too rarely."""
    from holders_told import most_held

    for (holders, kind, sizes, epsilon), cell in cells.items():
        if kind == "slope" and "differing" in missed_by(cell, holders, margin=False):
            share, error = most_held(holders, sizes, epsilon)
            bench.say(
                f"{holders} slope {sizes} {epsilon:g}: with widths of 1.1 where none differs any "
                f"rule holds at most {100 * share:.1f} % ± {100 * error:.1f}"
            )


def main() -> None:
    bench = Bench(__doc__, quick="J = 5 and 10, equal sizes, one epsilon, few runs")
    bench.option("--holders", default="5,10,30,131", help="values of J, with commas between")
    bench.option("--runs", type=float, default=1.0, help="multiplies the runs of every cell")
    bench.option("--workers", type=int, default=1, help="processes that share the designs")
    options = bench.options()
    every = tuple(int(count) for count in options.holders.split(","))
    counts = (5, 10) if options.quick else every
    sizes = ("equal",) if options.quick else ("equal", "unequal")
    epsilons = [3.0] if options.quick else [1.0, 3.0, 10.0]
    designs = [Design(*place) for place in itertools.product(counts, KINDS, sizes)]
    share = 0.25 if options.quick else options.runs
    runs = [max(4, round(share * RUNS[design.holders])) for design in designs]
    table = bench.table("cells", COLUMNS)
    cells: dict[Key, Cell] = {}
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for some in pool.map(measure, designs, repeat(epsilons), runs):
            cells |= some
            for key, cell in some.items():
                missed = missed_by(cell, key[0], margin=False)
                table.row(*key, *figures(cell), note=", ".join(missed))
                bench.bar(f"{' '.join(map(str, key))}: {missed or 'all'}", met=not missed)
    show_margins(bench, cells)
    say_floors(bench, cells)
    bench.finish()


if __name__ == "__main__":
    main()
