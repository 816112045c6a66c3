"""Cells: what a single text means as a number, whatever stands in any other cell.

Plain numbers are the computer's. In the free form, of files that no comma separates, a comma is a
decimal sign too, and what groups three digits is left out where that is beyond doubt.
"""

from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from tacit.rows.arrow import numbers_in
from tacit.rows.written import Format

_SPACES = " \u00a0\u2009\u202f'’"
"""What groups digits and nothing else."""
Decimal = Literal["plain", "free", ".", ","]
FEW = 10
"""Cells that must look doubtful before it is said."""
_GROUP = r"^\s*[+-]?\d{1,3}(?:\.\d{3})+\s*$"
_COMMA = r"^\s*[+-]?[\d.]*,\d+\s*$"


def decimal_of(form: Format, separator: str | None) -> Decimal:
    """The rule for numbers: what was said, else free where no comma separates cells."""
    if form.decimal in {".", ","}:
        return "," if form.decimal == "," else "."
    if form.thousands is not None:
        return "," if form.thousands == "." else "."
    return "plain" if separator == "," else "free"


@dataclass
class Numbers:
    """Reads text as numbers by one rule, and notes what that rule could have got wrong."""

    decimal: Decimal
    thousands: str | None = None
    commas: dict[str, int] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)
    points: dict[str, int] = field(default_factory=dict)

    def read(self, text: pa.Array, name: str, pool: pa.MemoryPool | None = None) -> pa.Array:
        """Floats; null where nothing is, NaN where something is that is no number."""
        plain = text if self.decimal == "plain" else self._plain(text, pool)
        if self.decimal == "free":
            self._note(text, name)
        numbers = numbers_in(plain, pool)
        is_lost = pc.and_(pc.is_valid(text), pc.is_null(numbers))
        return pc.if_else(is_lost, pa.scalar(float("nan")), numbers, memory_pool=pool)

    def _plain(self, text: pa.Array, pool: pa.MemoryPool | None) -> pa.Array:
        """The same numbers as the computer writes them; what is none stays what it is."""
        signs = {"free": ".", ",": ".", ".": ","}[self.decimal]
        grouping = f"[{signs if self.thousands is None else self.thousands}{_SPACES}]"
        point = "," if self.decimal in {"free", ","} else r"\."
        # In the free form a point alone is a decimal sign, so it groups only before a comma.
        tail = rf"(?:{point}\d*)" + ("" if self.decimal == "free" else "?")
        grouped = rf"^\s*[+-]?\d{{1,3}}(?:{grouping}\d{{3}})+{tail}\s*$"
        spaced = rf"^\s*[+-]?\d{{1,3}}(?:[{_SPACES}]\d{{3}})+(?:[.,]\d*)?\s*$"
        ungrouped = _replaced(text, grouped, grouping, "", pool)
        ungrouped = _replaced(ungrouped, spaced, f"[{_SPACES}]", "", pool)
        if self.decimal == ".":
            return ungrouped
        pointed = _replaced(ungrouped, r"^\s*[+-]?\d*,\d*(?:[eE][+-]?\d+)?\s*$", ",", ".", pool)
        if self.decimal == "free":
            return pointed
        has_point = pc.match_substring(ungrouped, ".", memory_pool=pool)
        return pc.if_else(has_point, pa.scalar("no number"), pointed, memory_pool=pool)

    def _note(self, text: pa.Array, name: str) -> None:
        for counts, pattern in (
            (self.commas, _COMMA),
            (self.groups, _GROUP),
            (self.points, r"\.\d"),
        ):
            matches = pc.sum(pc.match_substring_regex(text, pattern)).as_py() or 0
            counts[name] = counts.get(name, 0) + matches

    def doubts(self) -> list[str]:
        """Columns of which the rule could have been the wrong one."""
        said = []
        for name, groups in self.groups.items():
            if groups and self.commas[name]:
                said.append(
                    f"column {name!r} has decimal commas, and points before three digits, which "
                    "were read as decimal points too: say which sign is the decimal one"
                )
            elif groups >= FEW and groups == self.points[name]:
                said.append(
                    f"column {name!r}: every point stands before three digits, and was read as a "
                    "decimal point: say which sign is the decimal one"
                )
        return said


def _replaced(
    text: pa.Array, whole: str, sign: str, instead: str, pool: pa.MemoryPool | None
) -> pa.Array:
    """The text with a sign replaced in those cells that are, as a whole, of a form."""
    fits = pc.match_substring_regex(text, whole, memory_pool=pool)
    changed = pc.replace_substring_regex(text, sign, instead, memory_pool=pool)
    return pc.if_else(fits, changed, text, memory_pool=pool)
