"""Misled visits: a wrong first answer costs accuracy, never coverage.

What a later question asks is made of noisy answers, so it may be wrong, by chance or by whoever
makes it. Here the first correction of a study of several visits is made wrong on purpose, and what
follows is made of the answers to it, as ever; how often do 90 % intervals hold the coefficients
that rows were made with?

- `honest`: nothing is done to it.
- `offset k`: θ₁ is off by k residual sds, in the mean square over rows, in a random direction of
  all columns, the intercept's among them.
- `map`: the map is made of a Gram matrix with symmetric noise of half its size on every entry:
  eigenvalues as small as a tenth and as large as twice what they are taken for.
- `both`: a map of that kind and an offset that is off by two sds.
- `outlying`: one of ten holders has another line: its intercept is three residual sds higher and
  its slopes have the other sign. The coefficients asked for are those of the nine.
- `shouting`: one of ten holders has responses at the upper end of the range in every row.

Rows: four slopes, correlated features that fill a tenth of their ranges, R² about 0.6; 5,000 rows
for one holder, 2,000 for each of ten; δ = 1e-6, replace-one, seeded noise. Widths are medians over
slopes and runs, over those of `honest` in the same runs.

Bar (--check): at least 87 % in every cell. A cell is run in lots of 20 until what it holds is more
than two standard errors from that, 100 runs at most: intervals that hold 85 % then pass in one of
eight cells, with 100 runs at once in one of nine.

    python benchmarks/misled.py [--runs 100] [--workers N] [--quick] [--check]
"""

import os
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
from frame import Bench

from tacit.analyst.collection import collect
from tacit.analyst.fit import fit
from tacit.holder.charge import Purpose
from tacit.holder.visits import Message, read_table, said
from tacit.release import Release
from tacit.release.question import Question
from tacit.simulation import seeded
from tacit.study import Study
from tacit.study.visits import has_places
from tacit.visits.ask import next_question

SLOPES = np.array([0.3, -0.2, 0.1, 0.25])
INTERCEPT = 0.1
RESIDUAL = 0.15
RANGE = 3.0
"""Half the response's range, so that residuals have an sd of a twentieth of it."""
LEAST = 0.87
LOT = 20
"""Runs of a cell after each of which it is asked whether more are needed."""
SURE = 2.0
"""Standard errors from the bar at which they are not."""
ALONE_ROWS = 5000
TOGETHER_ROWS = 2000
HOLDERS = 10
NOISE = 0.5
"""Noise on every entry of the Gram matrix that a misleading map is made of, over its size."""

Mislead = Callable[[Question, np.random.Generator], Question]


def study_of(holders: int, visits: int, epsilon: float) -> Study:
    rows = ALONE_ROWS if holders == 1 else TOGETHER_ROWS
    return Study.from_document(
        {
            "name": "misled",
            "epsilon": epsilon,
            "delta": 1e-6,
            "response": {"name": "y", "range": [-RANGE, RANGE]},
            "features": [{"name": f"x{k}", "range": [-4.0, 4.0]} for k in range(len(SLOPES))],
            "planned_rows": [rows] * holders,
            "visits": visits,
        }
    )


def table_of(rng: np.random.Generator, n: int, kind: str = "plain") -> np.ndarray:
    """Rows of one holder: features, then the response."""
    common = rng.normal(size=(n, 1))
    x = 0.3 * (0.8 * rng.normal(size=(n, len(SLOPES))) + 0.6 * common)
    noise = rng.normal(0, RESIDUAL, n)
    y = INTERCEPT + x @ SLOPES + noise
    if kind == "outlying":
        y = INTERCEPT + 3 * RESIDUAL - x @ SLOPES + noise
    if kind == "shouting":
        y = np.full(n, RANGE)
    return np.column_stack([x, y])


# Questions that mislead.


def off_by(sds: float) -> Mislead:
    """Moves the offset; mapped columns are about orthonormal, so b of length k moves lines by k."""

    def mislead(question: Question, rng: np.random.Generator) -> Question:
        away = rng.normal(size=len(question.offset))
        away *= sds * RESIDUAL / RANGE / np.linalg.norm(away)
        start = question.start + question.matrix @ away
        return question.model_copy(update={"offset": tuple(start.tolist())})

    return mislead


def noisy_map(question: Question, rng: np.random.Generator) -> Question:
    """Replaces the map by one of a Gram matrix that noise hides half of."""
    d = len(question.offset)
    noise = rng.normal(0, NOISE, (d, d))
    values, vectors = np.linalg.eigh(np.eye(d) + (noise + noise.T) / np.sqrt(2) / 2)
    root = (vectors / np.sqrt(np.maximum(values, 0.1))) @ vectors.T
    matrix = question.matrix @ root
    return question.model_copy(update={"map": tuple(map(tuple, matrix.tolist()))})


def both(question: Question, rng: np.random.Generator) -> Question:
    """A noisy map, and an offset that is off by two sds."""
    return noisy_map(off_by(2.0)(question, rng), rng)


