"""Holders: how far their coefficients differ, each holder's own, and what a new one would show.

In any units A θ + b: the sd between holders is the root of the diagonal of A D A' at each part of
the mixture, so intervals of it, and the probability that it is above 0, are read off the parts. I²
is its square over that plus the variance with which a typical holder's release alone tells the
coefficient: the share of what holders' separate estimates differ by that is no chance.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from tacit.analyst.posterior.differing import TAKEN_TO_DIFFER, Differing
from tacit.analyst.posterior.laws import Mixture
from tacit.analyst.posterior.posterior import AnyUnits, Posterior
from tacit.analyst.posterior.text_table import text_table
from tacit.analyst.posterior.units import Units
from tacit.errors import PosteriorError

Array = NDArray[np.float64]

CLEARLY = 0.95
"""Probability from which on a coefficient is said to differ."""
PERHAPS = 0.5
"""Probability from which on it is said that it may."""
NEW = "new"
"""What stands for a holder that has not published."""


@dataclass(frozen=True)
class Between:
    """One coefficient between holders, in some units."""

    name: str
    sd: float  # τ, posterior mean
    low: float
    high: float
    probability: float  # that holders differ in it
    inconsistency: float  # I²
    half: tuple[float, float]  # half of all holders lie in it
    new: tuple[float, float]  # interval for a new holder's coefficient
    told: bool  # whether enough holders tell of it
    constant: bool  # whether its column is the same for all rows of a holder

    @property
    def clear(self) -> bool:
        """Whether holders clearly differ."""
        return self.probability >= CLEARLY

    @property
    def sentence(self) -> str:
        """What is known, in words."""
        if self.constant:
            return (
                f"{self.name} is the same for all rows of a holder: its effect is told by "
                "comparing holders, and cannot be told apart from what else sets them apart."
            )
        if not self.told:
            return f"{self.name}: fewer than three holders tell of it, so none is taken to differ."
        low, high = (f"{value:.3g}" for value in self.half)
        if self.clear:
            return (
                f"{self.name} differs between holders: half of them lie between {low} and {high}."
            )
        if self.probability >= PERHAPS:
            return (
                f"{self.name} may differ between holders: "
                f"half of them would lie between {low} and {high}."
            )
        return f"{self.name}: no sign that holders differ."


@dataclass(frozen=True)
class Own:
    """One holder's own coefficients, drawn towards the average by what is in doubt of them."""

    holder: str
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class Holders:
    """What is known of the differences between holders."""

    names: tuple[str, ...]
    units: str
    probability: float
    between: tuple[Between, ...]
    own: tuple[Own, ...]
    differ: tuple[str, ...]  # the study's columns in which holders clearly differ
    outlying: tuple[str, ...]  # holders too far from all others to count for the average

    @property
    def sentence(self) -> str:
        """For a reader in a hurry; empty where nothing clearly differs and no holder is odd."""
        sentences = []
        if self.outlying:
            sentences.append(
                f"Far from all others, and left out of the average: {_listed(self.outlying)}."
            )
        if self.differ:
            sentences.append(
                f"Holders differ in {_listed(self.differ)}: the estimates are for the average "
                "holder, and more holders, not more rows or epsilon, would narrow them."
            )
        return " ".join(sentences)

    def __str__(self) -> str:
        """What differs between holders, as a table; a sentence where nothing does."""
        if not self.between:
            return "each holder was fitted alone"
        if not self.differ and max(one.probability for one in self.between) < PERHAPS:
            return "no sign that holders differ"
        tail = 100 * (1 - self.probability) / 2
        low, high = f"{tail:g}%", f"{100 - tail:g}%"
        heads = ["between holders", "sd", low, high, "I2", f"new {low}", f"new {high}"]
        lines = [
            [
                one.name,
                *(f"{value:.4g}" for value in (one.sd, one.low, one.high)),
                f"{100 * one.inconsistency:.0f}%",
                *(f"{value:.4g}" for value in one.new),
            ]
            for one in self.between
        ]
        return text_table([heads, *lines])

    def table(self) -> str:
        """Every holder's own coefficients."""
        heads = ["own coefficients", *self.names]
        lines = [
            [
                one.holder,
                *(
                    f"{mean:.4g} [{low:.4g}, {high:.4g}]"
                    for mean, low, high in zip(one.mean, one.low, one.high, strict=True)
                ),
            ]
            for one in self.own
        ]
        return text_table([heads, *lines])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        between = [asdict(one) | {"sentence": one.sentence} for one in self.between]
        own = [asdict(one) for one in self.own]
        return {
            "differ": self.differ,
            "outlying": self.outlying,
            "between": between,
            "own": own,
        }


