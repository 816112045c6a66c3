r"""How far the best line of rows as they are may lie from the one that visits tell.

Where the relation is straight both are one. Else rows that are shrunk, and residuals that are cut,
tell of another line, and no noise says how far. But what shrinking takes away is told, column by
column: places give the spread of rows as they are, corrections that of shrunk rows, and the share ℓ
between the two belongs to rows that count for less. On public tables a slope is off by about
`LOST`·ℓσ, in units of its error from one row, and by more where few rows lie far out. The product
of a number and levels lies far out only where the number does, and has its ℓ. Where a typical
interval is stated, rows far beyond are said to be few, and the line is that of the others: nothing
is added for them. A bound takes a long tail off residuals, and the more it takes the further the
line may move: how much more it takes than off normal residuals the releases tell (`tails.py`).

And the first answer, which corrections have for a prior, expects an axis to explain the less, the
less variance rows have on it. Where corrections find less variance than it took there to be, slopes
may be larger than it expected, and it pulls them to 0 (`pull_of`). Without an intercept nothing is
added for that: intervals of public tables about their means hold what they say without it
(`benchmarks/real_tables.py --ways centred`). Slopes may be larger, too, where nobody can
tell, for noise hides both a slope and what its column has in common with others: columns of tables
often go together, and slopes are then larger than the response lets expect (`larger_of`; by how
much, `sizes.py`).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.shown import Shown
from tacit.release.places import Places
from tacit.release.question import Question
from tacit.study import Study
from tacit.study.visits import placed
from tacit.visits.first import Spread, spread_of
from tacit.visits.joined import Shape
from tacit.visits.opening import Opening

Array = NDArray[np.float64]

LOST = 0.17
LOST_BEYOND = 0.1
"""How far a slope is off, over σ and its error from one row, were all of a column's spread lost to
rows near the radius; and by how much more where the public range reaches far beyond it."""
TAILED = 0.7
"""How far a coefficient is off, over σ and its error from one row, times what a bound takes off
residuals beyond what it would off normal ones, over their variance."""
RECOUNTED = 4.0
FEW = 0.06
FEW_ROWS = 1000
"""By how much rows that count by what is left of their residuals raise the variance of rows' own
error where much is cut off; the mean square of what is cut off below which that falls with its
square; and the number of rows above which it falls, since more of them tell whether there are
tails."""
UNEQUAL = 0.15
"""By how much residuals that spread unevenly raise the variance of rows' own error."""
NEAR = 0.2
"""Usual ℓ where rows are cut at their usual length; it falls with the radius's fourth power."""
FAR = 0.3
"""Usual ℓ of a column whose public range reaches far beyond the radius: it grows with the square of
the share of the range that lies there."""
ROOTS = (np.arange(60) + 0.5) / 60
SHARES = ROOTS**2
"""Values of ℓ that are weighed against each other, closer to each other the smaller they are."""
TINY = 1e-15


@dataclass(frozen=True)
class Told:
    """What corrections tell of rows, in mapped columns."""

    map: Array  # (d, d): T
    seen: Array  # (d, d): X'X of shrunk rows, per row, weighed against nothing
    seen_sd: float  # of the noise on a diagonal entry of it
    gram: Array  # (d, d): X'X per row, weighed against what is usual
    rows: float
    residual: float  # σ
    excess: float  # mean square of what the bound takes off beyond normal residuals
    reach: float  # squared radius over the usual squared length of rows

    @classmethod
    def of(
        cls, question: Question, shape: Shape, seen: Shown, *, rows: float, excess: float
    ) -> Self:
        """What corrections up to a question tell, of so many rows."""
        usual = float(np.trace(shape.gram)) / shape.level
        return cls(
            map=question.matrix,
            seen=seen.gram,
            seen_sd=seen.sd,
            gram=shape.gram,
            rows=rows,
            residual=shape.residual,
            excess=excess,
            reach=question.radius**2 / usual,
        )


@dataclass(frozen=True)
class Column:
    """A numeric column of the study: where it lies, how far it spreads, how far rows may lie."""

    place: int  # k
    middle: float
    variance: float  # of rows as they are
    error: float | None  # sd of the noise on it; None where nothing tells it
    usual: float  # scale of ℓ before anything is told
    off: float  # how far its slope is off, over σ and its error from one row, at ℓ = 1


