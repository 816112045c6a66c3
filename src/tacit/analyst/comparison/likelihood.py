r"""What the releases say of θ at each node of `noise-aware`: a Gaussian likelihood in the columns.

At a share ρ and a residual variance σ², with the spread of holders at its estimate, ẑ is Gaussian
given θ once the shared error c is integrated (noise_aware/model.py): its likelihood is
exp(−½θ'Aθ + b'θ) up to a factor, and the prior exp(−½θ'Pθ + h'θ). Under a sub-model s every
coefficient outside it is zero, and the prior is that of the whole model given this, so that

    log p(ẑ | s) = F(s; A + P, b + h) − F(s; P, h) + constant        (subsets.py).

Nodes carry the weights that they have under the whole model, which makes a sub-model's Bayes
factor against it Σ_i w_i exp(l_i(s) − l_i(whole)). y'y tells the residual variance by what the
whole model leaves, whichever sub-model is true.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.noise_aware import pilot_places
from tacit.analyst.methods.noise_aware.facts import Facts
from tacit.analyst.methods.noise_aware.model import Model
from tacit.analyst.methods.noise_aware.net import Place
from tacit.analyst.prior import Prior

Array = NDArray[np.float64]

SHARES = {0.1: 1.0, 0.3: 1.0, 1.0: 1.0, 3.0: 1.0}
"""Shares ρ of the response's variance that all slopes together are expected to explain, equally
likely beforehand. Smaller than for intervals, where a wide prior does no harm: here it would count
against every column."""


@dataclass(frozen=True)
class Likelihood:
    """One node: its weight under the whole model, likelihood A, b and prior P, h."""

    weight: float
    precision: Array  # (d, d): A
    shift: Array  # (d,): b
    prior_precision: Array  # (d, d): P
    prior_shift: Array  # (d,): h
    noise_variance: float


def likelihoods(
    evidence: Evidence, prior: Prior, settings: Settings, response: float = 1.0
) -> list[Likelihood]:
    """The likelihood at every node that matters, of the study's coefficients.

    `response` is the response's variance, which visits need for a prior.
    """
    frame = evidence.frame
    if frame is not None:
        from tacit.analyst.asked_of_visits import usual_prior

        prior = usual_prior(evidence, frame, prior, variance=response, shares=tuple(SHARES))
        mapped = _nodes(frame.unattenuated(evidence), prior, settings)
        back = np.linalg.inv(frame.map).astype(float)
        return [_of_study(one, back, frame.start) for one in mapped]
    return _nodes(evidence, prior, settings)


def _of_study(told: Likelihood, back: Array, start: Array) -> Likelihood:
    """A likelihood of b as one of θ = start + b/back."""
    precision = back.T @ told.precision @ back
    prior_precision = back.T @ told.prior_precision @ back
    return replace(
        told,
        precision=precision,
        shift=back.T @ told.shift + precision @ start,
        prior_precision=prior_precision,
        prior_shift=back.T @ told.prior_shift + prior_precision @ start,
    )


def _nodes(evidence: Evidence, prior: Prior, settings: Settings) -> list[Likelihood]:
    facts, spread, places = pilot_places(evidence, prior, settings, SHARES)
    logs = np.array([place.log_weight for place in places])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    return [
        _likelihood(facts, spread, place, float(weight))
        for place, weight in zip(places, weights, strict=True)
    ]


def _likelihood(facts: Facts, spread: Array, place: Place, weight: float) -> Likelihood:
    model = Model(facts, place.share, spread=spread)
    model.second = place.second
    solution = model.solve(place.noise_variance)
    d = len(model.mean)
    normal = solution.sums.normal
    inner = normal[d:-1, d:-1] + np.eye(d)  # precision of c
    gain = np.linalg.solve(inner, normal[d:-1]).T
    precision = normal[:d, :d] - gain[:d] @ normal[d:-1, :d]
    shift = normal[:d, -1] - gain[:d] @ normal[d:-1, -1]
    basis = model.basis
    prior_precision = basis @ model.precision @ basis.T
    mean = basis @ model.mean
    told = basis @ precision @ basis.T
    return Likelihood(
        weight=weight,
        precision=told,
        shift=basis @ shift + told @ mean,
        prior_precision=prior_precision,
        prior_shift=prior_precision @ mean,
        noise_variance=place.noise_variance,
    )
