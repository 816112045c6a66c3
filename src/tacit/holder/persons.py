"""Persons: how many rows each has, counted in a first reading of a table that has no order.

The second reading then knows, beside each row, how many rows its person has (`ROWS`), and marks one
row of each person (`ONE`). What is held in between is at most 100 bytes a person: never an id, but
127 bits made of it by a random function with a new secret key. Two given ids get the same bits with
probability 2⁻¹²⁷, whatever they are, so no two persons become one (docs/privacy.md, "Persons"). A
database counts by itself (`Table.by_person`).
"""

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tacit.errors import TableError
from tacit.rows.arrow import MOST_LETTERS, Batches, holds_whole_ids, ids_of, whole_ids_of
from tacit.rows.table import ONE, ROWS, Table, table_of
from tacit.study import Study

FEWEST_SLOTS = 2**16
FULL = 2 / 3
"""Largest share of slots that are taken: beyond it there are twice as many."""
WORD = 4
"""Bytes of an id that are multiplied at once."""
LANES = 4
"""Sums of which 32 bits each are kept."""

PIECE = 2**13
"""Ids that are scrambled at once: what is worked on then stays in the processor's cache."""
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
    roll = _first_reading(ids.batches, person)
    roll.begin()
    for batch in table.batches():
        yield roll.counted(batch)
    roll.check_whole()


def _first_reading(batches: Callable[[], Batches], person: str) -> "Roll":
    """Count rows by person: by numbers, which is faster, where all batches store such."""
    reading = batches()
    first = next(reading, None)
    roll = Roll(person, whole=first is not None and holds_whole_ids(first, person))
    for batch in reading if first is None else chain([first], reading):
        if roll.whole and not holds_whole_ids(batch, person):
            return _as_text(batches(), person)
        roll.add(batch)
    return roll


def _as_text(batches: Iterable[pa.RecordBatch], person: str) -> "Roll":
    """Count rows by the text of their ids."""
    roll = Roll(person, whole=False)
    for batch in batches:
        roll.add(batch)
    return roll


def counted_alone(batch: pa.RecordBatch, person: str) -> pa.RecordBatch:
    """A batch that is a table by itself, with what each row's person has."""
    table = Table(lambda: iter([batch]))
    return next(_second_reading(table, table, person))


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
    return _as_text(batches, column).repeats()


class Scrambler:
    """A random function from ids to two numbers, of 63 and 64 bits; its key is secret."""

    def __init__(self) -> None:
        words = MOST_LETTERS // WORD + 2
        key = np.frombuffer(secrets.token_bytes(8 * LANES * words), np.uint64)
        self._key = key.reshape(LANES, words)

    def marks(self, ids: pa.Array) -> Bits:
        """The first number of each id; it is odd."""
        return self._numbers(ids, self._key[:2])[0] | np.uint64(1)

    def marks_and_checks(self, ids: pa.Array) -> tuple[Bits, Bits]:
        """Both numbers of each id."""
        marks, checks = self._numbers(ids, self._key)
        return marks | np.uint64(1), checks

    def _numbers(self, ids: pa.Array, lanes: Bits) -> list[Bits]:
        """Sums of an id's words, each times a secret number, modulo 2⁶⁴, for each lane.

        The upper half of each sum counts (Lemire and Kaser 2014, "Multilinear"); two make a number.
        """
        words = _words(ids)
        numbers = [np.empty(len(ids), np.uint64) for _ in lanes[::2]]
        for start in range(0, len(ids), PIECE):
            rows = slice(start, start + PIECE)
            columns = [column[rows].astype(np.uint64) for column in words]
            for number, first, second in zip(numbers, lanes[::2], lanes[1::2], strict=True):
                number[rows] = _sum(first, columns) & UPPER | _sum(second, columns) >> HALF
        return numbers


