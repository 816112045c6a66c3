r"""Coordinates in which the posterior of `normal-x` is nearly N(0, I).

A frame is a smooth bijection between coordinates and (Σ, S_1..J), chosen from the evidence once: it
decides how fast a chain mixes, and nothing else. Numbers (X8), (X9), … are those of the equations
in docs/methods.md, "normal-x".
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.methods.normal_x.model import Problem, positive_factor
from tacit.analyst.methods.sampling import double_precision, jax, jnp

Array = NDArray[np.float64]

WIDEST = 25.0
"""Half the width of the first grid of log δ_k."""
GRID = np.linspace(-1.0, 1.0, 1001)
"""Its shape."""


class Frame(NamedTuple):
    """Coordinates: a rotation, and Σ and the S_j as the evidence will about show them."""

    rotation: jax.Array  # (d, d): columns are the new axes
    degrees: jax.Array  # (d,): ν_k
    scale: jax.Array  # (d,): λ_k
    log_centre: jax.Array  # (d,): pilot mean of log δ_k
    log_spread: jax.Array  # (d,): and its sd
    axes: jax.Array  # (d, d, d): V_k, k first, padded with 0
    centre: jax.Array  # (d, d): c_k
    information: jax.Array  # (d, d): ι_ki; 0 on and above the diagonal
    estimate: jax.Array  # (d, d): e_ki, where the evidence puts γ_ki
    factors: jax.Array  # (J, d, d): F̃_j
    weight: jax.Array  # (J, d, d): w_j
    spread: jax.Array  # (J, d, d): r_j


class Framed(NamedTuple):
    """A problem in a frame."""

    problem: Problem  # rotated, except for the sds
    frame: Frame


class Pilot(NamedTuple):
    """What pooled releases say of Σ, in the rotated basis.

    About diag(δ), with a mean that is 0 unless there is a constant column.
    """

    delta: Array  # (d,)
    mean: Array  # (d,): μ̂, after the constant column, whose own place holds 0
    inflation: Array  # (d, d): noise variance of a covariance matrix's entry over that of Ŝ_j's


class Regressions(NamedTuple):
    """The chain of regressions (X10), for every k."""

    axes: Array  # V_k
    centre: Array  # c_k
    information: Array  # ι_k
    estimate: Array  # e_k


class GramCoordinates(NamedTuple):
    """Where the coordinates of S_j lie, and how wide (X11)."""

    factors: Array  # F̃_j
    weight: Array  # w_j
    spread: Array  # r_j


def in_frame(problem: Problem, *, constant: bool = False) -> Framed:
    """Choose the frame of a problem, whose first column may be a constant 1."""
    with double_precision():
        rotation, pilot = first_look(problem, constant=constant)
        problem = rotated(problem, jnp.asarray(rotation))
        d = len(rotation)
        degrees = float(problem.feature_degrees) - d + 1 + np.arange(d, dtype=np.float64)
        root = np.linalg.cholesky(np.asarray(problem.feature_scale))
        scale: Array = np.diagonal(root) ** 2
        log_centre, log_spread = pilot_variances(pilot, degrees, scale, problem)
        log_centre[: int(constant)] = 0.0
        pilot = pilot._replace(delta=np.exp(log_centre))
        chain = regressions(pilot, problem)
        grams = gram_coordinates(pilot, problem, constant=constant)
        frame = Frame(
            rotation=jnp.asarray(rotation),
            degrees=jnp.asarray(degrees),
            scale=jnp.asarray(scale),
            log_centre=jnp.asarray(log_centre),
            log_spread=jnp.asarray(log_spread),
            axes=jnp.asarray(chain.axes),
            centre=jnp.asarray(chain.centre),
            information=jnp.asarray(chain.information),
            estimate=jnp.asarray(chain.estimate),
            factors=jnp.asarray(grams.factors),
            weight=jnp.asarray(grams.weight),
            spread=jnp.asarray(grams.spread),
        )
        return Framed(problem=problem, frame=frame)


def first_look(problem: Problem, *, constant: bool) -> tuple[Array, Pilot]:
    """The rotation into the pooled eigenbasis, largest eigenvalue first, and a pilot of Σ there.

    A constant column stays the first axis; the rest is rotated into the eigenbasis of the pooled
    covariance matrix.
    """
    matrix, noise = pooled(problem)
    first = int(constant)
    mean = matrix[first:, 0] * first
    values, vectors = np.linalg.eigh(matrix[first:, first:] - np.outer(mean, mean))
    rotation: Array = np.eye(len(matrix))
    rotation[first:, first:] = vectors[:, ::-1]
    turned = mean @ vectors[:, ::-1]
    pilot = Pilot(
        delta=np.concatenate([np.ones(first), without_noise(values[::-1], noise)]),
        mean=np.concatenate([np.zeros(first), turned]),
        inflation=inflation_of(turned, first),
    )
    return rotation, pilot


def inflation_of(mean: Array, first: int) -> Array:
    r"""Variance of the noise in $\hat S_{ik}/n - \hat\mu_i\hat\mu_k$ over that in $\hat S_{ik}/n$.

    It is $1 + \mu_i^2 + \mu_k^2$, behind a constant column.
    """
    inflation = np.ones((first + len(mean),) * 2)
    inflation[first:, first:] += mean[:, None] ** 2 + mean**2
    return inflation


def pooled(problem: Problem) -> tuple[Array, float]:
    r"""Pilot of Σ, and the sd of its noise off the diagonal.

    The mean of $\hat S_j/n_j$ weighted by $1/(g_j^2/n_j^2 + t_j^2/n_j)$, t_j being the average
    diagonal entry of $\hat S_j/n_j$.
    """
    counts = np.asarray(problem.counts)
    sds = np.asarray(problem.gram_sds)
    means = np.asarray(problem.grams) / counts[:, None, None]
    size = np.maximum(np.trace(means, axis1=1, axis2=2) / means.shape[-1], 0.0)
    weights = 1 / (sds[:, 0, 0] ** 2 / counts**2 + size**2 / counts)
    weights /= weights.sum()
    return np.tensordot(weights, means, 1), float(np.linalg.norm(weights * sds[:, 0, -1] / counts))


def without_noise(values: Array, sd: float) -> Array:
    """Eigenvalues before noise of that sd raised them to e = λ + sd²d/λ.

    0 below the edge of Wigner's semicircle, 2 sd √d: there an eigenvalue says nothing of λ
    (Capitaine, Donati-Martin and Féral 2009).
    """
    gap = values**2 - 4 * sd**2 * len(values)
    return np.where((values > 0) & (gap > 0), (values + np.sqrt(np.maximum(gap, 0.0))) / 2, 0.0)


def rotated(problem: Problem, q: jax.Array) -> Problem:
    """The problem for Q'x in place of x; sds stay those of the entries before."""
    return problem._replace(
        grams=q.T @ problem.grams @ q,
        moments=problem.moments @ q,
        precision=q.T @ problem.precision @ q,
        shift=problem.shift @ q,
        feature_scale=q.T @ problem.feature_scale @ q,
    )


