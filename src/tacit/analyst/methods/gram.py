"""What the holders' noisy X'X say of the true ones: a posterior mean and variance for every S_j.

Three steps, each in closed form: B is pooled over holders and freed of the noise's pull (N2), h is
chosen by marginal likelihood, and each S_j is shrunk towards n_j B (N4). Numbers (N1), (N2), … are
those of the equations in docs/methods.md, "noise-aware".
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

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
MOST_HOLDERS = 1000
"""Holders from whom h, and what else all have in common, is told where there are more."""
PART = 500
"""Holders whose matrices are worked on at a time."""
_COMMON = "_common_gram"
_TOTAL = "_total_gram"
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


@dataclass(frozen=True)
class GramTotal:
    """What all holders' X'X are together."""

    basis: Array  # (d, d): U
    sizes: Array  # (J,): n_j
    mean: Array  # (d, d): U' Σ_j E[S_j] U


@dataclass(frozen=True)
class Common:
    """What holders have in common: B and how far each may be from n_j B."""

    basis: Array  # (d, d): U
    shrunk: Array  # (d, d): U'BU
    shape: Array  # (d, d): variance of an entry of S_j over n_j², at h = 1
    shared_variance: Array  # (d, d)
    heterogeneity: float  # h

    def of(self, evidence: Evidence) -> Grams:
        """Posterior of the X'X of some of the holders, or of all."""
        rotated = self.basis.T @ evidence.grams @ self.basis
        sizes = holder_sizes(evidence)
        mean = sizes[:, None, None] * self.shrunk
        noise = _rotated_noise(evidence, self.basis)
        gain = self.gain(sizes, noise)
        return Grams(
            basis=self.basis,
            sizes=sizes,
            mean=mean + gain * (rotated - mean),
            own_variance=gain * noise,
            shared_variance=self.shared_variance,
            heterogeneity=self.heterogeneity,
        )

    def gain(self, sizes: Array, noise: Array) -> Array:
        """How far every holder's release counts beside B, (J, d, d)."""
        prior = (self.heterogeneity * sizes**2)[:, None, None] * self.shape
        gain: Array = prior / (prior + noise)
        return gain


def grams(evidence: Evidence) -> Grams:
    """Posterior of every holder's X'X."""
    return common_of(evidence).of(evidence)


def common_of(evidence: Evidence) -> Common:
    """B, and h from `MOST_HOLDERS` at most, who tell it well enough; found once for evidence."""
    known: dict[str, object] = vars(evidence)
    common = known.get(_COMMON)
    if not isinstance(common, Common):
        common = _common(evidence)
        known[_COMMON] = common
    return common


def _common(evidence: Evidence) -> Common:
    sizes = holder_sizes(evidence)
    variance = _variance(evidence)
    weights = sizes / variance
    scale = float(np.sum(weights * sizes))
    pooled = np.tensordot(weights, evidence.grams, 1) / scale
    sd = float(np.sqrt(np.sum(weights**2 * variance))) / scale
    if evidence.frame is not None:
        pooled = evidence.frame.sure
    noisy = sd * np.sqrt(2 * evidence.d) > NOISY * pooled[0, 0]
    apart = evidence.intercept and noisy and evidence.frame is None
    basis = _basis(pooled, intercept=apart)
    pooled_noise = _summed_noise(evidence, basis, weights**2) / scale**2
    most = evidence.average if apart else None
    if evidence.frame is None:
        shrunk, derivative = _denoise(basis.T @ pooled @ basis, pooled_noise, most)
        doubt = derivative * pooled_noise
    else:  # visits have weighed it against what is usual
        shrunk = basis.T @ pooled @ basis
        doubt = evidence.frame.told.sd**2 / 2 * (1 + np.eye(evidence.d))
    size = np.diag(shrunk)
    known = Common(
        basis=basis,
        shrunk=shrunk,
        shape=np.outer(size, size) + shrunk**2,
        shared_variance=np.zeros_like(shrunk),
        heterogeneity=0.0,
    )
    known = replace(known, heterogeneity=_heterogeneity(known, some_of(evidence)))
    gain = np.zeros_like(shrunk)
    for part in parts_of(evidence):
        own = holder_sizes(part)
        told = own * own / _variance(part)
        gain += np.tensordot(told, known.gain(own, _rotated_noise(part, basis)), 1)
    shared = (1 - gain / scale) ** 2 * doubt
    return replace(known, shared_variance=shared)