def misfit_of(study: Study, places: Sequence[Places], question: Question, told: Told) -> Array:
    """Covariance, in mapped columns, of the best line about the one that visits tell."""
    inverse = np.linalg.inv(told.map)
    variance = told.residual**2
    covariance = np.zeros((study.d, study.d))
    inner = _steady(told.gram, told.seen_sd)
    errors = told.map @ inner @ told.map.T  # of slopes, from one row
    for place, square in shifts_of(study, places, question, told).items():
        moved = errors[place]  # what least squares makes of an error in X'r of the column
        covariance += square * variance * np.outer(moved, moved) / moved[place]
    cut = min(1.0, taken(question.bound / told.residual) / FEW)
    anew = RECOUNTED * cut**2 * min(1.0, FEW_ROWS / told.rows)
    uneven = ((UNEQUAL + anew) / told.rows + TAILED**2 * told.excess) * variance * inner
    misfit: Array = inverse @ covariance @ inverse.T + uneven
    return misfit


def shifts_of(
    study: Study, places: Sequence[Places], question: Question, told: Told
) -> dict[int, float]:
    """Mean square of how far slopes are off, over σ² and their squared error from one row.

    By place, of every column of numbers whose typical interval is not stated.
    """
    inverse = np.linalg.inv(told.map)
    shifts = {}
    for column in columns_of(study, places, question, told):
        along = np.zeros(study.d)
        along[column.place] = 1.0
        if study.intercept:
            along[0] = -column.middle
        mapped = inverse @ along
        kept = float(mapped @ told.seen @ mapped)
        noise = told.seen_sd * float(mapped @ mapped)
        shifts[column.place] = column.off**2 * lost_square(column, kept, noise)
    times = times_levels(study)
    own = {place: shift for place, shift in shifts.items() if place not in times}
    return own | {place: own[number] for place, number in times.items() if number in own}


def times_levels(study: Study) -> dict[int, int]:
    """Columns that are a number times levels, and that number's own column."""
    own: dict[str, int] = {}
    times: list[tuple[int, str]] = []
    first = int(study.intercept)
    for product in study.products:
        numbers = [part for part in product.parts if part.feature.range is not None]
        columns = range(first, first + product.width)
        first += product.width
        if len(numbers) != 1 or not numbers[0].is_plain:
            continue
        name = numbers[0].feature.name
        if len(product.parts) == 1:
            own[name] = columns[0]
        else:
            times += [(place, name) for place in columns]
    return {place: own[name] for place, name in times if name in own}


def _steady(gram: Array, sd: float) -> Array:
    """Inverse of X'X that noise of this sd does not blow up: λ/(λ² + sd²) along each axis."""
    values, vectors = np.linalg.eigh(gram)
    inverse: Array = (vectors * (values / (values**2 + sd**2))) @ vectors.T
    return inverse


def unexpected_of(first: Array, taken_for: Array, gram: Array) -> Array:
    """Covariance of the first answer that it does not tell of, in mapped columns.

    Its own is `first`, and it took rows to have the variance `taken_for`, where they have `gram`.
    Along an axis with ν times less variance than was expected, over the usual ν, slopes have ν
    times the variance, so that the axis explains as much of the response as it was expected to.
    """
    root = np.linalg.cholesky(np.linalg.inv(gram))
    ratios, turned = np.linalg.eigh(root.T @ taken_for @ root)
    axes = root @ turned
    back = np.linalg.inv(axes)
    usual = np.diag(back @ first @ back.T)
    more = np.maximum(ratios / np.median(ratios), 1.0) - 1
    unexpected: Array = (axes * (more * usual)) @ axes.T
    return unexpected


