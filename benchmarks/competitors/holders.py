"""What every method of the league is given, and what it gives back.

J holders with rows (1, x), |x_k| ≤ 1, and |y| ≤ 1: public ranges, mapped. Neighbours replace one
row of one holder (`replace-one`), so that numbers of rows are public. A row is at most R = √d long:

    ‖xx' − vv'‖_F ≤ √2 R²,    ‖xr − vs‖ ≤ 2RC for |r|, |s| ≤ C,    |λ_min(S) − λ_min(S')| ≤ R².

Holders either publish each for itself, and the noise of all meets in a sum, or add up securely, and
the sum has the noise of one.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.gaussian import mu_of

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Budget:
    """(ε, δ) of every holder, for replacing one row."""

    epsilon: float
    delta: float

    @property
    def mu(self) -> float:
        """The same promise as μ of Gaussian mechanisms, whose squares add up."""
        return mu_of(self.epsilon, self.delta)


@dataclass(frozen=True)
class Holders:
    """Rows of all holders: designs with a first column of ones, and responses."""

    designs: tuple[Array, ...]
    responses: tuple[Array, ...]
    secure_sum: bool = False
    radius: float = math.inf
    """Rows longer than this were shortened, their responses were not."""

    @property
    def d(self) -> int:
        """Number of coefficients."""
        return self.designs[0].shape[1]

    @property
    def n(self) -> int:
        """Number of rows of all holders."""
        return sum(len(y) for y in self.responses)

    @property
    def longest(self) -> float:
        """How long a row can be, by its ranges or because it was shortened."""
        return min(math.sqrt(self.d), self.radius)

    @property
    def noises(self) -> int:
        """How many holders' noises meet in a sum over holders."""
        return 1 if self.secure_sum else len(self.designs)

    @cached_property
    def gram(self) -> Array:
        """X'X over all holders."""
        return np.sum([x.T @ x for x in self.designs], axis=0)

    @cached_property
    def moment(self) -> Array:
        """X'y over all holders."""
        pairs = zip(self.designs, self.responses, strict=True)
        return np.sum([x.T @ y for x, y in pairs], axis=0)

    @cached_property
    def smallest(self) -> Array:
        """Smallest eigenvalue of every holder's X'X; their sum is no larger than the sum's."""
        return np.array([np.linalg.eigvalsh(x.T @ x)[0] for x in self.designs])

    def shortened(self, share: float) -> "Holders":
        """Rows longer than a share of √d cut to that length, as the papers clip features."""
        if share >= 1:
            return self
        radius = share * math.sqrt(self.d)
        return replace(self, designs=tuple(cut(x, radius) for x in self.designs), radius=radius)

    def noise(self, rng: np.random.Generator, sd: float) -> Array:
        """Noise of a vector summed over holders, each of whom adds `sd`."""
        return rng.normal(0, sd * math.sqrt(self.noises), self.d)

    def symmetric_noise(self, rng: np.random.Generator, sd: float) -> Array:
        """The same for a symmetric matrix whose sensitivity is a Frobenius norm.

        Entries beside the diagonal count twice in that norm and so have half the variance.
        """
        square = rng.normal(0, sd * math.sqrt(self.noises), (self.d, self.d))
        return (square + square.T) / 2

    def residual_sum(self, theta: Array, bound: float) -> Array:
        """Σ x·clip(y − x'θ, ±bound) over all holders."""
        pairs = zip(self.designs, self.responses, strict=True)
        return np.sum([x.T @ np.clip(y - x @ theta, -bound, bound) for x, y in pairs], axis=0)


@dataclass(frozen=True)
class Line:
    """A fitted line, and the length to which it cuts rows before predicting."""

    theta: Array
    radius: float = math.inf

    def predict(self, design: Array) -> Array:
        """The response expected of every row."""
        return cut(design, self.radius) @ self.theta


def cut(design: Array, radius: float) -> Array:
    """Rows, those longer than `radius` cut to it."""
    if math.isinf(radius):
        return design
    lengths = np.linalg.norm(design, axis=1, keepdims=True)
    return design * np.minimum(1.0, radius / lengths)
