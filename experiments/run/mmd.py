r"""Distance to the non-private posterior at d = 2: MMD², by two estimates.

`published`: as the published code computes it. Kernel
$(2\pi h)^{-d/2}\exp(-\|a - b\|^2/2h)$ with h = 0.1, so a variance of 0.1, and the unbiased
U-statistic, which may be negative. The code has 2,000 draws of each posterior; here they are the
100 that `simulated` keeps of each chain against 2,000 of the non-private posterior, which changes
the noise of one run's value and not its mean.

`own`: kernel $\exp(-\|a - b\|^2/2h^2)$ with h = 0.1, so a width of 0.1, and the V-statistic, which
is never negative and lies between 0 and 2.

Closed forms are sampled. ada-ssp is a point and has none.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.run.chains import KEPT, SAMPLERS
from experiments.run.parts import Part, joined, load, record
from experiments.run.simulated import PAPER_SAMPLERS, Cell, cells_of, labels, part_path
from experiments.run.simulated_closed import OWN, own_cells, own_path
from experiments.settings import SimulatedSettings

Array = NDArray[np.float64]


def squares(left: Array, right: Array) -> Array:
    """Squared distances of all pairs."""
    lengths = np.sum(left**2, axis=-1)[:, None] + np.sum(right**2, axis=-1)
    apart: Array = lengths - 2 * left @ right.T
    return apart


def mmd_own(left: Array, right: Array, width: float) -> float:
    """The V-statistic between two samples, (·, d) each, with a kernel of that width."""

    def kernel(a: Array, b: Array) -> float:
        return float(np.exp(-squares(a, b) / (2 * width**2)).mean())

    return max(0.0, kernel(left, left) + kernel(right, right) - 2 * kernel(left, right))


def density(left: Array, right: Array, variance: float) -> Array:
    """A Gaussian density of that variance, of all pairs."""
    factor = (2 * np.pi * variance) ** (-left.shape[-1] / 2)
    values: Array = factor * np.exp(-squares(left, right) / (2 * variance))
    return values


def within(sample: Array, variance: float) -> float:
    """Mean density between different draws of a sample."""
    count = len(sample)
    same = count * (2 * np.pi * variance) ** (-sample.shape[-1] / 2)
    return float((density(sample, sample, variance).sum() - same) / (count * (count - 1)))


def mmd_published(
    left: Array, right: Array, variance: float, right_within: float | None = None
) -> float:
    """The U-statistic with a Gaussian density of that variance for a kernel.

    `right_within` is `within(right, variance)`, where many are held against the same draws.
    """
    other = within(right, variance) if right_within is None else right_within
    between = float(density(left, right, variance).mean())
    return within(left, variance) + other - 2 * between


def distances(parts: Path, settings: SimulatedSettings, bandwidth: float) -> Part:
    """MMD² of every method with draws, by both estimates, from the parts of `simulated`."""
    d = min(settings.columns)
    closed = load(part_path(parts, "closed", d))
    lines = []
    for holders in settings.holders:
        target = closed[f"draws:non-private:{holders}"]
        inner = [within(draws, bandwidth) for draws in target]
        for method, sample in draws_of(parts, closed, d, holders).items():
            cells = cells_with(method, settings)
            values = [
                (
                    mmd_own(own, target[cell.run][:KEPT], bandwidth),
                    mmd_published(own, target[cell.run], bandwidth, inner[cell.run]),
                )
                for cell, own in zip(cells, sample.astype(np.float64), strict=True)
            ]
            own, published = np.array(values).T
            figures = {"mmd": own, "mmd_published": published}
            lines.append(record(labels(method, d, holders, cells) | figures))
    return joined(lines)


def draws_of(parts: Path, closed: Part, d: int, holders: int) -> dict[str, Array]:
    """Draws by method, (cells, draws, d)."""
    sources = {
        method: (part_path(parts, method, d), f"draws:{holders}") for method in PAPER_SAMPLERS
    }
    sources[OWN] = own_path(parts, d, holders), "draws"
    draws: dict[str, Array] = {
        method: load(path)[name] for method, (path, name) in sources.items() if path.exists()
    }
    draws["fixed-s-fast"] = closed[f"draws:fixed-s-fast:{holders}"]
    return draws


def cells_with(method: str, settings: SimulatedSettings) -> list[Cell]:
    """The releases that a method was run on."""
    if method == OWN:
        return own_cells(settings)
    if method in SAMPLERS:
        return cells_of(settings, SAMPLERS[method].calibrations)
    return cells_of(settings)