def precision_of_features(
    pairs: Array, inflation: Array, sds: jax.Array, problem: Problem
) -> Array:
    r"""Precision of evidence about an entry of Σ: $\sum_jn_j^2/(f\,\text{sd}_j^2 + n_jv)$.

    f is the `inflation`, and v = `pairs` the variance of a row's share.
    """
    counts = np.asarray(problem.counts)[:, None, None]
    noise = inflation * np.asarray(sds)[:, None, None] ** 2
    precision: Array = np.sum(counts**2 / (noise + counts * pairs), 0)
    return precision


def pilot_variances(
    pilot: Pilot, degrees: Array, scale: Array, problem: Problem
) -> tuple[Array, Array]:
    r"""Mean and sd of log δ_k under its prior (X9) and an eigenvalue of the pooled matrix.

    The latter is $N(\delta_k, 1/\text{precision})$. On a grid that closes in on the mass in three
    rounds; no sd is below that from exact Gram matrices.
    """
    values = pilot.delta[:, None]
    inflation = np.diagonal(pilot.inflation)[:, None]
    mean = np.log(scale / degrees)
    width = np.full(len(scale), WIDEST)
    for _ in range(3):
        logs = mean[:, None] + width[:, None] * GRID
        delta = np.exp(logs)
        sds = problem.gram_sds[:, 0, 0]
        precision = precision_of_features(2 * delta**2, inflation, sds, problem)
        evidence = np.log(precision) - precision * (delta - values) ** 2
        log_density = evidence - degrees[:, None] * logs - scale[:, None] / delta
        mass = np.exp((log_density - log_density.max(1, keepdims=True)) / 2)
        mass /= mass.sum(1, keepdims=True)
        mean = np.sum(mass * logs, 1)
        sd = np.sqrt(np.sum(mass * (logs - mean[:, None]) ** 2, 1))
        width = np.maximum(6 * sd, 2 * width * (GRID[1] - GRID[0]))
    least = np.sqrt(2 / (degrees + float(problem.counts.sum())))
    return mean, np.maximum(sd, least)


def regressions(pilot: Pilot, problem: Problem) -> Regressions:
    """V_k, c_k, ι_k and e_k of (X10)."""
    delta = pilot.delta
    scale = np.asarray(problem.feature_scale)
    d = len(delta)
    sds = problem.gram_sds[:, 0, -1]
    shares = precision_of_features(np.outer(delta, delta), pilot.inflation, sds, problem)
    precision = delta**2 * shares
    chain = Regressions(
        axes=np.zeros((d, d, d)),
        centre=np.zeros((d, d)),
        information=np.zeros((d, d)),
        estimate=np.zeros((d, d)),
    )
    for k in range(1, d):
        root = np.linalg.cholesky(scale[:k, :k])
        inverse = np.linalg.inv(root)
        moved = np.eye(k)
        moved[0, 1:] = pilot.mean[1:k]
        seen = moved @ inverse.T
        values, vectors = np.linalg.eigh((seen.T * precision[k, :k]) @ seen)
        chain.axes[k, :k, :k] = inverse.T @ vectors
        chain.centre[k, :k] = vectors.T @ inverse @ scale[:k, k]
        chain.information[k, :k] = np.maximum(values, 0.0)
        chain.estimate[k, :k] = vectors.T @ root[0] * pilot.mean[k]
    return chain


def gram_coordinates(pilot: Pilot, problem: Problem, *, constant: bool) -> GramCoordinates:
    """F̃_j, w_j and r_j of (X11); a known T_11 has w = 1."""
    delta = pilot.delta
    diagonal = np.eye(len(delta), dtype=bool)
    counts = np.asarray(problem.counts)[:, None, None]
    factors = positive_factor(problem.grams, problem.gram_sds[:, 0, :1], constant=constant)
    signal = counts * np.outer(delta, delta) * (1 + diagonal)
    noise = pilot.inflation * np.asarray(problem.gram_sds) ** 2
    noise[:, 0, 0] *= not constant
    variance = np.where(diagonal, 0.5 / (counts - np.arange(len(delta))), 1.0)
    return GramCoordinates(
        factors=np.asarray(factors),
        weight=np.tril(signal / (signal + noise)),
        spread=np.sqrt(variance * noise / (signal + noise)),
    )
