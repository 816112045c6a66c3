"""Triangular solves and Gaussian draws, which every sampler needs of linear algebra."""

from tacit.analyst.methods.sampling import jax, jnp


def solve(factor: jax.Array, right: jax.Array, *, transpose: bool = False) -> jax.Array:
    """Solve with lower triangular matrices, or with their transposes."""
    solution: jax.Array = jax.lax.linalg.triangular_solve(
        factor, right, left_side=True, lower=True, transpose_a=transpose
    )
    return solution


def solve_vector(factor: jax.Array, right: jax.Array, *, transpose: bool = False) -> jax.Array:
    """The same for one right side each, (…, d)."""
    return solve(factor, right[..., None], transpose=transpose)[..., 0]


def log_diagonal(factor: jax.Array) -> jax.Array:
    """Sum of logs of a factor's diagonal: half the log-determinant of the product."""
    return jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)


def lower_factor(matrix: jax.Array) -> jax.Array:
    """Cholesky factors of matrices that are symmetric to the last bit."""
    factor: jax.Array = jnp.linalg.cholesky(matrix, symmetrize_input=False)
    return factor


def draw_normal(standard: jax.Array, precision: jax.Array, shift: jax.Array) -> jax.Array:
    r"""Draw from $N(P^{-1}h, P^{-1})$ for a precision P and a shift h.

    With P = LL' and the `standard` normal ε the draw is $L'^{-1}(L^{-1}h + ε)$.
    """
    factor = lower_factor(precision)
    return solve_vector(factor, solve_vector(factor, shift) + standard, transpose=True)
