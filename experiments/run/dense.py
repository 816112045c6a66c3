r"""bernstein-sheldon as it is usually written, with covariances of all statistics at once.

O(d⁶) an iteration.

The D = (d + 1)(d + 2)/2 entries $s = \operatorname{vech} G_j$ have mean
$n_j\operatorname{vech}\Gamma$ and covariance $n_jV$, $V_{(ab),(ce)} = \Gamma_{ac}\Gamma_{be} +
\Gamma_{ae}\Gamma_{bc}$, and $\hat s = s$ + independent noise of variances R. A draw of s given ŝ is
$s_0 + K(\hat s - \hat s_0)$ with $(s_0, \hat s_0)$ drawn from the joint law and $K = n_jV(n_jV +
R)^{-1}$. Everything else is the package's kernel. For the comparison of run times alone.
"""

from dataclasses import dataclass

import numpy as np

from tacit.analyst.methods.bernstein_sheldon import (
    BernsteinSheldon,
    Info,
    Problem,
    State,
    draw_parameters,
    entry_variances,
    joint_covariance,
)
from tacit.analyst.methods.sampling import jax, jnp, random

JITTER = 1e-12  # share of the largest variance that is added to V's diagonal, which may be singular


def fourth_moments(gamma: jax.Array) -> jax.Array:
    """V, (D, D), in the order of the lower triangle."""
    rows, columns = np.tril_indices(gamma.shape[0])
    first = gamma[rows[:, None], rows] * gamma[columns[:, None], columns]
    return first + gamma[rows[:, None], columns] * gamma[columns[:, None], rows]


def noise_variances(problem: Problem) -> jax.Array:
    """R, (J, D)."""
    p = problem.released.shape[-1]
    variances = problem.noise[:, None, None] * entry_variances(p) + (
        0.0 if problem.excess is None else problem.excess
    )
    variances = variances.at[:, -1, -1].set(problem.square_noise)
    return variances[:, *np.tril_indices(p)]


def conditional(gamma: jax.Array, problem: Problem) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Mean of every s_j before its release is seen, factors of n_jV, and gains K_j."""
    lower = np.tril_indices(gamma.shape[0])
    moments = fourth_moments(gamma)
    moments = moments + JITTER * jnp.max(jnp.diagonal(moments)) * jnp.eye(len(moments))
    covariance = problem.counts[:, None, None] * moments
    total = covariance + noise_variances(problem)[:, :, None] * jnp.eye(len(moments))
    gain = jax.vmap(lambda whole, part: jax.scipy.linalg.solve(whole, part, assume_a="pos").T)(
        total, covariance
    )
    return problem.counts[:, None] * gamma[lower], jnp.linalg.cholesky(covariance), gain


def draw_statistics(key: jax.Array, gamma: jax.Array, problem: Problem) -> jax.Array:
    """Every G_j given its release and Γ, (J, p, p)."""
    p = gamma.shape[0]
    lower = np.tril_indices(p)
    mean, factor, gain = conditional(gamma, problem)
    own, noise = random.normal(key, (2, *mean.shape))
    first = mean + jnp.einsum("jab,jb->ja", factor, own)
    seen = first + jnp.sqrt(noise_variances(problem)) * noise
    entries = first + jnp.einsum("jab,jb->ja", gain, problem.released[:, *lower] - seen)
    place = np.zeros((p, p), dtype=int)
    place[lower] = np.arange(len(lower[0]))
    return entries[:, np.maximum(place, place.T)]


@dataclass(frozen=True)
class Dense(BernsteinSheldon):
    """The kernel: a draw outside the cone keeps the statistics as they were."""

    def step(
        self, key: jax.Array, state: State, problem: Problem, gain: jax.Array
    ) -> tuple[State, Info]:
        """The statistics, then the parameters; there is nothing to tune."""
        del gain
        key_statistics, key_parameters = random.split(key)
        proposal = draw_statistics(key_statistics, joint_covariance(state), problem)
        inside = jnp.isfinite(jnp.linalg.cholesky(proposal)).all((1, 2))
        statistics = jnp.where(inside[:, None, None], proposal, state.statistics)
        return draw_parameters(key_parameters, statistics, state.log_step, problem), Info(
            inside.mean(keepdims=True)
        )
