"""Watch: what a table holds, column by column, counted while its rows pass on to be added up.

For the holder's own eyes. Values as they stand in the table are kept here, so nothing of it may be
part of a release, of an error or of a log; `rehearsal.py` makes the record of it that is shown.
"""

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tacit.study import Study
from tacit.study.columns import Feature, Response

BINS = 24
"""Bars of a picture: equal parts of the range, or of the longest row."""
Value = TypeVar("Value", float, str)
MOST_ROWS_NAMED = 5
"""Rows that are named by number, of each kind."""
MOST_VALUES = 1000
"""Different values that are counted; the rarest are forgotten beyond that."""
FREQUENT = 64
"""Different values that are counted once others are known: the most frequent."""
SAMPLE = 2**11
"""Rows of the first batch, evenly spread, whose values are counted one by one."""
PICTURED = 2**12
"""Rows of a batch, evenly spread, that a picture is made of."""
LATER_SAMPLE = 2**7
"""The same of every later batch."""
WAITING = 2**12
"""Values that are kept before they are counted, all at once."""
TOLD = 2**6
"""Different values that a later piece tells of: a code piles up in every one."""


class Piles:
    """How often values come back: of many different ones, those that do so most."""

    def __init__(self) -> None:
        self._counts: Counter[float] = Counter()
        self._waiting: list[NDArray[np.float64]] = []
        self._size = 0

    @property
    def counts(self) -> Counter[float]:
        """Values and how often each was seen."""
        if self._waiting:
            self._count(np.concatenate(self._waiting))
            self._waiting = []
            self._size = 0
        return self._counts

    def add(self, values: NDArray[np.float64]) -> None:
        """See some more."""
        self._waiting.append(values)
        self._size += len(values)
        if self._size >= WAITING:
            _ = self.counts

    def join(self, more: "Piles") -> None:
        """Add what was seen elsewhere."""
        _join_counts(self.counts, more.counts)

    def trim(self, most: int) -> None:
        """Forget all but the most frequent."""
        if len(self.counts) > most:
            self._counts = Counter(dict(self._counts.most_common(most)))

    def _count(self, values: NDArray[np.float64]) -> None:
        distinct, counts = np.unique(values, return_counts=True)
        # A code piles up again and again: of many values, and once many are known, the top ones do.
        kept = FREQUENT if self._counts else MOST_VALUES
        if len(distinct) > kept:
            most = np.argpartition(counts, -kept)[-kept:]
            distinct = distinct[most]
            counts = counts[most]
        self._counts.update(dict(zip(distinct.tolist(), counts.tolist(), strict=True)))
        _forget_rarest(self._counts)


