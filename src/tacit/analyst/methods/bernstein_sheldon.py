r"""`bernstein-sheldon`: Gibbs sampling of the exact statistics and the parameters, for J holders.

Bernstein and Sheldon (2019). One iteration draws every holder's statistics G_j given the
parameters and its release (`move_statistics`), then Σ, then (θ, σ²). Numbers (B1), (B2), … are
those of the equations in docs/methods.md, "bernstein-sheldon", where its limits stand too.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.linear import solve, solve_vector
from tacit.analyst.methods.method import Draws, Method, Settings
from tacit.analyst.methods.sampling import adapt, double_precision, jax, jnp, random, run
from tacit.analyst.methods.wishart import bartlett, gamma
from tacit.analyst.prior import Prior
from tacit.errors import MethodError, PriorError

Array = NDArray[np.float64]

FLOOR = 1e-10
"""Smallest noise sd, relative to the statistic: far below any posterior's width, so that it stands
for none."""
SAME = 1e-9
"""Variances that differ by less than this fraction are equal."""
LOPSIDED = 1e3
"""c never stretches the response further than this from the features' scale."""
ROUNDING = 1e-16
"""Eigenvalues of Γ below this fraction of the largest are that fraction."""
TARGET = 0.5
"""Acceptance below which moves of the statistics are shortened."""
SPREAD = 3.0
"""Noise sds by which the chains' starts are scattered."""


class Problem(NamedTuple):
    """Releases and prior in units where S and z carry one Frobenius noise; p = d + 1."""

    released: jax.Array  # (J, p, p): Ĝ_j
    counts: jax.Array  # (J,): n_j
    noise: jax.Array  # (J,): s_j²
    square_noise: jax.Array  # (J,): t_j², the variance of the noise on u_j
    mean: jax.Array  # (d,): m
    precision: jax.Array  # (d, d): Λ₀
    shape: jax.Array  # a
    rate: jax.Array  # b
    feature_scale: jax.Array  # (d, d): Λ
    feature_degrees: jax.Array  # κ
    excess: jax.Array | None = None  # (J, p, p): noise variance of entries beyond Frobenius'


class State(NamedTuple):
    """Parameters, statistics and the log of the step h of every holder's move."""

    theta: jax.Array
    noise_variance: jax.Array
    features: jax.Array  # (d, d): Σ
    statistics: jax.Array  # (J, p, p): G_j
    log_step: jax.Array  # (J,)


class Info(NamedTuple):
    """Fraction of the holders whose proposal was positive definite."""

    acceptance: jax.Array


class Conditional(NamedTuple):
    """Gaussian law of G_j in Γ's eigenbasis, (J, p, p) each.

    Its covariance is K(I + τww')⁻¹K with K = diag(scale).
    """

    mean: jax.Array
    scale: jax.Array
    direction: jax.Array  # w
    shrink: jax.Array  # (J, 1, 1): γ, with (I − γww')² = (I + τww')⁻¹

    def deviation(self, standard: jax.Array) -> jax.Array:
        """Turn standard normal matrices into draws around the mean: $K(I - γww')$ times them."""
        along = frobenius(self.direction, standard)
        return self.scale * (standard - self.shrink * along * self.direction)


@dataclass(frozen=True)
class BernsteinSheldon:
    """The kernel."""

    blocks: ClassVar[tuple[str, ...]] = ("statistics",)

    def init(self, key: jax.Array, problem: Problem) -> State:
        """Parameters drawn given a pooled statistic, scattered by noise, lifted into the cone."""
        key_scatter, key_parameters = random.split(key)
        sd = jnp.sqrt(problem.noise.sum())
        scatter = standard_symmetric(key_scatter, 1, problem.released.shape[-1])[0]
        values, vectors = jnp.linalg.eigh(problem.released.sum(0) + SPREAD * sd * scatter)
        pooled = (vectors * jnp.maximum(values, sd + FLOOR * values[-1])) @ vectors.T
        share = problem.counts / problem.counts.sum()
        statistics = share[:, None, None] * pooled
        return draw_parameters(key_parameters, statistics, jnp.zeros_like(share), problem)

    def step(
        self, key: jax.Array, state: State, problem: Problem, gain: jax.Array
    ) -> tuple[State, Info]:
        """The statistics, then the parameters."""
        key_statistics, key_parameters = random.split(key)
        statistics, accepted = move_statistics(key_statistics, state, problem)
        log_step = jnp.minimum(adapt(state.log_step, accepted, TARGET, gain), 0.0)
        state = draw_parameters(key_parameters, statistics, log_step, problem)
        return state, Info(acceptance=accepted.mean(keepdims=True))


