r"""`normal-x` by gradient: the posterior of `normal_x`, by Hamiltonian Monte Carlo in the coordinates of `normal_x_frame`.

θ is integrated out and drawn afterwards; Σ, S_1..J and σ² move together, all holders at once. Trajectories have a fixed mean length
rather than NUTS's: in these coordinates every direction has about the same period, and chains that run together stop together.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.method import Draws, Settings
from tacit.analyst.methods.normal_x.frame import Frame, Framed, in_frame
from tacit.analyst.methods.normal_x.metropolis import (
    Moments,
    Problem,
    covariance_factor,
    draw_theta,
    log_diagonal,
    problem_of,
    solve,
)
from tacit.analyst.methods.sampling import GAIN_DECAY, adapt, jax, jnp, metropolis, random, run
from tacit.analyst.prior import Prior

TARGET = 0.9  # acceptance of a trajectory; at 0.8 chains stick in the tails of σ² and δ, where curvature grows exponentially
TRAJECTORY = 1.57  # mean length of a trajectory: a quarter of the period of N(0, I), after which a coordinate is independent
JITTER = 0.5  # lengths are uniform within this share of the mean, so that no coordinate returns to its start every time
MOST_STEPS = 64  # of a trajectory: several times what is needed; it bounds the cost of the first steps, which are too small
FIRST_STEP = 0.1
OVERDISPERSION = (
    2.0  # sd of the coordinates of σ² and Σ at the start, where that of the posterior is about 1
)
DIVERGED = 1000.0  # error of the energy beyond which a trajectory has diverged, as in Stan
SLOW = 0.25  # gain of the running moments, per unit of 1/(1 + t/20)


class Point(NamedTuple):
    """What coordinates stand for, in the rotated basis."""

    log_density: jax.Array  # of the coordinates
    noise_variance: jax.Array
    moments: Moments  # whitened


class State(NamedTuple):
    """Where a chain is."""

    theta: jax.Array
    noise_variance: jax.Array
    position: jax.Array  # x: of σ², of Σ, of S_1 .. S_J
    point: Point
    log_step: jax.Array  # log of the leapfrog step
    mean: (
        jax.Array
    )  # running moments of the coordinates of σ² and Σ; those of S_j are standard enough
    variance: jax.Array


class Info(NamedTuple):
    """What a step did."""

    acceptance: jax.Array


def triangle(entries: jax.Array, d: int) -> jax.Array:
    """Lower triangular matrices from d(d + 1)/2 entries each, in an order that needs no scatter; the first is 0 where one is missing."""
    if entries.shape[-1] < d * (d + 1) // 2:
        entries = jnp.concatenate(
            [entries[..., :d], jnp.zeros((*entries.shape[:-1], 1)), entries[..., d:]], -1
        )
    return jnp.tril(
        jnp.concatenate([entries[..., d:], entries[..., ::-1]], -1).reshape(
            *entries.shape[:-1], d, d
        )
    )


def feature_root(entries: jax.Array, frame: Frame) -> tuple[jax.Array, jax.Array]:
    r"""A⁻¹ from its coordinates ε, and their log-density under the prior.

    log δ_k is affine in ε_kk; $\gamma_{ki} = (c_{ki} + \iota_{ki}\delta_ke_{ki})/q_{ki} + \epsilon_{ki}\sqrt{\delta_k/q_{ki}}$,
    $q_{ki} = 1 + \iota_{ki}\delta_k$. The density is
    $-\frac12\sum_k[\nu_k\log\delta_k + \lambda_k/\delta_k + \sum_{i<k}((\gamma_{ki} - c_{ki})^2/\delta_k + \log q_{ki})]$, whose last
    term is the prior's log δ_k less the Jacobian of γ.
    """
    d = frame.degrees.shape[0]
    matrix = triangle(entries, d)
    log_delta = frame.log_centre + frame.log_spread * jnp.diagonal(matrix)
    delta = jnp.exp(log_delta)[:, None]
    weight = frame.information * delta
    certainty = 1 + weight
    gamma = jnp.tril(
        (frame.centre + weight * frame.estimate + matrix * jnp.sqrt(delta * certainty)) / certainty,
        -1,
    )
    terms = jnp.sum((gamma - frame.centre) ** 2 / delta + jnp.log(certainty))
    density = -0.5 * (frame.degrees @ log_delta + jnp.sum(frame.scale / delta[:, 0]) + terms)
    return (jnp.eye(d) - jnp.einsum("kil,kl->ki", frame.axes, gamma)) / jnp.sqrt(delta), density


def gram_factors(
    entries: jax.Array, root: jax.Array, framed: Framed
) -> tuple[jax.Array, jax.Array]:
    r"""F_j from its coordinates and A⁻¹, and their log-density under the prior.

    $\sum_i[(n_j - i + 1)\log T_{ii} - T_{ii}^2/2] - \sum_{i>k}T_{ik}^2/2$: the first is the χ law with the Jacobian of the logarithm.
    """
    frame, d = framed.frame, root.shape[0]
    diagonal = jnp.eye(d, dtype=bool)
    degrees = framed.problem.counts[:, None] - jnp.arange(d)
    centred = jnp.log(jnp.diagonal(frame.factors, axis1=1, axis2=2)) + jnp.log(jnp.diagonal(root))
    weight = jnp.diagonal(frame.weight, axis1=1, axis2=2)
    middle = weight * centred + (1 - weight) * 0.5 * jnp.log(degrees)
    offset = jnp.where(diagonal, middle[..., None], frame.weight * (root @ frame.factors))
    mixed = offset + frame.spread * triangle(entries, d)
    logs = jnp.diagonal(mixed, axis1=1, axis2=2)
    bartlett = jnp.where(diagonal, jnp.exp(logs)[..., None], mixed)
    return solve(root, jnp.eye(d)) @ bartlett, jnp.sum(degrees * logs) - 0.5 * jnp.sum(bartlett**2)


def gram_likelihood(grams: jax.Array, framed: Framed) -> jax.Array:
    r"""$-\frac12\sum_{i\le k}E_{ik}^2/\text{sd}_{ik}^2 = -\frac14\|E\|^2/o^2 - \frac12(g^{-2} - \frac12o^{-2})\sum_iE_{ii}^2$, all j.

    E are the errors in the first basis; their norm is the same in every basis.
    """
    q, sds = framed.frame.rotation, framed.problem.gram_sds
    errors = grams - framed.problem.grams
    diagonal = jnp.sum((q @ errors) * q, -1)
    below = sds[:, 0, -1] ** -2
    return -0.25 * below @ jnp.sum(errors**2, (-2, -1)) - 0.5 * (
        sds[:, 0, 0] ** -2 - 0.5 * below
    ) @ jnp.sum(diagonal**2, -1)


def moment_likelihood(moments: Moments, problem: Problem) -> jax.Array:
    r"""Log-density of whitened moments r, θ integrated out: $\frac12(h'P^{-1}h - \|r\|^2 - \log|P|)$, P and h as in `draw_theta`."""
    d = problem.shift.shape[0]
    design, response = moments.design.reshape(-1, d), moments.response.ravel()
    factor = jnp.linalg.cholesky(problem.precision + design.T @ design, symmetrize_input=False)
    explained = solve(factor, (problem.shift + response @ design)[:, None])
    return 0.5 * (jnp.sum(explained**2) - jnp.sum(response**2)) - log_diagonal(factor)


def point_at(position: jax.Array, framed: Framed) -> Point:
    """What a position stands for, with the log-density of the posterior there, up to a constant."""
    problem = framed.problem
    entries = position[1:].reshape(problem.counts.shape[0] + 1, -1)
    log_variance = jnp.log(problem.rate / problem.shape) + position[0] / jnp.sqrt(problem.shape)
    variance = jnp.exp(log_variance)
    root, feature_density = feature_root(entries[0], framed.frame)
    factors, gram_density = gram_factors(entries[1:], root, framed)
    grams = factors @ factors.swapaxes(-1, -2)
    whitening = covariance_factor(grams, variance, problem)
    both = solve(whitening, jnp.concatenate([grams, problem.moments[..., None]], -1))
    moments = Moments(both[..., :-1], both[..., -1])
    prior = feature_density + gram_density - problem.shape * log_variance - problem.rate / variance
    likelihood = (
        gram_likelihood(grams, framed)
        + moment_likelihood(moments, problem)
        - log_diagonal(whitening).sum()
    )
    return Point(prior + likelihood, variance, moments)


def trajectory(
    state: State, momentum: jax.Array, steps: jax.Array, framed: Framed
) -> tuple[jax.Array, jax.Array]:
    """Leapfrog, position first; gives the last position and momentum."""
    gradient = jax.grad(lambda position: point_at(position, framed).log_density)
    known = jnp.sqrt(state.variance)
    h = jnp.exp(state.log_step) * jnp.ones_like(momentum).at[: known.shape[0]].set(known)

    def leap(_: int, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        position, momentum = carry
        position = position + 0.5 * h * momentum
        momentum = momentum + h * gradient(position)
        return position + 0.5 * h * momentum, momentum

    end: tuple[jax.Array, jax.Array] = jax.lax.fori_loop(0, steps, leap, (state.position, momentum))
    return end


def tuned(state: State, acceptance: jax.Array, gain: jax.Array) -> State:
    """Step size and running moments adapted."""
    slow = SLOW * gain ** (1 / GAIN_DECAY)
    away = state.position[: state.mean.shape[0]] - state.mean
    return state._replace(
        log_step=adapt(state.log_step, acceptance, TARGET, gain),
        mean=state.mean + slow * away,
        variance=(1 - slow) * (state.variance + slow * away**2),
    )


def with_theta(normal: jax.Array, state: State, framed: Framed) -> State:
    """σ² of the point, and θ drawn from its conditional, in the first basis."""
    theta = framed.frame.rotation @ draw_theta(normal, state.point.moments, framed.problem)
    return state._replace(theta=theta, noise_variance=state.point.noise_variance)


@dataclass(frozen=True)
class Hamiltonian:
    """One trajectory, then θ. The second rate is the share of trajectories that did not diverge."""

    constant: bool = False  # whether the first column is 1 in every row
    blocks: ClassVar[tuple[str, ...]] = ("trajectory", "undiverged")

    def init(self, key: jax.Array, framed: Framed) -> State:
        """Coordinates from a normal law: that of σ² and Σ twice as wide as the posterior, those of S_j as wide."""
        holders, d = framed.problem.moments.shape
        each = d * (d + 1) // 2 - self.constant
        normal = random.normal(key, (1 + (holders + 1) * each + d,))
        position = normal[:-d].at[: 1 + each].multiply(OVERDISPERSION)
        tuning = jnp.full((), np.log(FIRST_STEP)), jnp.zeros(1 + each), jnp.ones(1 + each)
        return with_theta(
            normal[-d:],
            State(normal[-d:], normal[0], position, point_at(position, framed), *tuning),
            framed,
        )

    def step(
        self, key: jax.Array, state: State, framed: Framed, gain: jax.Array
    ) -> tuple[State, Info]:
        """One iteration."""
        size, d = state.position.shape[0], state.theta.shape[0]
        key_normal, key_uniform = random.split(key)
        normal, uniform = random.normal(key_normal, (size + d,)), random.uniform(key_uniform, (2,))
        length = TRAJECTORY * (1 + JITTER * (2 * uniform[0] - 1))
        steps = jnp.clip(jnp.ceil(length / jnp.exp(state.log_step)), 1, MOST_STEPS).astype(int)
        position, momentum = trajectory(state, normal[:size], steps, framed)
        point = point_at(position, framed)
        log_ratio = (
            point.log_density
            - state.point.log_density
            - 0.5 * jnp.sum(momentum**2 - normal[:size] ** 2)
        )
        accepted, acceptance = metropolis(uniform[1], log_ratio)
        end = state._replace(position=position, point=point)
        state = tuned(
            jax.tree.map(lambda new, old: jnp.where(accepted, new, old), end, state),
            acceptance,
            gain,
        )
        return with_theta(normal[size:], state, framed), Info(
            jnp.stack([acceptance, jnp.where(log_ratio > -DIVERGED, 1.0, 0.0)])
        )


def fit(evidence: Evidence, prior: Prior, settings: Settings) -> Draws:
    """Draws of θ and σ²."""
    framed = in_frame(problem_of(evidence, prior), constant=evidence.constant)
    return run(Hamiltonian(evidence.constant), framed, settings)
