"""The density of each coefficient, for pictures: of the exact law, or by a kernel over draws."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import gaussian_kde

from tacit.analyst.posterior.laws import Draws
from tacit.analyst.posterior.posterior import AnyUnits, Posterior

Array = NDArray[np.float64]

POINTS = 121
REACH = 3.3
"""How far curves go, in standard deviations of a normal law of the same quantiles."""


def densities(posterior: Posterior, units: AnyUnits = "user") -> list[tuple[Array, Array]]:
    """Per coefficient: places and heights, the highest being 1; empty for a point estimate."""
    outcome = posterior.outcome
    to = posterior.units(units)
    standard = np.linspace(-REACH, REACH, POINTS)
    probabilities = ndtr(standard)
    quantiles = outcome.quantiles(probabilities, to.matrix, to.offset)
    if np.isnan(quantiles).any():
        return []
    if isinstance(outcome, Draws):
        draws = (outcome.flat @ to.matrix.T + to.offset).T
        return [_kernel(column, places) for column, places in zip(draws, quantiles, strict=True)]
    return [_slope(probabilities, places) for places in quantiles]


def _slope(probabilities: Array, places: Array) -> tuple[Array, Array]:
    """Density as the slope of the distribution function."""
    middles = (places[1:] + places[:-1]) / 2
    heights = np.diff(probabilities) / np.maximum(np.diff(places), 1e-300)
    return middles, heights / heights.max()


def _kernel(draws: Array, quantiles: Array) -> tuple[Array, Array]:
    places = np.linspace(quantiles[0], quantiles[-1], POINTS)
    if draws.std() == 0:  # a chain that never moved
        return places, np.ones(POINTS)
    heights = gaussian_kde(draws[:: max(1, len(draws) // 4000)])(places)
    return places, heights / heights.max()
