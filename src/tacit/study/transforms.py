"""Monotone functions that a study may name.

The public range of a column gives that of its function, without a look at data.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

FunctionName = Literal["log", "log2", "log10", "log1p", "sqrt", "exp"]
Bounds = tuple[float, float]


@dataclass(frozen=True)
class Function:
    """An increasing function with its inverse, defined above `least`, and at it where `closed`."""

    forward: Callable[[Any], Any]
    inverse: Callable[[Any], Any]
    least: float
    most: float = math.inf
    closed: bool = False

    def admits(self, bounds: Bounds) -> bool:
        """Whether it is defined, and not too large to count with, on a whole range."""
        low, high = bounds
        return (low > self.least or (self.closed and low == self.least)) and high <= self.most


FUNCTIONS: dict[FunctionName, Function] = {
    "log": Function(np.log, np.exp, 0.0),
    "log2": Function(np.log2, np.exp2, 0.0),
    "log10": Function(np.log10, lambda values: np.power(10.0, values), 0.0),
    "log1p": Function(np.log1p, np.expm1, -1.0),
    "sqrt": Function(np.sqrt, np.square, 0.0, closed=True),
    "exp": Function(np.exp, np.log, -300.0, 300.0),
}


def label(function: FunctionName | None, name: str) -> str:
    """How a column is called after a function."""
    return name if function is None else f"{function}({name})"


def image(function: FunctionName | None, bounds: Bounds) -> Bounds:
    """The range of a column after a function that fits it (`check`)."""
    if function is None:
        return bounds
    forward = FUNCTIONS[function].forward
    return float(forward(bounds[0])), float(forward(bounds[1]))


def check(function: FunctionName | None, name: str, bounds: Bounds) -> None:
    """Refuse a function of a range on which it is not defined, or which it makes a point."""
    if function is None:
        return
    known = FUNCTIONS[function]
    if not known.admits(bounds):
        least = "at or above" if known.closed else "above"
        most = f" and at most {known.most:g}" if math.isfinite(known.most) else ""
        raise ValueError(
            f"{label(function, name)} needs a range {least} {known.least:g}{most}: "
            f"change the range of {name!r}, or the function"
        )
    low, high = image(function, bounds)
    if not high - low > 1e-9 * max(abs(low), abs(high)):
        raise ValueError(
            f"{label(function, name)} is nearly constant over the range of {name!r}: "
            "use the column itself"
        )