def larger_of(first: Opening, larger: float) -> Array:
    """Covariance that slopes larger than expected add to a first answer's, in mapped columns.

    Expected of slopes is the variance P, and the first answer has the covariance C. Were they to
    have `larger` times P beyond it, the answer would be off by a further `larger`·CP⁻¹C: by all of
    that where noise hides slopes, and by next to nothing where rows tell them.
    """
    answer = first.answer
    if answer.prior is None:  # pragma: no cover - a first answer has one
        raise AssertionError
    kept = np.linalg.solve(answer.prior, answer.covariance).T
    slopes = answer.prior.copy()
    if first.intercept:
        slopes[0, 0] = 0.0
    back = np.linalg.inv(first.stretch.map)
    beyond: Array = larger * back @ kept @ slopes @ kept.T @ back.T
    return beyond


def pull_of(covariance: Array, prior: Array, unexpected: Array) -> Array:
    """How far a prior may pull slopes that have `covariance` with it, (…, d, d).

    Its mean has an `unexpected` covariance beside the prior's own. Of that the share is left which
    the prior has in what is known.
    """
    roots = np.linalg.cholesky(covariance)
    shares, vectors = np.linalg.eigh(roots.swapaxes(-1, -2) @ np.linalg.inv(prior) @ roots)
    along = roots @ vectors
    share = (along * np.minimum(shares, 1.0)[..., None, :]) @ np.linalg.inv(along)
    pull: Array = share @ unexpected @ share.swapaxes(-1, -2)
    return pull


def taken(bound: float) -> float:
    """Mean square of what a bound takes off a standard normal residual."""
    beyond = math.erfc(bound / math.sqrt(2)) / 2
    height = math.exp(-(bound**2) / 2) / math.sqrt(2 * math.pi)
    return max(2 * ((1 + bound**2) * beyond - bound * height), 0.0)


def lost_square(column: Column, kept: float, noise: float) -> float:
    """E[ℓ²] of a column whose shrunk rows spread by `kept`, told with noise of this sd.

    That is (1 − ℓ) times its variance v. Before anything is told ℓ has a half Cauchy law, and log v
    any value; v is integrated out about its most likely value.
    """
    scores = -np.log1p((SHARES / max(column.usual, TINY)) ** 2)
    if column.error is not None:
        left = 1 - SHARES
        own = column.error**2 + TINY
        other = noise**2 + TINY
        spread = other + own * left**2
        likely = (column.variance * other + kept * own * left) / spread
        scores -= 0.5 * (kept - column.variance * left) ** 2 / spread + 0.5 * np.log(spread)
        scores -= np.log(np.maximum(likely, noise + TINY))
    weights = ROOTS * np.exp(scores - scores.max())
    return float(weights @ SHARES**2 / weights.sum())


def columns_of(
    study: Study, places: Sequence[Places], question: Question, told: Told
) -> Iterator[Column]:
    """Columns of numbers; 0/1 columns of levels have no rows that lie far out.

    Who states a column's typical interval says which rows the line is for: it has no ℓ. Of one
    without a place or a typical interval nothing is told but its range.
    """
    inverse = np.linalg.inv(told.map)
    gram = inverse.T @ told.gram @ inverse
    asked = placed(study) if places else ()
    spread = spread_of(study, places) if places else None
    near = NEAR / told.reach**2
    first = int(study.intercept)
    for product in study.products:
        numeric = any(part.feature.range is not None for part in product.parts)
        for k in range(first, first + product.width if numeric else first):
            middle = float(gram[0, k] / max(gram[0, 0], TINY)) if study.intercept else 0.0
            length = (product.longest + abs(middle)) * float(np.linalg.norm(told.map[k]))
            beyond = max(0.0, 1 - question.radius / length)
            column = Column(
                place=k,
                middle=middle,
                variance=product.mean_square,
                error=None,
                usual=math.hypot(near, FAR * beyond**2),
                off=LOST + LOST_BEYOND * beyond,
            )
            if spread is not None and k in asked:
                yield _asked(study, spread, asked.index(k), column)
            elif not product.is_typical:
                yield column
        first += product.width


def _asked(study: Study, spread: Spread, place: int, column: Column) -> Column:
    """A column whose place was asked for."""
    middle = float(spread.means[place])
    variance = float(spread.variances[place])
    return replace(
        column,
        middle=middle if study.intercept else 0.0,
        variance=variance if study.intercept else variance + middle**2,
        error=float(spread.errors[place]),
    )
