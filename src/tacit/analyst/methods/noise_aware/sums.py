r"""What holders say of (θ, c): sums over holders of F_j'V_j⁻¹F_j.

F_j = [S̄_j, n_j Cov(c)^½, ẑ_j − S̄_jm]. Few columns are worked on for all holders together, many by
`wide.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.methods.noise_aware import lapack

Array = NDArray[np.float64]

WIDE = 128
"""Columns from which on one holder's matrices are worked on at a time."""


@dataclass(frozen=True)
class Sides:
    """F_j = [S̄_j, n_j Cov(c)^½, ẑ_j − S̄_jm]."""

    mean: Array  # (J, d, d): S̄_j
    sizes: Array  # (J,): n_j
    shared: Array  # (d, d): Cov(c)^½, lower triangular from `WIDE` columns on
    residual: Array  # (J, d): ẑ_j − S̄_jm

    def times(self, white: Array) -> Array:
        """L_j⁻¹F_j, (J, d, 2d + 1)."""
        d = white.shape[1]
        design = np.empty((*white.shape[:2], 2 * d + 1))
        np.matmul(white, self.mean, out=design[:, :, :d])
        np.matmul(self.sizes[:, None, None] * white, self.shared, out=design[:, :, d:-1])
        design[:, :, -1:] = white @ self.residual[..., None]
        return design

    def of(self, j: int) -> "Sides":
        """One holder's."""
        one = slice(j, j + 1)
        return replace(
            self, mean=self.mean[one], sizes=self.sizes[one], residual=self.residual[one]
        )


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

    def normal_of(self, j: int) -> Array:
        """What one holder says, (2d + 1, 2d + 1)."""
        [design] = self.sides.of(j).times(np.asarray(self.white[j])[None])
        normal: Array = design.T @ design
        return normal


@dataclass(frozen=True)
class Joint:
    """The Gaussian of (θ − m, c)."""

    mean: Array  # (2d,)
    covariance: Array  # (2d, 2d); from `WIDE` columns on of θ alone, (d, d)
    factor: Array  # (2d, 2d): L, the precision's; from `WIDE` columns on that of (c, θ)
    square: float  # h'P⁻¹h, P the precision and h the moment

    @classmethod
    def of(cls, normal: Array, prior: Array) -> "Joint":
        """From what holders say and the precision beforehand."""
        precision = normal[:-1, :-1] + prior
        factor = np.linalg.cholesky(precision).astype(float)
        half = np.linalg.solve(factor, normal[:-1, -1])
        covariance = np.linalg.inv(precision).astype(float)
        return cls(
            mean=covariance @ normal[:-1, -1],
            covariance=covariance,
            factor=factor,
            square=float(half @ half),
        )


def inverse_of(precision: Array) -> Array:
    """The inverse of a positive definite matrix."""
    if len(precision) < WIDE:
        return np.linalg.inv(precision).astype(float)
    root = lapack.root_of(np.array(precision, order="F"))
    return symmetric(lapack.squared(lapack.inverse_root(root)))


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
