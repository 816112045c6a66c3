"""Figures like the paper's.

Log error against ε, a line and a 90 % band per method, one panel per d and J.
"""

from collections.abc import Mapping
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

Points = dict[float, Mean]  # from the horizontal axis to a mean
Panel = dict[str, Points]  # by method


def figure_of(
    panels: Mapping[str, Panel],
    across: int,
    labels: tuple[str, str],
    floors: Mapping[str, float] | None = None,
) -> Any:  # noqa: ANN401
    """Panels by title, so many in a row; `floors` are dashed lines, by title."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "tacit", "font.size": 8}):
        down = -(-len(panels) // across)
        figure = Figure(
            figsize=(INCHES * across, INCHES * down + (0.4 if across > 1 else 1.0)),
            layout="constrained",
        )
        axes = np.atleast_1d(
            figure.subplots(down, across, sharex=True, sharey="row", squeeze=False)
        ).ravel()
        for axis, (title, panel) in zip(axes, panels.items(), strict=True):
            draw(axis, panel)
            axis.set(title=title, xscale="log", yscale="log")
            axis.minorticks_off()
            if floors and title in floors:
                axis.axhline(
                    floors[title], color="grey", linestyle="--", linewidth=0.8, label="non-private"
                )
        for axis in axes[-across:]:
            axis.set_xlabel(labels[0])
        for axis in axes[::across]:
            axis.set_ylabel(labels[1])
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(
            handles, names, loc="outside lower center", ncols=max(1, 2 * across - 2), frameon=False
        )
    return figure


def draw(axis: Any, panel: Panel) -> None:  # noqa: ANN401 - matplotlib has no types of its own
    """Lines and bands of one panel."""
    for method, points in panel.items():
        colour, marker = STYLES[method]
        where = sorted(points)
        found = np.array([points[x] for x in where])
        axis.plot(
            where, found[:, 0], color=colour, marker=marker, markersize=3, linewidth=1, label=method
        )
        axis.fill_between(where, found[:, 1], found[:, 2], color=colour, alpha=0.15, linewidth=0)


def save(figure: Any, folder: Path, name: str) -> None:  # noqa: ANN401
    """As SVG and PNG, without dates, so that the same results give the same files."""
    from matplotlib import rc_context

    folder.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "tacit"}):
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        figure.savefig(folder / f"{name}.png", dpi=120, metadata={"Software": None})
