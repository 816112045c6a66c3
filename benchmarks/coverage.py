"""Coverage.

How often 90 % intervals hold the truth, over sizes, budgets, holders and feature laws; release and
method at their defaults.

A run draws θ (intercept N(0, 0.2²), p slopes N(0, 0.3²/max(1, p/3)), residual sd 0.25), 20,000 rows
split over J holders, and publishes them through the real encoder and mechanism (seeded noise, δ =
1e-6). Features have unit variance, normal or Student with 3 degrees of freedom, are declared
typical in ±√3, and have a wide range; the response's range is ±`REACH` in the units of θ above, so
that fewer than 1 in 10,000 rows are clamped (counted, and printed). Holders are equal, or have
gamma(1) distributed sizes with the same total and at least 20 rows.

Two numbers for each cell: the share of coefficients' intervals that hold the truth, and the share
of predictive intervals that hold new responses, for the default method, with `exact-fixed-s` (which
takes the noisy X'X for the true one) beside it. Intervals of one fit are dependent, so the error is
that of the mean of per-fit shares: ± is one standard error.

Bar (--check): a cell fails when its 99 % limits (Student, runs − 1 degrees) miss 88–92 %
altogether, and so does a margin, that is all cells with one level of one factor, or one pair of J
and ε, together, whose error is several times smaller.

Known exceptions, in which both shares may be above the band where nine summaries of ten warn (the
99 % limits of the share that does reach that), and neither below it: where the noise of
Σe² = y'y − 2θ'z + θ'Sθ, summed over J holders, is as large as Σe² itself, the releases give no more
than an upper bound of the residual variance, and predictive intervals cover 93 to 99.8 %. So it is
with 100 holders of 200 rows at ε = 0.2, and for a response that fills little of its range (the
heavy-tailed design) also with 10 holders there, and with 100 at ε = 1 where d ≤ 5. Under add-remove
y'y has more noise, and the same befalls 10 holders, and one with heavy tails, at ε = 0.2, and 100
with heavy tails at ε = 1 at any d. With 100 holders, ε = 0.2 and d ≥ 10 slopes too are little but
their prior, and cover 92 to 99 %.

More rows, fewer holders, a narrower range of the response or a larger ε would help, and nothing
else: the noise of J releases adds up.

With `--visits V` the same rows are asked V times (docs/visits.md), their number is planned, the
band is 87–93 %, and no cell is excepted. With ten visits one of 120 misses it, of 100 holders at
ε = 0.2, which is an exception of one visit, too.

    python benchmarks/coverage.py [--quick] [--check] [--relation replace-one|add-remove]
        [--runs 1.0] [--workers 1] [--visits 1] [--holders 1 10 100]

`--runs` multiplies the number of runs of every cell, `--holders` keeps designs of so many holders.
The full grid takes about fifty minutes on one core, and two hours with ten visits.
"""

import itertools
import math
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context

import numpy as np
from coverage_made import (
    REACH,
    TOTAL_ROWS,
    Asked,
    Design,
    cuts,
    released,
    rows_of,
    study_of,
    truth,
)
from frame import Bench, Table
from scipy import stats
from scipy.special import ndtr

from tacit.analyst.collection import collect
from tacit.analyst.fit import fit
from tacit.analyst.posterior.laws import Mixture
from tacit.holder.encode import Diagnostics
from tacit.holder.statistics import statistics_of
from tacit.rows.table import table_of
from tacit.simulation import simulate_visits

METHODS = ("noise-aware", "exact-fixed-s")
NEW_ROWS = 400
PROBABILITY = 0.9
CONFIDENCE = 0.99
ALIKE = 1e-9
"""Spread of shares below which they are one, up to rounding."""
FEW_COLUMNS = 5
"""Columns up to which 100 holders hide the residual variance at ε = 1 under replace-one."""
WARNED = 0.9
"""Share of runs of an excepted cell in which the summary must warn."""


@dataclass
class Tally:
    """Per-fit shares of one cell and one method."""

    slopes: list[float] = field(default_factory=list)
    intercept: list[float] = field(default_factory=list)
    coefficients: list[float] = field(default_factory=list)
    predictive: list[float] = field(default_factory=list)
    warned: list[bool] = field(default_factory=list)


Key = tuple[str, str, int, int, float]
"""Law, sizes, J, d, ε."""
Cells = dict[Key, dict[str, Tally]]


def predictive_level(outcome: Mixture, rows: np.ndarray, law: str) -> np.ndarray:
    """Predictive distribution function of each row at its own response.

    A mixture of normals with variance x'Vx + σ².
    """
    x = np.column_stack([np.ones(len(rows)), rows[:, :-1] / math.sqrt(3)])
    centre = outcome.locations @ x.T
    spread = np.sqrt(
        np.einsum("na,kab,nb->kn", x, outcome.covariances, x, optimize=True)
        + outcome.noise_variances[:, None]
    )
    level: np.ndarray = outcome.weights @ ndtr((rows[:, -1] / REACH[law] - centre) / spread)
    return level


