r"""Differences of holders that go together: κ.

Coefficients of columns that go with each other rarely differ alone: where NO2 counts for more at
a station, O3, which goes against it, counts for more too, and what their rows show of it is little.
Beside differences of single coefficients, b_j therefore has a part that changes fitted values by
as much along every axis of the features,

    b_j ~ N(0, diag(τ_k²) + κ²H_j),    H_j = (1 + f)(S_j/n_j + fB)⁻¹, B = Σ_j S_j / Σ_j n_j,

of the coefficients whose τ is told; of a new holder H = B⁻¹. κ is then the sd, over its own rows,
by which a holder's line differs from the average one along one axis, over half the response's
range: a holder whose rows hardly vary in a feature may differ far in its slope. f is `COMMON`.
Where columns hardly go with each other (`ALONE`) H is nearly diagonal and κ would say no more than
that every coefficient differs, which τ says better: κ is then 0.

Prior: κ is above 0 with probability `CHANCE`, and then half-Student like τ, with scale `SCALE`.
κ and τ compete to explain the same differences, so that their posterior is no product. At each of
some values of κ there is therefore a law of τ of its own (a way), from sweeps as the pilot makes
them, and with it how likely the way is: with τ̂ where the sweeps end,

    log p(κ | releases) ≈ log p(κ) + ℓ(τ̂, κ) + log ∫ Π_k L_k(τ_k)/L_k(τ̂_k) p(τ) dτ.

κ is drawn from that, τ from the law of the nearest way, and the weights of the net make up for the
rest (`net.py`).
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.methods.noise_aware.facts import Facts
from tacit.analyst.methods.noise_aware.spreads import Law, log_prior

Array = NDArray[np.float64]

CHANCE = 0.05
SCALE = 0.03
VALUES = np.geomspace(0.001, 0.3, 8)
"""Values of κ that are tried at first; less is told from 0 nowhere."""
BETWEEN = 2
"""Values that are tried between the likeliest and its neighbours."""
COMMON = 0.1
"""Share of B in what a holder's rows vary by: no axis is without any variance."""
ALONE = 0.5
"""Smallest eigenvalue of the correlations in H, from which on columns hardly go together: 1 where
they are orthogonal, 1 − r for two whose correlation is r."""
UNLIKELY = 0.01
"""Probability that differences go together, below which no more values are tried."""


@dataclass(frozen=True)
class Way:
    """One value of κ, with the law of τ there."""

    together: float  # κ
    law: Law
    log_weight: float  # of the posterior, up to a constant: density of log κ, or mass at κ = 0

    @classmethod
    def of(cls, together: float, law: Law, spread: Array, fitness: float) -> "Way":
        """From where sweeps ended, τ² = `spread`, and the log-likelihood there."""
        tau = np.concatenate([np.zeros((len(law.net), 1)), np.exp(law.net)], axis=1)
        reached = sum(
            float(np.interp(end, *curve))
            for end, *curve in zip(np.sqrt(spread), tau, law.likelihood, strict=True)
        )
        top = float(law.after.max())
        around = top + math.log(np.exp(law.after - top).sum()) - reached
        return cls(together=together, law=law, log_weight=chance(together) + fitness + around)


@dataclass(frozen=True)
class Ways:
    """The law of κ, and of τ given κ: at κ = 0, and at rising values above."""

    ways: tuple[Way, ...]

    @cached_property
    def _places(self) -> Array:
        """Log κ of all ways but the first."""
        return np.log([way.together for way in self.ways[1:]])

    @cached_property
    def masses(self) -> Array:
        """Probability of κ = 0, and of every cell between two values above."""
        logs = np.array([way.log_weight for way in self.ways])
        heights = np.exp(logs - logs.max())
        cells = (heights[1:-1] + heights[2:]) / 2 * np.diff(self._places)
        masses = np.concatenate([heights[:1], cells])
        normalised: Array = masses / masses.sum()
        return normalised

    def tried(self) -> Array:
        """Values of κ that tell more: about the likeliest one, if κ is likely above 0 at all."""
        if 1 - self.masses[0] < UNLIKELY:
            return np.zeros(0)
        best = int(np.argmax([way.log_weight for way in self.ways[1:]]))
        ends = np.clip([best - 1, best, best + 1], 0, len(self._places) - 1)
        shares = np.arange(1, BETWEEN + 1) / (BETWEEN + 1)
        low, middle, high = self._places[ends]
        finer = np.concatenate([low + shares * (middle - low), middle + shares * (high - middle)])
        return np.setdiff1d(np.exp(finer), np.exp(self._places))

    def draw(self, uniforms: Array) -> tuple[Array, NDArray[np.intp], Array]:
        """At levels (n,) of the unit interval: κ, its way, and log prior − log of this law."""
        levels = np.cumsum(self.masses)
        cells = np.minimum(np.searchsorted(levels, uniforms), len(levels) - 1)
        together = np.zeros(len(uniforms))
        ways = np.zeros(len(uniforms), dtype=np.intp)
        ratios = np.full(len(uniforms), chance(0.0) - math.log(max(self.masses[0], 1e-300)))
        above = np.flatnonzero(cells)
        cell = cells[above]
        share = (uniforms[above] - levels[cell - 1]) / self.masses[cell]
        width = np.diff(self._places)[cell - 1]
        place = self._places[cell - 1] + share * width
        together[above] = np.exp(place)
        ways[above] = cell + (share > 1 / 2)
        prior = math.log(CHANCE) + log_prior(place, SCALE)
        ratios[above] = prior - np.log(self.masses[cell] / width)
        return together, ways, ratios


def chance(together: float) -> float:
    """Log prior of κ: the density of its logarithm, or the mass at 0."""
    if not together:
        return math.log1p(-CHANCE)
    return math.log(CHANCE) + float(log_prior(np.log(together), SCALE))


def may_go_together(shape: Array, told: NDArray[np.intp]) -> bool:
    """Whether columns go with each other, so that differences of their coefficients may."""
    own = shape[np.ix_(told, told)]
    scale = np.sqrt(np.diag(own))
    return bool(np.linalg.eigvalsh(own / np.outer(scale, scale))[0] < ALONE)


def shape_of(facts: Facts, told: NDArray[np.intp]) -> Array:
    """H, of the coefficients whose τ is told, in the study's columns.

    Along axes that noise hides, features are taken to vary as `slopes.py` has it.
    """
    seen = facts.sampling.sum(axis=0) / facts.grams.sizes.sum() + facts.slopes.hidden
    return _inverse(facts.back.T @ seen @ facts.back, told)


def shapes_of(facts: Facts, told: NDArray[np.intp]) -> Array:
    """Every holder's H_j, (J, d, d), along the eigenvectors."""
    back = facts.back
    whole = np.linalg.inv(facts.shape[np.ix_(told, told)])
    common = np.zeros_like(back)
    common[np.ix_(told, told)] = COMMON * whole
    own = back.T @ (facts.sampling / facts.grams.sizes[:, None, None]) @ back
    shapes: Array = (1 + COMMON) * back @ _inverse(own + common, told) @ back.T
    return shapes


def _inverse(grams: Array, told: NDArray[np.intp]) -> Array:
    """Of the part that is told, and 0 elsewhere; symmetric."""
    part = (..., told[:, None], told)
    inverse = np.zeros_like(grams)
    inverse[part] = np.linalg.inv(grams[part])
    return (inverse + inverse.swapaxes(-1, -2)) / 2
