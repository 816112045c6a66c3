r"""What is expected of slopes before a release speaks of them: the default prior of `noise-aware`.

Let F = U diag(λ) U' be the covariance of the features and v the variance of the response, both as
the releases tell them. Along the axis u_k a slope c_k explains λ_k c_k² of v. The prior is

c_k ~ N(0, ρ v λ_k^(−1/2) / Σ_i λ_i^(1/2)),

so that all slopes together are expected to explain ρ·v, an axis in proportion to the standard
deviation of the features along it. Between a ridge, which expects the same slope everywhere, and a
g-prior, which expects every axis to explain the same: on public tables the squares of
least-squares slopes along axes fall about like λ^(−1/2), whatever the columns and their units
(`benchmarks/real_tables.py`). One scale for all slopes in the encoded columns, by contrast, is
learnt from the axes where features vary much, and is then far too small for contrasts of
near-collinear columns: their intervals were narrow, and wrong.

Where noise hides λ_k it is taken to lie anywhere between 0 and f, the standard deviation of the
noise in F: λ_k = f/2 stands for it in the prior and in what slopes may explain. ρ is one of
`SHARES`, by marginal likelihood: about nothing, which is unlikely beforehand, or v and more. Along
axes that releases tell of, the larger values shrink nothing; along the others intervals are the
prior's, and are wide enough to hold what least squares would find.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.gram import GramTotal
from tacit.analyst.prior import Prior

Array = NDArray[np.float64]

SHARES = {0.02: 0.1, 1.0: 1.0, 2.0: 1.0, 4.0: 1.0}
"""Values of ρ and how likely each is beforehand, against the others."""
MOST_HIDDEN = 0.1
"""Largest f: how well features fill their (typical) ranges at best, when nothing is known."""
LEAST_VARIANCE = 1e-6
"""Smallest λ: the square of the smallest spread, in half a range, that is told from none."""
LEAST_SHARE = 0.02
"""Smallest share of their length that rows kept on average, in squares."""
UNTOLD = 1 / 6
"""Variance of the response where y'y is not published."""


@dataclass(frozen=True)
class Slopes:
    """The prior of θ at each ρ, and what it rests on."""

    prior: Prior
    first: int  # column of the first slope
    axes: Array  # (p, p): U
    spreads: Array  # (p,): λ
    noise: float  # f
    variance: float  # v, of rows as they are
    most: float  # of the residual variance of shrunk rows: nothing explained
    hidden: Array  # (d, d): what noise may hide of S_j/n_j, in the eigenbasis of Gram matrices
    by_spread: Mapping[float, float] = field(default_factory=lambda: SHARES)  # ρ, and how likely

    @property
    def shares(self) -> Mapping[float, float]:
        """Values of ρ with their weights; a prior that somebody states is taken as it is."""
        if not self.prior.by_spread:
            return dict.fromkeys(self.prior.widths, 1.0)
        return dict.fromkeys(self.prior.shares, 1.0) or self.by_spread

    def covariance(self, share: float) -> Array:
        """Prior covariance of θ at one ρ."""
        covariance: Array = self.prior.covariance.copy()
        if not self.prior.by_spread and len(self.prior.widths) > 1:
            covariance *= share
        elif self.prior.by_spread and len(self.spreads):
            slopes = usual_covariance(self.axes, self.spreads, share * self.variance)
            covariance[self.first :, self.first :] = slopes
        return covariance


def usual_covariance(axes: Array, spreads: Array, explained: float) -> Array:
    """Covariance of slopes that are expected to explain so much, in proportion to √λ."""
    root = np.sqrt(spreads)
    covariance: Array = (axes * (explained / root.sum() / root)) @ axes.T
    return covariance


def slopes_of(evidence: Evidence, total: GramTotal, prior: Prior) -> Slopes:
    """The prior of slopes for some evidence, whose Gram matrices have this total."""
    first = int(evidence.intercept)
    n = float(total.sizes.sum())
    gram = total.basis @ total.mean @ total.basis.T / n
    noise = math.sqrt(float(np.sum(evidence.gram_sd**2))) / n
    features = gram[first:, first:]
    share = 1.0
    if evidence.intercept:
        most = evidence.average
        level = float(np.clip(gram[0, 0], LEAST_SHARE * most, most))
        features = features - np.outer(gram[0, 1:], gram[0, 1:]) / level
        share = level / most
    told, axes = np.linalg.eigh(features / share)
    least = max(min(noise / share, MOST_HIDDEN) / 2, LEAST_VARIANCE)
    spreads = np.maximum(told, least)
    hidden = np.zeros_like(gram)
    hidden[first:, first:] = (axes * (share * (spreads - told))) @ axes.T
    variance, most_variance = _response(evidence, n, share)
    return Slopes(
        prior=prior,
        first=first,
        axes=axes,
        spreads=spreads,
        noise=noise / share,
        variance=variance / share,
        most=most_variance,
        hidden=total.basis.T @ hidden @ total.basis,
    )


def _response(evidence: Evidence, n: float, share: float) -> tuple[float, float]:
    """Variance of the shrunk response, and the most that it may be for all that noise tells."""
    if evidence.squares is None or evidence.square_sd is None:
        return share * UNTOLD, 1.0
    square = float(evidence.squares.sum()) / n
    if evidence.intercept:
        square -= (float(evidence.moments[:, 0].sum()) / n) ** 2 / (share * evidence.average)
    noise = math.sqrt(float(np.sum(evidence.square_sd**2))) / n
    variance = float(np.clip(square, max(noise, LEAST_VARIANCE), 1.0))
    return variance, min(1.0, variance + 2 * noise)
