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
    held = np.zeros((len(chosen), d), dtype=bool)
    for place, model in enumerate(chosen.tolist()):
        held[place, models.columns(model)] = True
    mean = np.zeros(d)
    second = np.zeros((d, d))
    theta = np.zeros((DRAWS, d))
    variance = np.zeros(DRAWS)
    at = 0
    for node, one in enumerate(told):
        places = np.flatnonzero(weights[node])
        law = _Laws.of(one, held[places])
        mean += weights[node, places] @ law.locations
        second += law.second(weights[node, places])
        drawn = np.repeat(np.arange(len(places)), counts[node, places])
        end = at + len(drawn)
        theta[at:end] = law.sample(drawn, rng)
        variance[at:end] = unshrunk * one.noise_variance
        at = end
    order = rng.permutation(DRAWS)
    return Averaged(
        mean=mean,
        covariance=second - np.outer(mean, mean),
        draws=Draws(
            theta=theta[order].reshape(CHAINS, -1, d),
            noise_variance=variance[order].reshape(CHAINS, -1),
        ),
    )


@dataclass(frozen=True)
class _Laws:
    """Gaussian laws of θ under several models at one node, all of d columns.

    A column outside a model has precision 1 there, apart from all others, and θ is zero: so all
    models are computed at once.
    """

    held: NDArray[np.bool_]  # (model, d)
    locations: Array  # (model, d)
    covariances: Array  # (model, d, d); that of a column outside is 1

    @classmethod
    def of(cls, told: Likelihood, held: NDArray[np.bool_]) -> "_Laws":
        """The laws of models that hold these columns."""
        together = held[:, :, None] & held[:, None, :]
        precision = told.precision + told.prior_precision
        covariances = np.linalg.inv(np.where(together, precision, np.eye(held.shape[1])))
        shifts = held * (told.shift + told.prior_shift)
        locations = np.einsum("mab,mb->ma", covariances, shifts)
        return cls(held=held, locations=locations, covariances=covariances)

    def second(self, weights: Array) -> Array:
        """Second moments, weighed, (d, d)."""
        own = self.covariances * (self.held[:, :, None] & self.held[:, None, :])
        within: Array = np.tensordot(weights, own, axes=1)
        return within + (self.locations * weights[:, None]).T @ self.locations

    def sample(self, models: NDArray[np.intp], rng: np.random.Generator) -> Array:
        """A draw of each of these models."""
        normal = rng.standard_normal((len(models), self.held.shape[1])) * self.held[models]
        drawn, places = np.unique(models, return_inverse=True)
        roots = np.linalg.cholesky(self.covariances[drawn])
        theta: Array = self.locations[models] + np.einsum("nab,nb->na", roots[places], normal)
        return theta


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
