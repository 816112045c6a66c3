"""Outlook: the posterior that holders with so many rows of a kind, and so much budget, would give.

By the default method. A kind of rows is Σ (x, y)(x, y)' per row, imagined before anybody publishes
(plan.py). Once there is a posterior, the pool behind it tells what more budget or more rows would
bring.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.families.fit import Question, fit_family
from tacit.analyst.families.links import FamilyName
from tacit.analyst.methods.gram import total_of
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.noise_aware import fit
from tacit.analyst.methods.noise_aware.slopes import slopes_of
from tacit.analyst.posterior.pooled import precisions, spread_along
from tacit.analyst.posterior.posterior import AnyUnits, Posterior
from tacit.analyst.prior import Prior
from tacit.privacy.mechanism import Noise
from tacit.study import Study

Array = NDArray[np.float64]

EXPECTED_SHARE = 2.0
"""ρ of the default prior (noise_aware/slopes.py) at which intervals are forecast."""


def expected(
    study: Study,
    rows: Sequence[float],
    gram: Array,
    epsilons: Sequence[float] | None,
    *,
    spread: float | None = None,
    family: FamilyName | None = None,
) -> Posterior:
    """The posterior from the statistics that holders would have.

    With the noise of each one's ε or, for None, without. `spread` is τ, the sd of every coefficient
    between holders; None for whatever is then estimated.
    """
    noise = None if epsilons is None else _noise_of(study, epsilons)
    if study.secure_sum is not None:  # one release, of all rows
        rows = [sum(rows)]
        noise = None if epsilons is None else [_noise_of_sum(study, epsilons)]
    sizes = np.array(rows, dtype=float)
    prior = _prior(_evidence(study, sizes, gram, None))
    evidence = _evidence(study, sizes, gram, noise)
    infer = partial(fit, settings=Settings(spread=spread))
    if family is None:
        return Posterior(
            study=study, method="noise-aware", outcome=infer(evidence, prior), contributions=()
        )
    asked = Question(study=study, agreed=study, evidence=evidence, prior=prior)
    fitted = fit_family(family, asked, infer, infer)
    return Posterior(
        study=study,
        method="noise-aware",
        outcome=fitted.outcome,
        contributions=(),
        family=fitted.family,
    )


def _prior(exact: Evidence) -> Prior:
    """The default prior of slopes as rows without noise would have it, the same for every ε.

    What noise hides makes the default prior guess; more noise is then no reason for narrower
    intervals.
    """
    weak = Prior.weak(exact.d)
    covariance = slopes_of(exact, total_of(exact), weak).covariance(EXPECTED_SHARE)
    return replace(weak, covariance=covariance, by_spread=False)


def widths(posterior: Posterior, probability: float, units: AnyUnits) -> Array:
    """Widths of intervals."""
    bounds = posterior.interval(probability, units)
    return bounds[:, 1] - bounds[:, 0]


def _noise_of(study: Study, epsilons: Sequence[float]) -> list[Noise]:
    """Noise of each holder's statistics."""
    return [study.model_copy(update={"epsilon": epsilon}).mechanism().noise for epsilon in epsilons]


def _noise_of_sum(study: Study, epsilons: Sequence[float]) -> Noise:
    """Noise of a secure sum in which all holders stay."""
    return study.model_copy(update={"epsilon": min(epsilons)}).summed(len(epsilons)).noise


def _evidence(study: Study, n: Array, gram: Array, noise: list[Noise] | None) -> Evidence:
    """Statistics without noise, but with what is known of it."""
    return Evidence.of(
        study,
        noise,
        grams=n[:, None, None] * gram[:-1, :-1],
        moments=n[:, None] * gram[:-1, -1],
        rows=None if study.count == "withheld" else n,
        squares=n * gram[-1, -1] if study.response_square else None,
    )


# What more would bring.


@dataclass(frozen=True)
class Scenario:
    """What would change, and each contrast's sd then, over what it is as things are."""

    change: str
    ratios: Array


def scenarios(posterior: Posterior, units: AnyUnits = "contrast") -> list[Scenario]:
    """More budget, more rows, no privacy noise: of holders and rows like those behind a posterior.

    Empty where they are not known. A closed form (`precisions` of pooled.py): the residual
    variance, and how far holders differ, are held at their estimates.
    """
    pooled = posterior.pooled
    contributions = posterior.contributions
    if pooled is None or not contributions:
        return []
    even = pooled.rows / len(contributions)
    rows = np.array([even if c.n is None else max(c.n, 1.0) for c in contributions])
    values, vectors = np.linalg.eigh(pooled.gram / pooled.rows)
    theta = vectors.T @ posterior.outcome.mean()
    matrix = posterior.units(units).matrix @ vectors
    variance = pooled.noise_variance
    between = spread_along(posterior.outcome, vectors)

    def spread(more_rows: float, more_epsilon: float | None, more_holders: float = 1) -> Array:
        noise: Array | float = 0.0
        if more_epsilon is not None:
            epsilons = [more_epsilon * c.epsilon for c in contributions]
            noise = _added_variance(_noise_of(posterior.study, epsilons), theta)
        known = more_holders * precisions(values, more_rows * rows, variance, between, noise)
        spreads: Array = np.sqrt(np.sum(matrix**2 / (known + 1), axis=1))  # 1 is the weak prior's
        return spreads

    now = spread(1, 1)
    changed: dict[str, tuple[float, float | None] | tuple[float, float | None, float]] = {
        "every ε doubled": (1, 2),
        "every ε four times as large": (1, 4),
        "twice the rows": (2, 1),
        "four times the rows": (4, 1),
        "twice the holders": (1, 1, 2),
        "no privacy noise": (1, None),
    }
    return [Scenario(change, spread(*given) / now) for change, given in changed.items()]


def _added_variance(noise: list[Noise], theta: Array) -> Array:
    """Variance that privacy adds to ẑ_j − S_jθ along each axis, (J, d).

    That of ẑ_j, and Cov(Mθ) = σ_s²(‖θ‖²I + θθ')/2.
    """
    moment = np.array([each.xty**2 for each in noise])[:, None]
    gram = np.array([each.xtx_diagonal**2 for each in noise])[:, None]
    variance: Array = moment + gram * (theta @ theta + theta**2) / 2
    return variance
