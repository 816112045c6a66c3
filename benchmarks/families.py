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

Floor: what the best reading without bias loses by the noise alone (`noise_alone`). A reading with a
prior may lose a little less, as ours does where noise is large.

Visits: the same studies with several, of which no floor is known.

Bars (--check): at ε = 1, J = 1 at most 0.5 % lost on `normal` and 1.5 % on `skewed`, `binary` and
`mixed`, for rates of 5 to 95 %; where the floor is above that, no more than 1.2 times the floor
(its 99 % limits); slopes within 3 % at ε = 100; coverage of every cell 87 to 93 % for
rates of 5 to 95 %, of probit and Poisson too (missed when its 99 % limits leave the band out: one
cell in a hundred that is at the band's edge); a fit under a second of one core's time.

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
import pyarrow as pa
from frame import Bench
from scipy import stats
from scipy.special import ndtr, ndtri

from tacit.analyst.collection import collect
from tacit.analyst.families.links import LINKS, Link
from tacit.analyst.fit import fit
from tacit.analyst.posterior.posterior import Posterior
from tacit.rows.design import Design
from tacit.simulation import simulate, simulate_visits
from tacit.study import Study

ROWS = 20_000
FEATURES = 6
CORRELATION = 0.3
BAND = (0.87, 0.93)
CONFIDENCE = 0.99
RATES = (0.05, 0.2, 0.5, 0.8, 0.95)
DESIGNS = ("normal", "skewed", "binary", "mixed")
SHOWN = ("heavy", "heavy, log")
MOST_LOST = {"normal": 0.005, "skewed": 0.015, "binary": 0.015, "mixed": 0.015}
NEAR_FLOOR = 1.2
"""Loss over what noise alone costs, up to which it is as little as noise allows."""
MOST_BIAS = 0.03
LOGNORMAL = 0.7
MOST_COUNT = 20
MOST_SECONDS = 1.0
Rows = dict[str, np.ndarray]


@dataclass(frozen=True)
class Cell:
    """What is measured together."""

    design: str
    rate: float
    epsilon: float
    holders: int = 1
    family: str = "logistic"
    strength: float = 1.0
    features: int = FEATURES
    visits: int = 1

    @property
    def link(self) -> Link:
        return LINKS[self.family]

    @property
    def is_whole_bar(self) -> bool:
        """Whether the bar of losses stands for it."""
        usual = self.family == "logistic" and self.epsilon == 1 and self.features == FEATURES
        return usual and self.holders == 1 and self.visits == 1


def features_of(cell: Cell) -> list[dict[str, object]]:
    """The study's features."""
    return [_feature(cell.design, k) for k in range(cell.features)]


def _kind(design: str, k: int) -> str:
    return ("normal", "skewed", "binary")[k % 3] if design == "mixed" else design


def _feature(design: str, k: int) -> dict[str, object]:
    kind = _kind(design, k)
    if kind == "binary":
        levels = ["a", "b", "c"] if design == "mixed" and k > 2 else ["a", "b"]
        return {"name": f"x{k}", "levels": levels}
    high = {"normal": 4.0, "skewed": 8.0}.get(kind, math.exp(3.5 * LOGNORMAL))
    low = {"normal": -4.0, "heavy, log": math.exp(-3.5 * LOGNORMAL)}.get(kind, 0.0)
    return {"name": f"x{k}", "range": [low, high]}


def study_of(cell: Cell) -> Study:
    top = 1.0 if cell.link.binary else float(MOST_COUNT)
    terms = []
    if cell.design == "heavy, log":
        terms = [{"product": [{"of": f"x{k}", "function": "log"}]} for k in range(cell.features)]
    return Study.from_document(
        {
            "name": "families",
            "epsilon": cell.epsilon,
            "delta": 1e-6,
            "response": {"name": "y", "range": [0, top]},
            "features": features_of(cell),
            "terms": terms,
        }
        | planned_of(cell)
    )


def planned_of(cell: Cell) -> dict[str, object]:
    """Planned rows and visits, where these are several."""
    if cell.visits == 1:
        return {}
    return {"planned_rows": [ROWS // cell.holders] * cell.holders, "visits": cell.visits}


def drawn(cell: Cell, rng: np.random.Generator, rows: int) -> tuple[Rows, np.ndarray]:
    """Features as a table, and their columns as the truth is written in, (rows, p)."""
    common = rng.standard_normal((rows, 1))
    own = rng.standard_normal((rows, cell.features))
    normal = math.sqrt(CORRELATION) * common + math.sqrt(1 - CORRELATION) * own
    table: Rows = {}
    columns = []
    for k, feature in enumerate(features_of(cell)):
        values, added = _values(_kind(cell.design, k), feature, normal[:, k], k)
        table[f"x{k}"] = values
        columns += added
    return table, np.column_stack(columns)


def _values(
    kind: str, feature: dict[str, object], normal: np.ndarray, k: int
) -> tuple[np.ndarray, list[np.ndarray]]:
    if kind == "binary":
        levels = list(feature["levels"])  # type: ignore[call-overload]
        cuts = [ndtri(0.1 + 0.1 * k)] if len(levels) == 2 else ndtri([0.2, 0.5])
        codes = len(levels) - 1 - np.searchsorted(cuts, normal)
        return np.array(levels)[codes], [(codes == j) * 1.0 for j in range(1, len(levels))]
    if kind == "normal":
        values = np.clip(normal, -4, 4)
        return values, [values]
    if kind == "skewed":
        values = np.minimum(-np.log(ndtr(-normal)), 8.0)
        return values, [values]
    values = np.exp(LOGNORMAL * np.clip(normal, -3.5, 3.5))
    return values, [np.log(values) if kind == "heavy, log" else values]


def truth(cell: Cell, rng: np.random.Generator) -> np.ndarray:
    """Constant and slopes in the user's units."""
    _, x = drawn(cell, rng, ROWS)
    slopes = rng.uniform(0.5, 1.5, x.shape[1]) * rng.choice([-1, 1], x.shape[1]) / x.std(axis=0)
    slopes *= cell.strength / (x @ slopes).std()
    low, high = -30.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high)
            if cell.link.mean(middle + x @ slopes).mean() < cell.rate
            else (low, middle)
        )
    return np.array([low, *slopes])


def answered(cell: Cell, rng: np.random.Generator, mean: np.ndarray) -> np.ndarray:
    if cell.link.binary:
        return (rng.random(len(mean)) < mean) * 1.0
    return np.minimum(rng.poisson(mean), MOST_COUNT) * 1.0


def posterior_of(cell: Cell, study: Study, table: Rows, rng: np.random.Generator) -> Posterior:
    parts = np.array_split(np.arange(len(table["y"])), cell.holders)
    tables = [{name: v[part] for name, v in table.items()} for part in parts]
    if cell.visits > 1:
        releases = simulate_visits(study, tables, rng)
    else:
        releases = [simulate(study, each, rng, holder=f"h{k}") for k, each in enumerate(tables)]
    return fit(collect(releases, allow_simulated=True), family=cell.family)  # type: ignore[arg-type]


def regression(link: Link, x: np.ndarray, y: np.ndarray) -> np.ndarray:
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


def loss(link: Link, mean: np.ndarray, told: np.ndarray) -> float:
    """Expected loss of told means where `mean` is the truth."""
    if link.binary:
        told = np.clip(told, 1e-12, 1 - 1e-12)
        return float(-np.mean(mean * np.log(told) + (1 - mean) * np.log1p(-told)))
    return float(np.mean(told - mean * np.log(told)))


def run(cell: Cell, seed: int) -> dict[str, object]:
    """One table, its releases, and what their fit says."""
    place = [*DESIGNS, *SHOWN].index(cell.design)
    rng = np.random.default_rng([seed, place, round(1000 * cell.rate), cell.holders])
    beta = truth(cell, rng)
    table, x = drawn(cell, rng, ROWS)
    x = np.column_stack([np.ones(len(x)), x])
    table["y"] = answered(cell, rng, cell.link.mean(x @ beta))
    study = study_of(cell)
    posterior = posterior_of(cell, study, table, rng)
    told = posterior.mean()
    low, high = posterior.interval(0.9).T
    _, new = drawn(cell, rng, ROWS)
    new = np.column_stack([np.ones(len(new)), new])
    link = cell.link
    mean = link.mean(new @ beta)
    exact = regression(link, x, table["y"])
    base = loss(link, mean, np.full(len(new), table["y"].mean()))
    best = loss(link, mean, link.mean(new @ exact))
    ours = loss(link, mean, link.mean(new @ told))
    spread = np.cov(x[:, 1:], rowvar=False)
    floor = noise_alone(cell, study, table, x, beta) if cell.visits == 1 else math.nan
    return {
        "lost": (ours - best) / (base - best),
        "noise": floor / (base - best),
        "along": float(told[1:] @ spread @ beta[1:] / (beta[1:] @ spread @ beta[1:]) - 1),
        "errors": (told[1:] - beta[1:]) * np.sign(beta[1:]) / np.sqrt(np.mean(beta[1:] ** 2)),
        "hits": ((low <= beta) & (beta <= high)).astype(float),
        "width": float(np.mean((high - low)[1:] / np.abs(beta[1:]))),
        "cautions": bool(posterior.caveat),
    }


def noise_alone(cell: Cell, study: Study, table: Rows, x: np.ndarray, beta: np.ndarray) -> float:
    """Loss by the noise alone, of the best reading without bias of such releases.

    What a release tells of β beyond sampling is ẑ = Sb + noise with Ŝ = S + M, b the straight line
    through g(x'β) and S anything: ẑ − Ŝb has the variance Ω = σ_z²I + σ_s²(‖b‖²I + bb')/2 for each
    holder, so that no reading without bias has less than K⁻¹ΩK⁻¹ (Cramér and Rao), K = Σα²g'xx'
    over the response's half range. That costs ½ tr(I K⁻¹ΩK⁻¹), I being the information of a row.
    """
    features = {name: values for name, values in table.items() if name != "y"}
    batch = pa.RecordBatch.from_pydict(features)
    rows = np.hstack(list(Design(study, response=False).blocks(batch, len(x))))
    mean = cell.link.mean(x @ beta)
    slopes = cell.link.slope(x @ beta)
    centre, half = study.response.mapping
    shrunk = rows * np.minimum(1.0, study.row_radius**2 / np.sum(rows**2, axis=0))
    line = np.linalg.solve(shrunk @ rows.T, shrunk @ ((mean - centre) / half))
    noise = study.mechanism().noise
    identity = np.eye(len(rows))
    unsure = noise.xtx_diagonal**2 / 2 * (line @ line * identity + np.outer(line, line))
    spread = cell.holders * (noise.xty**2 * identity + unsure)
    inverse = np.linalg.inv((shrunk * slopes) @ rows.T / half)
    information = (rows * (slopes**2 / cell.link.variance(mean))) @ rows.T / len(x)
    return float(np.trace(information @ inverse @ spread @ inverse)) / 2


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


def judge(bench: Bench, cell: Cell, outcomes: list[dict[str, object]]) -> tuple[object, ...]:
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
        if floor <= most:
            bench.bar(f"{words}: at most {100 * most:g} % lost", met=lost <= most)
        else:
            name = f"{words}: as little lost as noise allows, {100 * floor:.2f} %"
            least, _ = limits([float(outcome["lost"]) for outcome in outcomes])  # type: ignore[arg-type]
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
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for cell in cells_of(quick=quick):
            outcomes = list(pool.map(partial(run, cell), range(runs), chunksize=4))
            table.row(*judge(bench, cell, outcomes))


def timed(bench: Bench) -> None:
    """A fit at d = 20, J = 10."""
    cell = Cell("mixed", 0.3, 1.0, 10, features=15)
    rng = np.random.default_rng(0)
    table, x = drawn(cell, rng, ROWS)
    table["y"] = answered(cell, rng, np.full(len(x), 0.3))
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        posterior = posterior_of(cell, study_of(cell), table, rng)
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
