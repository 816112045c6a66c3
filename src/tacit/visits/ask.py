"""The next question: from all that holders have answered so far to what they are asked next.

The first answer gives a map that makes all directions of the rows equally long, as far as noise
lets them be seen; every correction keeps that map, and moves the offset and the bound of residuals.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.errors import ReleaseError
from tacit.release.places import PlacesRelease
from tacit.release.question import LEAST_BOUND, Question, hash_of
from tacit.release.statistics import Answer, Release
from tacit.study import Study
from tacit.study.visits import has_places, placed
from tacit.visits.estimate import (
    UNEXPLAINED,
    Expected,
    FirstAnswer,
    Stretch,
    first_answer,
    least_residual,
    stretch_of,
    update,
)
from tacit.visits.first import (
    MOST_BOUND,
    USUAL_SPREAD,
    Spread,
    first_question,
    least_bound,
    spread_of,
    usual_squares,
)
from tacit.visits.pool import Pool, joined, level_of, shape_of, together
from tacit.visits.reach import longest_mapped, residual_reach, row_reach
from tacit.visits.sound import numbers_follow

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Opening:
    """What the first answers of all holders say, and the map that follows from them."""

    question: Question  # the one that they answered
    pool: Pool
    answer: FirstAnswer
    stretch: Stretch
    intercept: bool

    @property
    def map(self) -> Array:
        """T of every correction."""
        matrix: Array = self.question.matrix @ self.stretch.map
        return matrix

    @property
    def theta(self) -> Array:
        """The first answer, in the study's columns."""
        theta: Array = self.question.start + self.question.matrix @ self.answer.theta
        return theta


@numbers_follow()
def next_question(study: Study, messages: Sequence[PlacesRelease | Release]) -> Question:
    """What every holder is asked next, from all holders' latest messages."""
    places = [each.places for each in messages if isinstance(each, PlacesRelease)]
    releases = [each for each in messages if isinstance(each, Release)]
    if places and releases:
        raise ReleaseError("give every holder's latest message: some are of an earlier visit")
    if not releases:
        return first_question(study, places)
    talks = [release.answers for release in releases]
    check_questions(talks)
    latest = max(len(talk) for talk in talks)
    after = tuple(sorted(hash_of(talk[-1]) for talk in talks))
    visit = latest + has_places(study) + 1
    if visit > study.visit_count:
        raise ReleaseError(f"all {study.visit_count} visits are done: fit the releases")
    opening = opening_of(study, releases)
    if latest == 1:
        offset = opening.theta
        matrix = opening.map
        size = float(np.trace(opening.stretch.known.gram))
        radius = min(row_reach(study) * math.sqrt(size), longest_mapped(study, matrix))
        residual = opening.answer.residual
    else:
        question = next(talk[-1].question for talk in talks if len(talk) == latest)
        offset, residual = corrected(opening, talks)
        matrix = question.matrix
        radius = question.radius
    bound = max(residual_reach(study, visit) * residual, _whole(study, releases, opening.pool))
    return Question(
        study_hash=study.hash,
        visit=visit,
        after=after,
        map=tuple(map(tuple, matrix.tolist())),
        offset=tuple(offset.tolist()),
        radius=radius,
        bound=float(np.clip(bound, LEAST_BOUND, MOST_BOUND)),
    )


def check_questions(talks: Sequence[Sequence[Answer]]) -> None:
    """Refuse answers to different questions of the same visit."""
    asked: dict[int, str] = {}
    for talk in talks:
        for answer in talk:
            other = asked.setdefault(answer.question.visit, answer.question.hash)
            if other != answer.question.hash:
                raise ReleaseError(
                    f"holders answered different questions at visit {answer.question.visit}: "
                    "all must answer the same question file"
                )


def opening_of(study: Study, releases: Sequence[Release]) -> Opening:
    """The first answer of all holders together."""
    answers = [release.answers[0] for release in releases]
    pool = together([Pool.of(answer) for answer in answers])
    answer = first_answer(pool, _expected(study, releases, pool))
    return Opening(
        question=answers[0].question,
        pool=pool,
        answer=answer,
        stretch=stretch_of(answer, intercept=study.intercept),
        intercept=study.intercept,
    )


def _expected(study: Study, releases: Sequence[Release], pool: Pool) -> Expected:
    """What was known before the first answer."""
    told = np.zeros(study.d, dtype=bool)
    response = _response(pool)
    doubt = 1.0
    if has_places(study):
        told[list(placed(study))] = True
        spread = _spread(study, releases)
        response = float(spread.sds[-1])
        doubt = spread.doubt
    return Expected(
        squares=usual_squares(study),
        placed=told,
        response=response,
        doubt=doubt,
        intercept=study.intercept,
    )


def _spread(study: Study, releases: Sequence[Release]) -> Spread:
    """What places told."""
    visits = [release.visit for release in releases if release.visit is not None]
    return spread_of(study, [visit.places for visit in visits if visit.places is not None])


def _whole(study: Study, releases: Sequence[Release], pool: Pool) -> float:
    """Smallest bound that leaves answers at the ends of the response's range whole."""
    if has_places(study):
        spread = _spread(study, releases)
        return least_bound(float(spread.means[-1]), float(spread.sds[-1]) ** 2)
    if not study.intercept:
        return 0.0
    rows = pool.rows * level_of(pool, intercept=True)
    mean = float(np.clip(pool.moment[0] / rows, -1.0, 1.0))
    return least_bound(mean, pool.square / rows - mean**2)


def _response(pool: Pool) -> float:
    """Sd of the response where no place was asked for: what is usual, unless r'r tells of less."""
    told = (pool.square + 2 * pool.square_sd) / pool.rows
    return min(USUAL_SPREAD, math.sqrt(max(told, USUAL_SPREAD**2 / 100)))


def corrected(opening: Opening, talks: Sequence[Sequence[Answer]]) -> tuple[Array, float]:
    """θ in the study's columns after all corrections so far, and the sd of residuals from it."""
    rounds = max(len(talk) for talk in talks) - 1
    inverse = np.linalg.inv(opening.map)
    pools = []
    starts = []
    for k in range(1, rounds + 1):
        there = [talk[k] for talk in talks if len(talk) > k]
        pools.append(together([Pool.of(answer) for answer in there]))
        starts.append(there[0].question.start)
    apart = [inverse @ (starts[-1] - start) for start in starts]
    known = opening.stretch.known
    expected = opening.answer.residual
    seen = opening.stretch.seen
    shape = shape_of(pools, apart, seen, residual=expected, intercept=opening.intercept)
    pool = joined(pools, apart, shape).shaped(shape)
    mean = inverse @ (opening.theta - starts[-1])
    least = least_residual(shape.residual, pools[-1].bound)
    left = max(shape.residual, least * opening.answer.response)
    residual = min(UNEXPLAINED * opening.answer.response**2, left**2)
    theta, covariance = update(pool, opening.stretch.covariance, mean, residual)
    spread = math.sqrt(residual + float(np.trace(known.gram @ covariance)))
    return starts[-1] + opening.map @ theta, min(spread, left, opening.answer.residual)
