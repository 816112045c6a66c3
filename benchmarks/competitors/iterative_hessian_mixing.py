"""Iterative Hessian mixing: Newton steps with private sketches of X'X.

Source: Lev, Shenfeld, Srinivasan, Ligett and Wilson, "Near-optimal private linear regression via
iterative Hessian mixing", ICML 2026 (arXiv:2601.07545), and their "Gaussian mixing mechanism",
NeurIPS 2025 (arXiv:2505.24603). Abstracts, parameters and the authors' published program were
consulted (T = 3, k = 6·max(d, ln(4T/ρ)), ρ = δ/10, residuals clipped at the response's bound, noise
of λ_min γ/√k), not the proofs; the accounting below is our own and tighter, and for replace-one.

Every round publishes a sketch, k rows that are N(0, X'X + η²I) given η (drawn as such here, which
has the same law as multiplying X with a Gaussian matrix), and X' clip(y − Xθ, ±C) + noise; and
θ ← θ + H⁻¹g with H the sketch's mean square. η² fills λ_min up to γ, as far as a noisy λ_min tells.

Privacy: rows are scaled to norm 1. With A = X'X + η²I ⪰ γI, replacing a row gives A − uu' + vv',
whose eigenvalues beside A lie within 1 ± 1/γ; N(0, κ) is farther from N(0, 1) the farther κ is from
1 (scale and add noise), so no pair is worse than one eigenvalue at each end, and its privacy loss,
a sum of two χ² of kT degrees, adds to that of the Gaussian mechanisms (λ_min, gradients). δ of the
sum is integrated numerically; A ⪰ γI fails with probability at most δ/10, which is taken off δ.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri
from scipy.stats import chi2

from .holders import Array, Budget, Holders, Line

FAILURE = 0.1
"""Share of δ for a noisy smallest eigenvalue above the true one."""
GRADIENT_SHARE = 0.5
"""Share of μ² for the gradients of all rounds."""
NODES = 100


@dataclass(frozen=True)
class Settings:
    """What the algorithm leaves open."""

    rounds: int = 3
    size: float = 6.0
    """Rows of a sketch, over max(d, ln(4T/ρ))."""
    clip: float = 1.0
    """Largest residual, as a share of half the response's range."""
    radius: float = 1.0
    """Longest row, as a share of √d; longer ones are cut."""


FIXED = Settings()
GRID = tuple(
    Settings(rounds=rounds, size=size, clip=clip, radius=radius)
    for rounds in (1, 3)
    for size in (2.5, 6.0)
    for clip in (0.25, 0.5, 1.0)
    for radius in (0.6, 1.0)
)


def delta_of(epsilon: float, gamma: float, rows: int, mu: float) -> float:
    """δ at ε of `rows` sketched rows with A ⪰ γI and of Gaussian mechanisms of μ together.

    E δ_μ(ε − L) over the sketch's privacy loss L = ½ Σ (ln κ − (1 − 1/κ)χ²), κ = 1 ± 1/γ.
    """
    shift = 1 / gamma
    reach = 9 * math.sqrt(2 * rows) + 60
    low = max(1e-9, rows - reach)
    points, weights = np.polynomial.legendre.leggauss(NODES)
    values = low + (points + 1) / 2 * (rows + reach - low)
    mass = weights * chi2.pdf(values, rows)
    mass /= mass.sum()
    constant = rows * math.log1p(-(shift**2)) / 2
    grown = -values * shift / (1 + shift) / 2
    shrunk = values * shift / (1 - shift) / 2
    left = epsilon - constant - grown[:, None] - shrunk[None, :]
    deltas = ndtr(mu / 2 - left / mu) - np.exp(left + log_ndtr(-mu / 2 - left / mu))
    return float(mass @ deltas @ mass)


@lru_cache(maxsize=512)
def eigenvalue_floor(epsilon: float, delta: float, mu: float, size: int, rounds: int) -> float:
    """Smallest γ, in squared lengths of a row, that keeps (ε, δ) where gradients have `mu`."""

    def spent(gamma: float) -> float:
        together = math.hypot(mu, math.sqrt(size) / gamma)
        return delta_of(epsilon, gamma, size * rounds, together)

    low = 1.0 + 1e-6
    high = 1e6
    while high / low > 1 + 1e-3:
        middle = math.sqrt(low * high)
        if spent(middle) <= (1 - FAILURE) * delta:
            high = middle
        else:
            low = middle
    return high


def sketch_rows(d: int, budget: Budget, settings: Settings) -> int:
    """k."""
    least = math.log(4 * settings.rounds / (budget.delta / 10))
    return math.ceil(settings.size * max(d, least))


def padding(
    rng: np.random.Generator, smallest: float, gamma: float, rows: int, budget: Budget
) -> float:
    """η² that fills a smallest eigenvalue up to γ, as far as a noisy one surely tells."""
    sd = gamma / math.sqrt(rows)
    margin = -float(ndtri(FAILURE * budget.delta))
    known = max(0.0, smallest + sd * (rng.standard_normal() - margin))
    return max(0.0, gamma - known)


def sketch(rng: np.random.Generator, gram: Array, rows: int) -> Array:
    """Mean square of `rows` rows of law N(0, gram)."""
    drawn = rng.standard_normal((rows, len(gram))) @ np.linalg.cholesky(gram).T
    return drawn.T @ drawn / rows


def fit(rng: np.random.Generator, holders: Holders, budget: Budget, settings: Settings) -> Line:
    """All rounds; without a secure sum every holder sketches its own rows."""
    holders = holders.shortened(settings.radius)
    unit = holders.longest**2
    rows = sketch_rows(holders.d, budget, settings)
    mu = math.sqrt(GRADIENT_SHARE) * budget.mu
    gamma = eigenvalue_floor(budget.epsilon, budget.delta, mu, rows, settings.rounds)
    if holders.secure_sum:
        grams = [holders.gram / unit]
        smallest = [holders.smallest.sum() / unit]
    else:
        grams = [x.T @ x / unit for x in holders.designs]
        smallest = (holders.smallest / unit).tolist()
    paddings = [padding(rng, value, gamma, rows, budget) for value in smallest]
    tiny = 1e-9 * np.eye(holders.d)
    filled = [
        gram + eta * np.eye(holders.d) + tiny for gram, eta in zip(grams, paddings, strict=True)
    ]
    sd = 2 * holders.longest * settings.clip * math.sqrt(settings.rounds) / mu
    theta = np.zeros(holders.d)
    for _ in range(settings.rounds):
        hessian = unit * np.sum([sketch(rng, gram, rows) for gram in filled], axis=0)
        gradient = holders.residual_sum(theta, settings.clip) + holders.noise(rng, sd)
        theta = theta + np.linalg.solve(hessian, gradient)
    return Line(theta, holders.radius)
