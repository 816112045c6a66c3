"""A table of the league: its rows, a split of them, and what a line is worth on those held out."""

import math
import sys
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from public_tables import independent, load

from .holders import Array, Budget, Holders, Line

# The experiments lie outside the package and this folder.
sys.path.insert(0, str(Path(__file__).parents[2]))

from experiments.model.data import FILES, available, prepared

__all__ = ["FILES", "Table", "available", "table_of"]
USUAL_MEAN = 0.3
"""Sd of a mean response about the middle of its range, in half ranges, before anything is told."""
MEANS = 99
"""Draws of a private mean, of which the median is taken."""


@dataclass(frozen=True)
class Table:
    """A table and one of its splits."""

    name: str
    design: Array
    y: Array
    split: int = 0

    @cached_property
    def parts(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows to fit on, and the fifth held out."""
        order = np.random.default_rng([2026, self.split]).permutation(len(self.y))
        cut = len(order) // 5
        return order[cut:], order[:cut]

    def holders(self, setting: str) -> Holders:
        """The rows to fit on, dealt out."""
        count = int(setting.removesuffix("-sum"))
        dealt = np.array_split(self.parts[0], count)
        return Holders(
            designs=tuple(self.design[rows] for rows in dealt),
            responses=tuple(self.y[rows] for rows in dealt),
            secure_sum=setting.endswith("sum"),
        )

    def score(self, line: Line | None) -> float:
        """R² on the rows held out; without a line, of the middle of the range."""
        test = self.parts[1]
        y = self.y[test]
        predicted = np.zeros(len(y)) if line is None else line.predict(self.design[test])
        return 1 - float(np.mean((y - predicted) ** 2) / y.var())

    def mean_alone(self, holders: Holders, budget: Budget) -> float:
        """Median R² of the mean response, which replacing a row moves by 2/n, made private."""
        sd = 2 / budget.mu * math.sqrt(holders.noises) / holders.n
        mean = float(np.mean(self.y[self.parts[0]]))
        means = np.random.default_rng(3).normal(mean, sd, MEANS).clip(-1, 1)
        flat = np.zeros(holders.d)
        scores = []
        for each in means:
            flat[0] = each
            scores.append(self.score(Line(flat)))
        return float(np.median(scores))

    def mean_floor(self, holders: Holders, budget: Budget) -> float:
        """Largest mean R², over means of the usual spread, that a private mean response can have.

        Van Trees' inequality (docs/league.md): replacing a row moves what is published by at most
        e^(μ²) − 1 in χ², so that n rows tell (n/2)²(e^(μ²) − 1) of their mean at most.
        """
        sizes = [holders.n] if holders.secure_sum else [len(y) for y in holders.responses]
        told = sum((n / 2) ** 2 for n in sizes) * math.expm1(budget.mu**2)
        return -1 / (told + USUAL_MEAN**-2) / float(self.y[self.parts[1]].var())

    @cached_property
    def least_squares(self) -> float:
        """R² without privacy."""
        train = self.parts[0]
        theta = np.linalg.lstsq(self.design[train], self.y[train], rcond=None)[0]
        return self.score(Line(theta))


@lru_cache(maxsize=4)
def table_of(folder: Path, name: str) -> Table:
    """A table of DIR/real, or one of the paper's."""
    if name in FILES:
        x, y = prepared(folder, name)
        rows = np.column_stack([x, y])
        low = rows.min(axis=0)
        rows = 2 * (rows - low) / (rows.max(axis=0) - low) - 1
        x = rows[:, :-1]
        x = x[:, independent(x)]
        return Table(name, np.column_stack([np.ones(len(x)), x]), rows[:, -1])
    [path] = [path for path in (folder / "real").iterdir() if path.name.split(".")[0] == name]
    population = load(path)
    return Table(name, population.design, population.y)
