"""Answers: the values that a response can take, and how likely each is at a mean.

What a bound leaves of an answer depends on which one it is, not on its mean alone. 0 and 1 are two
values; counts are taken one by one up to 60, then in cells that grow.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, pdtr

from tacit.analyst.families.links import Link

Array = NDArray[np.float64]

SINGLE = 60
"""Counts that are told apart; above, cells end where a square root has even steps."""
CELLS = 200
LEAST_MEAN = 1e-12


@dataclass(frozen=True)
class Answers:
    """The values of a response with this range, and the link by which means follow."""

    link: Link
    values: Array  # (m,): rising
    last: Array  # (m,): the largest count of each cell

    @classmethod
    def of(cls, link: Link, top: float) -> "Answers":
        """0 and 1, or counts up to `top`, where larger ones are put."""
        if link.binary:
            return cls(link=link, values=np.array([0.0, 1.0]), last=np.array([0.0, 1.0]))
        whole = int(top)
        last = np.arange(min(whole, SINGLE) + 1.0)
        if whole > SINGLE:
            roots = np.linspace(np.sqrt(SINGLE), np.sqrt(whole), CELLS + 1)
            last = np.unique(np.concatenate([last, np.round(roots**2)]))
        first = np.concatenate([[0.0], last[:-1] + 1])
        values = (first + last) / 2
        values[-1] = top
        return cls(link=link, values=values, last=last)

    def chances(self, index: Array) -> Array:
        """Probability of every value at each x'β, (n, m)."""
        means = self.link.mean(index)
        if self.link.binary:
            return np.stack([1 - means, means], axis=1)
        if len(self.last) > self.last[-1]:  # every count for itself
            below = np.cumsum(self._densities(means), axis=1)
        else:
            below = pdtr(self.last[:-1], means[:, None])
        return np.diff(below, prepend=0.0, append=1.0, axis=1)

    def slopes(self, index: Array) -> Array:
        """Derivatives of these probabilities along x'β."""
        slope = self.link.slope(index)
        if self.link.binary:
            return np.stack([-slope, slope], axis=1)
        steps = -slope[:, None] * self._densities(self.link.mean(index))
        return np.diff(steps, prepend=0.0, append=0.0, axis=1)

    def _densities(self, means: Array) -> Array:
        """Probability of the largest count of each cell but the last."""
        logs = np.log(np.maximum(means, LEAST_MEAN))
        counts = self.last[:-1]
        densities: Array = np.exp(
            np.multiply.outer(logs, counts) - means[:, None] - gammaln(counts + 1)
        )
        return densities
