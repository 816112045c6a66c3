"""The design: a batch of rows as the study's encoded columns, before any row is shrunk.

Numbers are centred on their (typical) range and divided by half its width, then clamped at the
range; a level is a 1 in its column; a term multiplies such columns and polynomials of them
(terms.py), and is clamped at the size that its factors' limits give. Publishing and predicting
share this code, so that a coefficient means the same in both.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import NoReturn, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.special import eval_legendre

from tacit.errors import TableError
from tacit.rows.arrow import numbers_of, strings_of
from tacit.rows.codes import levels_in
from tacit.study import Study
from tacit.study.columns import Feature, Response
from tacit.study.responses import all_responses
from tacit.study.terms import Part, Product
from tacit.study.transforms import FUNCTIONS

Block = NDArray[np.float64]
"""Rows, one per column: shape (d, rows), or with the response, or several, below them."""
OnOutside = Callable[[str, int], None]
"""Hears, per numeric column, how many values lay outside the range and were clamped."""
Values = dict[str, NDArray[np.float64]]


class Watch(Protocol):
    """Sees every column as it is read, also what would be refused: whoever watches refuses it."""

    def see_numbers(
        self, column: Feature | Response, batch: pa.RecordBatch, values: NDArray[np.float64]
    ) -> None:
        """A numeric column's values, NaN where there is none."""

    def see_levels(self, feature: Feature, values: pa.Array, places: pa.Array) -> None:
        """A column of levels: their text, and their places among the study's or null."""


Codes = dict[str, NDArray[np.int64]]


