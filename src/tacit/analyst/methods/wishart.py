r"""Wishart draws by Bartlett's decomposition, for whole batches inside a jax loop.

W(V, ν) has mean νV. With V = LL', ν > d − 1 and T lower triangular,
$T_{ii}^2 \sim \chi^2(\nu - i + 1)$, $T_{ik} \sim N(0, 1)$ below the diagonal,
$LTT'L' \sim W(V, \nu)$ (Bartlett 1933); LT is its Cholesky factor.
"""

import math
from typing import Any

import numpy as np

from tacit.analyst.methods.sampling import jax, jnp, random


def gamma(key: jax.Array, shape: jax.Array) -> jax.Array:
    r"""Gamma draws of rate 1, one per entry of `shape`, all positive.

    Marsaglia and Tsang (2000): with c = a − 1/3, x normal and $v = (1 + x/\sqrt{9c})^3$, accept cv
    when $\log u < x^2/2 + c - cv + c\log v$. A shape a < 1 is drawn at a + 1 and multiplied by
    $u^{1/a}$. jax's own sampler does the same one entry after the other on a CPU; here all entries
    are proposed at once until each has been accepted.
    """
    boosted = jnp.where(shape < 1, shape + 1, shape)
    centre = boosted - 1 / 3

    def propose(carry: tuple[int, jax.Array, jax.Array]) -> tuple[int, jax.Array, jax.Array]:
        attempt, value, done = carry
        first, second, third = uniforms(random.fold_in(key, attempt), (3, *shape.shape))
        x = math.sqrt(2) * jax.scipy.special.erfinv(2 * first - 1)
        v = (1 + x / jnp.sqrt(9 * centre)) ** 3
        log_v = jnp.log(jnp.where(v > 0, v, 1.0))
        good = (v > 0) & (jnp.log(second) < x**2 / 2 + centre * (1 - v + log_v))
        boost = jnp.where(shape < 1, (1 - third) ** (1 / shape), 1.0)
        return attempt + 1, jnp.where(done, value, centre * v * boost), done | good

    start = (0, jnp.zeros_like(boosted), jnp.zeros(shape.shape, bool))
    return jax.lax.while_loop(lambda carry: ~jnp.all(carry[2]), propose, start)[1]


def uniforms(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Uniforms on [0, 1) of any shape.

    Drawn flat and kept apart from what uses them, a CPU makes them several times faster.
    """
    return apart(random.uniform(key, (math.prod(shape),))).reshape(shape)


def normals(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Standard normals of any shape, in the same manner."""
    return apart(random.normal(key, (math.prod(shape),))).reshape(shape)


def apart(array: jax.Array) -> jax.Array:
    """Compute an array once and store it, rather than inside the loops that read it."""
    lax: Any = jax.lax
    stored: jax.Array = lax.optimization_barrier(array)
    return stored


def bartlett(key: jax.Array, degrees: jax.Array, d: int) -> jax.Array:
    """Bartlett factors T of W(I, ν), (…, d, d), one per entry ν of `degrees`."""
    key_diagonal, key_below = random.split(key)
    diagonal = jnp.sqrt(2 * gamma(key_diagonal, (degrees[..., None] - jnp.arange(d)) / 2))
    below = normals(key_below, (*degrees.shape, d * (d - 1) // 2))
    rows, columns = np.tril_indices(d, -1)
    every = np.arange(d)
    factor = jnp.zeros((*degrees.shape, d, d)).at[..., rows, columns].set(below)
    return factor.at[..., every, every].set(diagonal)
