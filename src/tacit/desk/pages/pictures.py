"""Pictures of a rehearsal and of an account, drawn so that a glance is enough.

What a picture shows stands in its description, too, for who cannot see it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.holder.rehearsal import Column, Lengths
from tacit.page.markup import Html
from tacit.page.numbers import exact, percent
from tacit.page.svg import LETTER, Canvas, shortened

WIDTH = 320
"""Width of a picture in pixels: it fits a telephone, and several fit a desk."""
TALL = 84
"""Height of the bars."""
EDGE = 26
"""Room for what lies outside the range, on either side."""
LINE = 24
"""Height of a level's line."""
MOST_LEVELS = 12
"""Levels that are drawn; the table has them all."""


def numbers(column: Column) -> Html:
    """Where a numeric column's values lie: the range in equal parts, and what is outside it."""
    low, high = column.range or (0.0, 1.0)
    canvas = Canvas(WIDTH, TALL + 26)
    top = max((*column.counts, column.below, column.above, 1))
    width = (WIDTH - 2 * EDGE) / max(len(column.counts), 1)
    for place, count in enumerate(column.counts):
        _bar(canvas, EDGE + place * width, width - 1, count / top, "sampling")
    _bar(canvas, 0, EDGE - 6, column.below / top, "privacy")
    _bar(canvas, WIDTH - EDGE + 6, EDGE - 6, column.above / top, "privacy")
    canvas.line((EDGE, TALL), (WIDTH - EDGE, TALL), "zero")
    canvas.text(EDGE, TALL + 16, exact(low), "tick")
    canvas.text(WIDTH - EDGE, TALL + 16, exact(high), "tick", "end")
    return canvas.drawing(
        f"column-{_place(column.name)}",
        f"Values of {column.name}",
        f"{column.present:,} values from {exact(low)} to {exact(high)}; {column.below:,} lie below "
        f"and {column.above:,} above. {_shape(column.counts, low, high)}",
    )


def levels(column: Column) -> Html:
    """How often each level is there."""
    shown = column.levels[:MOST_LEVELS]
    lines = [*shown, *(column.strangers[: MOST_LEVELS - len(shown)])]
    top = max((*(count for _, count in lines), 1))
    canvas = Canvas(WIDTH, LINE * len(lines) + 4)
    for place, (level, count) in enumerate(lines):
        style = "sampling" if place < len(shown) else "privacy"
        base = LINE * place
        room = WIDTH * 0.36
        canvas.text(0, base + 16, shortened(level, room), "name")
        canvas.bar(room + 4, base + 4, ((WIDTH - room - 74) * count / top, 14), style)
        canvas.text(WIDTH, base + 16, f"{count:,}", "words", "end")
    return canvas.drawing(
        f"column-{_place(column.name)}",
        f"Levels of {column.name}",
        "; ".join(f"{level}: {count:,}" for level, count in lines) + ".",
    )


def lengths(seen: Lengths) -> Html:
    """How long rows are, against the length to which longer ones are shrunk."""
    canvas = Canvas(WIDTH, TALL + 44)
    top = max((*seen.counts, 1))
    width = WIDTH / max(len(seen.counts), 1)
    for place, count in enumerate(seen.counts):
        beyond = (place + 0.5) / len(seen.counts) * seen.longest > seen.radius
        _bar(canvas, place * width, width - 1, count / top, "longer" if beyond else "sampling")
    radius = min(seen.radius / seen.longest, 1.0) * WIDTH
    canvas.line((0, TALL), (WIDTH, TALL), "zero")
    canvas.line((radius, 0), (radius, TALL + 6), "zero")
    words = f"shrunk beyond {seen.radius:.3g}"
    fits = radius + LETTER * len(words) < WIDTH
    canvas.text(radius, TALL + 20, words, "tick", "start" if fits else "end")
    canvas.text(0, TALL + 38, "0", "tick")
    canvas.text(WIDTH, TALL + 38, f"{seen.longest:.3g}", "tick", "end")
    return canvas.drawing(
        "lengths",
        "Length of encoded rows",
        f"From 0 to {seen.longest:.3g}; {seen.shrunk:,} rows are longer than {seen.radius:.3g} "
        "and would be shrunk to that.",
    )


@dataclass(frozen=True)
class Share:
    """A part of a budget, as a share of it, with the class that gives its colour."""

    name: str
    share: float
    style: str


def budget(name: str, shares: Sequence[Share], *, width: int = 640) -> Html:
    """A limit as one bar, divided into what was and would be spent; squares of μ add up to it."""
    canvas = Canvas(width, 26)
    canvas.bar(0, 2, (width, 22), "track")
    left = 0.0
    for each in shares:
        wide = each.share * width
        canvas.bar(left, 2, (max(wide - 1, 1.0), 22), each.style)
        left += wide
    told = "; ".join(f"{each.name}: {percent(each.share)} of the budget" for each in shares)
    rest = max(0.0, 1 - sum(each.share for each in shares))
    return canvas.drawing(name, "The budget", f"{told or 'Nothing spent'}; left: {percent(rest)}.")


def _bar(canvas: Canvas, left: float, width: float, share: float, style: str) -> None:
    """An upright bar; what is there at all is seen."""
    if share > 0:
        height = max(2.0, share * (TALL - 4))
        canvas.bar(left, TALL - height, (width, height), style)


def _shape(counts: Sequence[int], low: float, high: float) -> str:
    """Where most values are, in words."""
    total = sum(counts)
    if not total:
        return "None lies inside."
    fullest = max(range(len(counts)), key=counts.__getitem__)
    step = (high - low) / len(counts)
    begin = low + fullest * step
    return (
        f"The fullest of {len(counts)} equal parts, from {begin:.4g} to {begin + step:.4g}, "
        f"has {percent(counts[fullest] / total)} of those inside."
    )


def _place(name: str) -> str:
    """A name as part of an identifier."""
    return "".join(letter if letter.isalnum() else f"-{ord(letter):x}" for letter in name)
