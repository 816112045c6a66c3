r"""Holders that differ: the posterior over (θ, θ_j, τ) as a finite mixture of Gaussians.

Two steps. The pilot finds, at one ρ, where τ lies: coefficient by coefficient the profile
likelihood of τ_k with the others at their means, until these stay. The net then takes `POINTS`
points of a Latin hypercube for τ (through `spreads.Law`), ρ and σ² together; at each the model
is solved exactly, and its weight is likelihood × prior over the law that it was drawn from,
truncated at √`POINTS` times the mean [Ionides 2008].
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.noise_aware.facts import Facts, facts_of
from tacit.analyst.methods.noise_aware.model import Model, Node, Solution, own_coefficients
from tacit.analyst.methods.noise_aware.profile import Profile
from tacit.analyst.methods.noise_aware.residual import centre, noise_variances, ratios
from tacit.analyst.methods.noise_aware.spreads import SCALE, Law, first_net
from tacit.analyst.methods.noise_aware.sums import WIDE
from tacit.analyst.methods.noise_aware.threads import mapped
from tacit.analyst.methods.noise_aware.together import (
    VALUES,
    Way,
    Ways,
    may_go_together,
    shape_of,
    shapes_of,
)
from tacit.analyst.prior import Prior

Array = NDArray[np.float64]

FEWEST = 3
"""Holders from which on their spread is estimated."""
TELLING = 2.5
"""Effective number of holders below which nothing is said of a coefficient's spread."""
CONSTANT = 0.05
"""Variance of a column within holders, over that between them, below which it is theirs, not
rows'."""
HIDDEN = 0.5
"""The same where noise hides it: the most that it may be then."""
POINTS = 64
OWN_POINTS = 32
"""Points of the net that holders' own coefficients are computed at."""
"""From `WIDE` columns on a quarter of these points must do: each is a matter of d³."""
SETTLED = 0.05
"""Largest change of a mean τ, over itself and a tenth of its prior scale, at which the pilot
ends."""
PILOT_SHARE = 1.0
"""ρ at which τ is looked for."""
LARGE = 5_000
"""Holders times columns from which on points are solved on all cores."""
SIDE_BY_SIDE = 2
"""Points that are solved at a time from `WIDE` columns on: while one takes all cores for its
holders, the other has them together."""
PILOT_ROUNDS = 6
WIDE_ROUNDS = 2


@dataclass(frozen=True)
class Place:
    """A ρ and a σ², with the model's state there."""

    share: float
    noise_variance: float
    log_prior: float
    second: Array  # E[θθ']
    log_weight: float  # of the posterior, at the pilot's τ


@dataclass(frozen=True)
class Start:
    """Where a model was when it was last solved: near enough to begin at."""

    second: Array  # E[θθ']
    noise_variance: float


@dataclass(frozen=True)
class Pilot:
    """What is known of τ before the net."""

    facts: Facts
    spread: Array  # (d,): squares of the mean τ
    told: NDArray[np.intp]  # coefficients whose τ is estimated; the others' is 0
    law: Law
    second: Array  # E[θθ'] at the pilot's ρ
    noise_variance: float  # σ² there
    constant: NDArray[np.bool_]  # (d,): columns that are constant within every holder
    start: Start | None  # from `WIDE` columns on: where a model of the same holders may begin


@dataclass(frozen=True)
class Net:
    """The mixture in the eigenbasis."""

    nodes: list[Node]
    tau: Array  # (point, d): sds of coefficients between holders, √(τ² + κ²diag H)
    together: Array  # (point,): κ²
    own: Array  # (J, d): mean of θ_j
    own_covariance: Array  # (J, d, d)


def pilot_of(evidence: Evidence, prior: Prior, noise_variance: float | None) -> Pilot:
    """Where τ lies, and holders' residual variances given that."""
    facts = facts_of(evidence, prior)
    spread = np.full(evidence.d, SCALE**2)
    told = np.arange(evidence.d)
    net = first_net(evidence.d)
    constant = holder_level(facts, intercept=evidence.intercept)
    start = None
    for step in range(PILOT_ROUNDS if evidence.d < WIDE else WIDE_ROUNDS):
        model = started(facts, PILOT_SHARE, spread, start)
        if noise_variance is None:
            first = None if start is None else start.noise_variance
            variance = centre(noise_variances(model, evidence, prior, first))
            told_ratios = ratios(model, evidence, variance)
            if np.any(told_ratios != facts.ratios):
                facts = replace(facts, ratios=told_ratios)
                model.facts = facts
            if evidence.d < WIDE or np.any(facts.ratios != 1):
                variance = centre(noise_variances(model, evidence, prior))
        else:
            variance = noise_variance
        model.gaussian(variance)
        if evidence.d >= WIDE:
            start = Start(model.second, variance)
        profile = Profile.of(model, model.solve(variance))
        if step == 0:
            told = np.setdiff1d(telling(profile), np.flatnonzero(constant))
            net = net[told]
            for k in np.setdiff1d(np.arange(evidence.d), told):
                profile.move(int(k), 0.0)
        law = sweep(profile, told, net)
        moved = np.abs(np.sqrt(profile.spread) - np.sqrt(spread))
        spread = profile.spread
        if np.all(moved <= SETTLED * (np.sqrt(spread) + SCALE / 10)):
            break
        net = law.narrowed()
    return Pilot(
        facts=_shaped(facts, told),
        spread=spread,
        told=told,
        law=law,
        second=model.second,
        noise_variance=variance,
        constant=constant,
        start=start,
    )


