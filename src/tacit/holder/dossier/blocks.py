"""What a dossier is made of: sections of plain words, whatever they are written as later."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Paragraph:
    """Some sentences."""

    text: str


@dataclass(frozen=True)
class Points:
    """Short statements, one below the other."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """A table whose first column names its lines."""

    caption: str
    heads: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Blank:
    """A question that is answered by hand."""

    question: str


Block = Paragraph | Points | Grid | Blank


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Chapter:
    """Sections that answer one question."""

    title: str
    sections: tuple[Section, ...]
