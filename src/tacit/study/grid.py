"""The grid: encoded rows are whole multiples of 1/GRID, which is why their sums are exact."""

import math

GRID_BITS = 18
GRID = 2.0**GRID_BITS
"""Encoded rows are whole multiples of 1/GRID (holder/encode.py)."""
Interval = tuple[float, float]


def mapping_of(bounds: Interval, *, centred: bool = True) -> tuple[float, float]:
    """Middle and half-width of an interval: x ↦ (x − middle)/half takes it to [−1, 1].

    Uncentred, they are zero and the interval's largest size.
    """
    low, high = bounds
    if centred:
        return low + (high - low) / 2, (high - low) / 2
    return 0.0, max(abs(low), abs(high))


def on_grid(size: float) -> float:
    """A bound on entries once they are rounded to the grid: the next multiple of its step."""
    return math.ceil(size * GRID) / GRID
