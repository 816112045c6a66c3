"""Plan: how wide intervals will be, from public quantities and a guess, before anybody publishes.

Rows are imagined evenly spread over the study's public domain, with a response that has the guessed
R² and a residual of normal law. Their statistics go through the real encoder and the default
method, with the noise that each ε would bring and without any, so the forecast is of the very
interval that `tacit fit` will print. It is a forecast: features that fill less of their ranges, or
depend on each other, give wider intervals.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.analyst.posterior.outlook import expected, widths
from tacit.analyst.posterior.posterior import Posterior
from tacit.errors import StudyError
from tacit.holder.statistics import statistics_of
from tacit.privacy.gaussian import EPSILON_RANGE
from tacit.rows.design import Design
from tacit.rows.table import table_of
from tacit.study import Study
from tacit.study.columns import Response
from tacit.study.transforms import FUNCTIONS, image

Array = NDArray[np.float64]

IMAGINED_ROWS = 20_000
PROBABILITY = 0.9
MOST_EPSILON = 20.0
"""Largest ε that is looked at: beyond it little is promised."""
EPSILON_STEP = 1.01
"""How closely the smallest ε that suffices is found, as a factor."""


@dataclass(frozen=True)
class Guess:
    """What the planner assumes of the data.

    How much features explain, and how much of their (typical) intervals they fill.
    """

    r_squared: float = 0.3
    fill: float = 1.0
    response_sd: float = 0.3  # in units of half the response's range


@dataclass(frozen=True)
class Forecast:
    """Expected widths of 90 % intervals at one ε, and the share of their variance that is noise.

    `widths` are in the user's units. Those by encoded column, `scaled_widths` and what sampling
    alone would leave of them, are for a numeric feature in units of the response's whole range over
    the feature's whole range.
    """

    epsilon: float
    names: tuple[str, ...]
    widths: Array
    scaled_sampling: Array
    scaled_widths: Array
    privacy_share: Array


def forecast(
    study: Study, rows: list[int], epsilons: list[float], guess: Guess | None = None
) -> list[Forecast]:
    """Forecast the intervals for holders with the given numbers of rows, at each ε."""
    if not rows or min(rows) < 1:
        raise StudyError("rows must list each holder's number of rows, such as 12000,8000,5000")
    agreed = study.secure_sum
    if agreed is not None and not agreed.least <= len(rows) <= len(agreed.holders):
        raise StudyError(
            f"rows must list {agreed.least} to {len(agreed.holders)} holders' numbers of rows: "
            "so many may stay in the study's secure_sum"
        )
    gram = _imagine(study, guess or Guess())
    sampling = expected(study, rows, gram, None)
    return [
        _compare(sampling, expected(study, rows, gram, [epsilon] * len(rows)), epsilon)
        for epsilon in epsilons
    ]


def epsilon_for(
    study: Study, rows: list[int], width: float, guess: Guess | None = None
) -> float | None:
    """Smallest ε at which every slope's interval is at most `width` wide in scaled units.

    None if no ε does it.
    """
    guess = guess or Guess()
    low = EPSILON_RANGE[0]
    high = MOST_EPSILON
    if _widest(study, rows, high, guess) > width:
        return None
    while high > EPSILON_STEP * low:
        middle = float(np.sqrt(low * high))
        if _widest(study, rows, middle, guess) <= width:
            high = middle
        else:
            low = middle
    return high


def imagined_rows(
    study: Study, guess: Guess, rng: np.random.Generator, rows: int
) -> tuple[dict[str, NDArray[np.generic]], Array]:
    """A table spread evenly over the public domain, and the scaled coefficients of its response."""
    table: dict[str, NDArray[np.generic]] = {}
    for feature in study.features:
        if feature.range is not None:
            middle, half = feature.mapping
            table[feature.name] = middle + half * rng.uniform(-guess.fill, guess.fill, rows)
        else:
            levels = np.array(feature.all_levels)
            table[feature.name] = levels[rng.integers(len(levels), size=rows)]
    x = _encoded(study, table, rows)[int(study.intercept) :]
    signal_sd = guess.response_sd * np.sqrt(guess.r_squared / max(len(x), 1))
    slopes = signal_sd / np.maximum(x.std(axis=1), 1e-9)
    slopes *= np.where(np.arange(len(x)) % 2, -1.0, 1.0)
    signal = slopes @ (x - x.mean(axis=1, keepdims=True)) if len(x) else np.zeros(rows)
    residual_sd = guess.response_sd * np.sqrt(1 - guess.r_squared)
    y = np.clip(signal + residual_sd * rng.standard_normal(rows), -1, 1)
    table[study.response.name] = _responses(study.response, y)
    constant = [-float(slopes @ x.mean(axis=1))] if study.intercept else []
    return table, np.array([*constant, *slopes])


def _encoded(study: Study, table: dict[str, NDArray[np.generic]], rows: int) -> Array:
    """The study's design of a table, (d, rows)."""
    batch = pa.RecordBatch.from_pydict(table or {"": np.zeros(rows)})
    return np.hstack(list(Design(study, response=False).blocks(batch, rows)))


def _responses(response: Response, scaled: Array) -> Array:
    """Responses in the user's units, from values in [−1, 1] that stand for the whole range."""
    low, high = image(response.function, response.range)
    values: Array = low + (high - low) * (1 + scaled) / 2
    if response.function is None:
        return values
    return np.asarray(FUNCTIONS[response.function].inverse(values))


def _imagine(study: Study, guess: Guess) -> Array:
    """Statistics per row, of (x, y) jointly."""
    rng = np.random.default_rng(0)
    table, _ = imagined_rows(study, guess, rng, IMAGINED_ROWS)
    batches = table_of(table, study).batches()
    return statistics_of(study, batches, order=rng.permutation).floats() / IMAGINED_ROWS


def _compare(sampling: Posterior, private: Posterior, epsilon: float) -> Forecast:
    noisy = widths(private, PROBABILITY, "user")
    bare = widths(sampling, PROBABILITY, "user")
    return Forecast(
        epsilon=epsilon,
        names=private.names(),
        widths=noisy,
        scaled_sampling=widths(sampling, PROBABILITY, "scaled"),
        scaled_widths=widths(private, PROBABILITY, "scaled"),
        privacy_share=np.clip(1 - (bare / noisy) ** 2, 0.0, 1.0),
    )


def _widest(study: Study, rows: list[int], epsilon: float, guess: Guess) -> float:
    [expectation] = forecast(study, rows, [epsilon], guess)
    return float(expectation.scaled_widths[int(study.intercept) :].max())
