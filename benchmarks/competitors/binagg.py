"""BinAgg: regression on noisy sums over the boxes of a private tree.

Source: Lin, Slavković and Bhoomireddy, "Differentially private linear regression and synthetic data
generation with statistical guarantees", AISTATS 2026 (arXiv:2510.16974), algorithms 1 and 2, with
PrivTree (Zhang, Xiao and Xie, SIGMOD 2016). Abstract, secondary descriptions and parameters of the
authors' package were consulted: μ in ratios 1 : 3 : 3 : 3 for tree, counts, Σx and Σy, boxes whose
noisy count is below 2 left out, weights one over noisy count, and what noise adds to Σ w ss'
subtracted. Here the count is a column of its own, for an intercept; noise is scaled to the whole
vector of a box's sums, not to each coordinate, and the correction is subtracted in full.
Holders who publish apart have trees of their own; there is no form for a sum.

Privacy: PrivTree at ε/2 for adding or removing a row is ε-DP for replacing one, which is μ-Gaussian
DP with μ = 2Φ⁻¹(e^ε/(1 + e^ε)). Given the tree, replacing a row moves counts by √2, Σy by 2 and Σx,
in units of each box's own reach, by the larger of √(2p) and a box's width; squares of μ add up.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from .holders import Array, Budget, Holders, Line


@dataclass(frozen=True)
class Settings:
    """What the algorithm leaves open."""

    ratios: tuple[float, float, float, float] = (1.0, 3.0, 3.0, 3.0)
    """Of μ, for tree, counts, sums of features, sums of responses."""
    threshold: float = 0.0
    """PrivTree splits boxes whose noisy score is above this."""


FIXED = Settings()
GRID = tuple(
    Settings(ratios=ratios, threshold=threshold)
    for ratios in ((1.0, 3.0, 3.0, 3.0), (1.0, 1.0, 1.0, 1.0), (1.0, 2.0, 5.0, 3.0))
    for threshold in (0.0, 100.0, 1000.0)
)
LEAST_COUNT = 2.0


@dataclass(frozen=True)
class Box:
    """A box of the tree and the rows in it."""

    low: Array
    high: Array
    rows: NDArray[np.intp]
    depth: int

    def halves(self, x: Array) -> "list[Box]":
        """The box cut across its widest side."""
        k = int(np.argmax(self.high - self.low))
        middle = (self.low[k] + self.high[k]) / 2
        below = x[self.rows, k] < middle
        inner = self.high.copy()
        inner[k] = middle
        outer = self.low.copy()
        outer[k] = middle
        return [
            Box(self.low, inner, self.rows[below], self.depth + 1),
            Box(outer, self.high, self.rows[~below], self.depth + 1),
        ]


def pure_epsilon(mu: float) -> float:
    """ε of pure differential privacy that is μ-Gaussian DP."""
    return float(log_ndtr(mu / 2) - log_ndtr(-mu / 2))


def tree(rng: np.random.Generator, x: Array, epsilon: float, threshold: float) -> list[Box]:
    """Leaves of PrivTree over [−1, 1]^p, ε-DP for replacing a row; at least p + 2 of them."""
    p = x.shape[1]
    scale = 3 / (epsilon / 2)
    decay = scale * math.log(2)
    waiting = [Box(-np.ones(p), np.ones(p), np.arange(len(x)), 0)]
    leaves = []
    while waiting:
        box = waiting.pop()
        score = max(len(box.rows) - decay * box.depth, threshold - decay)
        if score + rng.laplace(0, scale) > threshold:
            waiting += box.halves(x)
        else:
            leaves.append(box)
    while len(leaves) < p + 2:
        leaves.sort(key=lambda box: float(np.log(box.high - box.low).sum()))
        leaves += leaves.pop().halves(x)
    return leaves


def reach(boxes: list[Box]) -> Array:
    """How far from 0 each box goes in each feature, (K, p)."""
    low = np.array([box.low for box in boxes])
    high = np.array([box.high for box in boxes])
    return np.maximum(np.abs(low), np.abs(high))


def sum_sensitivity(boxes: list[Box]) -> float:
    """Largest move of all boxes' Σx, in units of `reach`, when a row is replaced."""
    widths = np.array([box.high - box.low for box in boxes]) / reach(boxes)
    return math.sqrt(max(2.0 * widths.shape[1], float((widths**2).sum(axis=1).max())))


def equations(
    rng: np.random.Generator, design: Array, y: Array, mu: float, settings: Settings
) -> tuple[Array, Array]:
    """One holder's corrected Σ w uu' and Σ w ut, u = (count, Σx), t = Σy of a box."""
    x = design[:, 1:]
    ratios = np.array(settings.ratios)
    mu_tree, mu_count, mu_x, mu_y = mu * ratios / np.linalg.norm(ratios)
    boxes = tree(rng, x, pure_epsilon(mu_tree), settings.threshold)
    exact = np.array([[len(box.rows), *x[box.rows].sum(axis=0)] for box in boxes])
    sds = np.column_stack(
        [
            np.full(len(boxes), math.sqrt(2) / mu_count),
            reach(boxes) * sum_sensitivity(boxes) / mu_x,
        ]
    )
    sums = exact + sds * rng.standard_normal(exact.shape)
    responses = np.array([y[box.rows].sum() for box in boxes])
    responses = responses + rng.normal(0, 2 / mu_y, len(boxes))
    kept = sums[:, 0] >= LEAST_COUNT
    weights = 1 / sums[kept, 0]
    weighted = sums[kept] * weights[:, None]
    correction = np.diag((sds[kept] ** 2 * weights[:, None]).sum(axis=0))
    return weighted.T @ sums[kept] - correction, weighted.T @ responses[kept]


def fit(rng: np.random.Generator, holders: Holders, budget: Budget, settings: Settings) -> Line:
    """The corrected estimate from all holders' boxes."""
    pairs = zip(holders.designs, holders.responses, strict=True)
    published = [equations(rng, x, y, budget.mu, settings) for x, y in pairs]
    gram = np.sum([gram for gram, _ in published], axis=0)
    moment = np.sum([moment for _, moment in published], axis=0)
    return Line(np.linalg.lstsq(gram, moment, rcond=None)[0])
