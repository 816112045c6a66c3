r"""Cut residuals: what a bound leaves of residuals r ~ N(δ, σ²), and δ, σ from what it left.

With a = (B − δ)/σ and b = (−B − δ)/σ, a residual cut at ±B moves with its cause at the rate
κ = P(|r| < B) = Φ(a) − Φ(b). It has mean m = δκ + σ(φ(b) − φ(a)) + B(1 − Φ(a) − Φ(b)) and mean
square (δ² + σ²)κ + 2δσ(φ(b) − φ(a)) + σ²(bφ(b) − aφ(a)) + B²(1 − κ).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

MOST_STEPS = 60
CLOSE = 1e-8
"""Steps of a search, and the last one's length over that of the range searched."""
LEAST = 0.01
MOST = 0.85
"""Shares of B² between which a mean square is read: beyond, noise decides."""
MOST_MEAN = 0.95
"""Share of B up to which a mean is read."""
LEAST_RATE = 0.4
"""Smallest rate of residuals about 0: a step that takes too small a one overshoots."""
LEAST_SHIFTED = 0.1
LEAST_SD = 0.1
"""Smallest sd of residuals over their bound."""


class Cut(NamedTuple):
    """What a bound leaves of residuals."""

    rate: float  # κ
    mean: float  # m
    square: float


def cut_of(sd: float, bound: float, shift: float = 0.0) -> Cut:
    """What a bound leaves of residuals of this sd about a shift."""
    above = (bound - shift) / sd
    below = (-bound - shift) / sd
    inside = _level(above) - _level(below)
    edge = _height(below) - _height(above)
    mean = shift * inside + sd * edge + bound * (1 - _level(above) - _level(below))
    square = (shift**2 + sd**2) * inside + 2 * shift * sd * edge
    square += sd**2 * (below * _height(below) - above * _height(above)) + bound**2 * (1 - inside)
    centred = 2 * _level(bound / sd) - 1
    rate = inside * max(1.0, LEAST_RATE / centred)
    return Cut(rate=max(rate, LEAST_SHIFTED), mean=mean, square=square)


def whole_sd(square: float, bound: float, shift: float = 0.0) -> float:
    """The sd of residuals about a shift whose mean square is this once they are cut."""
    wanted = min(max(square, LEAST * bound**2), MOST * bound**2)

    def left(log_sd: float) -> float:
        return cut_of(math.exp(log_sd), bound, shift).square

    return math.exp(_solved(left, wanted, math.log(0.01 * bound), math.log(100 * bound)))


class Law(NamedTuple):
    """Residuals as if none was cut."""

    shift: float  # δ
    sd: float  # σ


def law_of(mean: float, square: float, bound: float) -> Law:
    """The residuals that have this mean and mean square once they are cut.

    Of residuals with a given cut mean, those that spread wider have the larger cut square.
    """
    wanted = min(max(mean, -MOST_MEAN * bound), MOST_MEAN * bound)

    def shift(log_sd: float) -> float:
        def left(value: float) -> float:
            return cut_of(math.exp(log_sd), bound, value).mean

        return _solved(left, wanted, -10 * bound, 10 * bound)

    def left(log_sd: float) -> float:
        return cut_of(math.exp(log_sd), bound, shift(log_sd)).square

    most = max(MOST * bound**2, (bound**2 + wanted**2) / 2)
    log_sd = _solved(left, min(square, most), math.log(LEAST_SD * bound), math.log(5 * bound))
    return Law(shift=shift(log_sd), sd=math.exp(log_sd))


def _solved(rising: Callable[[float], float], wanted: float, low: float, high: float) -> float:
    """Where a rising function has a value: false position, the idle end's error halved (Illinois).

    Where it has it nowhere between low and high, the nearer end.
    """
    below = rising(low) - wanted
    above = rising(high) - wanted
    if below >= 0 or above <= 0:
        return low if below >= 0 else high
    close = CLOSE * (high - low)
    point = low
    error = 0.0
    for _ in range(MOST_STEPS):
        before = point
        last = error
        point = (low * above - high * below) / (above - below)
        error = rising(point) - wanted
        if error == 0 or abs(point - before) < close:
            break
        if error < 0:
            low = point
            below = error
            above /= 2 if last < 0 else 1
        else:
            high = point
            above = error
            below /= 2 if last > 0 else 1
    return point


def _level(value: float) -> float:
    return 0.5 * (1 + math.erf(value / math.sqrt(2)))


def _height(value: float) -> float:
    return math.exp(-value * value / 2) / math.sqrt(2 * math.pi)
