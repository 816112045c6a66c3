r"""Distance to the non-private posterior.

MMD² with a Gaussian kernel, $k(a, b) = \exp(-\|a - b\|^2/2h^2)$, h = 0.1, at d = 2.

From the draws that `simulated` keeps, 100 of each chain, against 100 of the non-private posterior;
closed forms are sampled. ada-ssp is a point and has none. The estimate is the V-statistic, which is
never negative.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.run.parts import Part, joined, load, record
from experiments.run.simulated import PAPER_SAMPLERS, cells_of, labels, part_path
from experiments.run.simulated_closed import OWN, own_cells, own_path
from experiments.settings import SimulatedSettings

Array = NDArray[np.float64]


def mmd_squared(left: Array, right: Array, bandwidth: float) -> float:
    """Between two samples, (·, d) each."""

    def kernel(a: Array, b: Array) -> float:
        squares = np.sum((a[:, None, :] - b[None, :, :]) ** 2, axis=-1)
        return float(np.exp(-squares / (2 * bandwidth**2)).mean())

    return max(0.0, kernel(left, left) + kernel(right, right) - 2 * kernel(left, right))


def distances(parts: Path, settings: SimulatedSettings, bandwidth: float) -> Part:
    """MMD² of every method with draws, from the parts of `simulated`."""
    d = min(settings.columns)
    closed, found = load(part_path(parts, "closed", d)), []
    for holders in settings.holders:
        target = closed[f"draws:non-private:{holders}"]
        sources = {
            method: (part_path(parts, method, d), f"draws:{holders}") for method in PAPER_SAMPLERS
        }
        sources[OWN] = own_path(parts, d, holders), "draws"
        draws = {
            method: load(path)[name] for method, (path, name) in sources.items() if path.exists()
        }
        draws["fixed-s-fast"] = closed[f"draws:fixed-s-fast:{holders}"]
        for method, sample in draws.items():
            cells = own_cells(settings) if method == OWN else cells_of(settings)
            values = [
                mmd_squared(own, target[cell.run], bandwidth)
                for cell, own in zip(cells, sample, strict=True)
            ]
            found.append(record(labels(method, d, holders, cells) | {"mmd": np.array(values)}))
    return joined(found)
