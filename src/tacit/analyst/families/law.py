r"""The law of encoded rows that a release's own moments tell, each column of its own kind.

Releases hold the mean m and the covariance V of shrunk rows (the intercept's row of X'X, and the
rest); a mean E[x g(x'β)] needs a whole law. One is built that has these moments, as equally likely
rows, in three steps:

1. **Levels** are 0 or 1. One after the other they are drawn with the probability that a straight
   line through those drawn before gives, which has exactly the moments asked for (Qaqish 2003); at
   most one level of a feature is then 1 by itself. A numeric column whose variance is as large as
   its mean allows within its public range can only be 0/1 as well, at the ends of the range.
2. **Numbers** are logit-normal on their public range, x = low + (high − low)·expit(μ + s·z): nearly
   normal in the middle of a range that is wide enough, skewed where the mean is near an end and the
   spread would not fit otherwise. z is normal given levels, with correlations moved until those of
   x are right.
3. **Products and powers** are computed from their factors where these are columns too.

What sampling and rounding leave is taken out by the linear map nearest to the identity that gives
the rows exactly the mean and the covariance of the release.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import eval_legendre, expit, logit, ndtri

from tacit.analyst.methods.noise_aware.net import latin_hypercube
from tacit.study import Study
from tacit.study.terms import Part, Product

Array = NDArray[np.float64]

POINTS = 8192
"""Rows that stand for the law, half of them mirror images of the others."""
TWO_POINTS = 0.9
"""Variance over the largest that a mean and a range allow, from which a column is taken as 0/1."""
ROUNDS = 12
CLOSE = 2e-3
"""Correlations are right when none is off by more."""
LEAST_SHARE = 1e-4
"""How near to an end of its range a column's mean may lie."""
LEAST_EIGENVALUE = 1e-6
"""Of a correlation matrix: what noise made negative, or levels that sum to 1, is lifted to it."""
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(61)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass(frozen=True)
class Column:
    """A column as it is drawn: its place in the row, its limits, and whether it has levels."""

    place: int
    low: float
    high: float
    levels: bool


@dataclass(frozen=True)
class Law:
    """Equally likely encoded rows, the intercept first."""

    rows: Array  # (K, d)

    def mean(self, values: Array) -> Array:
        """E[x·value] for one value of each row, (d,)."""
        mean: Array = self.rows.T @ values / len(self.rows)
        return mean

    def second(self, weights: Array | float = 1.0) -> Array:
        """E[weight·xx'], (d, d)."""
        weighted = self.rows * np.broadcast_to(weights, len(self.rows))[:, None]
        second: Array = weighted.T @ self.rows / len(self.rows)
        return second


def law_of(study: Study, gram: Array, *, normal: bool = False) -> Law:
    """The law of a study's rows with the moments of `gram`, X'X of shrunk rows.

    `normal` takes every number to be normal instead.
    """
    if study.d == 1:
        return Law(rows=np.ones((1, 1)))
    mean = gram[0, 1:] / gram[0, 0]
    covariance = gram[1:, 1:] / gram[0, 0] - np.outer(mean, mean)
    spread = np.sqrt(np.maximum(np.diag(covariance), 1e-12))
    correlation = _lifted(covariance / np.outer(spread, spread))
    drawn = _Drawn(
        columns=_columns(study, mean, spread),
        mean=mean,
        spread=spread,
        correlation=correlation,
        normal=normal,
    )
    rows = drawn.rows()
    _multiply(study, rows, {column.place for column in drawn.columns})
    exact = _matched(rows, mean, correlation * np.outer(spread, spread))
    return Law(rows=np.concatenate([np.ones((len(exact), 1)), exact], axis=1))


def _columns(study: Study, mean: Array, spread: Array) -> list[Column]:
    """The columns that are drawn, those with levels first."""
    columns = []
    place = 0
    computed = _computed(study)
    for product in study.products:
        columns += [
            _column(product, at, mean, spread)
            for at in range(place, place + product.width)
            if at not in computed
        ]
        place += product.width
    return sorted(columns, key=lambda column: not column.levels)


