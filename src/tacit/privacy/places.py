r"""Places: noisy sums that tell where the values of each column lie, and how far they spread.

A complete row with K values u_k ∈ [−1, 1], as public ranges map them, contributes

    t(u) = (√K, u_1, …, u_K, √2·u_1², …, √2·u_K²),        and t = 0 where a value is missing.

No value moves its two sums by more than 2, and a row that comes or goes moves all by 2√K at most:
that is the exact L2 sensitivity under both relations. Proof: docs/privacy.md, "Where values lie".
"""

import math
from dataclasses import dataclass, replace

from tacit.privacy.gaussian import mu_of
from tacit.privacy.mechanism import lattice_under, share_of_noise
from tacit.privacy.sensitivity import Relation
from tacit.privacy.visits import visit_multiplier
from tacit.records import Positive, Record

SQUARE_WEIGHT = math.sqrt(2)
"""Weight of Σu²: the largest at which the worst exchange is still from one end to the other."""


class PlacesNoise(Record):
    """Standard deviation of the noise on the number of rows, on Σu and on Σu² of each column."""

    count: Positive
    total: Positive
    square: Positive

    def times(self, factor: float) -> "PlacesNoise":
        """The same parts with so many times the noise."""
        return PlacesNoise(
            count=self.count * factor, total=self.total * factor, square=self.square * factor
        )


@dataclass(frozen=True)
class PlacesMechanism:
    """A calibrated Gaussian mechanism for the sums; its noise is multiples of 2**`lattice`."""

    relation: Relation
    epsilon: float
    delta: float
    mu: float
    sensitivity: float
    multiplier: float
    noise: PlacesNoise
    columns: int
    lattice: int

    @property
    def entries(self) -> int:
        """How many numbers carry noise."""
        return places_entries(self.columns)

    @property
    def sds(self) -> list[float]:
        """The noise on each number, in the order in which they are published."""
        noise = self.noise
        return [noise.count, *([noise.total] * self.columns), *([noise.square] * self.columns)]

    def summed(self, holders: int, covering: int) -> "PlacesMechanism":
        """The noise of so many holders' shares, of which any `covering` make up this one."""
        share = self.noise.times(share_of_noise(covering))
        return replace(
            self,
            noise=share.times(math.sqrt(holders)),
            lattice=lattice_under(vars(share).values()),
        )


def places_sensitivity(columns: int) -> float:
    """L2 sensitivity of the weighted sums of so many columns, the same for both relations."""
    return 2 * math.sqrt(columns)


def places_entries(columns: int) -> int:
    """How many numbers are published of so many columns."""
    return 2 * columns + 1


def calibrate_places(
    columns: int, relation: Relation, share: float, all_entries: int, budget: tuple[float, float]
) -> PlacesMechanism:
    """Noise for the sums of so many columns with a share of the budget (ε, δ)."""
    epsilon, delta = budget
    entries = places_entries(columns)
    multiplier = visit_multiplier(share, entries, all_entries, epsilon, delta)
    sensitivity = places_sensitivity(columns) * (1 + 1e-12)
    sd = multiplier * sensitivity
    noise = PlacesNoise(
        count=sd / math.sqrt(columns) * (1 + 1e-15),
        total=sd,
        square=sd / SQUARE_WEIGHT * (1 + 1e-15),
    )
    return PlacesMechanism(
        relation=relation,
        epsilon=epsilon,
        delta=delta,
        mu=mu_of(epsilon, delta),
        sensitivity=sensitivity,
        multiplier=multiplier,
        noise=noise,
        columns=columns,
        lattice=lattice_under(vars(noise).values()),
    )
