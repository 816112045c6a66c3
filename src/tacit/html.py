"""Small tables for notebooks: what `_repr_html_` shows; every text in them is escaped."""

from collections.abc import Mapping
from html import escape

_LEFT = ' style="text-align: left"'


def facts_table(title: str, facts: Mapping[str, object]) -> str:
    """A title over names with their values, a line each."""
    lines = "".join(
        f"<tr><th{_LEFT}>{_text(name)}</th><td{_LEFT}>{_text(value)}</td></tr>"
        for name, value in facts.items()
    )
    caption = f"<caption{_LEFT}><b>{_text(title)}</b></caption>"
    return f"<table>{caption}{lines}</table>"


def _text(value: object) -> str:
    return escape(str(value))
