"""AdaSSP, with the pair (X'X, X'y) released jointly.

Source: Wang, "Revisiting differentially private linear regression: optimal and adaptive prediction
and estimation in unbounded domain", UAI 2018, algorithm 2. The paper spends ε/3 on each of X'X,
X'y and λ_min with classical Gaussian noise; here the pair is one vector (S, wz), w = R, with two
thirds of μ² and λ_min has one third, which gives less noise for the same (ε, δ). Constants of the
ridge are the paper's (ρ = 0.05), in units of the noise's standard deviation.

Privacy: replacing a row moves (S, wz) by at most √2(R² + (wY)²/2) in norm [Y = 1, (wY)² ≤ 2R²] and
λ_min by at most R², so two Gaussian mechanisms with noise Δ/μ_i are μ_i-Gaussian DP. Their squares
add up to μ², the largest that is (ε, δ)-DP; all else is post-processing.
"""

import math
from dataclasses import dataclass

import numpy as np

from .holders import Array, Budget, Holders, Line

RHO = 0.05
"""Probability with which the noise of X'X may be larger than its bound in the ridge."""


@dataclass(frozen=True)
class Settings:
    """What AdaSSP leaves open."""

    eigenvalue_share: float = 1 / 3
    """Share of μ² for the smallest eigenvalue."""
    ridge: float = 1.0
    """Factor of the paper's ridge."""
    radius: float = 1.0
    """Longest row, as a share of √d; longer ones are cut."""


FIXED = Settings()
GRID = tuple(
    Settings(eigenvalue_share=share, ridge=ridge, radius=radius)
    for share in (0.1, 1 / 3)
    for ridge in (0.1, 0.3, 1.0)
    for radius in (0.6, 1.0)
)


def pair_sensitivity(radius: float, weighted: float) -> float:
    """Largest move of (X'X, wX'y) when a row is replaced; `weighted` is wY, at most √2R."""
    return math.sqrt(2) * (radius**2 + weighted**2 / 2)


def ridge(
    rng: np.random.Generator, holders: Holders, budget: Budget, mu: float, sd: float
) -> float:
    """The ridge that Wang's algorithm adds, where X'X has noise `sd` of every holder.

    √(d ln(2d²/ρ)) standard deviations, less what λ_min surely has.
    """
    own = holders.longest**2 / mu
    margin = math.sqrt(math.log(6 / budget.delta))
    values = [holders.smallest.sum()] if holders.secure_sum else holders.smallest.tolist()
    released = np.array(values) + rng.normal(0, own, len(values)) - margin * own
    spread = math.sqrt(holders.noises) * sd
    needed = math.sqrt(holders.d * math.log(2 * holders.d**2 / RHO)) * spread
    return max(0.0, needed - float(np.maximum(released, 0).sum()))


def release(
    rng: np.random.Generator, holders: Holders, budget: Budget, share: float
) -> tuple[Array, Array, float]:
    """Noisy X'X and X'y, and the standard deviation of every holder's noise in X'X."""
    weight = holders.longest
    delta = pair_sensitivity(holders.longest, weight)
    sd = delta / (budget.mu * math.sqrt(1 - share))
    gram = holders.gram + holders.symmetric_noise(rng, sd)
    return gram, holders.moment + holders.noise(rng, sd / weight), sd


def fit(rng: np.random.Generator, holders: Holders, budget: Budget, settings: Settings) -> Line:
    """Ridge regression on noisy sums."""
    holders = holders.shortened(settings.radius)
    share = settings.eigenvalue_share
    gram, moment, sd = release(rng, holders, budget, share)
    amount = ridge(rng, holders, budget, math.sqrt(share) * budget.mu, sd)
    theta = np.linalg.solve(gram + settings.ridge * amount * np.eye(holders.d), moment)
    return Line(theta, holders.radius)
