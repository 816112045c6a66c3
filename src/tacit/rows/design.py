"""The design: a batch of rows as the study's encoded columns, before any row is shrunk.

Numbers are centred on their (typical) range and divided by half its width, then clamped at the range; a level is a 1 in its
column. Publishing and predicting share this code, so that a coefficient means the same in both.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tacit.columns import Feature
from tacit.errors import TableError
from tacit.rows.columns import numbers_of, strings_of
from tacit.study import Study

Block = NDArray[np.float64]
"""Rows, one per column: shape (d, rows), or (d + 1, rows) with the response last."""
OnOutside = Callable[[str, int], None]
"""Hears, per numeric column, how many values lay outside the range and were clamped."""


class Design:
    """Maps record batches to blocks of encoded columns, in multiples of 1/`unit`.

    Missing values are NaN, unless the study imputes them: then a feature's is 0, the middle of its range, or its `other` level.
    """

    def __init__(self, study: Study, *, response: bool, unit: float = 1.0, on_outside: OnOutside | None = None) -> None:
        self.study = study
        self._unit = unit
        self._on_outside = on_outside
        self._height = study.d + response
        self._middle, self._factor = np.zeros(self._height), np.ones(self._height)
        self._numeric: list[tuple[int, str]] = []
        self._categorical: list[tuple[int, Feature, pa.Array]] = []
        self._limits = np.array([[-unit], [unit]]) * np.ones(self._height)
        if response:
            self._add_number(study.d, study.response.name, study.response.mapping, (-1.0, 1.0))
        row = int(study.intercept)
        for feature in study.features:
            if feature.range is not None:
                self._add_number(row, feature.name, feature.mapping, feature.limits)
            else:
                self._categorical.append((row, feature, pa.array(feature.all_levels, pa.string())))
            row += len(feature.columns)

    def _add_number(self, row: int, name: str, mapping: tuple[float, float], limits: tuple[float, float]) -> None:
        middle, half = mapping
        self._numeric.append((row, name))
        self._middle[row], self._factor[row] = middle, self._unit / half
        self._limits[:, row] = np.array(limits) * self._unit

    def blocks(self, batch: pa.RecordBatch, most_rows: int) -> Iterator[Block]:
        """Encode a batch of any size, at most so many rows at a time."""
        numbers = [numbers_of(batch, name) for _, name in self._numeric]
        codes = [self._codes(batch, feature, levels) for _, feature, levels in self._categorical]
        for start in range(0, batch.num_rows, most_rows):
            rows = slice(start, start + most_rows)
            block = self._mapped(min(most_rows, batch.num_rows - start), [c[rows] for c in numbers], [c[rows] for c in codes])
            self._clamp(block)
            if self.study.missing == "impute":
                np.nan_to_num(block[: self.study.d], copy=False, nan=0.0)
            yield block

    def _mapped(self, rows: int, numbers: list[NDArray[np.float64]], codes: list[NDArray[np.int64]]) -> Block:
        block = np.empty((self._height, rows))
        with np.errstate(over="ignore"):  # a value of 1e300 may become infinite: it is clamped like any other
            for (row, _), column in zip(self._numeric, numbers, strict=True):
                np.subtract(column, self._middle[row], out=block[row])
                block[row] *= self._factor[row]
        if self.study.intercept:
            block[0] = self._unit
        for (row, _, levels), code in zip(self._categorical, codes, strict=True):
            for offset in range(len(levels) - 1):
                np.multiply(code == offset + 1, self._unit, out=block[row + offset])
            block[row : row + len(levels) - 1, code < 0] = np.nan
        return block

    def _codes(self, batch: pa.RecordBatch, feature: Feature, levels: pa.Array) -> NDArray[np.int64]:
        """Index of each row's level; −1 where it is missing and not imputed."""
        values = strings_of(batch, feature.name)
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
        if self._on_outside is not None:
            for row, name in self._numeric:
                low, high = self._limits[:, row] * (1 + 1e-12)
                self._on_outside(name, int(np.count_nonzero((block[row] < low) | (block[row] > high))))
        np.clip(block, self._limits[0, :, None], self._limits[1, :, None], out=block)
