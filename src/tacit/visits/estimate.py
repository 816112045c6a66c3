r"""Estimates that a next question is made of: quick, regularised, in the mapped rows' units.

They choose where to look and never what is concluded: a poor one costs accuracy of what comes
after, not its validity. X'X per row is expected to be diagonal, with correlations of sd 0.35, and
is read entry by entry against that: where noise hides it, a correction takes the columns as they
are. The first answer has the prior that `noise-aware` has for slopes, of size λ^(−1/2) along the
axes of the features' covariance; corrections have the first answer for a prior.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.visits.cut import cut_of
from tacit.visits.known import LEAST, Known, lifted
from tacit.visits.pool import Pool, level_of

Array = NDArray[np.float64]

UNEXPLAINED = 0.5
"""Share of the response's variance that slopes are expected to leave."""
LEAST_RESIDUAL = 0.3
"""Smallest sd of residuals that a bound is made for, over that of the response."""
WHOLE = 0.95
"""Share of residuals that are not cut, from which their squares are taken as they are."""
LEAST_WHOLE = 0.05
"""The same as `LEAST_RESIDUAL` of residuals that are whole, whose squares tell their sd."""
CORRELATION = 0.35
"""Usual correlation of two columns, as a standard deviation about 0."""
DOUBT = 0.3
"""Relative sd of what is expected of a column's square, where its place was asked for."""
UNPLACED_DOUBT = 0.8
"""The same where it was not."""
LEAST_MEAN = 0.15
"""Sd of a placed column's mean about 0, in its standard deviations, beside the noise of places."""
STRETCH = 0.5
"""Power of the features' covariance, up to which directions are made equally long: whole
stretching (1) puts as much noise on directions that explain little as on the others."""
CLEARLY_SHORT = 0.5
SURELY_SHORT = 2.0
"""Standard deviations of what is known of a direction, that it is taken to be long at least: in the
first map, and in a later one, which goes the whole way."""
ROUNDS = 8


@dataclass(frozen=True)
class Expected:
    """What is expected of the first question's columns and of the response."""

    squares: Array  # (d,): mean squares
    placed: NDArray[np.bool_]  # (d,): which of them places tell of
    response: float  # sd of the response
    doubt: float  # sd of the mean response
    intercept: bool
    slopes: float = 1.0  # variance of slopes over what is usual

    def gram(self) -> Known:
        """X'X per row, and the variance of its entries."""
        roots = np.sqrt(self.squares)
        sizes = np.outer(roots, roots)
        variance = (CORRELATION * sizes) ** 2
        doubt = np.where(self.placed, DOUBT, UNPLACED_DOUBT)
        np.fill_diagonal(variance, (doubt * self.squares) ** 2)
        if self.intercept:
            means = self.squares * np.where(self.placed, self.mean_doubt**2, 0.5)
            variance[0, :] = means
            variance[:, 0] = means
            variance[0, 0] = LEAST**2
        return Known(gram=np.diag(self.squares), variance=variance, axes=np.eye(len(roots)))

    @property
    def mean_doubt(self) -> float:
        """Sd of a placed column's mean, in its standard deviations."""
        return min(CORRELATION, math.hypot(LEAST_MEAN, self.doubt / max(self.response, LEAST)))


@dataclass(frozen=True)
class FirstAnswer:
    """θ and its covariance, in mapped units, and the rows' X'X per row as if none was shrunk."""

    theta: Array
    covariance: Array
    known: Known  # lifted: no direction is taken for shorter than noise lets it be seen
    seen: Known  # the same as it was seen, for what later visits add to it
    usual: float  # mean square that was expected of a column beside the intercept
    response: float  # sd of the response
    residual: float  # expected sd of residuals
    tail: float = 0.0  # root of the variance that a wider bound showed beyond a narrower one
    attenuation: Array | None = None  # (d,): see `attenuation_of`; None where it is next to none
    prior: Array | None = None  # (d, d): of θ before anything was told; None of later answers


def first_answer(pool: Pool, expected: Expected) -> FirstAnswer:
    """Estimate from the first visit that asked for statistics."""
    d = len(pool.moment)
    level = level_of(pool, intercept=expected.intercept)
    known = expected.gram().told(pool, level)
    gram = lifted(known.gram, known.least)
    axes, spreads = axes_of(gram, intercept=expected.intercept)
    roots = np.sqrt(np.maximum(spreads, known.least))
    response = expected.response
    first = int(expected.intercept)
    prior = np.eye(d) * min(response**2, expected.doubt**2 + LEAST * response**2)
    explained = expected.slopes * (1 - UNEXPLAINED) * response**2
    prior[first:, first:] = (axes * (explained / roots.sum() / roots)) @ axes.T
    residual = UNEXPLAINED * response**2
    rate = cut_of(response, pool.bound).rate
    size = pool.rows * rate
    reading = replace(pool, gram=size * gram, gram_sd=min(size * known.sd, pool.gram_sd))
    theta, covariance = update(reading, prior, np.zeros(d), residual)
    if rate > WHOLE:
        residual = min(residual, max(_left(reading, theta), (LEAST_WHOLE * response) ** 2))
        theta, covariance = update(reading, prior, np.zeros(d), residual)
    spread = math.sqrt(residual + float(np.trace(gram @ covariance)))
    return FirstAnswer(
        theta=theta,
        covariance=covariance,
        known=replace(known, gram=gram),
        seen=known,
        usual=float(np.mean(expected.squares[first:])) if d > first else 1.0,
        response=response,
        residual=min(spread, 1.2 * response),
        attenuation=attenuation_of(replace(known, gram=gram), prior, theta, covariance),
        prior=prior,
    )


