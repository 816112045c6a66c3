"""The mechanism: which part of the statistics gets how much noise for a budget (ε, δ).

The weighted statistics have L2 sensitivity Δ; noise of `multiplier`·Δ on each weighted coordinate
gives (ε, δ). A part published with weight w therefore gets noise of sd multiplier·Δ/w once the
weight is divided out. `frobenius` noise halves the variance off the diagonal, because Δ counts
those entries twice; `triangular` noise, the 2023 paper's, does not.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from tacit.privacy.gaussian import mu_of
from tacit.privacy.layout import PARTS, Layout, PartName
from tacit.privacy.sensitivity import Relation, Weights, sensitivity
from tacit.records import Positive, Record

Shape = Literal["frobenius", "triangular"]

LATTICE_BITS = 32
"""The lattice is at least this many binary places finer than the smallest sd of the noise."""


STEP_BITS = 56
"""A part whose sd takes more bits than this on the common lattice is put on a coarser one."""


class Noise(Record):
    """Sd of the noise on each published part, in the part's own units; None: not published."""

    xtx_diagonal: Positive
    xtx_off_diagonal: Positive
    xty: Positive
    yty: Positive | None
    count: Positive | None
    eigenvalue: Positive | None

    def by_part(self) -> dict[PartName, float]:
        """Standard deviation of every part that is published, in the order of the layout."""
        return {part: sd for part in PARTS if (sd := getattr(self, part)) is not None}

    def published(self) -> list[float]:
        """Those standard deviations alone."""
        return list(self.by_part().values())

    def times(self, factor: float) -> "Noise":
        """The same parts with so many times the noise."""
        return self.model_copy(update={part: sd * factor for part, sd in self.by_part().items()})


@dataclass(frozen=True)
class Mechanism:
    """A calibrated Gaussian mechanism; its noise consists of multiples of 2**`lattice`."""

    relation: Relation
    shape: Shape
    epsilon: float
    delta: float
    mu: float
    sensitivity: float
    multiplier: float
    noise: Noise
    layout: Layout
    lattice: int

    @property
    def entries(self) -> int:
        """How many numbers carry noise."""
        return self.layout.entries


@dataclass(frozen=True)
class Form:
    """What is published of rows of d columns, ‖x‖ ≤ `x` and |y| ≤ `y`, in groups of `average`.

    Each of several `responses` has the same bound and the same weights.
    """

    d: int
    x: float
    y: float
    weights: Weights
    relation: Relation
    shape: Shape
    average: int = 1
    responses: int = 1

    @property
    def layout(self) -> Layout:
        """Which numbers carry noise, in their order."""
        weights = self.weights
        return Layout(
            d=self.d,
            square=weights.square > 0,
            count=weights.count > 0,
            eigenvalue=weights.eigenvalue > 0,
            responses=self.responses,
        )

    @property
    def sensitivity(self) -> float:
        """L2 sensitivity of the weighted statistics, rounded up."""
        weights = self.weights.as_one(self.responses)
        return sensitivity(self.x, self.y, weights, self.relation, self.average) * (1 + 1e-12)


def lattice_multiplier(entries: int, epsilon: float, delta: float) -> float:
    """Noise over sensitivity for so many `entries` m at (ε, δ), with the lattice's cost included.

    Two small costs are paid here (docs/privacy.md, "The lattice"): statistics are rounded to the
    lattice, which adds at most √m·2⁻³² to μ, and the discrete Gaussian is within a factor 1 ± η of
    a rounded one.
    """
    eta = entries * 2.0**-50
    return 1 / (
        mu_of(epsilon - 2 * eta, delta * (1 - 2 * eta)) - math.sqrt(entries) * 2.0**-LATTICE_BITS
    )


def lattice_under(sds: Iterable[float]) -> int:
    """Exponent k of the lattice 2**k that is fine enough for noise of these standard deviations."""
    return math.floor(math.log2(min(sds))) - LATTICE_BITS


def lattice_for(sd: float, lattice: int) -> int:
    """Exponent of the lattice of numbers with noise of this sd: `lattice` or a coarser one.

    The common lattice goes by the smallest sd. Noise that is many times larger would need more
    steps of it than the sampler can draw, so it has a lattice of its own, inside the common one
    and still 2**56 times finer than this noise (docs/privacy.md, "The lattice").
    """
    return max(lattice, math.floor(math.log2(sd)) - STEP_BITS)


def calibrate(form: Form, epsilon: float, delta: float) -> Mechanism:
    """Noise for `form` at (ε, δ), on its lattice."""
    multiplier = lattice_multiplier(form.layout.entries, epsilon, delta)
    return mechanism_of(form, multiplier, epsilon, delta)


def mechanism_of(form: Form, multiplier: float, epsilon: float, delta: float) -> Mechanism:
    """Noise for `form` that is `multiplier` times its sensitivity, as a part of (ε, δ)."""
    sd = multiplier * form.sensitivity
    off_diagonal = sd / math.sqrt(2) * (1 + 1e-15) if form.shape == "frobenius" else sd
    weights = form.weights
    noise = Noise(
        xtx_diagonal=sd,
        xtx_off_diagonal=off_diagonal,
        xty=sd / weights.response,
        yty=sd / weights.square if weights.square else None,
        count=sd / weights.count if weights.count else None,
        eigenvalue=sd / weights.eigenvalue if weights.eigenvalue else None,
    )
    return Mechanism(
        relation=form.relation,
        shape=form.shape,
        epsilon=epsilon,
        delta=delta,
        mu=mu_of(epsilon, delta),
        sensitivity=form.sensitivity,
        multiplier=multiplier,
        noise=noise,
        layout=form.layout,
        lattice=lattice_under(noise.published()),
    )


def share_of_noise(covering: int) -> float:
    """Noise of one share over that of the mechanism, which any `covering` shares make up."""
    return math.sqrt(1 / covering) * (1 + 1e-12)


def summed(mechanism: Mechanism, holders: int, covering: int) -> Mechanism:
    """The noise of so many holders' shares, of which any `covering` make up the mechanism's.

    Each share has 1/`covering` of the variance, rounded up. The lattice is fine enough for one
    share, so every sum of shares is a discrete Gaussian up to a factor that the calibration's
    allowance covers (docs/privacy.md, "Secure sum").
    """
    share = mechanism.noise.times(share_of_noise(covering))
    return replace(
        mechanism, noise=share.times(math.sqrt(holders)), lattice=lattice_under(share.published())
    )
