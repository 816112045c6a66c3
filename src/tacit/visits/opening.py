r"""Openings: what has been told so far as one answer, and the map that further questions have.

The first answer tells little of X'X, so that its map leaves short directions short, and noise on
them is large. Corrections publish X'X as well. After a few of them all that was told becomes a new
opening: an answer with its covariance, and a map that makes directions equally long as far as
they are known by then. What comes later is asked in that map, and has that answer for a prior.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.release.question import Question
from tacit.release.statistics import Answer, Release
from tacit.study import Study
from tacit.study.visits import has_places, hidden, placed
from tacit.visits.conflict import Reach, yielded
from tacit.visits.cut import cut_of
from tacit.visits.estimate import (
    UNEXPLAINED,
    Expected,
    FirstAnswer,
    Stretch,
    first_answer,
    least_residual,
    stretch_of,
    update,
    whole_stretch_of,
)
from tacit.visits.first import USUAL_SPREAD, Spread, spread_of, usual_squares
from tacit.visits.joined import joined, shape_of
from tacit.visits.known import Known, lifted
from tacit.visits.pool import Pool, together

Array = NDArray[np.float64]
Talks = Sequence[Sequence[Answer]]

REOPENED = 3
"""Corrections after which there is a new opening, where at least as many follow: fewer would tell
too little of X'X, and more would leave too little to ask in the better map."""
HIDDEN_DIRECTIONS = 0.001
"""Noise over what planned rows hold, along one of d directions, from which on there is one. Below,
the first map tells directions well enough, and in a whole stretch more rows are longer than the
radius: on public tables of 40,000 rows that cost more than the better map saved."""


@dataclass(frozen=True)
class Opening:
    """What holders have said up to a question, and the map that follows from it."""

    question: Question  # the last one that they answered
    rate: float  # how much of a change of the coefficients its cut residuals show
    pool: Pool  # of the first answers
    answer: FirstAnswer
    stretch: Stretch
    intercept: bool

    @property
    def map(self) -> Array:
        """T of corrections."""
        matrix: Array = self.question.matrix @ self.stretch.map
        return matrix

    @property
    def theta(self) -> Array:
        """The answer, in the study's columns."""
        theta: Array = self.question.start + self.question.matrix @ self.answer.theta
        return theta

    @property
    def reach(self) -> Reach:
        """How far corrections may lead."""
        return Reach(self.answer.response, self.intercept)


@dataclass(frozen=True)
class Step:
    """Where corrections in one map lead."""

    start: Array  # (d,): the last offset, in the study's columns
    theta: Array  # (d,): from there, in mapped units
    covariance: Array
    residual: float  # expected sd of residuals
    tail: float  # root of the variance that a wider bound showed beyond a narrower one
    rate: float  # how much of a change cut residuals show
    known: Known  # X'X per row of rows that are not shrunk
    pool: Pool  # all corrections in one
    mean: Array  # (d,): of θ before them, in mapped units
    prior: Array  # (d, d): its covariance, wider where they contradict it
    left: float  # variance of residuals that they were read with


def reopened_after(study: Study) -> int:
    """Corrections after which a study has a new opening; 0 where it has none."""
    corrections = study.visit_count - 2  # beside places and the first answer
    if corrections < 2 * REOPENED or hidden(study) < HIDDEN_DIRECTIONS:
        return 0
    return REOPENED


def opening_of(
    study: Study, releases: Sequence[Release], correction: int, slopes: float = 1.0
) -> tuple[Opening, int]:
    """The opening that a correction, counted from 1, has; and how many come before it."""
    opening = first_opening(study, releases, slopes)
    before = reopened_after(study)
    if not 0 < before < correction:
        return opening, 0
    return reopened(opening, [release.answers[: 1 + before] for release in releases]), before


