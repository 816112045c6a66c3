r"""Tails of residuals: how much more a bound takes off them than it would off normal ones.

Every answer publishes r'r of residuals that are cut at its bound, and bounds differ: the first is
made for the response, the next for what residuals were expected to be, the last for what they are.
Of normal residuals all tell one σ; of such with long tails they tell a σ that grows with the bound.
So residuals are taken for normal with a variance in proportion to exp(2τz), z standard normal: τ is
the length of the tail, their kurtosis 3exp(4τ²). Beforehand τ has an exponential law of mean
`USUAL`, and log σ any value, so that without other bounds, or under much noise, tails are what is
usual: short. Of every τ σ is the most likely one. Bounds cut far tails off the line, too, so that
these move it little; of the variance of residuals they are a part, and for that the mean is
`USUAL_WHOLE`, as tables have it.

Residuals from θ_k, not θ, have (θ − θ_k)'X'X(θ − θ_k)/n more variance, as well as that is known.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.misfit import pull_of
from tacit.analyst.shown import Shown
from tacit.release.statistics import Answer
from tacit.visits.cut import whole_sd
from tacit.visits.estimate import update
from tacit.visits.opening import Opening, step_of
from tacit.visits.pool import Pool, together

if TYPE_CHECKING:
    from tacit.analyst.frame import Frame

Array = NDArray[np.float64]

USUAL = 0.05
"""Mean length of a tail before anything is told."""
USUAL_WHOLE = 0.15
"""The same where the variance of residuals as they are is asked for: public tables would have more,
R² of normal residuals less. Chosen on both, out of seven from 0.05 to 0.4."""
LENGTHS = np.linspace(0.0, 1.0, 21) ** 1.5
"""Lengths of tails that are weighed against each other."""
OTHER_MAP = 0.03
SAME_MAP = 0.003
"""Relative sd of r'r about what a law of residuals makes it: in the first answer, whose rows are
shrunk otherwise than the last one's, and in corrections."""
CUT_SHORT = 0.3
"""The same of a first answer whose residuals are all cut; it goes with the square of the share of
B² that r'r is. What is left below a bound in the middle of residuals is where they lie, such as the
few levels of a response, and not their tail."""
BENT = 0.05
"""Relative sd of what a residual from another line adds to r'r: it is no normal one."""
STEPS = 12
MOST_STEP = 0.7
"""Steps in search of log σ², and the longest."""
LEAST = 0.05
"""Least of σ² where the search begins, over the squared bound."""
LOGS = np.linspace(-5.0, 5.0, 2001)
"""Logarithms of bounds, over a normal residual's sd, at which what they leave is tabulated."""
NODES, _raw = np.polynomial.hermite_e.hermegauss(7)
WEIGHTS = _raw / _raw.sum()


class Line(NamedTuple):
    """What visits tell together, in mapped columns."""

    map: Array  # (d, d): T
    theta: Array  # (d,): in the study's columns
    covariance: Array  # (d, d): its covariance, in mapped columns
    shown: Shown  # X'X per row, of rows as they are


def line_of(frame: "Frame", opening: Opening, talks: Sequence[Sequence[Answer]]) -> Line:
    """The line that visits tell, about as well as X'X is told for sure."""
    step = step_of(opening, talks)
    turn = np.linalg.inv(frame.map) @ opening.map
    sure = step.pool.rows * turn.T @ frame.sure @ turn
    _, covariance = update(replace(step.pool, gram=sure), step.prior, step.mean, step.left)
    covariance = turn @ covariance @ turn.T
    if frame.unexpected is not None:
        covariance = covariance + pull_of(covariance, frame.covariance, frame.unexpected)
    told = frame.told
    return Line(
        map=frame.map,
        theta=step.start + opening.map @ step.theta,
        covariance=covariance,
        shown=Shown(gram=told.gram / frame.inside, sd=told.sd / frame.inside),
    )


class Reading(NamedTuple):
    """Mean square of the residuals of one visit."""

    bound: float
    square: float  # as cut
    noise: float  # sd
    apart: float  # what they have more than residuals from the line
    apart_sd: float
    doubt: float  # relative sd of the law's own mean square


def readings_of(talks: Sequence[Sequence[Answer]], line: Line) -> list[Reading]:
    """All visits' readings, the first answer first."""
    inverse = np.linalg.inv(line.map)
    gram = line.shown.gram
    known = gram @ line.covariance
    own = float(np.trace(known))
    readings = []
    for k in range(max(len(talk) for talk in talks)):
        answers = [talk[k] for talk in talks if len(talk) > k]
        pool = together([Pool.of(answer) for answer in answers])
        apart = inverse @ (line.theta - answers[0].question.start)
        noise = 4 * float(apart @ known @ gram @ apart) + 2 * float(np.trace(known @ known))
        noise += (line.shown.sd * float(apart @ apart)) ** 2
        readings.append(
            Reading(
                bound=pool.bound,
                square=pool.square / pool.rows,
                noise=pool.square_sd / pool.rows,
                apart=float(apart @ gram @ apart) + own,
                apart_sd=math.sqrt(noise),
                doubt=SAME_MAP if k else _doubt(pool),
            )
        )
    return readings


def _doubt(first: Pool) -> float:
    """Relative sd of r'r of the first answer about what a law of residuals makes it."""
    share = first.square / (first.rows * first.bound**2)
    return OTHER_MAP + CUT_SHORT * min(max(share, 0.0), 1.0) ** 2


