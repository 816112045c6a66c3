"""Scatter: how far holders' first answers lie from each other, beyond what noise explains."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.release.statistics import Answer
from tacit.visits.opening import Opening
from tacit.visits.pool import Pool

Array = NDArray[np.float64]

FEWEST = 3
"""Holders from which their scatter is looked at."""
SCATTER = 4.0
"""Standard deviations of a variance from which holders' first answers differ by more than noise."""


def scatter_of(opening: Opening, answers: Sequence[Answer]) -> Array:
    """Variance of the first answer by what holders differ in, along its axes.

    The first answer is that of all holders' rows together: where one lies elsewhere it is no
    narrow prior of what holders have in common. Scatter that noise and few rows explain counts for
    nothing.
    """
    pools = [Pool.of(answer) for answer in answers]
    none = np.zeros((len(opening.theta), len(opening.theta)))
    if len(pools) < FEWEST:
        return none
    rows = np.array([pool.rows for pool in pools])
    theta = opening.answer.theta
    slopes = np.array([pool.moment - pool.gram @ theta for pool in pools])
    apart = slopes / rows[:, None] @ opening.stretch.map
    lengths = np.sum(opening.stretch.map**2, axis=0)
    gram_noise = lengths * (theta @ theta) + (theta @ opening.stretch.map) ** 2  # of X'Xθ
    noise = [lengths * pool.moment_sd**2 + gram_noise * pool.gram_sd**2 / 2 for pool in pools]
    sampling = opening.answer.residual**2 * np.diag(opening.stretch.known.gram) * np.mean(1 / rows)
    ratio = np.var(apart, axis=0, ddof=1) / (np.mean(noise / rows[:, None] ** 2, axis=0) + sampling)
    clear = ratio > 1 + SCATTER * np.sqrt(2 / (len(pools) - 1))
    scatter: Array = np.diag(np.where(clear, np.var(apart, axis=0, ddof=1) / len(pools), 0.0))
    return scatter