def _column(product: Product, place: int, mean: Array, spread: Array) -> Column:
    part = product.parts[0]
    if len(product.parts) == 1 and part.feature.range is None:
        return Column(place=place, low=0.0, high=1.0, levels=True)
    low, high = -product.size, product.size
    if len(product.parts) == 1 and part.factor.degree == 1:
        low, high = part.limits
    most = (mean[place] - low) * (high - mean[place])
    return Column(place=place, low=low, high=high, levels=spread[place] ** 2 > TWO_POINTS * most)


@dataclass
class _Drawn:
    """Draws levels, then numbers, whose latent correlations are moved until the rows' are right."""

    columns: list[Column]
    mean: Array
    spread: Array
    correlation: Array
    normal: bool

    @cached_property
    def uniforms(self) -> Array:
        """Points of the unit cube and their mirror images."""
        half = latin_hypercube(POINTS // 2, len(self.mean))
        return np.concatenate([half, 1 - half])

    def rows(self) -> Array:
        """The rows without their intercept; computed columns are zero."""
        latent = self.correlation.copy()
        rows = np.zeros((POINTS, len(self.mean)))
        drawn = [column.place for column in self.columns]
        wanted = self.correlation[np.ix_(drawn, drawn)]
        for _ in range(ROUNDS if len(drawn) > 1 else 1):
            rows = self._round(latent)
            off = wanted - _correlation(rows[:, drawn])
            np.fill_diagonal(off, 0.0)
            if np.abs(off).max() < CLOSE:
                break
            latent[np.ix_(drawn, drawn)] += off
            latent = _lifted(latent)
        return rows

    def _round(self, latent: Array) -> Array:
        rows = np.zeros((POINTS, len(self.mean)))
        standard = np.zeros_like(rows)  # columns with mean 0 and sd 1
        done: list[int] = []
        for column in self.columns:
            if column.levels:
                self._draw_level(column, latent, done, rows, standard)
                done.append(column.place)
        numbers = [column for column in self.columns if not column.levels]
        places = [column.place for column in numbers]
        if places:
            line = np.linalg.solve(latent[np.ix_(done, done)], latent[np.ix_(done, places)])
            left = latent[np.ix_(places, places)] - line.T @ latent[np.ix_(done, places)]
            normal = ndtri(self.uniforms[:, places]) @ _root(left)
            standard[:, places] = standard[:, done] @ line + normal
        for column in numbers:
            rows[:, column.place] = self._number(column, standard[:, column.place])
        return rows

    def _draw_level(
        self, column: Column, latent: Array, done: list[int], rows: Array, standard: Array
    ) -> None:
        place = column.place
        width = column.high - column.low
        share = np.clip((self.mean[place] - column.low) / width, LEAST_SHARE, 1 - LEAST_SHARE)
        spread = np.sqrt(share * (1 - share))
        line = np.linalg.solve(latent[np.ix_(done, done)], latent[done, place])
        likely = share + spread * (standard[:, done] @ line)
        chosen = self.uniforms[:, place] < likely
        rows[:, place] = column.low + width * chosen
        standard[:, place] = (chosen - share) / spread

    def _number(self, column: Column, standard: Array) -> Array:
        mean = float(self.mean[column.place])
        spread = float(self.spread[column.place])
        if self.normal:
            return mean + spread * standard
        width = column.high - column.low
        centre, scale = logit_normal((mean - column.low) / width, (spread / width) ** 2)
        return column.low + width * np.asarray(expit(centre + scale * standard))


def logit_normal(mean: float, variance: float) -> tuple[float, float]:
    """μ and s of the logit-normal law on (0, 1) with this mean and variance, by Newton's method."""
    mean = float(np.clip(mean, LEAST_SHARE, 1 - LEAST_SHARE))
    room = mean * (1 - mean)
    variance = float(np.clip(variance, 1e-12, TWO_POINTS * room))
    centre = float(logit(mean))
    scale = min(np.sqrt(variance) / room, 3.0)
    for _ in range(60):
        values = expit(centre + scale * _NODES)
        slopes = values * (1 - values)
        first = float(_WEIGHTS @ values)
        apart = values - first
        errors = np.array([mean - first, variance - _WEIGHTS @ apart**2])
        jacobian = np.array(
            [
                [_WEIGHTS @ slopes, _WEIGHTS @ (slopes * _NODES)],
                [2 * _WEIGHTS @ (apart * slopes), 2 * _WEIGHTS @ (apart * slopes * _NODES)],
            ]
        )
        step = np.clip(np.linalg.lstsq(jacobian, errors)[0], -0.5, 0.5)
        centre += float(step[0])
        scale = max(scale + float(step[1]), 1e-4)
        if np.abs(step).max() < 1e-9:  # noqa: PLR2004 - the precision of the last step
            break
    return centre, scale


# Products and powers.


def _computed(study: Study) -> set[int]:
    """Places of columns that follow from others."""
    known = {_key(product.parts[0]) for product in study.products if _is_variable(product)}
    computed: set[int] = set()
    place = 0
    for product in study.products:
        if not _is_variable(product) and all(_key(part) in known for part in product.parts):
            computed |= set(range(place, place + product.width))
        place += product.width
    return computed


def _is_variable(product: Product) -> bool:
    """Whether a term is a feature, or a function of one, by itself."""
    [first, *others] = product.parts
    return not others and first.factor.degree == 1 and not first.factor.every_level


def _key(part: Part) -> tuple[str, str | None, bool]:
    return part.factor.of, part.factor.function, part.factor.centred


def _multiply(study: Study, rows: Array, drawn: set[int]) -> None:
    """Fill in the columns that follow from others."""
    variables: dict[tuple[str, str | None, bool], Array] = {}
    place = 0
    for product in study.products:
        if _is_variable(product):
            variables[_key(product.parts[0])] = rows[:, place : place + product.width]
        place += product.width
    place = 0
    for product in study.products:
        if place not in drawn:
            filled = np.ones((len(rows), 1))
            for part in product.parts:
                factor = _factor(part, variables[_key(part)])
                filled = (filled[:, :, None] * factor[:, None, :]).reshape(len(rows), -1)
            rows[:, place : place + product.width] = filled
        place += product.width


def _factor(part: Part, variable: Array) -> Array:
    """The columns of a factor, from those of its feature."""
    factor = part.factor
    if factor.every_level:
        return np.concatenate([1 - variable.sum(axis=1, keepdims=True), variable], axis=1)
    if factor.degree == 1:
        return variable
    if factor.centred:
        return np.asarray(eval_legendre(factor.degree, variable))
    return variable**factor.degree


# Matrices.


def _matched(rows: Array, mean: Array, covariance: Array) -> Array:
    """The rows with exactly these moments, by the linear map nearest to the identity."""
    apart = rows - rows.mean(axis=0)
    present = apart.T @ apart / len(rows)
    size = np.sqrt(np.maximum(np.diag(present), 1e-12))
    present = _lifted(present / np.outer(size, size))
    root = _root(present)
    inverse = np.linalg.inv(root)
    wanted = root @ (covariance / np.outer(size, size)) @ root
    change = inverse @ _root(wanted) @ inverse
    matched: Array = mean + (apart / size) @ change * size
    return matched


def _correlation(rows: Array) -> Array:
    """Correlations of columns; those of one that does not vary are 0."""
    apart = rows - rows.mean(axis=0)
    size = np.sqrt(np.maximum(np.mean(apart**2, axis=0), 1e-12))
    correlation: Array = (apart / size).T @ (apart / size) / len(rows)
    return correlation


def _lifted(correlation: Array) -> Array:
    """The matrix with no eigenvalue below the least, and 1 on its diagonal."""
    values, vectors = np.linalg.eigh(correlation)
    if len(values) == 0 or values[0] >= LEAST_EIGENVALUE:
        return correlation
    lifted = (vectors * np.maximum(values, LEAST_EIGENVALUE)) @ vectors.T
    size = np.sqrt(np.diag(lifted))
    scaled: Array = lifted / np.outer(size, size)
    return scaled


def _root(matrix: Array) -> Array:
    """Symmetric square root."""
    values, vectors = np.linalg.eigh(matrix)
    root: Array = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root
