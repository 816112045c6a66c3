r"""`normal-x` by pseudo-marginal Metropolis–Hastings: S_j is summed out by an unbiased estimate.

The likelihood of one holder's release at (θ, σ², Σ) is an integral over S_j. It is estimated by
importance sampling with M matrices, drawn normally in the coordinates of `frame`, and the chain
moves θ, σ² and Σ together as if the estimate were the likelihood itself: the law of (θ, σ², Σ) is
exactly the posterior, for every M (Andrieu and Roberts 2009). Numbers (X8), (X9), … are those of
the equations in docs/methods.md, "normal-x".
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.linear import log_diagonal, lower_factor, solve, solve_vector
from tacit.analyst.methods.method import Draws, Settings
from tacit.analyst.methods.normal_x.frame import Framed, in_frame
from tacit.analyst.methods.normal_x.gradient import (
    OVERDISPERSION,
    SLOW,
    feature_root,
    gram_factors,
    gram_likelihood,
)
from tacit.analyst.methods.normal_x.model import (
    covariance_factor,
    problem_of,
    theta_law,
    whitened,
)
from tacit.analyst.methods.sampling import GAIN_DECAY, adapt, jax, jnp, metropolis, random, run
from tacit.analyst.prior import Prior

PARTICLES = 64
"""Matrices per holder, M: with fewer the estimate's noise stops the chain at (5, 5)."""
WIDER = 1.1
"""Sd of the coordinates that are drawn: a little wider than the law they stand for, so that no
weight is far above the others."""
TARGET = 0.15
"""Acceptance of the random walk, below the 0.234 of an exact likelihood (Sherlock et al. 2015)."""
FIRST_STEP = 0.3


class Particles(NamedTuple):
    """The matrices that an estimate is made of."""

    entries: jax.Array  # (M, J, …): coordinates of S_j
    log_weights: jax.Array  # (M, J)


class State(NamedTuple):
    """Where a chain is: coordinates of σ², of Σ, and of θ, in the rotated basis."""

    theta: jax.Array
    noise_variance: jax.Array
    position: jax.Array
    particles: Particles
    theta_centre: jax.Array  # of the coordinates of θ, fixed
    theta_factor: jax.Array  # (d, d)
    log_step: jax.Array
    mean: jax.Array  # running moments of the position
    variance: jax.Array


class Info(NamedTuple):
    """What a step did."""

    acceptance: jax.Array


class Parameters(NamedTuple):
    """What a position stands for, and its log-density under the prior."""

    theta: jax.Array  # in the rotated basis
    noise_variance: jax.Array
    root: jax.Array  # A⁻¹ of Σ (X8)
    log_density: jax.Array


def parameters_at(state: State, position: jax.Array, framed: Framed) -> Parameters:
    """θ, σ² and Σ of a position."""
    problem = framed.problem
    d = problem.shift.shape[0]
    log_variance = jnp.log(problem.rate / problem.shape) + position[0] / jnp.sqrt(problem.shape)
    root, feature_density = feature_root(position[1:-d], framed.frame)
    theta = state.theta_centre + state.theta_factor @ position[-d:]
    of_theta = problem.shift @ theta - 0.5 * theta @ problem.precision @ theta
    of_variance = -problem.shape * log_variance - problem.rate * jnp.exp(-log_variance)
    return Parameters(
        theta=theta,
        noise_variance=jnp.exp(log_variance),
        root=root,
        log_density=feature_density + of_theta + of_variance,
    )


def log_weights(entries: jax.Array, parameters: Parameters, framed: Framed) -> jax.Array:
    """Log of prior times likelihood over proposal of every holder's S_j, (J,)."""
    problem = framed.problem
    factors, of_grams = gram_factors(entries, parameters.root, framed)
    grams = factors @ factors.swapaxes(-1, -2)
    whitening = covariance_factor(grams, parameters.noise_variance, problem)
    residuals = solve_vector(whitening, problem.moments - grams @ parameters.theta)
    of_moments = -0.5 * jnp.sum(residuals**2, -1) - log_diagonal(whitening)
    proposal = -0.5 * jnp.sum((entries / WIDER) ** 2, -1)
    weights = of_grams + gram_likelihood(grams, framed) + of_moments - proposal
    return jnp.where(jnp.isnan(weights), -jnp.inf, weights)


