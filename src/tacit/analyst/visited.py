r"""Releases of several visits as evidence: one set of statistics per holder, in mapped columns.

All corrections of a study map rows alike, so a holder's answers are noisy readings of the same
sums: their noise is averaged, and the rows' own error enters once. The evidence is that of the
regression of r = y − x'θ₀ on u = T'x, whose coefficients b tell θ = θ₀ + Tb. The first answer,
which has other columns and other shrunk rows, is the prior of b, widened by the sampling error that
it shares with the rest, and where the rest contradicts it (`visits/conflict.py`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.frame import Frame
from tacit.analyst.misfit import Told, larger_of, misfit_of, unexpected_of
from tacit.analyst.readings import Readings
from tacit.analyst.scatter import scatter_of
from tacit.analyst.shown import seen_of, shown_of
from tacit.analyst.sizes import Sizes, sizes_of
from tacit.analyst.streams import Batches
from tacit.analyst.tails import excess_of, line_of, longer_of, readings_of
from tacit.errors import ReleaseError
from tacit.release.statistics import Answer, Release
from tacit.study import Study
from tacit.visits.ask import check_questions
from tacit.visits.conflict import yielded
from tacit.visits.estimate import update
from tacit.visits.joined import Shape, joined, shape_of
from tacit.visits.known import Known
from tacit.visits.opening import Opening, first_opening, opening_of, step_of
from tacit.visits.pool import Pool, together
from tacit.visits.sound import must_be_finite, numbers_follow

Array = NDArray[np.float64]

TINY = 1e-12
FLAT = 3.0
"""Standard deviations of its noise by which a direction may be longer than corrections show it:
beyond, it is surely flat."""


@numbers_follow()
def evidence_of(study: Study, releases: Sequence[Release | Batches]) -> Evidence:
    """The evidence of all holders that answered a correction, in its frame."""
    given = [release for release in releases if isinstance(release, Release)]
    talks = [release.answers for release in given]
    check_questions(talks)
    latest = max(len(talk) for talk in talks)
    if latest == 1:
        raise ReleaseError(
            f"the study has {study.visit_count} visits, and these are first answers: ask the next "
            "question of them (`tacit next`), and fit what holders answer to it"
        )
    first, opening, early, late, sizes = _openings(study, given, correction=latest - 1)
    whole_talk = max(late, key=len)
    last = whole_talk[-1].question
    start = last.start
    matrix = last.matrix
    inverse = np.linalg.inv(matrix).astype(float)
    scatter = scatter_of(first, [release.answers[0] for release in given])
    across = inverse @ first.map
    turn = inverse @ opening.map  # the question's columns are those of the first answer, or near
    whole = np.linalg.solve(opening.question.matrix, matrix).astype(float)
    known = opening.answer.seen.mapped(whole)
    shape = _shape(late, opening, known, inverse)
    visits = []
    for talk in late:
        answers = talk[1:]
        if not answers:
            continue
        apart = [inverse @ (start - answer.question.start) for answer in answers]
        visits.append(joined([Pool.of(answer) for answer in answers], apart, shape))
    rows = np.array([each.pool.rows for each in visits])
    rate = float(rows @ [each.rate for each in visits] / rows.sum())
    shaped = [each.shaped(shape) for each in visits]
    shared, later = _errors(shaped)
    frame = Frame(
        map=matrix,
        start=start,
        first=opening.theta,
        covariance=turn @ opening.stretch.covariance @ turn.T + across @ scatter @ across.T,
        shared=shared,
        later=later,
        gram=rate * shape.gram,
        gram_sd=rate * shape.gram_sd,
        whole=float(rows @ [each.whole for each in visits] / rows.sum()),
        rate=rate,
        level=shape.level,
        corrected=max(map(len, early)) > 1,
        readings=Readings.of(opening, [answer.question for answer in whole_talk[1:]], visits),
    )
    frame = replace(
        frame,
        attenuation=_attenuation(frame, opening, known, shape, whole),
        covariance=_yielded(frame, shaped, opening),
    )
    seen = seen_of(visits)
    shown = shown_of(known, seen, shape.level)
    frame = replace(frame, shown=rate * shown.gram, shown_sd=rate * shown.sd)
    places = [each.visit.places for each in given if each.visit and each.visit.places]
    lacking = _unexpected(frame, first, early, sizes)
    frame = replace(frame, unexpected=lacking)
    line = line_of(frame, opening, late)
    readings = readings_of([release.answers for release in given], line)
    told = Told.of(last, shape, seen, rows=float(rows.sum()), excess=excess_of(readings))
    misfit = misfit_of(study, places, last, told)
    squares = sum(each.pool.square for each in visits)
    longer = longer_of(readings, frame.whole * max(squares / rows.sum(), TINY))
    frame = replace(frame, misfit=misfit, tail=longer.mean, tail_sd=longer.sd)
    evidence = _evidence(study, [each.pool for each in visits], frame)
    must_be_finite(frame.map, frame.start, frame.first, frame.whole)
    must_be_finite(frame.doubt(), np.linalg.inv(frame.doubt()))
    must_be_finite(evidence.grams, evidence.moments, evidence.moment_sd, inverse)
    return evidence


class _Openings(NamedTuple):
    first: Opening  # the first answer
    opening: Opening  # what the last corrections follow
    early: Sequence[Sequence[Answer]]  # talks up to it
    late: Sequence[Sequence[Answer]]  # talks from it on
    sizes: Sizes


def _openings(study: Study, given: Sequence[Release], correction: int) -> _Openings:
    """What last corrections follow, and slopes as large as all visits tell that they are."""
    opening, before = opening_of(study, given, correction)
    early = [release.answers[: 1 + before] for release in given]
    late = [release.answers[before:] for release in given if len(release.answers) > before]
    first = first_opening(study, given)
    sizes = sizes_of(first, opening, early, late)
    if sizes.factor != 1:
        first = first_opening(study, given, slopes=sizes.factor)
        opening, _ = opening_of(study, given, correction, slopes=sizes.factor)
    return _Openings(first, opening, early, late, sizes)


def _shape(
    talks: Sequence[Sequence[Answer]], opening: Opening, known: Known, inverse: Array
) -> Shape:
    """What all holders' corrections say together, those of each visit added up."""
    latest = max(len(talk) for talk in talks)
    rounds = [[talk[k] for talk in talks if len(talk) > k] for k in range(1, latest)]
    start = rounds[-1][0].question.start
    pools = [together([Pool.of(answer) for answer in answers]) for answers in rounds]
    apart = [inverse @ (start - answers[0].question.start) for answers in rounds]
    expected = opening.answer.residual
    return shape_of(pools, apart, known, residual=expected, intercept=opening.intercept)


