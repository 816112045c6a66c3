"""The mechanism: which part of the statistics gets how much noise for a budget (ε, δ).

The weighted statistics have L2 sensitivity Δ; noise of `multiplier`·Δ on each weighted coordinate gives
(ε, δ). A part published with weight w therefore gets noise of sd multiplier·Δ/w once the weight is
divided out. `frobenius` noise halves the variance off the diagonal, because Δ counts those entries
twice; `triangular` noise, the 2023 paper's, does not.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from tacit.privacy.gaussian import mu_of
from tacit.privacy.sensitivity import Relation, Weights, sensitivity

Shape = Literal["frobenius", "triangular"]

LATTICE_BITS = 32
"""Noise lives on a lattice at least this many binary places finer than its smallest standard deviation."""


@dataclass(frozen=True)
class Scales:
    """Standard deviation of the noise on each published part, in the part's own units; None: not published."""

    xtx_diagonal: float
    xtx_off_diagonal: float
    xty: float
    yty: float | None
    count: float | None
    eigenvalue: float | None

    def published(self) -> list[float]:
        """Those that are published, in order."""
        every = (self.xtx_diagonal, self.xtx_off_diagonal, self.xty, self.yty, self.count, self.eigenvalue)
        return [sd for sd in every if sd is not None]

    def times(self, factor: float) -> "Scales":
        """The same parts with so many times the noise."""
        return replace(self, **{part: sd * factor for part, sd in vars(self).items() if sd is not None})


@dataclass(frozen=True)
class Mechanism:
    """A calibrated Gaussian mechanism; its noise takes values that are multiples of 2**`lattice`."""

    relation: Relation
    shape: Shape
    epsilon: float
    delta: float
    mu: float
    sensitivity: float
    multiplier: float
    scales: Scales
    lattice: int


@dataclass(frozen=True)
class Form:
    """What is published about rows of d columns with ‖x‖ ≤ `x` and |y| ≤ `y`, in groups of `average` of them."""

    d: int
    x: float
    y: float
    weights: Weights
    relation: Relation
    shape: Shape
    average: int = 1

    @property
    def entries(self) -> int:
        """Number of published numbers that carry noise."""
        weights = self.weights
        extra = sum(weight > 0 for weight in (weights.square, weights.count, weights.eigenvalue))
        return self.d * (self.d + 1) // 2 + self.d + extra

    @property
    def sensitivity(self) -> float:
        """L2 sensitivity of the weighted statistics, rounded up."""
        return sensitivity(self.x, self.y, self.weights, self.relation, self.average) * (1 + 1e-12)


def lattice_multiplier(entries: int, epsilon: float, delta: float) -> float:
    """Noise over sensitivity for so many `entries` m at (ε, δ), with the lattice's cost included.

    Two small costs are paid here (docs/privacy.md, "The lattice"): statistics are rounded to the lattice, which
    adds at most √m·2⁻³² to μ, and the discrete Gaussian is within a factor 1 ± η of a rounded one.
    """
    eta = entries * 2.0**-50
    return 1 / (mu_of(epsilon - 2 * eta, delta * (1 - 2 * eta)) - math.sqrt(entries) * 2.0**-LATTICE_BITS)


def lattice_under(sds: Iterable[float]) -> int:
    """Exponent k of the lattice 2**k that is fine enough for noise of these standard deviations."""
    return math.floor(math.log2(min(sds))) - LATTICE_BITS


@lru_cache(maxsize=256)
def calibrate(form: Form, epsilon: float, delta: float) -> Mechanism:
    """Noise for `form` at (ε, δ), on its lattice; remembered, since every release of a collection is checked against it."""
    multiplier = lattice_multiplier(form.entries, epsilon, delta)
    sd = multiplier * form.sensitivity
    off_diagonal = sd / math.sqrt(2) * (1 + 1e-15) if form.shape == "frobenius" else sd
    weights = form.weights
    scales = Scales(
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
        scales=scales,
        lattice=lattice_under(scales.published()),
    )


def summed(mechanism: Mechanism, holders: int, covering: int) -> Mechanism:
    """The noise of so many holders' shares together, when the shares of `covering` holders alone make up the mechanism's.

    Each share has 1/`covering` of the variance, rounded up. The lattice is fine enough for one share, so every sum of shares is
    a discrete Gaussian up to a factor that the calibration's allowance covers (docs/privacy.md, "Secure sum").
    """
    share = mechanism.scales.times(math.sqrt(1 / covering) * (1 + 1e-12))
    return replace(mechanism, scales=share.times(math.sqrt(holders)), lattice=lattice_under(share.published()))
