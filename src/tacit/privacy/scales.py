r"""Private scales: noisy moments of each column, from which typical intervals are fixed.

A row contributes, for each column whose value is there and mapped to u ∈ [−1, 1] by the public
range,

    t(u) = (1, u, √2·u²),        and t = (0, 0, 0) where the value is missing.

No column moves further than 2, under either relation, and one row can move all of them that far, so
the exact L2 sensitivity of K columns is 2√K. Proof: docs/privacy.md, "Private scales".
"""

import math
from dataclasses import dataclass

from tacit.privacy.gaussian import mu_of
from tacit.privacy.mechanism import lattice_multiplier, lattice_under
from tacit.privacy.sensitivity import Relation
from tacit.records import Positive, Record

SQUARE_WEIGHT = math.sqrt(2)
"""Weight of Σu²: the largest at which the worst exchange is still from one end to the other."""


class MomentNoise(Record):
    """Standard deviation of the noise on the number of values, on Σu and on Σu² of each column."""

    count: Positive
    total: Positive
    square: Positive


@dataclass(frozen=True)
class ScalesMechanism:
    """A calibrated Gaussian mechanism for the moments; its noise is multiples of 2**`lattice`."""

    relation: Relation
    epsilon: float
    delta: float
    mu: float
    sensitivity: float
    multiplier: float
    noise: MomentNoise
    lattice: int


def scales_sensitivity(columns: int) -> float:
    """L2 sensitivity of the weighted moments of so many columns, the same for both relations."""
    return 2 * math.sqrt(columns)


def calibrate_scales(
    columns: int, relation: Relation, epsilon: float, delta: float
) -> ScalesMechanism:
    """Noise for the moments of so many columns at (ε, δ)."""
    multiplier = lattice_multiplier(3 * columns, epsilon, delta)
    sensitivity = scales_sensitivity(columns) * (1 + 1e-12)
    sd = multiplier * sensitivity
    noise = MomentNoise(count=sd, total=sd, square=sd / SQUARE_WEIGHT * (1 + 1e-15))
    return ScalesMechanism(
        relation=relation,
        epsilon=epsilon,
        delta=delta,
        mu=mu_of(epsilon, delta),
        sensitivity=sensitivity,
        multiplier=multiplier,
        noise=noise,
        lattice=lattice_under(vars(noise).values()),
    )
