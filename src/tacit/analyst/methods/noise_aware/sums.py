r"""What holders say of (θ, c): sums over holders of F_j'V_j⁻¹F_j.

F_j = [S̄_j, n_j Cov(c)^½, ẑ_j − S̄_jm]. Few columns are worked on for all holders together, many by
`wide.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotri

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

    white: Array | Sequence[Array]  # (J, d, d): L_j⁻¹, V_j = L_jL_j'
    sides: Sides
    normal: Array  # (2d + 1, 2d + 1): `design`'`design`, summed over holders
    log_determinant: float  # Σ_j log|L_j|

    @cached_property
    def design(self) -> Array:
        """L_j⁻¹F_j, (J, d, 2d + 1)."""
        return self.sides.times(np.asarray(self.white))


def sums_of(covariances: Array, sides: Sides) -> Sums:
    """What holders say, whose ẑ_j have these covariances, (J, d, d)."""
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


def symmetric(lower: Array) -> Array:
    """The symmetric matrix with this lower triangle."""
    whole: Array = np.where(_lower(len(lower)), lower, lower.T)
    return whole


@lru_cache(maxsize=4)
def _lower(size: int) -> NDArray[np.bool_]:
    """Where a matrix's lower triangle lies, its diagonal included."""
    return np.tri(size, dtype=np.bool_)


def inverse_of(precision: Array, factor: Array) -> Array:
    """The inverse of a matrix whose Cholesky factor is given."""
    if len(precision) < WIDE:
        return np.linalg.inv(precision).astype(float)
    return symmetric(dpotri(factor, lower=1)[0])


def forward(factor: Array, vector: Array) -> Array:
    """L⁻¹v."""
    if len(factor) < WIDE:
        return np.linalg.solve(factor, vector).astype(float)
    solved: Array = solve_triangular(factor, vector, lower=True, check_finite=False)
    return solved
