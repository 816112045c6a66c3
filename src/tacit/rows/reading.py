"""Reading: how a table's text was understood, to be shown to whoever holds it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """One file, and what was found out or said of how it is written, in words by name.

    For example {"separator": "semicolon", "encoding": "UTF-8 with a mark"}.
    """

    name: str
    kind: str
    facts: dict[str, str]
