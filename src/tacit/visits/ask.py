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
from tacit.privacy.visits import shares_of
from tacit.release.places import PlacesRelease
from tacit.release.question import LEAST_BOUND, Question, hash_of
from tacit.release.statistics import Answer, Release
from tacit.study import Study
from tacit.study.visits import has_places
from tacit.visits.estimate import (
    UNEXPLAINED,
    FirstAnswer,
    Stretch,
    first_answer,
    stretch_of,
    update,
)
from tacit.visits.first import (
    RESPONSE_REACH,
    SENSITIVITY,
    USUAL_SPREAD,
    first_question,
)
from tacit.visits.pool import Pool, joined, together
from tacit.visits.sound import numbers_follow

Array = NDArray[np.float64]

RADIUS = 0.3
"""Radius of stretched rows over √d where noise hides as much as there is."""
RADIUS_POWER = -0.4
RADII = (0.7, 20.0)
REACH = 0.5
"""Bound of residuals, in standard deviations, where noise hides as much as there is."""
REACH_POWER = -1 / 3
REACHES = (0.8, 6.0)
MOST_BOUND = 2.0


@dataclass(frozen=True)
class Opening:
    """What the first answers of all holders say, and the map that follows from them."""

    question: Question  # the one that they answered
    pool: Pool
    answer: FirstAnswer
    stretch: Stretch

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
    opening = opening_of(study, talks)
    if latest == 1:
        offset = opening.theta
        matrix = opening.map
        radius = _radius(study, opening)
        residual = opening.answer.residual
    else:
        question = next(talk[-1].question for talk in talks if len(talk) == latest)
        offset, residual = corrected(opening, talks)
        matrix = question.matrix
        radius = question.radius
    return Question(
        study_hash=study.hash,
        visit=visit,
        after=after,
        map=tuple(map(tuple, matrix.tolist())),
        offset=tuple(offset.tolist()),
        radius=radius,
        bound=_bound(study, opening, residual, visit),
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


def opening_of(study: Study, talks: Sequence[Sequence[Answer]]) -> Opening:
    """The first answer of all holders together."""
    question = talks[0][0].question
    pool = together([Pool.of(talk[0]) for talk in talks])
    response = question.bound / RESPONSE_REACH if has_places(study) else _response(pool)
    answer = first_answer(pool, response, intercept=study.intercept, known_mean=has_places(study))
    return Opening(
        question=question,
        pool=pool,
        answer=answer,
        stretch=stretch_of(answer, pool.rows, intercept=study.intercept),
    )


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
    pool = joined(pools, apart, opening.stretch.known).pool
    values, vectors = np.linalg.eigh(pool.gram)
    gram = (vectors * np.maximum(values, 0.0)) @ vectors.T
    mean = inverse @ (opening.theta - starts[-1])
    residual = UNEXPLAINED * opening.answer.response**2
    theta, covariance = update(pool, gram, opening.stretch.prior, mean, residual)
    spread = math.sqrt(residual + float(np.trace(covariance)))
    return starts[-1] + opening.map @ theta, min(spread, opening.answer.residual)


def _hidden(study: Study, opening: Opening, share: float) -> float:
    """Noise over what rows hold, along one of d directions, with a share of the budget."""
    first = shares_of(study.visit_count)[opening.question.visit - 1]
    noise = opening.pool.gram_sd / opening.question.radius**2 * math.sqrt(first / share)
    return study.d * noise / SENSITIVITY / opening.pool.rows


def _radius(study: Study, opening: Opening) -> float:
    """Radius of stretched rows: the less noise there is, the fewer of them are shrunk."""
    left = sum(shares_of(study.visit_count)[opening.question.visit :])
    share = RADIUS * _hidden(study, opening, left) ** RADIUS_POWER
    return float(np.clip(share, *RADII)) * math.sqrt(study.d)


def _bound(study: Study, opening: Opening, residual: float, visit: int) -> float:
    """Bound of residuals: the less noise there is, the fewer of them are cut."""
    share = shares_of(study.visit_count)[visit - 1]
    reach = REACH * _hidden(study, opening, share) ** REACH_POWER
    bound = float(np.clip(reach, *REACHES)) * residual
    return float(np.clip(bound, LEAST_BOUND, MOST_BOUND))
