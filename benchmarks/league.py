"""The league: Tacit beside the strongest published methods, at the same (ε, δ), on public tables.

Every file NAME.csv or NAME.csv.gz of DIR/real is a table of numbers without a header, response
last; the paper's three sets are taken from DIR where they are there. A random fifth of the rows,
another in every run, is held out; public ranges are those of the data. Everybody has the same rows,
ranges, ε and δ = 1e-6, for replacing one row (`replace-one`), with noise calibrated as
`benchmarks/competitors` says: one holder, ten who publish each for itself (rows dealt out at
random), and ten who add up securely.

Figures are R² on the rows held out: medians over runs, which differ in split and noise; tables of
over 5,000 rows, whose R² hardly varies, have a third as many. Where a method refuses an answer, its
line is flat at the middle of the response's range. Means over tables count an R² below −1 as −1.
`fixed`: one set of hyperparameters for all cells, the paper's where it has one. `hindsight`: the
best of a grid, chosen on the very rows it is judged by, for competitors.
Ours is Tacit with ten visits, as a federation has, where the study's rule chooses several, and with
one where it does not.

`mean alone`: R² of a flat line at the mean response, made private with the whole budget: what is
left where slopes tell nothing. `its floor`: what no private mean can be above, on average over the
means that tables have.

Bars (--check): first, or within .01 of R² of first, among fixed methods in 90 % of cells; never
below −0.02; of the gap between `ours, rows not planned` and least squares, mean over the tables of
DIR/real, 75 % closed at ε = 1 and half at ε = 0.3 and 3 by one holder, half at ε = 1 by ten; a
secure sum of ten within a tenth of that gap of one holder; no table over .01 worse than with one
visit of planned rows.

`ours, rows not planned` is the reference: one visit as it was before studies planned rows and had
several visits. It releases what that did, number for number, and today's fit reads it. One visit of
planned rows is what a user would choose otherwise: the gap from there is printed beside.

    python benchmarks/league.py --data DIR [--runs 35] [--processes N] [--quick] [--check]
"""

import os
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from competitors import Competitor, entered, ours
from competitors.holders import Budget, Holders
from competitors.table import FILES, Table, available, table_of
from frame import Bench

EPSILONS = (0.3, 1.0, 3.0, 10.0)
DELTA = 1e-6
SETTINGS = ("1", "10", "10-sum")
"""One holder; ten who publish each for itself; ten who add up securely."""
ONE_VISIT = Competitor("ours, one visit", ours.fit, ours.Settings(visits=1), ())
UNPLANNED = Competitor(
    "ours, rows not planned", ours.fit, ours.Settings(visits=0, planned=False), ()
)
TEN_VISITS = Competitor("ours, ten visits", ours.fit, ours.Settings(visits=10), ())
OURS = (
    TEN_VISITS,
    Competitor("ours, three visits", ours.fit, ours.Settings(visits=3), ()),
    Competitor("ours, two visits", ours.fit, ours.Settings(visits=2), ()),
    ONE_VISIT,
    UNPLANNED,
)
"""Tacit's own entries."""
JUDGED = "ours"
"""Ten visits, or one where the study's rule chooses one: the entry that is judged."""
OWN = [JUDGED, *(entry.name for entry in OURS)]
NEAR = 0.01
LEAST_R2 = -0.02
FLOOR = -1.0
"""R² below this counts as this in means over tables."""
HINDSIGHT_RUNS = 3
SMALL = 1000
STEADY = 5000
"""Rows above which a table has a third as many runs."""
APART = 50_000
"""Ten separate holders take as long as so many more rows."""
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
CLOSED = {("1", 0.3): 0.5, ("1", 1.0): 0.75, ("1", 3.0): 0.5, ("10", 1.0): 0.5}
"""Share of the gap to be closed, by holders and ε."""


@dataclass(frozen=True)
class Cell:
    """One table, setting and ε."""

    folder: Path
    table: str
    setting: str
    epsilon: float
    runs: int
    hindsight: bool


