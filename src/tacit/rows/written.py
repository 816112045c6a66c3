"""Format: how a holder's tables are written, as far as the holder says it, and what is found out.

What is found out comes from the lines up to the names of the columns alone, never from a row: one
row must not decide how all others are read. What a single cell means depends on that cell alone.
"""

import codecs
import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tacit.errors import TableError
from tacit.rows.names import check_names

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
"""What is looked for between names, and what it is called."""
MOST_TITLE_LINES = 30
"""Lines among which the names of the columns are looked for."""
HEAD_BYTES = 2**18
"""Bytes of a file that those lines may have."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True)
class Format:
    """What a holder says of how tables are written; what is None is found out.

    `header` is the number of the line that holds the names. `missing` are codes for a value that
    is not there, beside the usual ones. `columns` gives a column of the study the name that it has
    in the table.
    """

    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    header: int | None = None
    missing: tuple[str, ...] = ()
    sheet: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("separator", "thousands"):
            value = getattr(self, name)
            if value is not None and (len(value) != 1 or value.isalnum() or value in '"\r\n'):
                raise TableError(f"{name} must be one sign, such as ';' or a tab; got {value!r}")
        if self.decimal not in {None, ".", ","}:
            raise TableError(f"decimal must be '.' or ','; got {self.decimal!r}")
        if self.decimal is not None and self.decimal == self.thousands:
            raise TableError("decimal and thousands must be two different signs")
        if self.header is not None and self.header < 1:
            raise TableError("header is the number of the line that holds the names, from 1 on")
        if self.encoding is not None:
            _check_encoding(self.encoding)

    def in_table(self, name: str) -> str:
        """The name that a column of the study has in the table."""
        return self.columns.get(name, name)


PLAIN = Format()
"""Nothing is said."""


def _check_encoding(name: str) -> None:
    try:
        b"a".decode(name)
        known = codecs.lookup(name)
    except (LookupError, UnicodeError, ValueError):
        known = None
    if known is None or not isinstance("a".encode(name), bytes):
        raise TableError(f"encoding {name!r} is not known: such as utf-8, windows-1252, utf-16")


@dataclass(frozen=True)
class Header:
    """Where the names stand, and what separates them."""

    line: int  # from 1 on
    separator: str
    names: tuple[str, ...]


def encoding_of(head: bytes, said: str | None) -> str:
    """The encoding of a text by its mark, or by the zeros of 16-bit letters in its names.

    Anything else is UTF-8, in which single bytes that are none are Windows-1252's.
    """
    if said is not None:
        return codecs.lookup(said).name
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    first = head.split(b"\n", 1)[0][:200]
    if first[1::2].count(0) > len(first) // 3:
        return "utf-16-le"
    if first[::2].count(0) > len(first) // 3:
        return "utf-16-be"
    return "utf-8"


def header_of(lines: Sequence[str], wanted: Sequence[str], form: Format, usual: str) -> Header:
    """The first line that holds the names that are wanted, by the first separator that fits.

    Where none does, what the line that was said or the first line seems to hold.
    """
    separators = _candidates(form, usual)
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if form.header is not None:
        numbered = [entry for entry in numbered if entry[0] == form.header]
    for number, line in numbered:
        for separator in separators:
            names = names_in(line, separator)
            if all(names.count(name) == 1 for name in wanted):
                return Header(number, separator, names)
    candidates = [
        Header(number, separator, names_in(line, separator))
        for number, line in numbered
        for separator in separators
    ]
    nothing = Header(1, separators[0], ())
    return max(candidates, key=lambda each: _fitting(each.names, wanted), default=nothing)


def _candidates(form: Format, usual: str) -> list[str]:
    if form.separator is not None:
        return [form.separator]
    return [usual, *(sign for sign in SEPARATORS if sign != usual)]


def _fitting(names: Sequence[str], wanted: Sequence[str]) -> tuple[int, int]:
    """How many of the names that are wanted are there, then how many others."""
    return len(set(wanted) & set(names)), len(names)


def names_in(line: str, separator: str) -> tuple[str, ...]:
    """The cells of one line, without spaces and the mark of an encoding around them."""
    cells = next(csv.reader([line.lstrip("\ufeff")], delimiter=separator), [])
    return tuple(cell.strip() for cell in cells)


def check_header(header: Header, wanted: Sequence[str], source: str) -> None:
    """Refuse names that are not those of the study; where none is, say where it was looked for."""
    if wanted and not set(header.names) & set(wanted):
        try:
            check_names(header.names, wanted, source)
        except TableError as error:
            if "it has" in str(error):
                raise
        raise TableError(
            f"{source} needs exactly one column named {wanted[0]!r}, as the study says, and none "
            f"of the study's names is in its first {MOST_TITLE_LINES} lines: it needs a line of "
            "names; if it has one, say its number, the separator and the encoding"
        )
    check_names(header.names, wanted, source)