def measure(
    design: Design, epsilons: list[float], asked: Asked, runs: int
) -> tuple[Cells, Diagnostics]:
    """All ε of a design on the same rows, and how many responses were clamped."""
    law = design.law
    d = design.d
    diagnostics = Diagnostics()
    cells: Cells = {
        (law, design.sizes, design.holders, d, epsilon): {m: Tally() for m in METHODS}
        for epsilon in epsilons
    }
    tail = (1 - PROBABILITY) / 2
    for run in range(runs):
        rng = np.random.default_rng(
            [run, d, design.holders, law == "heavy", design.sizes == "unequal"]
        )
        theta = truth(rng, d - 1)
        table = rows_of(rng, law, theta, TOTAL_ROWS)
        new = rows_of(rng, law, theta, NEW_ROWS)
        split = np.split(table, cuts(rng, design))
        rows = [len(part) for part in split]
        studies = {epsilon: study_of(law, d, epsilon, asked, rows) for epsilon in epsilons}
        study = studies[epsilons[0]]  # the encoder does not depend on ε
        tables = (table_of(part, study) for part in split)
        parts = [statistics_of(study, part.batches(), diagnostics=diagnostics) for part in tables]
        for epsilon, study in studies.items():
            if asked.visits > 1:
                collection = collect(simulate_visits(study, split, rng), allow_simulated=True)
            else:
                collection = released(study, parts, rng)
            for method in METHODS:
                posterior = fit(collection, method)
                low, high = posterior.interval(PROBABILITY, "scaled").T * REACH[law]
                hits = (low <= theta) & (theta <= high)
                level = predictive_level(posterior.outcome, new, law)
                tally = cells[law, design.sizes, design.holders, d, epsilon][method]
                tally.coefficients.append(float(hits.mean()))
                tally.intercept.append(float(hits[0]))
                tally.slopes.append(float(hits[1:].mean()))
                tally.predictive.append(float(np.mean(np.abs(level - 0.5) <= 0.5 - tail)))
                tally.warned.append(bool(posterior.outcome.warning))
    return cells, diagnostics


@dataclass(frozen=True)
class Share:
    """A coverage with its standard error, from per-fit shares."""

    value: float
    error: float
    fits: int

    @classmethod
    def of(cls, values: list[float]) -> "Share":
        spread = float(np.std(values, ddof=1))
        if spread < ALIKE:  # few fits may all cover alike
            spread = math.sqrt(PROBABILITY * (1 - PROBABILITY))
        return cls(float(np.mean(values)), spread / math.sqrt(len(values)), len(values))

    @property
    def limits(self) -> tuple[float, float]:
        """Limits at `CONFIDENCE`."""
        margin = float(stats.t.ppf((1 + CONFIDENCE) / 2, self.fits - 1)) * self.error
        return self.value - margin, self.value + margin

    def misses(self, band: tuple[float, float]) -> bool:
        """Whether the limits leave the band out."""
        return self.limits[1] < band[0] or self.limits[0] > band[1]

    def __str__(self) -> str:
        return f"{100 * self.value:6.1f} ±{100 * self.error:4.1f}"


FACTORS = ("features", "sizes", "J", "d", "epsilon")
SHOWN = {"fits": "d", "coefficients": ".1f", "±": ".1f", "intercept": ".0f", "slopes": ".1f"}
SHOWN |= {"predictive": ".1f", "± of it": ".1f", "warned": ".0f%"}
SHOWN |= {"fixed-s: coefficients": ".1f", "fixed-s: predictive": ".1f"}


def hidden(key: Key, relation: str) -> bool:
    """Whether the noise of J releases hides the residual variance (see above)."""
    law, _, holders, d, epsilon = key
    heavy = law == "heavy"
    spread = relation == "add-remove"
    if epsilon < 1:
        return (
            holders == 100
            or (holders == 10 and (heavy or spread))
            or (holders == 1 and heavy and spread)
        )
    return heavy and holders == 100 and epsilon == 1 and (spread or d <= FEW_COLUMNS)


def is_excepted(key: Key, asked: Asked) -> bool:
    """Whether a cell is a known exception."""
    return asked.visits == 1 and hidden(key, asked.relation)


def figures_of(ours: Tally, fixed: Tally) -> list[float]:
    """What the tables show of a cell or a margin, in per cent but for the fits and warnings."""
    coefficients = Share.of(ours.coefficients)
    predictive = Share.of(ours.predictive)
    return [
        len(ours.coefficients),
        100 * coefficients.value,
        100 * coefficients.error,
        100 * float(np.mean(ours.intercept)),
        100 * float(np.mean(ours.slopes)),
        100 * predictive.value,
        100 * predictive.error,
        float(np.mean(ours.warned)),
        100 * Share.of(fixed.coefficients).value,
        100 * Share.of(fixed.predictive).value,
    ]


