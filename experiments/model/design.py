"""The paper's simulated data.

Θ ~ N(0, I), Σ ~ IW(V'V, d + 1) with V standard normal, x ~ N(0, Σ), y = x'θ + N(0, 1).

Every run draws all of it anew. Rows are drawn as rows, since the bounds are their largest; 100,000
of them take milliseconds.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """What a run's data come from."""

    theta: Array  # (d,)
    covariance: Array  # (d, d): Σ
    feature_scale: Array  # (d, d): Λ = V'V

    def estimation(self, mean: Array) -> Array:
        """Mean squared error of coefficients, (…,)."""
        error: Array = np.mean((mean - self.theta) ** 2, axis=-1)
        return error

    def prediction(self, mean: Array, second: Array | None = None) -> Array:
        """(m − θ*)'Σ(m − θ*) or, given E[θθ'] as well, E[(θ − θ*)'Σ(θ − θ*)] over a posterior."""
        away = mean - self.theta
        point: Array = np.einsum("...a,ab,...b->...", away, self.covariance, away)
        if second is None:
            return point
        spread = second - mean[..., :, None] * mean[..., None, :]
        whole: Array = point + np.einsum("ab,...ab->...", self.covariance, spread)
        return whole


def simulated_rows(seed: int, d: int, run: int, rows: int) -> tuple[Array, Array, Truth]:
    """Features, responses and the truth of a run."""
    rng = np.random.default_rng([seed, d, run])
    root = rng.standard_normal((d, d))
    scale = root.T @ root
    covariance = np.atleast_2d(stats.invwishart(d + 1, scale).rvs(random_state=rng))
    theta = rng.standard_normal(d)
    x = rng.standard_normal((rows, d)) @ np.linalg.cholesky(covariance).T
    return x, x @ theta + rng.standard_normal(rows), Truth(theta, covariance, scale)
