"""Drawings as SVG, with a title and a description for who cannot see them.

Colours come from the page's classes.
"""

import math
from collections.abc import Iterable

from tacit.page.markup import Html, html, join
from tacit.page.numbers import exact

WIDE = 720
NARROW = 350
"""Widths at which every drawing is made, in pixels: for a page, and for a telephone."""
LETTER = 7.0
BOLD_LETTER = 8.2
"""Width of a usual letter of a drawing, in pixels."""


class Canvas:
    """A drawing of given size. Every mark has a class, which the page gives its colour."""

    def __init__(self, width: float, height: float) -> None:
        self.width = width
        self.height = height
        self._marks: list[Html] = []

    def text(
        self, x: float, y: float, content: object, style: str = "", anchor: str = "start"
    ) -> None:
        """Words, on their base line."""
        self._add(
            '<text x="$x" y="$y" class="$style" text-anchor="$anchor">$content</text>',
            x=x,
            y=y,
            content=content,
            style=style,
            anchor=anchor,
        )

    def line(self, start: tuple[float, float], end: tuple[float, float], style: str) -> None:
        """A straight line."""
        self._add(
            '<line x1="$left" y1="$top" x2="$right" y2="$bottom" class="$style"/>',
            left=start[0],
            top=start[1],
            right=end[0],
            bottom=end[1],
            style=style,
        )

    def bar(self, x: float, y: float, size: tuple[float, float], style: str) -> None:
        """A rectangle."""
        width, height = size
        self._add(
            '<rect x="$x" y="$y" width="$width" height="$height" class="$style"/>',
            x=x,
            y=y,
            width=max(width, 0.0),
            height=height,
            style=style,
        )

    def dot(self, x: float, y: float, radius: float, style: str) -> None:
        """A disc."""
        self._add(
            '<circle cx="$x" cy="$y" r="$r" class="$style"/>', x=x, y=y, r=radius, style=style
        )

    def path(self, points: Iterable[tuple[float, float]], style: str) -> None:
        """A line through points."""
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._add('<polyline points="$places" class="$style"/>', places=places, style=style)

    def _add(self, template: str, **values: object) -> None:
        rounded = {
            name: f"{value:.1f}" if isinstance(value, float) else value
            for name, value in values.items()
        }
        self._marks.append(html(template, **rounded))

    def drawing(self, name: str, title: str, description: str) -> Html:
        """The whole, with its name and description; `name` must be unique on the page."""
        return html(
            '<svg viewBox="0 0 $w $h" width="$w" height="$h" role="img" '
            'aria-labelledby="$name-t $name-d">'
            '<title id="$name-t">$title</title><desc id="$name-d">$description</desc>'
            "\n$marks\n</svg>",
            w=f"{self.width:g}",
            h=f"{self.height:g}",
            name=name,
            title=title,
            description=description,
            marks=join(self._marks),
        )


class Axis:
    """A horizontal axis: from values to places."""

    def __init__(self, values: tuple[float, float], places: tuple[float, float]) -> None:
        self.low, self.high = values
        self.left, self.right = places
        if not self.high > self.low:
            self.low -= 1
            self.high += 1

    def at(self, value: float) -> float:
        """Place of a value."""
        return self.left + (value - self.low) / (self.high - self.low) * (self.right - self.left)

    def ticks(self, apart: float = 100) -> list[float]:
        """Round values along the axis, that many pixels apart or a little more."""
        rough = (self.high - self.low) / max(2.0, (self.right - self.left) / apart)
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(multiple * power for multiple in (1, 2, 5, 10) if multiple * power >= rough)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(k * step, 12) for k in range(first, last + 1)]

    def draw(self, canvas: Canvas, top: float, bottom: float, label: str) -> None:
        """Ticks as faint lines from top to bottom, their numbers, and what they count."""
        for tick in self.ticks():
            place = self.at(tick)
            canvas.line((place, top), (place, bottom), "zero" if tick == 0 else "grid")
            canvas.text(place, bottom + 16, exact(tick), "tick", "middle")
        canvas.text(self.left, bottom + 34, label, "label")


def shortened(text: str, pixels: float) -> str:
    """A bold text cut to fit; the table beside the drawing has it whole."""
    most = max(4, int(pixels / BOLD_LETTER))
    return text if len(text) <= most else text[: most - 1] + "…"
