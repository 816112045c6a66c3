r"""What people read off a fit: how rows are spread, R² and standardised coefficients.

Rows count by α², the square of what shrinking left of their length; W = Σα² is the intercept's
entry of X'X. With F the covariance of the columns and v the variance of the response, both so
weighted, slopes β explain R² = β'Fβ/v. Without an intercept both are about zero.

R² is estimated by β̄'F̄β̄/v̂, β̄ the posterior mean of the slopes. To first order Wβ'Fβ moves by
2θ'dz − θ'dSθ, θ being the slopes with the intercept that makes their mean zero, and Wv by
dy'y − 2ȳ dz₀. So the noise of the releases gives the estimate a variance that is known. Sampling
adds, with m = x'θ, A = E[m²] and B = v − A, all over rows as they count,

    (4B³E[α²m²] + B²E[α²(m² − A)²] + 2A²B²E[α²]) / (Wv⁴),

to first order: 4R²(1 − R²)²/n [Olkin and Finn 1995] where rows are normal and whole. The means are
taken over the law of rows that the release tells (families/law.py), in which a row's α is known;
of very many columns, or without an intercept, they are those of normal rows. (Draws of θ with F
held fixed would count the noise of X'X twice; draws of σ² as well would forget that what slopes
explain, residuals do not: their intervals cover 80 to 85 %.)

Several visits publish residuals instead of responses: R² is E/(E + σ²) with σ² of residuals and
E = β̄'Fβ̄ + tr(FC), the posterior mean of β'Fβ. C goes with the mean: X'X and the first answer are
taken at their word. What widens intervals for a line that is not straight is no part of what slopes
explain, and where little is told it would make E as large as it likes. Slopes are read off
residuals, which the noise of X'X hardly touches, so the errors of β, F and σ² are taken as
independent. Residuals are meant as they are, of which bounds cut the tails off: σ² is what visits
tell times what these leave out of longer ones (`tails.py`). To first order R² moves by
(σ²dE − E dσ²)/(E + σ²)² with Var(E) = 4β'FCFβ + 2tr(FCFC) + 2E²/W + what noise of X'X adds, where C
is the posterior's covariance of slopes, widened as it is. Without noise and tails this is the
sampling variance above.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from tacit.analyst.evidence import Evidence
from tacit.analyst.posterior.laws import Draws, Mixture, Outcome
from tacit.analyst.posterior.pooled import Pooled
from tacit.analyst.posterior.source import of_columns, prior_of_columns
from tacit.analyst.posterior.units import Units, user_units
from tacit.study.submodel import of_terms, term_names

if TYPE_CHECKING:
    from tacit.analyst.posterior.posterior import Posterior

Array = NDArray[np.float64]

MOST_COLUMNS = 100
"""Columns up to which the law of rows is built for R²: more take seconds."""
UNSURE = 0.5
LEAST_EXPLAINED = 0.1
"""R² is told roughly where less than this share of it is sure, and where that may matter: its
interval of 90 % reaches above the second. Of runs on public tables that lost half of what can be
explained most are so, of the others few (docs/accuracy.md)."""
ROUGH = (
    "How much the features explain is told roughly only (R2 {low:.2f} to {high:.2f}): the line may "
    "miss half of what there is to explain."
)


@dataclass(frozen=True)
class Explained:
    """R²: the share of the response's variance that the slopes explain, with an interval."""

    mean: float
    low: float
    high: float

    @property
    def is_rough(self) -> bool:
        """Whether half of it is unsure, were it the interval of 90 %."""
        return self.low < UNSURE * self.mean and self.high > LEAST_EXPLAINED


@dataclass(frozen=True)
class Response:
    """Variance of the response over rows as they count, and of the noise of that."""

    variance: float
    noise: float


def mean_row(pooled: Pooled) -> Array:
    """The mean encoded row over rows as they count; the first column is the intercept."""
    mean: Array = pooled.gram[0] / max(float(pooled.gram[0, 0]), 1e-12)
    return mean


def spread_of(pooled: Pooled, *, intercept: bool, rate: float = 1.0) -> Array:
    """F: covariance of the columns over rows as they count, about zero without an intercept.

    X'X of several visits is κ times that of rows (`Frame.rate`), which no intercept's entry tells.
    """
    spread: Array = pooled.gram / _weight(pooled, intercept=intercept, rate=rate)
    if not intercept:
        return spread
    mean = mean_row(pooled)
    return spread - np.outer(mean, mean)