def move_statistics(key: jax.Array, state: State, problem: Problem) -> tuple[jax.Array, jax.Array]:
    """The move (B6), kept where positive definite; gives the G_j, and 1 where kept, else 0."""
    key_excess, key_deviation = random.split(key)
    released = problem.released
    if problem.excess is not None:
        released = without_excess(key_excess, state.statistics, problem, problem.excess)
    values, vectors = jnp.linalg.eigh(joint_covariance(state))
    values = jnp.maximum(values, ROUNDING * values[-1])
    law = conditional(values, vectors, vectors.T @ released @ vectors, problem)
    standard = standard_symmetric(key_deviation, *released.shape[:2])
    step = jnp.exp(state.log_step)[:, None, None]
    keep = jnp.sqrt(1 - step**2)
    fresh = (1 - keep) * law.mean + step * law.deviation(standard)
    proposal = keep * state.statistics + vectors @ fresh @ vectors.T
    inside = jnp.isfinite(jnp.linalg.cholesky(proposal)).all((1, 2))
    statistics = jnp.where(inside[:, None, None], proposal, state.statistics)
    return statistics, inside.astype(proposal.dtype)


def conditional(
    values: jax.Array, vectors: jax.Array, released: jax.Array, problem: Problem
) -> Conditional:
    r"""Law of $Q'G_jQ$ given $Q'\hat G_jQ$ and $Γ = Q\,\mathrm{diag}(λ)\,Q'$, (B4) and (B5).

    Before restriction to the cone. F is computed as $⟨a, (s²/(v + s²))\,a⟩ + ⟨w, w⟩/t²$, without
    cancellation, since ⟨a, a⟩ = 1.
    """
    n = problem.counts[:, None, None]
    s2 = problem.noise[:, None, None]
    t2 = problem.square_noise[:, None, None]
    prior_variance = 2 * n * jnp.outer(values, values)
    trust = prior_variance / (prior_variance + s2)
    doubt = s2 / (prior_variance + s2)
    surprise = released - n * jnp.diag(values)
    a = jnp.outer(vectors[-1], vectors[-1])
    scale = jnp.sqrt(trust * s2)
    direction = scale * a
    length = frobenius(direction, direction)
    factor = frobenius(a, doubt * a) + length / t2
    correction = (1 / t2 - 1 / s2) / factor * frobenius(a, doubt * surprise)
    mean = n * jnp.diag(values) + trust * surprise + scale * direction * correction
    return Conditional(
        mean=mean,
        scale=scale,
        direction=direction,
        shrink=(1 - 1 / jnp.sqrt(factor)) / length,
    )


def without_excess(
    key: jax.Array, statistics: jax.Array, problem: Problem, excess: jax.Array
) -> jax.Array:
    r"""Draw Ĝ less its excess noise, given G and Ĝ.

    Entrywise $N(G + (r/(r + e))(\hat G - G),\; re/(r + e))$ for noise r and excess e.
    """
    holders, p = statistics.shape[:2]
    standard = standard_symmetric(key, holders, p)
    noise = problem.noise[:, None, None]
    r = noise * entry_variances(p)
    trust = r / (r + excess)
    centre = statistics + trust * (problem.released - statistics)
    return centre + jnp.sqrt(noise * (1 - trust)) * standard


def draw_parameters(
    key: jax.Array, statistics: jax.Array, log_step: jax.Array, problem: Problem
) -> State:
    """Σ, σ² and θ given the statistics."""
    key_features, key_coefficients = random.split(key)
    total = statistics.sum(0)
    degrees = problem.feature_degrees + problem.counts.sum()
    features = inverse_wishart(key_features, problem.feature_scale + total[:-1, :-1], degrees)
    theta, noise_variance = draw_coefficients(key_coefficients, total, problem)
    return State(
        theta=theta,
        noise_variance=noise_variance,
        features=features,
        statistics=statistics,
        log_step=log_step,
    )


def draw_coefficients(
    key: jax.Array, total: jax.Array, problem: Problem
) -> tuple[jax.Array, jax.Array]:
    """θ and σ² from (B3), whose last form of b_n cancels least."""
    key_variance, key_theta = random.split(key)
    root = jnp.linalg.cholesky(total[:-1, :-1] + problem.precision)
    half = solve_vector(root, total[:-1, -1] + problem.precision @ problem.mean)
    centre = solve_vector(root, half, transpose=True)
    residual = jnp.append(-centre, 1.0)
    shift = centre - problem.mean
    rate = problem.rate + 0.5 * (residual @ total @ residual + shift @ problem.precision @ shift)
    noise_variance = rate / gamma(key_variance, problem.shape + problem.counts.sum() / 2)
    noise = jnp.sqrt(noise_variance) * random.normal(key_theta, centre.shape)
    return solve_vector(root, half + noise, transpose=True), noise_variance


def inverse_wishart(key: jax.Array, scale: jax.Array, degrees: jax.Array) -> jax.Array:
    r"""$IW(Ψ, ν)$: $X'X$ for $X = T^{-1}L'$, with $Ψ = LL'$ and $TT' \sim W(I, ν)$ of Bartlett."""
    factor = bartlett(key, degrees, len(scale))
    root = solve(factor, jnp.linalg.cholesky(scale).T)
    return root.T @ root


