"""Several rows a person: does the claim hold, and do intervals?

*Attack.* An optimiser searches persons of 1 to 50 rows whose exchange (replace-one) or removal
(add-remove) moves the statistics most, through the real code, in every release form and at a later
visit, whose question maps rows first; then the same with rows that are not divided by √m. Bars:
never above the claim, 99 % of it reached in every form, and the undivided rows caught.

*Coverage.* 1,000 persons of 1, 5 or 50 rows, or of 1 to 50 unequally, whose residuals correlate by
ICC; one feature is the person's, one changes from row to row. Shares of 90 % intervals that hold
the truth, and how wide they are against what the estimates' own spread would need: at ICC 0 rows of
a person tell m times more than intervals assume, and `too wide` says what that costs. Bars: at each
ICC at least 88 %, and at ICC 1 at most 93 %, over all cells, of either feature. (One that changes
from row to row averages a common residual out: at ε = 10 alone it is covered more often, which
docs/accuracy.md, "Persons", explains.)

*Weights.* 4,000 rows of one person each with survey weights of 1 to 4, of 1 or 10, and of 10 where
a feature is positive and 1 elsewhere; the first with a bound of 10, as all others, and of 4. The
coefficients asked for are those of the best line for
rows weighted so, here the true line. A row's weight, over the largest, is at most 1, so that the
covariance that methods take is an upper bound again. Bar: at least 88 % at each budget.

    python benchmarks/persons.py [--quick] [--check] [--runs 100]

`--quick` tries six forms and four cells of 40 runs.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean

import numpy as np
from frame import Bench

sys.path.append(str(Path(__file__).parents[1] / "tests" / "privacy"))

from test_whole_persons import RELATIONS, attack, person_study, visit_of_persons

from tacit.analyst.collection import Collection
from tacit.analyst.fit import fit
from tacit.holder.division import Division
from tacit.simulation import simulate
from tacit.study import Study
from tacit.study.visits import statistics_form

PERSONS = 1000
THETA = np.array([0.1, 0.3, -0.2])
RESIDUAL_SD = 0.25
EPSILONS = (1.0, 10.0)
ICCS = (0.0, 0.2, 0.5, 0.8, 1.0)
SIZES = ("1", "5", "50", "1 to 50")
WEIGHTED_ROWS = 4000
WEIGHTS = {
    "1 to 4": lambda rng, own: rng.uniform(1, 4, len(own)),
    "1 or 10": lambda rng, own: rng.choice([1.0, 10.0], len(own)),
    "by feature": lambda _rng, own: np.where(own > 0, 10.0, 1.0),
}
"""Survey weights, by what they depend on."""
SURVEYS = (("1 to 4", 10.0), ("1 to 4", 4.0), ("1 or 10", 10.0), ("by feature", 10.0))
"""Weights, and the bound that the study states."""
NORMAL_90 = 3.2897
"""Width of a central 90 % interval in standard deviations."""


def main() -> None:
    bench = Bench(__doc__, quick="six forms, four cells of 40 runs")
    bench.option("--runs", type=int, default=100, help="runs of each cell")
    options = bench.options()
    attacked(bench, 3 if options.quick else 18)
    cells = [(icc, size, epsilon) for epsilon in EPSILONS for icc in ICCS for size in SIZES]
    if options.quick:
        cells = [(icc, size, 10.0) for icc in (0.0, 1.0) for size in ("5", "1 to 50")]
    covered(bench, cells, 40 if options.quick else options.runs)
    weighted(bench, 40 if options.quick else options.runs)
    bench.finish()


def attacked(bench: Bench, seeds: int) -> None:
    """The optimiser's best, as a share of the claim."""
    shape = {"relation": "<12", "of": "<14", "forms": "d", "least": ".3f%", "most": ".3f%"}
    table = bench.table("attack", shape)
    for relation in RELATIONS:
        for what, share in (("one visit", one_visit), ("a later visit", later_visit)):
            shares = [share(seed, relation) for seed in range(seeds)]
            table.row(relation, what, seeds, min(shares), max(shares))
            words = f"{relation}, {what}"
            bench.bar(f"{words}: never above the claim", met=max(shares) <= 1)
            bench.bar(f"{words}: at least 99 % of it reached", met=min(shares) >= 0.99)
            with undivided():
                caught = share(2, relation)
            bench.bar(f"{words}: rows that are not divided are caught", met=caught > 1)
            bench.say(f"{words}: rows that are not divided move {caught:.1f} times the claim")


def one_visit(seed: int, relation: str) -> float:
    """How much of its claim a release moves, in one of all forms."""
    study = person_study(seed, relation)
    return attack(study, np.random.default_rng(seed)) / study.form.sensitivity


def later_visit(seed: int, relation: str) -> float:
    """The same of an answer to a question."""
    study, question = visit_of_persons(seed, relation)
    moved = attack(study, np.random.default_rng(seed), question=question)
    return moved / statistics_form(study).sensitivity


