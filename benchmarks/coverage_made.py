"""What `coverage.py` simulates: designs, rows and what is released of them."""

import math
from dataclasses import dataclass

import numpy as np

from tacit.analyst.collection import Collection, collect
from tacit.holder.charge import Purpose
from tacit.holder.perturb import privatise
from tacit.holder.statistics import Statistics
from tacit.simulation import seeded
from tacit.study import Study

TOTAL_ROWS = 20_000
BAND = (0.88, 0.92)
VISITED_BAND = (0.87, 0.93)
RESIDUAL_SD = 0.25
REACH = {"normal": 2.0, "heavy": 4.0}
"""Half-width of the response's range in the units of θ."""
RANGE = {"normal": 10.0, "heavy": 1000.0}
"""Half-width of the features' range in standard deviations."""
VISITED_RANGE = 50.0
"""The same at most for visits, which take no range above 32 times the typical one."""


@dataclass(frozen=True)
class Design:
    """What is common to the cells of all ε."""

    law: str
    sizes: str
    holders: int
    d: int

    @property
    def runs(self) -> int:
        """Runs at --runs 1: fewer where a fit is dear, and where it gives many intervals."""
        if self.holders == 100:
            return {2: 48, 5: 36, 10: 24, 20: 12}[self.d]
        return {2: 80, 5: 60, 10: 48, 20: 32}[self.d]

    @property
    def cost(self) -> int:
        """What its runs take beside others', roughly: the dearest begin first."""
        return self.runs * (self.holders + 10) * (self.d + 5)


@dataclass(frozen=True)
class Asked:
    """What all cells of a run of this script have in common."""

    relation: str
    visits: int

    @property
    def band(self) -> tuple[float, float]:
        """Within which coverage is to lie."""
        return VISITED_BAND if self.visits > 1 else BAND


def study_of(law: str, d: int, epsilon: float, asked: Asked, rows: list[int]) -> Study:
    typical = [-math.sqrt(3), math.sqrt(3)]
    reach = min(RANGE[law], VISITED_RANGE) if asked.visits > 1 else RANGE[law]
    features = [
        {"name": f"x{k}", "range": [-reach, reach], "typical": typical} for k in range(d - 1)
    ]
    response = {"name": "y", "range": [-REACH[law], REACH[law]]}
    budget = {"relation": asked.relation, "epsilon": epsilon, "delta": 1e-6}
    visits = {"visits": asked.visits, "planned_rows": rows} if asked.visits > 1 else {}
    return Study.from_document(
        {"name": "coverage", **budget, "response": response, "features": features, **visits}
    )


def truth(rng: np.random.Generator, p: int) -> np.ndarray:
    """θ with unit response and features mapped by their typical intervals."""
    return np.concatenate(
        [0.2 * rng.normal(size=1), 0.3 / math.sqrt(max(1.0, p / 3)) * rng.normal(size=p)]
    )


def rows_of(rng: np.random.Generator, law: str, theta: np.ndarray, n: int) -> np.ndarray:
    """Features of unit variance, response last, in the user's units."""
    shape = n, len(theta) - 1
    x = rng.normal(size=shape) if law == "normal" else rng.standard_t(3, size=shape) / math.sqrt(3)
    y = theta[0] + x @ theta[1:] / math.sqrt(3) + RESIDUAL_SD * rng.normal(size=n)
    return np.column_stack([x, y])


def cuts(rng: np.random.Generator, design: Design) -> np.ndarray:
    """Where one holder's rows end and the next one's begin."""
    shares = (
        rng.gamma(1.0, size=design.holders)
        if design.sizes == "unequal"
        else np.ones(design.holders)
    )
    least = 20 if design.sizes == "unequal" else 0
    sizes = least + (TOTAL_ROWS - least * design.holders) * shares / shares.sum()
    return np.cumsum(sizes)[:-1].round().astype(int)


def released(study: Study, parts: list[Statistics], rng: np.random.Generator) -> Collection:
    sampler = seeded(rng)
    return collect(
        [privatise(study, part, Purpose(f"h{k}"), sampler) for k, part in enumerate(parts)],
        allow_simulated=True,
    )
