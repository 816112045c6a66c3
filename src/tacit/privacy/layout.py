"""Layout: the order of the published numbers that carry noise, stated once for all who use it.

First the diagonal of X'X, then what is above it row by row, then X'y; y'y, n and the smallest
eigenvalue follow where they are published with noise. Of several responses X'y and y'y are there
for each, one response after the other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

PartName = Literal["xtx_diagonal", "xtx_off_diagonal", "xty", "yty", "count", "eigenvalue"]
PARTS: tuple[PartName, ...] = get_args(PartName)
Value = TypeVar("Value")


@dataclass(frozen=True)
class Layout:
    """What is published with noise about rows of d columns."""

    d: int
    square: bool = False
    count: bool = False
    eigenvalue: bool = False
    responses: int = 1

    @property
    def lengths(self) -> dict[PartName, int]:
        """Each part that is published, in order, and how many numbers it has."""
        lengths: dict[PartName, int] = {
            "xtx_diagonal": self.d,
            "xtx_off_diagonal": self.d * (self.d - 1) // 2,
            "xty": self.d * self.responses,
            "yty": int(self.square) * self.responses,
            "count": int(self.count),
            "eigenvalue": int(self.eigenvalue),
        }
        return {part: length for part, length in lengths.items() if length}

    @property
    def entries(self) -> int:
        """How many numbers there are."""
        return sum(self.lengths.values())

    def joined(self, parts: Mapping[PartName, Sequence[Value]]) -> list[Value]:
        """The numbers of all parts in their order; parts that are not published are left out."""
        return [value for part in self.lengths for value in parts[part]]

    def each(self, values: Mapping[PartName, Value]) -> list[Value]:
        """One value for every number, from one for every part."""
        return [values[part] for part, length in self.lengths.items() for _ in range(length)]

    def divided(self, numbers: Sequence[Value]) -> dict[PartName, list[Value]]:
        """Numbers in their order, by part."""
        parts: dict[PartName, list[Value]] = {}
        start = 0
        for part, length in self.lengths.items():
            parts[part] = list(numbers[start : start + length])
            start += length
        return parts
