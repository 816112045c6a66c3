"""Averaging against row scaling.

Skewed features, the same (ε, δ), groups of k = 1 (off), 4, 16 and 64 rows.

Averages of k rows are nearly normal, which `normal-x` assumes of features; the price is noise
(docs/privacy.md, "Averaging"). One holder has 100,000 rows of three lognormal features, whose
public range reaches far beyond what is typical, and a response with normal residuals. Rows are
shrunk at the default radius (*scaled*), or only where an entry could pass 4, the most that is
summed exactly (*long*: nearer to the 2023 paper's form, which shrinks none). Simulated noise, δ =
1e-6. Printed: for k = 1 the rms error of slopes in scaled units and the share of 90 % intervals
that hold the true slope; for larger k the error over that of k = 1 in the default form, and the
share.

Bars (--check): in no cell is averaging better than row scaling without it (rms error, three
standard errors of grace), and of the slopes' 90 % intervals at least 85 % hold the truth, with
three standard errors of grace, in every cell, both methods.

    python benchmarks/averaging.py [--quick] [--check] [--runs 12]
"""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
from frame import Bench

from tacit.analyst.collection import collect
from tacit.analyst.fit import fit
from tacit.analyst.methods.method import Settings
from tacit.analyst.posterior.units import user_units
from tacit.simulation import simulate
from tacit.study import Study

ROWS = 100_000
SLOPES = np.array([0.25, -0.15, 0.1])
RESIDUAL_SD = 0.5
LEAST_COVER, GRACE = 0.85, 3.0
RELATIONS = ("replace-one", "add-remove")
METHODS = ("noise-aware", "normal-x")
SHORT = Settings(chains=2, warmup=500, draws=500)

Row = tuple[str, str, float, str]
"""Relation, method, ε, form."""


@dataclass
class Cell:
    errors: list[float] = field(default_factory=list)  # of each run: mean square over slopes
    covered: list[float] = field(default_factory=list)  # of each run: share of slopes

    @property
    def error(self) -> float:
        return math.sqrt(float(np.mean(self.errors)))

    @property
    def cover(self) -> float:
        return float(np.mean(self.covered))

    @property
    def cover_error(self) -> float:
        """Standard error, never below that of one interval that misses."""
        runs = len(self.covered)
        return max(
            float(np.std(self.covered, ddof=1)), 1 / math.sqrt(len(SLOPES) * runs)
        ) / math.sqrt(runs)


def study_of(relation: str, epsilon: float, form: str, size: int) -> Study:
    features = [
        {"name": f"x{k}", "range": [0.0, 30.0], "typical": [0.0, 4.0]} for k in range(len(SLOPES))
    ]
    document = {
        "name": "averaging",
        "relation": relation,
        "epsilon": epsilon,
        "delta": 1e-6,
        "features": features,
    }
    document["response"] = {"name": "y", "range": [-6.0, 6.0]}
    release: dict[str, object] = {"average": size}
    if form == "long":
        release["row_radius"] = 4.0
    return Study.from_document(document | {"release": release})


def rows_of(run: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(run)
    x = rng.lognormal(0.0, 0.8, (ROWS, len(SLOPES)))
    y = 0.3 + x @ SLOPES + RESIDUAL_SD * rng.normal(size=ROWS)
    return {f"x{k}": x[:, k] for k in range(len(SLOPES))} | {"y": y}


def measure(row: Row, size: int, runs: int) -> Cell:
    relation, method, epsilon, form = row
    study, cell = study_of(relation, epsilon, form, size), Cell()
    units = user_units(study)
    scaled = np.linalg.solve(units.matrix, np.array([0.3, *SLOPES]) - units.offset)[1:]
    for run in range(runs):
        release = simulate(study, rows_of(run), np.random.default_rng([run, size]), holder="one")
        posterior = fit(collect(release, allow_simulated=True), method, settings=SHORT)
        low, high = posterior.interval(0.9, "scaled")[1:].T
        cell.errors.append(float(np.mean((posterior.mean("scaled")[1:] - scaled) ** 2)))
        cell.covered.append(float(np.mean((low <= scaled) & (scaled <= high))))
    return cell


def complaints(size: int, cell: Cell, reference: Cell) -> list[str]:
    missed = []
    ratio = math.sqrt(np.mean(cell.errors) / np.mean(reference.errors))
    doubt = GRACE * math.hypot(
        *(
            np.std(each.errors, ddof=1) / np.mean(each.errors) / 2 / math.sqrt(len(each.errors))
            for each in (cell, reference)
        )
    )
    if size > 1 and ratio * (1 + doubt) < 1:
        missed.append("averaging is better")
    if cell.cover + GRACE * cell.cover_error < LEAST_COVER:
        missed.append("covers too little")
    return missed


def main() -> None:
    bench = Bench(__doc__, quick="three runs, k = 1 and 16, epsilon 1, default form")
    bench.option("--runs", type=int, default=12)
    options = bench.options()
    runs = 3 if options.quick else options.runs
    sizes = (1, 16) if options.quick else (1, 4, 16, 64)
    epsilons = (1.0,) if options.quick else (1.0, 10.0)
    forms = ("scaled",) if options.quick else ("scaled", "long")
    columns = {"relation": "<13", "method": "<13", "epsilon": "g", "form": "<8"}
    columns |= {"rms error": ".4f", "covers": ".0f%"}
    for size in sizes[1:]:
        columns |= {f"k = {size}": ".1f", f"{size} covers": ".0f%"}
    table = bench.table("averaging", columns)
    for relation, method, epsilon in itertools.product(RELATIONS, METHODS, epsilons):
        reference = None
        for form in forms:
            row = relation, method, epsilon, form
            cells = {size: measure(row, size, runs) for size in sizes}
            reference = reference or cells[1]
            figures = [cells[1].error, cells[1].cover]
            for size in sizes[1:]:
                figures += [cells[size].error / reference.error, cells[size].cover]
            table.row(*row, *figures)
            for size, cell in cells.items():
                missed = complaints(size, cell, reference)
                told = f"{relation}, {method}, epsilon {epsilon:g}, {form}, k = {size}"
                bench.bar(": ".join([told, *missed]), met=not missed)
    bench.say(f"{runs} runs of {ROWS:,} rows")
    bench.finish()


if __name__ == "__main__":
    main()
