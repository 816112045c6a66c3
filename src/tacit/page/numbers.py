"""Numbers and times as a reader takes them in, and names in a list."""

import math
from datetime import datetime

ROUNDED_AWAY = 0.005
"""Shares below this, or as near to 1, would read as 0 or 100 per cent."""
MOST_DIGITS = 1e9
MOST_DECIMALS = 7
"""Numbers that are longer are written with a power of ten."""


def number(value: float, spread: float | None = None) -> str:
    """A number with as many digits as matter: two of its spread, or three of its own."""
    if not math.isfinite(value):
        return "not known"
    if value == 0:
        return "0"
    size = abs(value) if spread is None or not spread > 0 else spread
    decimals = (1 if spread else 2) - math.floor(math.log10(size))
    if abs(value) >= MOST_DIGITS or decimals > MOST_DECIMALS:
        return f"{value:.3g}".replace("-", "−")
    return f"{round(value, decimals):,.{max(decimals, 0)}f}".replace("-", "−")


def between(low: float, high: float) -> str:
    """An interval."""
    return f"{number(low, high - low)} to {number(high, high - low)}"


def percent(share: float) -> str:
    """A share in per cent; very small and very large ones are not rounded away."""
    if not math.isfinite(share):
        return "not known"
    if 0 < share < ROUNDED_AWAY:
        return "under 1 %"
    if 1 - ROUNDED_AWAY < share < 1:
        return "over 99 %"
    return f"{100 * share:.0f} %"


def power(value: float) -> str:
    """A small number such as δ with its power of ten written out."""
    digits, _, exponent = f"{value:e}".partition("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    factor = f"{float(digits):g}"
    return f"10{raised}" if factor == "1" else f"{factor} × 10{raised}"


def moment(stamp: str) -> str:
    """A time of a document, for a reader."""
    try:
        return datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%S%z").strftime("%-d %b %Y, %H:%M UTC")
    except ValueError:
        return "not known"


def listed(names: list[str], word: str = "and") -> str:
    """Names with commas, and a word before the last."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def exact(value: float) -> str:
    """A number that somebody wrote down, as it was written."""
    return f"{value:,.10g}".replace("-", "−")