def honest(question: Question, _rng: np.random.Generator) -> Question:
    """Nothing is done to it."""
    return question


MISLED: dict[str, Mislead] = {
    "honest": honest,
    "offset 2": off_by(2.0),
    "offset 4": off_by(4.0),
    "map": noisy_map,
    "both": both,
}


def talk(
    study: Study, tables: list[np.ndarray], rng: np.random.Generator, mislead: Mislead
) -> list[Release]:
    """All visits, the first correction's question made wrong; those after follow from answers."""
    sampler = seeded(rng)
    messages: list[Message] = []
    question = None if has_places(study) else next_question(study, [])
    while True:
        before = messages or [None] * len(tables)
        messages = [
            said(
                study,
                read_table(study, table, question),
                question,
                before=before[j],
                purpose=Purpose(f"holder {j}", "simulated"),
                sampler=sampler,
            )
            for j, table in enumerate(tables)
        ]
        asked = 1 if question is None else question.visit
        if asked == study.visit_count:
            return [message for message in messages if isinstance(message, Release)]
        question = next_question(study, messages)
        if question.visit == 2 + has_places(study):
            question = mislead(question, rng)


# Cells.


@dataclass(frozen=True)
class Cell:
    """Who is misled by what, in how many visits, at which ε."""

    way: str
    holders: int
    visits: int
    epsilon: float

    def run(self, seed: int) -> tuple[float, float]:
        """Share of the coefficients that their intervals hold, and the slopes' median width."""
        rng = np.random.default_rng([seed, self.holders, self.visits])
        study = study_of(self.holders, self.visits, self.epsilon)
        rows = study.planned_rows[0]
        kinds = ["plain"] * self.holders
        if self.way in {"outlying", "shouting"}:
            kinds[0] = self.way
        tables = [table_of(rng, rows, kind) for kind in kinds]
        releases = talk(study, tables, rng, MISLED.get(self.way, honest))
        low, high = fit(collect(releases, allow_simulated=True)).interval(0.9).T
        truth = np.array([INTERCEPT, *SLOPES])
        return float(np.mean((low <= truth) & (truth <= high))), float(np.median(high - low))


def cells(*, quick: bool) -> list[Cell]:
    """Every cell; ten holders can only be misled together, or by one of them."""
    alone = [
        Cell(way, 1, visits, epsilon)
        for epsilon in ((1.0,) if quick else (0.3, 1.0, 3.0))
        for visits in (3, 10)
        for way in MISLED
    ]
    together = [
        Cell(way, HOLDERS, visits, epsilon)
        for epsilon in ((1.0,) if quick else (1.0, 3.0))
        for visits in ((3,) if quick else (3, 10))
        for way in ("honest", "offset 4", "both", "outlying", "shouting")
    ]
    return alone + together


class Runs(NamedTuple):
    """What the runs of a cell gave, in the order of their seeds."""

    held: np.ndarray  # shares of the coefficients
    widths: np.ndarray

    @property
    def share(self) -> float:
        return float(np.mean(self.held))

    @property
    def error(self) -> float:
        return float(np.std(self.held) / np.sqrt(len(self.held)))


def run_until_sure(cell: Cell, pool: Executor, most: int) -> Runs:
    """Lot after lot, until the share held is far from the bar."""
    results: list[tuple[float, float]] = []
    while True:
        seeds = range(len(results), min(len(results) + LOT, most))
        results += pool.map(cell.run, seeds)
        runs = Runs(*np.array(results).T)
        if len(results) >= most or abs(runs.share - LEAST) > SURE * runs.error:
            return runs


def main() -> None:
    bench = Bench(__doc__, quick="10 runs at epsilon = 1")
    bench.option("--runs", type=int, default=100)
    bench.option("--workers", type=int, default=os.cpu_count())
    options = bench.options()
    most = 10 if options.quick else options.runs
    heads = {"misled by": "<12", "holders": "d", "visits": "d", "ε": "g", "runs": "d"}
    table = bench.table("shares", heads | {"held": ".1f%", "±": ".1f%", "width": ".2f"})
    usual: dict[tuple[int, int, float], np.ndarray] = {}
    os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")  # of children
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for cell in cells(quick=options.quick):
            runs = run_until_sure(cell, pool, most)
            place = (cell.holders, cell.visits, cell.epsilon)
            widths = usual.setdefault(place, runs.widths)
            same = min(len(widths), len(runs.widths))
            ratio = np.median(runs.widths[:same]) / np.median(widths[:same])
            counts = (len(runs.held), runs.share, runs.error, float(ratio))
            table.row(cell.way, *place, *counts)
            bench.bar(
                f"{cell.way}, {cell.holders} holders, {cell.visits} visits, epsilon "
                f"{cell.epsilon:g}: {runs.share:.1%} held",
                met=runs.share >= LEAST,
            )
    bench.finish()


if __name__ == "__main__":
    main()
