"""The residual variance σ² of `noise-aware`: its law given the residual sums, and holders' own.

Σe² = y'y − 2θ'z + θ'Sθ (`Model.residuals`) has mean nσ², and variance 2nσ⁴ plus that of its
noise. Holders whose residual variances clearly differ get their own, ρ_jσ²: each is read off
that holder's part of the sum and shrunk towards σ² by what the releases leave in doubt of it,
so that a small holder keeps σ². Under a common σ² a coefficient that mostly the noisier holders
tell of would have too narrow an interval.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.noise_aware.model import Model
from tacit.analyst.methods.noise_aware.sums import WIDE
from tacit.analyst.methods.quadrature import gauss_rule
from tacit.analyst.prior import Prior

Array = NDArray[np.float64]
Law = list[tuple[float, float]]
"""Values of σ² and their weights."""

ROUNDS = 3
"""Times that the law and the coefficients are found from each other; one fewer from `WIDE` columns
on."""
CLEARLY = 3.0
"""Log-likelihood by which an ω above 0 must be better: holders are alike until releases say
otherwise."""
UNLIKE = np.concatenate([[0.0], np.geomspace(0.03, 3.0, 13)])
"""Values of ω, the sd of holders' residual variances over their mean."""
LEAST_RATIO = 0.02
"""Smallest ρ_j."""


def noise_variances(
    model: Model, evidence: Evidence, prior: Prior, start: float | None = None
) -> Law:
    """The law of σ²: its prior and, where y'y is published, the residual sum of squares.

    From near the right place, `start`, once is enough.
    """

    def inverse_gamma(log_variance: Array) -> Array:
        return -prior.shape * log_variance - prior.rate * np.exp(-log_variance)

    if evidence.squares is None or evidence.square_sd is None or evidence.counts is None:
        return gauss_rule(inverse_gamma)
    most = math.log(model.facts.slopes.most)
    log_prior = partial(_log_uniform, most) if prior.flat_noise else inverse_gamma
    n = float(np.maximum(evidence.counts, 1.0).sum())
    law = gauss_rule(inverse_gamma) if start is None else [(start, 1.0)]
    rounds = ROUNDS if evidence.d < WIDE else ROUNDS - 1
    for _ in range(rounds if start is None else 1):
        squares, noise = model.residuals(model.gaussian(centre(law)), evidence)
        law = gauss_rule(
            partial(_log_posterior, log_prior, float(squares.sum()), float(noise.sum()), n)
        )
    return law


def ratios(model: Model, evidence: Evidence, variance: float) -> Array:
    r"""Every holder's ρ_j at a σ², (J,): 1 where residual variances do not clearly differ.

    $1 + ω²/(ω² + v_j)·(R_j/(n_jσ²) − 1)$, R_j its residual sum of squares, v_j that ratio's
    variance.
    """
    alike = np.ones(evidence.holders)
    if evidence.holders == 1 or evidence.squares is None or evidence.counts is None:
        return alike
    model.gaussian(variance)
    unlike = Unlike.at(model, evidence, variance)
    spread = unlike.spread()
    return alike if spread is None else unlike.ratios(spread)


@dataclass(frozen=True)
class Unlike:
    """Every holder's residual sum against what σ² lets expect, less 1; and its variance."""

    apart: Array  # (J,): R_j/(n_jσ²) − 1
    doubt: Array  # (J,): v_j

    @classmethod
    def at(cls, model: Model, evidence: Evidence, variance: float) -> "Unlike":
        """At a σ², with the model's E[θθ'] as it is."""
        if evidence.counts is None:  # pragma: no cover
            raise AssertionError  # who asks has checked
        n = np.maximum(evidence.counts, 1.0)
        squares, noise = model.residuals(model.solve(variance).node, evidence)
        doubt = 2 / n + noise / (n * variance) ** 2
        return cls(apart=squares / (n * variance) - 1, doubt=doubt)

    def spread(self) -> float | None:
        """ω, or nothing where holders may as well be alike."""
        spreads = UNLIKE[:, None] ** 2 + self.doubt
        scores = -0.5 * np.sum(np.log(spreads) + self.apart**2 / spreads, axis=1)
        best = int(np.argmax(scores))
        return None if scores[best] < scores[0] + CLEARLY else float(UNLIKE[best])

    def ratios(self, spread: float) -> Array:
        """ρ_j at this ω."""
        shrunk: Array = 1 + spread**2 / (spread**2 + self.doubt) * self.apart
        return np.maximum(shrunk, LEAST_RATIO)


def centre(law: Law) -> float:
    """σ² at the mean of σ."""
    return sum(weight * math.sqrt(variance) for variance, weight in law) ** 2


def _log_uniform(most: float, log_variance: Array) -> Array:
    """Density of log σ², σ² uniform up to the response's variance, whose logarithm is `most`."""
    return np.where(log_variance <= most, log_variance, -np.inf)


def _log_posterior(
    log_prior: Callable[[Array], Array], squares: float, noise: float, n: float, log_variance: Array
) -> Array:
    """Density of log σ² given a residual sum with mean nσ² and variance 2nσ⁴ + `noise`."""
    variance = 2 * n * np.exp(2 * log_variance) + noise + 1e-300
    density: Array = log_prior(log_variance) - 0.5 * (
        np.log(variance) + (squares - n * np.exp(log_variance)) ** 2 / variance
    )
    return density