def total_of(evidence: Evidence) -> GramTotal:
    """All holders' X'X together; found once for evidence."""
    known: dict[str, object] = vars(evidence)
    total = known.get(_TOTAL)
    if not isinstance(total, GramTotal):
        total = _total(evidence)
        known[_TOTAL] = total
    return total


def _total(evidence: Evidence) -> GramTotal:
    common = common_of(evidence)
    total = np.zeros_like(common.shrunk)
    for part in parts_of(evidence):
        total += common.of(part).mean.sum(axis=0)
    return GramTotal(basis=common.basis, sizes=holder_sizes(evidence), mean=total)


def some_of(evidence: Evidence, most: int = MOST_HOLDERS) -> Evidence:
    """At most so many holders: the larger half of them the largest, the rest of every size.

    Who they are depends on n_j alone, not on what their releases tell.
    """
    if evidence.holders <= most:
        return evidence
    order = np.argsort(-holder_sizes(evidence), kind="stable")
    largest = order[: most // 2]
    others = order[most // 2 :]
    spaced = np.linspace(0, len(others) - 1, most - len(largest)).round().astype(int)
    return evidence.only(sorted([*largest.tolist(), *others[spaced].tolist()]))


def parts_of(evidence: Evidence) -> Iterator[Evidence]:
    """The holders in turn, a few at a time, so that little memory is needed at once."""
    if evidence.holders <= PART:
        yield evidence
        return
    for first in range(0, evidence.holders, PART):
        yield evidence.only(range(first, min(first + PART, evidence.holders)))


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
    """Noise variance of each entry of U'Ŝ_jU, (J, d, d)."""
    noise: Array = np.tensordot(_noise_kinds(evidence), _noise_shapes(basis), 1)
    return noise


def _summed_noise(evidence: Evidence, basis: Array, weights: Array) -> Array:
    """The same, summed over holders with these weights, (d, d)."""
    noise: Array = np.tensordot(weights @ _noise_kinds(evidence), _noise_shapes(basis), 1)
    return noise


def _noise_shapes(basis: Array) -> Array:
    """How Frobenius noise, and the rest of triangular noise, lie on the entries, (2, d, d).

    The former keeps its law in any basis; the latter is spread out.
    """
    both = 1 + np.eye(len(basis))
    return np.stack([both, both - 2 * (basis**2).T @ basis**2])


def _noise_kinds(evidence: Evidence) -> Array:
    """Variance of either kind of noise, (J, 2)."""
    frobenius = _variance(evidence) / 2
    extra = np.maximum(evidence.off_diagonal_sd**2 - frobenius, 0.0)
    return np.stack([frobenius, extra], axis=1)


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


def _heterogeneity(common: Common, evidence: Evidence) -> float:
    """The h of highest marginal likelihood, over the entries of the upper triangle."""
    if evidence.holders == 1:
        return 0.0
    sizes = holder_sizes(evidence)
    noise = _rotated_noise(evidence, common.basis)
    rotated = common.basis.T @ evidence.grams @ common.basis
    middle = common.shrunk
    if evidence.frame is not None:  # weighed against what is usual: all may lie to one side of it
        weights = sizes / _variance(evidence)
        middle = np.tensordot(weights, rotated, 1) / float(weights @ sizes)
    deviation = rotated - sizes[:, None, None] * middle
    upper = np.triu_indices(evidence.d)
    square = deviation[:, *upper] ** 2
    unit = (sizes**2)[:, None] * common.shape[upper]
    variances = [noise[:, *upper] + h * unit for h in _HETEROGENEITY]
    scores = [-0.5 * float(np.sum(np.log(variance) + square / variance)) for variance in variances]
    return float(_HETEROGENEITY[int(np.argmax(scores))])
