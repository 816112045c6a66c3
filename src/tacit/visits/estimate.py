r"""Estimates that a next question is made of: quick, regularised, in the mapped rows' units.

They choose where to look and never what is concluded: a poor one costs accuracy of what comes
after, not its validity. The first answer has the prior that `noise-aware` has for slopes, of size
λ^(−1/2) along the axes of the features' covariance; corrections have the first answer for a prior.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.visits.pool import Known, Pool

Array = NDArray[np.float64]

UNEXPLAINED = 0.5
"""Share of the response's variance that the first answer is taken to leave."""
MOST_HIDDEN = 0.1
LEAST_VARIANCE = 1e-4
LEAST_LEVEL = 0.02
"""Smallest share of their length that rows kept on average, in squares."""
FLOOR = 1e-6
"""Smallest variance of a direction that is stretched."""
SAMPLING = 15.0
"""How many times its sampling error the first answer is taken to be off, as a prior: visits share
that error, and counting it twice would make intervals too narrow."""
MOST_SPREAD = 0.25
"""Largest variance of what is known of X'X per row along stretched axes."""
ROUNDS = 8


@dataclass(frozen=True)
class FirstAnswer:
    """θ and its covariance, in mapped units, and the rows' X'X per row as if none was shrunk."""

    theta: Array
    covariance: Array
    gram: Array
    level: float  # Σα²/n: what rows kept of their length
    noise: float  # sd of the noise on X'X per row
    response: float  # sd of the response
    residual: float  # expected sd of residuals


def first_answer(pool: Pool, response: float, *, intercept: bool, known_mean: bool) -> FirstAnswer:
    """Estimate from the first visit that asked for statistics; `response` is the response's sd."""
    d = len(pool.moment)
    values, vectors = np.linalg.eigh(pool.gram)
    gram = (vectors * np.maximum(values, 0.0)) @ vectors.T
    level = 1.0
    if intercept:
        level = float(np.clip(gram[0, 0] / pool.rows, LEAST_LEVEL, 1.0))
    whole = gram / pool.rows / level
    noise = pool.gram_sd / pool.rows
    least = max(min(noise / level, MOST_HIDDEN) / 2, LEAST_VARIANCE)
    axes, spreads = axes_of(whole, intercept=intercept)
    roots = np.sqrt(np.maximum(spreads, least))
    prior = np.eye(d) * (response**2 if known_mean else 1.0)
    first = int(intercept)
    prior[first:, first:] = (axes * (response**2 / max(roots.sum(), least) / roots)) @ axes.T
    residual = UNEXPLAINED * response**2
    theta, covariance = update(pool, gram, prior, np.zeros(d), residual)
    spread = math.sqrt(residual + float(np.trace(whole @ covariance)))
    return FirstAnswer(
        theta=theta,
        covariance=covariance,
        gram=whole,
        level=level,
        noise=noise,
        response=response,
        residual=min(spread, 1.2 * response),
    )


def axes_of(gram: Array, *, intercept: bool) -> tuple[Array, Array]:
    """Axes of the features' covariance, and their variance along each; about 0 without one."""
    first = int(intercept)
    features = gram[first:, first:]
    if intercept:
        features = features - np.outer(gram[0, 1:], gram[0, 1:])
    spreads, axes = np.linalg.eigh((features + features.T) / 2)
    return axes, spreads


def update(
    pool: Pool, gram: Array, prior: Array, mean: Array, residual: float
) -> tuple[Array, Array]:
    """Posterior mean and covariance of θ given X'r = X'Xθ + noise, the noise of X'X included."""
    identity = np.eye(len(mean))
    precision = np.linalg.inv(prior)
    second = prior + np.outer(mean, mean)
    theta = mean
    covariance = prior
    for _ in range(ROUNDS):
        noise = pool.moment_sd**2 * identity + residual * gram
        noise = noise + pool.gram_sd**2 / 2 * (np.trace(second) * identity + second)
        gain = np.linalg.solve(noise, gram).T
        information = gain @ gram + precision
        covariance = np.linalg.inv((information + information.T) / 2).astype(float)
        theta = covariance @ (gain @ pool.moment + precision @ mean)
        second = covariance + np.outer(theta, theta)
    return theta, covariance


@dataclass(frozen=True)
class Stretch:
    """Columns that the first answer makes of the first visit's: uncorrelated, of unit variance."""

    map: Array  # (d, d): new columns from old
    covariance: Array  # (d, d): of the first answer, in the new units
    prior: Array  # (d, d): the same, widened by what it shares with later answers
    known: Known


def stretch_of(answer: FirstAnswer, rows: float, *, intercept: bool) -> Stretch:
    """The map that makes all directions equally long, as far as noise lets them be seen."""
    d = len(answer.theta)
    axes, spreads = axes_of(answer.gram, intercept=intercept)
    lengths = np.maximum(spreads, max(answer.noise / answer.level, FLOOR))
    # A symmetric root moves little when a release does: whoever recomputes it finds the same.
    root = (axes / np.sqrt(lengths)) @ axes.T
    matrix = np.eye(d)
    first = int(intercept)
    matrix[first:, first:] = root
    if intercept:
        matrix[0, 1:] = -answer.gram[0, 1:] @ root
    inverse = np.linalg.inv(matrix)
    covariance = inverse @ answer.covariance @ inverse.T
    gram = matrix.T @ answer.gram @ matrix
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    sampling = UNEXPLAINED * answer.response**2 / (rows * np.maximum(values, 0.1))
    prior = covariance + SAMPLING * (vectors * sampling) @ vectors.T
    lever = matrix.T @ matrix
    sizes = np.diag(lever)
    variance = answer.noise**2 / 2 * (np.outer(sizes, sizes) + lever**2)
    limit = np.full((d, d), MOST_SPREAD / d)
    np.fill_diagonal(limit, MOST_SPREAD)
    return Stretch(
        map=matrix,
        covariance=(covariance + covariance.T) / 2,
        prior=(prior + prior.T) / 2,
        known=Known(gram=gram, variance=np.minimum(variance, limit)),
    )
