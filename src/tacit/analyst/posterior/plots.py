"""Plots of a posterior with matplotlib, which is loaded when one is asked for.

Each takes axes to draw on, and gives them back.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.posterior.density import densities
from tacit.analyst.posterior.laws import Draws
from tacit.analyst.posterior.posterior import Posterior, UnitsName
from tacit.errors import PosteriorError
from tacit.study.labels import labelled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

TEAL = "#2b7a86"
ORANGE = "#b9581a"
GREY = "#7b828a"
DOTS = 1500
"""Points that a pair of coefficients is shown with."""


def plot_forest(
    posterior: Posterior, ax: "Axes | None", probability: float, units: UnitsName
) -> "Axes":
    """Every coefficient's interval, with the part that would be left without privacy noise."""
    names = posterior.names(units)
    mean = posterior.mean(units)
    bounds = posterior.interval(probability, units)
    axes: Axes = _figure(8, 1.2 + 0.5 * len(names)).add_subplot() if ax is None else ax
    places = np.arange(len(names))
    kept = np.sqrt(1 - posterior.privacy_share(units))
    inner = mean + kept * (bounds.T - mean)
    known = np.isfinite(bounds).all(axis=1)
    split = known & np.isfinite(kept)
    axes.axvline(0, color=GREY, linewidth=1)
    axes.hlines(
        places[known],
        *bounds.T[:, known],
        color=ORANGE if split.any() else TEAL,
        linewidth=3,
        label=f"{100 * probability:g} % interval",
    )
    if split.any():
        axes.hlines(
            places[split], *inner[:, split], color=TEAL, linewidth=3, label="without privacy noise"
        )
    axes.plot(
        mean, places, "o", color="white", markeredgecolor=TEAL, markeredgewidth=2, markersize=7
    )
    axes.set_yticks(places, [_plain(name) for name in labelled(posterior.model, list(names))])
    axes.margins(y=0.3 / len(names))
    axes.invert_yaxis()
    axes.set_xlabel(_plain(_axis_label(posterior, units)))
    axes.legend(
        frameon=False,
        loc="upper center",
        bbox_to_anchor=(0.5, 1.02 + 0.5 / (1 + len(names))),
        ncols=2,
    )
    _tidy(axes)
    return axes


def plot_holders(
    posterior: Posterior, name: str, ax: "Axes | None", probability: float, units: UnitsName
) -> "Axes":
    """One coefficient holder by holder, over the average holder's interval and a new one's."""
    holders = posterior.holders(probability, units)
    if holders is None or not holders.between:
        raise PosteriorError(
            "plot_holders: this posterior has no spread of holders; fit three or more, noise-aware"
        )
    if name not in holders.names:
        raise PosteriorError(f"name must be one of {', '.join(holders.names)}; got {name!r}")
    k = holders.names.index(name)
    own = sorted(holders.own, key=lambda one: one.mean[k])
    places = np.arange(len(own))
    axes: Axes = _figure(8, 1.2 + 0.35 * len(own)).add_subplot() if ax is None else ax
    average = posterior.interval(probability, units)[k]
    axes.axvspan(*holders.between[k].new, color=GREY, alpha=0.15, label="a new holder")
    axes.axvspan(*average, color=TEAL, alpha=0.3, label="the average holder")
    ends = np.array([(one.low[k], one.high[k]) for one in own])
    axes.hlines(places, *ends.T, color=TEAL, linewidth=3, label=f"{100 * probability:g} % interval")
    means = [one.mean[k] for one in own]
    axes.plot(means, places, "o", color="white", markeredgecolor=TEAL, markersize=6)
    axes.set_yticks(places, [_plain(one.holder) for one in own])
    axes.set_title(_plain(name), loc="left", fontsize=10)
    axes.set_xlabel(_plain(_axis_label(posterior, units)))
    axes.legend(frameon=False, loc="best")
    _tidy(axes)
    return axes


def plot_trace(
    posterior: Posterior, axes: "Sequence[Sequence[Axes]] | None", units: UnitsName
) -> "NDArray[Any]":
    """Per coefficient: its density, and its chains one draw after the other."""
    if not isinstance(posterior.outcome, Draws):
        raise PosteriorError(
            f"{posterior.method} is computed, not sampled: it has no trace; "
            "plot_forest and plot_pairs show it"
        )
    draws = posterior.draws(units)
    names = posterior.names(units)
    curves = densities(posterior, units)
    grid = _grid(axes, (len(names), 2), (9, 1.5 * len(names)))
    for k, (name, (places, heights)) in enumerate(zip(names, curves, strict=True)):
        density, trace = grid[k]
        density.fill_between(places, heights, color=TEAL, alpha=0.35, linewidth=0)
        density.set_yticks([])
        density.set_title(_plain(name), loc="left", fontsize=10)
        for chain in draws[..., k]:
            trace.plot(chain, linewidth=0.5, alpha=0.8)
        trace.margins(x=0)
        _tidy(density)
        _tidy(trace)
    grid[-1][1].set_xlabel("draw")
    return grid


def plot_pairs(
    posterior: Posterior, axes: "Sequence[Sequence[Axes]] | None", units: UnitsName
) -> "NDArray[Any]":
    """Every two coefficients against each other, with each one's density on the diagonal.

    A closed form is sampled for it.
    """
    curves = densities(posterior, units)
    if not curves:
        raise PosteriorError(f"{posterior.method} gives a point: there are no pairs to plot")
    names = posterior.names(units)
    points = posterior.sample(DOTS, np.random.default_rng(0), units)
    grid = _grid(axes, (len(names), len(names)), (1.9 * len(names), 1.9 * len(names)))
    for row, col in np.ndindex(len(names), len(names)):
        panel: Any = grid[row, col]
        if col > row:
            panel.set_axis_off()
            continue
        if row == col:
            panel.fill_between(*curves[row], color=TEAL, alpha=0.35, linewidth=0)
            panel.set_yticks([])
        else:
            panel.plot(points[:, col], points[:, row], ".", color=TEAL, markersize=2, alpha=0.3)
        panel.tick_params(labelsize=8)
        panel.set_xlabel(_plain(names[col]).replace("[", "\n[") if row == len(names) - 1 else "")
        panel.set_ylabel(_plain(names[row]).replace("[", "\n[") if col == 0 and row > 0 else "")
        _tidy(panel)
    return grid


def _axis_label(posterior: Posterior, units: UnitsName) -> str:
    response = posterior.model.response.measured
    return {
        "user": f"{response} per unit of the feature",
        "scaled": "scaled units",
        "contrast": f"difference in {response}: whole range of a feature, "
        "or a level against the reference",
    }[units]


def _plain(name: str) -> str:
    """A name as it is: matplotlib takes a dollar sign for mathematics."""
    return name.replace("$", r"\$")


def _figure(width: float, height: float) -> "Figure":
    try:
        from matplotlib import pyplot as plt
    except ModuleNotFoundError:
        raise PosteriorError("plots need matplotlib: pip install 'tacit-dp[plots]'") from None
    return plt.figure(figsize=(width, height), layout="constrained")


def _grid(
    axes: "Sequence[Sequence[Axes]] | None", shape: tuple[int, int], size: tuple[float, float]
) -> "NDArray[Any]":
    """The axes to draw on, of the right shape."""
    if axes is None:
        return np.asarray(_figure(*size).subplots(*shape, squeeze=False))
    given = np.asarray(axes, dtype=object)
    if given.shape != shape:
        raise PosteriorError(f"axes must have the shape {shape}; got {given.shape}")
    return given


def _tidy(axes: "Axes") -> None:
    axes.spines[["top", "right"]].set_visible(False)