def misses(ours: Tally, asked: Asked, *, excepted: bool = False) -> bool:
    """Whether the bar is missed; an excepted cell may be wide where it warns."""
    shares = [Share.of(ours.coefficients), Share.of(ours.predictive)]
    if not any(share.misses(asked.band) for share in shares):
        return False
    low = min(share.limits[1] for share in shares) < asked.band[0]
    return low or not excepted or warns_too_seldom(ours.warned)


def warns_too_seldom(warned: list[bool]) -> bool:
    """Whether so few warnings were next to impossible if `WARNED` of all summaries had one."""
    chance: float = stats.binom.cdf(sum(warned), len(warned), WARNED)
    return chance < (1 - CONFIDENCE) / 2


def together(cells: Cells, method: str) -> Tally:
    return Tally(
        *(
            list(itertools.chain(*(getattr(cell[method], name) for cell in cells.values())))
            for name in vars(Tally())
        )
    )


def show_cell(bench: Bench, table: Table, key: Key, cell: dict[str, Tally], asked: Asked) -> None:
    """One row of the cells' table, and its bar."""
    excepted = is_excepted(key, asked)
    missed = misses(cell[METHODS[0]], asked, excepted=excepted)
    notes = ["excepted"] if excepted else []
    table.row(
        *key,
        *figures_of(*(cell[method] for method in METHODS)),
        note=", ".join([*notes, *(["MISSED"] if missed else [])]),
    )
    told = ", ".join(f"{name} {value}" for name, value in zip(FACTORS, key, strict=True))
    bench.bar(told, met=not missed)


def show_margins(bench: Bench, cells: Cells, asked: Asked) -> None:
    """Every margin, without excepted cells, and its bar."""
    table = bench.table("margins", {"margin": "<22"} | SHOWN)
    kept = {key: cell for key, cell in cells.items() if not is_excepted(key, asked)}
    for places in (*((place,) for place in range(len(FACTORS))), (2, 4)):
        for level in dict.fromkeys(tuple(key[place] for place in places) for key in kept):
            chosen = {
                key: cell
                for key, cell in kept.items()
                if tuple(key[place] for place in places) == level
            }
            name = ", ".join(
                f"{FACTORS[place]} {value}" for place, value in zip(places, level, strict=True)
            )
            tallies = [together(chosen, method) for method in METHODS]
            table.row(name, *figures_of(*tallies))
            bench.bar(name, met=not misses(tallies[0], asked))
    table.row("all", *figures_of(*(together(kept, method) for method in METHODS)))


def designs(*, quick: bool) -> list[Design]:
    if quick:
        return [
            Design("normal", "equal", 1, 5),
            Design("heavy", "equal", 1, 10),
            Design("normal", "unequal", 10, 5),
            Design("heavy", "equal", 10, 10),
            Design("normal", "equal", 100, 2),
        ]
    places = itertools.product(
        ("normal", "heavy"), ("equal", "unequal"), (1, 10, 100), (2, 5, 10, 20)
    )
    return [Design(*place) for place in places if place[1:3] != ("unequal", 1)]


def main() -> None:
    bench = Bench(__doc__, quick="five designs, 12 runs each: under a minute")
    bench.option("--relation", choices=("replace-one", "add-remove"), default="replace-one")
    bench.option("--runs", type=float, default=1.0, help="multiplies the runs of every cell")
    bench.option(
        "--workers", type=int, default=1, help="processes; the figures do not depend on it"
    )
    bench.option("--visits", type=int, default=1)
    bench.option("--holders", type=int, nargs="+", default=[1, 10, 100])
    options = bench.options()
    asked = Asked(options.relation, options.visits)
    clamped = 0
    rows = 0
    cells: Cells = {}
    epsilons = [0.2, 1.0] if options.quick else [0.2, 1.0, 5.0]
    chosen = [one for one in designs(quick=options.quick) if one.holders in options.holders]
    runs = [12 if options.quick else max(2, round(options.runs * design.runs)) for design in chosen]
    forms = ("<9", "<9", "d", "d", "g")
    table = bench.table("cells", dict(zip(FACTORS, forms, strict=True)) | SHOWN)
    order = sorted(range(len(chosen)), key=lambda place: -chosen[place].cost)
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        begun = {
            place: pool.submit(measure, chosen[place], epsilons, asked, runs[place])
            for place in order
        }
        for place in range(len(chosen)):
            measured, diagnostics = begun[place].result()
            cells |= measured
            clamped += diagnostics.clamped["y"]
            rows += diagnostics.rows
            for key, cell in measured.items():
                show_cell(bench, table, key, cell, asked)
    show_margins(bench, cells, asked)
    bench.say(f"{options.relation}; responses clamped: {clamped / rows:.1e} of rows")
    bench.finish()


if __name__ == "__main__":
    main()