@dataclass(frozen=True)
class Outcome:
    """What all methods made of a cell."""

    cell: Cell
    least_squares: float
    mean_alone: float
    fixed: dict[str, float] = field(default_factory=dict)
    worst: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    hindsight: dict[str, float] = field(default_factory=dict)
    mean_floor: float = 0.0

    @property
    def ours(self) -> float:
        """R² of the entry of ours that is judged."""
        return self.fixed[JUDGED]

    def judge(self, entry: Competitor) -> None:
        """Name the entry of ours that is judged."""
        for figures in (self.fixed, self.worst, self.seconds):
            figures[JUDGED] = figures[entry.name]
        self.refused[JUDGED] = self.refused[entry.name]

    def rank(self, name: str) -> int:
        """Place among fixed methods, 1 for the best; of Tacit's entries one counts."""
        absent = set(OWN) - {name if name in OWN else JUDGED}
        rivals = [value for key, value in self.fixed.items() if key not in absent]
        return 1 + sum(value > self.fixed[name] for value in rivals)

    def best_other(self) -> tuple[str, float]:
        """The best fixed method that is not ours, and its R²."""
        others = [(name, value) for name, value in self.fixed.items() if name not in OWN]
        return max(others, key=lambda pair: pair[1])


def measure(cell: Cell) -> Outcome:
    """All methods on one cell."""
    whole = table_of(cell.folder, cell.table)
    tables = [replace(whole, split=run) for run in range(cell.runs)]
    budget = Budget(cell.epsilon, DELTA)
    pairs = [(table, table.holders(cell.setting)) for table in tables]
    holders = pairs[0][1]
    outcome = Outcome(
        cell=cell,
        least_squares=float(np.median([table.least_squares for table in tables])),
        mean_alone=float(np.median([table.mean_alone(own, budget) for table, own in pairs])),
        mean_floor=float(np.median([table.mean_floor(own, budget) for table, own in pairs])),
    )
    for entry in (*OURS, *entered()):
        if not entry.enters(holders):
            continue
        scores = []
        times = []
        refused = 0
        for run, (table, own) in enumerate(pairs):
            begun = time.perf_counter()
            line = entry.fit(np.random.default_rng([run, 1]), own, budget, entry.fixed)
            times.append(time.perf_counter() - begun)
            scores.append(table.score(line))
            refused += line is None
        outcome.fixed[entry.name] = float(np.median(scores))
        outcome.worst[entry.name] = min(scores)
        outcome.seconds[entry.name] = float(np.median(times))
        outcome.refused[entry.name] = refused
        if cell.hindsight and entry.grid:
            outcome.hindsight[entry.name] = best_of(entry, pairs[:HINDSIGHT_RUNS], budget)
    outcome.judge(TEN_VISITS if ours.chooses_several(holders, budget) else ONE_VISIT)
    return outcome


def best_of(entry: Competitor, pairs: list[tuple[Table, Holders]], budget: Budget) -> float:
    """The best median of a method's grid, over some splits."""
    medians = []
    for settings in entry.grid:
        scores = [
            table.score(entry.fit(np.random.default_rng([run, 2]), own, budget, settings))
            for run, (table, own) in enumerate(pairs)
        ]
        medians.append(float(np.median(scores)))
    return max(medians)


def mean(values: Iterable[float]) -> float:
    """Mean over tables, none below the floor."""
    return float(np.mean([max(FLOOR, value) for value in values]))


def names_of(outcomes: list[Outcome]) -> list[str]:
    """The entry that is judged, then methods in the order they were run."""
    names = [name for outcome in outcomes for name in outcome.fixed]
    return list(dict.fromkeys([JUDGED, *names]))


def report_losses(bench: Bench, outcomes: list[Outcome]) -> None:
    """Where we are not first, the widest loss first."""
    columns = {"table": "<14", "holders": "<8", "ε": "g", "least squares": ".3f", "ours": ".3f"}
    table = bench.table("lost", columns | {"first": ".3f", "which": "<18", "behind": ".3f"})
    near = 0
    behind = []
    for outcome in outcomes:
        name, value = outcome.best_other()
        gap = value - outcome.ours
        near += gap <= NEAR
        if gap > 0:
            behind.append((gap, name, value, outcome))
    for gap, name, value, outcome in sorted(behind, key=lambda one: -one[0]):
        cell = outcome.cell
        squares = outcome.least_squares
        row = (cell.table, cell.setting, cell.epsilon, squares, outcome.ours, value, name, gap)
        table.row(*row)
    share = near / len(outcomes)
    bench.say(
        f"ours is first in {len(outcomes) - len(behind)} of {len(outcomes)} cells, and first or "
        f"within {NEAR} of it in {near} ({share:.0%})"
    )
    bench.bar(f"first or within {NEAR} of first in {share:.0%} of cells, 90 %", met=share >= 0.9)
    lowest = min(outcome.ours for outcome in outcomes)
    worst = min(outcome.worst[JUDGED] for outcome in outcomes)
    bench.say(f"ours: lowest median R² {lowest:.3f}, lowest of all single runs {worst:.3f}")
    bench.bar(f"never below R² = {LEAST_R2}: lowest {lowest:.3f}", met=lowest >= LEAST_R2)