def first_opening(study: Study, releases: Sequence[Release], slopes: float = 1.0) -> Opening:
    """The first answer of all holders together.

    `slopes` is the variance that they are given over what is usual. The map, and what residuals are
    expected to be, stay those that questions were made of.
    """
    answers = [release.answers[0] for release in releases]
    pool = together([Pool.of(answer) for answer in answers])
    expected = _expected(study, releases, pool)
    answer = first_answer(pool, expected)
    if slopes != 1:
        weighed = first_answer(pool, replace(expected, slopes=slopes))
        answer = replace(weighed, residual=answer.residual)
    return Opening(
        question=answers[0].question,
        rate=cut_of(answer.response, pool.bound).rate,
        pool=pool,
        answer=answer,
        stretch=stretch_of(answer, intercept=study.intercept),
        intercept=study.intercept,
    )


def reopened(opening: Opening, talks: Talks) -> Opening:
    """What an opening and the corrections in its map say together."""
    step = step_of(opening, talks)
    latest = max(len(talk) for talk in talks)
    gram = lifted(step.known.gram, step.known.least)
    answer = FirstAnswer(
        theta=step.theta,
        covariance=step.covariance,
        known=replace(step.known, gram=gram),
        seen=step.known,
        usual=float(np.mean(np.diag(gram)[int(opening.intercept) :])),
        response=opening.answer.response,
        residual=step.residual,
        tail=step.tail,
    )
    return Opening(
        question=next(talk[-1].question for talk in talks if len(talk) == latest),
        rate=step.rate,
        pool=opening.pool,
        answer=answer,
        stretch=whole_stretch_of(answer, intercept=opening.intercept),
        intercept=opening.intercept,
    )


def step_of(opening: Opening, talks: Talks) -> Step:
    """Where all corrections in the opening's map lead, which follow the first of each talk."""
    inverse = np.linalg.inv(opening.map)
    pools = []
    starts = []
    for k in range(1, max(len(talk) for talk in talks)):
        there = [talk[k] for talk in talks if len(talk) > k]
        pools.append(together([Pool.of(answer) for answer in there]))
        starts.append(there[0].question.start)
    apart = [inverse @ (starts[-1] - start) for start in starts]
    expected = opening.answer.residual
    seen = opening.stretch.seen
    shape = shape_of(pools, apart, seen, residual=expected, intercept=opening.intercept)
    visits = joined(pools, apart, shape)
    mean = inverse @ (opening.theta - starts[-1])
    least = least_residual(shape.residual, pools[-1].bound)
    left = max(shape.residual, least * opening.answer.response)
    residual = min(UNEXPLAINED * opening.answer.response**2, left**2)
    pool = visits.shaped(shape)
    prior = yielded(pool, opening.stretch.covariance, mean, residual, opening.reach)
    theta, covariance = update(pool, prior, mean, residual)
    spread = math.sqrt(residual + float(np.trace(opening.stretch.known.gram @ covariance)))
    return Step(
        start=starts[-1],
        theta=theta,
        covariance=covariance,
        residual=min(spread, left, opening.answer.residual),
        tail=max(shape.tail, opening.answer.tail),
        rate=visits.rate,
        known=shape.known,
        pool=pool,
        mean=mean,
        prior=prior,
        left=residual,
    )


def spread_told(study: Study, releases: Sequence[Release]) -> Spread:
    """What places told."""
    visits = [release.visit for release in releases if release.visit is not None]
    return spread_of(study, [visit.places for visit in visits if visit.places is not None])


def _expected(study: Study, releases: Sequence[Release], pool: Pool) -> Expected:
    """What was known before the first answer."""
    told = np.zeros(study.d, dtype=bool)
    response = _response(pool)
    doubt = 1.0
    if has_places(study):
        told[list(placed(study))] = True
        spread = spread_told(study, releases)
        response = float(spread.sds[-1])
        doubt = spread.doubt
    return Expected(
        squares=usual_squares(study),
        placed=told,
        response=response,
        doubt=doubt,
        intercept=study.intercept,
    )


def _response(pool: Pool) -> float:
    """Sd of the response where no place was asked for: what is usual, unless r'r tells of less."""
    told = (pool.square + 2 * pool.square_sd) / pool.rows
    return min(USUAL_SPREAD, math.sqrt(max(told, USUAL_SPREAD**2 / 100)))
