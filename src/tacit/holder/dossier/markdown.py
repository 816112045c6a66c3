"""A dossier as Markdown, for who pastes it into a form of their own."""

import re
from functools import singledispatch
from typing import TYPE_CHECKING

from tacit.holder.dossier.blocks import Blank, Block, Grid, Paragraph, Points

if TYPE_CHECKING:
    from tacit.holder.dossier.written import Dossier

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&!])")


def as_markdown(dossier: "Dossier") -> str:
    """The text; what a name holds stays words."""
    parts = [f"# {_text(dossier.title)}", _text(dossier.lead)]
    parts.append(_grid(("", ""), tuple(dossier.facts.items())))
    for place, chapter in enumerate(dossier.chapters, 1):
        parts.append(f"## {place}. {_text(chapter.title)}")
        for section in chapter.sections:
            parts.append(f"### {_text(section.title)}")
            parts += [_block(block) for block in section.blocks]
    return "\n\n".join([*parts, f"*{_text(dossier.origin)}*"]) + "\n"


def _text(words: str) -> str:
    """Words that stay as they are, whatever letters they are of."""
    return _SPECIAL.sub(r"\\\1", words)


@singledispatch
def _block(block: Block) -> str:
    raise TypeError(type(block).__name__)


@_block.register
def _(block: Paragraph) -> str:
    return _text(block.text)


@_block.register
def _(block: Points) -> str:
    return "\n".join(f"- {_text(item)}" for item in block.items)


@_block.register
def _(block: Grid) -> str:
    return f"{_text(block.caption)}:\n\n{_grid(block.heads, block.lines)}"


@_block.register
def _(block: Blank) -> str:
    return f"**{_text(block.question)}**\n\n…"


def _grid(heads: tuple[str, ...], lines: tuple[tuple[str, ...], ...]) -> str:
    rows = [heads, tuple("---" for _ in heads)]
    drawn = [f"| {' | '.join(row)} |" for row in rows]
    drawn += [f"| {' | '.join(map(_text, line))} |" for line in lines]
    return "\n".join(drawn)
