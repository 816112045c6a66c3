"""Odds ratios and rate ratios: what one more unit of a column multiplies odds or rates by."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tacit.analyst.posterior.posterior import AnyUnits, Posterior
from tacit.analyst.posterior.text_table import text_table
from tacit.study.study import INTERCEPT

MOST = 700.0
"""Largest logarithm whose exponential is a number."""
FEWEST_DIGITS = 4


@dataclass(frozen=True)
class Ratio:
    """One column's ratio: at the posterior mean of its logarithm, and its interval."""

    name: str
    ratio: float
    low: float
    high: float

    def written(self) -> tuple[str, str, str]:
        """The ratio and its interval: two digits of its width, four of its own at least.

        Of a column with a wide range one unit goes with a ratio near 1: 1.0402, from 1.0370 on.
        """
        width = self.high - self.low
        digits = FEWEST_DIGITS
        if 0 < width < self.high < math.inf:
            digits = max(digits, 2 + _place(self.high) - _place(width))
        ratio, low, high = (f"{value:.{digits}g}" for value in (self.ratio, self.low, self.high))
        return ratio, low, high


def _place(value: float) -> int:
    """Place of a number's first digit."""
    return math.floor(math.log10(value))


@dataclass(frozen=True)
class Ratios:
    """The ratios of all columns, and what they are called."""

    word: str
    probability: float
    rows: tuple[Ratio, ...]

    def __str__(self) -> str:
        tail = 100 * (1 - self.probability) / 2
        heads = [self.word, "ratio", f"{tail:g}%", f"{100 - tail:g}%"]
        return text_table([heads, *([row.name, *row.written()] for row in self.rows)])

    def to_list(self) -> list[dict[str, Any]]:
        """Plain values, for JSON."""
        return [asdict(row) for row in self.rows]


def ratios_of(
    posterior: Posterior, probability: float = 0.9, units: AnyUnits = "user"
) -> Ratios | None:
    """The ratios of a family that has them; None for a straight line, or an index."""
    word = None if posterior.family is None else posterior.family.link.ratio
    if word is None:
        return None
    means = posterior.mean(units)
    bounds = posterior.interval(probability, units)
    logs = np.column_stack([means, bounds])
    ratios = np.exp(np.clip(logs, -MOST, MOST))
    return Ratios(
        word=word,
        probability=probability,
        rows=tuple(
            Ratio(name=name, ratio=float(mean), low=float(low), high=float(high))
            for name, (mean, low, high) in zip(posterior.names(units), ratios, strict=True)
            if name != INTERCEPT
        ),
    )
