r"""Effects: what a posterior says of contrasts, slopes and means that a user names.

An effect is a'θ. An entry of a belongs to a column, a product of factors: those that the question
fixes are numbers, and the rest is averaged over rows, so that a = Tm with m the mean encoded row.
The releases tell m from the intercept's row of X'X, over rows as they count, up to noise and
sampling: m_k moves by (dS_0k − m_k dS_00)/W, and Cov(m) = F/W + that of the noise (F, W:
reading.py), which the interval includes. Of a family θ is mapped to its coefficients first.

One visit reads θ off the same row: with noise dS on it, ẑ_0 = S_0'θ + … is off Ŝ_0'θ by dS'θ among
others, and so is m'θ at the told m, as far as this noise is in what is not known of it. So m moves
with θ by −Cov(m, dS'θ)/Var(m'θ), without which a mean response would count that noise twice.
Several visits read θ off residuals of rows as they are, which it hardly touches.
"""

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import eval_legendre

from tacit.analyst.evidence import Evidence
from tacit.analyst.posterior.frames import frame_class
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.posterior.question import Case, Question, Value, read
from tacit.analyst.posterior.reading import mean_row, spread_of
from tacit.analyst.posterior.source import of_columns
from tacit.analyst.posterior.text_table import text_table
from tacit.analyst.posterior.units import scaled_units
from tacit.errors import PosteriorError
from tacit.study.submodel import of_terms, term_names
from tacit.study.terms import Part, Product
from tacit.study.transforms import FUNCTIONS

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

DRAWS = 40_000
"""Draws of an effect whose weights are themselves uncertain."""
COMPARED = (
    "A contrast compares rows that differ in the feature named and agree in every other feature of "
    "the model: it is what changing that feature would do only if nothing that bears on both it "
    "and the response is missing from the model."
)
AVERAGED = (
    "What a question leaves open is averaged over the rows of all holders, by how much each row "
    "counts in the releases."
)


@dataclass(frozen=True)
class Effect:
    """The answer to one question, in the response's units."""

    question: str
    mean: float
    sd: float
    low: float
    high: float
    positive: float  # probability that it is above zero


@dataclass(frozen=True)
class Effects:
    """Answers, and what they take for granted."""

    response: str
    probability: float
    rows: tuple[Effect, ...]
    assumptions: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "response": self.response,
            "probability": self.probability,
            "effects": [asdict(row) for row in self.rows],
            "assumptions": list(self.assumptions),
        }

    def to_pandas(self) -> "pd.DataFrame":
        """A data frame with a row for each question."""
        frame = frame_class("to_pandas()")([asdict(row) for row in self.rows])
        return frame.set_index("question")

    def __str__(self) -> str:
        tail = 100 * (1 - self.probability) / 2
        heads = [self.response, "mean", "sd", f"{tail:g}%", f"{100 - tail:g}%", "P(>0)"]
        lines = [_cells(row) for row in self.rows]
        return "\n".join([text_table([heads, *lines]), "", *self.assumptions])

    __repr__ = __str__


def _cells(row: Effect) -> list[str]:
    figures = (f"{figure:.4g}" for figure in (row.mean, row.sd, row.low, row.high))
    return [row.question, *figures, f"{row.positive:.3f}"]


def effects(posterior: Posterior, questions: Sequence[str], probability: float = 0.9) -> Effects:
    """Answer questions, each a text (question.py)."""
    if not 0 < probability < 1:
        raise PosteriorError(
            f"an interval's probability must lie between 0 and 1; got {probability}"
        )
    if not questions:
        raise PosteriorError('name at least one question, such as "age: 70 - 40"')
    asked = [read(text, posterior.model) for text in questions]
    rows = []
    is_averaged = False
    for question in asked:
        weights = _weights(posterior, question)
        is_averaged = is_averaged or bool(weights[:, 1:].any())
        rows.append(_effect(posterior, question, weights, probability))
    assumptions = []
    if any(question.other is not None for question in asked):
        assumptions.append(COMPARED)
    if is_averaged:
        assumptions.append(AVERAGED)
    return Effects(
        response=posterior.model.response.modelled,
        probability=probability,
        rows=tuple(rows),
        assumptions=tuple(assumptions),
    )


