r"""Releases of several visits as evidence: one set of statistics per holder, in mapped columns.

All corrections of a study map rows alike, so a holder's answers are noisy readings of the same
sums: their noise is averaged, and the rows' own error enters once. The evidence is that of the
regression of r = y − x'θ₀ on u = T'x, whose coefficients b tell θ = θ₀ + Tb. The first answer,
which has other columns and other shrunk rows, is the prior of b, widened by the sampling error that
it shares with the rest, and where the rest contradicts it (`visits/conflict.py`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.misfit import Told, misfit_of, pull_of, unexpected_of
from tacit.analyst.posterior.differing import Differing
from tacit.analyst.posterior.laws import Draws, Outcome, Student
from tacit.analyst.posterior.pooled import Pooled
from tacit.analyst.prior import Prior
from tacit.analyst.readings import Readings
from tacit.analyst.scatter import scatter_of
from tacit.analyst.shown import Shown, seen_of, shown_of, sure_of
from tacit.analyst.streams import Batches
from tacit.analyst.tails import excess_of, line_of, longer_of, readings_of
from tacit.errors import ReleaseError
from tacit.release.statistics import Answer, Release
from tacit.study import Study
from tacit.visits.ask import check_questions
from tacit.visits.conflict import yielded
from tacit.visits.estimate import update
from tacit.visits.opening import Opening, first_opening, opening_of, step_of
from tacit.visits.pool import Known, Pool, Shape, joined, shape_of, together
from tacit.visits.sound import must_be_finite, numbers_follow

Array = NDArray[np.float64]

LEAST_NOISE = 1e-3
"""Smallest share of a first answer's variance that is taken for noise."""
DOUBTS = (1.0, 4.0, 16.0)
"""How many times wider than it says the first answer may be as a prior: it rests on what is usual
of slopes, and intervals are to hold where that is wrong."""
TINY = 1e-12
FLAT = 2.0
"""Standard deviations of its noise by which a direction may be longer than corrections show it."""
SURELY = math.sqrt(1.5)
"""Standard deviations of its noise at which half of what rows hold along a direction counts: noise
of sd s about λ raises the mean of 1/λ², a slope's variance, by 3(s/λ)², to second order."""


