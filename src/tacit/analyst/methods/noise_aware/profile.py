r"""The likelihood of one τ_k, the other τ held, for all its values at once.

Per holder, C_j = F_j'V_j⁻¹F_j with F_j = [S̄_j, n_j Cov(c)^½, ẑ_j − S̄_jm], in the study's columns.
A change of τ_k² by δ adds δ s s' to V_j, s the k-th column of S̄_j, so by Sherman and Morrison

    C_j → C_j − w_j C_j[:, k] C_j[k, :],    w_j = δ/(1 + δ C_j[k, k]).

With P and h the precision and the moment of (θ, c), Σ_j C_j and the prior together, and of the k-th
row of C_j α_j the k-th entry, η_j the last and g_j all but the last, holders tell of their b_jk

    A = diag(α) − g P⁻¹ g',    t = η − g P⁻¹ h,

and the log-likelihood grows by −½ log|I + δA| + ½ δ t'(I + δA)⁻¹t: one eigendecomposition of a
J × J matrix for all values of τ_k. With more holders than 2d columns the same is had from 2d × 2d
matrices, one for each value. Either way the cost is linear in J, or J is small.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.methods.noise_aware import wide
from tacit.analyst.methods.noise_aware.model import Model, Solution
from tacit.analyst.methods.noise_aware.sums import WIDE, inverse_of
from tacit.analyst.methods.noise_aware.threads import mapped

Array = NDArray[np.float64]

LEAST_GROWTH = 1e-12
"""Smallest 1 + δλ: below it rounding has the word."""
MOST_MOVES = 32
"""Moves that are kept before they are taken off all C_j: one product instead of many."""


@dataclass
class Profile:
    """Where τ is, and what the likelihood is from there; `move` changes it in place."""

    normals: Array  # (J, 2d + 1, 2d + 1): C_j; of few holders the first d rows alone are moved
    prior: Array  # (2d, 2d): precision of (θ, c) before any release
    spread: Array  # (d,): τ²
    inverse: Array  # (2d, 2d): P⁻¹, less what moves add
    mean: Array  # (2d,): P⁻¹h
    moves: Array  # (J, m, 2d + 1): rows of moves that are not yet off `normals`; of few holders
    weights: Array  # (J, m): w_j of each
    added: Array  # (2d, J·m): what they add to P⁻¹, as X diag(x) X'
    shares: Array  # (J·m,): x
    moved: int = 0  # how many there are
    known: "Told | None" = None  # of the coefficient that was last asked for

    @classmethod
    def of(cls, model: Model, solution: Solution) -> "Profile":
        """From a model solved at some τ."""
        d = len(model.mean)
        back = model.facts.back
        prior = model.prior_precision()
        prior[:d, :d] = back.T @ model.precision @ back
        if d >= WIDE:
            normals = wide.normals_of(solution.sums, model.facts.turned)
        else:
            design = solution.sums.design.copy()
            design[:, :, :d] = solution.sums.design[:, :, :d] @ back
            normals = design.swapaxes(1, 2) @ design
        return cls.at(normals, prior, model.spread)

    def without(self, place: int) -> "Profile":
        """As it was before any move, one holder left out."""
        return Profile.at(np.delete(self.normals, place, axis=0), self.prior, self.spread)

    @classmethod
    def at(cls, normals: Array, prior: Array, spread: Array) -> "Profile":
        """From what holders tell at some τ, and the precision beforehand."""
        total = normals.sum(axis=0)
        inverse = inverse_of(total[:-1, :-1] + prior)
        return cls(
            normals=normals,
            prior=prior,
            spread=spread.copy(),
            inverse=inverse,
            mean=inverse @ total[:-1, -1],
            moves=np.empty((len(normals), MOST_MOVES, len(total))),
            weights=np.empty((len(normals), MOST_MOVES)),
            added=np.empty((len(inverse), MOST_MOVES * len(normals))),
            shares=np.empty(MOST_MOVES * len(normals)),
        )

    def _rows(self, k: int) -> Array:
        """The k-th row of every C_j, (J, 2d + 1)."""
        rows = self.normals[:, k, :]
        if not self.moved:
            return rows
        moves = self.moves[:, : self.moved]
        taken = (self.weights[:, : self.moved] * moves[:, :, k])[:, None, :] @ moves
        left: Array = rows - taken[:, 0]
        return left

    def likelihood(self, k: int, tau: Array) -> Array:
        """Log-likelihood at every value of τ_k, up to a constant, (value,)."""
        change = tau**2 - self.spread[k]
        if len(self.normals) < len(self.mean):
            return self._by_holders(k, change)
        return self._by_columns(k, change)

    def _by_holders(self, k: int, change: Array) -> Array:
        told = self._told(k)
        growth = np.maximum(1 + change[:, None] * told.values, LEAST_GROWTH)
        gained = change[:, None] * told.score**2 / growth
        likelihood: Array = 0.5 * np.sum(gained - np.log(growth), axis=1)
        return likelihood

    def _told(self, k: int) -> "Told":
        """What holders tell of b_jk."""
        if self.known is None or self.known.k != k:
            rows = self._rows(k)
            sides = rows[:, :-1].T
            count = self.moved * len(rows)
            added = self.added[:, :count]
            inverse = self.inverse @ sides + added @ (self.shares[:count, None] * (added.T @ sides))
            values, vectors = np.linalg.eigh(np.diag(rows[:, k]) - sides.T @ inverse)
            self.known = Told(
                k=k,
                rows=rows.copy(),
                values=values,
                score=(rows[:, -1] - self.mean @ sides) @ vectors,
                across=inverse @ vectors,
            )
        return self.known

    def _by_columns(self, k: int, change: Array) -> Array:
        rows = self.normals[:, k, :]
        growth = np.maximum(1 + change[:, None] * rows[:, k], LEAST_GROWTH)
        weights = change[:, None] / growth
        normal = self.normals.sum(axis=0) - (rows.T * weights[:, None, :]) @ rows
        factor = np.linalg.cholesky(normal[:, :-1, :-1] + self.prior)
        half = np.linalg.solve(factor, normal[:, :-1, -1:])[..., 0]
        determinant = 0.5 * np.log(growth).sum(axis=1)
        determinant += np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        likelihood: Array = -determinant - 0.5 * (normal[:, -1, -1] - np.sum(half**2, axis=1))
        return likelihood

    def move(self, k: int, spread: float) -> None:
        """Set τ_k²."""
        change = spread - self.spread[k]
        self.spread[k] = spread
        if len(self.normals) >= len(self.mean):
            rows = self.normals[:, k, :].copy()
            weights = change / np.maximum(1 + change * rows[:, k], LEAST_GROWTH)
            self.normals -= (weights[:, None] * rows)[:, :, None] * rows[:, None, :]
            return
        told = self._told(k)
        self.known = None
        shares = change / np.maximum(1 + change * told.values, LEAST_GROWTH)
        self.mean = self.mean - told.across @ (shares * told.score)
        self._note(told, change, shares)

    def _note(self, told: "Told", change: float, shares: Array) -> None:
        """Keep a move; many are taken off `normals`, and added to P⁻¹, together."""
        holders = len(shares)
        place = slice(self.moved * holders, (self.moved + 1) * holders)
        self.added[:, place] = told.across
        self.shares[place] = shares
        self.moves[:, self.moved] = told.rows
        growth = np.maximum(1 + change * told.rows[:, told.k], LEAST_GROWTH)
        self.weights[:, self.moved] = change / growth
        self.moved += 1
        if self.moved == MOST_MOVES:
            self._take_off()
            self.inverse = self.inverse + (self.added * self.shares) @ self.added.T
            self.moved = 0

    def _take_off(self) -> None:
        """All moves off the rows of every C_j that are asked for."""
        d = len(self.spread)

        def take(j: int) -> None:
            weighted = self.moves[j, :, :d] * self.weights[j, :, None]
            self.normals[j, :d] -= weighted.T @ self.moves[j]

        if d >= WIDE:
            mapped(take, range(len(self.normals)))
            return
        for j in range(len(self.normals)):
            take(j)


@dataclass(frozen=True)
class Told:
    """A by its eigenvalues, and t and P⁻¹g' along its eigenvectors, of one coefficient."""

    k: int
    rows: Array  # (J, 2d + 1): the k-th row of every C_j
    values: Array  # (J,)
    score: Array  # (J,)
    across: Array  # (2d, J)
