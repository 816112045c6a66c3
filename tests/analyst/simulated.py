"""Small simulated evidence and, for exact evidence, the posterior by quadrature."""

import numpy as np
from scipy import linalg

from tacit.analyst.evidence import Evidence
from tacit.analyst.prior import Prior


def evidence_of(
    *, d: int = 2, holders: int = 3, noise: float = 2.0, rows: int = 60, seed: int = 5
) -> Evidence:
    """Evidence from normal features; `noise` is the sd of every statistic's noise (frobenius), 0
    for exact evidence.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(holders, rows, d)) @ (np.eye(d) + 0.4 * np.tri(d, k=-1))
    y = x @ rng.normal(size=d) + 0.5 * rng.normal(size=(holders, rows))
    full = rng.normal(size=(holders, d, d))
    grams = np.einsum("jni,jnk->jik", x, x) + noise * (full + full.swapaxes(1, 2)) / 2
    moments = np.einsum("jni,jn->ji", x, y) + noise * rng.normal(size=(holders, d))
    sd = np.full(holders, noise)
    return Evidence(grams, moments, sd, sd / np.sqrt(2), sd, np.full(holders, float(rows)))


def conjugate_moments(evidence: Evidence, prior: Prior) -> tuple[np.ndarray, np.ndarray, float]:
    """Posterior mean and covariance of θ and mean of σ² from exact S_j, z_j: conjugate given σ²,
    which is summed over a grid.
    """
    parts = [_given_variance(np.exp(t), evidence, prior) for t in GRID]
    log_weights = np.array(
        [
            part[2] - prior.shape * t - prior.rate * np.exp(-t)
            for part, t in zip(parts, GRID, strict=True)
        ]
    )
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    means, covariances = (
        np.array([part[0] for part in parts]),
        np.array([part[1] for part in parts]),
    )
    mean = weights @ means
    spread = np.einsum("t,ti,tk->ik", weights, means - mean, means - mean)
    return (
        mean,
        np.einsum("t,tik->ik", weights, covariances) + spread,
        float(weights @ np.exp(GRID)),
    )


GRID = np.linspace(-9, 6, 3001)  # log σ²


def _given_variance(
    variance: float, evidence: Evidence, prior: Prior
) -> tuple[np.ndarray, np.ndarray, float]:
    """Conjugate posterior of θ at one σ², and the log-likelihood of the z_j with θ integrated out,
    up to a constant.
    """
    precision = linalg.inv(prior.covariance)
    posterior = precision + evidence.grams.sum(0) / variance
    mean = linalg.solve(posterior, precision @ prior.mean + evidence.moments.sum(0) / variance)
    residuals = evidence.moments - evidence.grams @ mean
    quadratic = (
        sum(r @ linalg.solve(s, r) for r, s in zip(residuals, evidence.grams, strict=True))
        / variance
    )
    penalty = (mean - prior.mean) @ precision @ (mean - prior.mean)
    log_likelihood = (
        -(
            quadratic
            + penalty
            + evidence.moments.size * np.log(variance)
            + np.linalg.slogdet(posterior)[1]
        )
        / 2
    )
    return mean, linalg.inv(posterior), log_likelihood
