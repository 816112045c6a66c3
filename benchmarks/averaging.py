"""Averaging against row scaling: skewed features, the same (ε, δ), groups of k = 1 (off), 4, 16 and 64 rows.

Averages of k rows are nearly normal, which `normal-x` assumes of features; the price is noise (docs/privacy.md, "Averaging"). One
holder has 100,000 rows of three lognormal features, whose public range reaches far beyond what is typical, and a response with normal
residuals. Rows are shrunk at the default radius (*scaled*), or only where an entry could pass 4, the most that is summed exactly (*long*:
nearer to the 2023 paper's form, which shrinks none). Simulated noise, δ = 1e-6. Per cell: sd of the noise on X'X, rms error of slopes in
scaled units, the same over that of k = 1 in the default form, and the share of 90 % intervals that hold the true slope.

Bars (--check): in no cell is averaging better than row scaling without it (rms error, three standard errors of grace), and of the slopes'
90 % intervals at least 85 % hold the truth, with three standard errors of grace, in every cell, both methods.

    python benchmarks/averaging.py [--quick] [--check] [--runs 12]
"""

import argparse
import math
import sys
import time
from dataclasses import dataclass, field

import numpy as np

from tacit.analyst.collection import collect
from tacit.analyst.fit import fit
from tacit.analyst.method import Settings
from tacit.analyst.units import user_units
from tacit.simulation import simulate
from tacit.study import Study

ROWS = 100_000
SLOPES = np.array([0.25, -0.15, 0.1])
RESIDUAL_SD = 0.5
LEAST_COVER, GRACE = 0.85, 3.0
METHODS = ("noise-aware", "normal-x")
SHORT = Settings(chains=2, warmup=500, draws=500)

Key = tuple[str, str, float, str, int]
"""Relation, method, ε, form, k."""


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
        return max(float(np.std(self.covered, ddof=1)), 1 / math.sqrt(len(SLOPES) * runs)) / math.sqrt(runs)


def study_of(relation: str, epsilon: float, form: str, size: int) -> Study:
    features = [{"name": f"x{k}", "range": [0.0, 30.0], "typical": [0.0, 4.0]} for k in range(len(SLOPES))]
    document = {"name": "averaging", "relation": relation, "epsilon": epsilon, "delta": 1e-6, "features": features}
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


def measure(key: Key, runs: int) -> Cell:
    relation, method, epsilon, form, size = key
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


def complaints(key: Key, cell: Cell, reference: Cell) -> list[str]:
    found = []
    ratio = math.sqrt(np.mean(cell.errors) / np.mean(reference.errors))
    doubt = GRACE * math.hypot(
        *(np.std(each.errors, ddof=1) / np.mean(each.errors) / 2 / math.sqrt(len(each.errors)) for each in (cell, reference))
    )
    if key[-1] > 1 and ratio * (1 + doubt) < 1:
        found.append("averaging is better")
    if cell.cover + GRACE * cell.cover_error < LEAST_COVER:
        found.append("covers too little")
    return found


def line_of(key: Key, cell: Cell, reference: Cell) -> str:
    relation, method, epsilon, form, size = key
    noise = study_of(relation, epsilon, form, size).mechanism().scales.xtx_diagonal
    line = f"{relation:<13}{method:<13}{epsilon:>7g}  {form:<7}{size:>4}{noise:>9.1f}{cell.error:>11.4f}"
    return line + f"{cell.error / reference.error:>9.2f}{100 * cell.cover:>9.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three runs, k = 1 and 16, epsilon 1, default form: under a minute")
    parser.add_argument("--check", action="store_true", help="exit 1 when a bar is missed")
    parser.add_argument("--runs", type=int, default=12)
    options = parser.parse_args()
    runs = 3 if options.quick else options.runs
    sizes, epsilons, forms = ((1, 16), (1.0,), ("scaled",)) if options.quick else ((1, 4, 16, 64), (1.0, 10.0), ("scaled", "long"))
    start, lines, met = time.perf_counter(), [], True
    for relation in ("replace-one", "add-remove"):
        for method in METHODS:
            for epsilon in epsilons:
                cells: dict[tuple[str, int], Cell] = {}
                for form in forms:
                    for size in sizes:
                        key = relation, method, epsilon, form, size
                        cell = cells[form, size] = measure(key, runs)
                        missed = complaints(key, cell, cells["scaled", 1])
                        met &= not missed
                        lines.append(line_of(key, cell, cells["scaled", 1]) + "".join(f"  MISSED: {each}" for each in missed))
                        print(lines[-1], flush=True)
    print(f"\n{runs} runs of {ROWS:,} rows, {time.perf_counter() - start:.0f} s")
    print(f"{'relation':<13}{'method':<13}{'epsilon':>7}  {'form':<7}{'k':>4}{'noise':>9}{'rms error':>11}{'over 1':>9}{'cover %':>9}")
    print("\n".join(lines))
    print("bars met" if met else "bars missed")
    sys.exit(0 if met or not options.check else 1)


if __name__ == "__main__":
    main()
