"""Small tables for notebooks: what `_repr_html_` shows; every text in them is escaped."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

_LEFT = ' style="text-align: left"'


def facts_table(title: str, facts: Mapping[str, object]) -> str:
    """A title over names with their values, a line each."""
    lines = "".join(
        f"<tr><th{_LEFT}>{_text(name)}</th><td{_LEFT}>{_text(value)}</td></tr>"
        for name, value in facts.items()
    )
    return _table(title, lines)


def rows_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A title over rows of cells under headings."""
    heading = "".join(f"<th>{_text(name)}</th>" for name in headings)
    lines = "".join(
        "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return _table(title, f"<tr>{heading}</tr>{lines}")


def _table(title: str, lines: str) -> str:
    caption = f"<caption{_LEFT}><b>{_text(title)}</b></caption>"
    return f"<table>{caption}{lines}</table>"


def _text(value: object) -> str:
    return escape(str(value))
