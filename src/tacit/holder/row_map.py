r"""The map of a visit's question, applied to rows exactly.

A row on the grid is a column of whole numbers (x, y). The question's map and offset are rounded to
whole multiples of a power of two, row by row of the matrix M, with so few bits that every entry of
M·(x, y) is a whole number below 2⁵³: the product is exact in any order, on any machine, whichever
rows stand beside a row. What follows (shrinking, cutting, rounding) looks at one row alone.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tacit.release.question import Question
from tacit.rows.design import Block
from tacit.study import Study
from tacit.study.grid import GRID

EXACT_BITS = 53
"""Whole numbers of so many bits are exact in double precision."""
LEAST_SIZE = 2.0**-100
"""Rows of the map are counted in steps of at least this over 2⁵³. No number that is made of rows is
then denormal: processors take longer over such numbers, and that could be seen."""


@dataclass(frozen=True)
class RowMap:
    """M in whole numbers, and the step that each of its rows counts in."""

    whole: NDArray[np.float64]  # (d + 1, d + 1)
    steps: NDArray[np.float64]  # (d + 1, 1)

    @classmethod
    def of(cls, study: Study, question: Question) -> Self:
        """The map to u/radius and r/bound."""
        d = study.d
        matrix = np.zeros((d + 1, d + 1))
        matrix[:d, :d] = question.matrix.T / question.radius
        matrix[d, :d] = -question.start / question.bound
        matrix[d, d] = 1 / question.bound
        largest = (d + 1) * GRID * max(1.0, study.widest)
        bits = EXACT_BITS - 1 - math.ceil(math.log2(largest))
        sizes = np.maximum(np.abs(matrix).max(axis=1, keepdims=True), LEAST_SIZE)
        steps = np.exp2(np.ceil(np.log2(sizes)) - bits)
        return cls(whole=np.rint(matrix / steps), steps=steps)

    def apply(self, block: Block) -> Block:
        """Rows, rounded to the grid, as (u/radius, r/bound) in steps of the grid.

        A row with a missing value has no number left, also where the map takes nothing of it.
        """
        np.rint(block, out=block)
        mapped: Block = self.whole @ block
        mapped *= self.steps
        mapped[:, np.isnan(block).any(axis=0)] = np.nan
        return mapped