@contextmanager
def undivided() -> Iterator[None]:
    """Rows of a person are not divided meanwhile."""
    honest = Division._factors  # noqa: SLF001
    Division._factors = lambda _self, rows: np.ones_like(rows)  # type: ignore[method-assign]  # noqa: SLF001
    try:
        yield
    finally:
        Division._factors = honest  # type: ignore[method-assign]  # noqa: SLF001


def study_of(epsilon: float, **fields: object) -> Study:
    """One feature of the person's, one of the row's."""
    return Study.from_document(
        {
            "name": "visits",
            "epsilon": epsilon,
            "delta": 1e-6,
            **fields,
            "response": {"name": "y", "range": [-2, 2]},
            "features": [{"name": name, "range": [-1, 1]} for name in ("own", "row")],
        }
    )


def visits(rng: np.random.Generator, icc: float, size: str) -> dict[str, np.ndarray]:
    """Rows of all persons."""
    counts = rng.integers(1, 51, PERSONS) if size == "1 to 50" else np.full(PERSONS, int(size))
    ids = np.repeat(np.arange(PERSONS), counts)
    own = rng.uniform(-1, 1, PERSONS)[ids]
    row = rng.uniform(-1, 1, len(ids))
    common = rng.standard_normal(PERSONS)[ids]
    residual = np.sqrt(icc) * common + np.sqrt(1 - icc) * rng.standard_normal(len(ids))
    y = THETA[0] + THETA[1] * own + THETA[2] * row + RESIDUAL_SD * residual
    return {"own": own, "row": row, "y": y, "id": ids}


def covered(bench: Bench, cells: list[tuple[float, str, float]], runs: int) -> None:
    """Coverage by cell, and the bars by ICC."""
    shape = {"ICC": ".1f", "rows": "<8", "epsilon": "g", "own": ".1f%", "row": ".1f%"}
    table = bench.table("coverage", shape | {"too wide, own": ".2f", "too wide, row": ".2f"})
    shares: dict[float, list[np.ndarray]] = {}
    for number, (icc, size, epsilon) in enumerate(cells):
        held, wide = repeated(
            study_of(epsilon, person="id"),
            [number],
            runs,
            lambda rng, icc=icc, size=size: visits(rng, icc, size),
        )
        table.row(icc, size, epsilon, held[1], held[2], wide[1], wide[2])
        shares.setdefault(icc, []).append(held)
    for icc, each in shares.items():
        own = mean(held[1] for held in each)
        row = mean(held[2] for held in each)
        least = min(own, row)
        bench.bar(f"ICC {icc:g}: coverage {least:.1%}, at least 88 %", met=least >= 0.88)
        if icc == 1:
            most = max(own, row)
            bench.bar(f"ICC 1: coverage {most:.1%}, at most 93 %", met=most <= 0.93)


def repeated(
    study: Study,
    seed: list[int],
    runs: int,
    rows: Callable[[np.random.Generator], dict[str, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray]:
    """Coverage of each coefficient, and width over what the estimates' spread would need."""
    inside = []
    means = []
    widths = []
    for run in range(runs):
        rng = np.random.default_rng([*seed, run])
        release = simulate(study, rows(rng), rng, holder="one")
        posterior = fit(Collection(study, (release,)))
        low, high = posterior.interval(0.9).T
        inside.append((low <= THETA) & (high >= THETA))
        means.append(posterior.mean())
        widths.append(high - low)
    spread = np.std(means, axis=0)
    return np.mean(inside, axis=0), np.mean(widths, axis=0) / (NORMAL_90 * spread)


def survey(rng: np.random.Generator, law: str) -> dict[str, np.ndarray]:
    """Rows with their weights."""
    own, row = rng.uniform(-1, 1, (2, WEIGHTED_ROWS))
    residual = RESIDUAL_SD * rng.standard_normal(WEIGHTED_ROWS)
    y = THETA[0] + THETA[1] * own + THETA[2] * row + residual
    return {"own": own, "row": row, "y": y, "share": WEIGHTS[law](rng, own)}


def weighted(bench: Bench, runs: int) -> None:
    """Coverage with survey weights, and the bars by budget."""
    shape = {"weights": "<10", "bound": "g", "epsilon": "g", "own": ".1f%", "row": ".1f%"}
    table = bench.table("weights", shape | {"too wide, own": ".2f", "too wide, row": ".2f"})
    for epsilon in EPSILONS:
        shares = []
        for number, (law, most) in enumerate(SURVEYS):
            study = study_of(epsilon, weight={"column": "share", "most": most})
            held, wide = repeated(
                study, [1000, number], runs, lambda rng, law=law: survey(rng, law)
            )
            table.row(law, most, epsilon, held[1], held[2], wide[1], wide[2])
            shares.append(held[1:].mean())
        bench.bar(
            f"weights, epsilon {epsilon:g}: coverage {mean(shares):.1%}, at least 88 %",
            met=mean(shares) >= 0.88,
        )


if __name__ == "__main__":
    main()
