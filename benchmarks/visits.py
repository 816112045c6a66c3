"""Several visits on real tables: how much of the gap to least squares they close.

Every file NAME.csv or NAME.csv.gz of DIR/real, or of DIR where there is no such folder, is a table
of numbers without a header, response last. Public ranges are those of the data. A run trains on
80 % of the rows, drawn anew, and takes R² on the rest; printed are medians over runs, and their
means over tables. δ = 1e-6, replace-one, rows planned, everything else at its defaults.

Gap: what visits gain over one visit of a study that plans no rows, over what least squares gains
over it. That is the reference: one visit as it was before studies planned rows and had several
visits. It releases what that did, number for number, and today's fit reads it. Beside it stands the
gap from one visit of planned rows, which is what a user would choose otherwise.

Bars (--check): one holder closes 75 % of the gap at ε = 1 and half of it at ε = 0.3 and 3, ten
separate holders half of it at ε = 1; no table loses over .01 of R² against one visit of planned
rows.

    python benchmarks/visits.py --data DIR [--runs 25] [--visits 10] [--processes N] [--quick]
                                [--check]
"""

import os
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from frame import Bench
from public_tables import Population, load

from tacit.analyst.collection import collect
from tacit.analyst.fit import fit
from tacit.simulation import simulate, simulate_visits
from tacit.study import Study

CELLS = {(1, 0.3): 0.5, (1, 1.0): 0.75, (1, 3.0): 0.5, (10, 1.0): 0.5}
"""Holders and ε, and the share of the gap that is to be closed."""
WORSE = 0.01


def study_of(population: Population, rows: list[int], epsilon: float, visits: int) -> Study:
    document = population.study("ranges", epsilon, rows).document()
    return Study.from_document(document | {"visits": visits, "release": {}})


def unplanned(study: Study) -> Study:
    """The same in one visit, without a number of rows."""
    document = study.document()
    del document["planned_rows"]
    return Study.from_document(document | {"visits": 1, "release": {}})


def estimate(study: Study, parts: list[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Posterior mean from what holders of these parts release."""
    if study.visit_count == 1 or len(parts) == 1:
        releases = [simulate(study, part, rng, holder=f"h{j}") for j, part in enumerate(parts)]
    else:
        releases = simulate_visits(study, parts, rng)
    return fit(collect(releases, allow_simulated=True)).mean()


def one_run(
    visits: int, population: Population, holders: int, epsilon: float, seed: int
) -> list[float]:
    """R² of least squares, of one visit, of several, and of one without planned rows."""
    rng = np.random.default_rng([seed, holders, round(10 * epsilon)])
    order = rng.permutation(population.n)
    cut = 4 * population.n // 5
    table = np.column_stack([population.x, population.y])
    train = table[order[:cut]]
    test = order[cut:]
    design = population.design[test]
    y = population.y[test]
    parts = np.array_split(train, holders)
    rows = [len(part) for part in parts]
    least = np.linalg.lstsq(
        np.column_stack([np.ones(cut), train[:, :-1]]), train[:, -1], rcond=None
    )[0]
    studies = [study_of(population, rows, epsilon, count) for count in (1, visits)]
    studies.append(unplanned(studies[0]))
    lines = [least, *(estimate(study, parts, rng) for study in studies)]
    return [float(1 - np.mean((y - design @ line) ** 2) / np.var(y)) for line in lines]


def main() -> None:
    bench = Bench(__doc__, quick="three runs, tables of at most 2,000 rows, one holder")
    bench.option("--data", type=Path, required=True, help="the folder of the tables")
    bench.option("--runs", type=int, default=25)
    bench.option("--visits", type=int, default=10)
    bench.option("--processes", type=int, default=os.cpu_count())
    options = bench.options()
    folder = options.data / "real" if (options.data / "real").is_dir() else options.data
    paths = sorted(folder.glob("*.csv")) + sorted(folder.glob("*.csv.gz"))
    populations = [load(path) for path in paths]
    runs = options.runs
    cells = dict(CELLS)
    if options.quick:
        runs = 3
        populations = [each for each in populations if each.n <= 2000]
        del cells[10, 1.0]
    columns = {"table": "<14", "J": "d", "ε": "g", "least squares": ".3f"}
    columns |= {"one visit": ".3f", "visits": ".3f", "rows not planned": ".3f"}
    closing = {"gap closed": ".0f%", "closed from one visit": ".0f%"}
    table = bench.table("visits", columns | closing)
    os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")  # of children
    jobs = [(each, *cell, seed) for cell in cells for each in populations for seed in range(runs)]
    with get_context("spawn").Pool(options.processes) as pool:
        drawn = pool.starmap(partial(one_run, options.visits), jobs, chunksize=1)
    scores = np.reshape(drawn, (len(cells), len(populations), runs, 4))
    for ((holders, epsilon), bar), by_table in zip(cells.items(), scores, strict=True):
        medians = np.median(by_table, axis=1)
        for each, row in zip(populations, medians, strict=True):
            table.row(each.name, holders, epsilon, *map(float, row), None, None)
        means = np.mean(medians, axis=0).tolist()
        least, one, several, first = means
        closed = (several - first) / (least - first)
        further = (several - one) / (least - one)
        table.row("mean", holders, epsilon, *means, closed, further)
        bench.bar(f"J = {holders}, ε = {epsilon:g}: {bar:.0%} of the gap", met=closed >= bar)
        worst = min(float(row[2] - row[1]) for row in medians)
        bench.bar(f"J = {holders}, ε = {epsilon:g}: none worse by .01", met=worst >= -WORSE)
    bench.finish()


if __name__ == "__main__":
    main()
