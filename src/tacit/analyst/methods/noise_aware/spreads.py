r"""The law of τ: how far the coefficients of holders lie from the average holder's.

θ_j = θ + b_j, b_j ~ N(0, diag(τ_k²)). Prior: a coefficient differs between holders with
probability π, π of density 4(1 − π)³; where it does not, τ_k = 0; where it does, τ_k is
half-Student with 3 degrees of freedom and scale 0.1. In scaled units that is a typical
difference of 10 % of the response's range across a feature's whole range. The mass at 0 keeps
the intervals of coefficients that do not differ as narrow as if that were known; the tail lets
those that differ differ as far as they do.

The likelihood of τ nearly factorises over coefficients, so its posterior is drawn from a
product: given π, each τ_k from prior × profile likelihood L_k(τ_k) on a net of log τ, the other
τ at their means, and weighted by what the product leaves out (`net.py`). Given the product, π
is known exactly.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SHARES = (np.arange(8) + 0.5) / 8
"""Values of π."""
SHARE_WEIGHTS = (1 - SHARES) ** 3 / np.sum((1 - SHARES) ** 3)
"""Their prior."""
SCALE = 0.1
DEGREES = 3.0
LEAST = 3e-4
MOST = 2.0
"""Ends of the net of τ: nothing below can be told from 0, and no response has room for more."""
PLACES = 24
NEGLIGIBLE = 1e-6
"""Mass of a cell, over the largest, that is left out when a net is narrowed."""
_HALF_STUDENT = (
    math.log(2)
    + math.lgamma((DEGREES + 1) / 2)
    - math.lgamma(DEGREES / 2)
    - 0.5 * math.log(DEGREES * math.pi)
)


def log_prior(log_tau: Array, scale: float = SCALE) -> Array:
    """Log density of log τ where τ > 0."""
    tail = np.log1p(np.exp(2 * log_tau) / (scale**2 * DEGREES))
    density: Array = _HALF_STUDENT - math.log(scale) + log_tau - (DEGREES + 1) / 2 * tail
    return density


def first_net(count: int) -> Array:
    """The widest net of log τ, for each of so many coefficients, (count, place)."""
    return np.tile(np.linspace(math.log(LEAST), math.log(MOST), PLACES), (count, 1))


@dataclass(frozen=True)
class Law:
    """Posterior of τ as a product given π; (m,) coefficients on nets of G places of log τ."""

    net: Array  # (m, G)
    likelihood: Array  # (m, 1 + G): log-likelihood at τ = 0, then along the net
    before: Array = field(default_factory=lambda: np.log(SHARE_WEIGHTS))
    """Log weight of every π before these coefficients speak, (π,)."""

    @cached_property
    def _cells(self) -> Array:
        """Log mass at 0, and of every cell of the net, times the likelihood, (π, m, G)."""
        density = self.likelihood[:, 1:] + log_prior(self.net)
        width = np.log(np.diff(self.net, axis=1))
        cells = np.logaddexp(density[:, 1:], density[:, :-1]) + width - math.log(2)
        differs = np.log(SHARES)[:, None, None] + cells
        alike = np.log1p(-SHARES)[:, None, None] + self.likelihood[:, :1]
        return np.concatenate([alike, differs], axis=2)

    @cached_property
    def masses(self) -> Array:
        """Probability of τ = 0 and of every cell, given π, (π, m, G)."""
        return np.exp(self._cells - _log_sum(self._cells)[..., None])

    @cached_property
    def after(self) -> Array:
        """Log weight of every π after them, (π,)."""
        after: Array = _log_sum(self._cells).sum(axis=1) + self.before
        return after

    @cached_property
    def shares(self) -> Array:
        """Probability of every π, (π,)."""
        weights = np.exp(self.after - self.after.max())
        shares: Array = weights / weights.sum()
        return shares

    def means(self) -> Array:
        """E[τ], (m,)."""
        middles = np.exp((self.net[:, 1:] + self.net[:, :-1]) / 2)
        means: Array = np.einsum("p,pmg,mg->m", self.shares, self.masses[:, :, 1:], middles)
        return means

    def narrowed(self) -> Array:
        """A net as fine, of where τ > 0 may be."""
        masses = np.einsum("p,pmg->mg", self.shares, self.masses[:, :, 1:])
        nets = []
        for net, mass in zip(self.net, masses, strict=True):
            counted = np.flatnonzero(mass > NEGLIGIBLE * mass.max())
            low = net[max(counted[0] - 1, 0)]
            high = net[min(counted[-1] + 2, PLACES - 1)]
            nets.append(np.linspace(low, high, PLACES))
        return np.array(nets).reshape(-1, PLACES)

    def draw(self, uniforms: Array) -> tuple[Array, Array]:
        """τ (n, m) at points (n, 1 + m) of the unit cube, and log prior − log product, (n,)."""
        levels = np.cumsum(self.shares)
        chosen = np.minimum(np.searchsorted(levels, uniforms[:, 0]), len(SHARES) - 1)
        tau = np.zeros((len(uniforms), len(self.net)))
        ratios = np.log(SHARE_WEIGHTS[chosen] / self.shares[chosen])
        for k in range(len(self.net)):
            for p in np.unique(chosen):
                rows = np.flatnonzero(chosen == p)
                drawn, ratio = self._draw_one(int(p), k, uniforms[rows, 1 + k])
                tau[rows, k] = drawn
                ratios[rows] += ratio
        return tau, ratios

    def _draw_one(self, p: int, k: int, uniforms: Array) -> tuple[Array, Array]:
        """τ_k given π, and its log prior − log product."""
        masses = self.masses[p, k]
        levels = np.cumsum(masses)
        levels /= levels[-1]
        places = np.interp(uniforms, levels, self.net[k])
        cell = np.clip(np.searchsorted(levels, uniforms), 1, PLACES - 1)
        width = self.net[k, 1] - self.net[k, 0]
        product = np.log(np.maximum(masses[cell], 1e-300) / width)
        prior = math.log(SHARES[p]) + log_prior(places)
        alike = uniforms < masses[0]
        at_zero = math.log1p(-SHARES[p]) - math.log(max(masses[0], 1e-300))
        return np.where(alike, 0.0, np.exp(places)), np.where(alike, at_zero, prior - product)


def _log_sum(logs: Array) -> Array:
    """Log of the sum over the last axis."""
    top = logs.max(axis=-1, keepdims=True)
    sums: Array = np.log(np.exp(logs - top).sum(axis=-1)) + top[..., 0]
    return sums