def report_lowest(bench: Bench, outcomes: list[Outcome]) -> None:
    """Cells in which the mean alone, made private, is below the least R² that is asked for."""
    columns = {"table": "<14", "holders": "<8", "ε": "g", "mean alone": ".3f", "its floor": ".3f"}
    table = bench.table(
        "lowest", columns | {"ours": ".3f", "one visit": ".3f", "best other": ".3f"}
    )
    for one in sorted(outcomes, key=lambda one: one.ours):
        if min(one.ours, one.mean_alone) >= LEAST_R2:
            continue
        cell = one.cell
        means = (one.mean_alone, one.mean_floor)
        figures = (one.ours, one.fixed[ONE_VISIT.name], one.best_other()[1])
        table.row(cell.table, cell.setting, cell.epsilon, *means, *figures)


def report_league(bench: Bench, outcomes: list[Outcome]) -> None:
    """Means over all tables, by setting, ε and method."""
    columns = {"holders": "<8", "ε": "g", "method": "<18", "R²": ".3f", "lost": ".3f"}
    columns |= {"rank": ".1f", "first": "%", "refused": "%", "seconds": ".3f"}
    table = bench.table("league", columns)
    for setting, epsilon in product(SETTINGS, EPSILONS):
        cells = chosen(outcomes, setting, epsilon)
        rows = []
        for name in names_of(cells):
            value = mean(one.fixed[name] for one in cells)
            lost = mean(one.least_squares for one in cells) - value
            rank = float(np.mean([one.rank(name) for one in cells]))
            near = np.mean([max(one.fixed.values()) - one.fixed[name] <= NEAR for one in cells])
            refused = sum(one.refused[name] for one in cells)
            share = refused / sum(one.cell.runs for one in cells)
            seconds = float(np.median([one.seconds[name] for one in cells]))
            rows.append((setting, epsilon, name, value, lost, rank, near, share, seconds))
        for row in sorted(rows, key=lambda row: -row[3]):
            table.row(*row)


def report_hindsight(bench: Bench, outcomes: list[Outcome]) -> None:
    """Ours as it is beside competitors tuned on the rows they are judged by."""
    tuned = [one for one in outcomes if one.hindsight]
    if not tuned:
        return
    names = list(dict.fromkeys(name for one in tuned for name in one.hindsight))
    columns = {"holders": "<8", "ε": "g", "least squares": ".3f", "ours, not tuned": ".3f"}
    columns |= dict.fromkeys(names, ".3f")
    table = bench.table("hindsight", columns | {"ours near first": "%"})
    for setting, epsilon in product(SETTINGS, EPSILONS):
        cells = chosen(tuned, setting, epsilon)
        if not cells:
            continue
        there = [name for name in names if name in cells[0].hindsight]
        means = {name: mean(one.hindsight[name] for one in cells) for name in there}
        near = np.mean([max(one.hindsight.values()) - one.ours <= NEAR for one in cells])
        squares = mean(one.least_squares for one in cells)
        own = mean(one.ours for one in cells)
        table.row(setting, epsilon, squares, own, *[means.get(name) for name in names], near)


def report_cells(bench: Bench, outcomes: list[Outcome]) -> None:
    """Every cell, a table for each setting."""
    for setting in SETTINGS:
        cells = [one for one in outcomes if one.cell.setting == setting]
        names = names_of(cells)
        columns = {"table": "<14", "ε": "g", "least squares": ".3f"}
        table = bench.table(f"cells {setting}", columns | dict.fromkeys(names, ".3f"))
        for one in cells:
            row = (one.cell.table, one.cell.epsilon, one.least_squares)
            table.row(*row, *[one.fixed[name] for name in names])


def chosen(outcomes: list[Outcome], setting: str, epsilon: float) -> list[Outcome]:
    """Outcomes of one setting and ε."""
    return [one for one in outcomes if (one.cell.setting, one.cell.epsilon) == (setting, epsilon)]


