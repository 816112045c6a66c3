"""How far holders differ in their coefficients, and in which a new holder is taken to differ."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

TAKEN_TO_DIFFER = 1 / 12
"""Probability that holders differ in a coefficient, from which on a new holder is taken to."""


def _spaced(values: Array, weights: Array, shares: Array) -> Array:
    """Quantiles of weighted values at the middles of some shares."""
    order = np.argsort(values)
    levels = (np.cumsum(weights[order]) - weights[order] / 2) / max(weights.sum(), 1e-300)
    middles = (np.cumsum(shares) - shares / 2) / max(shares.sum(), 1e-300)
    spaced: Array = np.interp(middles, levels, values[order])
    return spaced


@dataclass(frozen=True)
class Differing:
    """How far holders differ, beside the parts of a mixture; scaled units, holders as collected."""

    spreads: Array  # (k, d): sd of each coefficient between holders, at every part
    locations: Array  # (J, d): mean of every holder's own coefficients
    covariances: Array  # (J, d, d): and their covariance
    within: Array  # (d, d): covariance of a typical holder's coefficients from its release alone
    ratios: Array  # (J,): residual variance of every holder over σ²
    told: NDArray[np.bool_]  # (d,): whether enough holders tell of a coefficient's τ
    constant: NDArray[np.bool_]  # (d,): whether a column is constant within every holder
    alone: bool = False  # whether each holder was fitted by itself, and no τ was estimated
    outlying: tuple[int, ...] = ()  # holders too far from the others to count for the average
    together: Array | None = None  # (k,): κ², how far differences go together; None: they do not
    shape: Array | None = None  # (d, d): H, along which they do

    @property
    def between(self) -> Array:
        """Covariance of coefficients between holders at every part, (k, d, d)."""
        d = self.spreads.shape[1]
        between = np.zeros((len(self.spreads), d, d))
        if self.together is not None and self.shape is not None:
            between += self.together[:, None, None] * self.shape
        between[:, range(d), range(d)] = self.spreads**2
        return between

    def usual(self, weights: Array) -> Array:
        """Covariance between holders at the means of their sds, given weights, (d, d)."""
        mean = np.einsum("k,kab->ab", weights, self.between)
        scale = weights @ self.spreads / np.sqrt(np.maximum(np.diag(mean), 1e-300))
        usual: Array = np.outer(scale, scale) * mean
        return usual

    def of_new_holder(self, weights: Array) -> Array:
        """The same for a holder that has not published, given the parts' weights.

        Averaged over what is likely, intervals would hold a new holder's coefficient in more than
        90 % of studies where holders do not differ and in too few where they do and it hardly
        shows. So a coefficient that differs with probability `TAKEN_TO_DIFFER` or more is taken
        to: where a part says that it does not, its τ is one of those of the parts that say so. Any
        other is taken not to.
        """
        above = self.spreads > 0
        doubted = weights @ above >= TAKEN_TO_DIFFER
        between = self.between
        between[:, ~doubted, :] = 0.0
        between[:, :, ~doubted] = 0.0
        for k in np.flatnonzero(doubted):
            some = above[:, k]
            between[~some, k, k] = _spaced(
                self.spreads[some, k] ** 2, weights[some], weights[~some]
            )
        return between

    def variances(self, matrix: Array) -> Array:
        """Variance between holders of each entry of matrix @ θ at every part, (k, entry)."""
        variances: Array = self.spreads**2 @ (matrix**2).T
        if self.together is not None and self.shape is not None:
            apart = self.shape - np.diag(np.diag(self.shape))
            along = np.einsum("ia,ab,ib->i", matrix, apart, matrix)
            variances = variances + np.multiply.outer(self.together, along)
        return np.maximum(variances, 0.0)
