"""The paper's prior, and what its published code makes of it for bernstein-sheldon."""

import numpy as np
from numpy.typing import NDArray

from experiments.model.release import Calibration
from tacit.analyst.prior import Prior

SHAPE, RATE = 20.0, 0.5  # a and b
SIGMA = RATE / (SHAPE - 1)  # 0.0263: the prior mean of σ², and the variance of a coefficient


def paper_prior(feature_scale: NDArray[np.float64]) -> Prior:
    """θ ~ N(0, 0.0263 I), σ² ~ IG(20, 0.5), Σ ~ IW(Λ, d + 1) with the given Λ."""
    d = len(feature_scale)
    return Prior(np.zeros(d), SIGMA * np.eye(d), SHAPE, RATE, feature_scale, d + 1.0)


def prior_for(method: str, calibration: Calibration, feature_scale: NDArray[np.float64]) -> Prior:
    """The prior of a method.

    The published code takes 0.0263 I for a precision in bernstein-sheldon, so there C = I.
    """
    prior = paper_prior(feature_scale)
    if method.startswith("bernstein-sheldon") and calibration == "as-published":
        return Prior(
            prior.mean,
            np.eye(prior.d),
            prior.shape,
            prior.rate,
            feature_scale,
            prior.feature_degrees,
        )
    return prior


def random_scale(seed: int, d: int) -> NDArray[np.float64]:
    """Λ = V'V with V standard normal, which the published code takes for public data as well."""
    root = np.random.default_rng([seed, d, 7]).standard_normal((d, d))
    return root.T @ root


def fast_variance(calibration: Calibration, response_bound: float) -> float:
    """σ² that fixed-s-fast holds fixed.

    The paper's Y/3, or its square, which has the right unit.
    """
    return response_bound / 3 if calibration == "as-published" else (response_bound / 3) ** 2
