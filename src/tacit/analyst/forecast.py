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
        counts=None if study.count == "withheld" else n,
        squares=n * gram[-1, -1] if squares else None,
        square_sd=None if not squares else zero if scales is None else np.array([scale.yty or 0.0 for scale in scales]),
        intercept=study.intercept,
        delta=study.delta,
    )


# What more would bring.


@dataclass(frozen=True)
class Scenario:
    """What would change, and each coefficient's interval then, over its width as things are."""

    change: str
    ratios: Array


def scenarios(posterior: Posterior, probability: float) -> list[Scenario]:
    """More budget, no privacy noise, more rows: of holders and rows like those behind a posterior. Empty where they are not known."""
    pooled, contributions = posterior.pooled, posterior.contributions
    if pooled is None or not contributions:
        return []
    study = posterior.study
    rows = [pooled.rows / len(contributions) if c.n is None else max(c.n, 1.0) for c in contributions]
    epsilons = [c.epsilon for c in contributions]
    gram = _kind(posterior)

    def width(rows: Sequence[float], epsilons: Sequence[float] | None) -> Array:
        return widths(expected(study, rows, gram, epsilons), probability, "contrast")

    now = width(rows, epsilons)
    changed = {
        "every ε doubled": (rows, [2 * e for e in epsilons]),
        "every ε four times as large": (rows, [4 * e for e in epsilons]),
        "twice the rows": ([2 * n for n in rows], epsilons),
        "four times the rows": ([4 * n for n in rows], epsilons),
        "no privacy noise": (rows, None),
    }
    return [Scenario(change, width(*given) / now) for change, given in changed.items()]


def _kind(posterior: Posterior) -> Array:
    """Σ (x, y)(x, y)' per row as the pool and the posterior have it."""
    pooled = posterior.pooled
    if pooled is None:  # pragma: no cover  (`scenarios` has checked)
        raise AssertionError
    gram, theta = pooled.gram / pooled.rows, posterior.mean("scaled")
    moment = gram @ theta
    square = theta @ moment + pooled.noise_variance
    return np.block([[gram, moment[:, None]], [moment[None], np.array([[square]])]])
