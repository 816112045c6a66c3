"""What the holders' noisy X'X say of the true ones: a posterior mean and variance for every S_j.

Three steps, each in closed form: B is pooled over holders and freed of the noise's pull (N2), h is
chosen by marginal likelihood, and each S_j is shrunk towards n_j B (N4). Numbers (N1), (N2), … are
those of the equations in docs/methods.md, "noise-aware".
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from tacit.analyst.evidence import Evidence

Array = NDArray[np.float64]

NOISY = 0.1
"""Edge of the noise's eigenvalues, over the intercept's entry, from which the intercept keeps an
axis of its own."""
LEAST_MASS = 1e-9
"""Chance below which a share is taken as lying at the end of its range."""
_HETEROGENEITY = np.concatenate([[0.0], np.geomspace(1e-5, 1.0, 31)])
"""Values of h that are tried: from none to holders with nothing in common."""


@dataclass(frozen=True)
class Grams:
    """S_j = `size`_j · shared + own, in the eigenbasis of the pooled matrix.

    Its entries are independent a posteriori.
    """

    basis: Array  # (d, d): U, eigenvectors in columns; everything below is U'·U
    sizes: Array  # (J,): n_j, or a stand-in where it is not published
    mean: Array  # (J, d, d): posterior mean of S_j
    own_variance: Array  # (J, d, d): posterior variance of its entries, given B
    shared_variance: Array  # (d, d): that of the entries of (1 − K)∘B, common to all holders
    heterogeneity: float  # h


def grams(evidence: Evidence) -> Grams:
    """Posterior of every holder's X'X."""
    sizes = holder_sizes(evidence)
    weights = sizes / _variance(evidence)
    scale = float(np.sum(weights * sizes))
    pooled = np.einsum("j,jab->ab", weights, evidence.grams) / scale
    sd = float(np.sqrt(np.sum(weights**2 * _variance(evidence)))) / scale
    if evidence.frame is not None:
        pooled = evidence.frame.gram
    noisy = sd * np.sqrt(2 * evidence.d) > NOISY * pooled[0, 0]
    apart = evidence.intercept and noisy and evidence.frame is None
    basis = _basis(pooled, intercept=apart)
    rotated = np.einsum("ai,jab,bk->jik", basis, evidence.grams, basis, optimize=True)
    noise = _rotated_noise(evidence, basis)
    pooled_noise = np.einsum("j,jik->ik", weights**2, noise) / scale**2
    most = evidence.average if apart else None
    if evidence.frame is None:
        shrunk, derivative = _denoise(basis.T @ pooled @ basis, pooled_noise, most)
        doubt = derivative * pooled_noise
    else:  # visits have weighed it against what is usual
        shrunk = basis.T @ pooled @ basis
        doubt = evidence.frame.gram_sd**2 / 2 * (1 + np.eye(evidence.d))
    size = np.diag(shrunk)
    shape = np.outer(size, size) + shrunk**2
    mean = sizes[:, None, None] * shrunk
    h = _heterogeneity(rotated - mean, noise, shape, sizes)
    prior = (h * sizes**2)[:, None, None] * shape
    gain = prior / (prior + noise)
    mean = mean + gain * (rotated - mean)
    typical_gain = np.einsum("j,jik->ik", weights * sizes, gain) / scale
    return Grams(
        basis=basis,
        sizes=sizes,
        mean=mean,
        own_variance=gain * noise,
        shared_variance=(1 - typical_gain) ** 2 * doubt,
        heterogeneity=h,
    )


def _basis(pooled: Array, *, intercept: bool) -> Array:
    """Eigenvectors of the pooled matrix.

    The intercept, which no noise can turn, keeps its own axis.
    """
    basis = np.eye(len(pooled))
    first = int(intercept)
    basis[first:, first:] = np.linalg.eigh(pooled[first:, first:])[1]
    return basis


def _denoise(pooled: Array, noise: Array, most: float | None) -> tuple[Array, Array]:
    """The pooled matrix without the noise's pull (N2), in its basis, and the derivative (N3).

    Where the intercept keeps its axis, its entry is at `most` that; else None.
    """
    first = int(most is not None)
    variance = np.diag(noise)
    shrunk = np.zeros_like(pooled)
    derivative = np.zeros_like(pooled)
    if len(pooled) > first:
        sd = np.sqrt(np.median(variance[first:]))
        values, slopes = _shrink(np.diag(pooled)[first:], sd)
        shrunk[first:, first:] = np.diag(values)
        derivative[first:, first:] = slopes
    if most is not None:
        shrunk[0, 0], derivative[0, 0] = _share(float(pooled[0, 0]), float(variance[0]), most)
        sums = pooled[0, 1:]
        error = noise[0, 1:]
        spread = max(float(np.mean(sums**2 - error)), 0.0) if len(sums) else 0.0
        kept = spread / (spread + error)
        shrunk[0, 1:] = kept * sums
        shrunk[1:, 0] = kept * sums
        derivative[0, 1:] = kept
        derivative[1:, 0] = kept
    return shrunk, derivative


def _share(value: float, variance: float, most: float) -> tuple[float, float]:
    """Mean of a number in (0, `most`) seen with noise, and its variance over the noise's.

    The intercept's entry is Σα² with α ≤ 1, so 1 at most per row; of a sum of k rows over √k it is
    k at most.
    """
    sd = np.sqrt(variance)
    ends = np.array([-value, most - value]) / sd
    mass = float(np.diff(ndtr(ends))[0])
    if mass < LEAST_MASS:
        return float(np.clip(value, 0.0, most)), 1.0
    heights = np.exp(-0.5 * ends**2) / np.sqrt(2 * np.pi) / mass
    shift = float(heights[0] - heights[1])
    share = 1 + ends[0] * heights[0] - ends[1] * heights[1] - shift**2
    return value + float(sd) * shift, float(np.clip(share, 0.0, 1.0))


def holder_sizes(evidence: Evidence) -> Array:
    """Rows per holder or, where they are not published, the trace of X'X, which grows with them."""
    if evidence.counts is not None:
        sizes: Array = np.maximum(evidence.counts, 1.0)
        return sizes
    least = evidence.gram_sd * np.sqrt(evidence.d)
    return np.asarray(np.maximum(np.einsum("jaa->j", evidence.grams), least))


