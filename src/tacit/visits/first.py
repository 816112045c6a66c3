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

from tacit.privacy.visits import shares_of
from tacit.release.places import Places
from tacit.release.question import LEAST_BOUND, Question, hash_of
from tacit.study import Study
from tacit.study.visits import has_places, placed

Array = NDArray[np.float64]

USUAL_MEAN = 0.3
"""Sd of a column's mean about the middle of its range, in half ranges."""
USUAL_SPREAD = 0.32
"""Usual sd of a column, in half ranges."""
SPREAD_FACTOR = 0.8
"""Sd of the logarithm of a column's sd."""
LEAST_SPREAD = 0.02
RESPONSE_REACH = 1.5
"""Bound of the response about its mean, in standard deviations."""
EVEN = math.sqrt(3)
"""Half of an even spread's interval, in standard deviations."""
RADIUS = 0.35
MOST_RADIUS = 4.0
SENSITIVITY = 2.12
"""Of a visit under replace-one: what relates noise to the budget."""


@dataclass(frozen=True)
class Spread:
    """Means and standard deviations of the placed columns, the response last."""

    means: Array
    sds: Array


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
    spread = spread_of(places)
    chosen = list(placed(study))
    sds = spread.sds if study.intercept else np.hypot(spread.sds, spread.means)
    scales = EVEN * np.maximum(sds[:-1], LEAST_SPREAD)
    matrix[chosen, chosen] = 1 / scales
    bound = RESPONSE_REACH * float(sds[-1])
    if study.intercept:
        matrix[0, chosen] = -spread.means[:-1] / scales
        offset[0] = spread.means[-1]
    return Question(
        study_hash=study.hash,
        visit=2,
        after=tuple(sorted(hash_of(each) for each in places)),
        map=_rows(matrix),
        offset=tuple(offset.tolist()),
        radius=_radius(study, places),
        bound=float(np.clip(bound, LEAST_BOUND, 2.0)),
    )


def _radius(study: Study, places: Sequence[Places]) -> float:
    """Rows as long as evenly spread ones are kept whole; longer ones where noise is small."""
    first, second, *_ = shares_of(study.visit_count)
    rows = sum(max(each.count, 1.0) for each in places)
    columns = len(placed(study)) + 1
    variance = sum(each.noise.total**2 for each in places) / (4 * columns)
    hidden = study.d * math.sqrt(variance * first / second) / rows
    usual = math.sqrt(study.usual_row**2 if study.terms else study.intercept + _even(study))
    return float(np.clip(RADIUS * hidden ** (-1 / 3), 1.0, MOST_RADIUS)) * usual


def _even(study: Study) -> float:
    """Mean square of all columns but the intercept, were numbers spread evenly."""
    return (study.d - study.intercept) / 3


def spread_of(places: Sequence[Places]) -> Spread:
    """What all holders' places say together, weighed against what is usual."""
    least = min(each.noise.total for each in places)
    weights = [(least / each.noise.total) ** 2 for each in places]
    pairs = list(zip(weights, places, strict=True))
    rows = max(sum(w * each.count for w, each in pairs), 1.0)
    totals = np.sum([w * np.array(each.totals) for w, each in pairs], axis=0)
    squares = np.sum([w * np.array(each.squares) for w, each in pairs], axis=0)
    error = math.sqrt(sum((w * each.noise.total) ** 2 for w, each in pairs)) / rows
    kept = USUAL_MEAN**2 / (USUAL_MEAN**2 + error**2)
    means = np.clip(kept * totals / rows, -1.0, 1.0)
    doubt = kept * error**2
    variances = squares / rows - means**2 - doubt
    errors = np.sqrt(error**2 / 2 + 4 * means**2 * doubt + 2 * doubt**2)
    sds = [_sd(*pair) for pair in zip(variances.tolist(), errors.tolist(), strict=True)]
    return Spread(means=means, sds=np.array(sds))


def _sd(variance: float, error: float) -> float:
    """Posterior mean of log sd, seen through a noisy variance."""
    logs = np.linspace(math.log(LEAST_SPREAD), 0.0, 60)
    scores = -0.5 * ((logs - math.log(USUAL_SPREAD)) / SPREAD_FACTOR) ** 2
    scores -= 0.5 * ((variance - np.exp(2 * logs)) / error) ** 2
    weights = np.exp(scores - scores.max())
    return math.exp(float(weights @ logs / weights.sum()))


def _rows(matrix: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, matrix.tolist()))
