"""Limits on texts from outside, checked before they are parsed: what a reader may be made to spend.

A parser's memory grows with what it builds, which may be fifty times the text, and TOML's dotted
keys cost time and memory in the square of their length. Counting marks outside quoted text costs
neither: one pass, and one copy of the text.
"""

import re
from dataclasses import dataclass

MOST_DOTTED = 8
"""Most parts of a dotted key."""
MOST_QUOTES = 20_000
"""Quotation marks up to which a text may be cut at all of them."""
_JSON_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_TOML_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+(?:"{3,5}|\\?\Z)'
    r"|'''.*?(?:'{3,5}|\Z)"
    r'|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?'
    r"|'[^'\n]*+'?"
    r"|(?P<comment>#[^\n]*+)",
    re.DOTALL,
)
_WORD = re.compile(r"[^\s.=\[\]{},]++")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class LimitError(ValueError):
    """A text is larger than it may be."""


@dataclass(frozen=True)
class Limits:
    """Most letters, values, named values, and levels of nesting that a kind of text may have."""

    kind: str
    letters: int
    values: int
    names: int
    depth: int

    def check_json(self, text: str) -> str:
        """Refuse a JSON text that is too large; what it has outside quoted text."""
        self._check_letters(text)
        quotes = text.count('"')
        if quotes > 2 * (self.names + self.values):
            self._check_strings(text)
        if quotes > MOST_QUOTES or "\\" in text:
            marks = _JSON_STRING.sub("", text)
        else:  # every second part between quotation marks is quoted
            marks = "".join(text.split('"')[::2])
        self._check_marks(marks, names=marks.count(":"))
        return marks

    def check_toml(self, text: str) -> None:
        """Refuse a TOML text that is too large."""
        self._check_letters(text)
        marks = _TOML_STRING.sub(lambda match: "" if match["comment"] else "s", text)
        self._check_marks(marks, names=marks.count("="))
        shape = _WORD.sub("w", marks).replace(" ", "").replace("\t", "")
        if "w." * MOST_DOTTED in shape:
            raise LimitError(f"{self.kind} has keys of at most {MOST_DOTTED} dotted parts")

    def _check_strings(self, text: str) -> None:
        """Count strings one by one: what lies between a million of them takes much memory."""
        for count, _ in enumerate(_JSON_STRING.finditer(text), start=1):
            if count > self.names + self.values:
                raise LimitError(f"{self.kind} has at most {self.values:,} values")

    def _check_letters(self, text: str) -> None:
        if len(text) > self.letters:
            raise LimitError(f"{self.kind} has at most {self.letters:,} letters")

    def _check_marks(self, marks: str, names: int) -> None:
        lists = marks.count("[") + marks.count("{")
        ends = marks.count("]") + marks.count("}")
        if names > self.names or max(lists, ends) > self.names:
            raise LimitError(f"{self.kind} has at most {self.names:,} named values or lists")
        if marks.count(",") > self.values:
            raise LimitError(f"{self.kind} has at most {self.values:,} values")
        depth = 0
        for bracket in marks.encode("ascii", "replace").translate(None, _NO_BRACKETS):
            depth += 1 if bracket in b"[{" else -1
            if depth > self.depth:
                raise LimitError(f"{self.kind} is nested at most {self.depth} deep")


STUDY = Limits("a study", letters=2**20, values=60_000, names=30_000, depth=12)
PARCEL = Limits("a parcel", letters=10 * 2**20, values=20_000, names=2_000, depth=4)
RELEASE = Limits("a release", letters=10 * 2**20, values=400_000, names=30_000, depth=12)
