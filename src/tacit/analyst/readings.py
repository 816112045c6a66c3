"""How a study's visits were read: what a family needs to know of answers that a bound cut.

A straight line takes cut residuals to move at the rate κ. Answers of 0 and 1 and counts have laws
of their own, by which what a bound leaves of them is known exactly (`families/visited.py`), once it
is known where and how each visit cut, and how its moments were joined to one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tacit.release.question import Question
from tacit.visits.joined import Joined
from tacit.visits.opening import Opening

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Readings:
    """Corrections, the visit as first axis, and the first answer; offsets in the study's columns.

    The joined moment per row is Σ_k w_k(X'r_k/n + (bend_k, 0, …) − ρ_k S a_k), a_k the mapped
    difference between the last offset and that of visit k.
    """

    starts: Array  # (K, d): θ_k
    bounds: Array  # (K,): at which residuals were cut
    weights: Array  # (K,): w_k
    rates: Array  # (K,): ρ_k, κ over the level of that visit's rows
    bends: Array  # (K,): added to the intercept's moment, per row
    radius: float  # at which mapped rows were shrunk
    first_map: Array  # (d, d): columns of the first answer
    first_start: Array  # (d,)
    first_bound: float
    first_radius: float
    first_rate: float

    @classmethod
    def of(cls, opening: Opening, questions: Sequence[Question], holders: Sequence[Joined]) -> Self:
        """How holders' visits were joined, weighed by their rows."""
        rows = np.array([each.pool.rows for each in holders])
        parts = rows / rows.sum()
        first = opening.question
        return cls(
            starts=np.array([question.start for question in questions]),
            bounds=np.array([question.bound for question in questions]),
            weights=_mean(parts, [each.weights for each in holders], len(questions)),
            rates=np.array(max(holders, key=lambda each: len(each.rates)).rates),
            bends=_bends(holders, len(questions)),
            radius=questions[-1].radius,
            first_map=first.matrix,
            first_start=first.start,
            first_bound=first.bound,
            first_radius=first.radius,
            first_rate=opening.rate,
        )

    def suit(self, d: int) -> bool:
        """Whether the arrays go together, for d columns."""
        visits = len(self.bounds)
        shapes = {
            "starts": (visits, d),
            "first_map": (d, d),
            "first_start": (d,),
        }
        return all(
            value.shape == shapes.get(field.name, (visits,))
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), np.ndarray)
        )


def _mean(parts: Array, values: Sequence[Array], visits: int) -> Array:
    """Holders' weights, those of missed visits being 0."""
    padded = [np.pad(each, (0, visits - len(each))) for each in values]
    mean: Array = parts @ np.array(padded)
    return mean


def _bends(holders: Sequence[Joined], visits: int) -> Array:
    """Per row; who answered every visit tells."""
    longest = max(holders, key=lambda each: len(each.bends))
    return longest.bends[:visits] / longest.pool.rows
