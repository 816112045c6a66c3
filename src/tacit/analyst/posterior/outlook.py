"""Forecast: the posterior that the default method would give, had holders so many rows of a kind and so much budget.

A kind of rows is Σ (x, y)(x, y)' per row, imagined before anybody publishes (plan.py). Once there is a posterior, the pool behind it
tells what more budget or more rows would bring.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.noise_aware import fit
from tacit.analyst.posterior.pooled import precisions, spread_along
from tacit.analyst.posterior.posterior import AnyUnits, Posterior
from tacit.analyst.prior import Prior
from tacit.privacy.gaussian import split
from tacit.privacy.mechanism import Noise
from tacit.study import Study

Array = NDArray[np.float64]


def expected(
    study: Study,
    rows: Sequence[float],
    gram: Array,
    epsilons: Sequence[float] | None,
    spread: float | None = None,
) -> Posterior:
    """The posterior from the statistics that holders would have, with the noise of each one's ε or, for None, without.

    `spread` is τ, the sd of every coefficient between holders; None for whatever is then estimated.
    """
    scales = None if epsilons is None else _scales(study, epsilons)
    if study.secure_sum is not None:  # one release, of all rows
        rows, scales = [sum(rows)], None if epsilons is None else [_of_sum(study, epsilons)]
    evidence = _evidence(study, np.array(rows, dtype=float), gram, scales)
    outcome = fit(evidence, Prior.weak(study.d), Settings(spread=spread))
    return Posterior(study, "noise-aware", outcome, ())


def widths(posterior: Posterior, probability: float, units: AnyUnits) -> Array:
    """Widths of intervals."""
    found: Array = np.diff(posterior.interval(probability, units), axis=1)[:, 0]
    return found


def _scales(study: Study, epsilons: Sequence[float]) -> list[Noise]:
    """Noise of each holder's statistics; those of a study with two stages have the second stage's part of ε."""
    share, delta = study.scales_share, study.delta
    spent = epsilons if share is None else [split(epsilon, delta, share)[1] for epsilon in epsilons]
    return [study.model_copy(update={"epsilon": epsilon}).mechanism().noise for epsilon in spent]


def _of_sum(study: Study, epsilons: Sequence[float]) -> Noise:
    """Noise of a secure sum in which all holders stay."""
    return study.model_copy(update={"epsilon": min(epsilons)}).summed(len(epsilons)).noise


def _evidence(study: Study, n: Array, gram: Array, scales: list[Noise] | None) -> Evidence:
    """Statistics without noise, but with what is known of it."""
    zero = np.zeros(len(n))
    squares = study.response_square
    return Evidence(
        grams=n[:, None, None] * gram[:-1, :-1],
        moments=n[:, None] * gram[:-1, -1],
        gram_sd=zero if scales is None else np.array([scale.xtx_diagonal for scale in scales]),
        off_diagonal_sd=zero
        if scales is None
        else np.array([scale.xtx_off_diagonal for scale in scales]),
        moment_sd=zero if scales is None else np.array([scale.xty for scale in scales]),
        counts=None if study.count == "withheld" else n / study.release.average,
        squares=n * gram[-1, -1] if squares else None,
        square_sd=None
        if not squares
        else zero
        if scales is None
        else np.array([scale.yty or 0.0 for scale in scales]),
        intercept=study.intercept,
        average=study.release.average,
        delta=study.delta,
    )


# What more would bring.


@dataclass(frozen=True)
class Scenario:
    """What would change, and each contrast's standard deviation then, over what it is as things are."""

    change: str
    ratios: Array


def scenarios(posterior: Posterior, units: AnyUnits = "contrast") -> list[Scenario]:
    """More budget, more rows, no privacy noise: of holders and rows like those behind a posterior. Empty where they are not known.

    A closed form (`precisions` of pooled.py): the residual variance, and how far holders differ, are held at their estimates.
    """
    pooled, contributions = posterior.pooled, posterior.contributions
    if pooled is None or not contributions:
        return []
    rows = np.array(
        [pooled.rows / len(contributions) if c.n is None else max(c.n, 1.0) for c in contributions]
    )
    values, vectors = np.linalg.eigh(pooled.gram / pooled.rows)
    theta = vectors.T @ posterior.mean("scaled")
    matrix = posterior.units(units).matrix @ vectors
    variance = pooled.noise_variance
    between = spread_along(posterior.outcome, vectors)

    def spread(more_rows: float, more_epsilon: float | None) -> Array:
        noise = (
            0.0
            if more_epsilon is None
            else _noise(
                _scales(posterior.study, [more_epsilon * c.epsilon for c in contributions]), theta
            )
        )
        known = precisions(values, more_rows * rows, variance, between, noise)
        found: Array = np.sqrt(np.sum(matrix**2 / (known + 1), axis=1))  # 1 is the weak prior's
        return found

    now = spread(1, 1)
    changed: dict[str, tuple[float, float | None]] = {
        "every ε doubled": (1, 2),
        "every ε four times as large": (1, 4),
        "twice the rows": (2, 1),
        "four times the rows": (4, 1),
        "no privacy noise": (1, None),
    }
    return [Scenario(change, spread(*given) / now) for change, given in changed.items()]


def _noise(scales: list[Noise], theta: Array) -> Array:
    """Variance that privacy adds to ẑ_j − S_jθ along each axis: that of ẑ_j, and Cov(Mθ) = σ_s²(‖θ‖²I + θθ')/2."""
    moment, gram = (
        np.array([getattr(scale, part) ** 2 for scale in scales])[:, None]
        for part in ("xty", "xtx_diagonal")
    )
    noise: Array = moment + gram * (theta @ theta + theta**2) / 2
    return noise