def _words(ids: pa.Array) -> list[NDArray[np.integer[Any]]]:
    """The words of all ids, first words first: of numbers two, of text its length and letters."""
    if pa.types.is_integer(ids.type):
        return [*ids.to_numpy().view(np.uint32).reshape(len(ids), 2).T]
    lengths = pc.binary_length(ids)
    count = -(-(pc.max(lengths).as_py() or 1) // WORD)
    padded = pc.ascii_rpad(ids, width=count * WORD, padding="\0")
    letters = np.frombuffer(padded.buffers()[2] or bytes(WORD), np.uint32)
    words = letters[: count * len(ids)].reshape(len(ids), count)
    return [lengths.to_numpy(zero_copy_only=False), *words.T]


def _sum(key: Bits, columns: list[Bits]) -> Bits:
    total = np.full(len(columns[0]), key[0])
    for factor, column in zip(key[1:], columns, strict=False):
        total += factor * column
    return total


class Roll:
    """How many rows each person has: slots, of which the mark of an id says where to look first.

    From there on slots are tried one after the other, for all ids of a batch at once. In the first
    reading an id's check is looked at too, so that marks tell all persons apart in the second.
    """

    def __init__(self, person: str, *, whole: bool) -> None:
        self.whole = whole
        self._person = person
        self._ids_of = whole_ids_of if whole else ids_of
        self._scrambler = Scrambler()
        self._clear(FEWEST_SLOTS)

    @property
    def persons(self) -> int:
        """How many different ids there were."""
        return int(np.count_nonzero(self._marks))

    def _clear(self, slots: int) -> None:
        self._taken_at_most = 0
        self._marks = np.zeros(slots, np.uint64)  # 0 in a free slot
        self._checks = np.zeros(slots, np.uint64)
        self._rows = np.zeros(slots, np.int64)

    # The first reading.

    def add(self, batch: pa.RecordBatch) -> None:
        """Count each row for its person; one without is nobody's."""
        ids = self._ids_of(batch, self._person)
        marks, checks = self._scrambler.marks_and_checks(ids.drop_null())
        self._reserve(len(marks))
        slots = self._taken(marks, checks)
        if np.any(self._checks[slots] != checks):
            refuse_alike()
        np.add.at(self._rows, slots, 1)

    def repeats(self) -> Repeats:
        """What was counted."""
        repeated = int(np.count_nonzero(self._rows > 1))
        return Repeats(self.persons, repeated, int(self._rows.max(initial=0)))

    def _reserve(self, more: int) -> None:
        """Make room for so many persons, should all of them be new."""
        slots = len(self._rows)
        if self._taken_at_most + more > FULL * slots:
            self._taken_at_most = self.persons
        while self._taken_at_most + more > FULL * slots:
            slots *= 2
        if slots == len(self._rows):
            return
        taken = np.flatnonzero(self._marks)
        marks = self._marks[taken]
        checks = self._checks[taken]
        rows = self._rows[taken]
        self._clear(slots)
        # A few thousand at once, in their order: neighbours in memory before are so afterwards.
        for start in range(0, len(marks), FEWEST_SLOTS):
            some = slice(start, start + FEWEST_SLOTS)
            self._rows[self._taken(marks[some], checks[some])] = rows[some]

    def _slots(self, marks: Bits) -> Places:
        """The slot of each id or, where it has none, the free one at which it is not found."""
        last = len(self._marks) - 1
        slots = (marks >> np.uint64(64 - last.bit_length())).astype(np.int64)
        looking = np.arange(len(slots))
        at = slots
        wanted = marks
        while len(looking):
            held = self._marks.take(at)
            looking = looking[(held != wanted) & (held != 0)]
            at = (slots[looking] + 1) & last
            slots[looking] = at
            wanted = marks[looking]
        return slots

    def _taken(self, marks: Bits, checks: Bits) -> Places:
        """The slot of each id; new ones take theirs, of several that want the same one the last."""
        slots = self._slots(marks)
        new = np.flatnonzero(self._marks.take(slots) == 0)
        while len(new):
            self._marks[slots[new]] = marks[new]
            own = new[self._marks[slots[new]] == marks[new]]
            self._checks[slots[own]] = checks[own]
            self._taken_at_most += len(own)
            slots[new] = self._slots(marks[new])
            new = new[self._marks[slots[new]] == 0]
        return slots

    # The second reading.

    def begin(self) -> None:
        """All rows are still to come; checks have done their work."""
        self._checks = np.zeros(0, np.uint64)
        self._left = self._rows.copy()

    def counted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the number of rows of each one's person, and a mark on each person's last.

        The number is missing where the person is.
        """
        ids = self._ids_of(batch, self._person)
        slots = self._slots(self._scrambler.marks(ids.drop_null()))
        np.subtract.at(self._left, slots, 1)
        left = self._left[slots]
        if left.min(initial=0) < 0:
            refuse_changed()
        rows = pa.array(self._rows.take(slots))
        one = pa.array(self._last(slots, left == 0))
        if ids.null_count:
            rows = _spread(rows, ids)
            one = _spread(one, ids).fill_null(False)  # noqa: FBT003
        return batch.append_column(ROWS, rows).append_column(ONE, one)

    def _last(self, slots: Places, done: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """One row of each person of whom no more are to come: of several, that written last."""
        last = np.zeros(len(slots), bool)
        places = np.flatnonzero(done)
        at = slots[places]
        self._left[at] = places
        last[places[self._left[at] == places]] = True
        self._left[at] = 0
        return last

    def check_whole(self) -> None:
        """Refuse a second reading with fewer rows than the first."""
        if self._left.any():
            refuse_changed()


def _spread(values: pa.Array, ids: pa.Array) -> pa.Array:
    """Values of those ids that are there, at their places; null elsewhere."""
    known = ids.is_valid().to_numpy(zero_copy_only=False)
    places = np.cumsum(known) - 1
    return values.take(pa.array(places, mask=~known))


def refuse_alike() -> NoReturn:
    """Refuse to count two persons as one: with a new key they will differ."""
    raise TableError(
        "two persons could not be told apart by the secret key that was drawn: try again, "
        "which draws another"
    )


def refuse_changed() -> NoReturn:
    """Refuse a source whose two readings differ."""
    raise TableError(
        "the table changed, or ended, between two readings: a study with a person reads it twice; "
        "give a table that can be read again, and leave it alone meanwhile"
    )
