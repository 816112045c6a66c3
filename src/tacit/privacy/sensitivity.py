r"""How far one row can move the statistics: the exact L2 sensitivity, per neighbouring relation.

A row (x, y) with ‖x‖ ≤ X and |y| ≤ Y contributes the vector

    t(x, y) = (x x', w·y x, v·y², c·1, e·λ_min)        x x' measured in Frobenius norm,

whose weights say how the budget is split over the parts: `response` w, `square` v (0 when y'y is
not published), `count` c and `eigenvalue` e. Where rows are averaged, the sum of a group of k rows
over √k takes the place of a row, and a changed row meets the others of its group. Of several
responses there are a y x and a y² for each. Proofs: docs/privacy.md, "Sensitivity", "Several
responses" and "Averaging".
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

Relation = Literal["replace-one", "add-remove"]

EIGENVALUE_SLACK = 2.0**-9
"""Relative head-room for an eigenvalue solver's rounding: up to 2²⁸ rows of up to 512 columns."""


@dataclass(frozen=True)
class Weights:
    """Relative weight of each published part; that of X'X is 1, and 0 means not published."""

    response: float
    square: float = 0.0
    count: float = 0.0
    eigenvalue: float = 0.0

    def as_one(self, responses: int) -> "Weights":
        """Weights at which one response can move as far as so many together, each at these.

        What a row of k responses moves, squared, is the mean of what it would move with each of
        them alone, X'y and y'y having √k times the weight.
        """
        root = math.sqrt(responses)
        return replace(self, response=root * self.response, square=root * self.square)


def sensitivity(
    x: float, y: float, weights: Weights, relation: Relation, average: int = 1
) -> float:
    """L2 sensitivity of the weighted statistics: ‖x‖ ≤ `x`, |y| ≤ `y`, in groups of `average`.

    Exact when the rows fill the ball and λ_min is not published; an upper bound otherwise.
    """
    w = weights.response * y / x
    v = weights.square * y * y / (x * x)
    alone = average == 1 and relation == "replace-one"
    rows = (
        math.sqrt(_replace_one(w, v))
        if alone
        else lever(relation, average) * math.sqrt(_add_remove(w, v))
    )
    # Replacing a row leaves n as it was; the smallest eigenvalue moves by at most X² and, with
    # averaging, by no more than X'X.
    count = weights.count if relation == "add-remove" else 0.0
    eigenvalue = weights.eigenvalue * lever(relation, average) * (1 + EIGENVALUE_SLACK)
    return math.hypot(x * x * rows, count, x * x * eigenvalue)


def lever(relation: Relation, k: int) -> float:
    """How many times the longest t(x, y) one row moves the sum of (Σx Σx', …)/k over groups of k.

    Replaced by its opposite, a row turns a sum of k equal ones into one of k − 2: (k² − (k−2)²)/k.
    Removed, it also calls another row from the last group into its place: that adds (k² −
    (k−1)²)/k. For k = 1 the row called in makes no difference.
    """
    if k == 1:
        return 1.0
    return 4 * (k - 1) / k if relation == "replace-one" else (6 * k - 5) / k


def free_square_weight(x: float, y: float, response: float) -> float:
    """Largest free weight of y'y under replace-one: v²Y⁴ = X⁴(W² + W⁴/2), W = wY/X ≤ √2.

    The worst replacement flips the sign of y, which moves X'y most and y'y not at all.
    """
    w = response * y / x
    return (x / y) ** 2 * math.sqrt(w * w + w**4 / 2)


def _add_remove(w: float, v: float) -> float:
    """Squared norm of the longest t(x, y), for X = 1."""
    return 1 + w * w + v * v


def _replace_one(w: float, v: float) -> float:
    """Squared diameter of the set of t(x, y), for X = 1 and W = w, V = v.

    Its candidates: both responses extreme and of opposite sign at the best cosine; one response
    zero; and, only when V² > 2W², one response extreme and the other at t of its size, both rows
    parallel.
    """
    one_zero = 2 + w * w + v * v
    if w * w <= 2:  # noqa: PLR2004
        return max(2 + 2 * w * w + w**4 / 2, one_zero)
    parallel = 4 * w * w
    if v * v > 2 * w * w:
        t = (1 - math.sqrt(1 - 2 * w * w / (v * v))) / 2
        parallel = max(parallel, (w * (1 + t)) ** 2 + (v * (1 - t * t)) ** 2)
    return max(parallel, one_zero)
