"""Boosted AdaSSP: one noisy Gram matrix, then many rounds on what is left of the response.

Source: Tang, Aydore, Kearns, Rho, Roth, Wang, Wang and Wu, "Improved differentially private
regression via gradient boosting", 2023, algorithm 2: Γ = X'X + noise + λI once, then T times
θ ← θ + Γ⁻¹(X' clip(y − Xθ, ±τ) + noise), with T = 100 and τ = 1 fixed for all data sets. X'X, λ_min
and all rounds together have a third of μ² each, and λ is AdaSSP's.

Privacy: replacing a row moves X'X by at most √2R² in Frobenius norm, λ_min by R² and each round's
vector, whose residuals are clipped at τ, by 2Rτ. Each is a Gaussian mechanism with noise Δ/μ_i, the
rounds choose θ from what was published before, and the squares of all μ_i add up to μ².
"""

import math
from dataclasses import dataclass

import numpy as np

from .adassp import ridge
from .holders import Budget, Holders, Line


@dataclass(frozen=True)
class Settings:
    """What the algorithm leaves open."""

    rounds: int = 100
    clip: float = 1.0
    """Largest residual, as a share of half the response's range."""
    radius: float = 1.0
    """Longest row, as a share of √d; longer ones are cut."""


FIXED = Settings()
GRID = tuple(
    Settings(rounds=rounds, clip=clip, radius=radius)
    for rounds in (1, 3, 10, 100)
    for clip in (0.25, 0.5, 1.0)
    for radius in (0.6, 1.0)
)


def round_sd(holders: Holders, mu: float, settings: Settings) -> float:
    """Standard deviation of each round's noise where all rounds have `mu` together."""
    return 2 * holders.longest * settings.clip * math.sqrt(settings.rounds) / mu


def fit(rng: np.random.Generator, holders: Holders, budget: Budget, settings: Settings) -> Line:
    """All rounds."""
    holders = holders.shortened(settings.radius)
    third = budget.mu / math.sqrt(3)
    sd = math.sqrt(2) * holders.longest**2 / third
    gram = holders.gram + holders.symmetric_noise(rng, sd)
    gram += ridge(rng, holders, budget, third, sd) * np.eye(holders.d)
    theta = np.zeros(holders.d)
    for _ in range(settings.rounds):
        gradient = holders.residual_sum(theta, settings.clip)
        gradient += holders.noise(rng, round_sd(holders, third, settings))
        theta = theta + np.linalg.solve(gram, gradient)
    return Line(theta, holders.radius)
