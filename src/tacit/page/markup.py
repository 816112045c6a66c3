"""HTML that is safe by construction: whatever is put into a template is escaped.

Unless it is HTML already.
"""

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def stylesheet() -> Html:
    """The look that all pages share."""
    return Html(files("tacit.page").joinpath("style.css").read_text(encoding="utf-8"))


def html(template: str, /, **values: object) -> Html:
    """Fill the $names of a template; a value that is not Html is escaped."""
    safe = {
        name: value if isinstance(value, Html) else escape(str(value))
        for name, value in values.items()
    }
    return Html(Template(template).substitute(safe))


def join(parts: Iterable[Html], between: str = "\n") -> Html:
    """Pieces of HTML one after the other."""
    return Html(between.join(parts))


def section(name: str, title: str, *parts: Html) -> Html:
    """A section with its heading, which names it to a screen reader."""
    return html(
        '<section id="$name" aria-labelledby="$name-title">\n'
        '<h2 id="$name-title">$title</h2>\n$body\n</section>',
        name=name,
        title=title,
        body=join(parts),
    )


def paragraph(template: str, /, **values: object) -> Html:
    """A paragraph."""
    return html("<p>$body</p>", body=html(template, **values))


def listing(items: Iterable[Html], *, style: str = "") -> Html:
    """An unordered list."""
    return html(
        '<ul class="$style">$items</ul>',
        style=style,
        items=join(html("<li>$item</li>", item=item) for item in items),
    )


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Html:
    """A table whose first column names its rows; all others hold numbers or short words.

    Wide ones scroll by themselves.
    """
    head = join((html('<th scope="col">$text</th>', text=text) for text in heads), "")
    body = join(html("<tr>$cells</tr>", cells=_cells(row)) for row in rows)
    return html(
        '<div class="scroll" tabindex="0" role="region" aria-label="$caption">'
        "<table><caption><span>$caption</span></caption>\n"
        "<thead><tr>$head</tr></thead>\n<tbody>$body</tbody></table></div>",
        caption=caption,
        head=head,
        body=body,
    )


def _cells(row: Sequence[object]) -> Html:
    first, *others = row
    return join(
        [
            html('<th scope="row">$text</th>', text=first),
            *(html("<td>$text</td>", text=text) for text in others),
        ],
        "",
    )


def breakable(name: str) -> Html:
    """The name of a column, which may be broken before its level."""
    feature, bracket, level = name.partition("[")
    return html("$feature<wbr>$level", feature=feature, level=bracket + level)


def figure(caption: Html, drawings: Sequence[Html]) -> Html:
    """A figure: the same drawing for wide and for narrow screens, one of which is shown."""
    wide, narrow = drawings
    return html(
        '<figure><div class="wide">$wide</div><div class="narrow">$narrow</div>'
        "<figcaption>$caption</figcaption></figure>",
        wide=wide,
        narrow=narrow,
        caption=caption,
    )


def details(summary: str, body: Html) -> Html:
    """What is there for who wants it."""
    return html(
        "<details><summary>$summary</summary>\n$body\n</details>", summary=summary, body=body
    )
