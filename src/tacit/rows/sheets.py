"""Spreadsheets: Excel's files and OpenDocument's, by python-calamine.

A sheet is held whole while it is read. Cells are judged one by one: text that is a number counts as
one, a date where a number should be does not, and a row without any cell is none.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from tacit.errors import TableError
from tacit.rows.cells import Numbers, decimal_of
from tacit.rows.codes import NULLS
from tacit.rows.drivers import rewritten
from tacit.rows.objects import texts_of
from tacit.rows.reading import Reading
from tacit.rows.written import MOST_TITLE_LINES, Format, Header, check_header
from tacit.study import Study

SUFFIXES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
Cells = list[list[Any]]
_REASONS = (
    (
        "^(ModuleNotFound|Import)Error",
        "spreadsheets need the extra tables: pip install 'tacit-dp[tables]'",
    ),
    (
        "[Pp]assword|[Ee]ncrypt",
        "the spreadsheet is protected by a password: save a copy without one",
    ),
)


def sheet_batches(
    path: Path, names: Sequence[str], study: Study, form: Format, reading: Reading
) -> Iterator[pa.RecordBatch]:
    """The rows of the one sheet that has the study's columns, or of the one that was named."""
    damaged = f"{path.name} cannot be opened as a spreadsheet: open it and save it anew, or as CSV"
    wanted = [form.in_table(name) for name in names]
    with rewritten(_REASONS, damaged):
        sheets = _sheets(path, form)
    name, header, rows = _chosen(sheets, wanted, form, path.name)
    reading.facts |= {"sheet": repr(name), "names in": f"row {header.line}"}
    rows = [row for row in rows[header.line :] if any(cell not in {"", None} for cell in row)]
    reading.given = len(rows)
    ranged = {feature.name for feature in study.features if feature.range is not None}
    ranged.add(study.response.name)
    numbers = Numbers(decimal_of(form, None), form.thousands)
    columns = {}
    for own, place in zip(names, map(header.names.index, wanted), strict=True):
        values = [_value(row[place]) if place < len(row) else None for row in rows]
        text = texts_of(values, true="1", false="0") if own in ranged else texts_of(values)
        columns[own] = numbers.read(text, own) if own in ranged else text
    reading.doubts += numbers.doubts()
    yield from pa.table(columns).to_batches(2**16)


def _sheets(path: Path, form: Format) -> dict[str, Cells]:
    from python_calamine import CalamineWorkbook

    book = CalamineWorkbook.from_path(str(path))
    if form.sheet is not None and form.sheet not in book.sheet_names:
        raise TableError(
            f"{path.name} has no sheet {form.sheet!r}: it has "
            f"{', '.join(map(repr, book.sheet_names))[:200]}"
        )
    chosen = book.sheet_names if form.sheet is None else [form.sheet]
    return {name: book.get_sheet_by_name(name).to_python(skip_empty_area=False) for name in chosen}


def _chosen(
    sheets: dict[str, Cells], wanted: Sequence[str], form: Format, source: str
) -> tuple[str, Header, Cells]:
    headers = {name: _header(rows, wanted, form) for name, rows in sheets.items()}
    whole = [
        name
        for name, header in headers.items()
        if all(header.names.count(column) == 1 for column in wanted)
    ]
    if len(whole) > 1:
        raise TableError(
            f"{source} has the study's columns in several sheets, "
            f"{', '.join(map(repr, whole))[:200]}: say which sheet is meant"
        )
    if not whole:
        nearest = max(headers.values(), key=lambda each: len(set(each.names) & set(wanted)))
        check_header(nearest, wanted, source)
    return whole[0], headers[whole[0]], sheets[whole[0]]


def _header(rows: Cells, wanted: Sequence[str], form: Format) -> Header:
    """The first row that holds the names, else that which holds the most of them."""
    lines = range(1, min(len(rows), MOST_TITLE_LINES) + 1)
    lines = lines if form.header is None else range(form.header, form.header + 1)
    headers = [
        Header(line, "", tuple(_name(cell) for cell in rows[line - 1]))
        for line in lines
        if line <= len(rows)
    ]
    return max(
        headers,
        key=lambda each: (len(set(each.names) & set(wanted)), -each.line),
        default=Header(1, "", ()),
    )


def _name(cell: object) -> str:
    """A cell as a name: 1 stands there as 1.0."""
    is_whole = isinstance(cell, float) and cell.is_integer()
    return str(int(cell) if is_whole and isinstance(cell, float) else cell).strip()


def _value(cell: object) -> object:
    """A cell as a value; a date is there, but is neither a number nor a level."""
    if isinstance(cell, str):
        return None if cell.strip() in NULLS else cell
    if isinstance(cell, (dt.date, dt.time, dt.timedelta)):
        return f"date {cell}"
    return cell
