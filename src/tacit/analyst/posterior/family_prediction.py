r"""Prediction of a family: probabilities or rates of new rows, and of a single new response.

With η = x'β, which is an affine map of the posterior's coefficients, the mean response of rows
like x is g(η): its interval is that of η through g, which is monotone, and its mean and variance
are averages over the normal law with η's mean and variance. A new response is 0 or 1 with
probability E[g(η)], or a Poisson count, a negative binomial one where counts vary more than that;
its quantiles are averages over the same law. The variance of g(η) is sampling's and privacy's in
the shares that they have of η's.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammaincc

from tacit.analyst.posterior.family import Family
from tacit.analyst.posterior.posterior import Posterior
from tacit.errors import PosteriorError

Array = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
SPREAD_OUT = 1.01
"""Variance over the mean from which on counts are not Poisson."""
DOUBLINGS = 60


def mean_responses(posterior: Posterior, rows: Array) -> Array:
    """E[g(η)] of encoded rows, of a posterior that has a family."""
    if posterior.family is None:
        raise PosteriorError("this posterior is of a straight line: fit one with a family")
    return family_fields(posterior, posterior.family, rows, np.array([0.05, 0.95]))["mean"]


def family_fields(
    posterior: Posterior, family: Family, rows: Array, tails: Array
) -> dict[str, Array]:
    """The fields of a prediction (prediction.py) for complete encoded rows."""
    outcome = posterior.outcome
    link = family.link
    matrix = rows @ family.matrix
    offset = rows @ family.offset
    variance = _variances(matrix, outcome.covariance())
    centre = matrix @ outcome.mean() + offset
    means = link.mean(centre[:, None] + np.sqrt(variance)[:, None] * _NODES)
    mean = means @ _WEIGHTS
    known = np.maximum(means**2 @ _WEIGHTS - mean**2, 0.0)
    dispersion = 1.0 if link.binary else max(family.dispersion, 1.0)
    residual = dispersion * (link.variance(means) @ _WEIGHTS)
    sampling = np.full(len(rows), np.nan)
    if posterior.pooled is not None:
        share = _variances(matrix, posterior.pooled.sampling) / np.maximum(variance, 1e-300)
        sampling = np.minimum(share, 1.0) * known
    mean_low, mean_high = link.mean(outcome.quantiles(tails, matrix, offset)).T
    if link.binary:
        low, high = ((tail > 1 - mean).astype(float) for tail in tails)
    else:
        low, high = (_count(tail, means, dispersion) for tail in tails)
    return {
        "mean": mean,
        "mean_sd": np.sqrt(known),
        "mean_low": mean_low,
        "mean_high": mean_high,
        "sd": np.sqrt(known + residual),
        "low": low,
        "high": high,
        "variance_residual": residual,
        "variance_sampling": sampling,
        "variance_privacy": known - sampling,
    }


def _count(probability: float, means: Array, dispersion: float) -> Array:
    """Smallest counts that are exceeded with at most 1 − `probability`, over nodes of the mean."""
    low = np.full(len(means), -1.0)  # exceeded more often
    high = np.ones(len(means))
    for _ in range(DOUBLINGS):
        short = _below(high, means, dispersion) < probability
        if not short.any():
            break
        high = np.where(short, 2 * high, high)
    while np.any(high - low > 1):
        middle = np.floor((low + high) / 2)
        enough = _below(middle, means, dispersion) >= probability
        high = np.where(enough, middle, high)
        low = np.where(enough, low, middle)
    return high


def _below(counts: Array, means: Array, dispersion: float) -> Array:
    """Probability that a new count is at most that."""
    at = counts[:, None] + 1
    if dispersion < SPREAD_OUT:
        return np.asarray(gammaincc(at, means) @ _WEIGHTS, dtype=float)
    below = betainc(means / (dispersion - 1), at, 1 / dispersion)
    return np.asarray(below @ _WEIGHTS, dtype=float)


def _variances(matrix: Array, covariance: Array) -> Array:
    variances: Array = np.einsum("ia,ab,ib->i", matrix, covariance, matrix, optimize=True)
    return variances
