r"""All holders, where there are more than a net is solved for.

What all holders share (τ, σ², ρ, h) is told by `MOST_HOLDERS` of them: the posterior of τ is
theirs, with a relative standard deviation near $(2 \cdot 1000)^{-1/2}$, 2 %. The average
holder's coefficients, and every holder's own, are then solved from the releases of all, at the
means of τ² and σ². An error of 2 % in τ changes the weight of a holder by 4 % at most and the
average's interval by 2 % at most; its centre moves by far less than that interval is wide, since
any weights give an average without bias.

A holder far from all others is looked for among all, as `outlying.py` does.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.gram import PART, common_of, parts_of, total_of
from tacit.analyst.methods.noise_aware.facts import Facts, facts_from
from tacit.analyst.methods.noise_aware.model import Model, Solution, own_coefficients
from tacit.analyst.methods.noise_aware.net import Start, started
from tacit.analyst.methods.noise_aware.outlying import (
    MOST_ASIDE,
    RARE,
    chance_of,
    suspect_among,
)
from tacit.analyst.methods.noise_aware.pull import pulled
from tacit.analyst.methods.noise_aware.residual import Unlike
from tacit.analyst.methods.noise_aware.slopes import slopes_of
from tacit.analyst.methods.noise_aware.sums import Sums
from tacit.analyst.methods.noise_aware.threads import mapped
from tacit.analyst.methods.noise_aware.together import shapes_of
from tacit.analyst.prior import Prior

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Shared:
    """What holds for all holders, as some of them tell it."""

    share: float  # ρ
    noise_variance: float  # σ²
    spread: Array  # (d,): τ²
    together: float  # κ²
    shape: Array  # (d, d): H
    second: Array  # (d, d): E[θθ'], in the evidence's own columns
    unlike: float | None  # ω, or nothing where residual variances are alike


@dataclass(frozen=True)
class Whole:
    """What all holders tell, in the evidence's own columns."""

    location: Array  # (d,): of θ
    covariance: Array  # (d, d)
    own: Array  # (J, d): mean of θ_j
    own_covariance: Array  # (J, d, d)
    ratios: Array  # (J,): ρ_j
    aside: tuple[int, ...]  # holders that do not count for the average


def whole_of(evidence: Evidence, prior: Prior, shared: Shared, told: NDArray[np.intp]) -> Whole:
    """Solve for all holders; `told` are the coefficients whose τ is estimated."""
    holders = Holders.of(evidence, prior, shared, told)
    normal = holders.normal()
    solution = holders.solution(normal)
    own, covariances = holders.own(solution)
    aside: list[int] = []
    axes = holders.models[0].facts.axes
    while len(aside) < evidence.holders // MOST_ASIDE:
        apart = ((own - solution.node.location) @ axes.T)[:, told] ** 2
        apart[aside] = 0.0
        place = suspect_among(apart)
        if place is None:
            break
        alone = holders.normal_of(place)
        left = evidence.holders - len(aside)
        chance = chance_of(normal, alone, holders.models[0].prior_precision(), left)
        if chance >= RARE / evidence.holders:
            break
        aside.append(place)
        normal = normal - alone
        solution = holders.solution(normal)
        own, covariances = holders.own(solution)
    basis = holders.models[0].basis
    node = solution.node
    location = basis @ node.location
    covariance = basis @ node.covariance @ basis.T
    return Whole(
        location=location,
        covariance=pulled(holders.models[0].facts.slopes, node.share, location, covariance),
        own=own @ basis.T,
        own_covariance=covariances,
        ratios=np.concatenate([model.facts.ratios for model in holders.models]),
        aside=tuple(sorted(aside)),
    )


@dataclass(frozen=True)
class Holders:
    """What every `PART` holders tell, by one model each; models differ in their holders alone."""

    models: list[Model]
    sums: list[Sums]
    noise_variance: float

    @classmethod
    def of(
        cls, evidence: Evidence, prior: Prior, shared: Shared, told: NDArray[np.intp]
    ) -> "Holders":
        """All holders, with every holder's own residual variance."""
        common = common_of(evidence)
        slopes = slopes_of(evidence, total_of(evidence), prior)
        second = common.basis.T @ shared.second @ common.basis
        variance = shared.noise_variance

        def of(facts: Facts) -> Model:
            model = started(facts, shared.share, shared.spread, Start(second, variance))
            model.together = shared.together
            return model

        def told_by(part: Evidence) -> tuple[Model, Sums]:
            facts = facts_from(part, common.of(part), slopes)
            if shared.together:
                facts = replace(facts, shape=shared.shape)
                facts = replace(facts, shapes=shapes_of(facts, told))
            if shared.unlike is not None:
                unlike = Unlike.at(of(facts), part, variance)
                facts = replace(facts, ratios=unlike.ratios(shared.unlike))
            model = of(
                facts
            )  # a new one, which holds no solution yet, and sums that hold no design
            return model, replace(model.sums(variance))

        models, sums = zip(*mapped(told_by, list(parts_of(evidence))), strict=True)
        return cls(models=list(models), sums=list(sums), noise_variance=variance)

    def normal(self) -> Array:
        """What all tell of (θ, c), (2d + 1, 2d + 1)."""
        normal: Array = np.sum([sums.normal for sums in self.sums], axis=0)
        return normal

    def normal_of(self, place: int) -> Array:
        """What one of them tells."""
        return self.sums[place // PART].normal_of(place % PART)

    def solution(self, normal: Array) -> Solution:
        """The Gaussian of (θ, c)."""
        sums = replace(self.sums[0], normal=normal)
        return self.models[0].solution(sums, self.noise_variance)

    def own(self, solution: Solution) -> tuple[Array, Array]:
        """Every θ_j's mean in the eigenbasis, and its covariance in the evidence's own columns."""

        def of(part: tuple[Model, Sums]) -> tuple[Array, Array]:
            model, sums = part
            theirs = replace(solution, sums=replace(sums), between=model.between)
            mean, covariance = own_coefficients(theirs, model.mean)
            return mean, model.basis @ covariance @ model.basis.T

        parts = list(zip(self.models, self.sums, strict=True))
        means, covariances = zip(*mapped(of, parts), strict=True)
        return np.concatenate(means), np.concatenate(covariances)
