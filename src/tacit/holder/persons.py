"""Persons: how many rows each has, counted in a first reading of a table that has no order.

The second reading then knows, beside each row, how many rows its person has (`ROWS`), and marks one
row of each person (`ONE`). What is held in between is at most 100 bytes a person, or 50 MB where
they are fewer: never an id, but 127 bits made of it by a random function with a new secret key. Two
given ids get the same bits with probability 2⁻⁹⁷ at most, whatever they are, so no two persons
become one (docs/privacy.md, "Persons"). Of files whose rows keep their order, up to 2²⁴ rows are
remembered too, in four bytes each, and their ids are not read again. A database counts by itself
(`Table.by_person`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.errors import TableError
from tacit.holder.recall import MOST_ROWS, NOBODY, Recall
from tacit.holder.scrambler import Bits, Scrambler
from tacit.rows.arrow import Batches, holds_whole_ids, ids_of, whole_ids_of
from tacit.rows.table import ONE, ROWS, Fixed, Table, table_of
from tacit.study import Study

FEWEST_SLOTS = 2**16
MANY_SLOTS = 2**21
"""What comes after the fewest; from there on twice as many."""
FULL = 2 / 3
"""Largest share of slots that are taken."""
HALF = 32
"""Bits of the two counts that share a number."""
WITHIN: Literal["clip"] = "clip"
"""All slots are within the table: they need not be looked over first, which takes as long."""

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
    if table.fixed is None or study.person in study.names:
        return _second_reading(ids, table, study.person)
    return _reading_without_ids(ids, table, table.fixed, study.person)


def _second_reading(ids: Table, table: Table, person: str) -> Batches:
    """Read the ids, then the table beside them."""
    return _looked_up(_first_reading(ids.batches, person), table)


def _looked_up(roll: "Roll", table: Table) -> Batches:
    """The table, each row by its id, which is looked up again."""
    roll.begin()
    for batch in table.batches():
        yield roll.counted(batch)
    roll.check_whole()


def _reading_without_ids(ids: Table, table: Table, fixed: Fixed, person: str) -> Batches:
    """Read the ids, then the rest: rows are told by their place, which they keep."""
    before = fixed.stamp()
    roll = _first_reading(ids.batches, person, remembered=MOST_ROWS)
    if not roll.recall.whole:
        yield from _looked_up(roll, table)
        return
    roll.begin()
    for batch in fixed.without(person).batches():
        yield roll.recalled(batch)
    roll.check_whole()
    if fixed.stamp() != before:
        refuse_changed()


def _first_reading(batches: Callable[[], Batches], person: str, *, remembered: int = 0) -> "Roll":
    """Count rows by person: by numbers, which is faster, where all batches store such."""
    reading = batches()
    first = next(reading, None)
    whole = first is not None and holds_whole_ids(first, person)
    roll = Roll(person, whole=whole, remembered=remembered)
    for batch in reading if first is None else chain([first], reading):
        if roll.whole and not holds_whole_ids(batch, person):
            return _as_text(batches(), person, remembered=remembered)
        roll.add(batch)
    return roll


def _as_text(batches: Iterable[pa.RecordBatch], person: str, *, remembered: int = 0) -> "Roll":
    """Count rows by the text of their ids."""
    roll = Roll(person, whole=False, remembered=remembered)
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


class Roll:
    """How many rows each person has: slots, of which the mark of an id says where to look first.

    From there on slots are tried one after the other, for all ids of a batch at once. In the first
    reading an id's check is looked at too, so that marks tell all persons apart in the second.
    """

    def __init__(self, person: str, *, whole: bool, remembered: int = 0) -> None:
        self.whole = whole
        self._person = person
        self._ids_of = whole_ids_of if whole else ids_of
        self._scrambler = Scrambler()
        self.recall = Recall(remembered)
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
        self.recall.add(slots, _known(ids))

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
        moved = np.empty(len(taken), np.int64)
        for start in range(0, len(marks), FEWEST_SLOTS):
            some = slice(start, start + FEWEST_SLOTS)
            moved[some] = self._taken(marks[some], checks[some])
        self._rows[moved] = rows
        self.recall.move(taken, moved)

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
        return self._with_counts(batch, slots, _known(ids))

    def recalled(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The same of a batch without ids, whose rows are those that come next."""
        slots = self.recall.taken(batch.num_rows)
        if slots is None:
            refuse_changed()
        known = slots != NOBODY
        if known.all():
            return self._with_counts(batch, slots, None)
        return self._with_counts(batch, slots[known], known)

    def _with_counts(
        self, batch: pa.RecordBatch, slots: Places, known: NDArray[np.bool_] | None
    ) -> pa.RecordBatch:
        """The batch with what is known of its rows, all of them or those that are `known`."""
        np.subtract.at(self._rows, slots, 1)
        both = self._rows.take(slots, mode=WITHIN)
        counts = both >> HALF
        left = both & (2**HALF - 1)
        if np.any(left >= counts):  # one too many borrows from the count
            refuse_changed()
        rows = pa.array(counts)
        one = pa.array(self._last(slots, left == 0))
        if known is not None:
            rows = _spread(rows, known)
            one = _spread(one, known).fill_null(False)  # noqa: FBT003
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


def _known(ids: pa.Array) -> NDArray[np.bool_] | None:
    """Which ids are there, unless all are."""
    if not ids.null_count:
        return None
    known: NDArray[np.bool_] = ids.is_valid().to_numpy(zero_copy_only=False)
    return known


def _spread(values: pa.Array, known: NDArray[np.bool_]) -> pa.Array:
    """Values of those rows that are known, at their places; null elsewhere."""
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
