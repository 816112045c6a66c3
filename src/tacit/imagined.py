"""Imagined rows: what a plan takes a study's tables to be, from public quantities and a guess.

Rows are imagined as public tables are in the middle: features fill a little over half of their
public ranges, nearer to one end and with a long tail to the other, or all of their typical
intervals, or are answers of 0 and 1 where that is their range; neighbours overlap; and the response
has the guessed R². Without an intercept features and response lie about the middle of their ranges,
since who leaves it out has taken the means off; a range about a mean is as wide as its longer side
asks for, and the response fills less of it.
"""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import ndtri

from tacit.analyst.families.fit import check_study
from tacit.analyst.families.links import FamilyName, Link, link_named
from tacit.errors import StudyError
from tacit.rows.design import Design
from tacit.study import Study
from tacit.study.columns import Feature, Response
from tacit.study.transforms import FUNCTIONS, image

Array = NDArray[np.float64]

FILL = 0.55
"""Share of its public range that a feature is expected to fill: an sd of 0.32 half ranges, as the
first of several visits expects it."""
ASIDE = 2 / 3
"""How far aside a feature lies that does not fill its range, over the room that is left."""
TAIL = 0.225
"""Sd of the logarithm of a feature's values, from where its tail begins: a skewness of 0.7."""
NEIGHBOURS = 0.86
CROWD = 7
"""Correlation of a numeric feature with the one before it where there are so many or more: the
variance of its slope is then 6.6 times that of a feature which goes with no other. Of fewer it is
less in proportion, and of one there is none."""
ONES = 0.2
"""Share of ones of a feature whose range is 0 to 1: on public tables it is nearly always an answer
of yes or no, which spreads two and a half times as far as a number that fills half of it."""
RESPONSE_SD = 0.28
RESPONSE_SD_ABOUT_ZERO = 0.22
"""Sd of the response in half its range, with an intercept and without: such that intervals of
public tables are as wide as planned in the middle (benchmarks/real_tables.py)."""
MOST_EXTREME = 1e-6
"""Rate, over the response's range, below which no constant is looked for."""
HALVINGS = 60
TINY = 1e-9


@dataclass(frozen=True)
class Guess:
    """What the planner assumes of the data.

    How much features explain, for a family of the variance of what stands behind its answers or
    counts; how much of their intervals they fill, in standard deviations against those of an even
    spread; how neighbours correlate; and the response's sd in half its range.
    The defaults are in the middle of public tables (benchmarks/real_tables.py).
    """

    r_squared: float = 0.5
    fill: float | None = None  # None: FILL of a range, all of a typical one, ONES of 0 to 1
    correlation: float | None = None  # of a numeric feature with the one before it; None: by rule
    response_sd: float | None = None  # None: RESPONSE_SD, or that about zero
    spread: float | None = None  # sd of a coefficient between holders; None: as it is estimated
    family: FamilyName | None = None  # None: a straight line
    rate: float | None = None  # mean response of a family; None: a fifth of its range

    def __post_init__(self) -> None:
        if self.rate is not None and self.family is None:
            raise StudyError("rate goes with a family: the share of ones, or the mean count")

    def filled(self, feature: Feature) -> float:
        """How much of its mapped interval a numeric feature fills."""
        if self.fill is not None:
            return self.fill
        return FILL if feature.typical is None else 1.0

    def is_answer(self, feature: Feature) -> bool:
        """Whether a numeric feature is taken for answers of 0 and 1."""
        return self.fill is None and feature.typical is None and feature.range == (0.0, 1.0)

    def responding(self, study: Study) -> float:
        """The response's sd in half its range."""
        if self.response_sd is not None:
            return self.response_sd
        return RESPONSE_SD if study.intercept else RESPONSE_SD_ABOUT_ZERO

    def correlated(self, study: Study) -> float:
        """Correlation of neighbouring numeric features: the more there are, the more it is."""
        if self.correlation is not None:
            return self.correlation
        numeric = sum(feature.range is not None for feature in study.features)
        return NEIGHBOURS * min(1.0, max(numeric - 1, 0) / (CROWD - 1))


