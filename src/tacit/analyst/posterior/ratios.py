"""Odds ratios and rate ratios: what one more unit of a column multiplies odds or rates by."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tacit.analyst.posterior.posterior import AnyUnits, Posterior
from tacit.analyst.posterior.text_table import text_table
from tacit.study.study import INTERCEPT

MOST = 700.0
"""Largest logarithm whose exponential is a number."""


@dataclass(frozen=True)
class Ratio:
    """One column's ratio: at the posterior mean of its logarithm, and its interval."""

    name: str
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Ratios:
    """The ratios of all columns, and what they are called."""

    word: str
    probability: float
    rows: tuple[Ratio, ...]

    def __str__(self) -> str:
        tail = 100 * (1 - self.probability) / 2
        heads = [self.word, "ratio", f"{tail:g}%", f"{100 - tail:g}%"]
        lines = [
            [row.name, *(f"{value:.4g}" for value in (row.ratio, row.low, row.high))]
            for row in self.rows
        ]
        return text_table([heads, *lines])

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