def _listed(names: tuple[str, ...]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def holders_of(posterior: Posterior, probability: float, units: AnyUnits) -> Holders | None:
    """Everything about holders; None where a method takes them to be alike."""
    outcome = posterior.outcome
    if not isinstance(outcome, Mixture) or outcome.differing is None:
        return None
    to = posterior.units(units)
    alone = outcome.differing.alone
    clear = outcome.weights @ (outcome.differing.spreads > 0) >= CLEARLY
    return Holders(
        names=to.names,
        units=units if isinstance(units, str) else "other",
        probability=probability,
        between=() if alone else _between(outcome, outcome.differing, probability, to),
        own=_own(posterior, outcome.differing, probability, to),
        differ=tuple(np.array(posterior.model.columns)[clear].tolist()),
        outlying=tuple(posterior.contributions[j].holder for j in outcome.differing.outlying),
    )


def _between(
    outcome: Mixture, differing: Differing, probability: float, to: Units
) -> tuple[Between, ...]:
    """Every coefficient between holders."""
    tails = np.array([(1 - probability) / 2, (1 + probability) / 2])
    new = outcome.of_new_holder()
    half = new.quantiles(np.array([0.25, 0.75]), to.matrix, to.offset)
    bounds = new.quantiles(tails, to.matrix, to.offset)
    spreads = np.sqrt(differing.variances(to.matrix))  # (part, coefficient)
    quantiles = spread_bounds(outcome.weights, spreads, tails)
    means = outcome.weights @ spreads
    # With nearly all mass at 0 the mean lies above the upper quantile; the interval holds it.
    highs = np.maximum(quantiles[:, 1], means)
    within = np.einsum("ia,ab,ib->i", to.matrix, differing.within, to.matrix)
    square = outcome.weights @ spreads**2
    concerns = np.abs(to.matrix) > 0
    told = concerns @ differing.told
    constant = ~(concerns @ ~differing.constant)
    return tuple(
        Between(
            name=name,
            sd=float(means[k]),
            low=float(quantiles[k, 0]),
            high=float(highs[k]),
            probability=float(outcome.weights @ (spreads[:, k] > 0)),
            inconsistency=float(square[k] / (square[k] + within[k])),
            half=(float(half[k, 0]), float(half[k, 1])),
            new=(float(bounds[k, 0]), float(bounds[k, 1])),
            told=bool(told[k]),
            constant=bool(constant[k]),
        )
        for k, name in enumerate(to.names)
    )


def _own(
    posterior: Posterior, differing: Differing, probability: float, to: Units
) -> tuple[Own, ...]:
    """Every holder's own coefficients."""
    mean = differing.locations @ to.matrix.T + to.offset
    variance = np.einsum(
        "ia,jab,ib->ji", to.matrix, differing.covariances, to.matrix, optimize=True
    )
    margin = float(ndtri((1 + probability) / 2)) * np.sqrt(variance)
    rows = zip(mean.tolist(), (mean - margin).tolist(), (mean + margin).tolist(), strict=True)
    return tuple(
        Own(holder=contribution.holder, mean=tuple(middle), low=tuple(low), high=tuple(high))
        for contribution, (middle, low, high) in zip(posterior.contributions, rows, strict=False)
    )


def at_holder(posterior: Posterior, holder: str | None) -> Posterior:
    """The posterior of one holder's own coefficients, or of a new one's; as it is for the average.

    What exact statistics would leave in doubt is known for a new holder, not for one by its name.
    """
    if holder is None:
        return posterior
    outcome = posterior.outcome
    if not isinstance(outcome, Mixture) or outcome.differing is None:
        raise PosteriorError(
            "holder: this posterior takes all holders to be alike; "
            "fit three or more with noise-aware"
        )
    if holder == NEW and outcome.differing.alone:
        raise PosteriorError("holder: a new one cannot be told from fits of each holder alone")
    if holder == NEW:
        apart = outcome.differing.of_new_holder(outcome.weights)
        between = np.einsum("k,kab->ab", outcome.weights, apart)
        pooled = posterior.pooled
        if pooled is not None:
            pooled = replace(pooled, sampling=pooled.sampling + between)
        return replace(posterior, outcome=outcome.of_new_holder(), pooled=pooled)
    names = [contribution.holder for contribution in posterior.contributions]
    if holder not in names:
        raise PosteriorError(f"holder must be {NEW!r} or one of {', '.join(names)}; got {holder!r}")
    return replace(posterior, outcome=outcome.of_holder(names.index(holder)), pooled=None)


def spread_bounds(weights: Array, spreads: Array, tails: Array) -> Array:
    """Interval of every coefficient's sd between holders, (coefficient, 2).

    As for a new holder, what may well differ is taken to at the upper end: that is what τ is where
    it is above 0. Averaged over whether it is, a τ that hardly shows would too often lie above.
    """
    bounds = weighted_quantiles(weights, spreads, tails)
    above = spreads > 0
    for k in np.flatnonzero(weights @ above >= TAKEN_TO_DIFFER):
        some = above[:, k]
        share = weights[some] / weights[some].sum()
        bounds[k, 1] = weighted_quantiles(share, spreads[some, k : k + 1], tails[1:])[0, 0]
    return bounds


def weighted_quantiles(weights: Array, values: Array, probabilities: Array) -> Array:
    """Quantiles of every column of weighted values, (column, probability)."""
    quantiles = []
    for column in values.T:
        order = np.argsort(column)
        levels = np.cumsum(weights[order]) - weights[order] / 2
        quantiles.append(np.interp(probabilities, levels, column[order]))
    return np.array(quantiles)
