r"""Frames: what is inferred in the mapped columns of corrections, in the study's own.

The evidence of several visits is that of the regression of r = y − x'θ₀ on u = T'x, whose
coefficients b tell θ = θ₀ + Tb (`visited.py`). A frame holds that map, the first answer as a prior
of b, and what is to be added to what a method says of b: how far the best line may lie from the
one that visits tell (`misfit.py`).
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.misfit import pull_of
from tacit.analyst.posterior.differing import Differing
from tacit.analyst.posterior.laws import Draws, Outcome, Student
from tacit.analyst.posterior.pooled import Pooled
from tacit.analyst.prior import Prior
from tacit.analyst.readings import Readings
from tacit.analyst.shown import Shown, sure_of

Array = NDArray[np.float64]

LEAST_NOISE = 1e-3
"""Smallest share of a first answer's variance that is taken for noise."""
DOUBTS = (1.0, 4.0, 16.0)
"""How many times wider than it says the first answer may be as a prior: it rests on what is usual
of slopes, and intervals are to hold where that is wrong. One that corrections went into rests on
them, and has yielded where they contradict what was before: it is taken at its word."""
TINY = 1e-12
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
    corrected: bool = False  # whether corrections went into the first answer
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
            surely = at_its_word or self.corrected
            mean = inverse @ (self.first - self.start)
            apart = 0.0 if between is None else between
            return replace(
                prior,
                mean=mean,
                covariance=self.doubt() + apart if at_its_word else self.doubt(between),
                by_spread=False,
                widths=(1.0,) if surely else DOUBTS,
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