def joint_covariance(state: State) -> jax.Array:
    """Γ, the covariance of [x; y]."""
    cross = state.features @ state.theta
    response = state.theta @ cross + state.noise_variance
    return jnp.block([[state.features, cross[:, None]], [cross[None, :], response[None, None]]])


def frobenius(left: jax.Array, right: jax.Array) -> jax.Array:
    """⟨A, B⟩ of the last two axes, which stay."""
    return jnp.sum(left * right, axis=(-2, -1), keepdims=True)


def entry_variances(p: int) -> Array:
    """Of standard Frobenius noise: 1 on the diagonal, ½ off it."""
    return (1 + np.eye(p)) / 2


def standard_symmetric(key: jax.Array, holders: int, p: int) -> jax.Array:
    """Symmetric matrices, standard normal for Frobenius' inner product.

    The loop over holders keeps XLA from fusing the normals into the gather, which would compute
    each of them twice.
    """
    place = np.zeros((p, p), dtype=int)
    place[np.tril_indices(p)] = np.arange(p * (p + 1) // 2)
    entries: jax.Array = jax.lax.map(
        lambda one: random.normal(one, (p * (p + 1) // 2,)), random.split(key, holders)
    )
    return entries[:, np.maximum(place, place.T)] * np.sqrt(entry_variances(p))


def bordered(gram: Array, moment: Array, square: Array) -> Array:
    """The (J, p, p) matrices [[gram, moment], [moment', square]]."""
    above = np.concatenate([gram, moment[:, :, None]], axis=2)
    below = np.concatenate([moment, square[:, None]], axis=1)
    return np.concatenate([above, below[:, None, :]], axis=1)


def problem_of(evidence: Evidence, prior: Prior) -> tuple[Problem, float]:
    """The kernel's problem, whose response is multiplied by c, and c."""
    if evidence.counts is None or evidence.squares is None or evidence.square_sd is None:
        raise MethodError(
            "bernstein-sheldon needs counts and squares; "
            "let the study publish them or choose another method"
        )
    if prior.shape <= 1:
        raise PriorError(
            "shape must exceed 1 for bernstein-sheldon, so that the residual variance has a prior "
            "mean; raise it"
        )
    size = np.abs(evidence.grams).max()
    square_size = np.abs(evidence.squares).max()
    diagonal = np.maximum(evidence.gram_sd, FLOOR * size)
    off_diagonal = np.maximum(np.sqrt(2) * evidence.off_diagonal_sd, FLOOR * size)
    moment = np.maximum(np.sqrt(2) * evidence.moment_sd, FLOOR * np.sqrt(size * square_size))
    square = np.maximum(evidence.square_sd, FLOOR * square_size)
    stretch = np.sqrt(size / square_size) * np.array([1 / LOPSIDED, LOPSIDED])
    c = float(np.clip(np.median(diagonal / moment), *stretch))
    noise, excess = split_noise(diagonal, off_diagonal, c * moment, evidence.d)
    released = bordered(evidence.grams, c * evidence.moments, c**2 * evidence.squares)
    precision = prior.rate / (prior.shape - 1) * np.linalg.inv(prior.covariance)
    with double_precision():
        problem = Problem(
            released=jnp.asarray(released),
            counts=jnp.asarray(np.maximum(evidence.counts, 1.0)),
            noise=jnp.asarray(noise),
            square_noise=jnp.asarray((c**2 * square) ** 2),
            mean=jnp.asarray(c * prior.mean),
            precision=jnp.asarray(precision),
            shape=jnp.asarray(prior.shape),
            rate=jnp.asarray(c**2 * prior.rate),
            feature_scale=jnp.asarray(prior.feature_scale),
            feature_degrees=jnp.asarray(prior.feature_degrees),
            excess=None if excess is None else jnp.asarray(excess),
        )
    return problem, c


def split_noise(
    diagonal: Array, off_diagonal: Array, moment: Array, d: int
) -> tuple[Array, Array | None]:
    """s_j², and the variance that entries have in excess of it, if any.

    s_j is the smallest of the sds in Frobenius' measure, which is √2 times an entry's off the
    diagonal.
    """
    gram = np.where(np.eye(d, dtype=bool), diagonal[:, None, None], off_diagonal[:, None, None])
    moments = np.repeat(moment[:, None], d, axis=1)
    noise = np.minimum(gram.min(axis=(1, 2)), moment) ** 2
    beyond = bordered(gram, moments, np.sqrt(noise)) ** 2 - noise[:, None, None]
    excess = beyond * entry_variances(d + 1)
    return noise, excess if np.any(excess > SAME * noise[:, None, None]) else None


def fit(evidence: Evidence, prior: Prior, settings: Settings) -> Draws:
    """Draws of the posterior of the Gaussian approximation."""
    problem, c = problem_of(evidence, prior)
    draws = run(BernsteinSheldon(), problem, settings)
    return replace(draws, theta=draws.theta / c, noise_variance=draws.noise_variance / c**2)


METHOD = Method(name="bernstein-sheldon", fit=fit, computed=False, needs=("counts", "squares"))
