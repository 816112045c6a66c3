r"""The first question of rows: in the study's own columns, or in those that places suggest.

Places are noisy sums over values u ∈ [−1, 1]. A mean is expected near the middle of the range, with
sd 0.3, and a spread near 0.32, within a factor of about two: means in the middle of public tables.
What the sums say is weighed against that, so that few rows or a small budget give the public range
back, and many give mean and spread.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.release.places import Places
from tacit.release.question import LEAST_BOUND, Question, hash_of
from tacit.study import Study
from tacit.study.visits import has_places, placed
from tacit.visits.reach import longest_mapped, residual_reach, row_reach, slope_size

Array = NDArray[np.float64]

USUAL_MEAN = 0.3
"""Sd of a column's mean about the middle of its range, in half ranges."""
USUAL_SPREAD = 0.32
"""Usual sd of a column, in half ranges."""
SPREAD_FACTOR = 0.8
"""Sd of the logarithm of a column's sd."""
LEAST_SPREAD = 0.02
PLAN_DOUBT = 0.3
"""Sd of a number of rows about the planned one, over that."""
FIRST_RESIDUAL = 1.2
"""Sd of residuals from the mean response, as far as it may be off, over that of the response."""
UNPLACED = 0.2
"""Usual square of a column whose place is not asked for, or not yet, in half ranges."""
MOST_BOUND = 2.0
TWO_ENDED = 0.7
"""Variance of a response over the largest that its mean allows, from which it is taken to lie at
the ends of its range: answers of 0 and 1. A bound made for the middle would cut the rarer one."""


@dataclass(frozen=True)
class Spread:
    """Means and standard deviations of the placed columns, the response last."""

    means: Array
    sds: Array
    doubt: float  # sd of a mean
    variances: Array  # as told, weighed against nothing
    errors: Array  # sds of the noise on them


def first_question(study: Study, places: Sequence[Places]) -> Question:
    """The first question that asks for statistics."""
    d = study.d
    matrix = np.eye(d)
    offset = np.zeros(d)
    if not has_places(study):
        return Question(
            study_hash=study.hash,
            visit=1,
            map=_rows(matrix),
            offset=tuple(offset.tolist()),
            radius=min(study.row_radius, study.longest_row),
            bound=study.response_bound,
        )
    spread = spread_of(study, places)
    chosen = list(placed(study))
    sds = spread.sds if study.intercept else np.hypot(spread.sds, spread.means)
    scales = np.maximum(sds[:-1], LEAST_SPREAD)
    matrix[chosen, chosen] = 1 / scales
    if study.intercept:
        matrix[0, chosen] = -spread.means[:-1] / scales
        matrix[:, 1:] *= slope_size(study)
        offset[0] = spread.means[-1]
    bound = residual_reach(study, 2) * FIRST_RESIDUAL * float(sds[-1])
    bound = max(bound, least_bound(float(spread.means[-1]), float(spread.sds[-1]) ** 2))
    radius = row_reach(study) * math.sqrt(float(usual_squares(study).sum()))
    return Question(
        study_hash=study.hash,
        visit=2,
        after=tuple(sorted(hash_of(each) for each in places)),
        map=_rows(matrix),
        offset=tuple(offset.tolist()),
        radius=min(radius, longest_mapped(study, matrix)),
        bound=float(np.clip(bound, LEAST_BOUND, MOST_BOUND)),
    )


def least_bound(mean: float, variance: float) -> float:
    """Smallest bound of residuals from the mean that leaves answers at the ends of a range whole.

    0 for a response that is not so. Answers that are told whole bring as much for the noise as cut
    ones: 2 in 1 + |mean|, which is 1 at least.
    """
    return 1 + abs(mean) if variance >= TWO_ENDED * (1 - mean**2) else 0.0


def usual_squares(study: Study) -> Array:
    """Mean squares that are expected of the first question's columns."""
    squares = np.full(study.d, UNPLACED)
    if has_places(study):
        squares[list(placed(study))] = 1.0
        squares *= slope_size(study) ** 2
    if study.intercept:
        squares[0] = 1.0
    return squares


def spread_of(study: Study, places: Sequence[Places]) -> Spread:
    """What all holders' places say together, weighed against what is usual."""
    least = min(each.noise.total for each in places)
    weights = [(least / each.noise.total) ** 2 for each in places]
    pairs = list(zip(weights, places, strict=True))
    rows = _rows_of(study, pairs)
    totals = np.sum([w * np.array(each.totals) for w, each in pairs], axis=0)
    squares = np.sum([w * np.array(each.squares) for w, each in pairs], axis=0)
    error = math.sqrt(sum((w * each.noise.total) ** 2 for w, each in pairs)) / rows
    kept = USUAL_MEAN**2 / (USUAL_MEAN**2 + error**2)
    means = np.clip(kept * totals / rows, -1.0, 1.0)
    doubt = kept * error**2
    variances = squares / rows - means**2 - doubt
    errors = np.sqrt(error**2 / 2 + 4 * means**2 * doubt + 2 * doubt**2)
    sds = [_sd(*pair) for pair in zip(variances.tolist(), errors.tolist(), strict=True)]
    return Spread(
        means=means,
        sds=np.array(sds),
        doubt=math.sqrt(doubt),
        variances=variances,
        errors=errors,
    )


def _rows_of(study: Study, pairs: Sequence[tuple[float, Places]]) -> float:
    """How many rows places are of: what their noisy numbers say, weighed against the plan."""
    counted = sum(w * each.count for w, each in pairs)
    noise = math.sqrt(sum((w * each.noise.count) ** 2 for w, each in pairs))
    each = sum(study.planned_rows) / (1 if study.secure_sum else max(len(study.planned_rows), 1))
    planned = each * sum(w for w, _ in pairs)
    doubt = PLAN_DOUBT * planned
    told = doubt**2 / (doubt**2 + noise**2)
    return max(told * counted + (1 - told) * planned, 1.0)


def _sd(variance: float, error: float) -> float:
    """Posterior mean of log sd, seen through a noisy variance."""
    logs = np.linspace(math.log(LEAST_SPREAD), 0.0, 60)
    scores = -0.5 * ((logs - math.log(USUAL_SPREAD)) / SPREAD_FACTOR) ** 2
    scores -= 0.5 * ((variance - np.exp(2 * logs)) / error) ** 2
    weights = np.exp(scores - scores.max())
    return math.exp(float(weights @ logs / weights.sum()))


def _rows(matrix: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, matrix.tolist()))
