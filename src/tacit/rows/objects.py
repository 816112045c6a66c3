"""Python objects as a column: each by itself becomes text, and one of no known kind is missing.

Arrow asks that all values of a column be of one kind, and refuses the column where one is not.
What one row says must not decide that (docs/study.md, "What is refused").
"""

import math
from collections.abc import Iterable
from decimal import Decimal
from numbers import Integral, Real

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MOST_BITS = 1024


def texts_of(values: Iterable[object], *, true: str = "true", false: str = "false") -> pa.Array:
    """Values as text, from which numbers and names of levels are read; null where missing."""
    booleans = {True: true.encode(), False: false.encode()}
    texts = pa.array([_text(value, booleans) for value in values], pa.binary())
    return pc.cast(texts, options=pc.CastOptions(pa.string(), allow_invalid_utf8=True))


def _text(value: object, booleans: dict[bool, bytes]) -> bytes | None:
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    if isinstance(value, bytes):
        return value
    if isinstance(value, (bool, np.bool_)):
        return booleans[bool(value)]
    if isinstance(value, Integral):
        return _whole(int(value))
    if isinstance(value, Decimal):
        return str(value).encode() if value.is_finite() else _special(float(value))
    return _number(float(value)) if isinstance(value, Real) else None


def _number(value: float) -> bytes | None:
    """A whole number as such: a column of them becomes one of floats where a value is missing."""
    if not math.isfinite(value):
        return _special(value)
    return _whole(int(value)) if value.is_integer() else repr(value).encode()


def _whole(value: int) -> bytes:
    """Python does not write out numbers of thousands of digits: beyond all floats they are one."""
    if value.bit_length() > MOST_BITS:
        return b"inf" if value > 0 else b"-inf"
    return str(value).encode()


def _special(value: float) -> bytes | None:
    return None if math.isnan(value) else repr(value).encode()
