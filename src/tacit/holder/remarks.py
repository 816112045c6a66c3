"""Remarks: what a rehearsal says of a table, and what of it is loud enough to stop publishing.

Few values say nothing: no share of fewer than `FEW` values is loud. The rules are the same for
every table, and only the holder hears them.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tacit.holder.watch import NumbersSeen
from tacit.rows.names import near
from tacit.study import Study

if TYPE_CHECKING:
    from tacit.holder.rehearsal import Column, Lengths, Persons
    from tacit.rows.reading import Reading

FEW = 10
"""Values that must be affected before a share of them is loud."""
LEAST_TOLD = 0.0005
"""Smallest share that is told by its figure."""
MOSTLY_CLAMPED = 0.2
"""Share of a column outside its range, or of levels that are not listed, from which on it is
loud."""
MOSTLY_MISSING = 0.5
"""Share of a column, or of the rows, that is missing from which on it is loud."""
UNREADABLE = 0.05
"""Share of a column that is text where numbers were expected from which on it is loud."""
CODE = 0.01
"""Share of a column that is one value outside the range from which on that looks like a code."""
PILE = 0.05
"""Share of a column that is one value, far from all others, from which on that is a pile."""
APART = 0.05
"""Part of the range that lies between a pile and the nearest other value."""
LEAST_DIFFERENT = 20
"""Different values that a column has at least before one of them can be told as a pile."""
LEAST_IDENTIFIER = 100
"""Values, all different whole numbers, from which on a column looks like one of identifiers."""


PERSONS = (
    "patient|pat|person|subject|subj|participant|respondent|individual|member|client|customer|"
    "resident|student|employee|pseudonym|usubj|mrn|ssn|nhs"
)
"""What a column is called that says whose a row is, before what follows of `NUMBER`."""
NUMBER = "id|ids|no|nr|num|number|nummer|code|key|uid|uuid|hash|pseudonym|pseudo"


def likely_person(columns: Sequence[str], study: Study) -> str | None:
    """The column, not one of the study's, that by its name says whose a row is."""
    others = [name for name in columns if name not in study.names]
    return next((name for name in others if _names_a_person(name)), None)


def _names_a_person(name: str) -> bool:
    plain = "".join(letter for letter in name.casefold() if letter.isalnum())
    return re.fullmatch(f"({PERSONS})({NUMBER})?|id|pid|uid", plain) is not None


def piles(seen: NumbersSeen) -> tuple[tuple[float, float], ...]:
    """Values that people use as codes, frequent, inside the range and far from all others.

    The smallest or the largest can be one; each with its share.
    """
    total = seen.sampled.counts.total()
    if len(seen.sampled.counts) < LEAST_DIFFERENT or total < FEW:
        return ()
    values = sorted(seen.sampled.counts)
    gap = APART * (seen.high - seen.low)
    ends = [(values[0], values[1]), (values[-1], values[-2])]
    piled = [
        (value, seen.sampled.counts[value] / total)
        for value, beside in ends
        if seen.low <= value <= seen.high and abs(value - beside) >= gap and _is_code(value)
    ]
    return tuple((value, share) for value, share in piled if share >= PILE)


def _is_code(value: float) -> bool:
    """Whether a value is one that people write where there is none: 0, −1, 99, −999 and so on."""
    return value in {0.0, -1.0} or re.fullmatch(r"-?([789])\1*", f"{value:.15g}") is not None


def looks_like_identifiers(seen: NumbersSeen) -> bool:
    """Whether all values that were looked at are different whole numbers."""
    values = list(seen.sampled.counts)
    return (
        len(values) >= LEAST_IDENTIFIER
        and seen.sampled.counts.total() == len(values)
        and all(value.is_integer() for value in values)
    )


Said = tuple[str | None, str, bool]
"""A column or none, a sentence, and whether it is loud."""


def of_table(study: Study, rows: int, incomplete: int) -> Iterator[Said]:
    """What is to be said of all rows together."""
    if rows == 0:
        yield None, "the table has no row", True
        return
    if not incomplete:
        return
    text = f"{_share(incomplete, rows, 'rows')} have a value missing"
    if study.missing == "refuse":
        yield None, f'{text}, and the study refuses such a table: missing = "refuse"', True
    else:
        means = "add nothing" if study.missing == "drop" else "are filled in, or add nothing"
        is_loud = incomplete >= max(FEW, MOSTLY_MISSING * rows)
        yield None, f"{text}: they {means}", is_loud


def of_readings(readings: "tuple[Reading, ...]") -> Iterator[Said]:
    """What is to be said of how files were read."""
    for reading in readings:
        for doubt in reading.doubts:
            yield None, f"{reading.name}: {doubt}", True
        if reading.misshapen:
            rows = reading.given + reading.misshapen
            noun = "row is" if reading.misshapen == 1 else "rows are"
            text = (
                f"{reading.name}: {reading.misshapen:,} {noun} out of shape, with more or fewer "
                "cells than names, and count as missing; R's row names and unquoted separators "
                "make such rows"
            )
            loud = reading.misshapen >= max(FEW, UNREADABLE * rows)
            yield None, text + _first(tuple(reading.misshapen_rows[:5])), loud


