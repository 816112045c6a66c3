r"""What holders say of (θ, c): sums over holders of F_j'V_j⁻¹F_j.

F_j = [S̄_j, n_j Cov(c)^½, ẑ_j − S̄_jm]. Few columns are worked on for all holders together; from
`WIDE` columns on, one holder's matrices at a time by their own shapes (triangular, symmetric), on
all cores, and Cov(c)^½ is applied to the sums.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk, dtrmm
from scipy.linalg.lapack import dlauum, dpotrf, dpotri, dtrtri

from tacit.analyst.methods.noise_aware.threads import mapped

Array = NDArray[np.float64]

WIDE = 128
"""Columns from which on one holder's matrices are worked on at a time."""


@dataclass(frozen=True)
class Sides:
    """F_j = [S̄_j, n_j Cov(c)^½, ẑ_j − S̄_jm]."""

    mean: Array  # (J, d, d): S̄_j
    sizes: Array  # (J,): n_j
    shared: Array  # (d, d): Cov(c)^½
    residual: Array  # (J, d): ẑ_j − S̄_jm

    def times(self, white: Array) -> Array:
        """L_j⁻¹F_j, (J, d, 2d + 1)."""
        d = white.shape[1]
        design = np.empty((*white.shape[:2], 2 * d + 1))
        np.matmul(white, self.mean, out=design[:, :, :d])
        np.matmul(self.sizes[:, None, None] * white, self.shared, out=design[:, :, d:-1])
        design[:, :, -1:] = white @ self.residual[..., None]
        return design


@dataclass(frozen=True)
class Sums:
    """What holders say of (θ, c), in the eigenbasis."""

    white: Array  # (J, d, d): L_j⁻¹, V_j = L_jL_j'
    sides: Sides
    normal: Array  # (2d + 1, 2d + 1): `design`'`design`, summed over holders
    log_determinant: float  # Σ_j log|L_j|

    @cached_property
    def design(self) -> Array:
        """L_j⁻¹F_j, (J, d, 2d + 1)."""
        return self.sides.times(self.white)


def sums_of(covariances: Array, sides: Sides) -> Sums:
    """What holders say, whose ẑ_j have these covariances, (J, d, d)."""
    if covariances.shape[1] >= WIDE:
        return _of_many_columns(covariances, sides)
    root = np.linalg.cholesky(covariances).astype(float)
    white = np.linalg.inv(root).astype(float)
    design = sides.times(white)
    flat = design.reshape(-1, design.shape[2])
    sums = Sums(
        white=white,
        sides=sides,
        normal=flat.T @ flat,
        log_determinant=float(np.log(np.diagonal(root, axis1=1, axis2=2)).sum()),
    )
    vars(sums)["design"] = design
    return sums


def _of_many_columns(covariances: Array, sides: Sides) -> Sums:
    parts = mapped(lambda j: _part(covariances[j], sides, j), range(len(covariances)))
    whites, normals, determinants = zip(*parts, strict=True)
    normal = np.sum(normals, axis=0)
    d = covariances.shape[1]
    normal[d:-1] = sides.shared.T @ normal[d:-1]
    normal[:, d:-1] = normal[:, d:-1] @ sides.shared
    return Sums(
        white=np.array(whites),
        sides=sides,
        normal=normal,
        log_determinant=float(sum(determinants)),
    )


def _part(covariance: Array, sides: Sides, j: int) -> tuple[Array, Array, float]:
    """L⁻¹, [S̄, nI, r]'V⁻¹[S̄, nI, r] and log|L| of one holder."""
    root, failed = dpotrf(covariance, lower=1, clean=1)
    if failed:
        raise np.linalg.LinAlgError("a covariance is not positive definite")
    white = dtrtri(root, lower=1)[0]
    d = len(root)
    size = sides.sizes[j]
    local = dtrmm(1.0, white, sides.mean[j], lower=1)
    residual = white @ sides.residual[j]
    normal = np.zeros((2 * d + 1, 2 * d + 1))
    normal[:d, :d] = _symmetric(dsyrk(1.0, local, trans=1, lower=1))
    normal[d:-1, :d] = size * dtrmm(1.0, white, local, lower=1, trans_a=1)
    normal[d:-1, d:-1] = size**2 * _symmetric(dlauum(white, lower=1)[0])
    normal[-1, :d] = residual @ local
    normal[-1, d:-1] = size * (residual @ white)
    normal[:d, d:-1] = normal[d:-1, :d].T
    normal[:-1, -1] = normal[-1, :-1]
    normal[-1, -1] = residual @ residual
    return white, normal, float(np.log(np.diag(root)).sum())


def _symmetric(lower: Array) -> Array:
    """The symmetric matrix with this lower triangle."""
    kept = np.tril(lower)
    whole: Array = kept + np.tril(kept, -1).T
    return whole


def inverse_of(precision: Array, factor: Array) -> Array:
    """The inverse of a matrix whose Cholesky factor is given."""
    if len(precision) < WIDE:
        return np.linalg.inv(precision).astype(float)
    return _symmetric(dpotri(factor, lower=1)[0])
