r"""`fixed-s`: the Gram matrices are taken as known once made positive semidefinite.

θ and σ² are drawn in turn. Numbers (F1), (F2), … are those of the equations in docs/methods.md,
"The fixed-S family".
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.eigen import eigen
from tacit.analyst.methods.linear import draw_normal
from tacit.analyst.methods.method import FIXED_S_CAVEAT, Draws, Method, Settings
from tacit.analyst.methods.sampling import (
    adapt,
    double_precision,
    jax,
    jnp,
    metropolis,
    random,
    run,
)
from tacit.analyst.methods.wishart import gamma
from tacit.analyst.prior import Prior

TARGET = 0.44
"""Acceptance of a one-dimensional random walk, Gelman, Roberts and Gilks (1996)."""
VANISHING = 1e-13
"""Noise variance that stands for none, per unit of a holder's largest eigenvalue and of response
variance."""
BLOCK = 256
"""Rows of the regression handled at once, so that with many holders no weighted copy of all rows is
made."""


class Problem(NamedTuple):
    """The regression (F2) in blocks of rows, and the prior.

    The last block is padded by rows of zeros with v = 1.
    """

    rows: jax.Array  # (blocks, rows, d + 1): [D_ke_k; q_k]
    values: jax.Array  # (blocks, rows): D_k ≥ 0
    variances: jax.Array  # (blocks, rows): τ_k² > 0
    precision: jax.Array  # (d, d): C⁻¹
    shift: jax.Array  # (d,): C⁻¹m
    shape: jax.Array  # a
    rate: jax.Array  # b


class Weighted(NamedTuple):
    """What the data say at one σ²."""

    gram: jax.Array  # (d + 1, d + 1): sum of outer products of rows, each divided by its variance
    log_variances: jax.Array  # (): sum of log v_k


class State(NamedTuple):
    """Where a chain is."""

    theta: jax.Array
    noise_variance: jax.Array
    weighted: Weighted  # at this σ²
    log_step: jax.Array  # log of the random walk's sd


class Info(NamedTuple):
    """What a step did."""

    acceptance: jax.Array


def problem_of(evidence: Evidence, prior: Prior) -> Problem:
    """Stack the eigenbases of all holders.

    Exact evidence has τ = 0. A variance of `VANISHING` times the holder's largest eigenvalue then
    stands in, far above rounding and far below any σ²D worth estimating, so that directions without
    data drop out instead of dividing 0 by 0.
    """
    basis = eigen(evidence)
    floor = np.maximum(VANISHING * basis.values.max(axis=1), np.finfo(float).tiny)
    variances = np.repeat(np.maximum(basis.moment_variance, floor), evidence.d)
    features = (basis.vectors * basis.values[:, None, :]).swapaxes(1, 2).reshape(-1, evidence.d)
    rows = np.column_stack([features, basis.moments.ravel()])
    precision = np.linalg.inv(prior.covariance)
    with double_precision():
        return Problem(
            rows=jnp.asarray(blocks(rows, 0.0)),
            values=jnp.asarray(blocks(basis.values.ravel(), 0.0)),
            variances=jnp.asarray(blocks(variances, 1.0)),
            precision=jnp.asarray(precision),
            shift=jnp.asarray(precision @ prior.mean),
            shape=jnp.asarray(prior.shape),
            rate=jnp.asarray(prior.rate),
        )


def blocks(array: NDArray[np.float64], padding: float) -> NDArray[np.float64]:
    """Cut the first axis into equal blocks, of `BLOCK` or all where there are fewer."""
    size = min(BLOCK, len(array))
    missing = -len(array) % size
    padded = np.concatenate([array, np.full((missing, *array.shape[1:]), padding)])
    return padded.reshape(-1, size, *array.shape[1:])


def weigh(noise_variance: jax.Array, problem: Problem) -> Weighted:
    """One pass over the data at a given σ²."""
    variances = noise_variance * problem.values + problem.variances

    def add(total: jax.Array, block: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        rows, variance = block
        return total + (rows / variance[:, None]).T @ rows, None

    size = problem.rows.shape[-1]
    gram, _ = jax.lax.scan(add, jnp.zeros((size, size)), (problem.rows, variances))
    return Weighted(gram=gram, log_variances=jnp.log(variances).sum())


def draw_theta(standard: jax.Array, weighted: Weighted, problem: Problem) -> jax.Array:
    """Draw θ given σ², (F3)."""
    precision = problem.precision + weighted.gram[:-1, :-1]
    return draw_normal(standard, precision, problem.shift + weighted.gram[:-1, -1])


def log_density(
    log_variance: jax.Array, weighted: Weighted, theta: jax.Array, problem: Problem
) -> jax.Array:
    """Log-density (F4) of t = log σ² given θ, up to a constant; `weighted` is `weigh` at σ²."""
    contrast = jnp.append(-theta, 1.0)
    likelihood = -0.5 * (weighted.log_variances + contrast @ weighted.gram @ contrast)
    return likelihood - problem.shape * log_variance - problem.rate * jnp.exp(-log_variance)


@dataclass(frozen=True)
class FixedS:
    """Draw θ given σ², then move log σ² by a Gaussian random walk."""

    blocks: ClassVar[tuple[str, ...]] = ("noise_variance",)

    def init(self, key: jax.Array, problem: Problem) -> State:
        """θ = 0, which the first step replaces, and σ² wider than its prior.

        By a lognormal factor of sd 1.
        """
        key_prior, key_factor = random.split(key)
        wider = jnp.exp(random.normal(key_factor))
        noise_variance = wider * problem.rate / gamma(key_prior, problem.shape)
        return State(
            theta=jnp.zeros_like(problem.shift),
            noise_variance=noise_variance,
            weighted=weigh(noise_variance, problem),
            log_step=jnp.zeros(()),
        )

    def step(
        self, key: jax.Array, state: State, problem: Problem, gain: jax.Array
    ) -> tuple[State, Info]:
        """θ | σ², then σ² | θ."""
        key_normal, key_uniform = random.split(key)
        normal = random.normal(key_normal, (problem.shift.shape[0] + 1,))
        theta = draw_theta(normal[1:], state.weighted, problem)
        now = jnp.log(state.noise_variance)
        log_variance = now + jnp.exp(state.log_step) * normal[0]
        proposed = weigh(jnp.exp(log_variance), problem)
        before = log_density(now, state.weighted, theta, problem)
        after = log_density(log_variance, proposed, theta, problem)
        accepted, acceptance = metropolis(random.uniform(key_uniform), after - before)
        moved = state._replace(noise_variance=jnp.exp(log_variance), weighted=proposed)
        state = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), moved, state)
        log_step = adapt(state.log_step, acceptance, TARGET, gain)
        return state._replace(theta=theta, log_step=log_step), Info(acceptance=acceptance[None])


def fit(evidence: Evidence, prior: Prior, settings: Settings) -> Draws:
    """Draws of θ and σ²."""
    return run(FixedS(), problem_of(evidence, prior), settings)


METHOD = Method(name="fixed-s", fit=fit, computed=False, caveat=FIXED_S_CAVEAT)
