r"""A holder far from all others: mistaken units, another population, or a release made to mislead.

Under a Gaussian law of b_j one such holder pulls the average by 1/J of its distance, without
bound, and hides behind the τ that it causes itself. So the one that causes most of some
coefficient's spread is left out, τ is estimated without it, and its release is held against
what the others then let expect:

    χ²_j = Q(all releases) − Q(all but j's),    χ²_j/d ~ F(d, J − 2),

with Q the quadratic form of the log-likelihood, times −2. With a probability below `RARE`/J it
is set aside: it no longer counts for the average or for τ, and its own coefficients are those
of its release alone. The average then moves by a bounded amount, whatever one holder says. At
most every fifth holder is set aside; `MAJORITY` always stay.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.noise_aware.model import Model, own_coefficients
from tacit.analyst.methods.noise_aware.net import PILOT_SHARE, Pilot, pilot_of
from tacit.analyst.methods.noise_aware.profile import Profile
from tacit.analyst.prior import Prior

Array = NDArray[np.float64]

RARE = 1e-3
"""Probability with which a holder like the others is set aside, over all holders."""
MAJORITY = 4
"""Fewest holders that stay."""
MOST_ASIDE = 5
"""One holder in so many may be set aside."""
SUSPECT = 0.5
"""Share of a coefficient's squared deviations that makes one holder suspect."""


@dataclass(frozen=True)
class Kept:
    """Who counts for the average, and where τ lies among them."""

    holders: tuple[int, ...]
    aside: tuple[int, ...]
    pilot: Pilot


def kept_of(evidence: Evidence, prior: Prior, noise_variance: float | None) -> Kept:
    """All holders but those that are set aside."""
    holders = list(range(evidence.holders))
    aside: list[int] = []
    pilot = pilot_of(evidence, prior, noise_variance)
    while len(holders) > MAJORITY and len(aside) < evidence.holders // MOST_ASIDE:
        place = _suspect(pilot)
        if place is None:
            break
        others = [*holders[:place], *holders[place + 1 :]]
        without = pilot_of(evidence.only(others), prior, noise_variance)
        if _probability(pilot, without, place) >= RARE / evidence.holders:
            break
        aside.append(holders[place])
        holders = others
        pilot = without
    return Kept(holders=tuple(holders), aside=tuple(sorted(aside)), pilot=pilot)


def _suspect(pilot: Pilot) -> int | None:
    """The holder that causes most of the spread of some coefficient, or none."""
    model = Model(pilot.facts, PILOT_SHARE, spread=pilot.spread)
    model.gaussian(pilot.noise_variance)
    solution = model.solve(pilot.noise_variance)
    own, _ = own_coefficients(solution, model.mean)
    return suspect_among(((own - solution.node.location) @ model.facts.axes.T)[:, pilot.told] ** 2)


def suspect_among(apart: Array) -> int | None:
    """The holder that causes most of some coefficient's squared deviations, (J, m), or none."""
    if not apart.size:
        return None
    shares = apart / np.maximum(apart.sum(axis=0), 1e-300)
    place, _ = np.unravel_index(int(np.argmax(shares)), shares.shape)
    return int(place) if shares.max() > SUSPECT else None


def _probability(pilot: Pilot, without: Pilot, place: int) -> float:
    """Probability that a holder is as far from the others as this one, τ being theirs."""
    model = Model(pilot.facts, PILOT_SHARE, spread=without.spread)
    model.gaussian(without.noise_variance)
    profile = Profile.of(model, model.solve(without.noise_variance))
    total = profile.normals.sum(axis=0)
    return chance_of(total, profile.normals[place], profile.prior, len(profile.normals))


def chance_of(normal: Array, alone: Array, prior: Array, holders: int) -> float:
    """Probability that one of so many is as far from the others; `alone` is its part of `normal`.

    `prior` is the precision of (θ, c) before any release.
    """
    d = len(prior) // 2
    distance = _deviance(normal, prior) - _deviance(normal - alone, prior)
    return float(fdtrc(d, max(holders - 2, 1), max(distance, 0.0) / d))


def _deviance(normal: Array, prior: Array) -> float:
    """Twice the log-likelihood's quadratic part, less its sign."""
    moment = normal[:-1, -1]
    return float(normal[-1, -1] - moment @ np.linalg.solve(normal[:-1, :-1] + prior, moment))
