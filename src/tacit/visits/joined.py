r"""Several visits to the same mapped rows, joined to one: shape, moments and residuals.

A long row u is shrunk by α, its residual r is not: X'X = Σα²uu' and X'r = Σαu·cut(r). Let rows keep
the level E[α²] of their squared length, and let κ be the rate at which cut residuals move. X'r then
moves by κΣαuu' for a change of the coefficients, which is nearly κ/level times X'X: on tables and
on normal rows alike the two differ by a few per cent (`benchmarks/levels.py`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.visits.cut import LEAST_SD, Law, cut_of, law_of, whole_sd
from tacit.visits.known import Known, lifted
from tacit.visits.pool import Pool, alike, level_of

Array = NDArray[np.float64]

OWN = (0.05, 20.0)
"""Least and most of a holder's mean square of residuals, over that of all together."""
LEAST_LEFT = 0.05
"""Smallest share of the residual variance that cutting leaves, over the rate."""
CLEARLY = 2.0
"""Standard deviations of its noise from which a mean of residuals is told from none."""
LEAST_CLEAR_SD = 0.01
"""Smallest sd of residuals over their bound where noise does not hide it."""
RESIDUAL_DOUBT = 0.5
"""Relative sd of the residual variance that the first answer leads to expect."""
BEND_DOUBT = 0.4
"""Share of the bend of a cut mean that is taken for doubt."""


@dataclass(frozen=True)
class Shape:
    """What the corrections of all holders together say of rows, in mapped columns."""

    gram: Array  # (d, d): X'X per row
    gram_sd: float  # of a diagonal entry
    residual: float  # sd of residuals from the last offset, as if none was cut
    tail: float  # root of the variance that the widest bound shows beyond the narrowest, at least
    laws: tuple[Law, ...]  # of residuals at every visit
    level: float  # what rows kept of their squared length
    known: Known  # X'X per row of rows that are not shrunk, as it was seen


def shape_of(
    pools: Sequence[Pool],
    apart: Sequence[Array],
    known: Known,
    *,
    residual: float,
    intercept: bool,
) -> Shape:
    """The shape that visits tell; the first answer says what is `known` of X'X, and a `residual`.

    A residual sd that noise made small would make small bounds of later visits, and much of what
    these say: it is weighed against the one that was expected.
    """
    pools = alike(pools)
    average = average_of(pools)
    level = level_of(average, intercept=intercept)
    told = known.told(average, level)
    rows = average.rows
    gram = lifted(level * told.gram, told.least)
    laws = tuple(_law(pool, level, intercept=intercept) for pool in pools)
    straight = [_straight(*pair, level) for pair in zip(pools, laws, strict=True)]
    whole = rows / level * gram
    squares = [_square(*pair, whole) for pair in zip(straight, apart, strict=True)]
    square, noise = _weighed(squares, pools)
    seen = _apart(square, laws[-1].shift, _least(noise / rows, pools[-1].bound))
    told_of = 1 / (1 + (noise / rows / (RESIDUAL_DOUBT * residual**2)) ** 2)
    return Shape(
        gram=gram,
        gram_sd=min(level * told.sd, average.gram_sd / rows),
        residual=math.sqrt(told_of * seen + (1 - told_of) * residual**2),
        tail=_tail(squares, pools),
        laws=laws,
        level=level,
        known=told,
    )


def _law(pool: Pool, level: float, *, intercept: bool) -> Law:
    """Residuals as if none was cut; their mean stands in the intercept's moment, Σα·cut(r)."""
    square = pool.square / pool.rows
    if not intercept:
        return Law(shift=0.0, sd=whole_sd(square, pool.bound))
    mean = float(pool.moment[0])
    most = pool.rows * math.sqrt(level) * pool.bound  # what a mean of cut residuals can be
    seen = min(abs(mean), most)
    told = max(0.0, 1 - (CLEARLY * pool.moment_sd / max(seen, pool.moment_sd)) ** 2)
    return law_of(told * mean / (pool.rows * math.sqrt(level)), square, pool.bound)


@dataclass(frozen=True)
class Straight:
    """A visit whose intercept's moment is in proportion to the shift, as if less was cut."""

    pool: Pool
    shift: float
    square: float  # mean square of residuals, as if none was cut
    rate: float
    bend: float  # what was added to the intercept's moment


def _straight(pool: Pool, law: Law, level: float) -> Straight:
    """A visit, with the bend that a bound puts into a shifted mean taken out.

    Cut residuals have mean m(δ) ≈ m(δ₀) + κ(δ − δ₀): adding κδ₀ − m(δ₀) makes it κδ. How large m is
    rests on residuals' law where much is cut, so that a share of the bend is doubt.
    """
    cut = cut_of(law.sd, pool.bound, law.shift)
    bend = pool.rows * math.sqrt(level) * (cut.rate * law.shift - cut.mean)
    moment = pool.moment.copy()
    added = bend if law.shift else 0.0
    moment[0] += added
    own = float(np.clip(pool.square / pool.rows / cut.square, *OWN))
    return Straight(
        pool=replace(pool, moment=moment, moment_sd=math.hypot(pool.moment_sd, BEND_DOUBT * bend)),
        shift=law.shift,
        square=own * (law.sd**2 + law.shift**2),
        rate=cut.rate,
        bend=added,
    )


def _apart(square: float, shift: float, least: float) -> float:
    """Variance of residuals about their mean."""
    return max(square - shift**2, least)


