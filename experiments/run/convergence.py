"""How well the chains behind the tables mixed: split R-hat and effective size of every chain.

From the draws that `real` keeps, 100 of each chain's second half. One chain cannot tell that it
missed a mode; that it still drifts, it can.
"""

from pathlib import Path

import numpy as np

from experiments.run.chains import SAMPLERS
from experiments.run.parts import Part, load, record
from experiments.run.real import SAMPLED, cells_of, chain_path, labels
from experiments.settings import RealSettings
from tacit.analyst.posterior.convergence import mixing


def converged(folder: Path, settings: RealSettings) -> list[Part]:
    """A part per set, method and J whose draws are there."""
    parts = []
    for name in settings.sets:
        for method in SAMPLED:
            path = chain_path(folder, name, method)
            part = load(path) if path.exists() else {}
            cells = cells_of(settings, SAMPLERS[method].calibrations)
            for holders in settings.holders:
                if f"draws:{holders}" in part:
                    own = labels(name, method, holders, cells)
                    parts.append(record(own | diagnosed(part[f"draws:{holders}"])))
    return parts


def diagnosed(draws: np.ndarray) -> dict[str, np.ndarray]:
    """Worst R-hat and least effective size over coefficients, of every chain, (chains,).

    A chain's two halves are taken for two chains.
    """
    halves = draws.astype(float).reshape(len(draws), 2, -1, draws.shape[-1])
    mixed = [mixing(chain) for chain in halves]
    return {
        "rhat": np.array([float(each.rhat.max()) for each in mixed]),
        "effective": np.array([float(each.bulk.min()) for each in mixed]),
    }
