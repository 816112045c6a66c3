"""Sufficient statistics: what a table adds up to, exactly.

With rows encoded as whole numbers, sums of their products are whole numbers too. They are kept as
such, so addition is associative to the last bit: files, batches and partitions may be merged in any
order, a table split in two gives the very statistics of the whole, and no rounding error can widen
the sensitivity. Only where the study averages rows must a table be read in one piece: which rows
meet is decided over all of them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.holder.averaging import Order, averaged, refuse_pieces, secure_order
from tacit.holder.division import persons_in
from tacit.holder.encode import Diagnostics, Encoder
from tacit.holder.tally import Tally
from tacit.release.question import Question
from tacit.rows.design import Block
from tacit.study import Study
from tacit.study.grid import GRID_BITS

STEP_BITS = 2 * GRID_BITS
"""Sums of products are whole multiples of 2⁻³⁶."""
_BLOCKS_PER_FLUSH = 512
"""Block sums of at most 2⁵³ that fit into a 64-bit accumulator with a bit to spare."""


@dataclass(frozen=True)
class Statistics:
    """Number of rows and the matrix Σ (x, y)(x, y)' in whole steps of 2⁻³⁶ (Python integers).

    Of several responses y holds all, and what is published are X'X and each one's X'y and y'y. In a
    study of persons n is their number. Where `average` rows are summed before they are
    multiplied, the steps are that many times smaller.
    """

    n: int
    gram: NDArray[Any]
    average: int = 1

    @classmethod
    def zero(cls, study: Study) -> Self:
        """Statistics of no rows."""
        height = study.d + study.response_count
        return cls(0, np.zeros((height, height), dtype=object))

    def __add__(self, other: "Statistics") -> "Statistics":
        if max(self.average, other.average) > 1:
            refuse_pieces()
        return Statistics(self.n + other.n, self.gram + other.gram)

    def floats(self) -> NDArray[np.float64]:
        """The matrix rounded to floats, in the study's scaled units."""
        floats: NDArray[np.float64] = np.ldexp(self.gram.astype(float), -STEP_BITS) / self.average
        return floats

    @property
    def numbers(self) -> list[int]:
        """All of it as whole numbers that add up over pieces: n, then the upper triangle."""
        if self.average > 1:
            refuse_pieces()
        return [self.n, *self.gram[np.triu_indices(len(self.gram))].tolist()]

    @classmethod
    def from_numbers(cls, study: Study, numbers: Sequence[int]) -> Self:
        """The statistics whose `numbers` these are."""
        total = cls.zero(study)
        upper = np.triu_indices(len(total.gram))
        total.gram[upper] = total.gram.T[upper] = numbers[1:]
        return cls(numbers[0], total.gram)

    def xtx(self, responses: int = 1) -> NDArray[np.float64]:
        """X'X rounded to floats, for the holder's own use."""
        return self.floats()[:-responses, :-responses]


def statistics_of(
    study: Study,
    batches: Iterable[pa.RecordBatch],
    *,
    diagnostics: Diagnostics | None = None,
    on_rows: Callable[[int], None] = lambda _rows: None,
    order: Order = secure_order,
    question: Question | None = None,
) -> Statistics:
    """Add up the statistics of record batches; `on_rows` hears of each batch's size.

    `order` deals rows into groups where the study averages them; one that is not secret is for
    simulation. A visit's `question` maps rows first.
    """
    encoder = Encoder(study, diagnostics, question)
    size = study.release.average
    n = 0

    def encoded() -> Iterator[Block]:
        nonlocal n
        for batch in batches:
            yield from encoder.blocks(batch)
            n += batch.num_rows if study.person is None else persons_in(batch)
            on_rows(batch.num_rows)

    blocks = encoded() if size == 1 else averaged(encoded(), size, order)
    gram = gram_of(blocks, study.d + study.response_count)
    return Statistics(n, gram, size)


def gram_of(blocks: Iterable[Block], height: int) -> NDArray[Any]:
    """Sum of products of every block with itself, in Python integers."""
    total: NDArray[Any] = np.zeros((height, height), dtype=object)
    partial = np.zeros((height, height), dtype=np.int64)
    for number, block in enumerate(blocks, start=1):
        partial += (block @ block.T).astype(np.int64)
        block.fill(0.0)  # nothing of a row is left behind but its part of the sum
        if number % _BLOCKS_PER_FLUSH == 0:
            total += partial.astype(object)
            partial[:] = 0
    total += partial.astype(object)
    return total


STATISTICS = Tally(statistics_of, attrgetter("numbers"), Statistics.from_numbers, "statistics")