def explained(posterior: "Posterior", probability: float) -> Explained | None:
    """R² with an interval; None where y'y or the statistics are not at hand."""
    pooled = posterior.pooled
    source = posterior.source
    if pooled is None or source is None or posterior.model.d == int(posterior.model.intercept):
        return None
    if posterior.family is not None:  # a share of variance is a straight line's
        return None
    if source.evidence.frame is not None:
        return _explained_by_visits(posterior, pooled, source.evidence, probability)
    response = response_of(pooled, source.evidence)
    if response is None:
        return None
    intercept = posterior.model.intercept
    slopes = posterior.mean("scaled").copy()
    if intercept:
        slopes[0] = -mean_row(pooled)[1:] @ slopes[1:]
    weight = _weight(pooled, intercept=intercept)
    share = float(slopes @ (pooled.gram / weight) @ slopes) / response.variance
    size = float(slopes @ slopes)
    evidence = source.evidence
    noise = 4 * float(np.sum(evidence.moment_sd**2)) * size
    noise += float(np.sum(evidence.gram_sd**2)) * size**2
    noise = noise / weight**2 + share**2 * response.noise
    sampling = _sampling(posterior, pooled, slopes, response.variance)
    return _within(share, math.sqrt(noise / response.variance**2 + sampling), probability)


def rough_of(posterior: "Posterior") -> str:
    """What a reader should know of R²: a sentence, or nothing."""
    share = explained(posterior, 0.9)
    return ROUGH.format(low=share.low, high=share.high) if share and share.is_rough else ""


def _sampling(posterior: "Posterior", pooled: Pooled, slopes: Array, variance: float) -> float:
    """Variance of R² by sampling."""
    model = posterior.model
    if not model.intercept or model.d > MOST_COLUMNS:
        weight = _weight(pooled, intercept=model.intercept)
        share = min(float(slopes @ pooled.gram @ slopes) / weight / variance, 1.0)
        return 4 * share * (1 - share) ** 2 / pooled.rows
    from tacit.analyst.families.law import law_of

    rows = law_of(model, pooled.gram).rows
    counts = _counts(posterior, pooled, rows)
    squares = (rows @ slopes) ** 2
    signal = float(np.mean(squares))
    residual = max(variance - signal, 0.0)
    moved = 4 * residual**3 * float(np.mean(counts * squares))
    moved += residual**2 * float(np.mean(counts * (squares - signal) ** 2))
    moved += 2 * (signal * residual) ** 2 * float(np.mean(counts))
    return moved / _weight(pooled, intercept=True) / variance**4


def _counts(posterior: "Posterior", pooled: Pooled, rows: Array) -> Array:
    """α² of rows; columns of the study that a sub-model leaves out have their mean length."""
    lengths = np.sum(rows**2, axis=1)
    if posterior.source is not None and posterior.model.d < posterior.study.d:
        traces = np.trace(posterior.source.evidence.grams, axis1=1, axis2=2)
        others = float(traces.sum()) - float(np.trace(pooled.gram))
        lengths = lengths + max(others, 0.0) / _weight(pooled, intercept=True)
    counts: Array = np.minimum(1.0, posterior.study.row_radius**2 / lengths)
    return counts


def _within(share: float, sd: float, probability: float) -> Explained:
    """A share with its interval, between 0 and 1."""
    reach = sd * float(ndtri((1 + probability) / 2))
    return Explained(
        mean=min(max(share, 0.0), 1.0),
        low=min(max(share - reach, 0.0), 1.0),
        high=min(max(share + reach, 0.0), 1.0),
    )


def _explained_by_visits(
    posterior: "Posterior", pooled: Pooled, evidence: Evidence, probability: float
) -> Explained | None:
    """R² of a study of several visits, which publishes residuals."""
    outcome = posterior.outcome
    residual = _residual(outcome, evidence)
    if not residual > 0:
        return None
    intercept = posterior.model.intercept
    spread = spread_of(pooled, intercept=intercept, rate=rate_of(evidence))
    slopes = outcome.mean()
    along = spread @ slopes
    signal = _signal(posterior, pooled, evidence)
    weight = _weight(pooled, intercept=intercept, rate=rate_of(evidence))
    noise = (pooled.rows * _mapped_noise(posterior, evidence, slopes)) ** 2
    unsure = outcome.covariance()
    twice = spread @ unsure
    of_signal = 4 * float(along @ unsure @ along) + 2 * float(np.sum(twice * twice.T))
    of_signal += 2 * signal**2 / weight + noise / weight**2
    tail, tail_sd = _tail(evidence)
    of_residual = max(math.exp(2 * tail) * _doubt(outcome), 2 * residual**2 / weight)
    of_residual += (tail_sd * residual) ** 2
    total = signal + residual
    sd = math.sqrt(residual**2 * of_signal + signal**2 * of_residual) / total**2
    return _within(signal / total, sd, probability)


def _signal(posterior: "Posterior", pooled: Pooled, evidence: Evidence) -> float:
    """E of several visits: the posterior mean of β'Fβ."""
    spread = spread_of(pooled, intercept=posterior.model.intercept, rate=rate_of(evidence))
    slopes = posterior.outcome.mean()
    unsettled = float(np.sum(spread * _settled(posterior, pooled, evidence)))
    return max(float(slopes @ spread @ slopes), 0.0) + max(unsettled, 0.0)


