"""Made rows of `families.py`: features of every kind, slopes, a constant for the rate, answers.

Features correlate (0.3) through a normal law that each is a function of, and x'β has a standard
deviation that is chosen. Rows are an Arrow table, so that a study reads them without turning every
level into text anew.
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from tacit.analyst.families.links import LINKS, Link
from tacit.study import Study

ROWS = 20_000
FEATURES = 6
CORRELATION = 0.3
DESIGNS = ("normal", "skewed", "binary", "mixed")
SHOWN = ("heavy", "heavy, log")
LOGNORMAL = 0.7
MOST_COUNT = 20
STEEPEST = 30.0
"""Largest constant of a truth, in log-odds."""
Array = np.ndarray


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
    def rows(self) -> "Cell":
        """What its rows are made for: cells that differ in ε alone, or in visits, share them."""
        return replace(self, epsilon=1.0, visits=1)

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


def drawn(cell: Cell, rng: np.random.Generator, rows: int) -> tuple[pa.Table, Array]:
    """Features as a table, and their columns as the truth is written in, (rows, p)."""
    common = rng.standard_normal((rows, 1))
    own = rng.standard_normal((rows, cell.features))
    normal = math.sqrt(CORRELATION) * common + math.sqrt(1 - CORRELATION) * own
    table: dict[str, pa.Array] = {}
    columns = []
    for k, feature in enumerate(features_of(cell)):
        values, added = _values(_kind(cell.design, k), feature, normal[:, k], k)
        table[f"x{k}"] = values
        columns += added
    return pa.table(table), np.column_stack(columns)


def _values(
    kind: str, feature: dict[str, object], normal: Array, k: int
) -> tuple[pa.Array, list[Array]]:
    if kind == "binary":
        levels = list(feature["levels"])  # type: ignore[call-overload]
        cuts = [ndtri(0.1 + 0.1 * k)] if len(levels) == 2 else ndtri([0.2, 0.5])
        codes = len(levels) - 1 - np.searchsorted(cuts, normal)
        chosen = pa.array(levels).take(pa.array(codes))
        return chosen, [(codes == j) * 1.0 for j in range(1, len(levels))]
    if kind == "normal":
        values = np.clip(normal, -4, 4)
        return pa.array(values), [values]
    if kind == "skewed":
        values = np.minimum(-np.log(ndtr(-normal)), 8.0)
        return pa.array(values), [values]
    values = np.exp(LOGNORMAL * np.clip(normal, -3.5, 3.5))
    return pa.array(values), [np.log(values) if kind == "heavy, log" else values]


def truth(cell: Cell, rng: np.random.Generator) -> Array:
    """Constant and slopes in the user's units."""
    _, x = drawn(cell, rng, ROWS)
    slopes = rng.uniform(0.5, 1.5, x.shape[1]) * rng.choice([-1, 1], x.shape[1]) / x.std(axis=0)
    slopes *= cell.strength / (x @ slopes).std()
    line = x @ slopes

    def excess(constant: float) -> float:
        return float(cell.link.mean(constant + line).mean()) - cell.rate

    return np.array([brentq(excess, -STEEPEST, STEEPEST), *slopes])


def answered(cell: Cell, rng: np.random.Generator, mean: Array) -> Array:
    """Responses with these means."""
    if cell.link.binary:
        return (rng.random(len(mean)) < mean) * 1.0
    return np.minimum(rng.poisson(mean), MOST_COUNT) * 1.0


@dataclass(frozen=True)
class Made:
    """The rows of one run, the truth that made them, and others from the same law."""

    beta: Array  # constant and slopes
    table: pa.Table  # with the response
    x: Array  # (rows, p + 1): with the constant's column
    y: Array
    new: Array  # (rows, p + 1)

    @classmethod
    def of(cls, cell: Cell, rng: np.random.Generator) -> "Made":
        """Rows for a cell."""
        beta = truth(cell, rng)
        table, x = drawn(cell, rng, ROWS)
        x = np.column_stack([np.ones(len(x)), x])
        y = answered(cell, rng, cell.link.mean(x @ beta))
        _, new = drawn(cell, rng, ROWS)
        return cls(
            beta=beta,
            table=table.append_column("y", pa.array(y)),
            x=x,
            y=y,
            new=np.column_stack([np.ones(len(new)), new]),
        )

    def parts(self, holders: int) -> list[pa.Table]:
        """The table, in so many parts of one size."""
        ends = np.linspace(0, len(self.y), holders + 1).astype(int)
        return [self.table.slice(low, high - low) for low, high in pairwise(ends)]
