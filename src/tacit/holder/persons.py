"""Persons: how many rows each has, counted in a first reading of a table that has no order.

The second reading then knows, beside each row, how many rows its person has (`ROWS`), and marks one
row of each person (`ONE`). What is held in between is at most 100 bytes a person: never an id, but
127 bits made of it by a random function with a new secret key. Two given ids get the same bits with
probability 2⁻¹²⁷, whatever they are, so no two persons become one (docs/privacy.md, "Persons"). A
database counts by itself (`Table.by_person`).
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tacit.errors import TableError
from tacit.rows.arrow import MOST_LETTERS, ids_of
from tacit.rows.table import ONE, ROWS, Batches, Table, table_of
from tacit.study import Study

FEWEST_SLOTS = 2**16
FULL = 2 / 3
"""Largest share of slots that are taken: beyond it there are twice as many."""
WORD = 4
"""Bytes of an id that are multiplied at once."""
LANES = 4
"""Sums of which 32 bits each are kept."""

HALF = np.uint64(32)
UPPER = np.uint64(0xFFFF_FFFF_0000_0000)

Bits = NDArray[np.uint64]
Places = NDArray[np.int64]


def batches_of(study: Study, source: object) -> Batches:
    """The batches of a source; in a study of persons, each row with what its person has."""
    table = table_of(source, study)
    if study.person is None:
        return table.batches()
    if table.by_person is not None:
        return table.by_person(study)
    # Of files, the first reading takes one column alone.
    ids = table if table.alone is None else table.alone(study.person)
    return _second_reading(ids, table, study.person)


def _second_reading(ids: Table, table: Table, person: str) -> Batches:
    """Read the ids, then the table beside them."""
    roll = Roll()
    for batch in ids.batches():
        roll.add(ids_of(batch, person))
    roll.begin()
    for batch in table.batches():
        yield roll.counted(batch, person)
    roll.check_whole()


def counted_alone(batch: pa.RecordBatch, person: str) -> pa.RecordBatch:
    """A batch that is a table by itself, with what each row's person has."""
    roll = Roll()
    roll.add(ids_of(batch, person))
    roll.begin()
    return roll.counted(batch, person)


@dataclass(frozen=True)
class Repeats:
    """How often the values of a column come back: those there are, and those with several rows."""

    persons: int
    repeated: int
    most_rows: int


def repeats(batches: Iterable[pa.RecordBatch], column: str) -> Repeats:
    """How often a column's values come back, over batches of any number; missing ones are left out.

    It tells of rows, and so is for the holder's own eyes.
    """
    roll = Roll()
    for batch in batches:
        roll.add(ids_of(batch, column))
    return roll.repeats()


