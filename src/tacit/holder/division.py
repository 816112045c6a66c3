r"""Division: each of a person's m rows is divided by √m, so that all of them weigh as one row does.

An encoded row is of whole numbers, ‖x‖ ≤ R and |y| ≤ Y in steps of the grid. Multiplied by

    g(m) = min(1 − √(md)/R, 1 − √m/Y)/√m        (1 for m = 1, 0 where that is negative)

and rounded again, it has ‖x‖ ≤ gR + √d and |y| ≤ gY + 1, with half of the last terms to spare for
floating point; so m such rows have ‖X‖ ≤ √m(gR + √d) ≤ R and ‖y‖ ≤ Y, all that the sensitivity
needs (docs/privacy.md, "Persons"). The factor is one for the whole row, response included, which
leaves y = x'θ + e as it is, and it depends on nothing but m: the same bits in any order of rows.
"""

from collections.abc import Iterable, Iterator
from typing import NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.errors import TableError
from tacit.rows.arrow import numbers_of
from tacit.rows.design import Block
from tacit.rows.table import ONE, ROWS
from tacit.study import Study
from tacit.study.grid import GRID


class Division:
    """What a row counts for in a study of persons."""

    def __init__(
        self, study: Study, radius: float | None = None, bound: float | None = None
    ) -> None:
        self._refuses = study.missing_person == "refuse"
        self._radius = (study.row_radius if radius is None else radius) * GRID
        self._bound = np.floor((study.response_bound if bound is None else bound) * GRID)
        self._root = np.sqrt(study.d)

    def rows_of(self, batch: pa.RecordBatch) -> NDArray[np.float64]:
        """How many rows each row's person has; without a person it is alone, or refused."""
        rows = numbers_of(batch, ROWS)
        missing = np.isnan(rows)
        if self._refuses and missing.any():
            refuse_missing_person()
        rows = np.where(missing, 1.0, rows)
        if rows.min(initial=1.0) < 1:
            raise TableError(
                "the table's rows cannot be counted: each person must have one at least"
            )
        return rows

    def divided(self, blocks: Iterable[Block], rows: NDArray[np.float64]) -> Iterator[Block]:
        """Blocks of encoded rows, each by the root of how many rows its person has; in place."""
        factors = self._factors(rows)
        start = 0
        for block in blocks:
            end = start + block.shape[1]
            np.multiply(block, factors[start:end], out=block)
            yield np.rint(block, out=block)
            start = end

    @staticmethod
    def roots(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """1/√m, or a hair less: 1 for m = 1, and never more than that after rounding."""
        roots: NDArray[np.float64] = (1 - 2.0**-40) / np.sqrt(rows)
        roots[rows == 1] = 1.0
        return roots

    def _factors(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """g(m)."""
        root = np.sqrt(rows)
        slack = root * max(self._root / self._radius, 1 / self._bound)
        factors: NDArray[np.float64] = np.maximum(1 - slack, 0.0) / root
        factors[rows == 1] = 1.0
        return factors


def persons_in(batch: pa.RecordBatch) -> int:
    """Persons whose marked row is in the batch, and rows without a person."""
    marked = np.count_nonzero(numbers_of(batch, ONE))
    return int(marked) + int(batch[ROWS].null_count)


def refuse_missing_person() -> NoReturn:
    """Refuse a table with rows that are nobody's, where the study says so."""
    raise TableError(
        "the table has rows without a person: say whose they are, or agree on "
        'missing_person = "alone" in the study, which takes each for a person of its own'
    )