def attenuation_of(known: Known, prior: Array, theta: Array, covariance: Array) -> Array:
    r"""What corrections of an answer miss, per row, since its error goes with that of X'X.

    With X'X per row S, Ŝ as it is known and θ̂ = Kz, the answer is off by θ − θ̂ = … − K(S − Ŝ)θ.
    The next residuals have X'r = S(θ − θ̂) = Ŝ(θ − θ̂) + (S − Ŝ)(θ − θ̂), and the mean of the last
    term is not 0 but −E[(S − Ŝ)K(S − Ŝ)]θ. Steps that leave it out are too short, along θ itself:
    slopes are drawn to 0. Here is E[(S − Ŝ)K(S − Ŝ)]θ̂, entries of S being known independently.
    """
    shrunk = np.eye(len(theta)) - covariance @ np.linalg.inv(prior)
    gain = shrunk @ np.linalg.inv(known.gram)
    own = np.diag(gain)
    twice = np.diag(known.variance) * own
    missed: Array = (known.variance @ own - twice) * theta + (known.variance * gain.T) @ theta
    return missed


def least_residual(residual: float, bound: float) -> float:
    """Smallest sd that residuals are taken to have once they were cut at a bound.

    Over that of the response; they are taken for `residual`.
    """
    return LEAST_WHOLE if cut_of(residual, bound).rate > WHOLE else LEAST_RESIDUAL


def _left(pool: Pool, theta: Array) -> float:
    """Mean square of what θ leaves, of residuals of which none is cut, and twice its noise's sd."""
    square = pool.square - float(theta @ (2 * pool.moment - pool.gram @ theta))
    size = float(np.linalg.norm(theta))
    noise = math.hypot(pool.square_sd, 2 * size * pool.moment_sd, size**2 * pool.gram_sd)
    return (square + 2 * noise) / pool.rows


def axes_of(gram: Array, *, intercept: bool) -> tuple[Array, Array]:
    """Axes of the features' covariance, and their variance along each; about 0 without one."""
    first = int(intercept)
    features = gram[first:, first:]
    if intercept:
        features = features - np.outer(gram[0, 1:], gram[0, 1:]) / gram[0, 0]
    spreads, axes = np.linalg.eigh((features + features.T) / 2)
    return axes, spreads


def update(pool: Pool, prior: Array, mean: Array, residual: float) -> tuple[Array, Array]:
    """Posterior mean and covariance of θ given X'r = X'Xθ + noise, the noise of X'X included."""
    gram = pool.gram
    precision = np.linalg.inv(prior)
    second = prior + np.outer(mean, mean)
    theta = mean
    covariance = prior
    for _ in range(ROUNDS):
        gain = np.linalg.solve(noise_of(pool, second, residual), gram).T
        information = gain @ gram + precision
        covariance = np.linalg.inv((information + information.T) / 2).astype(float)
        theta = covariance @ (gain @ pool.moment + precision @ mean)
        second = covariance + np.outer(theta, theta)
    return theta, covariance


def noise_of(pool: Pool, second: Array, residual: float) -> Array:
    """Covariance of X'r about X'Xθ, that of X'X's own noise included; `second` is E[θθ']."""
    identity = np.eye(len(second))
    noise: Array = pool.moment_sd**2 * identity + residual * pool.gram
    noise += pool.gram_sd**2 / 2 * (np.trace(second) * identity + second)
    return noise


@dataclass(frozen=True)
class Stretch:
    """Columns that the first answer makes of the first visit's: less correlated, nearer in size."""

    map: Array  # (d, d): new columns from old
    covariance: Array  # (d, d): of the first answer, in the new units
    known: Known  # lifted
    seen: Known  # as it was seen: a floor is no reading, and later visits must not average it in


def stretch_of(answer: FirstAnswer, *, intercept: bool) -> Stretch:
    """The first map: directions come nearer to one length, as far as noise lets them be seen."""
    return _stretch(answer, STRETCH, CLEARLY_SHORT, intercept=intercept)


def whole_stretch_of(answer: FirstAnswer, *, intercept: bool) -> Stretch:
    """A later map: directions get one length, but for those that noise hides."""
    return _stretch(answer, 1.0, SURELY_SHORT, intercept=intercept)


def _stretch(answer: FirstAnswer, power: float, sds: float, *, intercept: bool) -> Stretch:
    """Columns in which directions have lengths to the power 1 − `power` of what they have.

    None is taken for shorter than so many standard deviations of what is known of it.
    """
    gram = answer.known.gram
    d = len(gram)
    axes, spreads = axes_of(gram, intercept=intercept)
    first = int(intercept)
    doubt = math.sqrt(2 * float(np.mean(answer.known.variance[first:, first:]))) if d > first else 0
    lengths = np.maximum(spreads, max(sds * doubt, answer.known.least))
    # A symmetric root moves little when a release does: whoever recomputes it finds the same.
    root = (axes * (lengths / answer.usual) ** (-power / 2)) @ axes.T
    matrix = np.eye(d)
    matrix[first:, first:] = root
    if intercept:
        matrix[0, 1:] = -gram[0, 1:] @ root
    inverse = np.linalg.inv(matrix)
    covariance = inverse @ answer.covariance @ inverse.T
    return Stretch(
        map=matrix,
        covariance=(covariance + covariance.T) / 2,
        known=answer.known.mapped(matrix),
        seen=answer.seen.mapped(matrix),
    )
