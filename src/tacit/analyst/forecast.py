"""Forecast: the posterior that the default method would give, had holders so many rows of a kind and so much budget.

A kind of rows is Σ (x, y)(x, y)' per row. It may be imagined, before anybody publishes (plan.py), or estimated by the pool behind a
posterior, to say what more budget or more rows would bring.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.method import Settings
from tacit.analyst.methods.noise_aware import fit
from tacit.analyst.pooled import disagreement_of
from tacit.analyst.posterior import Posterior, UnitsName
from tacit.analyst.prior import Prior
from tacit.privacy.mechanism import Scales
from tacit.study import Study

Array = NDArray[np.float64]


def expected(study: Study, rows: Sequence[float], gram: Array, epsilons: Sequence[float] | None) -> Posterior:
    """The posterior from the statistics that holders would have, with the noise of each one's ε or, for None, without."""
    evidence = _evidence(study, np.array(rows, dtype=float), gram, None if epsilons is None else _scales(study, epsilons))
    return Posterior(study, "noise-aware", fit(evidence, Prior.weak(study.d), Settings()), ())


def widths(posterior: Posterior, probability: float, units: UnitsName) -> Array:
    """Widths of intervals."""
    found: Array = np.diff(posterior.interval(probability, units), axis=1)[:, 0]
    return found


def _scales(study: Study, epsilons: Sequence[float]) -> list[Scales]:
    return [study.model_copy(update={"epsilon": epsilon}).mechanism().scales for epsilon in epsilons]


def _evidence(study: Study, n: Array, gram: Array, scales: list[Scales] | None) -> Evidence:
    """Statistics without noise, but with what is known of it."""
    zero = np.zeros(len(n))
    squares = study.response_square
    return Evidence(
        grams=n[:, None, None] * gram[:-1, :-1],
        moments=n[:, None] * gram[:-1, -1],
        gram_sd=zero if scales is None else np.array([scale.xtx_diagonal for scale in scales]),
        off_diagonal_sd=zero if scales is None else np.array([scale.xtx_off_diagonal for scale in scales]),
        moment_sd=zero if scales is None else np.array([scale.xty for scale in scales]),
        counts=None if study.count == "withheld" else n / study.release.average,
        squares=n * gram[-1, -1] if squares else None,
        square_sd=None if not squares else zero if scales is None else np.array([scale.yty or 0.0 for scale in scales]),
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


def scenarios(posterior: Posterior) -> list[Scenario]:
    """More budget, more rows, no privacy noise: of holders and rows like those behind a posterior. Empty where they are not known.

    Rows of one kind are as good as one holder's, at the noise that weighting holders by what they know would leave; so the cost does not
    grow with the number of holders. The residual variance, and how far holders differ, are held at their estimates.
    """
    pooled, contributions = posterior.pooled, posterior.contributions
    if pooled is None or not contributions:
        return []
    study, gram = posterior.study, _kind(posterior)
    rows = np.array([pooled.rows / len(contributions) if c.n is None else max(c.n, 1.0) for c in contributions])
    settings = Settings(noise_variance=pooled.noise_variance)
    matrix = posterior.units("contrast").matrix
    differ = disagreement_of(posterior.outcome) ** 2 / len(contributions) * np.sum(matrix**2, axis=1)

    def spread(more_rows: float, more_epsilon: float | None) -> Array:
        n = more_rows * rows
        scales = None if more_epsilon is None else [_merged(n, _scales(study, [more_epsilon * c.epsilon for c in contributions]))]
        outcome = fit(_evidence(study, n.sum(keepdims=True), gram, scales), Prior.weak(study.d), settings)
        found: Array = Posterior(study, posterior.method, outcome, ()).sd("contrast") ** 2 + differ
        return np.sqrt(found)

    now = spread(1, 1)
    changed: dict[str, tuple[float, float | None]] = {
        "every ε doubled": (1, 2),
        "every ε four times as large": (1, 4),
        "twice the rows": (2, 1),
        "four times the rows": (4, 1),
        "no privacy noise": (1, None),
    }
    return [Scenario(change, spread(*given) / now) for change, given in changed.items()]


def _merged(n: Array, scales: list[Scales]) -> Scales:
    """Noise of the sum over all holders, each weighted by its rows over its noise variance; of the parts that a forecast uses."""

    def sd(part: str) -> float:
        sds = np.array([getattr(scale, part) for scale in scales])
        return float(n.sum() / np.sqrt(np.sum((n / sds) ** 2)))

    square = None if scales[0].yty is None else sd("yty")
    return Scales(sd("xtx_diagonal"), sd("xtx_off_diagonal"), sd("xty"), square, None, None)


def _kind(posterior: Posterior) -> Array:
    """Σ (x, y)(x, y)' per row as the pool and the posterior have it."""
    pooled = posterior.pooled
    if pooled is None:  # pragma: no cover  (`scenarios` has checked)
        raise AssertionError
    gram, theta = pooled.gram / pooled.rows, posterior.mean("scaled")
    moment = gram @ theta
    square = theta @ moment + pooled.noise_variance / posterior.study.release.average
    return np.block([[gram, moment[:, None]], [moment[None], np.array([[square]])]])
