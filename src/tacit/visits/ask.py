"""The next question: from all that holders have answered so far to what they are asked next.

The first answer gives a map that makes all directions of the rows equally long, as far as noise
lets them be seen; corrections keep that map, and move the offset and the bound of residuals. After
some of them the map is made anew (`opening.py`).
"""

import math
from collections.abc import Sequence

import numpy as np

from tacit.errors import ReleaseError
from tacit.release.places import PlacesRelease
from tacit.release.question import LEAST_BOUND, Question, hash_of
from tacit.release.statistics import Answer, Release
from tacit.study import Study
from tacit.study.visits import has_places
from tacit.visits.first import MOST_BOUND, first_question, least_bound
from tacit.visits.opening import opening_of, spread_told, step_of
from tacit.visits.pool import Pool, level_of
from tacit.visits.reach import longest_mapped, residual_reach, row_reach, tail_reach
from tacit.visits.sound import numbers_follow


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
    opening, before = opening_of(study, releases, correction=latest)
    if latest == 1 + before:
        offset = opening.theta
        matrix = opening.map
        size = float(np.trace(opening.stretch.known.gram))
        radius = min(row_reach(study) * math.sqrt(size), longest_mapped(study, matrix))
        residual = opening.answer.residual
        tail = opening.answer.tail
    else:
        question = next(talk[-1].question for talk in talks if len(talk) == latest)
        step = step_of(opening, [talk[before:] for talk in talks if len(talk) > before])
        offset = step.start + opening.map @ step.theta
        residual = step.residual
        tail = step.tail
        matrix = question.matrix
        radius = question.radius
    reach = residual_reach(study, visit) * tail_reach(study, tail / residual)
    bound = max(reach * residual, _whole(study, releases, opening.pool))
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


def _whole(study: Study, releases: Sequence[Release], pool: Pool) -> float:
    """Smallest bound that leaves answers at the ends of the response's range whole."""
    if has_places(study):
        spread = spread_told(study, releases)
        return least_bound(float(spread.means[-1]), float(spread.sds[-1]) ** 2)
    if not study.intercept:
        return 0.0
    rows = pool.rows * level_of(pool, intercept=True)
    mean = float(np.clip(pool.moment[0] / rows, -1.0, 1.0))
    return least_bound(mean, pool.square / rows - mean**2)
