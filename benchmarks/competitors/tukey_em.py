"""TukeyEM: least squares on many small batches, and a private point deep among the answers.

Source: Amin, Joseph, Ribero and Vassilvitskii, "Easy differentially private linear regression",
ICLR 2023 (arXiv:2208.07353): m models on disjoint batches, the exponential mechanism on approximate
Tukey depth (the least depth over coordinates) restricted to depth t = m/4, after a
propose-test-release check that the restriction is safe; m = 1,000 is the paper's advice. Constants
of the check are derived here, as below. It needs about 1,000·d rows; with fewer, batches have d
rows and there are fewer models. Where the check fails, nothing is released and the line is flat at
the middle of the public range. Holders who publish apart are averaged; there is no form for a sum.

Privacy: replacing a row changes one model and so every depth by at most one; volumes V_i of depth
≥ i then move by one index, and if V_{t−2} e^{−ε₂g/2} / V_{t+g+1} ≤ δ/(1 + e^{ε₂/2}) for some g, the
mechanism is (ε₂, δ) between the data and each neighbour. How many models must change before that
fails has sensitivity one and is tested with Laplace noise at ε₁, which errs with probability δ at
most; ε₁ + ε₂ = ε, and the two failures exclude each other.
"""

import math
from dataclasses import dataclass

import numpy as np

from .holders import Array, Budget, Holders, Line

JITTER = 1e-10
"""Models are moved by this much, so that equal ones do not make a volume vanish."""


@dataclass(frozen=True)
class Settings:
    """What the algorithm leaves open."""

    models: int = 1000


FIXED = Settings()
GRID = tuple(Settings(models=models) for models in (50, 100, 200, 400, 1000))


def models_of(rng: np.random.Generator, design: Array, y: Array, most: int) -> Array:
    """Least squares on disjoint batches of at least d rows, (m, d)."""
    d = design.shape[1]
    count = max(1, min(most, len(y) // d))
    size = len(y) // count
    chosen = rng.permutation(len(y))[: count * size].reshape(count, size)
    inverse = np.linalg.pinv(design[chosen])
    models = np.einsum("mdn,mn->md", inverse, y[chosen])
    return models + rng.uniform(0, JITTER, models.shape)


def log_volumes(ordered: Array) -> Array:
    """ln V_i for i = 1 to m/2 at places 0 to m/2 − 1, from coordinates sorted over models."""
    half = len(ordered) // 2
    widths = ordered[::-1][:half] - ordered[:half]
    return np.log(np.maximum(widths, 1e-300)).sum(axis=1)


def distance(volumes: Array, depth: int, epsilon: float, delta: float) -> int:
    """Largest k for which k changed models leave the mechanism safe, −1 if none is known to."""
    depths = np.arange(1, len(volumes) + 1)
    best = np.maximum.accumulate((volumes + epsilon * depths / 2)[::-1])[::-1]
    limit = math.log(delta) - float(np.logaddexp(0, epsilon / 2))
    largest = -1
    for k in range(min(depth - 2, len(volumes) - depth - 1)):
        inner = best[depth + k] - epsilon * (depth + 1 + k) / 2
        if volumes[depth - 3 - k] - inner > limit:
            break
        largest = k
    return largest


def draw(rng: np.random.Generator, ordered: Array, depth: int, epsilon: float) -> Array:
    """A point of density e^{ε·depth/2} among those of at least `depth`.

    That density is a mixture of uniform laws on nested boxes.
    """
    volumes = log_volumes(ordered)[depth - 1 :]
    depths = np.arange(depth, depth + len(volumes))
    heights = epsilon * depths / 2
    heights[1:] += math.log(-math.expm1(-epsilon / 2))
    keys = volumes + heights + rng.gumbel(size=len(volumes))
    chosen = int(depths[np.argmax(keys)])
    low = ordered[chosen - 1]
    return low + rng.uniform(size=len(low)) * (ordered[len(ordered) - chosen] - low)


def answer(rng: np.random.Generator, models: Array, budget: Budget) -> Array | None:
    """A private model, or none where the check fails."""
    half = budget.epsilon / 2
    depth = len(models) // 4
    if depth < 3:
        return None
    ordered = np.sort(models, axis=0)
    safe = distance(log_volumes(ordered), depth, half, budget.delta)
    if safe + rng.laplace(0, 1 / half) <= math.log(1 / (2 * budget.delta)) / half:
        return None
    return draw(rng, ordered, depth, half)


def fit(
    rng: np.random.Generator, holders: Holders, budget: Budget, settings: Settings
) -> Line | None:
    """The mean of holders' answers, if any holder has one."""
    answers = []
    for design, y in zip(holders.designs, holders.responses, strict=True):
        own = answer(rng, models_of(rng, design, y, settings.models), budget)
        if own is not None:
            answers.append(own)
    return Line(np.mean(answers, axis=0)) if answers else None
