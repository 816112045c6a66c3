r"""All sub-models at once: Gaussian elimination term by term, in or out.

For a positive definite matrix K, a vector g and a set s of terms let

    F(s) = ½ g_s'K_ss⁻¹g_s − ½ log |K_ss|.

Eliminating the columns of a term adds ½ g₁'K₁₁⁻¹g₁ − ½ log |K₁₁| to F and leaves K₂₂ − K₂₁K₁₁⁻¹K₁₂
and g₂ − K₂₁K₁₁⁻¹g₁ of the others; a term that stays out is struck. After k terms there are 2^k
states, each with what is left of K, which is small when they are many: F of all 2^T sets costs
about 12·2^T multiplications where terms are single columns.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def all_subsets(matrix: Array, vector: Array, widths: Sequence[int], always: int) -> Array:
    """F of every set of terms, (2^T,): bit k of the index says whether term k is in.

    The first `always` columns are in every set; then come the terms, of so many columns each.
    """
    matrices = matrix[None]
    vectors = vector[None]
    values = np.zeros(1)
    if always:
        gain, matrices, vectors = _eliminated(matrices, vectors, always)
        values = values + gain
    for width in widths:
        gain, inner, shifted = _eliminated(matrices, vectors, width)
        matrices = np.concatenate([matrices[:, width:, width:], inner])
        vectors = np.concatenate([vectors[:, width:], shifted])
        values = np.concatenate([values, values + gain])
    return values


def _eliminated(matrices: Array, vectors: Array, width: int) -> tuple[Array, Array, Array]:
    """What eliminating the first columns adds to F, and what is left of K and g."""
    if width == 1:
        pivot = matrices[:, 0, 0]
        row = matrices[:, 0, 1:]
        scaled = row / pivot[:, None]
        first = vectors[:, 0]
        gain = 0.5 * (first**2 / pivot - np.log(pivot))
        inner = matrices[:, 1:, 1:] - scaled[:, :, None] * row[:, None, :]
        return gain, inner, vectors[:, 1:] - scaled * first[:, None]
    factor = np.linalg.cholesky(matrices[:, :width, :width])
    sides = np.concatenate([matrices[:, :width, width:], vectors[:, :width, None]], axis=2)
    half = np.linalg.solve(factor, sides)
    gain = 0.5 * np.sum(half[:, :, -1] ** 2, axis=1)
    gain -= np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    inner = matrices[:, width:, width:] - half[:, :, :-1].swapaxes(1, 2) @ half[:, :, :-1]
    shifted = vectors[:, width:] - np.einsum("nab,na->nb", half[:, :, :-1], half[:, :, -1])
    return gain, inner, shifted