@dataclass(frozen=True)
class Frame:
    """θ = start + map·b: what the coefficients of mapped columns say of the study's."""

    map: Array  # (d, d): T
    start: Array  # (d,): θ₀
    first: Array  # (d,): the first answer, in the study's columns
    covariance: Array  # (d, d): its covariance, in mapped columns
    shared: float  # sampling variance along a mapped column, which corrections share with it
    later: float  # variance that the corrections' noise adds there
    gram: Array  # (d, d): X'X per row, as all visits tell it
    gram_sd: float  # of a diagonal entry of it
    whole: float = 1.0  # residual variance over that of cut residuals
    rate: float = 1.0  # κ/level: how much of a change of the coefficients X'r shows, over X'X
    level: float = 1.0  # what shrunk rows kept of their squared length
    misfit: Array | None = None  # (d, d): covariance of the best line about this one, if another
    unexpected: Array | None = None  # (d, d): what `covariance` lacks where the first prior pulls
    readings: Readings | None = None  # how visits were read; None of files from before
    shown: Array | None = None  # (d, d): X'X per row as corrections show it; `gram` where None
    shown_sd: float = 0.0  # of a diagonal entry of it
    attenuation: Array | None = None  # (d,): by which X'r per row is too small; None where unknown
    tail: float = 0.0  # logarithm of residuals' variance over that which visits tell
    tail_sd: float = 0.0
    surely: float = SURELY  # sds of noise at which half of X'X counts; 0: it is taken at its word

    def between(self, spread: Array, evidence: Evidence) -> Array:
        """Covariance that holders' differences give an answer of all rows, in mapped columns.

        Coefficients differ with this covariance, (d, d), in the study's columns. Least squares of
        all rows are off by (Σ S_j)⁻¹ Σ S_jb_j.
        """
        inverse = np.linalg.inv(self.map)
        differences = inverse @ spread @ inverse.T
        rows = np.ones(evidence.holders) if evidence.counts is None else evidence.counts
        own = self._own_grams(evidence, rows)
        total = np.linalg.inv(rows.sum() * self.gram)
        between: Array = total @ np.sum(own @ differences @ own, axis=0) @ total
        return (between + between.T) / 2

    def _own_grams(self, evidence: Evidence, rows: Array) -> Array:
        """Every holder's S_j, drawn towards its rows' part of the common one as far as noise goes.

        Squares are taken of it, in which noise would count as a difference: the share that is kept
        of how a holder's lies apart is that of James and Stein, none where noise explains it all.
        """
        common = rows[:, None, None] * self.gram
        apart = evidence.grams - common
        d = evidence.d
        noise = d * evidence.gram_sd**2 + d * (d - 1) * evidence.off_diagonal_sd**2
        size = np.maximum(np.sum(apart**2, axis=(1, 2)), TINY)
        kept = np.maximum(0.0, 1 - noise / size)
        own: Array = common + kept[:, None, None] * apart
        return own

    def prior(
        self, prior: Prior, between: Array | None = None, *, at_its_word: bool = False
    ) -> Prior:
        """A prior of θ as one of b; the default one is the first answer's instead.

        `between` is what holders' differences give the first answer and corrections alike. Widths
        leave to it what corrections do not tell, and it may be wider than it says; a mean weighs
        the two as they are.
        """
        inverse = np.linalg.inv(self.map)
        features = self.map.T @ prior.feature_scale @ self.map
        if prior.by_spread:
            mean = inverse @ (self.first - self.start)
            apart = 0.0 if between is None else between
            return replace(
                prior,
                mean=mean,
                covariance=self.doubt() + apart if at_its_word else self.doubt(between),
                by_spread=False,
                widths=(1.0,) if at_its_word else DOUBTS,
                feature_scale=features,
            )
        covariance = inverse @ prior.covariance @ inverse.T
        return replace(
            prior,
            mean=inverse @ (prior.mean - self.start),
            covariance=(covariance + covariance.T) / 2,
            feature_scale=features,
        )

    def unattenuated(self, evidence: Evidence) -> Evidence:
        """The evidence of a straight line, X'r as if X'X had no error in common with its offset."""
        if self.attenuation is None:
            return evidence
        rows = np.ones(evidence.holders) if evidence.counts is None else evidence.counts
        return replace(evidence, moments=evidence.moments + rows[:, None] * self.attenuation)

    @property
    def inside(self) -> float:
        """κ: how much of a change of the coefficients cut residuals show."""
        return self.rate * self.level

    @property
    def told(self) -> Shown:
        """X'X per row that a fit takes rows to have; at its word it is that of all visits."""
        if self.shown is None or self.surely == 0:
            return Shown(gram=self.gram, sd=self.gram_sd)
        return Shown(gram=self.shown, sd=self.shown_sd)

    @property
    def sure(self) -> Array:
        """X'X per row as far as it is told for sure: λ³/(λ² + (`surely`·sd)²) along each direction.

        A correction is a small step, so that an error in X'X hardly moves it, and hardly shows in
        its own noise: where rows may as well hold nothing, a step that is taken at its word would
        seem to be well known. So widths are those of what is sure; but a step divided by too small
        an X'X goes too far, so the mean is that of X'X at its word (`fit.py`).
        """
        return sure_of(self.told, self.surely)

    def doubt(self, between: Array | None = None) -> Array:
        r"""Covariance of the first answer as a prior: what it tells that corrections do not.

        Let S be the covariance that both share, of sampling and of holders that differ, C₁ and C₂
        the noise's in the first answer and in the corrections. Both together tell
        (S + (C₁⁻¹ + C₂⁻¹)⁻¹)⁻¹, the corrections alone (S + C₂)⁻¹: the prior's precision is the
        difference. Where noise decides it is C₁⁻¹; where the rest does, it is nothing.
        """
        values, vectors = np.linalg.eigh(self.covariance)
        first = np.maximum(values - self.shared, LEAST_NOISE * values)
        both = (vectors * (self.shared + first * self.later / (first + self.later))) @ vectors.T
        alone = (self.shared + self.later) * np.eye(len(values))
        apart = np.zeros_like(alone) if between is None else between
        told = np.linalg.inv(both + apart) - np.linalg.inv(alone + apart)
        root = vectors * np.sqrt(values)
        shares, axes = np.linalg.eigh(root.T @ told @ root)
        wide = root @ axes
        doubt: Array = (wide / np.clip(shares, LEAST_NOISE, 1.0)) @ wide.T
        return doubt

    def outcome(self, outcome: Outcome, first: Array | None = None) -> Outcome:
        """What is known of b as what is known of θ.

        `first` is the first answer's covariance, where that was b's prior. Residuals are those of
        rows as they are: what a method raises the variance of shrunk ones by (N10) is taken back.
        """
        if isinstance(outcome, Draws):
            return replace(
                outcome,
                theta=self._moved(outcome.theta),
                noise_variance=self.whole * outcome.noise_variance,
            )
        if isinstance(outcome, Student):
            scale = None if outcome.scale is None else self._widened(outcome.scale, first)
            return replace(
                outcome,
                location=self._moved(outcome.location),
                scale=scale,
                noise_variance=self.whole * outcome.noise_variance,
            )
        return replace(
            outcome,
            locations=self._moved(outcome.locations),
            covariances=self._widened(outcome.covariances, first),
            noise_variances=self.whole / outcome.unshrunk * outcome.noise_variances,
            unshrunk=self.whole,
            differing=None if outcome.differing is None else self._differing(outcome.differing),
        )

    def _differing(self, differing: Differing) -> Differing:
        """Holders' own coefficients; their spread is in the study's columns already."""
        return replace(
            differing,
            locations=self._moved(differing.locations),
            covariances=self._spread(differing.covariances),
            within=self._spread(differing.within),
        )

    def pooled(self, pooled: Pooled) -> Pooled:
        """What is said of all rows together, in the study's columns."""
        inverse = np.linalg.inv(self.map)
        return replace(
            pooled, gram=inverse.T @ pooled.gram @ inverse, sampling=self._spread(pooled.sampling)
        )

    def evidence(self, evidence: Evidence) -> Evidence:
        """The evidence in the study's columns, with the noise on each column's spread.

        For readings that ask no more of the noise: its law is not that of a release.
        """
        inverse = np.linalg.inv(self.map)
        grams = inverse.T @ evidence.grams @ inverse
        grams = (grams + grams.swapaxes(1, 2)) / 2
        total = grams.sum(axis=0)
        columns = inverse.copy()
        if evidence.intercept:
            columns = columns - np.outer(inverse[:, 0], total[0] / max(total[0, 0], 1.0))
        noise = float(np.sqrt(np.sum(evidence.gram_sd**2)))
        return replace(
            evidence,
            grams=grams,
            moments=evidence.moments @ inverse + grams @ self.start,
            column_sd=noise * np.sum(columns**2, axis=0),
            frame=None,
        )

    def _moved(self, locations: Array) -> Array:
        return np.asarray(self.start + locations @ self.map.T)

    def _widened(self, covariance: Array, first: Array | None) -> Array:
        """What is not known of b, were the relation straight, as what is not of the best line."""
        whole = covariance if self.misfit is None else covariance + self.misfit
        if first is not None and self.unexpected is not None:
            whole = whole + pull_of(covariance, first, self.unexpected)
        return self._spread(whole)

    def _spread(self, covariance: Array) -> Array:
        return np.asarray(self.map @ covariance @ self.map.T)


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
    opening, before = opening_of(study, given, correction=latest - 1)
    talks = [talk[before:] for talk in talks if len(talk) > before]
    whole_talk = next(talk for talk in talks if len(talk) == latest - before)
    last = whole_talk[-1].question
    start = last.start
    matrix = last.matrix
    inverse = np.linalg.inv(matrix).astype(float)
    first = first_opening(study, given)
    scatter = scatter_of(first, [release.answers[0] for release in given])
    across = inverse @ first.map
    turn = inverse @ opening.map  # the question's columns are those of the first answer, or near
    whole = np.linalg.solve(opening.question.matrix, matrix).astype(float)
    known = opening.answer.seen.mapped(whole)
    shape = _shape(talks, opening, known, inverse)
    visits = []
    for talk in talks:
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
        readings=Readings.of(opening, [answer.question for answer in whole_talk[1:]], visits),
    )
    frame = replace(
        frame,
        attenuation=_attenuation(frame, opening, known, shape, whole),
        covariance=_yielded(frame, shaped),
    )
    seen = seen_of(visits)
    shown = shown_of(known, seen, shape.level)
    frame = replace(frame, shown=rate * shown.gram, shown_sd=rate * shown.sd)
    places = [each.visit.places for each in given if each.visit and each.visit.places]
    lacking = _unexpected(frame, first, [release.answers[: 1 + before] for release in given])
    frame = replace(frame, unexpected=lacking)
    line = line_of(frame, opening, talks)
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


def _yielded(frame: Frame, pools: Sequence[Pool]) -> Array:
    """The first answer's covariance, wider where all holders' corrections contradict it."""
    pool = together(pools)
    mean = np.linalg.inv(frame.map) @ (frame.first - frame.start)
    return yielded(pool, frame.covariance, mean, max(pool.square, 0.0) / pool.rows)


def _unexpected(frame: Frame, first: Opening, talks: Sequence[Sequence[Answer]]) -> Array:
    """What the covariance of the answer that is a prior lacks, in the frame's columns.

    What the first answer did not expect of flat directions; and, where corrections went into a
    later answer, what X'X as far as it is sure leaves of them.
    """
    across = np.linalg.inv(frame.map) @ first.map
    shown = frame.told
    seen = across.T @ (shown.gram + FLAT * shown.sd * np.eye(len(shown.gram))) @ across
    own = first.stretch.covariance
    lacking = unexpected_of(own, first.stretch.known.gram, seen)
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
