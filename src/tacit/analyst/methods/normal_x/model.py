"""The model behind both samplers of `normal-x`, as arrays, and what they compute of it alike.

Numbers (X1), (X2), … are those of the equations in docs/methods.md, "normal-x".
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.linear import draw_normal, lower_factor, solve
from tacit.analyst.methods.sampling import double_precision, jax, jnp
from tacit.analyst.prior import Prior
from tacit.errors import MethodError

VANISHING = 1e-6
"""Noise sd that stands for none, per unit of a holder's average diagonal entry."""


SURE = 100.0
"""κ − d − 1 where releases tell the spread of every feature: with more, intervals of slopes are too
narrow, with less too wide (benchmarks/feature_scale.py)."""
UNSURE = 1.0
"""The same where noise hides one."""


class Problem(NamedTuple):
    """Evidence and prior; J holders first."""

    grams: jax.Array  # (J, d, d): Ŝ_j
    moments: jax.Array  # (J, d): ẑ_j
    gram_sds: jax.Array  # (J, d, d): g_j on the diagonal, o_j off it
    moment_variances: jax.Array  # (J,): τ_j²
    counts: jax.Array  # (J,): n_j
    precision: jax.Array  # (d, d): C⁻¹
    shift: jax.Array  # (d,): C⁻¹m
    shape: jax.Array  # a
    rate: jax.Array  # b
    feature_scale: jax.Array  # (d, d): Λ
    feature_degrees: jax.Array  # κ


def problem_of(evidence: Evidence, prior: Prior) -> Problem:
    """The evidence with a prior; a constant column's entry of Ŝ_j becomes n_j.

    Exact evidence gets a noise so small (`VANISHING`) that it stands for none.
    """
    counts = whole_counts(evidence)
    grams = evidence.grams.copy()
    if evidence.constant:
        grams[:, 0, 0] = counts
    size = np.trace(evidence.grams, axis1=1, axis2=2) / evidence.d
    least = VANISHING * np.maximum(size, 1e-6)
    diagonal = np.maximum(evidence.gram_sd, least)[:, None, None]
    off_diagonal = np.maximum(evidence.off_diagonal_sd, least)[:, None, None]
    precision = np.linalg.inv(prior.covariance)
    feature_scale, feature_degrees = feature_law(evidence, prior)
    with double_precision():
        return Problem(
            grams=jnp.asarray(grams),
            moments=jnp.asarray(evidence.moments),
            gram_sds=jnp.where(np.eye(evidence.d, dtype=bool), diagonal, off_diagonal),
            moment_variances=jnp.asarray(np.maximum(evidence.moment_sd, least) ** 2),
            counts=jnp.asarray(counts),
            precision=jnp.asarray(precision),
            shift=jnp.asarray(precision @ prior.mean),
            shape=jnp.asarray(prior.shape),
            rate=jnp.asarray(prior.rate),
            feature_scale=jnp.asarray(feature_scale),
            feature_degrees=jnp.asarray(feature_degrees),
        )


def feature_law(evidence: Evidence, prior: Prior) -> tuple[NDArray[np.float64], float]:
    r"""Λ and κ: the prior's own, or with the mean of Σ as the releases tell it.

    That has the features' noisy means (behind an intercept) and mean squares, no correlation beyond
    their means', and no variance below its noise sd g. The smallest sum of squares of a feature
    over g says how sure it is, as $\kappa - d - 1$ from `UNSURE` at 1 to `SURE` at 2.
    """
    if not prior.released_features:
        return prior.feature_scale, prior.feature_degrees
    count = whole_counts(evidence).sum()
    noise = max(float(np.linalg.norm(evidence.gram_sd)), VANISHING * count)
    total = evidence.grams.sum(axis=0)
    first = int(evidence.intercept)
    means = np.zeros(evidence.d)
    if first:
        means = total[0] / max(total[0, 0], noise)
    squares = (np.diagonal(total) - means**2 * total[0, 0])[first:]
    sureness = float(np.clip(squares.min(initial=2 * noise) / noise - 1, 0.0, 1.0))
    weight = UNSURE + sureness * (SURE - UNSURE)
    law = np.diag(np.append(np.zeros(first), np.maximum(squares, noise)))
    if first:
        means[0] = 1.0
        law += max(total[0, 0], noise) * np.outer(means, means)
    return weight * law / count, evidence.d + 1 + weight


def whole_counts(evidence: Evidence) -> NDArray[np.float64]:
    """n_j as whole numbers.

    Those published with noise are taken as the nearest at which a Wishart law has a density, d or
    more.
    """
    if evidence.counts is None:
        raise MethodError(
            "normal-x needs the number of rows of every holder: "
            "publish counts, or choose fixed-s, which does without"
        )
    noisy = np.zeros(evidence.holders) if evidence.count_sd is None else evidence.count_sd
    if np.any((evidence.counts < evidence.d) & (noisy == 0)):
        raise MethodError(
            f"normal-x needs {evidence.d} rows or more, one per column, from every holder: "
            "leave small ones out, or choose fixed-s"
        )
    return np.maximum(np.round(evidence.counts), evidence.d)


def positive_factor(grams: jax.Array, least: jax.Array, *, constant: bool) -> jax.Array:
    """Cholesky factors of matrices whose eigenvalues are raised to `least`, (J, 1).

    With a constant column, whose entry is known, those of the Schur complement are raised.
    """
    if constant:
        first = grams[..., :1] / jnp.sqrt(grams[:, :1, :1])
        if grams.shape[-1] == 1:
            return first
        complement = (grams - first @ first.swapaxes(-1, -2))[:, 1:, 1:]
        rest = positive_factor(complement, least, constant=False)
        return jnp.concatenate([first, jnp.pad(rest, ((0, 0), (1, 0), (0, 0)))], -1)
    values, vectors = jnp.linalg.eigh(grams)
    raised = vectors * jnp.maximum(values, least)[:, None, :]
    factor: jax.Array = jnp.linalg.cholesky(raised @ vectors.swapaxes(-1, -2))
    return factor


def covariance_factor(matrix: jax.Array, noise_variance: jax.Array, problem: Problem) -> jax.Array:
    r"""K_j, Cholesky factors of $\sigma^2S_j + \tau_j^2I$."""
    noise = problem.moment_variances[:, None, None] * jnp.eye(matrix.shape[-1])
    return lower_factor(noise_variance * matrix + noise)


class Whitened(NamedTuple):
    r"""Regression of moments with noise of unit variance: $K_j^{-1}S_j$ and $K_j^{-1}\hat z_j$."""

    design: jax.Array  # (J, d, d)
    response: jax.Array  # (J, d)


def whitened(matrix: jax.Array, factor: jax.Array, problem: Problem) -> Whitened:
    """The regression at Gram matrices S_j with covariance factors K_j."""
    both = solve(factor, jnp.concatenate([matrix, problem.moments[..., None]], -1))
    return Whitened(design=both[..., :-1], response=both[..., -1])


def theta_law(regression: Whitened, problem: Problem) -> tuple[jax.Array, jax.Array]:
    r"""P and h of $\theta \mid S, \sigma^2 \sim N(P^{-1}h, P^{-1})$, (X4)."""
    d = problem.shift.shape[0]
    design = regression.design.reshape(-1, d)
    shift = problem.shift + regression.response.ravel() @ design
    return problem.precision + design.T @ design, shift


def draw_theta(standard: jax.Array, regression: Whitened, problem: Problem) -> jax.Array:
    """Draw θ given S and σ², (X4)."""
    precision, shift = theta_law(regression, problem)
    return draw_normal(standard, precision, shift)
