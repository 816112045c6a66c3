r"""Coordinates in which the posterior of `normal-x` is nearly N(0, I).

A frame is a smooth bijection between coordinates and (Σ, S_1..J), chosen from the evidence once: it decides how fast a chain mixes, and
nothing else. Everything is first rotated into the eigenbasis of the pooled Gram matrix, largest eigenvalue first; a constant column stays
the first axis, and the rest is rotated into the eigenbasis of the pooled covariance matrix. Then

- Σ is a chain of regressions, column k on those before it: $\Sigma = AA'$, $A^{-1} = D^{-1/2}(I - B)$, where B is strictly lower
  triangular with rows β_k, and D = diag(δ). The prior IW(Λ, κ) says $\delta_k \sim IG(\nu_k/2, \lambda_k/2)$ and
  $\beta_k\mid\delta_k \sim N(b_k, \delta_k\Lambda_{<k}^{-1})$; the evidence says about $\beta_{ki} = 0 \pm p_{ki}^{-1/2}$ or, of a
  constant column i = 1, $\mu_k = \beta_{k1} + \sum_{1<i<k}\beta_{ki}\mu_i = \hat\mu_k \pm p_{k1}^{-1/2}$. Coordinates of
  β_k standardise the product of the two at the present δ_k: they are those of the prior where noise swamps the data, those of the data
  where it does not, and there is no funnel between.
- $S_j = F_jF_j'$, $F_j = AT_j$, T_j lower triangular, $T_{ii}^2 \sim \chi^2(n_j - i + 1)$, $T_{ik} \sim N(0, 1)$ (Bartlett 1933). With
  $\tilde F_j$ the Cholesky factor of $\hat S_j$ made positive definite, the coordinates are $(T_j - w_j\circ A^{-1}\tilde F_j)/r_j$, with
  logarithms on the diagonal. w = 0 is non-centred and w = 1 centred; w = signal / (signal + noise) here, entry by entry
  (Papaspiliopoulos, Roberts and Sköld 2007).

With a constant column δ_1 = 1 and $T_{11} = \sqrt{n_j}$ are known and have no coordinate: 0 stands in their place.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.methods.normal_x.metropolis import Problem, positive_factor
from tacit.analyst.methods.sampling import double_precision, jax, jnp

WIDEST, GRID = (
    25.0,
    np.linspace(-1.0, 1.0, 1001),
)  # grid for a pilot of log δ_k: half its width, and its shape

Array = NDArray[np.float64]


class Frame(NamedTuple):
    """Coordinates: a rotation, the prior of Σ as a chain of regressions, and about what the evidence will say."""

    rotation: jax.Array  # (d, d): columns are the new axes
    degrees: jax.Array  # (d,): ν_k
    scale: jax.Array  # (d,): λ_k
    log_centre: jax.Array  # (d,): pilot mean of log δ_k
    log_spread: jax.Array  # (d,): and its sd
    axes: jax.Array  # (d, d, d): V_k, k first, padded with 0: β_k = V_kγ_k, and γ_k | δ_k ~ N(c_k, δ_kI) under the prior
    centre: jax.Array  # (d, d): c_k
    information: jax.Array  # (d, d): ι_ki, of the evidence about γ_ki; 0 on and above the diagonal
    estimate: jax.Array  # (d, d): e_ki, where the evidence puts γ_ki
    factors: jax.Array  # (J, d, d): F̃_j
    weight: jax.Array  # (J, d, d): w_j
    spread: jax.Array  # (J, d, d): r_j


class Framed(NamedTuple):
    """A problem in a frame."""

    problem: Problem  # rotated, except for the sds
    frame: Frame


class Pilot(NamedTuple):
    """What pooled releases say of Σ, in the rotated basis: about diag(δ) with a mean that is 0 unless there is a constant column."""

    delta: Array  # (d,)
    mean: Array  # (d,): μ̂, after the constant column, whose own place holds 0
    inflation: Array  # (d, d): variance of the noise in an entry of a covariance matrix, over that in the entry of Ŝ_j


def in_frame(problem: Problem, *, constant: bool = False) -> Framed:
    """Choose the frame of a problem, whose first column may be a constant 1."""
    with double_precision():
        matrix, noise = pooled(problem)
        first, d = int(constant), len(matrix)
        mean = matrix[first:, 0] * first
        values, vectors = np.linalg.eigh(matrix[first:, first:] - np.outer(mean, mean))
        q: Array = np.eye(d)
        q[first:, first:] = vectors[:, ::-1]
        values = np.concatenate([np.ones(first), without_noise(values[::-1], noise)])
        problem = rotated(problem, jnp.asarray(q))
        degrees: Array = float(problem.feature_degrees) - d + 1 + np.arange(d, dtype=np.float64)
        scale: Array = np.diagonal(np.linalg.cholesky(np.asarray(problem.feature_scale))) ** 2
        pilot = Pilot(values, *centring(mean @ vectors[:, ::-1], first))
        log_centre, log_spread = pilot_variances(pilot, degrees, scale, problem)
        log_centre[:first] = 0.0
        pilot = pilot._replace(delta=np.exp(log_centre))
        grams = gram_coordinates(pilot, problem, constant=constant)
        parts = (q, degrees, scale, log_centre, log_spread, *regressions(pilot, problem), *grams)
        return Framed(problem, Frame(*map(jnp.asarray, parts)))


def centring(mean: Array, first: int) -> tuple[Array, Array]:
    r"""The mean in its place, and inflation of noise in $\hat S_{ik}/n - \hat\mu_i\hat\mu_k$: $1 + \mu_i^2 + \mu_k^2$ in variance."""
    inflation = np.ones((first + len(mean),) * 2)
    inflation[first:, first:] += mean[:, None] ** 2 + mean**2
    return np.concatenate([np.zeros(first), mean]), inflation


def pooled(problem: Problem) -> tuple[Array, float]:
    r"""Pilot of Σ, the mean of $\hat S_j/n_j$ weighted by $1/(g_j^2/n_j^2 + t_j^2/n_j)$, and the sd of its noise off the diagonal.

    t_j is the average diagonal entry of $\hat S_j/n_j$.
    """
    counts, sds = np.asarray(problem.counts), np.asarray(problem.gram_sds)
    means = np.asarray(problem.grams) / counts[:, None, None]
    size = np.maximum(np.trace(means, axis1=1, axis2=2) / means.shape[-1], 0.0)
    weights = 1 / (sds[:, 0, 0] ** 2 / counts**2 + size**2 / counts)
    weights /= weights.sum()
    return np.tensordot(weights, means, 1), float(np.linalg.norm(weights * sds[:, 0, -1] / counts))


def without_noise(values: Array, sd: float) -> Array:
    """Eigenvalues before noise of that sd raised them to e = λ + sd²d/λ; 0 below the edge of Wigner's semicircle, 2 sd √d.

    There an eigenvalue says nothing of λ (Capitaine, Donati-Martin and Féral 2009).
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
    r"""Precision of evidence about an entry of Σ: $\sum_jn_j^2/(f\,\text{sd}_j^2 + n_jv)$, v = `pairs` the variance of a row's share."""
    counts = np.asarray(problem.counts)[:, None, None]
    precision: Array = np.sum(
        counts**2 / (inflation * np.asarray(sds)[:, None, None] ** 2 + counts * pairs), 0
    )
    return precision