def _shaped(facts: Facts, told: NDArray[np.intp]) -> Facts:
    """With H and H_j, where differences may go together: of fewer than `WIDE` columns."""
    if not len(told) or len(facts.back) >= WIDE:
        return facts
    facts = replace(facts, shape=shape_of(facts, told))
    if not may_go_together(facts.shape, told):
        return facts
    return replace(facts, shapes=shapes_of(facts, told))


def ways_of(pilot: Pilot) -> Ways:
    """The law of κ and τ; at κ = 0 alone where differences cannot go together."""
    alike = _way(pilot, 0.0)
    if not pilot.facts.shapes.any():
        return Ways((alike,))
    above = [_way(pilot, value) for value in VALUES.tolist()]
    above += [_way(pilot, value) for value in Ways((alike, *above)).tried().tolist()]
    return Ways((alike, *sorted(above, key=lambda way: way.together)))


def _way(pilot: Pilot, together: float) -> Way:
    """The law of τ at one κ, by two sweeps from where τ is at κ = 0."""
    variance = pilot.noise_variance
    model = Model(pilot.facts, PILOT_SHARE, spread=pilot.spread, together=together**2)
    model.second = pilot.second
    law = pilot.law
    if together:
        profile = Profile.of(model, model.solve(variance))
        law = sweep(profile, pilot.told, first_net(len(pilot.told)))
        law = sweep(profile, pilot.told, law.narrowed())
        model.spread = profile.spread
    fitness = model.solve(variance).node.log_weight
    return Way.of(together, law, model.spread[pilot.told], fitness)


def started(facts: Facts, share: float, spread: Array, start: Start | None) -> Model:
    """A model that begins where another was."""
    model = Model(facts, share, spread=spread)
    if start is not None:
        model.second = start.second
    return model


def holder_level(facts: Facts, *, intercept: bool) -> NDArray[np.bool_]:
    """Columns that vary between holders but not within: no holder's own slope can be told of them.

    Such a column is the holder's intercept under another name: what it adds is told by comparing
    holders, and the spread of intercepts says how well.
    """
    back = facts.back
    if not intercept:
        return np.zeros(len(back), dtype=bool)
    grams = back.T @ facts.grams.mean @ back
    level = np.maximum(grams[:, 0, 0], 1e-12)[:, None]
    sums = grams[:, 0, :]
    squares = np.maximum(np.diagonal(grams, axis1=1, axis2=2), 0.0)
    each = squares - sums**2 / level
    within = np.sum(np.maximum(each, 0.0), axis=0)
    centred = sums / level - sums.sum(axis=0) / level.sum()
    between = np.sum(level * centred**2, axis=0)
    doubt = _doubt(facts, sums / level)
    seen = np.maximum(each.sum(axis=0), 0.0)
    hidden = (seen < 3 * doubt) & (seen + 2 * doubt < HIDDEN * between)
    constant: NDArray[np.bool_] = (within < CONSTANT * between) | hidden
    constant[0] = False  # the intercept itself
    return constant


def _doubt(facts: Facts, means: Array) -> Array:
    """Sd of every column's sum of squares within holders, (d,), given its means there, (J, d).

    The sum is w'S_jw with w the column less its mean times the intercept.
    """
    centring = np.tile(np.eye(len(facts.back)), (len(means), 1, 1))
    centring[:, 0, :] -= means
    squares = (facts.back @ centring) ** 2  # of every w, in the eigenbasis
    variance = facts.grams.own_variance
    told = 2 * np.sum(squares * (variance @ squares), axis=1)
    once = np.sum(squares**2 * np.diagonal(variance, axis1=1, axis2=2)[:, :, None], axis=1)
    doubt: Array = np.sqrt(np.sum(told - once, axis=0))
    return doubt


def telling(profile: Profile) -> NDArray[np.intp]:
    """Coefficients of which enough holders tell: J, were all equally exact."""
    d = len(profile.spread)
    weights = np.maximum(profile.normals[:, range(d), range(d)], 1e-300)
    squares = np.maximum(np.sum(weights**2, axis=0), np.finfo(float).tiny)
    effective = weights.sum(axis=0) ** 2 / squares
    return np.flatnonzero(effective >= TELLING)


def sweep(profile: Profile, told: NDArray[np.intp], net: Array) -> Law:
    """Every τ_k in turn, moved to its mean; the law that they leave."""
    tau = np.concatenate([np.zeros((len(told), 1)), np.exp(net)], axis=1)
    logs = np.zeros(tau.shape)
    law = Law(net[:0], logs[:0])
    for place, k in enumerate(told.tolist()):
        one = profile.likelihood(k, tau[place])
        logs[place] = one - one.max()
        law = Law(net[[place]], logs[[place]], before=law.after)
        profile.move(k, float(law.means()[0]) ** 2)
    return Law(net, logs)