class _Left(NamedTuple):
    """What a bound leaves of a standard normal residual, by the logarithm of the bound."""

    square: Array
    rate: Array  # by which the square of one with another variance grows with that
    taken: Array  # mean square of what is taken off


def _tabulated() -> _Left:
    bounds = np.exp(LOGS)
    inside = np.array([math.erf(bound / math.sqrt(2)) for bound in bounds])
    edge = 2 * bounds * np.exp(-(bounds**2) / 2) / math.sqrt(2 * math.pi)
    return _Left(
        square=inside - edge + bounds**2 * (1 - inside),
        rate=inside - edge,
        taken=np.maximum((1 + bounds**2) * (1 - inside) - edge, 0.0),
    )


LEFT = _tabulated()
SPREADS = np.exp(2 * LENGTHS[:, None] * NODES)
SPREADS = SPREADS / (SPREADS @ WEIGHTS)[:, None]
"""Variances of the normal parts of a law of residuals, over its own: (length, part)."""


class _Fitted(NamedTuple):
    """How residuals of every length of tail would be, (length, visit)."""

    square: Array
    slope: Array  # of it, by log σ²
    variance: Array  # of what is read about it


def _fitted(variance: Array, readings: Sequence[Reading]) -> _Fitted:
    """What visits would read of residuals with this variance, (length,)."""
    bound, _, noise, apart, apart_sd, doubt = np.array(readings).T
    parts = (variance[:, None] * SPREADS)[:, None, :]
    whole = parts + apart[:, None]
    logs = np.log(bound)[:, None] - np.log(whole) / 2
    square = (whole * np.interp(logs, LOGS, LEFT.square)) @ WEIGHTS
    rates = np.interp(logs, LOGS, LEFT.rate)
    added = rates @ WEIGHTS
    spread = noise**2 + (doubt * square) ** 2 + added**2 * (apart_sd**2 + (BENT * apart) ** 2)
    return _Fitted(square=square, slope=(rates * parts) @ WEIGHTS, variance=spread)


class _Lengths(NamedTuple):
    """Tails of every length, (length,), in the light of all readings."""

    variance: Array  # of residuals, the most likely
    scores: Array  # logarithms of likelihoods


def _lengths(readings: Sequence[Reading]) -> _Lengths:
    last = readings[-1]
    least = LEAST * last.bound**2
    begin = max(whole_sd(last.square, last.bound) ** 2 - last.apart, least)
    variance = np.full(len(LENGTHS), begin)
    read = np.array([reading.square for reading in readings])
    for _ in range(STEPS):
        fitted = _fitted(variance, readings)
        told = np.sum(fitted.slope**2 / fitted.variance, axis=1)
        step = np.sum(fitted.slope * (read - fitted.square) / fitted.variance, axis=1) / told
        steps = np.exp(np.clip(step, -MOST_STEP, MOST_STEP))
        variance = np.clip(variance * steps, least / 50, 2000 * least)
    fitted = _fitted(variance, readings)
    told = np.sum(fitted.slope**2 / fitted.variance, axis=1)
    misses = (read - fitted.square) ** 2 / fitted.variance + np.log(fitted.variance)
    return _Lengths(variance, -0.5 * (np.sum(misses, axis=1) + np.log1p(told)))


def _weights(lengths: _Lengths, usual: float) -> Array:
    """Chances of lengths, where their usual mean is this."""
    scores = lengths.scores - LENGTHS / usual
    weights = np.gradient(LENGTHS) * np.exp(scores - scores.max())
    shares: Array = weights / weights.sum()
    return shares


def excess_of(readings: Sequence[Reading]) -> float:
    """Mean square of what the last bound takes off beyond what it takes off normal residuals.

    Both are mean squares, over the variance of normal residuals of which it leaves as much.
    """
    lengths = _lengths(readings)
    beyond = _beyond(lengths.variance, readings[-1].bound)
    return float(_weights(lengths, USUAL) @ beyond**2)


class Longer(NamedTuple):
    """The variance of residuals as they are over that which visits tell, by its logarithm."""

    mean: float
    sd: float


def longer_of(readings: Sequence[Reading], told: float) -> Longer:
    """How much more variance residuals have than visits have told.

    Bounds that follow a tail leave little of it out; narrow ones leave all. Where readings without
    any tail tell of more than visits did, that is noise, and no tail.
    """
    lengths = _lengths(readings)
    weights = _weights(lengths, USUAL_WHOLE)
    least = max(told, float(lengths.variance[0]))
    more = np.log(np.maximum(lengths.variance / least, 1.0))
    mean = float(weights @ more)
    return Longer(mean=mean, sd=math.sqrt(float(weights @ (more - mean) ** 2)))


def _beyond(variance: Array, bound: float) -> Array:
    """What a bound takes off beyond normal residuals of which it leaves as much, (length,)."""
    parts = variance[:, None] * SPREADS
    logs = math.log(bound) - np.log(parts) / 2
    left = (parts * np.interp(logs, LOGS, LEFT.square)) @ WEIGHTS
    taken = (parts * np.interp(logs, LOGS, LEFT.taken)) @ WEIGHTS
    shares = LEFT.square / np.exp(2 * LOGS)  # of the squared bound: falls with it
    normal = np.interp(-left / bound**2, -shares, LOGS)
    cut = bound**2 * np.exp(-2 * normal)
    beyond: Array = np.maximum(taken / cut - np.interp(normal, LOGS, LEFT.taken), 0.0)
    return beyond