def pilot_variances(
    pilot: Pilot, degrees: Array, scale: Array, problem: Problem
) -> tuple[Array, Array]:
    r"""Mean and sd of log δ_k under IG(ν_k/2, λ_k/2) and an eigenvalue of the pooled matrix $\sim N(\delta_k, 1/\text{precision})$.

    On a grid that closes in on the mass in three rounds; no sd is below that from exact Gram matrices.
    """
    values, inflation = pilot.delta[:, None], np.diagonal(pilot.inflation)[:, None]
    mean, width = np.log(scale / degrees), np.full(len(scale), WIDEST)
    least = np.sqrt(2 / (degrees + float(problem.counts.sum())))
    for _ in range(3):
        logs = mean[:, None] + width[:, None] * GRID
        delta = np.exp(logs)
        precision = precision_of_features(
            2 * delta**2, inflation, problem.gram_sds[:, 0, 0], problem
        )
        log_density = (
            np.log(precision)
            - precision * (delta - values) ** 2
            - degrees[:, None] * logs
            - scale[:, None] / delta
        )
        mass = np.exp((log_density - log_density.max(1, keepdims=True)) / 2)
        mass /= mass.sum(1, keepdims=True)
        mean = np.sum(mass * logs, 1)
        sd = np.sqrt(np.sum(mass * (logs - mean[:, None]) ** 2, 1))
        width = np.maximum(6 * sd, 2 * width * (GRID[1] - GRID[0]))
    return mean, np.maximum(sd, least)


