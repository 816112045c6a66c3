"""The report's charts. Each is drawn for two widths, from plain numbers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from tacit.page.markup import Html
from tacit.page.svg import LETTER, NARROW, WIDE, Axis, Canvas, shortened

Array = NDArray[np.float64]
Drawings = tuple[Html, Html]
"""For wide and for narrow screens."""
Curve = tuple[Array, Array]
"""Places and heights of a density."""

_EDGE = 2
_GUTTER = 28
_FOOT = 44  # for ticks and the axis's label


def both(name: str, title: str, description: str, draw: Callable[[int], Canvas]) -> Drawings:
    """A drawing for wide and for narrow screens."""
    wide, narrow = (
        draw(width).drawing(f"{name}-{width}", title, description) for width in (WIDE, NARROW)
    )
    return wide, narrow


@dataclass(frozen=True)
class Estimate:
    """A line of a chart: what it is about, its number in words, its interval and density."""

    label: str
    words: str
    mean: float
    low: float
    high: float
    curve: Curve | None = None
    bare: tuple[float, float] | None = None  # the interval without privacy noise
    where: str = ""  # what else the label says, on a line of its own


def _heading(canvas: Canvas, y: float, label: str, words: str, style: str = "name") -> None:
    """Label on the left, number on the right; on a narrow screen the label gives way."""
    if words:
        canvas.text(canvas.width - _EDGE, y, words, "words", "end")
    if label:
        canvas.text(_EDGE, y, shortened(label, _room(canvas.width, words)), style)


def _room(width: float, words: str) -> float:
    """What is left of a line beside its number."""
    return width - 2 * _EDGE - LETTER * (len(words) + 2) * bool(words)


def forest(name: str, title: str, estimates: Sequence[Estimate], axis_label: str) -> Drawings:
    """Every estimate with its density above its interval, on one axis that shows zero."""
    ends = [end for estimate in estimates for end in _ends(estimate)]
    span = (min(0.0, *ends), max(0.0, *ends))
    described = "; ".join(f"{e.label} {e.where}".rstrip() + f": {e.words}" for e in estimates)

    def draw(width: int) -> Canvas:
        # Where a label does not fit beside its number, numbers go to a second line.
        tight = any(shortened(e.label, _room(width, e.words)) != e.label for e in estimates)
        tops = list(accumulate((80 if tight or e.where else 64 for e in estimates), initial=6))
        canvas = Canvas(width, tops[-1] + _FOOT)
        axis = Axis(span, (_EDGE + 6, width - _EDGE - 6))
        axis.draw(canvas, tops[0], tops[-1], axis_label)
        for estimate, top, end in zip(estimates, tops[:-1], tops[1:], strict=True):
            _heading(canvas, top + 17, estimate.label, "" if tight else estimate.words)
            _heading(canvas, top + 33, estimate.where, estimate.words if tight else "", "label")
            _interval(canvas, axis, end - 12, estimate, 24)
        return canvas

    return both(name, title, described, draw)


def _ends(estimate: Estimate) -> list[float]:
    """Everything of an estimate that the axis must show."""
    ends = [estimate.low, estimate.high]
    if estimate.curve is not None:
        places = estimate.curve[0]
        ends += [float(places[0]), float(places[-1])]
    return [end for end in ends if np.isfinite(end)] or [estimate.mean]


def _interval(canvas: Canvas, axis: Axis, base: float, estimate: Estimate, height: float) -> None:
    if estimate.curve is not None:
        places, heights = estimate.curve
        points = [
            (axis.at(x), base - height * y)
            for x, y in zip(places.tolist(), heights.tolist(), strict=True)
        ]
        canvas.path([(points[0][0], base), *points, (points[-1][0], base)], "density")
    if np.isfinite(estimate.low) and np.isfinite(estimate.high):
        canvas.line(
            (axis.at(estimate.low), base),
            (axis.at(estimate.high), base),
            "interval" if estimate.bare is None else "interval noisy",
        )
    if estimate.bare is not None:
        canvas.line(
            (axis.at(estimate.bare[0]), base), (axis.at(estimate.bare[1]), base), "interval"
        )
    canvas.dot(axis.at(estimate.mean), base, 4.5, "estimate")


def shares(
    name: str, title: str, rows: Sequence[tuple[str, Sequence[tuple[float, str, str]]]]
) -> Drawings:
    """Bars of whole length, each cut into shares: (share, style, what it is)."""
    described = "; ".join(
        f"{label}: " + ", ".join(f"{what} {100 * share:.0f} %" for share, _, what in parts)
        for label, parts in rows
    )

    def draw(width: int) -> Canvas:
        row = 46
        canvas = Canvas(width, row * len(rows) + 4)
        length = width - 2 * _EDGE
        for k, (label, parts) in enumerate(rows):
            canvas.text(_EDGE, row * k + 16, shortened(label, length), "name")
            _bar(canvas, row * k + 22, length, parts)
        return canvas

    return both(name, title, described, draw)


def _bar(canvas: Canvas, y: float, length: float, parts: Sequence[tuple[float, str, str]]) -> None:
    x = float(_EDGE)
    for share, style, _ in parts:
        canvas.bar(x, y, (max(share * length - 1, 0.0), 18), style)
        if share * length > 7 * LETTER:
            canvas.text(x + 6, y + 13.5, f"{100 * share:.0f} %", f"on {style}")
        x += share * length


@dataclass(frozen=True)
class Expected:
    """A prediction: what is varied, and the intervals of the mean and of a new case."""

    label: str
    words: str
    mean: float
    of_mean: tuple[float, float]
    of_new: tuple[float, float]


def predictions(name: str, title: str, rows: Sequence[Expected], axis_label: str) -> Drawings:
    """A thin bar for a new case, a thick one for the mean of such cases, a dot for the estimate."""
    ends = [value for row in rows for value in (*row.of_new, row.mean) if np.isfinite(value)]
    described = "; ".join(f"{row.label}: {row.words}" for row in rows)

    def draw(width: int) -> Canvas:
        height = 44
        top = 6
        canvas = Canvas(width, top + height * len(rows) + _FOOT)
        axis = Axis((min(ends), max(ends)), (_EDGE + 6, width - _EDGE - 6))
        axis.draw(canvas, top, top + height * len(rows), axis_label)
        for k, row in enumerate(rows):
            base = top + height * k + 32
            _heading(canvas, base - 15, row.label, row.words)
            for style, (low, high) in (("new", row.of_new), ("interval", row.of_mean)):
                if np.isfinite(low) and np.isfinite(high):
                    canvas.line((axis.at(low), base), (axis.at(high), base), style)
            canvas.dot(axis.at(row.mean), base, 4.5, "estimate")
        return canvas

    return both(name, title, described, draw)


def ratios(name: str, title: str, rows: Sequence[tuple[str, str, float]]) -> Drawings:
    """Bars against a whole: label, words, and the share that remains."""
    described = "; ".join(f"{label}: {words}" for label, words, _ in rows)

    def draw(width: int) -> Canvas:
        height = 46
        canvas = Canvas(width, height * len(rows) + 4)
        length = width - 2 * _EDGE
        for k, (label, words, ratio) in enumerate(rows):
            _heading(canvas, height * k + 16, label, words)
            canvas.bar(_EDGE, height * k + 24, (float(length), 12), "track")
            canvas.bar(_EDGE, height * k + 24, (min(ratio, 1.0) * length, 12), "sampling")
        return canvas

    return both(name, title, described, draw)


@dataclass(frozen=True)
class Panel:
    """One coefficient by itself: its density and interval and, where it was sampled, its chains."""

    name: str
    estimate: Estimate
    chains: Array | None = None  # (chain, draw)


MOST_POINTS = 250
"""Points that a chain is drawn with."""


def panels(name: str, title: str, shown: Sequence[Panel]) -> Drawings:
    """Small pictures: a density each and, beside or below it, the chains."""
    described = "; ".join(f"{panel.name}: {panel.estimate.words}" for panel in shown)

    def draw(width: int) -> Canvas:
        sampled = shown[0].chains is not None
        columns = (1 if sampled else 2) if width == WIDE else 1
        height = 172 if sampled and width == NARROW else 118
        canvas = Canvas(width, height * -(-len(shown) // columns))
        for k, panel in enumerate(shown):
            row, column = divmod(k, columns)
            corner = (column * (width + _GUTTER) / columns, height * row)
            _panel(
                canvas,
                panel,
                corner,
                (width + _GUTTER) / columns - _GUTTER,
                beside=sampled and width == WIDE,
            )
        return canvas

    return both(name, title, described, draw)


def _panel(
    canvas: Canvas, panel: Panel, corner: tuple[float, float], width: float, *, beside: bool
) -> None:
    left, top = corner
    half = (width - _GUTTER) / 2 if beside else width
    right = left + half - _EDGE
    canvas.text(left + _EDGE, top + 16, shortened(panel.name, half - 2 * _EDGE), "name")
    if panel.estimate.curve is not None:
        places = panel.estimate.curve[0]
        axis = Axis((float(places[0]), float(places[-1])), (left + _EDGE, right))
        _interval(canvas, axis, top + 82, panel.estimate, 56)
        for tick in axis.ticks(70):
            canvas.text(
                axis.at(tick), top + 102, f"{tick:,.10g}".replace("-", "−"), "tick", "middle"
            )
    if panel.chains is not None:
        place = (left + half + _GUTTER, top + 24) if beside else (left + _EDGE, top + 112)
        _chains(canvas, panel.chains, place, (half - 2 * _EDGE, 60 if beside else 46))


def _chains(
    canvas: Canvas, chains: Array, corner: tuple[float, float], size: tuple[float, float]
) -> None:
    """Draws one after the other, chain by chain in its own shade."""
    low = float(chains.min())
    high = float(chains.max())
    reach = high - low if high > low else 1.0
    chosen = np.unique(np.linspace(0, chains.shape[1] - 1, MOST_POINTS).round().astype(int))
    for k, chain in enumerate(chains[:, chosen]):
        across = np.linspace(corner[0], corner[0] + size[0], len(chosen))
        down = corner[1] + size[1] * (1 - (chain - low) / reach)
        canvas.path(zip(across.tolist(), down.tolist(), strict=True), f"chain c{k % 4}")