class Design:
    """Maps record batches to blocks of encoded columns, in multiples of 1/`unit`.

    Missing values are NaN, unless the study imputes them: then a feature's is the middle of its
    range, or its `other` level.
    """

    def __init__(
        self,
        study: Study,
        *,
        response: bool,
        unit: float = 1.0,
        on_outside: OnOutside | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.study = study
        self._unit = unit
        self._on_outside = on_outside
        self._watch = watch
        self._responses = all_responses(study) if response else ()
        self._height = study.d + len(self._responses)
        # Row, column, middle and factor of each.
        self._numeric: list[tuple[int, str, tuple[float, float]]] = []
        self._categorical: list[tuple[int, Feature]] = []
        self._products: list[tuple[int, Product]] = []
        self._limits = np.array([[-unit], [unit]]) * np.ones(self._height)
        for row, own in enumerate(self._responses, start=study.d):
            self._add_number(row, own.name, own.mapping, own.limits)
        row = int(study.intercept)
        for product in study.products:
            self._add(row, product)
            row += len(product.columns)

    def _add(self, row: int, product: Product) -> None:
        first, *others = product.parts
        if others or not first.is_plain:
            self._products.append((row, product))
            self._limits[:, row : row + len(product.columns)] *= product.size
        elif first.feature.range is not None:
            self._add_number(row, first.feature.name, first.mapping, first.limits)
        else:
            self._categorical.append((row, first.feature))

    def _add_number(
        self, row: int, name: str, mapping: tuple[float, float], limits: tuple[float, float]
    ) -> None:
        middle, half = mapping
        self._numeric.append((row, name, (middle, self._unit / half)))
        self._limits[:, row] = np.array(limits) * self._unit

    def blocks(self, batch: pa.RecordBatch, most_rows: int) -> Iterator[Block]:
        """Encode a batch of any size, at most so many rows at a time."""
        further = self.study.responses
        features = [each for each in self.study.features if each.name not in further]
        numbers = {
            feature.name: self._numbers(batch, feature)
            for feature in features
            if feature.range is not None
        }
        codes = {
            feature.name: self._codes(batch, feature)
            for feature in features
            if feature.range is None
        }
        for response in self._responses:
            numbers[response.name] = self._answers(batch, response)
        for start in range(0, batch.num_rows, most_rows):
            rows = slice(start, start + most_rows)
            sliced = {name: column[rows] for name, column in numbers.items()}
            block = self._mapped(
                min(most_rows, batch.num_rows - start),
                sliced,
                {name: code[rows] for name, code in codes.items()},
            )
            np.clip(block, self._limits[0, :, None], self._limits[1, :, None], out=block)
            yield block

    # Columns of a batch.

    def _numbers(self, batch: pa.RecordBatch, column: Feature | Response) -> NDArray[np.float64]:
        """A numeric column, outside values counted, missing ones imputed if the study says so."""
        values = numbers_of(batch, column.name)
        if self._on_outside is not None:
            self._on_outside(column.name, outside(values, column.range))
        if self._watch is not None:
            self._watch.see_numbers(column, batch, values)
        if self.study.missing == "impute" and isinstance(column, Feature):
            values = np.where(np.isnan(values), column.mapping[0], values)
        return values

    def _answers(self, batch: pa.RecordBatch, response: Response) -> NDArray[np.float64]:
        values = self._numbers(batch, response)
        if response.function is None:
            return values
        applied: NDArray[np.float64] = FUNCTIONS[response.function].forward(
            np.clip(values, *response.range)
        )
        return applied

    def _codes(self, batch: pa.RecordBatch, feature: Feature) -> NDArray[np.int64]:
        """Index of each row's level; −1 where it is missing and not imputed."""
        values, places = levels_in(strings_of(batch, feature.name), feature.all_levels)
        if self._watch is not None:
            self._watch.see_levels(feature, values, places)
        unseen = pc.and_(pc.is_valid(values), pc.is_null(places))
        substitute = 0 if feature.other is None else feature.all_levels.index(feature.other)
        if feature.other is None and self._watch is None and pc.any(unseen).as_py():
            refuse_level(feature.name)
        places = pc.if_else(unseen, pa.scalar(substitute, pa.int32()), places)
        missing = substitute if self.study.missing == "impute" else -1
        codes: NDArray[np.int64] = (
            pc.fill_null(places, missing).to_numpy(zero_copy_only=False).astype(np.int64)
        )
        return codes

    # Columns of the design.

    def _mapped(self, rows: int, numbers: Values, codes: Codes) -> Block:
        block = np.empty((self._height, rows))
        # A value of 1e300 may become infinite: it is clamped like any other.
        with np.errstate(over="ignore"):
            for row, name, (middle, factor) in self._numeric:
                np.subtract(numbers[name], middle, out=block[row])
                block[row] *= factor
        if self.study.intercept:
            block[0] = self._unit
        for row, feature in self._categorical:
            _spread(codes[feature.name], 1, self._unit, block[row : row + len(feature.columns)])
        self._multiply(block, numbers, codes)
        return block

    def _multiply(self, block: Block, numbers: Values, codes: Codes) -> None:
        """Fill in the terms that are more than a feature."""

        @cache
        def columns(part: Part) -> Block:
            if part.feature.range is not None:
                return _variable(part, numbers[part.factor.of])[None]
            spread = np.empty((len(part.levels), block.shape[1]))
            _spread(codes[part.factor.of], int(not part.factor.every_level), 1.0, spread)
            return spread

        for row, product in self._products:
            filled = np.full((1, block.shape[1]), self._unit)
            for part in product.parts:
                filled = (filled[:, None] * columns(part)).reshape(-1, block.shape[1])
            block[row : row + len(filled)] = filled


def refuse_level(name: str) -> NoReturn:
    """Refuse a level that the study has no place for."""
    raise TableError(
        f"column {name!r} holds a level that the study does not list: a rehearsal shows where; "
        'correct the table, or agree on a study that lists it or has other = "…"'
    )


def outside(values: NDArray[np.float64], bounds: tuple[float, float] | None) -> int:
    """How many values lie outside a range, and will be clamped."""
    low, high = bounds or (-np.inf, np.inf)
    return int(np.count_nonzero((values < low) | (values > high)))


def _spread(codes: NDArray[np.int64], first: int, one: float, columns: Block) -> None:
    """Write levels, from `first` on, as 0 or `one`, each in its column; NaN where missing."""
    for offset in range(len(columns)):
        np.multiply(codes == offset + first, one, out=columns[offset])
    columns[:, codes < 0] = np.nan


def _variable(part: Part, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """A numeric factor: clamped at the range, then the function, the mapping and the degree."""
    factor = part.factor
    values = np.clip(values, *(part.feature.range or (-np.inf, np.inf)))
    if factor.function is not None:
        values = FUNCTIONS[factor.function].forward(values)
    middle, half = part.mapping
    mapped: NDArray[np.float64] = np.clip((values - middle) / half, *part.limits)
    if factor.degree > 1:
        mapped = eval_legendre(factor.degree, mapped) if factor.centred else mapped**factor.degree
    return mapped
