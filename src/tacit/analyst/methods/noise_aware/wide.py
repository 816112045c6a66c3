r"""Many columns: one holder's matrices at a time, each by its own shape, triangular or symmetric.

The same numbers as for few columns, in fewer steps of d³. Where

    V_j = Ω_j + S̄_jDS̄_j = LL',    A = L⁻¹S̄_j,    G = DA',

holders' sums need A'A, V_j⁻¹S̄_j = L⁻¹'A and V_j⁻¹, and a holder's own coefficients need
F = [I − GA, −n_jGL⁻¹Cov(c)^½], how they follow (θ, c): their covariance is F P⁻¹ F' + D − GG', with
P the precision of (θ, c), known by its Cholesky factor.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.methods.noise_aware import lapack
from tacit.analyst.methods.noise_aware.sums import Joint, Sides, Sums, symmetric
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


def sums_of(covariance: Callable[[int], Array], sides: Sides) -> Sums:
    """What holders say: `covariance` gives V_j, of which the upper triangle counts."""
    parts = mapped(lambda j: _part(covariance(j), sides, j), range(len(sides.sizes)))
    d = len(sides.shared)
    root = np.asfortranarray(sides.shared)
    normal = np.empty((2 * d + 1, 2 * d + 1))
    normal[:d, :d] = symmetric(_total(part.local for part in parts))
    normal[d:-1, :d] = lapack.times(root, _total(part.across for part in parts), transposed=True)
    half = lapack.times(root, symmetric(_total(part.shared for part in parts)), transposed=True)
    normal[d:-1, d:-1] = lapack.times(root, half.T, transposed=True)
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


def joint_of(normal: Array, precision: Array) -> Joint:
    """The Gaussian of (θ, c); `precision` is that of θ beforehand.

    With c first, the last block of the factor is all that θ's covariance needs.
    """
    d = len(precision)
    lower = np.zeros((2 * d, 2 * d), order="F")
    lower[:d, :d] = normal[d:-1, d:-1]
    lower[range(d), range(d)] += 1.0
    lower[d:, :d] = normal[:d, d:-1]
    lower[d:, d:] = normal[:d, :d] + precision
    factor = lapack.root_of(lower)
    moment = np.concatenate([normal[d:-1, -1], normal[:d, -1]])
    half = lapack.solved(factor, moment[:, None])
    mean = lapack.solved(factor, half, transposed=True)[:, 0]
    last = lapack.inverse_root(factor[d:, d:].copy(order="F"))
    return Joint(
        mean=np.concatenate([mean[d:], mean[:d]]),
        covariance=symmetric(lapack.squared(last)),
        factor=factor,
        square=float(half[:, 0] @ half[:, 0]),
    )


def normals_of(sums: Sums, turned: Array) -> Array:
    """What every holder says, in the study's columns, (J, 2d + 1, 2d + 1); `turned` are S̄_j's."""
    sides = sums.sides

    def normal(j: int) -> Array:
        white = sums.white[j]
        d = len(white)
        design = np.empty((d, 2 * d + 1), order="F")
        design[:, :d] = lapack.times(white, turned[j])
        design[:, d:-1] = lapack.times(white, sides.sizes[j] * sides.shared)
        design[:, -1] = white @ sides.residual[j]
        return symmetric(lapack.gram(design))

    return np.array(mapped(normal, range(len(sides.sizes))))


def _total(arrays: Iterator[Array]) -> Array:
    """Their sum, in the place of the first."""
    total = next(arrays)
    for array in arrays:
        total += array
    return total


def _part(covariance: Array, sides: Sides, j: int) -> _Part:
    """What one holder tells; symmetric matrices are read in LAPACK's order by turning them."""
    root = lapack.root_of(covariance.T)
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
        *mapped(lambda j: own_of(solution, prior_mean, j), range(count)), strict=True
    )
    return np.array(means), np.array(covariances)


def own_means(solution: "Solution", prior_mean: Array) -> Array:
    """Mean (J, d) of every holder's own θ_j: θ + DS̄_jV_j⁻¹(ẑ_j − S̄_jθ − n_jc)."""
    sums = solution.sums
    mean = solution.joint.mean
    d = len(prior_mean)
    sides = sums.sides
    left = sides.residual - sides.mean @ mean[:d]
    left -= np.outer(sides.sizes, sides.shared @ mean[d:])
    told = [
        inner @ (white.T @ (white @ one))
        for inner, white, one in zip(sides.mean, sums.white, left, strict=True)
    ]
    own: Array = prior_mean + mean[:d] + np.array(told) @ solution.between
    return own


def own_of(solution: "Solution", prior_mean: Array, j: int) -> tuple[Array, Array]:
    """The same of one holder."""
    sides = solution.sums.sides
    white = solution.sums.white[j]
    mean = solution.joint.mean
    d = len(white)
    size = sides.sizes[j]
    local = lapack.times(white, sides.mean[j].T)
    gain = (solution.between @ local.T).T  # G', in Fortran's order
    shared = sides.shared @ mean[d:]
    left = white @ (sides.residual[j] - size * shared) - local @ mean[:d]
    location = prior_mean + mean[:d] + left @ gain
    follow = np.empty((2 * d, d), order="F")  # F', c first
    inside = lapack.times(white, gain, transposed=True)
    follow[:d] = lapack.times(np.asfortranarray(-size * sides.shared), inside, transposed=True)
    np.matmul(local.T, -gain, out=follow[d:])
    follow[range(d, 2 * d), range(d)] += 1
    covariance = symmetric(lapack.gram(lapack.solved(solution.joint.factor, follow)))
    covariance += solution.between - symmetric(lapack.gram(gain))
    return location, covariance


@dataclass(frozen=True)
class Explained:
    """K = E(E + N)⁻¹ of one holder, E the errors' covariance and N the noise's."""

    root: Array  # L of E + N
    errors: Array  # E
    gram: Array  # KS̄

    @classmethod
    def of(cls, sampling: Array, noise: Array, scale: float, errors: Array | None) -> "Explained":
        """E is `scale` times `errors` or, where there are none, times S̄."""
        covariance = scale * (sampling if errors is None else errors)
        root = lapack.root_of((covariance + noise).T)
        half = lapack.solved(root, sampling.T)
        if errors is None:
            gram = scale * symmetric(lapack.gram(half))
        else:
            gram = lapack.solved(root, covariance.T).T @ half
        return cls(root=root, errors=covariance, gram=gram)

    def product(self, location: Array, moment: Array) -> float:
        """θ_j'Kẑ_j."""
        sides = lapack.solved(self.root, np.column_stack([self.errors @ location, moment]))
        return float(sides[:, 0] @ sides[:, 1])
