"""What the model of `noise-aware` knows of the evidence before any ρ, τ or σ² is chosen."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.gram import Grams, GramTotal, grams
from tacit.analyst.methods.noise_aware.slopes import Slopes, slopes_of
from tacit.analyst.prior import Prior

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Facts:
    """What does not change from node to node, in the eigenbasis."""

    grams: Grams
    moments: Array  # (J, d): U'ẑ_j
    moment_variance: Array  # (J,): σ_z²
    sampling: Array  # (J, d, d): S̄_j without its negative part
    errors: Array  # (J, d, d): Cov(z_j | X_j) over ρ_jσ²; S̄_j unless a family says otherwise
    ratios: Array  # (J,): ρ_j
    slopes: Slopes
    shape: Array  # (d, d): H, in the study's columns
    shapes: Array  # (J, d, d): H_j, or (d, d): 0
    quiet: Array  # (r, d, d): along which X'X has no noise, over the noise's own shape
    axes: Array  # (d, d): the study's coefficients from those along the eigenvectors
    back: Array  # (d, d): its inverse

    @cached_property
    def turned(self) -> Array:
        """S̄_j with the study's columns, (J, d, d)."""
        turned: Array = self.grams.mean @ self.back
        return turned


def facts_of(evidence: Evidence, prior: Prior) -> Facts:
    """What the evidence says of X'X, and the rest of it in the same basis."""
    posterior = grams(evidence)
    total = GramTotal(posterior.basis, posterior.sizes, posterior.mean.sum(axis=0))
    return facts_from(evidence, posterior, slopes_of(evidence, total, prior))


def facts_from(evidence: Evidence, posterior: Grams, slopes: Slopes) -> Facts:
    """The same, of holders whose Gram matrices and expected slopes are known."""
    sampling = _not_negative(posterior.mean)
    size = np.einsum("jaa->j", sampling) / evidence.d
    rounding = 1e-12 * (1 + size) ** 2  # exact statistics have no noise
    axes = posterior.basis
    back = posterior.basis.T
    if evidence.frame is not None:
        axes = evidence.frame.map @ posterior.basis
        back = np.linalg.inv(axes).astype(float)
    return Facts(
        grams=posterior,
        moments=evidence.moments @ posterior.basis,
        moment_variance=np.maximum(evidence.moment_sd**2, rounding),
        sampling=sampling,
        errors=_errors(evidence, posterior.basis, sampling),
        ratios=np.ones(evidence.holders),
        slopes=slopes,
        shape=np.zeros((evidence.d, evidence.d)),
        shapes=np.zeros((evidence.d, evidence.d)),
        quiet=_quiet(evidence, posterior.basis),
        axes=axes,
        back=back,
    )


def _not_negative(matrices: Array) -> Array:
    """Symmetric matrices without their negative part."""
    try:
        np.linalg.cholesky(matrices)  # a fifth of the time
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(matrices)
        kept: Array = (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.swapaxes(1, 2)
        return kept
    return matrices


def _errors(evidence: Evidence, basis: Array, sampling: Array) -> Array:
    """CS̄_jC' in the eigenbasis, or S̄_j itself."""
    if evidence.error_maps is None:
        return sampling
    maps = basis.T @ evidence.error_maps @ basis
    errors: Array = maps @ sampling @ maps.swapaxes(1, 2)
    return errors


def _quiet(evidence: Evidence, basis: Array) -> Array:
    """Where X'X has no noise, in the eigenbasis: entries over √(1, or ½ off the diagonal)."""
    d = evidence.d
    if evidence.quiet is None:
        return np.zeros((0, d, d))
    quiet: Array = basis.T @ evidence.quiet @ basis / np.sqrt((1 + np.eye(d)) / 2)
    return quiet
