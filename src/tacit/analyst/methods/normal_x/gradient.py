r"""`normal-x` by gradient: Hamiltonian Monte Carlo in the coordinates of `frame`.

θ is integrated out and drawn afterwards; Σ, S_1..J and σ² move together, all holders at once.
Trajectories have a fixed mean length rather than NUTS's: in these coordinates every direction has
about the same period, and chains that run together stop together. Numbers (X9), (X10), … are those
of the equations in docs/methods.md, "normal-x".
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.linear import log_diagonal, lower_factor, solve, solve_vector
from tacit.analyst.methods.method import Draws, Settings
from tacit.analyst.methods.normal_x.frame import Frame, Framed, in_frame
from tacit.analyst.methods.normal_x.model import (
    Problem,
    Whitened,
    covariance_factor,
    draw_theta,
    problem_of,
    theta_law,
    whitened,
)
from tacit.analyst.methods.sampling import GAIN_DECAY, adapt, jax, jnp, metropolis, random, run
from tacit.analyst.prior import Prior

TARGET = 0.9
"""Acceptance of a trajectory; at 0.8 chains stick in the tails of σ² and δ, where curvature grows
exponentially."""
TRAJECTORY = 1.57
"""Mean length of a trajectory: a quarter of the period of N(0, I), after which a coordinate is
independent."""
JITTER = 0.5
"""Lengths are uniform within this share of the mean, so that no coordinate returns to its start
every time."""
MOST_STEPS = 64
"""Of a trajectory: several times what is needed. It bounds the cost of the first steps, which are
too small."""
FIRST_STEP = 0.1
OVERDISPERSION = 2.0
"""Sd of the coordinates of σ² and Σ at the start, where that of the posterior is about 1."""
DIVERGED = 1000.0
"""Error of the energy beyond which a trajectory has diverged, as in Stan."""
SLOW = 0.25
"""Gain of the running moments, per unit of 1/(1 + t/20)."""


class Point(NamedTuple):
    """What coordinates stand for, in the rotated basis."""

    log_density: jax.Array  # of the coordinates
    noise_variance: jax.Array
    regression: Whitened


class State(NamedTuple):
    """Where a chain is; running moments are kept for the coordinates of σ² and Σ alone."""

    theta: jax.Array
    noise_variance: jax.Array
    position: jax.Array  # x: of σ², of Σ, of S_1 .. S_J
    point: Point
    log_step: jax.Array  # log of the leapfrog step
    mean: jax.Array
    variance: jax.Array


class Info(NamedTuple):
    """What a step did."""

    acceptance: jax.Array


def triangle(entries: jax.Array, d: int) -> jax.Array:
    """Lower triangular matrices from d(d + 1)/2 entries each, in an order that needs no scatter.

    The first entry is 0 where one is missing.
    """
    if entries.shape[-1] < d * (d + 1) // 2:
        zero = jnp.zeros((*entries.shape[:-1], 1))
        entries = jnp.concatenate([entries[..., :d], zero, entries[..., d:]], -1)
    square = jnp.concatenate([entries[..., d:], entries[..., ::-1]], -1)
    return jnp.tril(square.reshape(*entries.shape[:-1], d, d))


def feature_root(entries: jax.Array, frame: Frame) -> tuple[jax.Array, jax.Array]:
    """A⁻¹ of (X8) from its coordinates ε by (X12), and their log-density under the prior (X13)."""
    d = frame.degrees.shape[0]
    matrix = triangle(entries, d)
    log_delta = frame.log_centre + frame.log_spread * jnp.diagonal(matrix)
    delta = jnp.exp(log_delta)[:, None]
    weight = frame.information * delta
    certainty = 1 + weight
    moved = frame.centre + weight * frame.estimate + matrix * jnp.sqrt(delta * certainty)
    gamma = jnp.tril(moved / certainty, -1)
    terms = jnp.sum((gamma - frame.centre) ** 2 / delta + jnp.log(certainty))
    density = -0.5 * (frame.degrees @ log_delta + jnp.sum(frame.scale / delta[:, 0]) + terms)
    slopes = jnp.einsum("kil,kl->ki", frame.axes, gamma)
    return (jnp.eye(d) - slopes) / jnp.sqrt(delta), density


def gram_factors(
    entries: jax.Array, root: jax.Array, framed: Framed
) -> tuple[jax.Array, jax.Array]:
    """F_j from its coordinates and A⁻¹ (X11), and their log-density under the prior (X14), (J,)."""
    frame = framed.frame
    d = root.shape[0]
    diagonal = jnp.eye(d, dtype=bool)
    degrees = framed.problem.counts[:, None] - jnp.arange(d)
    centred = jnp.log(jnp.diagonal(frame.factors, axis1=1, axis2=2)) + jnp.log(jnp.diagonal(root))
    weight = jnp.diagonal(frame.weight, axis1=1, axis2=2)
    middle = weight * centred + (1 - weight) * 0.5 * jnp.log(degrees)
    offset = jnp.where(diagonal, middle[..., None], frame.weight * (root @ frame.factors))
    mixed = offset + frame.spread * triangle(entries, d)
    logs = jnp.diagonal(mixed, axis1=1, axis2=2)
    bartlett = jnp.where(diagonal, jnp.exp(logs)[..., None], mixed)
    density = jnp.sum(degrees * logs, -1) - 0.5 * jnp.sum(bartlett**2, (-2, -1))
    return solve(root, jnp.eye(d)) @ bartlett, density


def gram_likelihood(grams: jax.Array, framed: Framed) -> jax.Array:
    """Log-density (X15) of every Ŝ_j, (J,), from errors whose norm is the same in every basis."""
    q = framed.frame.rotation
    sds = framed.problem.gram_sds
    errors = grams - framed.problem.grams
    diagonal = jnp.sum((q @ errors) * q, -1)
    below = sds[:, 0, -1] ** -2
    excess = sds[:, 0, 0] ** -2 - 0.5 * below
    whole = below * jnp.sum(errors**2, (-2, -1))
    return -0.25 * whole - 0.5 * excess * jnp.sum(diagonal**2, -1)


def moment_likelihood(regression: Whitened, problem: Problem) -> jax.Array:
    r"""Log-density of whitened moments r, θ integrated out, with P and h of (X4).

    $\frac12(h'P^{-1}h - \|r\|^2 - \log|P|)$.
    """
    precision, shift = theta_law(regression, problem)
    factor = lower_factor(precision)
    explained = solve_vector(factor, shift)
    squares = jnp.sum(explained**2) - jnp.sum(regression.response.ravel() ** 2)
    return 0.5 * squares - log_diagonal(factor)


def point_at(position: jax.Array, framed: Framed) -> Point:
    """What a position stands for, with the posterior's log-density there, up to a constant."""
    problem = framed.problem
    entries = position[1:].reshape(problem.counts.shape[0] + 1, -1)
    log_variance = jnp.log(problem.rate / problem.shape) + position[0] / jnp.sqrt(problem.shape)
    variance = jnp.exp(log_variance)
    root, feature_density = feature_root(entries[0], framed.frame)
    factors, gram_density = gram_factors(entries[1:], root, framed)
    grams = factors @ factors.swapaxes(-1, -2)
    whitening = covariance_factor(grams, variance, problem)
    regression = whitened(grams, whitening, problem)
    variance_density = -problem.shape * log_variance - problem.rate / variance
    prior = feature_density + gram_density.sum() + variance_density
    moment_density = moment_likelihood(regression, problem) - log_diagonal(whitening).sum()
    likelihood = gram_likelihood(grams, framed).sum() + moment_density
    return Point(log_density=prior + likelihood, noise_variance=variance, regression=regression)


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
    theta = framed.frame.rotation @ draw_theta(normal, state.point.regression, framed.problem)
    return state._replace(theta=theta, noise_variance=state.point.noise_variance)


@dataclass(frozen=True)
class Hamiltonian:
    """One trajectory, then θ. The second rate is the share of trajectories that did not diverge."""

    constant: bool = False  # whether the first column is 1 in every row
    blocks: ClassVar[tuple[str, ...]] = ("trajectory", "undiverged")

    def init(self, key: jax.Array, framed: Framed) -> State:
        """Coordinates from a normal law, those of σ² and Σ twice as wide as the posterior."""
        holders, d = framed.problem.moments.shape
        each = d * (d + 1) // 2 - self.constant
        normal = random.normal(key, (1 + (holders + 1) * each + d,))
        position = normal[:-d].at[: 1 + each].multiply(OVERDISPERSION)
        state = State(
            theta=normal[-d:],
            noise_variance=normal[0],
            position=position,
            point=point_at(position, framed),
            log_step=jnp.full((), np.log(FIRST_STEP)),
            mean=jnp.zeros(1 + each),
            variance=jnp.ones(1 + each),
        )
        return with_theta(normal[-d:], state, framed)

    def step(
        self, key: jax.Array, state: State, framed: Framed, gain: jax.Array
    ) -> tuple[State, Info]:
        """One iteration."""
        size = state.position.shape[0]
        key_normal, key_uniform = random.split(key)
        normal = random.normal(key_normal, (size + state.theta.shape[0],))
        uniform = random.uniform(key_uniform, (2,))
        length = TRAJECTORY * (1 + JITTER * (2 * uniform[0] - 1))
        steps = jnp.clip(jnp.ceil(length / jnp.exp(state.log_step)), 1, MOST_STEPS).astype(int)
        position, momentum = trajectory(state, normal[:size], steps, framed)
        point = point_at(position, framed)
        kinetic = 0.5 * jnp.sum(momentum**2 - normal[:size] ** 2)
        log_ratio = point.log_density - state.point.log_density - kinetic
        accepted, acceptance = metropolis(uniform[1], log_ratio)
        end = state._replace(position=position, point=point)
        state = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), end, state)
        state = with_theta(normal[size:], tuned(state, acceptance, gain), framed)
        undiverged = jnp.where(log_ratio > -DIVERGED, 1.0, 0.0)
        return state, Info(acceptance=jnp.stack([acceptance, undiverged]))


def fit(evidence: Evidence, prior: Prior, settings: Settings) -> Draws:
    """Draws of θ and σ²."""
    framed = in_frame(problem_of(evidence, prior), constant=evidence.constant)
    return run(Hamiltonian(constant=evidence.constant), framed, settings)
