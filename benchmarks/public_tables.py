"""Public tables as populations: columns mapped to [−1, 1], a study of them, and what it gives.

Every file is a table of numbers without a header, response last; real_tables.py says how ranges
are stated.
"""

import math
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Self

import numpy as np

from tacit.analyst.collection import collect
from tacit.analyst.fit import fit
from tacit.analyst.posterior.posterior import Posterior
from tacit.release import Release
from tacit.simulation import simulate, simulate_visits
from tacit.study import Study

DEPENDENT = 1e-4
"""A column of which less than this share is left beside the earlier ones is left out."""


@dataclass(frozen=True)
class Population:
    """A table, features mapped to [−1, 1] by their ranges, and what least squares finds in it.

    A feature of two values is one of 0 and 1, as people code answers.
    """

    name: str
    x: np.ndarray  # (n, p)
    y: np.ndarray
    intercept: bool = True

    @property
    def n(self) -> int:
        return len(self.y)

    @cached_property
    def design(self) -> np.ndarray:
        return np.column_stack([np.ones(self.n), self.x]) if self.intercept else self.x

    @cached_property
    def slopes(self) -> np.ndarray:
        return np.linalg.lstsq(self.design, self.y, rcond=None)[0]

    @cached_property
    def explained(self) -> float:
        """Sum of squares that least squares explains."""
        fitted = self.design @ self.slopes
        return float(np.sum((fitted - self.y.mean()) ** 2))

    def loss(self, theta: np.ndarray) -> float:
        """Share of it that another θ gives away."""
        return float(np.sum((self.design @ (theta - self.slopes)) ** 2)) / self.explained

    def centred(self) -> Self:
        """The same about its means, without an intercept."""
        x = self.x - self.x.mean(axis=0)
        return replace(self, x=x, y=self.y - self.y.mean(), intercept=False)

    def study(self, way: str, epsilon: float, planned: list[int]) -> Study:
        features = [self._feature(k, way) for k in range(self.x.shape[1])]
        visits = {} if way in {"default", "centred"} else {"visits": 1}
        reach = 1.0 if self.intercept else float(np.abs(self.y).max())
        return Study.from_document(
            {
                "name": self.name,
                "epsilon": epsilon,
                "delta": 1e-6,
                "intercept": self.intercept,
                "response": {"name": "y", "range": [-reach, reach]},
                "features": features,
                "planned_rows": planned,
            }
            | visits
        )

    def _feature(self, k: int, way: str) -> dict[str, object]:
        low = float(self.x[:, k].min())
        reach = float(np.abs(self.x[:, k]).max())
        span = [low, 1.0] if self.intercept else [-reach, reach]
        feature: dict[str, object] = {"name": f"x{k}", "range": span}
        if way == "typical":
            middle = float(self.x[:, k].mean())
            reach = math.sqrt(3) * float(self.x[:, k].std())
            feature["typical"] = [max(low, middle - reach), min(1.0, middle + reach)]
        return feature


@cache
def load(path: Path) -> Population:
    """A table, every column mapped to [−1, 1] or 0 and 1, dependent ones left out."""
    rows = np.loadtxt(path, delimiter=",")
    low = rows.min(axis=0)
    high = rows.max(axis=0)
    varies = high > low
    scaled = 2 * (rows - low)[:, varies] / (high - low)[varies] - 1
    x = scaled[:, :-1]
    answers = np.all(np.abs(x) == 1, axis=0)
    x[:, answers] = (1 + x[:, answers]) / 2
    return Population(path.name.split(".")[0], x[:, independent(x)], scaled[:, -1])


def independent(x: np.ndarray) -> list[int]:
    """Columns that are no linear function of the earlier ones and a constant."""
    kept = []
    basis = np.full((len(x), 1), 1 / math.sqrt(len(x)))
    for k in range(x.shape[1]):
        rest = x[:, k] - basis @ (basis.T @ x[:, k])
        rest -= basis @ (basis.T @ rest)
        size = float(np.linalg.norm(rest))
        if size > DEPENDENT * float(np.linalg.norm(x[:, k])):
            kept.append(k)
            basis = np.column_stack([basis, rest / size])
    return kept


def posterior_of(
    study: Study, x: np.ndarray, y: np.ndarray, holders: int, rng: np.random.Generator
) -> Posterior:
    """Fit what holders of equal parts of these rows would release."""
    order = rng.permutation(len(y))
    table = np.column_stack([x, y])[order]
    releases = releases_of(study, np.array_split(table, holders), rng)
    return fit(collect(releases, allow_simulated=True))


def releases_of(study: Study, parts: list[np.ndarray], rng: np.random.Generator) -> list[Release]:
    """What holders of these parts would publish, at the last of the study's visits."""
    if study.visit_count > 1 and len(parts) > 1:
        return simulate_visits(study, parts, rng)
    return [simulate(study, part, rng, holder=f"h{k}") for k, part in enumerate(parts)]


def planned_of(population: Population, holders: int) -> list[int]:
    return [population.n // holders] * holders
