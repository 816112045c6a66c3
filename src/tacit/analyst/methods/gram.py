r"""What the holders' noisy X'X say of the true ones: a posterior mean and variance for every S_j.

Holders measure one population in different samples, so S_j = n_j B + D_j with a shared B and deviations whose variance
is h·n_j²(B_ii B_kk + B_ik²), as for Wishart matrices with 1/h degrees of freedom. The releases add noise of known size.
Three steps, each in closed form:

1. B is pooled over holders by inverse variance. Where noise is large against the intercept's entry, the mean α² of shrunk rows, the
   intercept keeps an axis of its own: that entry is a share in (0, 1), and those beside it, mean features, are shrunk by their own
   spread. In the rest noise pulls eigenvalues apart; the rotation-invariant estimator of Bun, Allez, Bouchaud and Potters (2016)
   pushes them back: ξ_i = λ_i − s²Σ_k (λ_i − λ_k)/((λ_i − λ_k)² + η²), and negative ones, which no X'X has, become 0. By Tweedie's
   formula the posterior variance of entry (i, k) is its noise variance times the derivative of this map, the divided difference
   (ξ_i − ξ_k)/(λ_i − λ_k).
2. h is chosen by marginal likelihood: 0 when holders differ by no more than their noise.
3. Each S_j is shrunk towards n_j B by K = T/(T + N), T its prior and N its noise variance, entry by entry.

A naive fit takes Ŝ_j for S_j; its errors then look like information (attenuation), and the more holders, the more so.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from tacit.analyst.evidence import Evidence

Array = NDArray[np.float64]

NOISY = 0.1
"""Edge of the noise's eigenvalues, over the intercept's entry, from which the intercept keeps an axis of its own."""
_HETEROGENEITY = np.concatenate([[0.0], np.geomspace(1e-5, 1.0, 31)])
"""Values of h that are tried: from none to holders with nothing in common."""


@dataclass(frozen=True)
class Grams:
    """S_j = `size`_j · shared + own, in the eigenbasis of the pooled matrix; its entries are independent a posteriori."""

    basis: Array  # (d, d): U, eigenvectors in columns; everything below is U'·U
    sizes: Array  # (J,): n_j, or a stand-in where it is not published
    mean: Array  # (J, d, d): posterior mean of S_j
    own_variance: Array  # (J, d, d): posterior variance of its entries, given B
    shared_variance: (
        Array  # (d, d): posterior variance of the entries of (1 − K)∘B, common to all holders
    )
    heterogeneity: float  # h


def grams(evidence: Evidence) -> Grams:
    """Posterior of every holder's X'X."""
    sizes = holder_sizes(evidence)
    weights = sizes / _variance(evidence)
    scale = float(np.sum(weights * sizes))
    pooled = np.einsum("j,jab->ab", weights, evidence.grams) / scale
    sd = float(np.sqrt(np.sum(weights**2 * _variance(evidence)))) / scale
    apart = evidence.intercept and sd * np.sqrt(2 * evidence.d) > NOISY * pooled[0, 0]
    basis = _basis(pooled, intercept=apart)
    rotated = np.einsum("ai,jab,bk->jik", basis, evidence.grams, basis, optimize=True)
    noise = _rotated_noise(evidence, basis)
    pooled_noise = np.einsum("j,jik->ik", weights**2, noise) / scale**2
    shrunk, derivative = _denoise(
        basis.T @ pooled @ basis, pooled_noise, evidence.average if apart else None
    )
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
        shared_variance=(1 - typical_gain) ** 2 * derivative * pooled_noise,
        heterogeneity=h,
    )


def _basis(pooled: Array, *, intercept: bool) -> Array:
    """Eigenvectors of the pooled matrix; the intercept, which no noise can turn, keeps its own axis."""
    basis = np.eye(len(pooled))
    first = int(intercept)
    basis[first:, first:] = np.linalg.eigh(pooled[first:, first:])[1]
    return basis


def _denoise(pooled: Array, noise: Array, most: float | None) -> tuple[Array, Array]:
    """The pooled matrix without the noise's pull, in its basis, and the derivative of that map entry by entry.

    Where the intercept keeps its axis, its entry is at `most` that; else None.
    """
    first, variance = int(most is not None), np.diag(noise)
    shrunk, derivative = np.zeros_like(pooled), np.zeros_like(pooled)
    if len(pooled) > first:
        values, derivative[first:, first:] = _shrink(
            np.diag(pooled)[first:], np.sqrt(np.median(variance[first:]))
        )
        shrunk[first:, first:] = np.diag(values)
    if most is not None:
        shrunk[0, 0], derivative[0, 0] = _share(float(pooled[0, 0]), float(variance[0]), most)
        sums, error = pooled[0, 1:], noise[0, 1:]
        spread = max(float(np.mean(sums**2 - error)), 0.0) if len(sums) else 0.0
        kept = spread / (spread + error)
        shrunk[0, 1:] = shrunk[1:, 0] = kept * sums
        derivative[0, 1:] = derivative[1:, 0] = kept
    return shrunk, derivative


def _share(value: float, variance: float, most: float) -> tuple[float, float]:
    """Mean of a number in (0, `most`) seen with noise, and its variance over the noise's.

    The intercept's entry is Σα² with α ≤ 1, so 1 at most per row; of a sum of k rows over √k it is k at most.
    """
    sd = np.sqrt(variance)
    ends = np.array([-value, most - value]) / sd
    mass = float(np.diff(ndtr(ends))[0])
    if mass < 1e-9:  # noqa: PLR2004
        return float(np.clip(value, 0.0, most)), 1.0
    heights = np.exp(-0.5 * ends**2) / np.sqrt(2 * np.pi) / mass
    shift = float(heights[0] - heights[1])
    return value + float(sd) * shift, float(
        np.clip(1 + ends[0] * heights[0] - ends[1] * heights[1] - shift**2, 0.0, 1.0)
    )


def holder_sizes(evidence: Evidence) -> Array:
    """Rows per holder or, where they are not published, the trace of X'X, which grows with them."""
    if evidence.counts is not None:
        sizes: Array = np.maximum(evidence.counts, 1.0)
    else:
        sizes = np.maximum(
            np.einsum("jaa->j", evidence.grams), evidence.gram_sd * np.sqrt(evidence.d)
        )
    return sizes