def _effect(posterior: Posterior, question: Question, weights: Array, probability: float) -> Effect:
    """a'θ with a = Tm, in the response's units."""
    centre, unit = posterior.model.response.mapping
    offset = centre if question.other is None else 0.0
    tails = np.array([(1 - probability) / 2, (1 + probability) / 2])
    outcome = posterior.outcome
    to_coefficients = posterior.linked(scaled_units(posterior.model))
    if not weights[:, 1:].any():
        fixed = unit * weights[:, 0][None]
        matrix = fixed @ to_coefficients.matrix
        shift = offset + fixed @ to_coefficients.offset
        low, high = outcome.quantiles(tails, matrix, shift)[0]
        return Effect(
            question=question.text,
            mean=float((matrix @ outcome.mean() + shift)[0]),
            sd=float(np.sqrt(matrix @ outcome.covariance() @ matrix.T)[0, 0]),
            low=float(low),
            high=float(high),
            positive=float(outcome.positive(matrix, shift)[0]),
        )
    rng = np.random.default_rng(0)
    theta, _ = outcome.sample(DRAWS, rng)
    beta = theta @ to_coefficients.matrix.T + to_coefficients.offset
    rows = _mean_rows(posterior, theta, rng)
    draws = offset + unit * np.sum((beta @ weights) * rows, axis=1)
    low, high = np.quantile(draws, tails)
    return Effect(
        question=question.text,
        mean=float(draws.mean()),
        sd=float(draws.std()),
        low=float(low),
        high=float(high),
        positive=float(np.mean(draws > 0)),
    )


def _mean_rows(posterior: Posterior, theta: Array, rng: np.random.Generator) -> Array:
    """Draws of m, the mean encoded row, one for each of θ."""
    pooled = posterior.pooled
    if pooled is None:  # pragma: no cover - `_weights` has looked
        raise AssertionError
    mean = mean_row(pooled)
    weight = float(pooled.gram[0, 0])
    covariance = spread_of(pooled, intercept=True) / weight
    along = theta @ mean
    along = along - along.mean()
    pull = np.zeros_like(mean)
    if posterior.source is not None:
        kept = of_terms(posterior.study, term_names(posterior.asked), posterior.asked.response)
        evidence = of_columns(posterior.source.evidence, kept.places)
        covariance = covariance + _noise_of_means(evidence, mean, pooled.rows) / weight**2
        pull = _pull(evidence, mean, theta.mean(axis=0), weight**2 * float(along.var()))
    covariance = covariance - float(along.var()) * np.outer(pull, pull)
    values, vectors = np.linalg.eigh(covariance[1:, 1:])
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    rows = np.ones((len(theta), len(mean)))
    rows[:, 1:] = mean[1:] + rng.standard_normal((len(theta), len(mean) - 1)) @ root.T
    rows[:, 1:] -= np.outer(along, pull[1:])
    return rows


def _pull(evidence: Evidence, mean: Array, theta: Array, variance: float) -> Array:
    """By how much m falls where m'θ rises, (d,), since both are read with one noise.

    `variance` is W²Var(m'θ) at the told m; this noise is no more than all of it.
    """
    if evidence.frame is not None:
        return np.zeros_like(mean)
    noisy = float(np.sum(evidence.off_diagonal_sd**2)) * theta
    noisy[0] *= 2  # on the diagonal
    shared: Array = (noisy - mean * noisy[0]) / max(variance, float(noisy @ theta), 1e-300)
    return shared


