"""Figures like the paper's.

Log error against ε, a line and a 90 % band per method, one panel per d and J.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.show.summary import Mean

STYLES = {
    "normal-x": ("C0", "o"),
    "fixed-s": ("C1", "s"),
    "fixed-s-fast": ("C2", "^"),
    "bernstein-sheldon": ("C3", "D"),
    "bernstein-sheldon, dense": ("C6", "P"),
    "ada-ssp": ("C4", "v"),
    "noise-aware": ("black", "*"),
}
INCHES = 2.6  # of a panel
FLOOR = "non-private"

Points = dict[float, Mean]  # from the horizontal axis to a mean
Panel = dict[str, Points]  # by method


@dataclass(frozen=True)
class Words:
    """What is written on a figure: axes, heading, and the ticks across, each of them shown."""

    across: str
    up: str
    heading: str
    ticks: Sequence[float]


def figure_of(
    panels: Mapping[str, Panel],
    across: int,
    words: Words,
    floors: Mapping[str, float] | None = None,
) -> Any:  # noqa: ANN401
    """Panels by title, so many in a row; `floors` are dashed lines, by title."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "tacit", "font.size": 8}):
        down = -(-len(panels) // across)
        size = (INCHES * across, INCHES * down + (0.6 if across > 1 else 1.2))
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(down, across, sharex=True, sharey="row", squeeze=False)
        axes = np.atleast_1d(grid).ravel()
        for axis, (title, panel) in zip(axes, panels.items(), strict=True):
            draw(axis, panel)
            axis.set(title=title, xscale="log", yscale=scale_of(panel))
            axis.minorticks_off()
            axis.set_xticks(words.ticks, [f"{tick:g}" for tick in words.ticks])
            if floors and title in floors:
                floor = floors[title]
                axis.axhline(floor, color="grey", linestyle="--", linewidth=0.8, label=FLOOR)
        for axis in axes[-across:]:
            axis.set_xlabel(words.across)
        for axis in axes[::across]:
            axis.set_ylabel(words.up)
        figure.suptitle(words.heading)
        handles, names = axes[0].get_legend_handles_labels()
        columns = max(1, 2 * across - 2)
        figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False)
    return figure


def scale_of(panel: Panel) -> str:
    """Logarithmic, but where an estimate falls below zero."""
    below = any(mean.low <= 0 for points in panel.values() for mean in points.values())
    return "linear" if below else "log"


def draw(axis: Any, panel: Panel) -> None:  # noqa: ANN401 - matplotlib has no types of its own
    """Lines and bands of one panel."""
    for method, points in panel.items():
        colour, marker = STYLES[method]
        where = sorted(points)
        means = np.array([points[x] for x in where])
        axis.plot(
            where, means[:, 0], color=colour, marker=marker, markersize=3, linewidth=1, label=method
        )
        axis.fill_between(where, means[:, 1], means[:, 2], color=colour, alpha=0.15, linewidth=0)


METADATA: dict[str, dict[str, None]] = {"svg": {"Date": None}, "png": {"Software": None}}


def save(
    figure: Any,  # noqa: ANN401
    folder: Path,
    name: str,
    kinds: Sequence[str] = ("svg", "png"),
    letters: str = "none",
) -> None:
    """As SVG and PNG, without dates, so that the same results give the same files.

    `letters` are text ("none"), or drawn ("path") where hats would else depend on fonts.
    """
    from matplotlib import rc_context

    folder.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.fonttype": letters, "svg.hashsalt": "tacit"}):
        for kind in kinds:
            figure.savefig(folder / f"{name}.{kind}", dpi=120, metadata=METADATA[kind])
