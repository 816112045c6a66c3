r"""Rows as the study sees them: mapped to [−1, 1], shrunk into the ball, on a fixed-point grid.

An encoded row is (x, y) with x the study's d columns, and y its response or several. Whole numbers
stand for multiples of 2⁻¹⁸, no entry exceeds 4, and a block has at most 2¹³ rows, so a sum of
products over a block is a whole number of at most 2⁵³: floating-point matrix multiplication
computes it without any rounding, in any order, on any machine. Where entries may be c times larger,
blocks have c² times fewer rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.errors import TableError
from tacit.holder.division import Division
from tacit.holder.row_map import RowMap
from tacit.holder.watch import Watch
from tacit.holder.weighing import weighed
from tacit.release.question import Question
from tacit.rows.design import Block, Design
from tacit.study import Study
from tacit.study.form import LARGEST_ENTRY
from tacit.study.grid import GRID, GRID_BITS

BLOCK_ROWS = int(2 ** (53 - 2 * GRID_BITS) / LARGEST_ENTRY**2)


@dataclass
class Diagnostics:
    """What the holder alone may see: how many values were clamped or missing, and rows shrunk.

    A `watch`, where there is one, looks at every column closely.
    """

    rows: int = 0
    shrunk: int = 0
    incomplete: int = 0
    clamped: dict[str, int] = field(default_factory=dict)
    watch: Watch | None = None

    def add(self, more: "Diagnostics") -> None:
        """Add what was counted of rows that come after these."""
        self.rows += more.rows
        self.shrunk += more.shrunk
        self.incomplete += more.incomplete
        for column, values in more.clamped.items():
            self.count_clamped(column, values)
        if self.watch is not None and more.watch is not None:
            self.watch.add(more.watch)

    def count_clamped(self, column: str, values: int) -> None:
        """Count values of a column that lay outside its range."""
        self.clamped[column] = self.clamped.get(column, 0) + values


class Encoder:
    """Turns record batches into blocks of encoded rows, and counts up `diagnostics` if given."""

    def __init__(
        self,
        study: Study,
        diagnostics: Diagnostics | None = None,
        question: Question | None = None,
    ) -> None:
        self.study = study
        self._map = None if question is None else RowMap.of(study, question)
        self.diagnostics = diagnostics
        self._watch = None if diagnostics is None else diagnostics.watch
        is_counted = diagnostics is not None and self._watch is None  # a watch counts them itself
        on_outside = diagnostics.count_clamped if diagnostics and is_counted else None
        self._design = Design(
            study, response=True, unit=GRID, on_outside=on_outside, watch=self._watch
        )
        # Rounding to the grid moves a row by at most √d/2 steps, so shrinking stops that much short
        # of the radius.
        whole = question is None and study.row_radius >= study.longest_row
        radius = 1.0 if question is not None else study.row_radius
        bound = 1.0 if question is not None else study.response_bound
        entry = LARGEST_ENTRY if question is not None else study.largest_entry
        self._radius = None if whole else radius * GRID - np.sqrt(study.d)
        self._bound = np.floor(bound * GRID)
        self.block_rows = int(BLOCK_ROWS * (LARGEST_ENTRY / entry) ** 2)
        self._division = None if study.person is None else Division(study, radius, bound)

    def blocks(self, batch: pa.RecordBatch) -> Iterator[Block]:
        """Encode a batch of any size, up to 2¹³ rows at a time."""
        rows = self._design.blocks(batch, self.block_rows)
        if self.study.weight is not None:
            rows = weighed(rows, batch, self.study.weight)
        blocks = map(self._encode, rows)
        if self._division is None:
            return blocks
        return self._division.divided(blocks, self._division.rows_of(batch))

    def _encode(self, block: Block) -> Block:
        """Shrink and round at most 2¹³ rows, in place unless they are mapped."""
        if self._map is not None:
            block = self._map.apply(block)
        x = block[: self.study.d]
        y = block[self.study.d :]
        squares = _squared_norms(x)
        if self._watch is not None:
            self._watch.lengths.add(squares)
        self._shrink(block, squares)
        np.clip(y, -self._bound, self._bound, out=y)
        np.rint(block, out=block)
        block[:, np.isinf(squares)] = 0.0  # longer than numbers go: shrunk to nothing
        self._blank_incomplete(block, np.isnan(squares) | np.isnan(y).any(axis=0))
        if self.diagnostics is not None:
            self.diagnostics.rows += block.shape[1]
        return block

    def _shrink(self, block: Block, squares: NDArray[np.float64]) -> None:
        """Multiply the row by min(1, R/‖x‖), response included; but not a visit's residual.

        A residual that is cut at its bound is small by itself: to shrink it too would take long
        rows out of X'r, which decide on the line where it bends.
        """
        if self._radius is None:
            return
        norms = np.sqrt(squares)
        if self.diagnostics is not None:
            self.diagnostics.shrunk += int(np.count_nonzero(norms > self._radius))
        shrunk = block if self._map is None else block[: self.study.d]
        shrunk *= self._radius / np.maximum(norms, self._radius)

    def _blank_incomplete(self, block: Block, incomplete: NDArray[np.bool_]) -> None:
        """A row with a missing value becomes the zero row, which adds nothing to any sum."""
        if not incomplete.any():
            return
        if self.study.missing == "refuse" and self._watch is None:
            refuse_missing()
        if self.diagnostics is not None:
            self.diagnostics.incomplete += int(np.count_nonzero(incomplete))
        block[:, incomplete] = 0.0


def _squared_norms(x: Block) -> NDArray[np.float64]:
    """Σx² of each row, column after column: the same bits whichever rows stand beside it.

    A library's own sum may add in another order for a block of another size.
    """
    total = np.zeros(x.shape[1])
    square = np.empty(x.shape[1])
    for column in x:
        np.multiply(column, column, out=square)
        total += square
    return total


def refuse_missing() -> NoReturn:
    """Refuse a table with missing values where the study says so."""
    raise TableError(
        'the table has missing values: fill them, or agree on missing = "drop" or "impute" in the '
        "study"
    )
