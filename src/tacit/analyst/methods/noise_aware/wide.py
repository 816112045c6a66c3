r"""Many columns: one holder's matrices at a time, each by its own shape, triangular or symmetric.

The same numbers as for few columns, in fewer steps of d³. Where

    V_j = Ω_j + S̄_jDS̄_j = LL',    A = L⁻¹S̄_j,    G = DA',

holders' sums need A'A, V_j⁻¹S̄_j = L⁻¹'A and V_j⁻¹, and a holder's own coefficients need
F = [I − GA, −n_jGL⁻¹Cov(c)^½], how they follow (θ, c): their covariance is F P⁻¹ F' + D − GG', with
P the precision of (θ, c), known by its Cholesky factor.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.methods.noise_aware import lapack
from tacit.analyst.methods.noise_aware.sums import Sides, Sums, symmetric
from tacit.analyst.methods.noise_aware.threads import mapped

if TYPE_CHECKING:
    from tacit.analyst.methods.noise_aware.model import Solution

Array = NDArray[np.float64]


class _Part(NamedTuple):
    """What one holder tells of (θ, c): lower triangles of symmetric matrices alone."""

    white: Array  # L⁻¹
    local: Array  # S̄V⁻¹S̄
    across: Array  # nV⁻¹S̄
    shared: Array  # n²V⁻¹
    moment: Array  # S̄V⁻¹r
    shared_moment: Array  # nV⁻¹r
    square: float  # r'V⁻¹r
    log_determinant: float  # log|L|


def sums_of(
    covariance: Callable[[int], Array], apart: Callable[[int], Array], sides: Sides
) -> Sums:
    """What holders say: `covariance` gives Ω_j, `apart` a matrix whose square is S̄_jDS̄_j."""
    parts = mapped(lambda j: _part(covariance(j), apart(j), sides, j), range(len(sides.sizes)))
    d = len(sides.shared)
    root = sides.shared
    normal = np.empty((2 * d + 1, 2 * d + 1))
    normal[:d, :d] = symmetric(_total(part.local for part in parts))
    normal[d:-1, :d] = root.T @ _total(part.across for part in parts)
    normal[d:-1, d:-1] = root.T @ symmetric(_total(part.shared for part in parts)) @ root
    normal[:d, d:-1] = normal[d:-1, :d].T
    normal[-1, :d] = _total(part.moment for part in parts)
    normal[-1, d:-1] = _total(part.shared_moment for part in parts) @ root
    normal[:-1, -1] = normal[-1, :-1]
    normal[-1, -1] = sum(part.square for part in parts)
    return Sums(
        white=[part.white for part in parts],
        sides=sides,
        normal=normal,
        log_determinant=sum(part.log_determinant for part in parts),
    )


def _total(arrays: Iterator[Array]) -> Array:
    """Their sum, in the place of the first."""
    total = next(arrays)
    for array in arrays:
        total += array
    return total


def _part(covariance: Array, apart: Array, sides: Sides, j: int) -> _Part:
    """What one holder tells; symmetric matrices are read in LAPACK's order by turning them."""
    root = lapack.root_of(lapack.gram(apart.T, covariance.T))
    determinant = float(np.log(np.diag(root)).sum())
    white = lapack.inverse_root(root)
    size = sides.sizes[j]
    design = lapack.times(white, sides.mean[j].T)
    residual = white @ sides.residual[j]
    return _Part(
        white=white,
        local=lapack.gram(design),
        moment=residual @ design,
        across=size * lapack.times(white, design, transposed=True),
        shared=size**2 * lapack.squared(white),
        shared_moment=size * (residual @ white),
        square=float(residual @ residual),
        log_determinant=determinant,
    )


def own_coefficients(solution: "Solution", prior_mean: Array) -> tuple[Array, Array]:
    """Mean (J, d) and covariance (J, d, d) of every holder's own θ_j."""
    count = len(solution.sums.sides.sizes)
    means, covariances = zip(
        *mapped(lambda j: _own(solution, prior_mean, j), range(count)), strict=True
    )
    return np.array(means), np.array(covariances)


def _own(solution: "Solution", prior_mean: Array, j: int) -> tuple[Array, Array]:
    sides = solution.sums.sides
    white = solution.sums.white[j]
    d = len(white)
    size = sides.sizes[j]
    local = lapack.times(white, sides.mean[j].T)
    gain = solution.between @ local.T
    shared = sides.shared @ solution.mean[d:]
    left = white @ (sides.residual[j] - size * shared) - local @ solution.mean[:d]
    location = prior_mean + solution.mean[:d] + gain @ left
    follow = np.empty((2 * d, d), order="F")  # F'
    np.matmul(local.T, -gain.T, out=follow[:d])
    follow[range(d), range(d)] += 1
    inside = lapack.times(white, gain.T, transposed=True)
    np.matmul(-size * sides.shared.T, inside, out=follow[d:])
    covariance = symmetric(lapack.gram(lapack.solved(solution.factor, follow)))
    covariance += solution.between - symmetric(lapack.gram(np.asfortranarray(gain.T)))
    return location, covariance


def explained(
    errors: Array, noise: Array, sampling: Array, moment: Array, location: Array
) -> tuple[Array, float]:
    """KS̄_j and θ_j'Kẑ_j, K = E(E + N)⁻¹, of one holder: `errors` are E, `noise` is N."""
    root = lapack.root_of((errors + noise).T)
    one = lapack.solved(root, errors.T)
    other = lapack.solved(root, sampling.T)
    both = lapack.solved(root, np.column_stack([errors @ location, moment]))
    return one.T @ other, float(both[:, 0] @ both[:, 1])
