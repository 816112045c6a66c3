"""One column of a record batch as numbers or as names of levels, whatever Arrow type carries it."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tacit.errors import TableError


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    index = batch.schema.get_field_index(name)
    if index < 0:
        raise TableError(f"the table needs exactly one column named {name!r}")
    column = _converted(batch.column(index), batch.schema.field(index), name)
    if not pa.types.is_dictionary(column.type):
        return column
    values = column.dictionary
    plain = (
        pc.cast(values, pa.string()) if pa.types.is_string_view(values.type) else values
    )  # Arrow cannot take from views
    return pc.take(plain, column.indices)


def _converted(column: pa.Array, field: pa.Field, name: str) -> pa.Array:
    """PostgreSQL's numeric, which its driver hands over as text, as the nearest floats; its money is refused."""
    if getattr(column.type, "type_name", None) == "numeric" and pa.types.is_string(
        column.type.storage_type
    ):
        return pc.cast(column.storage, pa.float64())
    if (field.metadata or {}).get(b"POSTGRESQL:type") == b"money":
        raise TableError(
            f"column {name!r} is of PostgreSQL's type money, which arrives in hundredths: cast it to numeric in the query"
        )
    return column


def numbers_of(batch: pa.RecordBatch, name: str) -> NDArray[np.float64]:
    """A numeric column as floats, missing values as NaN."""
    column = _column(batch, name)
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if not any(kind(column.type) for kind in _NUMBERS):
        raise TableError(f"column {name!r} must hold numbers, as the study gives it a range")
    numbers: NDArray[np.float64] = pc.cast(column, pa.float64(), safe=False).to_numpy(
        zero_copy_only=False
    )
    return numbers


def strings_of(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A categorical column as text, missing values as nulls."""
    column = _column(batch, name)
    if pa.types.is_floating(
        column.type
    ):  # whole numbers that met a missing value on their way through pandas
        column = pc.cast(column, pa.float64())
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
        if pc.all(pc.equal(column, pc.floor(column))).as_py() is not False:
            column = pc.cast(column, pa.int64(), safe=False)
    if not any(kind(column.type) for kind in _NAMES_LEVELS):
        raise TableError(
            f"column {name!r} must hold text, whole numbers or booleans, as the study gives it levels"
        )
    return pc.cast(column, pa.string())


_NAMES_LEVELS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_null,
)
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
