"""Rehearsal: everything that publishing does but the charge and the noise, for the holder's eyes.

What is here depends on every row without any noise. It is shown on the screen, or written to a file
that says so in its first line; no other part of the program sends it anywhere.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tacit.files import write_whole
from tacit.holder.remarks import piles
from tacit.holder.watch import LevelsSeen, NumbersSeen
from tacit.rows.reading import Reading, numbers_in_files
from tacit.study import Study
from tacit.study.columns import Feature, Response

STAYS_HERE = "stays here: it tells of single rows, and no noise covers it; never pass it on"
MOST_STRANGERS = 8
"""Levels that the study does not list, and values that pile up, that are shown."""


@dataclass(frozen=True)
class Rows:
    """The first rows of each kind by number; the first below the names is row 1.

    Where a table is several files, with the file's name, as "east.csv:17".
    """

    missing: tuple[int | str, ...] = ()
    unreadable: tuple[int | str, ...] = ()
    outside: tuple[int | str, ...] = ()
    unknown: tuple[int | str, ...] = ()


@dataclass(frozen=True)
class Column:
    """What a table holds in one of the study's columns.

    A numeric one has a range and a picture of `counts`, equal parts of the range from low to high,
    which of large tables is of some rows, evenly spread;
    a categorical one has `levels` with their counts. `outside` are the values, most frequent
    first, that lie outside the range, and `strangers` the levels that the study does not list.
    """

    name: str
    role: Literal["feature", "response"]
    kind: Literal["numeric", "categorical"]
    label: str
    unit: str | None
    expected: str
    rows: int
    missing: int
    unreadable: int = 0
    below: int = 0
    above: int = 0
    unknown: int = 0
    range: tuple[float, float] | None = None
    least: float | None = None
    most: float | None = None
    counts: tuple[int, ...] = ()
    outside: tuple[tuple[float, int], ...] = ()
    piles: tuple[tuple[float, float], ...] = ()
    levels: tuple[tuple[str, int], ...] = ()
    strangers: tuple[tuple[str, int], ...] = ()
    first: Rows = Rows()

    @property
    def clamped(self) -> int:
        """Values outside the range."""
        return self.below + self.above

    @property
    def present(self) -> int:
        """Values that are there and can be read."""
        return self.rows - self.missing - self.unreadable


@dataclass(frozen=True)
class Lengths:
    """How long encoded rows are: equal parts from 0 to the longest that a row can be."""

    radius: float
    longest: float
    shrunk: int
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Persons:
    """How often the same person is there, by a column that tells persons apart."""

    column: str
    persons: int
    repeated: int
    most_rows: int


@dataclass(frozen=True)
class Cost:
    """What publishing would cost, and what would be left; `refusal` says why it would not work."""

    dataset: str
    epsilon: float
    delta: float
    limit: float
    limit_delta: float
    spent: float
    left: float
    spent_afterwards: float
    left_afterwards: float
    is_new: bool
    refusal: str | None = None


@dataclass(frozen=True)
class Remark:
    """A sentence about the table, or one of its columns; a loud one stops publishing."""

    column: str | None
    sentence: str
    loud: bool = False


@dataclass(frozen=True)
class Rehearsal:
    """What publishing a table would do, seen from inside the house; nothing was paid."""

    study: Study
    holder: str
    readings: tuple[Reading, ...]
    rows: int
    incomplete: int
    columns: tuple[Column, ...]
    lengths: Lengths | None
    """None where each visit's question says how long a row may be."""
    persons: Persons | None
    cost: Cost
    leaves: tuple[str, ...]
    remarks: tuple[Remark, ...]

    @property
    def shouts(self) -> tuple[str, ...]:
        """What should stop a person before paying."""
        return tuple(remark.sentence for remark in self.remarks if remark.loud)

    def __str__(self) -> str:
        from tacit.holder.rehearsal_words import words

        return words(self)

    def __repr__(self) -> str:
        return (
            f"<Rehearsal of {self.study.name!r}: {self.rows:,} rows, "
            f"{len(self.shouts)} loud remarks; stays here>"
        )

    def document(self) -> dict[str, Any]:
        """Everything as plain values, the mark first."""
        plain = {
            name: getattr(self, name)
            for name in ("holder", "rows", "incomplete", "leaves", "shouts")
        }
        records = {
            "readings": [asdict(reading) for reading in self.readings],
            "columns": [asdict(column) for column in self.columns],
            "lengths": None if self.lengths is None else asdict(self.lengths),
            "persons": None if self.persons is None else asdict(self.persons),
            "cost": asdict(self.cost),
            "remarks": [asdict(remark) for remark in self.remarks],
        }
        marked = {"format": "tacit-rehearsal", "mark": STAYS_HERE, "study": self.study.hash}
        return marked | plain | records

    def save(self, path: str | Path) -> None:
        """Write it for the holder alone to read: as a record where the name ends in .json."""
        is_record = str(path).endswith(".json")
        text = json.dumps(self.document(), indent=1, ensure_ascii=False) if is_record else str(self)
        write_whole(path, text + "\n", mode=0o600)


Confirm = Callable[[Rehearsal], None]
"""Is shown a rehearsal before anything is paid, and raises to stop."""


def column_of(
    column: Feature | Response, seen: NumbersSeen | LevelsSeen, readings: tuple[Reading, ...]
) -> Column:
    """The record of what was seen in a column; rows are numbered as the files number them."""
    shared = {
        "name": column.name,
        "role": "response" if isinstance(column, Response) else "feature",
        "label": column.label or column.name,
        "unit": column.unit,
        "rows": seen.rows,
        "missing": seen.missing,
    }
    if isinstance(seen, NumbersSeen):
        return _numeric(seen, shared, readings)
    return _categorical(seen, shared, readings)


def _numeric(seen: NumbersSeen, shared: dict[str, Any], readings: tuple[Reading, ...]) -> Column:
    some = seen.missing + seen.unreadable < seen.rows
    return Column(
        **shared,
        kind="numeric",
        expected=f"a number from {seen.low:g} to {seen.high:g}",
        unreadable=seen.unreadable,
        below=seen.below,
        above=seen.above,
        range=(seen.low, seen.high),
        least=seen.least if some else None,
        most=seen.most if some else None,
        counts=tuple(seen.bins[1:-2].tolist()),
        outside=tuple(seen.outside.counts.most_common(MOST_STRANGERS)),
        piles=piles(seen),
        first=Rows(
            missing=numbers_in_files(seen.rows_missing, readings),
            unreadable=numbers_in_files(seen.rows_unreadable, readings),
            outside=numbers_in_files(seen.rows_outside, readings),
        ),
    )


def _categorical(seen: LevelsSeen, shared: dict[str, Any], readings: tuple[Reading, ...]) -> Column:
    counts = seen.counts.tolist() or [0] * len(seen.levels)
    return Column(
        **shared,
        kind="categorical",
        expected=f"one of {', '.join(seen.levels)}",
        unknown=seen.unknown,
        levels=tuple(zip(seen.levels, counts, strict=True)),
        strangers=tuple(seen.strangers.most_common(MOST_STRANGERS)),
        first=Rows(
            missing=numbers_in_files(seen.rows_missing, readings),
            unknown=numbers_in_files(seen.rows_unknown, readings),
        ),
    )
