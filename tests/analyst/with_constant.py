"""Evidence and priors of a model whose first column is 1 in every row."""

import numpy as np

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.normal_x.frame import Framed
from tacit.analyst.methods.normal_x.gradient import feature_root, gram_factors, point_at
from tacit.analyst.methods.sampling import jnp
from tacit.analyst.prior import Prior


def evidence_of(
    *,
    p: int = 1,
    rows: tuple[int, ...] = (60, 25),
    noise: float = 2.0,
    seed: int = 5,
    mean: float = 0.8,
) -> Evidence:
    """Features with mean ±`mean` and sd near 0.3 behind an intercept; `noise` is the sd of every
    statistic's noise (frobenius).
    """
    rng = np.random.default_rng(seed)
    d, root = p + 1, 0.3 * (np.eye(p) + 0.4 * np.tri(p, k=-1))
    theta, grams, moments = rng.normal(size=d), [], []
    for n in rows:
        x = np.column_stack(
            [np.ones(n), mean * (-1) ** np.arange(p) + rng.normal(size=(n, p)) @ root.T]
        )
        full = rng.normal(size=(d, d))
        grams.append(x.T @ x + noise * (full + full.T) / 2)
        moments.append(x.T @ (x @ theta + 0.5 * rng.normal(size=n)) + noise * rng.normal(size=d))
    sd = np.full(len(rows), noise)
    counts = np.array(rows, dtype=float)
    return Evidence(
        np.array(grams),
        np.array(moments),
        sd,
        sd / np.sqrt(2),
        sd,
        counts,
        intercept=True,
        whole_rows=True,
    )


def prior_of(d: int) -> Prior:
    root = np.eye(d) + 0.3 * np.tri(d, k=-1)
    return Prior(np.linspace(0.5, -1.0, d), 0.7 * root @ root.T, 4.0, 2.0, root.T @ root, d + 3.0)


def parameters_at(position, framed: Framed):
    """log σ², μ, Σ, and the means and scatters of every holder, in the first basis."""
    entries = position[1:].reshape(framed.problem.counts.shape[0] + 1, -1)
    q = framed.frame.rotation
    root, _ = feature_root(entries[0], framed.frame)
    factors, _ = gram_factors(entries[1:], root, framed)
    half, halves = q @ jnp.linalg.inv(root), q @ factors
    grams, counts = halves @ halves.swapaxes(-1, -2), framed.problem.counts[:, None]
    means = grams[:, 1:, 0] / counts
    scatters = grams[:, 1:, 1:] - counts[..., None] * means[:, :, None] * means[:, None, :]
    return (
        jnp.log(point_at(position, framed).noise_variance),
        half[1:, 0],
        half[1:, 1:] @ half[1:, 1:].T,
        means,
        scatters,
    )
