"""Codes: what people and programs write where a value is missing, and what a level may look like.

Each cell is judged by itself. A name that the study lists is a level, whatever else it may mean.
"""

import math
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tacit.errors import TableError

NULLS = (
    *("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL"),
    *("?", ".", "-", "--", "n.a.", "N.A.", "<NA>", "None", "NaT", "\\N", "(null)"),
    *("#N/A", "#NV", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!"),
)
"""Spellings of a missing value."""


def levels_in(values: pa.Array, levels: Sequence[str]) -> tuple[pa.Array, pa.Array]:
    """The text of each level, null where it is missing, and its place in the list, null if none.

    Spaces around a level count for nothing, and 1.0 is the level 1: programs make floats of a
    column of whole numbers as soon as a value is missing.
    """
    listed = pa.array(levels, pa.string())
    places = pc.index_in(values, value_set=listed)
    plain = pc.ascii_trim_whitespace(values)
    if any(_is_whole(level) for level in levels):
        plain = pc.replace_substring_regex(plain, r"^([+-]?\d+)\.0*$", r"\1")
    places = pc.coalesce(places, pc.index_in(plain, value_set=listed))
    codes = pc.is_in(plain, value_set=pa.array(NULLS, pa.string()))
    is_code = pc.and_(codes, pc.is_null(places))
    return pc.if_else(is_code, pa.scalar(None, pa.string()), values), places


def _is_whole(level: str) -> bool:
    return level.lstrip("+-").isdecimal()


def without_codes(batch: pa.RecordBatch, codes: Sequence[str]) -> pa.RecordBatch:
    """The batch with a holder's own codes taken out: numbers by what they are, text as written."""
    numbers = pa.array(_numbers(codes), pa.float64())
    texts = pa.array(codes, pa.string())
    columns = [_without(column, numbers, texts) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _without(column: pa.Array, numbers: pa.Array, texts: pa.Array) -> pa.Array:
    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        is_code = pc.is_in(pc.cast(column, pa.float64(), safe=False), value_set=numbers)
    elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        trimmed = pc.ascii_trim_whitespace(column)
        is_code = pc.is_in(pc.cast(trimmed, pa.string()), value_set=texts)
    else:
        return column
    return pc.if_else(is_code, pa.scalar(None, column.type), column)


def _numbers(codes: Sequence[str]) -> list[float]:
    numbers = []
    for code in codes:
        try:
            number = float(code.replace(",", "."))
        except ValueError:
            continue
        if math.isfinite(number):
            numbers.append(number)
    return numbers


def check_codes(codes: Sequence[str], levels: Sequence[str]) -> None:
    """Refuse a code that the study lists as a level."""
    for code in codes:
        if code in levels:
            raise TableError(f"missing: {code!r} is a level of the study, and so is no code")