class Scrambler:
    """A random function from ids to 127 bits, with a secret key of its own."""

    def __init__(self) -> None:
        words = MOST_LETTERS // WORD + 2
        key = np.frombuffer(secrets.token_bytes(8 * LANES * words), np.uint64)
        self._key = key.reshape(LANES, words)

    def bits(self, ids: pa.Array) -> tuple[Bits, Bits]:
        """Of each id: sums of its words, each times a secret number, modulo 2⁶⁴.

        The upper half of each of four such sums counts (Lemire and Kaser 2014, "Multilinear"). The
        last bit is 1.
        """
        lengths = pc.binary_length(ids)
        count = -(-(pc.max(lengths).as_py() or 1) // WORD)
        padded = pc.ascii_rpad(ids, width=count * WORD, padding="\0")
        words = np.frombuffer(padded.buffers()[2] or bytes(WORD), np.uint32)
        words = words[: count * len(ids)].reshape(len(ids), count)
        columns = [
            lengths.to_numpy(zero_copy_only=False).astype(np.uint64),
            *words.T.astype(np.uint64),
        ]
        sums = [self._sum(key, columns) for key in self._key]
        high = sums[0] & UPPER | sums[1] >> HALF
        low = sums[2] & UPPER | sums[3] >> HALF
        return high, low | np.uint64(1)

    @staticmethod
    def _sum(key: Bits, columns: list[Bits]) -> Bits:
        total = np.full(len(columns[0]), key[0])
        for factor, column in zip(key[1:], columns, strict=False):
            total += factor * column
        return total


class Roll:
    """How many rows each person has: slots, of which an id's first bits say where to look first.

    From there on slots are tried one after the other, for all ids of a batch at once.
    """

    def __init__(self) -> None:
        self.persons = 0
        self._scrambler = Scrambler()
        self._clear(FEWEST_SLOTS)
        self._left = self._rows

    def _clear(self, slots: int) -> None:
        self._high = np.zeros(slots, np.uint64)
        self._low = np.zeros(slots, np.uint64)  # 0 in a free slot
        self._rows = np.zeros(slots, np.int64)

    # The first reading.

    def add(self, ids: pa.Array) -> None:
        """Count one row for each id; a missing one is nobody's."""
        high, low = self._scrambler.bits(ids.drop_null())
        self._reserve(len(high))
        np.add.at(self._rows, self._slots(high, low, take=True), 1)

    def repeats(self) -> Repeats:
        """What was counted."""
        repeated = int(np.count_nonzero(self._rows > 1))
        return Repeats(self.persons, repeated, int(self._rows.max(initial=0)))

    def _reserve(self, more: int) -> None:
        """Make room for so many persons, should all of them be new."""
        slots = len(self._rows)
        while (self.persons + more) > FULL * slots:
            slots *= 2
        if slots == len(self._rows):
            return
        taken = np.flatnonzero(self._low)
        high = self._high[taken]
        low = self._low[taken]
        rows = self._rows[taken]
        self._clear(slots)
        self.persons = 0
        self._rows[self._slots(high, low, take=True)] = rows

    def _slots(self, high: Bits, low: Bits, *, take: bool = False) -> Places:
        """The slot of each id; one without gets a new one, or else a free one."""
        size = len(self._rows)
        slots = (high >> np.uint64(65 - size.bit_length())).astype(np.int64)
        looking = np.arange(len(high))
        while len(looking):
            at = slots[looking]
            free = self._low[at] == 0
            if take:
                self._take(at[free], high[looking[free]], low[looking[free]])
                free[:] = False
            own = (self._low[at] == low[looking]) & (self._high[at] == high[looking])
            looking = looking[~(own | free)]
            slots[looking] = (slots[looking] + 1) % size
        return slots

    def _take(self, slots: Places, high: Bits, low: Bits) -> None:
        """Give each of these free slots to one of the ids that want it."""
        given, to = np.unique(slots, return_index=True)
        self._high[given] = high[to]
        self._low[given] = low[to]
        self.persons += len(given)

    # The second reading.

    def begin(self) -> None:
        """Rows that are still to come of each person."""
        self._left = self._rows.copy()

    def counted(self, batch: pa.RecordBatch, person: str) -> pa.RecordBatch:
        """The batch with the number of rows of each one's person, and a mark on each person's last.

        The number is missing where the person is.
        """
        ids = ids_of(batch, person)
        known = pc.is_valid(ids).to_numpy(zero_copy_only=False)
        slots = self._slots(*self._scrambler.bits(ids.drop_null()))
        np.subtract.at(self._left, slots, 1)
        if self._left[slots].min(initial=0) < 0:
            refuse_changed()
        rows = np.zeros(len(ids), np.int64)
        rows[known] = self._rows[slots]
        one = np.zeros(len(ids), bool)
        one[np.flatnonzero(known)[self._last(slots)]] = True
        counts = pa.array(rows, mask=~known)
        return batch.append_column(ROWS, counts).append_column(ONE, pa.array(one))

    def _last(self, slots: Places) -> Places:
        """Places of one row of each person of whom no more rows are to come."""
        done = np.flatnonzero(self._left[slots] == 0)
        return done[np.unique(slots[done], return_index=True)[1]]

    def check_whole(self) -> None:
        """Refuse a second reading with fewer rows than the first."""
        if self._left.any():
            refuse_changed()


def refuse_changed() -> NoReturn:
    """Refuse a source whose two readings differ."""
    raise TableError(
        "the table changed, or ended, between two readings: a study with a person reads it twice; "
        "give a table that can be read again, and leave it alone meanwhile"
    )
