r"""The likelihood of one τ_k, the other τ held, for all its values at once.

Per holder, C_j = F_j'V_j⁻¹F_j with F_j = [S̄_j, n_j Cov(c)^½, ẑ_j − S̄_jm], in the study's columns. A
change of τ_k² by δ adds δ s s' to V_j, s the k-th column of S̄_j, so by Sherman and Morrison

    C_j → C_j − w_j C_j[:, k] C_j[k, :],    w_j = δ/(1 + δ C_j[k, k]),
    log|V_j| → log|V_j| + log(1 + δ C_j[k, k]),

and the marginal likelihood of (θ, c) follows from Σ_j C_j alone: O(J d²) for each value of τ_k.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.methods.noise_aware.model import Model, Solution

Array = NDArray[np.float64]


@dataclass
class Profile:
    """Where τ is, and what the likelihood is from there; `move` changes it in place."""

    normals: Array  # (J, 2d + 1, 2d + 1): C_j
    prior: Array  # (2d, 2d): precision of (θ, c) before any release
    spread: Array  # (d,): τ²

    @classmethod
    def of(cls, model: Model, solution: Solution) -> "Profile":
        """From a model solved at some τ."""
        d = len(model.mean)
        design = solution.design.copy()
        design[:, :, :d] = solution.design[:, :, :d] @ model.basis.T
        prior = model.prior_precision()
        prior[:d, :d] = model.basis @ model.precision @ model.basis.T
        normals = design.swapaxes(1, 2) @ design
        return cls(normals=normals, prior=prior, spread=model.spread.copy())

    def likelihood(self, k: int, tau: Array) -> Array:
        """Log-likelihood at every value of τ_k, up to a constant, (value,)."""
        rows = self.normals[:, k, :]
        change = (tau**2 - self.spread[k])[:, None]
        growth = 1 + change * rows[:, k]
        weights = change / growth
        normal = self.normals.sum(axis=0) - (rows.T * weights[:, None, :]) @ rows
        factor = np.linalg.cholesky(normal[:, :-1, :-1] + self.prior)
        half = np.linalg.solve(factor, normal[:, :-1, -1:])[..., 0]
        determinant = 0.5 * np.log(growth).sum(axis=1)
        determinant += np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        likelihood: Array = -determinant - 0.5 * (normal[:, -1, -1] - np.sum(half**2, axis=1))
        return likelihood

    def move(self, k: int, spread: float) -> None:
        """Set τ_k²."""
        rows = self.normals[:, k, :].copy()
        change = spread - self.spread[k]
        weights = change / (1 + change * rows[:, k])
        self.normals -= (weights[:, None] * rows)[:, :, None] * rows[:, None, :]
        self.spread[k] = spread