def _least(noise: float, bound: float) -> float:
    """Smallest mean square that residuals are taken to have, told with noise of this sd.

    A long tail leads to a bound of many standard deviations, which is no reason to take residuals
    for larger than they are seen to be.
    """
    clear = min((LEAST_SD * bound) ** 2, CLEARLY * noise)
    return max(clear, (LEAST_CLEAR_SD * bound) ** 2)


@dataclass(frozen=True)
class Joined:
    """Several visits to the same mapped rows as one, at the last visit's offset."""

    pool: Pool  # X'X times the rate; r'r as cut, over the rate
    rate: float  # κ/level: how much of a change of the coefficients X'r shows, over X'X
    whole: float  # residual variance over that of r'r in `pool`
    weights: Array  # (K,): of the visits' moments
    rates: Array  # (K,): of each
    bends: Array  # (K,): what was added to each one's intercept's moment

    def shaped(self, shape: Shape) -> Pool:
        """The pool with X'X as all holders together tell it."""
        size = self.rate * self.pool.rows
        return replace(self.pool, gram=size * shape.gram, gram_sd=size * shape.gram_sd)


def joined(pools: Sequence[Pool], apart: Sequence[Array], shape: Shape) -> Joined:
    """Join one holder's visits; `apart` are the last offset minus each one's, in mapped units.

    Residuals of two visits differ by u'δ, so X'r by κ/level·X'Xδ. All visits see the same rows:
    only their noise is averaged.
    """
    pools = alike(pools)
    average = average_of(pools)
    gram = average.rows * shape.gram
    gram_sd = average.rows * shape.gram_sd
    level = shape.level
    straight = [_straight(*pair, level) for pair in zip(pools, shape.laws, strict=False)]
    cuts = [cut_of(shape.residual, each.pool.bound, each.shift) for each in straight]
    rates = np.array([cut.rate for cut in cuts]) / level
    precisions = []
    moments = []
    for each, shift, own in zip(straight, apart, rates.tolist(), strict=True):
        size = float(shift @ shift) * own**2
        precisions.append(1 / (each.pool.moment_sd**2 + size * gram_sd**2 / 2))
        moments.append(each.pool.moment - own * gram @ shift)
    total = math.fsum(precisions)
    weights = np.array(precisions) / total
    rate = float(weights @ rates)
    squares = [_square(*pair, gram / level) for pair in zip(straight, apart, strict=True)]
    square, square_sd = _weighed(squares, pools)
    last = straight[-1].shift
    variance = _apart(square, last, _least(square_sd / average.rows, pools[-1].bound))
    spread = float(weights @ [cut.square - cut.mean**2 for cut in cuts]) / rate
    left = max(spread / shape.residual**2, LEAST_LEFT)
    pool = replace(
        average,
        gram=rate * average.gram,
        moment=np.tensordot(weights, np.array(moments), axes=1),
        square=average.rows * (left * variance + rate * level * last**2),
        gram_sd=rate * average.gram_sd,
        moment_sd=1 / math.sqrt(total),
        square_sd=left * square_sd,
    )
    return Joined(
        pool=pool,
        rate=rate,
        whole=1 / left,
        weights=weights,
        rates=rates,
        bends=np.array([each.bend for each in straight]),
    )


def average_of(pools: Sequence[Pool]) -> Pool:
    """The last of several visits, with X'X averaged over all of them."""
    precisions = [1 / pool.gram_sd**2 for pool in pools]
    total = math.fsum(precisions)
    gram = np.sum([w * pool.gram for w, pool in zip(precisions, pools, strict=True)], axis=0)
    return replace(pools[-1], gram=gram / total, gram_sd=1 / math.sqrt(total))


class Square(NamedTuple):
    """Sum of squares of residuals at the last offset, were none cut, as one visit tells it."""

    total: float
    noise: float  # sd of its noise


def _square(straight: Straight, apart: Array, gram: Array) -> Square:
    pool = straight.pool
    rate = straight.rate
    along = float(apart @ (gram @ apart - 2 * pool.moment / rate))
    size = float(np.linalg.norm(apart))
    return Square(
        total=pool.rows * straight.square + along,
        noise=math.hypot(pool.square_sd / rate**2, 2 * size * pool.moment_sd / rate),
    )


def _tail(squares: Sequence[Square], pools: Sequence[Pool]) -> float:
    """Root of what the widest bound shows beyond the narrowest, less what noise may make of it."""
    bounds = [pool.bound for pool in pools]
    wide = squares[int(np.argmax(bounds))]
    narrow = squares[int(np.argmin(bounds))]
    return math.sqrt(_short(narrow, wide) / pools[-1].rows)


def _weighed(squares: Sequence[Square], pools: Sequence[Pool]) -> tuple[float, float]:
    """Mean square of residuals as all visits tell it together, and the noise's sd on the sum.

    What a visit's bound took off a tail, as the widest one shows it, counts as an error of it.
    """
    wide = squares[int(np.argmax([pool.bound for pool in pools]))]
    spreads = [math.hypot(each.noise, _short(each, wide)) for each in squares]
    precisions = [1 / spread**2 for spread in spreads]
    total = math.fsum(precisions)
    last = pools[-1]
    square = float(np.dot(precisions, [each.total for each in squares])) / total / last.rows
    noise = 1 / math.sqrt(total)
    return max(square, _least(noise / last.rows, last.bound)), noise


def _short(square: Square, wide: Square) -> float:
    """By how much less a visit shows than the one of the widest bound, beyond noise."""
    return max(wide.total - square.total - CLEARLY * math.hypot(wide.noise, square.noise), 0.0)
