r"""How far one row can move the statistics: the exact L2 sensitivity, per neighbouring relation.

A row (x, y) with ‖x‖ ≤ X and |y| ≤ Y contributes the vector

    t(x, y) = (x x', w·y x, v·y², k·1, e·λ_min)        x x' measured in Frobenius norm,

whose weights say how the budget is split over the parts: `response` w, `square` v (0 when y'y is not
published), `count` k and `eigenvalue` e. Proofs: docs/privacy.md, "Sensitivity".
"""

import math
from dataclasses import dataclass
from typing import Literal

Relation = Literal["replace-one", "add-remove"]

EIGENVALUE_SLACK = 2.0**-9
"""Relative head-room for the rounding error of an eigenvalue solver, for up to 2²⁸ rows of up to 512 columns."""


@dataclass(frozen=True)
class Weights:
    """Relative weight of each published part; that of X'X is 1, and 0 means the part is not published."""

    response: float
    square: float = 0.0
    count: float = 0.0
    eigenvalue: float = 0.0


def sensitivity(x: float, y: float, weights: Weights, relation: Relation) -> float:
    """L2 sensitivity of the weighted statistics of rows with ‖x‖ ≤ `x` and |y| ≤ `y`.

    Exact when the rows fill the ball and λ_min is not published; an upper bound otherwise.
    """
    w, v = weights.response * y / x, weights.square * y * y / (x * x)
    rows = _add_remove(w, v) if relation == "add-remove" else _replace_one(w, v)
    # Replacing a row leaves n as it was; either relation moves the smallest eigenvalue by at most X².
    count = weights.count if relation == "add-remove" else 0.0
    return math.hypot(x * x * math.sqrt(rows), count, weights.eigenvalue * x * x * (1 + EIGENVALUE_SLACK))


def free_square_weight(x: float, y: float, response: float) -> float:
    """Largest weight at which publishing y'y costs nothing under replace-one: v²Y⁴ = X⁴(W² + W⁴/2), W = wY/X ≤ √2.

    The worst replacement flips the sign of y, which moves X'y most and y'y not at all.
    """
    w = response * y / x
    return (x / y) ** 2 * math.sqrt(w * w + w**4 / 2)


def _add_remove(w: float, v: float) -> float:
    """Squared norm of the longest t(x, y), for X = 1."""
    return 1 + w * w + v * v


def _replace_one(w: float, v: float) -> float:
    """Squared diameter of the set of t(x, y), for X = 1 and W = w, V = v.

    Its candidates: both responses extreme and of opposite sign at the best cosine; one response zero; and,
    only when V² > 2W², one response extreme and the other at t of its size, both rows parallel.
    """
    one_zero = 2 + w * w + v * v
    if w * w <= 2:  # noqa: PLR2004
        return max(2 + 2 * w * w + w**4 / 2, one_zero)
    parallel = 4 * w * w
    if v * v > 2 * w * w:
        t = (1 - math.sqrt(1 - 2 * w * w / (v * v))) / 2
        parallel = max(parallel, (w * (1 + t)) ** 2 + (v * (1 - t * t)) ** 2)
    return max(parallel, one_zero)
