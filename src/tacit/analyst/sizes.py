r"""How large slopes are, over what the first answer expects of them: what all visits say together.

The first answer expects slopes of variance P, by how far the response spreads, in equal parts along
the axes of rows. What noise hides rests on that, and intervals are as wide as it. Let slopes be fP,
where log f is normal about 0 before anything is told. All visits together, which had P for a prior,
give slopes the mean μ and the covariance C, so they tell of them Λ = C⁻¹ − P⁻¹ and h = C⁻¹μ, and

    log p(f) = Σ ½ f g²/(1 + fa) − ½ log(1 + fa) + constant,

summed over the axes along which P is 1 and Λ is diagonal, with a there, and h with g. Many slopes
tell f together where noise hides each of them.

What some slopes tell of others holds where columns lie apart. Where they go together slopes of the
directions that they leave flat are larger, and seen last. How far columns go together is told, too:
their products are expected to have the variance V (`visits/estimate.py`), and are given FV. Where F
is 1 or more, as of most tables, or hidden by noise, slopes are expected to be as they were, and
allowed to be larger. The less columns go together, the more f counts, and the allowance falls.

Slopes that are larger than expected move no mean: they are as likely to be noise that is not known
well. They widen intervals.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tacit.visits.estimate import CORRELATION
from tacit.visits.joined import average_of
from tacit.visits.opening import Opening, Step, Talks, step_of
from tacit.visits.pool import Pool, alike, level_of, together

Array = NDArray[np.float64]

LARGER = 2.0
"""By how much the variance of slopes may exceed what the first answer expects of them, over that:
of nine public tables a quarter of slopes lies beyond 1.645 of the standard deviations that are
expected, and a tenth beyond those of three times the variance (`benchmarks/usual_slopes.py`)."""
DOUBT = math.sqrt(2 * math.log(1 + LARGER))
"""Sd of log f before anything is told: the mean of f is about 1 + `LARGER`."""
TOGETHER_DOUBT = 1.0
"""Sd of log F before anything is told."""
LOGS = np.linspace(-5.0, 4.0, 181)


class Sizes(NamedTuple):
    """The variance that slopes are given, over what was expected of them."""

    factor: float = 1.0  # of the first answer's prior
    larger: float = LARGER  # by how much more intervals allow for, over that
    flat: float = 1.0  # how much of what flat directions may hide counts


def sizes_of(first: Opening, opening: Opening, early: Talks, late: Talks) -> Sizes:
    """What visits tell: early corrections follow the first answer, late ones the opening.

    Nothing without an intercept: intervals of public tables about their means held less with it.
    """
    if not first.intercept:
        return Sizes()
    told = [Products.of(first.question.matrix, [first.pool])]
    for before, talks in ((first, early), (opening, late)):
        if pools := corrections_of(talks):
            told.append(Products.of(before.map, pools))
    share = min(together_of(first, told), 1.0) ** 2
    weights = factor_weights(first, opening, step_of(opening, late))
    log = float(weights @ LOGS)
    larger = float(weights @ np.exp(LOGS)) / math.exp(log) - 1
    return Sizes(
        factor=math.exp((1 - share) * min(log, 0.0)),
        larger=min(larger + LARGER * share, LARGER),
        flat=share,
    )


def corrections_of(talks: Talks) -> list[Pool]:
    """All holders' corrections, visit by visit."""
    visits = range(1, max(len(talk) for talk in talks))
    return [together([Pool.of(talk[k]) for talk in talks if len(talk) > k]) for k in visits]


@dataclass(frozen=True)
class Products:
    """X'X per row, of rows as they are, as visits that map rows alike show it."""

    map: Array  # (d, d): from the study's columns
    gram: Array
    sd: float  # of the noise on a diagonal entry

    @classmethod
    def of(cls, matrix: Array, pools: Sequence[Pool]) -> Self:
        """What visits show together, weighed against nothing."""
        pool = average_of(alike(pools))
        rows = pool.rows * level_of(pool, intercept=True)
        return cls(map=matrix, gram=pool.gram / rows, sd=pool.gram_sd / rows)

    def before(self, matrix: Array) -> tuple[Array, Array]:
        """The same in columns that another map makes; and the variance of every entry."""
        back = np.linalg.inv(np.linalg.inv(matrix) @ self.map)
        lengths = back.T @ back
        sizes = np.diag(lengths)
        noise = self.sd**2 / 2 * (np.outer(sizes, sizes) + lengths**2)
        return back.T @ self.gram @ back, noise


def factor_weights(first: Opening, opening: Opening, step: Step) -> Array:
    """Chances of every f, as all visits tell of it."""
    inverse = np.linalg.inv(first.question.matrix)
    turn = inverse @ opening.map
    prior = _prior(first)[1:, 1:]
    told = np.linalg.inv((turn @ step.covariance @ turn.T)[1:, 1:])
    way = step.start + opening.map @ step.theta - first.question.start
    root = np.linalg.cholesky(prior)
    shares, axes = np.linalg.eigh(root.T @ (told - np.linalg.inv(prior)) @ root)
    found = axes.T @ root.T @ told @ (inverse @ way)[1:]
    factors = np.exp(LOGS)[:, None]
    wholes = 1 + factors * np.maximum(shares, 0.0)
    scores = 0.5 * np.sum(factors * found**2 / wholes - np.log(wholes), axis=1)
    return _weights(scores, DOUBT)


def together_of(first: Opening, told: Sequence[Products]) -> float:
    """Mean of F: how far columns go together, as all visits show their products.

    One column has none to go with.
    """
    squares = np.diag(first.answer.known.gram)[1:]
    pairs = np.triu_indices(len(squares), 1)
    if not len(pairs[0]):
        return 0.0
    precision = np.zeros(len(pairs[0]))
    weighed = np.zeros(len(pairs[0]))
    for each in told:
        gram, noise = each.before(first.question.matrix)
        precision += 1 / noise[1:, 1:][pairs]
        weighed += (gram / noise)[1:, 1:][pairs]
    usual = (CORRELATION**2 * np.outer(squares, squares))[pairs]
    wholes = 1 / precision + np.exp(LOGS)[:, None] * usual
    scores = -0.5 * np.sum(np.log(wholes) + (weighed / precision) ** 2 / wholes, axis=1)
    return float(_weights(scores, TOGETHER_DOUBT) @ np.exp(LOGS))


def _prior(first: Opening) -> Array:
    if first.answer.prior is None:  # pragma: no cover - a first answer has one
        raise AssertionError
    return first.answer.prior


def _weights(scores: Array, doubt: float) -> Array:
    """Chances of factors, whose logarithms have this sd beforehand."""
    whole = scores - 0.5 * (LOGS / doubt) ** 2
    weights = np.exp(whole - whole.max())
    chances: Array = weights / weights.sum()
    return chances
