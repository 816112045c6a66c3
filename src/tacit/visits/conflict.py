r"""An answer that corrections contradict gives way to them, axis by axis.

The first answer, or all that was told before the map was made anew, is the prior of what
corrections tell. Along directions in which rows hardly spread, X'X was taken for longer than it is:
its steps were too short, and it seems to be far surer than it is. Where corrections then find the
line elsewhere, the two contradict each other, and a prior that is taken at its word wins by being
wrong. So it is widened there. In coordinates in which the prior is standard normal and corrections
tell of each axis by itself, let them find y with a variance of 1/a. The prior's variance becomes

    max(1, y²/9 − 1/a),

which makes y a distance of three standard deviations. Within that it stays as it is: a prior that
is right is widened along one axis in 370.

A bound that cuts nearly all residuals on one side contradicts every answer, and its moments say
little of where the line is. What gives such a step away is how far it goes: no line moves by more
than the response varies. Where one that followed corrections would, the prior stays as it is.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.visits.estimate import noise_of, update
from tacit.visits.pool import Pool

Array = NDArray[np.float64]

CONTRADICTED = 9.0
"""Squared distance, over the variance of prior and corrections together, beyond which it is one."""
PASSES = 2
"""What X'X's own noise does to X'r depends on how far off the line may be, so on the new prior."""
OPEN = 1e4
"""Times the prior's variance, of the one that the first pass has: were it the prior itself, a line
that corrections left far behind would explain them by X'X's noise, which grows with the way."""
TINY = 1e-12


class Reach(NamedTuple):
    """How far a line may go."""

    response: float  # sd of the response
    intercept: bool

    def holds(self, pool: Pool, way: Array) -> bool:
        """Whether a change of the coefficients moves the line by less than the response varies.

        X'X is that of cut residuals, so that a little more is let through.
        """
        gram = pool.gram / pool.rows
        square = float(way @ gram @ way)
        if self.intercept:
            square -= float(gram[0] @ way) ** 2 / float(gram[0, 0])
        return square <= self.response**2


def yielded(pool: Pool, prior: Array, mean: Array, residual: float, reach: Reach) -> Array:
    """The covariance of a prior about `mean`, (d, d), in the light of all holders' corrections.

    `residual` is the variance of residuals, as for `update`.
    """
    values, vectors = np.linalg.eigh((prior + prior.T) / 2)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    shown = pool.gram @ root
    apart = pool.moment - pool.gram @ mean
    wider = OPEN * prior
    for _ in range(PASSES):
        theta, covariance = update(pool, wider, mean, residual)
        noise = noise_of(pool, covariance + np.outer(theta, theta), residual)
        weighed = np.linalg.solve(noise, shown)
        told, axes = np.linalg.eigh(shown.T @ weighed)
        told = np.maximum(told, TINY)
        found = axes.T @ (weighed.T @ apart) / told
        factors = np.maximum(1.0, found**2 / CONTRADICTED - 1 / told)
        wider = root @ (axes * factors) @ axes.T @ root
    theta, _ = update(pool, wider, mean, residual)
    if not reach.holds(pool, theta - mean):
        return prior
    return np.asarray((wider + wider.T) / 2, dtype=float)
