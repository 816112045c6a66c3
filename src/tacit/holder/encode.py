r"""Rows as the study sees them: mapped to [−1, 1], shrunk into the ball, on a fixed-point grid.

An encoded row is (x, y) with x the study's d columns. Whole numbers stand for multiples of 2⁻¹⁸, no entry exceeds 4, and
a block has at most 2¹³ rows, so a sum of products over a block is a whole number of at most 2⁵³: floating-point matrix
multiplication computes it without any rounding, in any order, on any machine.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tacit.errors import TableError
from tacit.study import LARGEST_ENTRY, Feature, Study

GRID_BITS = 18
GRID = 2.0**GRID_BITS
BLOCK_ROWS = int(2 ** (53 - 2 * GRID_BITS) / LARGEST_ENTRY**2)

Block = NDArray[np.float64]
"""Encoded rows, one per column: shape (d + 1, rows), the response last, in units of 2⁻¹⁸."""


@dataclass
class Diagnostics:
    """What the holder alone may see: how many values were clamped or missing, and how many rows shrunk."""

    rows: int = 0
    shrunk: int = 0
    incomplete: int = 0
    clamped: dict[str, int] = field(default_factory=dict)


class Encoder:
    """Turns record batches into blocks of encoded rows; `diagnostics`, if given, is counted up on the way."""

    def __init__(self, study: Study, diagnostics: Diagnostics | None = None) -> None:
        self.study = study
        self.diagnostics = diagnostics
        d = study.d
        self._middle, self._factor = np.zeros(d + 1), np.ones(d + 1)
        self._numeric: list[tuple[int, str]] = [(d, study.response.name)]
        self._categorical: list[tuple[int, Feature, pa.Array]] = []
        row = int(study.intercept)
        mappings = [(d, study.response.mapping, (-1.0, 1.0))]
        for feature in study.features:
            if feature.range is not None:
                self._numeric.append((row, feature.name))
                mappings.append((row, feature.mapping, feature.limits))
            else:
                self._categorical.append((row, feature, pa.array(feature.all_levels, pa.string())))
            row += len(feature.columns)
        self._limits = np.array([[-GRID], [GRID]]) * np.ones(d + 1)
        for row, (middle, half), limits in mappings:
            self._middle[row], self._factor[row] = middle, GRID / half
            self._limits[:, row] = np.array(limits) * GRID
        # Rounding to the grid moves a row by at most √d/2 steps, so shrinking stops that much short of the radius.
        self._radius = None if study.row_radius >= study.longest_row else study.row_radius * GRID - np.sqrt(d)
        self._bound = np.floor(study.response_bound * GRID)

    def blocks(self, batch: pa.RecordBatch) -> Iterator[Block]:
        """Encode a batch of any size, up to 2¹³ rows at a time."""
        numbers = [numbers_of(batch, name) for _, name in self._numeric]
        codes = [self._codes(batch, feature, levels) for _, feature, levels in self._categorical]
        for start in range(0, batch.num_rows, BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            yield self._encode([column[rows] for column in numbers], [column[rows] for column in codes])

    def _encode(self, numbers: list[NDArray[np.float64]], codes: list[NDArray[np.int64]]) -> Block:
        """Encode at most 2¹³ rows, given the numeric columns (response first) and the levels' codes."""
        block = self._mapped(numbers, codes)
        self._clamp(block)
        x, y = block[:-1], block[-1]
        if self.study.missing == "impute":
            np.nan_to_num(x, copy=False, nan=0.0)
        squares = np.einsum("ij,ij->j", x, x)
        self._shrink(block, squares)
        np.clip(y, -self._bound, self._bound, out=y)
        np.rint(block, out=block)
        self._blank_incomplete(block, np.isnan(squares) | np.isnan(y))
        if self.diagnostics is not None:
            self.diagnostics.rows += block.shape[1]
        return block

    def _mapped(self, numbers: list[NDArray[np.float64]], codes: list[NDArray[np.int64]]) -> Block:
        """Columns centred on their ranges and in grid units; categories as 0 and 2¹⁸; missing as NaN."""
        block = np.empty((self.study.d + 1, len(numbers[0])))
        with np.errstate(over="ignore"):  # a value of 1e300 may become infinite: it is clamped like any other
            for (row, _), column in zip(self._numeric, numbers, strict=True):
                np.subtract(column, self._middle[row], out=block[row])
                block[row] *= self._factor[row]
        if self.study.intercept:
            block[0] = GRID
        for (row, _, levels), code in zip(self._categorical, codes, strict=True):
            for offset in range(len(levels) - 1):
                np.multiply(code == offset + 1, GRID, out=block[row + offset])
            block[row : row + len(levels) - 1, code < 0] = np.nan
        return block

    def _codes(self, batch: pa.RecordBatch, feature: Feature, levels: pa.Array) -> NDArray[np.int64]:
        """Index of each row's level; −1 where it is missing and not imputed."""
        values = _strings(batch, feature.name)
        found = pc.index_in(values, value_set=levels)
        unseen = pc.and_(pc.is_valid(values), pc.is_null(found))
        substitute = 0 if feature.other is None else feature.all_levels.index(feature.other)
        if feature.other is None and pc.any(unseen).as_py():
            message = f'column {feature.name!r} holds a level that the study does not list: add it to levels, or give other = "…"'
            raise TableError(message)
        found = pc.if_else(unseen, pa.scalar(substitute, pa.int32()), found)
        missing = substitute if self.study.missing == "impute" else -1
        codes: NDArray[np.int64] = pc.fill_null(found, missing).to_numpy(zero_copy_only=False).astype(np.int64)
        return codes

    def _clamp(self, block: Block) -> None:
        if self.diagnostics is not None:
            for row, name in self._numeric:
                low, high = self._limits[:, row] * (1 + 1e-12)
                outside = int(np.count_nonzero((block[row] < low) | (block[row] > high)))
                self.diagnostics.clamped[name] = self.diagnostics.clamped.get(name, 0) + outside
        np.clip(block, self._limits[0, :, None], self._limits[1, :, None], out=block)

    def _shrink(self, block: Block, squares: NDArray[np.float64]) -> None:
        """Multiply the whole row, response included, by min(1, R/‖x‖)."""
        if self._radius is None:
            return
        norms = np.sqrt(squares)
        if self.diagnostics is not None:
            self.diagnostics.shrunk += int(np.count_nonzero(norms > self._radius))
        block *= self._radius / np.maximum(norms, self._radius)

    def _blank_incomplete(self, block: Block, incomplete: NDArray[np.bool_]) -> None:
        """A row with a missing value becomes the zero row: it stays a row, and adds nothing to any sum."""
        if not incomplete.any():
            return
        if self.study.missing == "refuse":
            refuse_missing()
        if self.diagnostics is not None:
            self.diagnostics.incomplete += int(np.count_nonzero(incomplete))
        block[:, incomplete] = 0.0


