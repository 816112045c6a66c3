"""A three-point Gauss rule for the law of a residual sd, from its log-density."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

WIDEST = (-16.0, 3.0)
"""Values of log σ² between which the law is looked for: σ from 0.0003 to 4.5, in scaled units."""
PLACES = 400
"""Points of the net on which the density is taken."""
NEGLIGIBLE = 30.0
"""A log-density this far below the top does not count."""
POINTS = 3


def gauss_rule(log_density: Callable[[Array], Array]) -> list[tuple[float, float]]:
    """Values of σ² and their weights: exact for polynomials of degree five in σ.

    `log_density` is that of log σ². The points are the eigenvalues of the Jacobi matrix that
    Lanczos steps build from the law [Golub and Welsch 1969].
    """
    sigma, weights = _net(log_density)
    centre = float(weights @ sigma)
    places, axes = np.linalg.eigh(_jacobi(sigma / centre - 1, weights))
    return [
        ((centre * (1 + place)) ** 2, axis**2)
        for place, axis in zip(places.tolist(), axes[0].tolist(), strict=True)
        if axis != 0.0
    ]


def _net(log_density: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Values of σ where the mass is, and their weights; the net is narrowed three times."""
    grid = np.linspace(*WIDEST, PLACES)
    for _ in range(3):
        logs = log_density(grid)
        if not np.isfinite(logs.max()):
            raise np.linalg.LinAlgError("the density is nowhere finite")
        mass = grid[logs >= logs.max() - NEGLIGIBLE]
        step = grid[1] - grid[0]
        grid = np.linspace(mass[0] - step, mass[-1] + step, PLACES)
    logs = log_density(grid)
    weights = np.exp(logs - logs.max())
    return np.exp(grid / 2), weights / weights.sum()


def _jacobi(values: Array, weights: Array) -> Array:
    """The tridiagonal matrix of the polynomials that are orthogonal under a discrete law."""
    jacobi = np.zeros((POINTS, POINTS))
    vectors = [np.sqrt(weights)]
    for k in range(POINTS):
        image = values * vectors[k]
        jacobi[k, k] = vectors[k] @ image
        for vector in vectors:
            image -= (vector @ image) * vector
        if k + 1 < POINTS:
            norm = float(np.linalg.norm(image))
            jacobi[k, k + 1] = norm
            jacobi[k + 1, k] = norm
            vectors.append(image / max(norm, 1e-300))
    return jacobi
