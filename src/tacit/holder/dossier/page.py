"""A dossier as one self-contained page, to be read, printed and kept."""

from functools import singledispatch
from importlib.resources import files
from typing import TYPE_CHECKING

from tacit.holder.dossier.blocks import Blank, Block, Chapter, Grid, Paragraph, Points, Section
from tacit.page.markup import Html, html, join, listing, stylesheet, table

if TYPE_CHECKING:
    from tacit.holder.dossier.written import Dossier


def as_page(dossier: "Dossier") -> str:
    """The page; every name in it is escaped."""
    chapters = list(enumerate(dossier.chapters, 1))
    return html(
        files("tacit.holder.dossier").joinpath("page.html").read_text(encoding="utf-8"),
        style=stylesheet(),
        title=dossier.title,
        lead=dossier.lead,
        facts=join(
            html("<div><dt>$name</dt><dd>$value</dd></div>", name=name, value=value)
            for name, value in dossier.facts.items()
        ),
        contents=join(
            html('<li><a href="#part-$place">$place. $title</a></li>', place=k, title=each.title)
            for k, each in chapters
        ),
        chapters=join((_chapter(place, each) for place, each in chapters), "\n\n"),
        origin=dossier.origin,
    )


def _chapter(place: int, chapter: Chapter) -> Html:
    return html(
        '<section id="part-$place" aria-labelledby="part-$place-title">\n'
        '<h2 id="part-$place-title">$place. $title</h2>\n$sections\n</section>',
        place=place,
        title=chapter.title,
        sections=join(_section(each) for each in chapter.sections),
    )


def _section(section: Section) -> Html:
    return html(
        "<h3>$title</h3>\n$blocks",
        title=section.title,
        blocks=join(_block(block) for block in section.blocks),
    )


@singledispatch
def _block(block: Block) -> Html:
    raise TypeError(type(block).__name__)


@_block.register
def _(block: Paragraph) -> Html:
    return html("<p>$text</p>", text=block.text)


@_block.register
def _(block: Points) -> Html:
    return listing(html("$text", text=item) for item in block.items)


@_block.register
def _(block: Grid) -> Html:
    return table(block.caption, block.heads, block.lines)


@_block.register
def _(block: Blank) -> Html:
    return html('<p class="blank">$question</p>', question=block.question)
