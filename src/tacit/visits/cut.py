r"""Cut residuals: what a bound leaves of residuals r ~ N(0, σ²), and σ from what it left.

With t = B/σ, a residual cut at ±B moves with its cause at the rate κ = P(|r| < B) = erf(t/√2), and
has mean square e = σ²(κ − t√(2/π)·exp(−t²/2)) + B²(1 − κ).
"""

import math
from typing import NamedTuple

HALVINGS = 50
LEAST = 0.01
MOST = 0.85
"""Shares of B² between which a mean square is read: beyond, noise decides."""
LEAST_RATE = 0.4


class Cut(NamedTuple):
    """What a bound leaves of residuals."""

    rate: float  # κ
    square: float  # e


def cut_of(sd: float, bound: float) -> Cut:
    """What a bound leaves of residuals of this sd."""
    t = bound / sd
    inside = math.erf(t / math.sqrt(2))
    edge = t * math.sqrt(2 / math.pi) * math.exp(-t * t / 2)
    square = sd**2 * (inside - edge) + bound**2 * (1 - inside)
    return Cut(rate=max(inside, LEAST_RATE), square=square)


def whole_sd(square: float, bound: float) -> float:
    """The sd of residuals whose mean square is this once they are cut."""
    wanted = min(max(square, LEAST * bound**2), MOST * bound**2)
    low = 0.01 * bound
    high = 100 * bound
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        if cut_of(middle, bound).square < wanted:
            low = middle
        else:
            high = middle
    return low
