"""Sufficient statistics: what a table adds up to, exactly.

With rows encoded as whole numbers, sums of their products are whole numbers too. They are kept as such, so
addition is associative to the last bit: files, batches and partitions may be merged in any order, a table
split in two gives the very statistics of the whole, and no rounding error can widen the sensitivity.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.columns import GRID_BITS
from tacit.holder.encode import Diagnostics, Encoder
from tacit.study import Study

STEP_BITS = 2 * GRID_BITS
"""Sums of products are whole multiples of 2⁻³⁶."""
_BLOCKS_PER_FLUSH = 512
"""Block sums of at most 2⁵³ that fit into a 64-bit accumulator with a bit to spare."""


@dataclass(frozen=True)
class Statistics:
    """Number of rows and the (d + 1)-square matrix Σ (x, y)(x, y)' in whole steps of 2⁻³⁶ (Python integers)."""

    n: int
    gram: NDArray[Any]

    @classmethod
    def zero(cls, d: int) -> Self:
        """Statistics of no rows."""
        return cls(0, np.zeros((d + 1, d + 1), dtype=object))

    def __add__(self, other: "Statistics") -> "Statistics":
        return Statistics(self.n + other.n, self.gram + other.gram)

    def xtx(self) -> NDArray[np.float64]:
        """X'X rounded to floats, for the holder's own use."""
        xtx: NDArray[np.float64] = np.ldexp(self.gram[:-1, :-1].astype(float), -STEP_BITS)
        return xtx


def statistics_of(
    study: Study,
    batches: Iterable[pa.RecordBatch],
    *,
    diagnostics: Diagnostics | None = None,
    on_rows: Callable[[int], None] = lambda _rows: None,
) -> Statistics:
    """Add up the statistics of a stream of record batches; `on_rows` hears of each batch's size for a progress bar."""
    encoder = Encoder(study, diagnostics)
    total = Statistics.zero(study.d)
    partial = np.zeros((study.d + 1, study.d + 1), dtype=np.int64)
    rows = blocks = 0
    for batch in batches:
        for block in encoder.blocks(batch):
            partial += (block @ block.T).astype(np.int64)
            rows += block.shape[1]
            block.fill(0.0)  # nothing of a row is left behind but its part of the sum
            blocks += 1
            if blocks % _BLOCKS_PER_FLUSH == 0:
                total += Statistics(rows, partial.astype(object))
                partial, rows = np.zeros_like(partial), 0
        on_rows(batch.num_rows)
    return total + Statistics(rows, partial.astype(object))
