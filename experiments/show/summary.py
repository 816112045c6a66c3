"""From runs to a mean with its 90 % interval, by the bootstrap over runs.

Never negative, so that it can be drawn on a log scale.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
RESAMPLES = 2000


class Mean(NamedTuple):
    """A mean over runs and the 90 % interval of it."""

    value: float
    low: float
    high: float


def mean_of(values: Array) -> Mean:
    """Of one cell; the bootstrap is seeded, so that the same runs give the same interval."""
    if len(values) == 1:
        return Mean(*(float(values[0]),) * 3)
    chosen = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
    low, high = np.quantile(values[chosen].mean(axis=1), [0.05, 0.95])
    return Mean(float(values.mean()), float(low), float(high))


def medians(
    columns: Mapping[str, Any], keys: tuple[str, ...], value: str
) -> dict[tuple[Any, ...], float]:
    """Median of a column for every combination of keys that occurs."""
    return {key: float(np.median(cell)) for key, cell in cells(columns, keys, value).items()}


def cells(
    columns: Mapping[str, Any], keys: tuple[str, ...], value: str
) -> dict[tuple[Any, ...], Array]:
    """A column's values for every combination of keys that occurs."""
    values: dict[tuple[Any, ...], list[float]] = {}
    for *key, number in zip(*(columns[name].tolist() for name in (*keys, value)), strict=True):
        values.setdefault(tuple(key), []).append(number)
    return {key: np.array(numbers) for key, numbers in values.items()}


def means(
    columns: Mapping[str, Any], keys: tuple[str, ...], value: str
) -> dict[tuple[Any, ...], Mean]:
    """Mean of a column for every combination of keys that occurs."""
    return {key: mean_of(cell) for key, cell in cells(columns, keys, value).items()}
