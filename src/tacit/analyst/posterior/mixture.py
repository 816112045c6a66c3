"""Quantiles of many mixtures of Gaussians at once, to the precision of the computer."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Array = NDArray[np.float64]

NEWTON = 20
"""Newton steps before bisection takes over: three or four are enough unless the law has a nearly empty middle."""
HALVINGS = 80
PRECISION = 1e-8
"""Last step, in standard deviations of the mixture, at which it counts as found."""
_ROOT_TWO_PI = np.sqrt(2 * np.pi)


class Mixtures(NamedTuple):
    """Mixtures of k Gaussians, part k of mixture i being N(centres[k, i], widths[k, i]²) with weight weights[k]."""

    weights: Array  # (k,)
    centres: Array  # (k, i)
    widths: Array  # (k, i)

    def quantiles(self, probabilities: Array) -> Array:
        """Quantiles, (mixture, probability)."""
        mean = self.weights @ self.centres
        sd = np.sqrt(self.weights @ (self.widths**2 + (self.centres - mean) ** 2))
        return np.stack(
            [self._quantile(probability, mean, sd) for probability in probabilities.tolist()],
            axis=1,
        )

    def _quantile(self, probability: float, mean: Array, sd: Array) -> Array:
        """Newton's steps from the quantile of the normal law with the same moments, kept between bounds that close in.

        At first these are Cantelli's: no law with that mean and sd has its quantile outside.
        """
        odds = np.sqrt(probability / (1 - probability))
        low, high = mean - sd / odds, mean + sd * odds
        now = mean + sd * ndtri(probability)
        for step in range(NEWTON + HALVINGS):
            below, density = self._law(now)
            low, high = (
                np.where(below < probability, now, low),
                np.where(below < probability, high, now),
            )
            after = now - (below - probability) / np.maximum(density, 1e-300)
            after = np.where(
                (after >= low) & (after <= high) & (step < NEWTON), after, (low + high) / 2
            )
            moved, now = np.abs(after - now), after
            if np.all(moved <= PRECISION * sd):
                break
        return now

    def _law(self, at: Array) -> tuple[Array, Array]:
        """Distribution function and density of each mixture."""
        standard = (at - self.centres) / self.widths
        density = np.exp(-0.5 * standard**2) / self.widths / _ROOT_TWO_PI
        return self.weights @ ndtr(standard), self.weights @ density
