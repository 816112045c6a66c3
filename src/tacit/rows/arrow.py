"""One column of a record batch as numbers or as names of levels, whatever Arrow type carries it."""

import hashlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tacit.errors import TableError

Batches = Iterator[pa.RecordBatch]


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    index = batch.schema.get_field_index(name)
    if index < 0:
        raise TableError(f"the table needs exactly one column named {name!r}")
    column = _converted(batch.column(index), batch.schema.field(index), name)
    if not pa.types.is_dictionary(column.type):
        return column
    values = column.dictionary
    # Arrow cannot take from views.
    plain = pc.cast(values, pa.string()) if pa.types.is_string_view(values.type) else values
    return pc.take(plain, column.indices)


def _converted(column: pa.Array, field: pa.Field, name: str) -> pa.Array:
    """PostgreSQL's numeric, which arrives as text, as the nearest floats; its money is refused."""
    if getattr(column.type, "type_name", None) == "numeric" and pa.types.is_string(
        column.type.storage_type
    ):
        return numbers_in(column.storage)
    if (field.metadata or {}).get(b"POSTGRESQL:type") == b"money":
        raise TableError(
            f"column {name!r} is of PostgreSQL's type money, which arrives in hundredths: cast it "
            "to numeric in the query"
        )
    return column


def numbers_of(batch: pa.RecordBatch, name: str) -> NDArray[np.float64]:
    """A numeric column as floats; what is missing, or is text that is no number, as NaN."""
    column = _column(batch, name)
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if any(kind(column.type) for kind in _TEXT):
        column = numbers_in(pc.cast(column, pa.string()))
    if not any(kind(column.type) for kind in _NUMBERS):
        raise TableError(f"column {name!r} must hold numbers, as the study gives it a range")
    numbers: NDArray[np.float64] = pc.cast(column, pa.float64(), safe=False).to_numpy(
        zero_copy_only=False
    )
    return numbers


def numbers_in(text: pa.Array, pool: pa.MemoryPool | None = None) -> pa.Array:
    """Text as floats; null where it is no number.

    Every value is looked at in the same way, so that the time tells nothing of what is there.
    """
    trimmed = pc.ascii_trim_whitespace(text, memory_pool=pool)
    is_number = pc.match_substring_regex(trimmed, NUMBER, memory_pool=pool)
    readable = pc.if_else(is_number, trimmed, pa.scalar(None, pa.string()), memory_pool=pool)
    return pc.cast(readable, pa.float64(), memory_pool=pool)


def strings_of(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A categorical column as text, missing values as nulls."""
    column = _column(batch, name)
    if pa.types.is_floating(column.type):
        return _named_numbers(pc.cast(column, pa.float64()))
    if not any(kind(column.type) for kind in _NAMES_LEVELS):
        raise TableError(
            f"column {name!r} must hold text, whole numbers or booleans, as the study gives it "
            "levels"
        )
    return pc.cast(column, pa.string())


def ids_of(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column that says whose each row is, as text; nulls where that is missing.

    A long id is told by its SHA-256. Two spellings are two persons, save that of a whole number.
    """
    column = _column(batch, name)
    if any(kind(column.type) for kind in _BINARY):
        ids = _as_text(pc.cast(column, pa.binary()))
    elif pa.types.is_floating(column.type):
        ids = _named_numbers(pc.cast(column, pa.float64()))
    elif any(kind(column.type) for kind in (*_NAMES_LEVELS, pa.types.is_decimal)):
        ids = pc.cast(column, pa.string())
    else:
        raise TableError(
            f"column {name!r} must hold text or whole numbers, as the study takes it for the person"
        )
    longest = pc.max(pc.binary_length(ids)).as_py() or 0
    return ids if longest < MOST_LETTERS else _as_text(_shortened(ids))


def whole_ids_of(batch: pa.RecordBatch, name: str) -> pa.Array:
    """The same of a column that `holds_whole_ids`, as numbers of 64 bits."""
    return pc.cast(_column(batch, name), pa.int64())


def holds_whole_ids(batch: pa.RecordBatch, name: str) -> bool:
    """Whether a column is stored as whole numbers that 64 bits hold."""
    kind = _column(batch.slice(0, 0), name).type
    return bool(pa.types.is_integer(kind) and not pa.types.is_uint64(kind))


def _shortened(ids: pa.Array) -> pa.Array:
    """Long ids by their digests, of so many letters as no short one has."""
    texts = (
        None if text is None else bytes(text) for text in pc.cast(ids, pa.binary()).to_pylist()
    )
    return pa.array(
        [
            hashlib.sha256(text).hexdigest().encode()
            if text and len(text) >= MOST_LETTERS
            else text
            for text in texts
        ],
        pa.binary(),
    )


def _as_text(column: pa.Array) -> pa.Array:
    """Bytes as text, of letters that may be none."""
    return pc.cast(column, options=pc.CastOptions(pa.string(), allow_invalid_utf8=True))


def _named_numbers(numbers: pa.Array) -> pa.Array:
    """Floats as text, each whole one without a point: it was whole before it met a missing value.

    One that is not whole names a level that is hardly listed; it is treated like any such level.
    """
    present = pc.if_else(pc.is_nan(numbers), pa.scalar(None, numbers.type), numbers)
    is_whole = pc.and_(
        pc.equal(present, pc.floor(present)), pc.less(pc.abs(present), LARGEST_WHOLE)
    )
    whole = pc.cast(pc.if_else(is_whole, present, 0.0), pa.int64())
    return pc.if_else(is_whole, pc.cast(whole, pa.string()), pc.cast(present, pa.string()))


NUMBER = r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$|^[+-]?(?i:inf|infinity)$"
"""What is read as a number: all of it can be converted, however large or long it is."""
MOST_LETTERS = 64
"""Letters, in bytes, of the longest id; one of so many or more is told by its digest."""
LARGEST_WHOLE = 2.0**53
"""Floats below this tell whole numbers apart."""
_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_BINARY = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
_NAMES_LEVELS = (*_TEXT, pa.types.is_integer, pa.types.is_boolean, pa.types.is_null)
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
