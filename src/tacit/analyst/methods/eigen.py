"""Noisy X'X made positive semidefinite: eigendecompositions, negative eigenvalues cut at zero."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence

Array = NDArray[np.float64]


class Eigen(NamedTuple):
    """S̃_j = E_j diag(D_j) E_j', the positive semidefinite matrix nearest to Ŝ_j."""

    vectors: Array  # (J, d, d): E_j, eigenvectors in columns
    values: Array  # (J, d): D_j ≥ 0
    moments: Array  # (J, d): E_j'ẑ_j
    moment_variance: Array  # (J,): noise variance of ẑ_j


def eigen(evidence: Evidence) -> Eigen:
    """Decompose every holder's matrix once; all fixed-S methods work in these bases."""
    values, vectors = np.linalg.eigh(evidence.grams)
    moments = np.einsum("jab,ja->jb", vectors, evidence.moments)
    return Eigen(
        vectors=vectors,
        values=np.maximum(values, 0.0),
        moments=moments,
        moment_variance=evidence.moment_sd**2,
    )


def natural_parameters(basis: Eigen, noise_variance: float) -> tuple[Array, Array]:
    r"""What the releases say of θ at a given σ²: the sums in P and h of (F3).

    In each eigenbasis A_j is diagonal. A direction with eigenvalue zero says nothing.
    """
    total = noise_variance * basis.values + basis.moment_variance[:, None]
    gain = np.divide(basis.values, total, out=np.zeros_like(total), where=basis.values > 0)
    weighted = basis.vectors * (gain * basis.values)[:, None, :]
    precision = np.tensordot(weighted, basis.vectors, axes=([0, 2], [0, 2]))
    shift = np.tensordot(basis.vectors, gain * basis.moments, axes=([0, 2], [0, 1]))
    return precision, shift