def _attenuation(
    frame: Frame, opening: Opening, known: Known, shape: Shape, whole: Array
) -> Array | None:
    """By how much X'r per row is too small, in the frame's columns.

    It is the first correction's, whose offset the first answer was: later offsets are nearer, and
    rest on more of X'X. Of the error of X'X, corrections leave the share that they do of its
    variance.
    """
    if opening.answer.attenuation is None or frame.readings is None:
        return None
    left = float(np.mean(shape.known.variance) / np.mean(known.variance))
    share = left * float(frame.readings.weights[0]) * frame.inside
    return np.asarray(share * whole.T @ opening.answer.attenuation)


def _yielded(frame: Frame, pools: Sequence[Pool], opening: Opening) -> Array:
    """The first answer's covariance, wider where all holders' corrections contradict it."""
    pool = together(pools)
    mean = np.linalg.inv(frame.map) @ (frame.first - frame.start)
    residual = max(pool.square, 0.0) / pool.rows
    return yielded(pool, frame.covariance, mean, residual, opening.reach)


def _unexpected(
    frame: Frame, first: Opening, talks: Sequence[Sequence[Answer]], sizes: Sizes
) -> Array:
    """What the covariance of the answer that is a prior lacks, in the frame's columns.

    What the first answer did not expect of slopes that noise hides and, beside an intercept, of
    flat directions; and, where corrections went into a later answer, what X'X as far as it is sure
    leaves of them.
    """
    across = np.linalg.inv(frame.map) @ first.map
    shown = frame.told
    seen = across.T @ (shown.gram + FLAT * shown.sd * np.eye(len(shown.gram))) @ across
    own = first.stretch.covariance
    lacking = larger_of(first, sizes.larger)
    if first.intercept:
        flat = unexpected_of(own, first.stretch.known.gram, seen)
        lacking = lacking + sizes.flat * flat
    if max(len(talk) for talk in talks) > 1:
        step = step_of(first, talks)
        size = step.pool.rows * step.rate / frame.rate
        sure = size * across.T @ frame.sure @ across
        pool = replace(step.pool, gram=sure)
        _, careful = update(pool, step.prior + lacking, step.mean, step.left)
        values, vectors = np.linalg.eigh(careful - step.covariance)
        lacking = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return np.asarray(across @ lacking @ across.T)


def _errors(pools: Sequence[Pool]) -> tuple[float, float]:
    """Variance of corrections along a mapped column: by sampling, and by noise."""
    rows = sum(pool.rows for pool in pools)
    size = sum(float(np.trace(pool.gram)) for pool in pools) / len(pools[0].moment)
    size = max(size, 0.1 * rows)
    sampling = max(sum(pool.square for pool in pools), 0.0) / rows / size
    return sampling, sum(pool.moment_sd**2 for pool in pools) / size**2


def _evidence(study: Study, pools: list[Pool], frame: Frame) -> Evidence:
    noisy = any(pool.count_sd for pool in pools)
    gram_sd = np.array([pool.gram_sd for pool in pools])
    return Evidence(
        grams=np.array([pool.gram for pool in pools]),
        moments=np.array([pool.moment for pool in pools]),
        gram_sd=gram_sd,
        off_diagonal_sd=gram_sd / np.sqrt(2),
        moment_sd=np.array([pool.moment_sd for pool in pools]),
        counts=np.array([pool.rows for pool in pools]),
        count_sd=np.array([pool.count_sd for pool in pools]) if noisy else None,
        squares=np.array([pool.square for pool in pools]),
        square_sd=np.array([pool.square_sd for pool in pools]),
        intercept=study.intercept,
        delta=study.delta,
        frame=frame,
    )
