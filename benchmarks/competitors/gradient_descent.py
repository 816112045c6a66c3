"""Gradient descent with clipped gradients and Gaussian noise, on all rows in every step.

Source: Song, Chaudhuri and Sarwate, "Stochastic gradient descent with differentially private
updates", 2013, and Abadi et al., "Deep learning with differential privacy", CCS 2016, without
subsampling, as Brown et al., "Private gradient descent for linear regression: tighter error bounds
and instance-specific uncertainty estimation", ICML 2024, analyse it for least squares. The papers
leave steps, step size and clipping to the user; what is fixed here is the combination of the grid
that was best on average over the league's own tables, which no user could know.

Privacy: a row's gradient is cut to norm C, so that replacing a row moves their sum by at most 2C,
and each of T steps with noise 2C√T/μ is μ/√T-Gaussian DP. Steps choose θ from what was published
before, and T times μ²/T is μ².
"""

import math
from dataclasses import dataclass

import numpy as np

from .holders import Array, Budget, Holders, Line


@dataclass(frozen=True)
class Settings:
    """What the algorithm leaves open."""

    steps: int = 100
    clip: float = 0.1
    """Largest norm of a row's gradient, as a share of √d times half the response's range."""
    rate: float = 1.0
    """Step size, times d over rows."""


FIXED = Settings()
GRID = tuple(
    Settings(steps=steps, clip=clip, rate=rate)
    for steps in (10, 30, 100)
    for clip in (0.05, 0.1, 0.25)
    for rate in (0.5, 1.0, 2.0)
)


def step_sd(budget: Budget, bound: float, steps: int) -> float:
    """Standard deviation of each step's noise, for gradients cut to `bound`."""
    return 2 * bound * math.sqrt(steps) / budget.mu


def clipped(design: Array, y: Array, theta: Array, bound: float) -> Array:
    """Sum of rows' gradients, each cut to norm `bound`."""
    reach = bound / np.linalg.norm(design, axis=1)
    residual = y - design @ theta
    return design.T @ np.clip(residual, -reach, reach)


def fit(rng: np.random.Generator, holders: Holders, budget: Budget, settings: Settings) -> Line:
    """All steps."""
    bound = settings.clip * math.sqrt(holders.d)
    sd = step_sd(budget, bound, settings.steps)
    rate = settings.rate / (holders.d * holders.n)
    theta = np.zeros(holders.d)
    for _ in range(settings.steps):
        pairs = zip(holders.designs, holders.responses, strict=True)
        gradient = np.sum([clipped(x, y, theta, bound) for x, y in pairs], axis=0)
        theta = theta + rate * (gradient + holders.noise(rng, sd))
    return Line(theta)