def net_of(pilot: Pilot, places: Sequence[Place]) -> Net:
    """Solve the model at every point."""
    d = len(pilot.spread)
    points = POINTS if d < WIDE else POINTS // 4
    outer = _normalised(np.array([place.log_weight for place in places]))
    cube = latin_hypercube(points, len(pilot.told) + 3)
    chosen = _chosen(outer, cube[:, -2])
    drawn = _drawn(pilot, cube)
    tau = drawn.tau

    def solve(point: int) -> tuple[Solution, Model]:
        place = places[chosen[point]]
        spread = tau[point] ** 2
        together = float(drawn.together[point])
        model = Model(pilot.facts, place.share, spread=spread, together=together)
        model.second = place.second
        return model.solve(place.noise_variance), model

    def node_at(point: int) -> Node:
        node = solve(point)[0].node
        place = places[chosen[point]]
        extra = place.log_prior - math.log(outer[chosen[point]]) + drawn.log_ratio[point]
        return replace(node, log_weight=node.log_weight + extra)

    large = len(pilot.facts.moments) * d >= LARGE
    at_once = (SIDE_BY_SIDE if d >= WIDE else None) if large else 1
    nodes = mapped(node_at, range(points), at_once)
    weights = truncated(np.array([node.log_weight for node in nodes]))
    nodes = [
        replace(node, log_weight=float(log))
        for node, log in zip(nodes, np.log(weights + 1e-300), strict=True)
    ]
    chosen_often = Counter(_systematic(weights, OWN_POINTS * points // POINTS))

    def own_at(point: int) -> tuple[Array, Array]:
        solution, model = solve(point)
        return own_coefficients(solution, model.mean)

    own = mapped(own_at, list(chosen_often), at_once)
    mean, covariance = _moments(own, list(chosen_often.values()))
    return Net(
        nodes=nodes,
        tau=np.sqrt(tau**2 + np.multiply.outer(drawn.together, np.diag(pilot.facts.shape))),
        together=drawn.together,
        own=mean,
        own_covariance=covariance,
    )


class _Drawn(NamedTuple):
    """τ and κ² of every point."""

    tau: Array  # (point, d)
    together: Array  # (point,)
    log_ratio: Array  # (point,): log prior − log of the law that they were drawn from


def _drawn(pilot: Pilot, cube: Array) -> _Drawn:
    """At points of the unit cube, whose last axis is κ's."""
    ways = ways_of(pilot)
    together, chosen, log_ratio = ways.draw(cube[:, -1])
    tau = np.zeros((len(cube), len(pilot.spread)))
    for place in np.unique(chosen):
        rows = np.flatnonzero(chosen == place)
        told, ratio = ways.ways[place].law.draw(cube[rows, :-2])
        tau[np.ix_(rows, pilot.told)] = told
        log_ratio[rows] += ratio
    return _Drawn(tau=tau, together=together**2, log_ratio=log_ratio)


def _chosen(likely: Array, levels: Array) -> NDArray[np.intp]:
    """Which of some ways is at each level of the unit interval."""
    return np.minimum(np.searchsorted(np.cumsum(likely), levels), len(likely) - 1)


def _moments(laws: list[tuple[Array, Array]], counts: list[int]) -> tuple[Array, Array]:
    """Mean and covariance of a mixture of Gaussians, each so often."""
    shares = np.array(counts) / sum(counts)
    pairs = list(zip(shares, laws, strict=True))
    mean = sum((share * location for share, (location, _) in pairs), np.zeros(()))
    covariance = np.zeros(())
    for share, (location, within) in pairs:
        apart = location - mean
        covariance = covariance + share * (within + apart[:, :, None] * apart[:, None, :])
    return mean, covariance


def latin_hypercube(points: int, dimensions: int) -> Array:
    """Points of the unit cube, one in each layer of every axis; the same ones each time."""
    rng = np.random.default_rng(0)
    layers = rng.permuted(np.tile(np.arange(points), (dimensions, 1)), axis=1)
    return (layers.T + 0.5) / points


def truncated(logs: Array) -> Array:
    """Weights that sum to 1, none over √n times their mean."""
    weights = np.exp(logs - logs.max())
    weights = np.minimum(weights, weights.mean() * math.sqrt(len(weights)))
    normalised: Array = weights / weights.sum()
    return normalised


def _normalised(logs: Array) -> Array:
    weights = np.exp(logs - logs.max())
    normalised: Array = weights / weights.sum()
    return normalised


def _systematic(weights: Array, count: int) -> list[int]:
    """So many parts, each as often as its weight says."""
    levels = np.cumsum(weights)
    places = (np.arange(count) + 0.5) / count * levels[-1]
    return [int(place) for place in np.minimum(np.searchsorted(levels, places), len(weights) - 1)]