def of_lengths(lengths: "Lengths | None", rows: int) -> Iterator[Said]:
    """What is to be said of rows that are longer than the radius."""
    if lengths is not None and lengths.shrunk:
        yield (
            None,
            (
                f"{_share(lengths.shrunk, rows, 'rows')} are longer than the radius "
                f"{lengths.radius:.3g} and would be shrunk to it"
            ),
            False,
        )


def of_persons(persons: "Persons | None", *, is_unit: bool) -> Iterator[Said]:
    """What is to be said of persons with several rows; in a study of persons they are expected."""
    if persons is None or not persons.repeated:
        return
    text = (
        f"by column {persons.column!r}, {persons.repeated:,} of {persons.persons:,} persons have "
        f"several rows, up to {persons.most_rows:,}"
    )
    if not is_unit:
        text += (
            ": what is promised is promised for one row, so agree on person = "
            f'"{persons.column}" in the study, or make one row of each person\'s'
        )
    yield persons.column, text, not is_unit


def of_column(column: "Column", *, refuses: bool, is_numbered: bool) -> Iterator[Said]:
    """What is to be said of a column; `refuses`: an unlisted level is refused."""
    yield from _absent(column)
    if column.kind == "numeric":
        yield from _unreadable(column)
        yield from _clamped(column)
        yield from _piled(column)
        if is_numbered:
            yield (
                column.name,
                (
                    f"column {column.name!r}: the values that were looked at are different whole "
                    "numbers, as identifiers are"
                ),
                False,
            )
    else:
        yield from _unknown(column, refuses=refuses)


def _absent(column: "Column") -> Iterator[Said]:
    share = column.missing / max(column.rows, 1)
    if column.rows and column.present == 0:
        lost = f": {column.unreadable:,} are no numbers" if column.unreadable else ""
        text = f"column {column.name!r} has no value that can be used{lost}"
        yield column.name, text + _first(column.first.unreadable), True
    elif column.missing:
        text = f"column {column.name!r}: {_share(column.missing, column.rows)} are missing"
        loud = share >= MOSTLY_MISSING and column.missing >= FEW
        yield column.name, text + _first(column.first.missing), loud


def _unreadable(column: "Column") -> Iterator[Said]:
    if column.unreadable and column.present:
        text = (
            f"column {column.name!r}: {_share(column.unreadable, column.rows)} are no numbers and "
            "count as missing"
        )
        loud = column.unreadable >= max(FEW, UNREADABLE * column.rows)
        yield column.name, text + _first(column.first.unreadable), loud


def _clamped(column: "Column") -> Iterator[Said]:
    if not column.clamped or column.range is None:
        return
    low, high = column.range
    text = (
        f"column {column.name!r}: {_share(column.clamped, column.present)} lie outside "
        f"{low:g} to {high:g} and would be clamped"
    )
    loud = column.clamped >= max(FEW, MOSTLY_CLAMPED * column.present)
    yield column.name, text + _first(column.first.outside), loud
    value, count = column.outside[0] if column.outside else (0.0, 0)
    if count >= max(FEW, CODE * column.present):
        yield (
            column.name,
            (
                f"column {column.name!r}: {value:g} is there {count:,} times, outside the range: "
                "if it is a code for a missing value, say so"
            ),
            True,
        )


def _piled(column: "Column") -> Iterator[Said]:
    for value, share in column.piles:
        yield (
            column.name,
            (
                f"column {column.name!r}: {value:g} makes up {share:.0%} and lies apart from all "
                "other values: is it a code?"
            ),
            share >= MOSTLY_MISSING and column.present >= FEW,
        )


def _unknown(column: "Column", *, refuses: bool) -> Iterator[Said]:
    if not column.unknown:
        return
    shown = ", ".join(repr(level) for level, _ in column.strangers[:3])
    text = (
        f"column {column.name!r}: {_share(column.unknown, column.rows)} are levels that the study "
        f"does not list ({shown}{', …' if len(column.strangers) > 3 else ''})"  # noqa: PLR2004
    )
    close = near(column.strangers[0][0], [level for level, _ in column.levels])
    text += f", near {close[0]!r}" if column.strangers and close else ""
    text += ": the table would be refused" if refuses else ": they count as the other level"
    loud = refuses or column.unknown >= max(FEW, MOSTLY_CLAMPED * column.rows)
    yield column.name, text + _first(column.first.unknown), loud


def _share(count: int, total: int, what: str = "values") -> str:
    share = count / max(total, 1)
    percent = "under 0.1%" if 0 < share < LEAST_TOLD else f"{share:.1%}"
    return f"{count:,} of {total:,} {what} ({percent})"


def _first(rows: tuple[int | str, ...]) -> str:
    if not rows:
        return ""
    numbers = ", ".join(map(str, rows))
    return f" (first in row{'s' if len(rows) > 1 else ''} {numbers})"