def report_gap(bench: Bench, outcomes: list[Outcome]) -> None:
    """How much of the way from the reference to least squares the default goes, on DIR/real."""
    real = [one for one in outcomes if one.cell.table not in FILES]
    columns = {"holders": "<8", "ε": "g", "least squares": ".3f", "rows not planned": ".3f"}
    columns |= {"one visit": ".3f", "ours": ".3f"}
    table = bench.table("gap", columns | {"closed": "%", "closed from one visit": "%"})
    single: dict[float, tuple[float, float]] = {}
    for setting, epsilon in product(SETTINGS, EPSILONS):
        cells = chosen(real, setting, epsilon)
        squares = mean(one.least_squares for one in cells)
        first = mean(one.fixed[UNPLANNED.name] for one in cells)
        planned = mean(one.fixed[ONE_VISIT.name] for one in cells)
        own = mean(one.ours for one in cells)
        closed = (own - first) / (squares - first)
        further = (own - planned) / (squares - planned)
        table.row(setting, epsilon, squares, first, planned, own, closed, further)
        if (setting, epsilon) in CLOSED:
            least = CLOSED[setting, epsilon]
            sentence = f"{setting} holders, ε = {epsilon:g}: {closed:.0%} of the gap, {least:.0%}"
            bench.bar(sentence, met=closed >= least)
        if setting == "1":
            single[epsilon] = (own, squares - first)
        if setting == "10-sum":
            value, gap = single[epsilon]
            behind = value - own
            bench.bar(
                f"secure sum, ε = {epsilon:g}: {behind:.3f} below one holder, {gap / 10:.3f}",
                met=behind <= gap / 10,
            )
    worse = max(one.fixed[ONE_VISIT.name] - one.ours for one in real)
    bench.bar(f"no table worse than one visit by {worse:.3f}, {NEAR}", met=worse <= NEAR)


def runs_of(rows: int, runs: int) -> int:
    """How many runs a table of so many rows has."""
    return max(2, runs // 3) if rows > STEADY else runs


def cells_of(folder: Path, runs: int, *, quick: bool) -> list[Cell]:
    """All cells, those that take longest first."""
    names = sorted(path.name.split(".")[0] for path in (folder / "real").glob("*.csv*"))
    names += [name for name in available(folder) if name != "3droad"]
    if not names:
        raise SystemExit(f"no tables: --data needs {folder / 'real'} with one or more .csv files")
    sizes = {name: len(table_of(folder, name).y) for name in names}
    if quick:
        names = [name for name in names if sizes[name] <= SMALL]
    cells = [
        Cell(folder, name, setting, epsilon, runs_of(sizes[name], runs), hindsight=not quick)
        for name, setting, epsilon in product(names, SETTINGS, EPSILONS)
    ]

    def length(cell: Cell) -> float:
        """About how long it takes: rows, and each separate holder's messages."""
        return sizes[cell.table] + APART * (cell.setting == "10")

    return sorted(cells, key=length, reverse=True)


def outcomes_of(cells: list[Cell], processes: int) -> list[Outcome]:
    """Every cell measured, in the order of tables, settings and ε."""
    outcomes = []
    with get_context("spawn").Pool(processes) as pool:
        for count, outcome in enumerate(pool.imap_unordered(measure, cells), start=1):
            cell = outcome.cell
            done = f"{count} of {len(cells)}: {cell.table}, {cell.setting}, ε = {cell.epsilon:g}"
            print(done, file=sys.stderr, flush=True)
            outcomes.append(outcome)

    def place(outcome: Outcome) -> tuple[bool, str, int, float]:
        cell = outcome.cell
        setting = SETTINGS.index(cell.setting)
        return (cell.table in FILES, cell.table, setting, cell.epsilon)

    return sorted(outcomes, key=place)


def main() -> None:
    bench = Bench(__doc__, quick="two runs, tables of at most 1,000 rows, no hindsight")
    bench.option("--data", type=Path, required=True, help="the folder of the tables")
    bench.option("--runs", type=int, default=35)
    bench.option("--processes", type=int, default=os.cpu_count())
    options = bench.options()
    os.environ |= dict.fromkeys(THREADS, "1")  # of children
    runs = 2 if options.quick else options.runs
    cells = cells_of(options.data, runs, quick=options.quick)
    outcomes = outcomes_of(cells, options.processes)
    report_losses(bench, outcomes)
    report_lowest(bench, outcomes)
    report_league(bench, outcomes)
    report_hindsight(bench, outcomes)
    report_gap(bench, outcomes)
    report_cells(bench, outcomes)
    if "diffprivlib" not in {entry.name for entry in entered()}:
        bench.say("diffprivlib is not installed, and left out: pip install 'tacit-dp[bench]'")
    bench.finish()


if __name__ == "__main__":
    main()