def refuse_missing() -> NoReturn:
    """Refuse a table with missing values where the study says so."""
    message = 'the table has missing values: fill them, or agree on missing = "drop" or "impute" in the study'
    raise TableError(message)


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    index = batch.schema.get_field_index(name)
    if index < 0:
        message = f"the table needs exactly one column named {name!r}"
        raise TableError(message)
    column = batch.column(index)
    if not pa.types.is_dictionary(column.type):
        return column
    values = column.dictionary
    plain = pc.cast(values, pa.string()) if pa.types.is_string_view(values.type) else values  # Arrow cannot take from views
    return pc.take(plain, column.indices)


def numbers_of(batch: pa.RecordBatch, name: str) -> NDArray[np.float64]:
    """A numeric column as floats, missing values as NaN."""
    column = _column(batch, name)
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if not any(kind(column.type) for kind in _NUMBERS):
        message = f"column {name!r} must hold numbers, as the study gives it a range"
        raise TableError(message)
    numbers: NDArray[np.float64] = pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def _strings(batch: pa.RecordBatch, name: str) -> pa.Array:
    column = _column(batch, name)
    if pa.types.is_floating(column.type):  # whole numbers that met a missing value on their way through pandas
        column = pc.cast(column, pa.float64())
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
        if pc.all(pc.equal(column, pc.floor(column))).as_py() is not False:
            column = pc.cast(column, pa.int64(), safe=False)
    if not any(kind(column.type) for kind in _NAMES_LEVELS):
        message = f"column {name!r} must hold text, whole numbers or booleans, as the study gives it levels"
        raise TableError(message)
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