def _rotated_noise(evidence: Evidence, basis: Array) -> Array:
    """Noise variance of each entry of U'Ŝ_jU.

    Frobenius noise keeps its law; the rest of triangular noise is spread out.
    """
    both = 1 + np.eye(evidence.d)
    spread = both - 2 * (basis**2).T @ basis**2
    frobenius = _variance(evidence) / 2
    extra = np.maximum(evidence.off_diagonal_sd**2 - frobenius, 0.0)
    noise: Array = frobenius[:, None, None] * both + extra[:, None, None] * spread
    return noise


def _variance(evidence: Evidence) -> Array:
    """Noise variance on the diagonal; exact statistics get that of their rounding."""
    size = np.einsum("jaa->j", np.abs(evidence.grams)) / evidence.d
    variance: Array = np.maximum(evidence.gram_sd**2, 1e-12 * (1 + size) ** 2)
    return variance


def _shrink(values: Array, sd: float) -> tuple[Array, Array]:
    """Eigenvalues with the noise's pull taken back (N2), and its derivative for every pair (N3)."""
    gap = values[:, None] - values[None, :]
    shrunk = np.maximum(values - sd**2 * np.sum(gap / (gap**2 + sd**2 / 2), axis=1), 0.0)
    moved = shrunk[:, None] - shrunk[None, :]
    derivative = np.divide(moved, gap, out=np.zeros_like(gap), where=np.abs(gap) > 1e-12 * sd)
    near = np.eye(len(values), k=1) + np.eye(len(values), k=-1)
    slope = (shrunk > 0).astype(float)
    if len(values) > 1:
        slope = (derivative * near).sum(axis=1) / near.sum(axis=1)
    return shrunk, np.clip(derivative + np.diag(slope), 0.0, 1.0)


def _heterogeneity(deviation: Array, noise: Array, shape: Array, sizes: Array) -> float:
    """The h of highest marginal likelihood, over the entries of the upper triangle."""
    if len(sizes) == 1:
        return 0.0
    upper = np.triu_indices(shape.shape[0])
    square = deviation[:, *upper] ** 2
    unit = (sizes**2)[:, None] * shape[upper]
    variances = [noise[:, *upper] + h * unit for h in _HETEROGENEITY]
    scores = [-0.5 * float(np.sum(np.log(variance) + square / variance)) for variance in variances]
    return float(_HETEROGENEITY[int(np.argmax(scores))])
