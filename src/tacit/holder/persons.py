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
from tacit.rows.table import ONE, ROWS, Batches, Table, paths_of, table_of
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
    ids = table_of(source, study, [study.person]) if paths_of(source) else table
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

    def bits(self, ids: pa.Array) -> Bits:
        """Two numbers for each id: sums of its words, each times a secret number, modulo 2⁶⁴.

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
        bits = np.empty((len(ids), 2), np.uint64)
        bits[:, 0] = sums[0] & UPPER | sums[1] >> HALF
        bits[:, 1] = sums[2] & UPPER | sums[3] >> HALF | np.uint64(1)
        return bits

    @staticmethod
    def _sum(key: Bits, columns: list[Bits]) -> Bits:
        total = np.full(len(columns[0]), key[0])
        for factor, column in zip(key[1:], columns, strict=False):
            total += factor * column
        return total


class Roll:
    """How many rows each person has: slots, of which an id's first bits say where to look first.

    From there on slots are tried one after the other, for all ids of a batch at once. A slot is two
    rows of two numbers, so that each is one place in memory: the id's bits, and rows of the person
    in all and still to come.
    """

    def __init__(self) -> None:
        self.persons = 0
        self._scrambler = Scrambler()
        self._clear(FEWEST_SLOTS)

    def _clear(self, slots: int) -> None:
        self._bits = np.zeros((slots, 2), np.uint64)  # the second is 0 in a free slot
        self._rows = np.zeros((slots, 2), np.int64)

    # The first reading.

    def add(self, ids: pa.Array) -> None:
        """Count one row for each id; a missing one is nobody's."""
        bits = self._scrambler.bits(ids.drop_null())
        self._reserve(len(bits))
        np.add.at(self._rows[:, 0], self._slots(bits, take=True), 1)

    def repeats(self) -> Repeats:
        """What was counted."""
        rows = self._rows[:, 0]
        return Repeats(self.persons, int(np.count_nonzero(rows > 1)), int(rows.max(initial=0)))

    def _reserve(self, more: int) -> None:
        """Make room for so many persons, should all of them be new."""
        slots = len(self._rows)
        while (self.persons + more) > FULL * slots:
            slots *= 2
        if slots == len(self._rows):
            return
        taken = self._bits[:, 1] != 0
        bits = self._bits[taken]
        rows = self._rows[taken]
        self._clear(slots)
        self._lay_out(bits, rows)

    def _lay_out(self, bits: Bits, rows: NDArray[np.int64]) -> None:
        """Put persons into free slots: in the order of their first slots, each behind the last."""
        home = self._first(bits)
        order = np.argsort(home, kind="stable")
        ahead = np.arange(len(home))
        places = np.maximum.accumulate(home[order] - ahead) + ahead
        inside = places < len(self._rows)
        self._bits[places[inside]] = bits[order[inside]]
        self._rows[places[inside]] = rows[order[inside]]
        self.persons = int(np.count_nonzero(inside))
        beyond = order[~inside]  # these begin again at the first slot
        self._rows[self._slots(bits[beyond], take=True)] = rows[beyond]

    def _first(self, bits: Bits) -> Places:
        """The slot at which each id is looked for first."""
        shift = np.uint64(65 - len(self._bits).bit_length())
        return (bits[:, 0] >> shift).astype(np.int64)

    def _slots(self, bits: Bits, *, take: bool = False) -> Places:
        """The slot of each id; one without gets a new one, or else a free one."""
        size = len(self._bits)
        slots = self._first(bits)
        looking = np.arange(len(slots))
        at = slots
        wanted = bits
        while len(at):
            held = self._bits.take(at, axis=0)
            free = held[:, 1] == 0
            if take and free.any():
                self._take(at[free], wanted[free])
                held[free] = self._bits[at[free]]
                free[:] = False
            own = (held[:, 1] == wanted[:, 1]) & (held[:, 0] == wanted[:, 0])
            looking = looking[~(own | free)]
            at = (slots[looking] + 1) % size
            slots[looking] = at
            wanted = bits[looking]
        return slots

    def _take(self, slots: Places, bits: Bits) -> None:
        """Give each of these free slots to one of the ids that want it."""
        given, to = np.unique(slots, return_index=True)
        self._bits[given] = bits[to]
        self.persons += len(given)

    # The second reading.

    def begin(self) -> None:
        """All rows are still to come."""
        self._rows[:, 1] = self._rows[:, 0]

    def counted(self, batch: pa.RecordBatch, person: str) -> pa.RecordBatch:
        """The batch with the number of rows of each one's person, and a mark on each person's last.

        The number is missing where the person is.
        """
        ids = ids_of(batch, person)
        slots = self._slots(self._scrambler.bits(ids.drop_null()))
        np.subtract.at(self._rows[:, 1], slots, 1)
        rows = self._rows.take(slots, axis=0)
        if rows[:, 1].min(initial=0) < 0:
            refuse_changed()
        last = np.zeros(len(slots), bool)
        done = np.flatnonzero(rows[:, 1] == 0)
        last[done[np.unique(slots[done], return_index=True)[1]]] = True
        counts = pa.array(rows[:, 0])
        marks = pa.array(last)
        if ids.null_count:
            counts = _spread(counts, ids)
            marks = _spread(marks, ids).fill_null(False)  # noqa: FBT003
        return batch.append_column(ROWS, counts).append_column(ONE, marks)

    def check_whole(self) -> None:
        """Refuse a second reading with fewer rows than the first."""
        if self._rows[:, 1].any():
            refuse_changed()


def _spread(values: pa.Array, ids: pa.Array) -> pa.Array:
    """Values of those ids that are there, at their places; null elsewhere."""
    known = ids.is_valid().to_numpy(zero_copy_only=False)
    places = np.cumsum(known) - 1
    return values.take(pa.array(places, mask=~known))


def refuse_changed() -> NoReturn:
    """Refuse a source whose two readings differ."""
    raise TableError(
        "the table changed, or ended, between two readings: a study with a person reads it twice; "
        "give a table that can be read again, and leave it alone meanwhile"
    )
