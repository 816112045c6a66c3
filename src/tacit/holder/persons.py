"""Persons: how many rows each has, counted in a first reading of a table that has no order.

The second reading then knows, beside each row, how many rows its person has (`ROWS`), and marks one
row of each person (`ONE`). What is held in between is at most 100 bytes a person: never an id, but
127 bits made of it by a random function with a new secret key. Two given ids get the same bits with
probability 2⁻¹¹³ at most, whatever they are, so no two persons become one (docs/privacy.md,
"Persons"). A database counts by itself (`Table.by_person`).
"""

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tacit.errors import TableError
from tacit.rows.arrow import MOST_LETTERS, Batches, holds_whole_ids, ids_of, whole_ids_of
from tacit.rows.table import ONE, ROWS, Table, table_of
from tacit.study import Study

FEWEST_SLOTS = 2**16
MANY_SLOTS = 2**20
"""What comes after the fewest; from there on twice as many."""
FULL = 2 / 3
"""Largest share of slots that are taken."""
NUMBERS = 2
"""Numbers made of an id: its mark and its check."""
LOWER = 38
"""Bits in the lower part of a secret number: 2³⁸ times the letters of an id stays below 2⁵³."""
HALF = 32
"""Bits of the two counts that share a number."""
WITHIN: Literal["clip"] = "clip"
"""All slots are within the table: they need not be looked over first, which takes as long."""
PIECE = 2**11
"""Ids that are scrambled at once: what is worked on then stays in the processor's cache."""

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
    """A random function from ids to two numbers, of 63 and 64 bits; its key is secret.

    A number is the sum of an id's bytes, each times a secret number of 64 bits that belongs to its
    place, and of its length times another, modulo 2⁶⁴ (a multilinear function; Lemire and Kaser
    2014). Two ids differ by some Δ, |Δ| < 2⁸, in one of these places at least; whatever the others
    add, at most 2⁷ of the 2⁶⁴ numbers for that place make the sums equal: probability 2⁻⁵⁷.
    """

    def __init__(self) -> None:
        secret = secrets.token_bytes(8 * NUMBERS * (MOST_LETTERS + 1))
        key = np.frombuffer(secret, np.uint64).reshape(MOST_LETTERS + 1, NUMBERS)
        self._of_length = key[0]
        self._upper = (key[1:] >> np.uint64(LOWER)).astype(np.float64)
        self._lower = (key[1:] & np.uint64(2**LOWER - 1)).astype(np.float64)

    def marks(self, ids: pa.Array) -> Bits:
        """The first number of each id; it is odd."""
        marks: Bits = self._numbers(ids, 1)[0]
        return marks | np.uint64(1)

    def marks_and_checks(self, ids: pa.Array) -> tuple[Bits, Bits]:
        """Both numbers of each id."""
        marks, checks = self._numbers(ids, NUMBERS)
        return marks | np.uint64(1), checks

    def _numbers(self, ids: pa.Array, count: int) -> Bits:
        """The first so many numbers of each id, those of one kind in a row.

        The upper and lower parts of the key are multiplied as floats, for speed: their sums are
        whole numbers below 2⁵³, so exact in any order.
        """
        letters, lengths = _letters_and_lengths(ids)
        places = letters.shape[1]
        key = np.hstack([self._upper[:places, :count], self._lower[:places, :count]])
        numbers = np.empty((count, len(ids)), np.int64)
        floats = np.empty((PIECE, places))
        for start in range(0, len(ids), PIECE):
            piece = letters[start : start + PIECE]
            rows = floats[: len(piece)]
            rows[:] = piece
            sums = (rows @ key).astype(np.int64).T
            place = numbers[:, start : start + PIECE]
            np.left_shift(sums[:count], LOWER, out=place)
            place += sums[count:]
        of_lengths: Bits = self._of_length[:count, None] * lengths
        return of_lengths + numbers.view(np.uint64)


def _letters_and_lengths(ids: pa.Array) -> tuple[NDArray[np.uint8], Bits]:
    """The bytes of all ids, a row for each, zero behind the end of a short one; and their numbers.

    There is one length where all have the same; a whole number has eight bytes.
    """
    if pa.types.is_integer(ids.type):
        return ids.to_numpy().view(np.uint8).reshape(len(ids), 8), np.zeros(1, np.uint64)
    if not len(ids):
        return np.zeros((0, 0), np.uint8), np.zeros(1, np.uint64)
    lengths = np.diff(_offsets(ids)).astype(np.uint64)
    longest = int(lengths.max())
    if lengths.min() == longest:
        lengths = lengths[:1]
    else:
        ids = pc.ascii_rpad(ids, width=longest, padding="\0")
    start = _offsets(ids)[0]
    letters = np.frombuffer(ids.buffers()[2] or b"", np.uint8)
    return letters[start : start + longest * len(ids)].reshape(len(ids), longest), lengths


def _offsets(ids: pa.Array) -> NDArray[np.int32]:
    """Where the letters of each id begin, and the last one's end."""
    return np.frombuffer(ids.buffers()[1], np.int32)[ids.offset : ids.offset + len(ids) + 1]


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
        if np.any(self._checks.take(slots, mode=WITHIN) != checks):
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
            slots = max(2 * slots, MANY_SLOTS)
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

    def _slots(self, marks: Bits) -> tuple[Places, Places]:
        """The slot of each id, a free one where it has none, and which ids those are."""
        last = len(self._marks) - 1
        slots = (marks >> np.uint64(64 - last.bit_length())).view(np.int64)
        looking = np.arange(len(slots))
        new = [looking[:0]]
        at = slots
        wanted = marks
        while len(looking):
            held = self._marks.take(at, mode=WITHIN)
            unlike = np.flatnonzero(held != wanted)
            is_taken = held.take(unlike) != 0
            looking = looking.take(unlike)
            new.append(looking[~is_taken])
            looking = looking[is_taken]
            at = (slots.take(looking) + 1) & last
            slots[looking] = at
            wanted = marks.take(looking)
        return slots, np.concatenate(new)

    def _taken(self, marks: Bits, checks: Bits) -> Places:
        """The slot of each id; new ones take theirs, of several that want the same one the last."""
        slots, new = self._slots(marks)
        while len(new):
            at = slots.take(new)
            wanted = marks.take(new)
            self._marks[at] = wanted
            is_own = self._marks.take(at, mode=WITHIN) == wanted
            self._checks[at[is_own]] = checks.take(new[is_own])
            self._taken_at_most += int(np.count_nonzero(is_own))
            others = new[~is_own]
            slots[others], still_new = self._slots(marks.take(others))
            new = others.take(still_new)
        return slots

    # The second reading.

    def begin(self) -> None:
        """All rows are still to come; checks have done their work."""
        self._checks = np.zeros(0, np.uint64)
        # How many rows a person has, and how many of them are left: side by side, in one number.
        self._rows += self._rows << HALF

    def counted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the number of rows of each one's person, and a mark on each person's last.

        The number is missing where the person is.
        """
        ids = self._ids_of(batch, self._person)
        slots, _ = self._slots(self._scrambler.marks(ids.drop_null()))
        np.subtract.at(self._rows, slots, 1)
        both = self._rows.take(slots, mode=WITHIN)
        counts = both >> HALF
        left = both & (2**HALF - 1)
        if np.any(left >= counts):  # one too many borrows from the count
            refuse_changed()
        rows = pa.array(counts)
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
        self._rows[at] = places
        last[places[self._rows[at] == places]] = True
        self._rows[at] = 0
        return last

    def check_whole(self) -> None:
        """Refuse a second reading with fewer rows than the first."""
        if self._rows.any():
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
