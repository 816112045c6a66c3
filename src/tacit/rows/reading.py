"""Reading: how a file was understood, to be shown to whoever holds it."""

from bisect import insort
from dataclasses import dataclass, field

MOST_KEPT = 10_000
"""Rows out of shape whose numbers are kept, to tell the numbers of those after them."""


@dataclass
class Reading:
    """One file: what was found out or said of how it is written, and what did not fit that.

    `facts` are words by name, for example {"separator": "semicolon"}. `given` rows were read;
    `misshapen` ones, with too many or too few cells, became rows of missing values behind them.
    `doubts` are sentences about what could also be read otherwise.
    """

    name: str
    kind: str
    facts: dict[str, str] = field(default_factory=dict)
    given: int = 0
    misshapen: int = 0
    misshapen_rows: list[int] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)

    def add_misshapen(self, row: int | None) -> None:
        """Count a row out of shape; its number where that is known, the first below the names 1."""
        self.misshapen += 1
        if row is not None and len(self.misshapen_rows) < MOST_KEPT:
            insort(self.misshapen_rows, row)

    def number_of(self, place: int) -> int:
        """The number in the file of the row that was read as the `place`-th, counted from 1."""
        if place > self.given:
            behind = place - self.given - 1
            known = self.misshapen_rows
            return known[behind] if behind < len(known) else place
        for row in self.misshapen_rows:
            place += row <= place
        return place


def numbers_in_files(places: list[int], readings: tuple[Reading, ...]) -> tuple[int | str, ...]:
    """Where rows stand: the number in the file, with its name where there are several files."""
    return tuple(_number_in_files(place, readings) for place in places)


def _number_in_files(place: int, readings: tuple[Reading, ...]) -> int | str:
    for reading in readings:
        rows = reading.given + reading.misshapen
        if place <= rows:
            number = reading.number_of(place)
            return number if len(readings) == 1 else f"{reading.name}:{number}"
        place -= rows
    return place
