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

Of many coefficients one is nearly always mostly one holder's by chance: of ten holders alike one
causes more than half of a coefficient's spread with probability 0.13, so of 500 coefficients
somebody always does. A share of one coefficient cannot be held against their number: 1 − 1/J is
the most that even the farthest holder reaches. So who is suspected is first held against τ as one
sweep without it gives it, from where all holders' τ is. Only with a probability below
`DOUBTFUL`/J, which happens to holders alike in one fit of fifty at most, however many
coefficients there are, everything is estimated again without it, and the test is that one's.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.noise_aware.model import Model, own_means
from tacit.analyst.methods.noise_aware.net import (
    PILOT_SHARE,
    Pilot,
    pilot_of,
    started,
    sweep,
)
from tacit.analyst.methods.noise_aware.profile import Profile
from tacit.analyst.methods.noise_aware.spreads import first_net
from tacit.analyst.prior import Prior

Array = NDArray[np.float64]

RARE = 1e-3
"""Probability with which a holder like the others is set aside, over all holders."""
DOUBTFUL = 0.02
"""Probability with which a holder like the others is looked at more closely, over all holders."""
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
        place = _suspect(pilot, DOUBTFUL / evidence.holders)
        if place is None:
            break
        others = [*holders[:place], *holders[place + 1 :]]
        without = pilot_of(evidence.only(others), prior, noise_variance)
        facts = replace(pilot.facts, ratios=_ratios(pilot, without, place))
        model = Model(facts, PILOT_SHARE, spread=without.spread)
        model.gaussian(without.noise_variance)
        if _chance(model, without.noise_variance, place) >= RARE / evidence.holders:
            break
        aside.append(holders[place])
        holders = others
        pilot = without
    return Kept(holders=tuple(holders), aside=tuple(sorted(aside)), pilot=pilot)


def _ratios(pilot: Pilot, without: Pilot, place: int) -> Array:
    """Holders' residual variances over that of the others, the suspect's among them, (J,).

    A suspect whose residual variance is not clearly another has theirs.
    """
    own = 1.0
    if np.any(pilot.facts.ratios != 1):
        own = pilot.facts.ratios[place] * pilot.noise_variance / without.noise_variance
    return np.insert(without.facts.ratios, place, own)


def _suspect(pilot: Pilot, doubtful: float) -> int | None:
    """The holder that causes most of the spread of some coefficient and is far away, or none.

    Far: by τ as a sweep without it gives it, with a probability below `doubtful`.
    """
    variance = pilot.noise_variance
    model = started(pilot.facts, PILOT_SHARE, pilot.spread, pilot.start)
    model.gaussian(variance)
    solution = model.solve(variance)
    own = own_means(solution, model.mean)
    apart = (own - solution.node.location) @ model.facts.axes.T
    place = suspect_among(apart[:, pilot.told] ** 2)
    if place is None:
        return None
    profile = Profile.of(model, solution).without(place)
    sweep(profile, pilot.told, first_net(len(pilot.told)))
    model.spread = profile.spread
    model.gaussian(variance)
    return place if _chance(model, variance, place) < doubtful else None


def suspect_among(apart: Array) -> int | None:
    """The holder that causes most of some coefficient's squared deviations, (J, m), or none."""
    if not apart.size:
        return None
    shares = apart / np.maximum(apart.sum(axis=0), 1e-300)
    place, _ = np.unravel_index(int(np.argmax(shares)), shares.shape)
    return int(place) if shares.max() > SUSPECT else None


def _chance(model: Model, noise_variance: float, place: int) -> float:
    """Probability that a holder is as far from the others as this one, τ being the model's."""
    sums = model.solve(noise_variance).sums
    alone = sums.normal_of(place)
    return chance_of(sums.normal, alone, model.prior_precision(), len(model.facts.moments))


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
