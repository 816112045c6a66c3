"""What is known of X'X per row, as visits tell it one after the other."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.visits.pool import Pool

Array = NDArray[np.float64]

LEAST = 0.02
"""Smallest variance of a direction, over that of a usual one."""
LEAST_CLEAR = 1e-6
"""The same where X'X is clear."""
MOST_VARIANCE = 0.25
"""Largest variance of what is known of an entry of X'X per row along stretched axes."""


@dataclass(frozen=True)
class Known:
    """What is known of X'X per row, of rows that are not shrunk, in some columns."""

    gram: Array  # (d, d)
    variance: Array  # (d, d): of its entries along the axes
    axes: Array  # (d, d): along which errors of entries are independent

    def told(self, pool: Pool, level: float) -> "Known":
        """What a pool adds, entry by entry; of their squared length its rows kept `level`."""
        rows = pool.rows * level
        noise = (pool.gram_sd / rows) ** 2 / 2 * (1 + np.eye(len(self.gram)))
        gain = self.variance / (self.variance + noise)
        apart = gain * (self.axes.T @ (pool.gram / rows - self.gram) @ self.axes)
        return Known(
            gram=self.gram + self.axes @ apart @ self.axes.T,
            variance=gain * noise,
            axes=self.axes,
        )

    def mapped(self, matrix: Array) -> "Known":
        """The same of other columns; errors of entries are taken as alike and independent.

        They are then independent along the axes of the map, and far larger along those that it
        makes longer: there, later readings are to count, not this one.
        """
        sizes, axes = np.linalg.eigh(matrix.T @ matrix)
        mean = float(np.mean(self.variance))
        alike = np.outer(sizes, sizes) * (1 + np.eye(len(sizes))) / 2
        return Known(
            gram=matrix.T @ self.gram @ matrix,
            variance=np.minimum(mean * alike, MOST_VARIANCE),
            axes=axes,
        )

    @property
    def sd(self) -> float:
        """Of a diagonal entry, were errors those of rotation-invariant noise."""
        return math.sqrt(2 * float(np.mean(self.variance)))

    @property
    def least(self) -> float:
        """Variance that a direction is taken to have at least: less is not told from none.

        Where much is known it goes to 0: a direction that is taken for longer than it is gets
        steps that are too short, at every visit.
        """
        usual = max(float(np.mean(np.diag(self.gram))), LEAST * self.sd)  # noise may be below 0
        return max(min(LEAST * usual, self.sd), LEAST_CLEAR * usual)


def lifted(gram: Array, least: float) -> Array:
    """A symmetric matrix whose eigenvalues are at least this."""
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    raised: Array = (vectors * np.maximum(values, least)) @ vectors.T
    return raised