def particles_at(entries: jax.Array, parameters: Parameters, framed: Framed) -> Particles:
    """Matrices with their weights."""
    weights = jax.vmap(log_weights, (0, None, None))(entries, parameters, framed)
    return Particles(entries=entries, log_weights=weights)


def log_estimate(particles: Particles) -> jax.Array:
    """Log of the estimated likelihood of all releases, up to a constant."""
    estimate: jax.Array = jax.scipy.special.logsumexp(particles.log_weights, axis=0).sum()
    return estimate


def theta_frame(framed: Framed) -> tuple[jax.Array, jax.Array]:
    """Centre and factor of θ's coordinates: its law (X4) at the pilot Gram matrices."""
    problem = framed.problem
    grams = framed.frame.factors @ framed.frame.factors.swapaxes(-1, -2)
    factor = covariance_factor(grams, problem.rate / problem.shape, problem)
    precision, shift = theta_law(whitened(grams, factor, problem), problem)
    root = lower_factor(precision)
    centre = solve_vector(root, solve_vector(root, shift), transpose=True)
    return centre, solve(root, jnp.eye(len(shift)), transpose=True)


def tuned(state: State, acceptance: jax.Array, gain: jax.Array) -> State:
    """Step size and running moments adapted."""
    slow = SLOW * gain ** (1 / GAIN_DECAY)
    away = state.position - state.mean
    return state._replace(
        log_step=adapt(state.log_step, acceptance, TARGET, gain),
        mean=state.mean + slow * away,
        variance=(1 - slow) * (state.variance + slow * away**2),
    )


@dataclass(frozen=True)
class PseudoMarginal:
    """One random-walk step of θ, σ² and Σ, with matrices drawn anew for the proposal."""

    constant: bool = False  # whether the first column is 1 in every row
    particles: int = PARTICLES
    blocks: ClassVar[tuple[str, ...]] = ("parameters",)

    def init(self, key: jax.Array, framed: Framed) -> State:
        """Coordinates from a normal law, twice as wide as the posterior about is."""
        holders, d = framed.problem.moments.shape
        each = d * (d + 1) // 2 - self.constant
        key_position, key_entries = random.split(key)
        position = OVERDISPERSION * random.normal(key_position, (1 + each + d,))
        centre, factor = theta_frame(framed)
        entries = WIDER * random.normal(key_entries, (self.particles, holders, each))
        state = State(
            theta=centre,
            noise_variance=jnp.ones(()),
            position=position,
            particles=Particles(entries, jnp.zeros(entries.shape[:2])),
            theta_centre=centre,
            theta_factor=factor,
            log_step=jnp.full((), np.log(FIRST_STEP)),
            mean=jnp.zeros_like(position),
            variance=jnp.ones_like(position),
        )
        parameters = parameters_at(state, position, framed)
        return state._replace(
            theta=framed.frame.rotation @ parameters.theta,
            noise_variance=parameters.noise_variance,
            particles=particles_at(entries, parameters, framed),
        )

    def step(
        self, key: jax.Array, state: State, framed: Framed, gain: jax.Array
    ) -> tuple[State, Info]:
        """One iteration."""
        key_walk, key_entries, key_uniform = random.split(key, 3)
        walk = random.normal(key_walk, state.position.shape) * jnp.sqrt(state.variance)
        position = state.position + jnp.exp(state.log_step) * walk
        entries = WIDER * random.normal(key_entries, state.particles.entries.shape)
        before = parameters_at(state, state.position, framed)
        after = parameters_at(state, position, framed)
        particles = particles_at(entries, after, framed)
        gained = log_estimate(particles) - log_estimate(state.particles)
        log_ratio = after.log_density - before.log_density + gained
        accepted, acceptance = metropolis(random.uniform(key_uniform), log_ratio)
        end = state._replace(
            theta=framed.frame.rotation @ after.theta,
            noise_variance=after.noise_variance,
            position=position,
            particles=particles,
        )
        state = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), end, state)
        return tuned(state, acceptance, gain), Info(acceptance=acceptance[None])


def fit(evidence: Evidence, prior: Prior, settings: Settings) -> Draws:
    """Draws of θ and σ²."""
    framed = in_frame(problem_of(evidence, prior), constant=evidence.constant)
    return run(PseudoMarginal(constant=evidence.constant), framed, settings)