def _settled(posterior: "Posterior", pooled: Pooled, evidence: Evidence) -> Array:
    """Covariance of θ about the mean of a fit that takes X'X, and what it was told, at its word."""
    source = posterior.source
    kept = of_terms(posterior.study, term_names(posterior.asked), posterior.asked.response)
    evidence = of_columns(evidence, kept.places)
    frame = evidence.frame
    if frame is None or source is None:  # pragma: no cover - who asks has checked
        raise AssertionError
    stated = prior_of_columns(source.prior, kept.places)
    prior = frame.prior(stated, at_its_word=True)
    gram = pooled.rows * frame.gram
    noise = float(np.sum(evidence.moment_sd**2)) * np.eye(len(gram))
    told = gram @ np.linalg.solve(pooled.noise_variance * gram + noise, gram)
    covariance = np.linalg.inv(np.linalg.inv(prior.covariance) + told)
    settled: Array = frame.map @ covariance @ frame.map.T
    return settled


def _mapped_noise(posterior: "Posterior", evidence: Evidence, slopes: Array) -> float:
    """Sd of what noise adds to θ'Sθ, per row: X'X is that of all visits, with its noise."""
    frame = evidence.frame
    if frame is None:  # pragma: no cover - who asks has checked
        raise AssertionError
    whole = np.zeros(posterior.study.d)
    columns = posterior.study.columns
    first = int(posterior.model.intercept)
    names = posterior.model.columns[first:]
    whole[[columns.index(name) for name in names]] = slopes[first:]
    mapped = np.linalg.solve(frame.map, whole)
    return frame.gram_sd * float(mapped[first:] @ mapped[first:])


def _doubt(outcome: Outcome) -> float:
    """Variance of the residual variance; 0 where an outcome has one value of it."""
    if isinstance(outcome, Draws):
        return float(np.var(outcome.noise_variance))
    if isinstance(outcome, Mixture):
        mean = outcome.residual_variance()
        return float(outcome.weights @ (outcome.noise_variances - mean) ** 2)
    return 0.0


def response_of(pooled: Pooled, evidence: Evidence) -> Response | None:
    """Variance of the response, scaled; None where y'y is not published, or of residuals alone."""
    if evidence.squares is None or evidence.square_sd is None or evidence.frame is not None:
        return None
    weight = _weight(pooled, intercept=evidence.intercept)
    mean = float(evidence.moments[:, 0].sum()) / weight if evidence.intercept else 0.0
    noise = float(np.sum(evidence.square_sd**2))
    noise += 4 * mean**2 * float(np.sum(evidence.moment_sd**2))
    sd = math.sqrt(noise) / weight
    variance = float(evidence.squares.sum()) / weight - mean**2
    return Response(variance=max(variance, sd, 1e-9), noise=sd**2)


def standardised_units(posterior: "Posterior") -> Units | None:
    """Slopes in standard deviations of the response per standard deviation of their column.

    A column is one that the user's units name. None where the releases do not tell, or where
    coefficients are implied that no column has.
    """
    pooled = posterior.pooled
    model = posterior.model
    user = user_units(model)
    if pooled is None or posterior.source is None or len(user.names) != model.d:
        return None
    if posterior.family is not None:
        return None
    evidence = posterior.source.evidence
    variance = _response_variance(posterior, pooled, evidence)
    if variance is None:
        return None
    # x'θ = x_user'Aθ/unit: the user's columns are unit·(A')⁻¹ times the encoded ones.
    to_user = user.response * np.linalg.inv(user.matrix)
    spread = spread_of(pooled, intercept=model.intercept, rate=rate_of(evidence))
    spread = to_user.T @ spread @ to_user
    sizes = np.sqrt(np.maximum(np.diag(spread), 0.0))
    first = int(model.intercept)
    factors = sizes / (user.response * math.sqrt(variance))
    return Units(
        names=user.names[first:],
        matrix=factors[first:, None] * user.matrix[first:],
        offset=factors[first:] * user.offset[first:],
        response=1 / math.sqrt(variance),
    )


def _response_variance(posterior: "Posterior", pooled: Pooled, evidence: Evidence) -> float | None:
    """Variance of the response, scaled; with visits what slopes explain and what they leave."""
    if evidence.frame is None:
        response = response_of(pooled, evidence)
        return None if response is None else response.variance
    residual = _residual(posterior.outcome, evidence)
    return _signal(posterior, pooled, evidence) + residual if residual > 0 else None


def _weight(pooled: Pooled, *, intercept: bool, rate: float = 1.0) -> float:
    """W of κX'X, or κ times the number of rows without an intercept."""
    return max(float(pooled.gram[0, 0]), 1e-12) if intercept else rate * pooled.rows


def _tail(evidence: Evidence) -> tuple[float, float]:
    """Logarithm of residuals' variance over that which visits tell, and its sd."""
    frame = evidence.frame
    return (0.0, 0.0) if frame is None else (frame.tail, frame.tail_sd)


def _residual(outcome: Outcome, evidence: Evidence) -> float:
    """Variance of residuals as they are, tails included."""
    tail, _ = _tail(evidence)
    return math.exp(tail) * outcome.residual_variance()


def rate_of(evidence: Evidence) -> float:
    """κ; 1 of one visit."""
    return 1.0 if evidence.frame is None else evidence.frame.rate
