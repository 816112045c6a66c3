"""Texts of published documents: unpacked, measured and parsed, strictly."""

import json
import math
import re
import zlib
from typing import Any, NoReturn

from pydantic_core import from_json

from tacit import limits
from tacit.errors import ReleaseError

MOST_BYTES = limits.RELEASE.letters
"""Longest document that is read: 512 columns need about 7 MB."""
_GZIP = b"\x1f\x8b"
_MAY_OVERFLOW = re.compile(r"[eE]\+?[0-9]{3,}\s*[,\]}]")
"""Only numbers with such an exponent, or of 300 digits, which every field refuses, are infinite."""


def unzipped(compressed: bytes) -> bytes:
    """The text of a document that may be compressed; no more is unpacked than may be read."""
    if not compressed.startswith(_GZIP):
        return compressed
    unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        text = unpacking.decompress(compressed, MOST_BYTES + 1)
    except zlib.error:
        raise ReleaseError("the release is compressed and damaged") from None
    if len(text) <= MOST_BYTES and (not unpacking.eof or unpacking.unused_data):
        raise ReleaseError("the release is compressed and damaged: its end is missing, or more")
    return text


def parse(text: str | bytes) -> dict[str, Any]:
    """A JSON object with finite numbers and no field twice."""
    if len(text) > MOST_BYTES:
        raise ReleaseError(f"a release is at most {MOST_BYTES // 2**20} MB long")
    try:
        text = text if isinstance(text, str) else text.decode()
        marks = limits.RELEASE.check_json(text)
        fields = _plainly_read(text, marks) or _strictly_read(text)
    except limits.LimitError as error:
        raise ReleaseError(str(error)) from None
    except (ValueError, RecursionError):
        raise ReleaseError("the release is not valid JSON") from None
    if not isinstance(fields, dict):
        raise ReleaseError("a release must be a JSON object")
    return fields


def _plainly_read(text: str, marks: str) -> object:
    """A text without faults, read quickly; nothing where there may be one.

    `marks` is the text without what is quoted: each colon there names a field, and a field that
    is named twice is one fewer in what was read.
    """
    try:
        fields = from_json(text, allow_inf_nan=False)
    except ValueError:
        return None
    exponents = marks.replace("E", "e").split("e")[1:]
    if any(exponent.lstrip("+")[:3].isdigit() for exponent in exponents):
        return None
    if not isinstance(fields, (dict, list)) or _names_in(fields) != marks.count(":"):
        return None
    return fields


def _names_in(value: dict[str, object] | list[object]) -> int:
    """Fields of an object, and of those inside it; lists that begin with a number hold none."""
    if isinstance(value, dict):
        inside = [item for item in value.values() if isinstance(item, (dict, list))]
        return len(value) + sum(map(_names_in, inside))
    if not value or not isinstance(value[0], (dict, list)):
        return 0
    return sum(_names_in(item) for item in value if isinstance(item, (dict, list)))


def _strictly_read(text: str) -> object:
    """A text as the standard library reads it, which tells what is wrong."""
    read = _finite if _MAY_OVERFLOW.search(text) else None
    return json.loads(text, parse_constant=_not_finite, parse_float=read, object_pairs_hook=_unique)


def _not_finite(constant: str) -> NoReturn:
    raise ReleaseError(f"a release holds finite numbers only, not {constant}")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        _not_finite(text[:20])
    return number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ReleaseError("a release must not name a field twice")
    return fields
