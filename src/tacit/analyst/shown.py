r"""X'X as corrections show it: what intervals are made of, where the mean takes what is usual too.

Visits weigh X'X against what was expected of it, as far as that was thought to be right: a step
along a direction that noise makes look short would go far. But rows of real tables are often flat
where nothing usual is, and what was expected is then surer of itself than it should be. A direction
that is taken for longer than it is gets steps that are too short, and seems to be known. So widths
rest on another weighing: the variance of what was expected is raised by the factor that makes the
corrections' own X'X most likely, over its d(d − 1)/2 entries off the diagonal; 1 where columns are
as expected. What columns have in common shows there. On the diagonal there is, too, what each lost
as rows were shrunk, which is not the same of all where rows lie far out.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.visits.joined import Joined
from tacit.visits.known import Known, lifted

Array = NDArray[np.float64]

FACTORS = np.geomspace(1.0, 100.0, 41)
"""By what the variance of what was expected may be raised."""
LEAST = 0.1
"""Smallest eigenvalue, over the sd of a diagonal entry: less is not told from none."""


class Shown(NamedTuple):
    """X'X per row, and the sd of a diagonal entry."""

    gram: Array  # (d, d)
    sd: float


def seen_of(visits: Sequence[Joined]) -> Shown:
    """What all holders' corrections show together, weighed against nothing."""
    rows = sum(each.pool.rows for each in visits)
    gram = np.sum([each.pool.gram / each.rate for each in visits], axis=0) / rows
    sd = math.hypot(*(each.pool.gram_sd / each.rate for each in visits)) / rows
    return Shown(gram=gram, sd=sd)


def shown_of(known: Known, seen: Shown, level: float) -> Shown:
    """X'X of shrunk rows: what was `known` of rows as they are, and what corrections have `seen`.

    Of their squared length rows kept `level`; what was seen is weighed against nothing.
    """
    noise = (seen.sd / level) ** 2 / 2 * (1 + np.eye(len(seen.gram)))
    apart = known.axes.T @ (seen.gram / level - known.gram) @ known.axes
    variance = _factor(apart, known.variance, noise) * known.variance
    gain = variance / (variance + noise)
    gram = known.gram + known.axes @ (gain * apart) @ known.axes.T
    sd = level * math.sqrt(2 * float(np.mean(gain * noise)))
    return Shown(gram=lifted(level * gram, LEAST * sd), sd=sd)


def _factor(apart: Array, variance: Array, noise: Array) -> float:
    """By what the variance is most likely too small, where entries lie so far `apart`."""
    upper = np.triu_indices(len(apart), 1)
    wholes = noise[upper] + FACTORS[:, None] * variance[upper]
    scores = -0.5 * np.sum(np.log(wholes) + apart[upper] ** 2 / wholes, axis=1)
    return float(FACTORS[int(np.argmax(scores))])


def sure_of(shown: Shown, sds: float) -> Array:
    """λ³/(λ² + (`sds`·sd)²) along each direction: as far as it is told for sure."""
    values, vectors = np.linalg.eigh(shown.gram)
    return np.asarray((vectors * (values**3 / (values**2 + (sds * shown.sd) ** 2))) @ vectors.T)
