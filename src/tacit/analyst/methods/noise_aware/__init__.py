r"""`noise-aware`: the posterior that knows the noise in X'X as well as in X'y.

Given three things the coefficients are Gaussian (`model.py`):

- σ², the residual variance of shrunk rows (`residual.py`). It is read off y'y − 2θ'z + θ'Sθ = Σe²
  where y'y is published, and is left to the prior where it is not. Using shrunk rows' own residual
  variance makes Cov(z | X) = Σ α⁴e²xx' equal σ²S on average, whatever the factors α were.
- τ, the sd of each coefficient between holders, from three holders on (`spreads.py`, `net.py`).
  Holders that differ (other instruments, other patients) would otherwise be weighted by noise
  alone, and the more exact the releases, the more one odd holder would pull.
- ρ, the share of the response's variance that slopes are expected to explain (`slopes.py`). It
  keeps a fit from chasing noise when the releases hold little. How far it pulls slopes to 0 widens
  their law (`pull.py`).

The result is a finite mixture of Gaussians, from which intervals, moments and independent draws are
exact.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.gram import some_of
from tacit.analyst.methods.method import Method, Mixture, Settings
from tacit.analyst.methods.noise_aware import residual
from tacit.analyst.methods.noise_aware.facts import Facts, facts_of
from tacit.analyst.methods.noise_aware.model import Model, Node
from tacit.analyst.methods.noise_aware.net import (
    FEWEST,
    PILOT_SHARE,
    SIDE_BY_SIDE,
    Net,
    Pilot,
    Place,
    Start,
    net_of,
    started,
)
from tacit.analyst.methods.noise_aware.outlying import kept_of
from tacit.analyst.methods.noise_aware.pull import pulled
from tacit.analyst.methods.noise_aware.residual import Unlike
from tacit.analyst.methods.noise_aware.threads import mapped
from tacit.analyst.methods.noise_aware.verdict import warning
from tacit.analyst.methods.noise_aware.whole import Shared, whole_of
from tacit.analyst.posterior.differing import Differing
from tacit.analyst.prior import Prior

Array = NDArray[np.float64]

TWO_HOLDERS = "Two holders are too few to tell how far holders differ: they are taken to be alike."


def fit(evidence: Evidence, prior: Prior, settings: Settings) -> Mixture:
    """Mixture over the spread of holders, the share ρ and the residual variance."""
    if evidence.holders >= FEWEST and settings.spread is None:
        return _differing(evidence, prior, settings)
    facts, spread = _alike_facts(evidence, prior, settings)
    nodes = [node for node, _ in _places(facts, spread, evidence, prior, settings)]
    unshrunk = _unshrunk(evidence, facts)
    mixture = _mixture(nodes, facts, unshrunk)
    words = warning(mixture, mixture.covariance(), facts, evidence)
    if evidence.holders == FEWEST - 1 and settings.spread is None:
        words = " ".join(filter(None, [words, TWO_HOLDERS]))
    return replace(mixture, warning=words)


def _differing(evidence: Evidence, prior: Prior, settings: Settings) -> Mixture:
    """The mixture where holders may differ."""
    some = some_of(evidence)
    kept = kept_of(some, prior, settings.noise_variance)
    pilot = kept.pilot
    inner = some.only(kept.holders) if kept.aside else some
    begun = _places(pilot.facts, pilot.spread, inner, prior, settings, start=pilot.start)
    places = [place for _, place in begun]
    net = net_of(pilot, places)
    mixture = _mixture(net.nodes, pilot.facts, _unshrunk(inner, pilot.facts))
    best = max(places, key=lambda place: place.log_weight)
    alike, within = _alike(pilot, best)
    mixture = replace(
        mixture,
        warning=warning(mixture, alike, pilot.facts, inner),
        differing=_differences(net, pilot, within),
    )
    aside = kept.aside
    if some is not evidence:
        mixture, aside = _of_all(mixture, evidence, prior, _shared(mixture, best, pilot, inner))
    alone = {j: fit(evidence.only([j]), prior, settings) for j in aside}
    return mixture.with_aside(alone)


def _shared(mixture: Mixture, best: Place, pilot: Pilot, evidence: Evidence) -> Shared:
    """What some holders tell of all."""
    differing = mixture.differing
    if differing is None:  # pragma: no cover
        raise AssertionError  # who asks has holders that may differ
    together = 0.0
    if differing.together is not None:
        together = float(mixture.weights @ differing.together)
    shape = pilot.facts.shape
    spread = mixture.weights @ differing.spreads**2 - together * np.diag(shape)
    mean = mixture.mean()
    variance = mixture.residual_variance() / mixture.unshrunk
    unlike = None
    if evidence.squares is not None and np.any(pilot.facts.ratios != 1):
        model = Model(pilot.facts, best.share, spread=pilot.spread)
        model.gaussian(variance)
        unlike = Unlike.at(model, evidence, variance).spread()
    return Shared(
        share=best.share,
        noise_variance=variance,
        spread=np.maximum(spread, 0.0),
        together=together,
        shape=shape,
        second=mixture.covariance() + np.outer(mean, mean),
        unlike=unlike,
    )


def _of_all(
    mixture: Mixture, evidence: Evidence, prior: Prior, shared: Shared
) -> tuple[Mixture, tuple[int, ...]]:
    """With the average of all holders, and every one's own, where some told of τ; who is aside."""
    if mixture.differing is None:  # pragma: no cover
        raise AssertionError  # who asks has holders that may differ
    whole = whole_of(evidence, prior, shared, np.flatnonzero(mixture.differing.told))
    counted = np.setdiff1d(np.arange(evidence.holders), whole.aside)
    differing = replace(
        mixture.differing,
        locations=whole.own[counted],
        covariances=whole.own_covariance[counted],
        ratios=whole.ratios[counted],
    )
    parts = mixture.parts
    return replace(
        mixture,
        locations=np.tile(whole.location, (parts, 1)),
        covariances=np.tile(whole.covariance, (parts, 1, 1)),
        differing=differing,
    ), whole.aside


