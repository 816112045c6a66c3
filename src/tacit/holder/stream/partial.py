"""Partial: what is held of a batch that is not full yet.

Rows are added up as they come, so that this is no more than their statistics. In a study of persons
a row's weight is not known before the batch is full. Its encoded rows are held until then, each
with 127 bits made of its person's id by a secret function, and overwritten after that.
"""

from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.holder.division import Division, refuse_missing_person
from tacit.holder.encode import BLOCK_ROWS, Encoder
from tacit.holder.scrambler import Scrambler
from tacit.holder.statistics import Statistics, gram_of, statistics_of
from tacit.rows.arrow import ids_of
from tacit.study import Study


class Partial(Protocol):
    """A batch so far."""

    rows: int

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows in."""

    def statistics(self) -> Statistics:
        """What the rows so far add up to; they are forgotten."""


def partial_of(study: Study) -> Partial:
    """A batch without rows."""
    return _Sums(study) if study.person is None else _Persons(study, study.person)


class _Sums:
    """The statistics of the rows so far."""

    def __init__(self, study: Study) -> None:
        self.rows = 0
        self._study = study
        self._total = Statistics.zero(study)

    def add(self, batch: pa.RecordBatch) -> None:
        self._total += statistics_of(self._study, [batch])
        self.rows += batch.num_rows
        _forget_product(_height(self._study), batch.num_rows)

    def statistics(self) -> Statistics:
        return self._total


class _Persons:
    """The encoded rows so far, and whose they are."""

    def __init__(self, study: Study, person: str) -> None:
        self.rows = 0
        self._study = study
        self._person = person
        plain = study.model_copy(update={"person": None, "missing_person": "refuse"})
        self._encoder = Encoder(plain)
        self._scrambler = Scrambler()
        self._blocks: list[NDArray[np.int32]] = []
        self._ids: list[NDArray[np.uint64]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        ids = ids_of(batch, self._person)
        if ids.null_count and self._study.missing_person == "refuse":
            refuse_missing_person()
        self._ids.append(self._bits(ids))
        for block in self._encoder.blocks(batch):
            self._blocks.append(block.astype(np.int32))
            block.fill(0.0)
        self.rows += batch.num_rows

    def _bits(self, ids: pa.Array) -> NDArray[np.uint64]:
        """An id's bits; one that is missing has a number of its own, which no id's are."""
        known = ids.is_valid().to_numpy(zero_copy_only=False)
        bits = np.zeros((len(ids), 2), np.uint64)
        bits[:, 1] = np.arange(self.rows, self.rows + len(ids))
        bits[known] = np.stack(self._scrambler.marks_and_checks(ids.drop_null()), axis=1)
        return bits

    def statistics(self) -> Statistics:
        encoded = np.hstack(self._blocks).astype(float)
        persons, inverse, counts = np.unique(
            np.vstack(self._ids), axis=0, return_inverse=True, return_counts=True
        )
        width = self._encoder.block_rows
        blocks = [encoded[:, start : start + width] for start in range(0, self.rows, width)]
        rows = counts[inverse].astype(float)
        gram = gram_of(Division(self._study).divided(blocks, rows), _height(self._study))
        for block in self._blocks:
            block.fill(0)
        _forget_product(_height(self._study), self.rows)
        return Statistics(len(persons), gram)


def _height(study: Study) -> int:
    """Entries of an encoded row, responses included."""
    return study.d + study.response_count


def _forget_product(height: int, rows: int) -> None:
    """Multiply zeros of the same shape: the library keeps what it multiplied last."""
    blank = np.zeros((height, min(rows, BLOCK_ROWS)))
    blank @ blank.T