@dataclass
class NumbersSeen:
    """A numeric column so far."""

    low: float
    high: float
    rows: int = 0
    missing: int = 0
    unreadable: int = 0
    below: int = 0
    above: int = 0
    least: float = np.inf
    most: float = -np.inf
    bins: NDArray[np.int64] = field(default_factory=lambda: np.zeros(BINS + 3, dtype=np.int64))
    outside: Piles = field(default_factory=Piles)
    sampled: Piles = field(default_factory=Piles)
    rows_outside: list[int] = field(default_factory=list)
    rows_unreadable: list[int] = field(default_factory=list)
    rows_missing: list[int] = field(default_factory=list)

    def add(self, nulls: NDArray[np.bool_] | None, values: NDArray[np.float64]) -> None:
        """Count a batch's values; `nulls` says where there is none, None: nowhere.

        What is no number but was there is text that cannot be read as one.
        """
        if not len(values):
            return
        least = float(values.min())
        most = float(values.max())
        absent = None
        if np.isnan(least):
            absent = np.isnan(values)
            self._add_absent(absent, nulls)
            least = float(np.fmin.reduce(values, initial=np.inf))
            most = float(np.fmax.reduce(values, initial=-np.inf))
        self.least = min(self.least, least)
        self.most = max(self.most, most)
        if least < self.low or most > self.high:
            self._add_outside(values)
        spread = max(1, len(values) // PICTURED)
        self._add_bins(
            values[::spread],
            None if absent is None else absent[::spread],
            reaches_end=most >= self.high,
        )
        step = max(1, len(values) // (SAMPLE if self.rows == 0 else LATER_SAMPLE))
        sample = values[::step]
        self.sampled.add(sample[~np.isnan(sample)])
        self.rows += len(values)

    def join(self, more: "NumbersSeen") -> None:
        """Add what was seen of rows that come after these."""
        self.least = min(self.least, more.least)
        self.most = max(self.most, more.most)
        for name in ("missing", "unreadable", "below", "above"):
            setattr(self, name, getattr(self, name) + getattr(more, name))
        self.bins += more.bins
        self.outside.join(more.outside)
        self.sampled.join(more.sampled)
        _join_rows(self.rows_outside, more.rows_outside, self.rows)
        _join_rows(self.rows_unreadable, more.rows_unreadable, self.rows)
        _join_rows(self.rows_missing, more.rows_missing, self.rows)
        self.rows += more.rows

    def _add_absent(self, absent: NDArray[np.bool_], nulls: NDArray[np.bool_] | None) -> None:
        missing = np.zeros_like(absent) if nulls is None else nulls
        unreadable = absent & ~missing
        self.missing += int(np.count_nonzero(missing))
        self.unreadable += int(np.count_nonzero(unreadable))
        _note(self.rows_missing, missing, self.rows)
        _note(self.rows_unreadable, unreadable, self.rows)

    def _add_outside(self, values: NDArray[np.float64]) -> None:
        below = values < self.low
        above = values > self.high
        outside = below | above
        self.below += int(np.count_nonzero(below))
        self.above += int(np.count_nonzero(above))
        _note(self.rows_outside, outside, self.rows)
        self.outside.add(values[outside])

    def _add_bins(
        self, values: NDArray[np.float64], absent: NDArray[np.bool_] | None, *, reaches_end: bool
    ) -> None:
        """Below the range, each part of it, above, and no number: one place each."""
        with np.errstate(over="ignore"):
            places = values - self.low
            places *= BINS / (self.high - self.low)
            places += 1.0
        np.clip(places, 0.0, BINS + 1.0, out=places)
        # Rounding must not move a value over an end of the range.
        if reaches_end:
            places[values == self.high] = BINS
        if absent is not None:
            places[absent] = BINS + 2
        self.bins += np.bincount(places.astype(np.intp), minlength=BINS + 3)


@dataclass
class LevelsSeen:
    """A column of levels so far."""

    levels: tuple[str, ...]
    rows: int = 0
    missing: int = 0
    unknown: int = 0
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    strangers: Counter[str] = field(default_factory=Counter)
    rows_unknown: list[int] = field(default_factory=list)
    rows_missing: list[int] = field(default_factory=list)

    def add(self, values: pa.Array, places: pa.Array) -> None:
        """Count a batch's levels: the text of each, and its place in the list or null."""
        if not len(self.counts):
            self.counts = np.zeros(len(self.levels), dtype=np.int64)
        missing = pc.is_null(values)
        unknown = pc.and_(pc.is_null(places), pc.is_valid(values))
        known = places.drop_null().to_numpy(zero_copy_only=False)
        self.counts += np.bincount(known, minlength=len(self.levels))
        self.missing += values.null_count
        _note(self.rows_missing, missing.to_numpy(zero_copy_only=False), self.rows)
        strange = values.filter(unknown)
        if len(strange):
            self.unknown += len(strange)
            _note(self.rows_unknown, unknown.to_numpy(zero_copy_only=False), self.rows)
            # Seen as bytes: letters that are none are a value like any other.
            for entry in pc.value_counts(strange.cast(pa.large_binary())).to_pylist():
                text = entry["values"].decode(errors="replace")
                self.strangers[_shown(text)] += entry["counts"]
            _forget_rarest(self.strangers)
        self.rows += len(values)

    def join(self, more: "LevelsSeen") -> None:
        """Add what was seen of rows that come after these."""
        if not len(self.counts):
            self.counts = np.zeros(len(self.levels), dtype=np.int64)
        if len(more.counts):
            self.counts += more.counts
        self.missing += more.missing
        self.unknown += more.unknown
        _join_counts(self.strangers, more.strangers)
        _join_rows(self.rows_unknown, more.rows_unknown, self.rows)
        _join_rows(self.rows_missing, more.rows_missing, self.rows)
        self.rows += more.rows


@dataclass
class Lengths:
    """How long encoded rows are: a picture from 0 to the longest that a row can be."""

    longest: float
    unit: float
    bins: NDArray[np.int64] = field(default_factory=lambda: np.zeros(BINS, dtype=np.int64))

    def add(self, squares: NDArray[np.float64]) -> None:
        """Count the rows of a block by their squared length; incomplete ones have none."""
        whole = squares[~np.isnan(squares)]
        places = np.sqrt(whole) * (BINS / (self.longest * self.unit))
        places = np.minimum(places.astype(np.intp), BINS - 1)
        self.bins += np.bincount(places, minlength=BINS)


class Watch:
    """What is seen of every column of a study, and of the rows' lengths."""

    def __init__(self, study: Study, unit: float) -> None:
        self.numbers: dict[str, NumbersSeen] = {}
        self.levels: dict[str, LevelsSeen] = {}
        self.lengths = Lengths(longest=study.longest_row, unit=unit)
        for feature in study.features:
            if feature.range is None:
                self.levels[feature.name] = LevelsSeen(levels=feature.all_levels)
            else:
                self.numbers[feature.name] = NumbersSeen(*feature.range)
        self.numbers[study.response.name] = NumbersSeen(*study.response.range)

    def trim(self) -> None:
        """Forget values that hardly come back: others have been told of before."""
        for seen in self.numbers.values():
            seen.outside.trim(TOLD)
            seen.sampled.trim(TOLD)

    def plain(self) -> list[Any]:
        """All of it in lists and names, for another process."""
        return [_plain(seen) for seen in self._all()]

    def take(self, plain: list[Any]) -> None:
        """Become what another process's watch saw."""
        for seen, fields_of_it in zip(self._all(), plain, strict=True):
            _take(seen, fields_of_it)

    def _all(self) -> "list[NumbersSeen | LevelsSeen | Lengths]":
        return [*self.numbers.values(), *self.levels.values(), self.lengths]

    def add(self, more: "Watch") -> None:
        """Add what was seen of rows that come after these."""
        for name, numbers in self.numbers.items():
            numbers.join(more.numbers[name])
        for name, levels in self.levels.items():
            levels.join(more.levels[name])
        self.lengths.bins += more.lengths.bins

    @property
    def clamped(self) -> dict[str, int]:
        """How many values of each column lay outside its range."""
        return {name: seen.below + seen.above for name, seen in self.numbers.items()}

    def see_numbers(
        self, column: Feature | Response, batch: pa.RecordBatch, values: NDArray[np.float64]
    ) -> None:
        """A batch's numbers, and where the batch has none."""
        given = batch.column(batch.schema.get_field_index(column.name))
        nulls = given.is_null().to_numpy(zero_copy_only=False) if given.null_count else None
        self.numbers[column.name].add(nulls, values)

    def see_levels(self, feature: Feature, values: pa.Array, places: pa.Array) -> None:
        """A batch's levels, and their places among the study's."""
        self.levels[feature.name].add(values, places)


def _plain(seen: NumbersSeen | LevelsSeen | Lengths) -> dict[str, Any]:
    plain = {}
    for each in fields(seen):
        value = getattr(seen, each.name)
        if isinstance(value, (Counter, Piles)):
            value = list((value.counts if isinstance(value, Piles) else value).items())
        plain[each.name] = value.tolist() if isinstance(value, np.ndarray) else value
    return plain


def _take(seen: NumbersSeen | LevelsSeen | Lengths, plain: dict[str, Any]) -> None:
    for name, value in plain.items():
        before = getattr(seen, name)
        if isinstance(before, (Counter, Piles)):
            (before.counts if isinstance(before, Piles) else before).update(dict(value))
        elif isinstance(before, np.ndarray):
            setattr(seen, name, np.array(value, dtype=np.int64))
        elif not isinstance(before, tuple):
            setattr(seen, name, value)


def _note(rows: list[int], where: NDArray[np.bool_], before: int) -> None:
    """Keep the numbers of the first rows, counted from 1."""
    if len(rows) < MOST_ROWS_NAMED:
        first = np.flatnonzero(where)[: MOST_ROWS_NAMED - len(rows)]
        rows += (first + before + 1).tolist()


def _join_rows(rows: list[int], more: list[int], before: int) -> None:
    """Keep the numbers of the first rows of both."""
    rows += [before + row for row in more[: MOST_ROWS_NAMED - len(rows)]]


def _join_counts(counter: Counter[Value], more: Counter[Value]) -> None:
    counter.update(more)
    _forget_rarest(counter)


def _forget_rarest(counter: Counter[Value]) -> None:
    if len(counter) > 4 * MOST_VALUES:
        kept = dict(counter.most_common(MOST_VALUES))
        counter.clear()
        counter.update(kept)


def _shown(text: str) -> str:
    """A value as a screen may show it."""
    short = text if len(text) <= 40 else text[:39] + "…"  # noqa: PLR2004 - a line's half
    return short if short.isprintable() else ascii(short)