def _rotated_noise(evidence: Evidence, basis: Array) -> Array:
    """Noise variance of each entry of U'Ŝ_jU. Frobenius noise keeps its law; the rest of triangular noise is spread out."""
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
    """Eigenvalues with the noise's pull taken back, and the derivative of that map for every pair."""
    gap = values[:, None] - values[None, :]
    shrunk = np.maximum(values - sd**2 * np.sum(gap / (gap**2 + sd**2 / 2), axis=1), 0.0)
    moved = shrunk[:, None] - shrunk[None, :]
    derivative = np.divide(moved, gap, out=np.zeros_like(gap), where=np.abs(gap) > 1e-12 * sd)
    near = np.eye(len(values), k=1) + np.eye(len(values), k=-1)
    slope = (
        (derivative * near).sum(axis=1) / np.maximum(near.sum(axis=1), 1)
        if len(values) > 1
        else (shrunk > 0).astype(float)
    )
    return shrunk, np.clip(derivative + np.diag(slope), 0.0, 1.0)


def _heterogeneity(deviation: Array, noise: Array, shape: Array, sizes: Array) -> float:
    """The h of highest marginal likelihood, over the entries of the upper triangle."""
    if len(sizes) == 1:
        return 0.0
    upper = np.triu_indices(shape.shape[0])
    square, noise, unit = (
        deviation[:, *upper] ** 2,
        noise[:, *upper],
        (sizes**2)[:, None] * shape[upper],
    )
    variances = (noise + h * unit for h in _HETEROGENEITY)
    scores = [-0.5 * float(np.sum(np.log(variance) + square / variance)) for variance in variances]
    return float(_HETEROGENEITY[int(np.argmax(scores))])