def pilot_places(
    evidence: Evidence, prior: Prior, settings: Settings, shares: Mapping[float, float]
) -> tuple[Facts, Array, list[Place]]:
    """The net over (ρ, σ²) with holders' spread τ² at its estimate; outlying holders left out.

    ρ is one of `shares`, with these weights, unless the prior is stated.
    """
    if evidence.holders >= FEWEST and settings.spread is None:
        kept = kept_of(evidence, prior, settings.noise_variance)
        inner = evidence.only(kept.holders) if kept.aside else evidence
        facts = kept.pilot.facts
        spread = kept.pilot.spread
    else:
        inner = evidence
        facts, spread = _alike_facts(evidence, prior, settings)
    facts = replace(facts, slopes=replace(facts.slopes, by_spread=shares))
    return facts, spread, [place for _, place in _places(facts, spread, inner, prior, settings)]


def _alike_facts(evidence: Evidence, prior: Prior, settings: Settings) -> tuple[Facts, Array]:
    """Facts and τ² where the spread of holders is not estimated."""
    facts = facts_of(evidence, prior)
    spread = np.full(evidence.d, (settings.spread or 0.0) ** 2)
    if settings.noise_variance is None:
        model = Model(facts, PILOT_SHARE, spread=spread)
        variance = residual.centre(residual.noise_variances(model, evidence, prior))
        facts = replace(facts, ratios=residual.ratios(model, evidence, variance))
    return facts, spread


def _places(
    facts: Facts,
    spread: Array,
    evidence: Evidence,
    prior: Prior,
    settings: Settings,
    *,
    start: Start | None = None,
) -> list[tuple[Node, Place]]:
    """The net over (ρ, σ²) at one τ."""

    def of(share: float) -> list[tuple[Node, Place]]:
        model = started(facts, share, spread, start)
        likely = facts.slopes.shares[share]
        if settings.noise_variance is None:
            first = None if start is None else start.noise_variance
            law = residual.noise_variances(model, evidence, prior, first)
        else:
            law = [(settings.noise_variance, 1.0)]
        places = []
        for variance, weight in law:
            node = model.gaussian(variance)
            log_prior = math.log(weight * likely)
            node = replace(node, log_weight=node.log_weight + log_prior)
            place = Place(
                share=share,
                noise_variance=variance,
                log_prior=log_prior,
                second=model.second,
                log_weight=node.log_weight,
            )
            places.append((node, place))
        return places

    at_once = 1 if start is None else SIDE_BY_SIDE
    return list(chain.from_iterable(mapped(of, list(facts.slopes.shares), at_once)))


def _alike(pilot: Pilot, best: Place) -> tuple[Array, Array]:
    """Covariance of θ were holders alike, and that of one typical holder's own release alone."""
    model = Model(pilot.facts, best.share)
    model.second = best.second
    solution = model.solve(best.noise_variance)
    basis = pilot.facts.grams.basis
    d = len(model.mean)
    information = solution.sums.normal[:d, :d] / len(pilot.facts.moments)
    within = np.linalg.inv(information + model.precision)
    return basis @ solution.node.covariance @ basis.T, basis @ within @ basis.T


def _differences(net: Net, pilot: Pilot, within: Array) -> Differing:
    basis = pilot.facts.grams.basis
    told = np.zeros(len(basis), dtype=bool)
    told[pilot.told] = True
    return Differing(
        spreads=net.tau,
        locations=net.own @ basis.T,
        covariances=basis @ net.own_covariance @ basis.T,
        within=within,
        ratios=pilot.facts.ratios,
        told=told,
        constant=pilot.constant,
        together=net.together if net.together.any() else None,
        shape=pilot.facts.shape if net.together.any() else None,
    )


def _unshrunk(evidence: Evidence, facts: Facts) -> float:
    """Residual variance of rows as they are over that of shrunk rows (N10).

    Without an intercept, or a count, nothing tells: the residual variance is then that of shrunk
    rows.
    """
    if not evidence.intercept or evidence.counts is None:
        return 1.0
    first = facts.grams.basis[0]
    n = evidence.average * float(np.maximum(evidence.counts, 1.0).sum())
    return n / float(np.clip(first @ facts.sampling.sum(axis=0) @ first, n / 100, n))


def _mixture(nodes: list[Node], facts: Facts, unshrunk: float) -> Mixture:
    logs = np.array([node.log_weight for node in nodes])
    weights = np.exp(logs - logs.max())
    basis = facts.grams.basis
    locations = [basis @ node.location for node in nodes]
    covariances = [
        pulled(facts.slopes, node.share, location, basis @ node.covariance @ basis.T)
        for node, location in zip(nodes, locations, strict=True)
    ]
    return Mixture(
        weights=weights / weights.sum(),
        locations=np.array(locations),
        covariances=np.array(covariances),
        noise_variances=unshrunk * np.array([node.noise_variance for node in nodes]),
        unshrunk=unshrunk,
    )


METHOD = Method(name="noise-aware", fit=fit, computed=True)