def regressions(pilot: Pilot, problem: Problem) -> tuple[Array, Array, Array, Array]:
    r"""V_k, c_k, ι_k and e_k, for every k.

    The evidence says Mβ_k = (μ̂_k, 0, …) with precisions p_k, p_ki = δ_i² times that of the evidence about Σ_ki; M is the identity with
    the μ̂_i, 1 < i < k, in its first row. $\Lambda_{<k} = LL'$,
    $L^{-1}M'\operatorname{diag}(p_k)ML'^{-1} = U\operatorname{diag}(\iota_k)U'$, $V = L'^{-1}U$,
    $c = U'L^{-1}\Lambda_{<k,k}$, $e = U'L'(\hat\mu_k, 0, …)$.
    """
    delta, mean, scale = pilot.delta, pilot.mean, np.asarray(problem.feature_scale)
    d = len(delta)
    precision = delta**2 * precision_of_features(
        np.outer(delta, delta), pilot.inflation, problem.gram_sds[:, 0, -1], problem
    )
    axes, centre, information, estimate = (
        np.zeros((d, d, d)),
        np.zeros((d, d)),
        np.zeros((d, d)),
        np.zeros((d, d)),
    )
    for k in range(1, d):
        root = np.linalg.cholesky(scale[:k, :k])
        inverse = np.linalg.inv(root)
        moved = np.eye(k)
        moved[0, 1:] = mean[1:k]
        seen = moved @ inverse.T
        values, vectors = np.linalg.eigh((seen.T * precision[k, :k]) @ seen)
        axes[k, :k, :k] = inverse.T @ vectors
        centre[k, :k] = vectors.T @ inverse @ scale[:k, k]
        information[k, :k] = np.maximum(values, 0.0)
        estimate[k, :k] = vectors.T @ root[0] * mean[k]
    return axes, centre, information, estimate


def gram_coordinates(
    pilot: Pilot, problem: Problem, *, constant: bool
) -> tuple[Array, Array, Array]:
    r"""F̃_j, w_j and r_j: with $v_{ik} = n_j\delta_i\delta_k(1 + [i = k])$ the variance of an entry of S_j, w = v/(v + sd²).

    r² is 1 − w times the prior variance: 1 below the diagonal, about 1/(2(n_j − i + 1)) for log T_ii. A known T_11 has w = 1.
    """
    delta, diagonal = pilot.delta, np.eye(len(pilot.delta), dtype=bool)
    counts, sds = np.asarray(problem.counts)[:, None, None], np.asarray(problem.gram_sds)
    factors = np.asarray(
        positive_factor(problem.grams, problem.gram_sds[:, 0, :1], constant=constant)
    )
    signal, noise = counts * np.outer(delta, delta) * (1 + diagonal), pilot.inflation * sds**2
    noise[:, 0, 0] *= not constant
    variance = np.where(diagonal, 0.5 / (counts - np.arange(len(delta))), 1.0)
    return factors, np.tril(signal / (signal + noise)), np.sqrt(variance * noise / (signal + noise))
