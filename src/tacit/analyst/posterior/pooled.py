r"""Pooled: what the releases say of all rows together, and what they would say without noise.

X'X of all rows is the sum of its posterior means (gram.py). In a direction where that lies below
the noise, no release can tell how much the rows hold; it is taken to be as large as the noise
there. From exact statistics of such rows,

    Cov(θ) = (C⁻¹ + Σ_j (σ²S_j⁻¹ + D)⁻¹)⁻¹,

with C the prior's covariance, σ² the residual variance of shrunk rows, D = diag(τ²) the spread
of holders' own coefficients, and holders' rows taken to be of one kind, S_j = n_j S/n. This is
the part of a posterior's covariance that is sampling; what the posterior has beyond it is due
to privacy.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.gram import total_of
from tacit.analyst.posterior.laws import Mixture, Outcome
from tacit.analyst.prior import Prior

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Pooled:
    """Estimates for all holders' rows together, in scaled units."""

    rows: float  # n, or a stand-in where it is not published
    gram: Array  # (d, d): X'X of shrunk rows
    noise_variance: float  # σ² of shrunk rows
    sampling: Array  # (d, d): covariance of θ without the noise of privacy


def pool(evidence: Evidence, prior: Prior, outcome: Outcome) -> Pooled:
    """Pool the evidence behind an outcome."""
    total = total_of(evidence)
    rows = float(total.sizes.sum())
    values, vectors = np.linalg.eigh(total.basis @ total.mean @ total.basis.T)
    values = np.maximum(values, np.sqrt(np.sum(evidence.gram_sd**2)))
    unshrunk = outcome.unshrunk if isinstance(outcome, Mixture) else 1.0
    variance = outcome.residual_variance() / unshrunk
    axes = vectors
    if evidence.frame is not None:  # holders' differences are in the study's columns
        axes = np.linalg.inv(evidence.frame.map).T @ vectors
    known = precisions(values / rows, total.sizes, variance, spread_along(outcome, axes))
    information = (vectors * known) @ vectors.T + np.linalg.inv(prior.covariance)
    sampling = np.linalg.inv(information)
    gram = (vectors * values) @ vectors.T
    if evidence.error_maps is not None:
        unlike = np.linalg.solve(gram, evidence.error_maps.mean(axis=0) @ gram)
        sampling = unlike @ sampling @ unlike.T
    return Pooled(
        rows=evidence.average * rows,
        gram=gram,
        noise_variance=variance,
        sampling=sampling,
    )


def precisions(
    values: Array, sizes: Array, variance: float, between: Array, noise: Array | float = 0.0
) -> Array:
    r"""What J holders tell of θ along each eigenvector of X'X; `values` are eigenvalues λ per row.

    $\sum_j s_j^2/(\sigma^2s_j + \nu_j + \delta s_j^2)$ with $s_j = n_jλ$, δ the variance `between`
    holders along that axis, (d,), and ν the variance that privacy adds to ẑ_j − S_jθ, (J, d).
    """
    sums = sizes[:, None] * values
    spread = variance * sums + noise + between * sums**2
    told: Array = np.sum(sums**2 / np.maximum(spread, 1e-300), axis=0)
    return told


def spread_along(outcome: Outcome, vectors: Array) -> Array:
    """Variance between holders along each column of `vectors`; 0 where they are alike."""
    if not isinstance(outcome, Mixture) or outcome.differing is None:
        return np.zeros(vectors.shape[1])
    along: Array = outcome.weights @ outcome.differing.variances(vectors.T)
    return along
