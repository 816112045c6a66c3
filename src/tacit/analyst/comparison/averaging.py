"""Bayesian model averaging: coefficients over models and nodes, those outside a model being zero.

Given a model and a node, θ is Gaussian. Where the models are more than `MOST`, those that hold
nearly all probability stand for all or, where it is spread too thin for that, so many taken at
even steps along it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.comparison.likelihood import Likelihood
from tacit.analyst.comparison.models import Models
from tacit.analyst.posterior.laws import Draws

Array = NDArray[np.float64]

MOST = 1000
"""Models over which coefficients are averaged one by one."""
ENOUGH = 0.999
"""Probability that the likeliest `MOST` must hold to stand for all."""
CHAINS = 4
DRAWS = 20_000
"""Independent draws that stand for the average, in so many chains."""


@dataclass(frozen=True)
class Averaged:
    """Moments of θ over all models, and draws; scaled units."""

    mean: Array  # (d,)
    covariance: Array  # (d, d)
    draws: Draws


def averaged(models: Models, told: list[Likelihood], joint: Array, unshrunk: float) -> Averaged:
    """The average; `joint` holds the probability of every node with every model."""
    chosen, weights = _representatives(joint)
    d = models.study.d
    rng = np.random.default_rng(0)
    counts = _counts(weights.reshape(-1), DRAWS).reshape(weights.shape)
    mean = np.zeros(d)
    second = np.zeros((d, d))
    theta = np.zeros((DRAWS, d))
    variance = np.zeros(DRAWS)
    at = 0
    for place, model in enumerate(chosen.tolist()):
        columns = models.columns(model)
        block = np.ix_(columns, columns)
        for node, one in enumerate(told):
            weight = float(weights[node, place])
            if weight == 0.0:
                continue
            covariance = np.linalg.inv((one.precision + one.prior_precision)[block])
            location = covariance @ (one.shift + one.prior_shift)[columns]
            mean[columns] += weight * location
            second[block] += weight * (covariance + np.outer(location, location))
            count = int(counts[node, place])
            if count and columns:
                root = np.linalg.cholesky(covariance)
                normal = rng.standard_normal((count, len(columns))) @ root.T
                theta[at : at + count, columns] = location + normal
            variance[at : at + count] = unshrunk * one.noise_variance
            at += count
    order = rng.permutation(DRAWS)
    return Averaged(
        mean=mean,
        covariance=second - np.outer(mean, mean),
        draws=Draws(
            theta=theta[order].reshape(CHAINS, -1, d),
            noise_variance=variance[order].reshape(CHAINS, -1),
        ),
    )


def _representatives(joint: Array) -> tuple[NDArray[np.intp], Array]:
    """Models that stand for all, and the probability of every node with each of them."""
    total = joint.sum(axis=0)
    if len(total) <= MOST:
        return np.arange(len(total)), joint
    likeliest = np.sort(np.argpartition(total, -MOST)[-MOST:])
    if total[likeliest].sum() >= ENOUGH:
        weights = joint[:, likeliest]
        return likeliest, weights / weights.sum()
    levels = np.cumsum(total)
    steps = (np.arange(MOST) + 0.5) / MOST * levels[-1]
    drawn = np.minimum(np.searchsorted(levels, steps), len(total) - 1)
    chosen, counts = np.unique(drawn, return_counts=True)
    weights = joint[:, chosen] / total[chosen] * counts / MOST
    return chosen, weights


def _counts(weights: Array, draws: int) -> NDArray[np.int64]:
    """How many of so many draws each part gets: as its weight says, to within one."""
    levels = np.cumsum(weights)
    steps = np.floor(levels / levels[-1] * draws + 0.5).astype(np.int64)
    counts: NDArray[np.int64] = np.diff(steps, prepend=0)
    return counts