def imagined_rows(
    study: Study, guess: Guess, rng: np.random.Generator, rows: int
) -> tuple[dict[str, NDArray[np.generic]], Array]:
    """A table spread over the public domain, and the scaled coefficients of its response.

    Neighbouring numeric features correlate; levels are equally likely.
    """
    table: dict[str, NDArray[np.generic]] = {}
    before = rng.standard_normal(rows)
    correlation = guess.correlated(study)
    aside = ASIDE if study.intercept else 0.0
    for feature in study.features:
        if feature.range is not None:
            own = rng.standard_normal(rows)
            before = correlation * before + math.sqrt(1 - correlation**2) * own
            table[feature.name] = _values(feature, guess, aside, before)
        else:
            levels = np.array(feature.all_levels)
            table[feature.name] = levels[rng.integers(len(levels), size=rows)]
    x = _encoded(study, table, rows)[int(study.intercept) :]
    if guess.family is not None:
        table[study.response.name], beta = _answers(study, guess, link_named(guess.family), rng, x)
        return table, beta
    response_sd = guess.responding(study)
    slopes = _slopes(x, response_sd * math.sqrt(guess.r_squared))
    signal = slopes @ (x - x.mean(axis=1, keepdims=True)) if len(x) else np.zeros(rows)
    residual_sd = response_sd * np.sqrt(1 - guess.r_squared)
    y = np.clip(signal + residual_sd * rng.standard_normal(rows), -1, 1)
    table[study.response.name] = _responses(study.response, y)
    constant = [-float(slopes @ x.mean(axis=1))] if study.intercept else []
    return table, np.array([*constant, *slopes])


def _values(feature: Feature, guess: Guess, aside: float, normal: Array) -> Array:
    """Values of a numeric feature with a long tail upwards, made of normal ones; or answers."""
    if guess.is_answer(feature):
        return (normal > ndtri(1 - ONES)).astype(float)
    middle, half = feature.mapping
    fill = guess.filled(feature)
    long = np.expm1(TAIL * normal) / TAIL
    spread = (long - long.mean()) / long.std() * fill / math.sqrt(3)
    low, high = feature.range or (-math.inf, math.inf)
    values: Array = np.clip(middle + half * (spread - aside * (1 - fill)), low, high)
    return values


def _slopes(x: Array, sd: float) -> Array:
    """Slopes of either sign and equal weight, which together carry a standard deviation."""
    if not len(x):
        return np.zeros(0)
    signs = np.where(np.arange(len(x)) % 2, -1.0, 1.0)
    slopes = signs / np.maximum(x.std(axis=1), TINY)
    scaled: Array = slopes * sd / max(float((slopes @ x).std()), TINY)
    return scaled


def _answers(
    study: Study, guess: Guess, link: Link, rng: np.random.Generator, x: Array
) -> tuple[Array, Array]:
    """Answers or counts of imagined rows at the guessed rate, and their coefficients."""
    check_study(link, study, study.response)
    top = study.response.range[1]
    rate = top / 5 if guess.rate is None else guess.rate
    if not 0 < rate < top:
        raise StudyError(f"rate must lie between 0 and {top:g}, the response's range; got {rate:g}")
    slopes = _slopes(x, link.spread(guess.r_squared, rate))
    index = slopes @ x if len(x) else np.zeros(x.shape[1])
    low = link.inverse(MOST_EXTREME * top) - float(np.abs(index).max())
    high = -low if link.binary else link.inverse(top)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if float(link.mean(middle + index).mean()) < rate:
            low = middle
        else:
            high = middle
    mean = link.mean(low + index)
    drawn = rng.random(len(mean)) < mean if link.binary else np.minimum(rng.poisson(mean), top)
    return drawn.astype(float), np.array([low, *slopes])


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