def _noise_of_means(evidence: Evidence, mean: Array, rows: float) -> Array:
    """W²Cov(m) by noise: that of the intercept's row of X'X, (d, d).

    Noise on the columns of a visit, u = T'x, is noise on the study's through B = T⁻¹; it is that
    which all visits together leave.
    """
    frame = evidence.frame
    back = np.eye(len(mean)) if frame is None else np.linalg.inv(frame.map)
    variance = float(np.sum(evidence.off_diagonal_sd**2))
    if frame is not None:
        variance = (rows * frame.gram_sd) ** 2 / 2
    first = back[:, 0]
    moved = back - np.outer(first, mean)
    along = moved.T @ first
    noise: Array = first @ first * moved.T @ moved + np.outer(along, along)
    return variance * noise


def _weights(posterior: Posterior, question: Question) -> Array:
    """T, (d, d): the first column belongs to what needs no average."""
    if question.is_slope:
        return question.factor * _slope(posterior, question)
    weights = _case_weights(posterior, question.case, question.text)
    if question.other is not None:
        weights = weights - _case_weights(posterior, question.other, question.text)
    return _told(posterior, question, question.factor * weights)


def _told(posterior: Posterior, question: Question, weights: Array) -> Array:
    """The weights, if the releases tell all the averages that they need."""
    model = posterior.model
    if weights[:, 1:].any() and (posterior.pooled is None or not model.intercept):
        raise PosteriorError(
            f"{question.text!r}: the releases tell no averages here: fix every other feature "
            "after `at`"
        )
    return weights


def _slope(posterior: Posterior, question: Question) -> Array:
    """T of one more unit of a numeric feature, which must enter as it is."""
    name = question.feature
    for product in posterior.model.products:
        for part in product.parts:
            if part.factor.of == name and not part.is_plain:
                raise PosteriorError(
                    f"{question.text!r}: {name!r} does not enter along a straight line: "
                    f'name two values, as "{name}: 70 - 40"'
                )
    ends = [
        _case_weights(posterior, question.case | {name: value}, question.text)
        for value in (0.0, 1.0)
    ]
    return _told(posterior, question, ends[1] - ends[0])


def _case_weights(posterior: Posterior, case: Case, text: str) -> Array:
    """T of the mean row where some features have given values."""
    model = posterior.model
    first = int(model.intercept)
    weights = np.zeros((model.d, model.d))
    if first:
        weights[0, 0] = 1.0
    places = _places(model.products, first)
    row = first
    for product in model.products:
        fixed = [part for part in product.parts if part.factor.of in case]
        open_parts = [part for part in product.parts if part.factor.of not in case]
        values = {part: _part_values(part, case[part.factor.of]) for part in fixed}
        for choice in itertools.product(*(range(part.width) for part in product.parts)):
            at = dict(zip(product.parts, choice, strict=True))
            factor = float(np.prod([values[part][at[part]] for part in fixed]))
            key = frozenset(part.columns[at[part]] for part in open_parts)
            if factor and key not in places:
                raise PosteriorError(
                    f"{text!r}: the releases do not tell the mean of {':'.join(sorted(key))}: "
                    f"fix {open_parts[0].factor.of!r} after `at`"
                )
            if factor:
                weights[row, places[key]] += factor
            row += 1
    return weights


def _places(products: Sequence[Product], first: int) -> dict[frozenset[str], int]:
    """Columns by the factors that they are products of; without any it is the intercept."""
    places = {frozenset[str](): 0}
    row = first
    for product in products:
        for names in itertools.product(*(part.columns for part in product.parts)):
            places[frozenset(names)] = row
            row += 1
    return places


def _part_values(part: Part, value: Value) -> Array:
    """The columns of a factor at one value of its feature."""
    if part.feature.range is None:
        return np.array([float(level == value) for level in part.levels])
    number = float(value)
    if part.factor.function is not None:
        number = float(FUNCTIONS[part.factor.function].forward(np.array(number)))
    middle, half = part.mapping
    mapped = (number - middle) / half
    if part.factor.degree == 1:
        return np.array([mapped])
    degree = part.factor.degree
    return np.array([eval_legendre(degree, mapped) if part.factor.centred else mapped**degree])
