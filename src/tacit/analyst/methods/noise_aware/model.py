r"""The Gaussian model of `noise-aware` at one share ρ and one spread of holders.

With S_j = S̄_j + M_j from `gram.py` (M_j what remains unknown of X'X) and θ_j = θ + b_j holder j's
own coefficients, b_j ~ N(0, D), D = diag(τ_k²) + κ²H_j (`together.py`),
ẑ_j = S̄_jθ_j + M_jθ_j + e_j + v_j, so

    ẑ_j | θ, c ~ N(S̄_jθ + n_j c, V_j),    V_j = Ω_j + S̄_j D S̄_j,
    Ω_j = ρ_jσ²S̄_j + σ_z²I + Cov(M_jθ_j),    c ~ N(0, Cov(M_shared θ)),

where c is the error that holders share because they share B. Ω_j and Cov(c) depend on θ through
E[θθ'] alone, which is iterated to a fixed point; given it, (θ, c) is Gaussian. Given those, θ_j is
Gaussian too: b_j has mean DS̄_jV_j⁻¹(ẑ_j − S̄_jθ − n_jc) and covariance D − DS̄_jV_j⁻¹S̄_jD.

The prior of θ is Gaussian at each ρ, the share of the response's variance that slopes are
expected to explain (`slopes.py`).
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.noise_aware import lapack, wide
from tacit.analyst.methods.noise_aware.facts import Facts
from tacit.analyst.methods.noise_aware.sums import (
    WIDE,
    Joint,
    Sides,
    Sums,
    sums_of,
)
from tacit.analyst.methods.noise_aware.threads import mapped

Array = NDArray[np.float64]

ROUNDS = 60
TOLERANCE = 1e-3
"""The fixed point is reached when no E[θ_k²] moves by more than this share."""


@dataclass(frozen=True)
class Node:
    """The Gaussian at one (ρ, τ, σ²), in the eigenbasis."""

    share: float  # ρ
    log_weight: float
    location: Array
    covariance: Array
    noise_variance: float


@dataclass(frozen=True)
class Solution:
    """A node with what it was solved from; axes of (θ, c) in the eigenbasis."""

    node: Node
    sums: Sums
    between: Array  # (d, d), or (J, d, d): U'DU
    joint: Joint


class _Taken(NamedTuple):
    """What is taken off y'y for a residual sum, holder by holder."""

    location: Array  # (J, d): of θ_j
    square: Array  # (J,): θ_j'S̄_jθ_j + 2θ_j'K_j(ẑ_j − S̄_jθ_j) on average
    hidden: Array  # (J,): what noise may hide of θ_j'S_jθ_j, over n_j


class Model:
    """The model at one ρ and τ; `gaussian` solves it at a σ², starting from where it last was."""

    def __init__(
        self, facts: Facts, share: float, *, spread: Array | None = None, together: float = 0.0
    ) -> None:
        prior = facts.slopes.prior
        self.facts = facts
        self.share = share  # ρ
        self.basis = facts.grams.basis
        self.spread = np.zeros(prior.d) if spread is None else spread  # τ²
        self.together = together  # κ²
        self.mean = self.basis.T @ prior.mean
        self.residual = facts.moments - facts.grams.mean @ self.mean
        covariance: Array = self.basis.T @ facts.slopes.covariance(share) @ self.basis
        self.precision = np.linalg.inv(covariance).astype(float)
        self.log_precision = -float(np.linalg.slogdet(covariance)[1])
        self.second: Array = covariance + np.outer(self.mean, self.mean)  # E[θθ']
        self._last: tuple[tuple[object, ...], Solution] | None = None
        self._apart: tuple[Array, list[Array]] | None = None

    def gaussian(self, noise_variance: float) -> Node:
        """Posterior of θ at a given σ², E[θθ'] iterated to its fixed point."""
        for _ in range(ROUNDS):
            node = self.solve(noise_variance).node
            second = node.covariance + np.outer(node.location, node.location)
            moved = np.abs(np.diag(second) - np.diag(self.second)) / np.diag(second)
            self.second = second
            if moved.max() < TOLERANCE:
                break
        return node

    def solve(self, noise_variance: float) -> Solution:
        """The Gaussian at a σ², with E[θθ'] as it is; kept until something changes."""
        state = (noise_variance, self.second, self.spread, self.together, self.facts)
        if self._last is None or not _same(self._last[0], state):
            self._last = (state, self.solution(self.sums(noise_variance), noise_variance))
        return self._last[1]

    @property
    def between(self) -> Array:
        """U'DU."""
        back = self.facts.back
        between: Array = (back * self.spread) @ back.T
        if self.together:
            between = between + self.together * self.facts.shapes
        return between

    @property
    def apart(self) -> bool:
        """Whether D is above 0."""
        return bool(self.spread.any()) or self.together > 0

    def solution(self, sums: Sums, noise_variance: float) -> Solution:
        """The Gaussian that holders' sums and the prior give."""
        d = len(self.mean)
        normal = sums.normal
        if d >= WIDE:
            joint = wide.joint_of(normal, self.precision)
        else:
            joint = Joint.of(normal, self.prior_precision())
        determinant = sums.log_determinant + np.log(np.diag(joint.factor)).sum()
        fitness = -determinant - 0.5 * (normal[-1, -1] - joint.square - self.log_precision)
        node = Node(
            share=self.share,
            log_weight=float(fitness),
            location=self.mean + joint.mean[:d],
            covariance=joint.covariance[:d, :d],
            noise_variance=noise_variance,
        )
        return Solution(node=node, sums=sums, between=self.between, joint=joint)

    def prior_precision(self) -> Array:
        """Precision of (θ, c) before any release, (2d, 2d)."""
        d = len(self.mean)
        precision = np.eye(2 * d)
        precision[:d, :d] = self.precision
        return precision

    def sums(self, noise_variance: float) -> Sums:
        """What the holders say, at a σ²."""
        facts = self.facts
        posterior = facts.grams
        d = len(self.mean)
        between = self.between
        sides = Sides(
            mean=posterior.mean,
            sizes=posterior.sizes,
            shared=_square_root(_spread(posterior.shared_variance, self.second, facts.quiet)),
            residual=self.residual,
        )
        if d >= WIDE:
            second = self.second + between
            apart = self._differences()
            return wide.sums_of(
                lambda j: self._own_covariance(j, noise_variance, second) + apart[j].T, sides
            )
        total = noise_variance * facts.ratios[:, None, None] * facts.errors
        total += _spread(posterior.own_variance, self.second + between, facts.quiet)
        total[:, range(d), range(d)] += facts.moment_variance[:, None]
        if self.apart:
            total += posterior.mean @ between @ posterior.mean
        return sums_of(total, sides)

    def _differences(self) -> list[Array]:
        """Upper triangles of S̄_jDS̄_j, by rows; kept until D changes."""
        if self._apart is None or self._apart[0] is not self.spread:
            root = np.sqrt(self.spread)
            turned = self.facts.turned
            squares = mapped(lambda j: lapack.gram((turned[j] * root).T), range(len(turned)))
            self._apart = (self.spread, squares)
        return self._apart[1]

    def _own_covariance(self, j: int, noise_variance: float, second: Array) -> Array:
        """Ω_j of one holder, E[θ_jθ_j'] being `second`."""
        facts = self.facts
        total: Array = noise_variance * facts.ratios[j] * facts.errors[j]
        total += _spread(facts.grams.own_variance[j], second, facts.quiet)
        total.ravel()[:: len(total) + 1] += facts.moment_variance[j]
        return total

    def residuals(self, node: Node, evidence: Evidence) -> tuple[Array, Array]:
        """Every holder's residual sum of squares u − 2θ_j'z + θ_j'Sθ_j, and its noise's variance.

        (J,) each. Given θ_j, z is known from ẑ only as far as its noise allows: its mean is
        Sθ_j + K(ẑ − Sθ_j) with K = Cov(e)/Ω_j. So the sum is u − θ_j'Sθ_j − 2θ_j'K(ẑ − Sθ_j),
        averaged over θ_j, with half of what noise may hide of S counted as well (`slopes.py`).
        """
        if evidence.squares is None or evidence.square_sd is None:  # pragma: no cover
            raise AssertionError  # who asks has checked
        told = self._taken_each(node) if len(self.mean) >= WIDE else self._taken(node)
        hidden = self.facts.grams.sizes * told.hidden
        size = np.sum(told.location**2, axis=1)
        noise = evidence.square_sd**2 + 4 * evidence.moment_sd**2 * size
        noise += evidence.gram_sd**2 * size**2 + hidden**2 / 3
        return evidence.squares - told.square - hidden / 2, noise

    def _taken(self, node: Node) -> _Taken:
        """For all holders together."""
        facts = self.facts
        d = len(self.mean)
        if self.apart:
            location, covariance = own_coefficients(self.solve(node.noise_variance), self.mean)
            second = covariance + location[:, :, None] * location[:, None, :]
        else:
            every = np.ones(len(facts.moments))
            location = np.multiply.outer(every, node.location)
            second = np.multiply.outer(every, self.second)
        sizes = facts.grams.sizes[:, None, None]
        unknown = facts.grams.own_variance + sizes**2 * facts.grams.shared_variance
        noise = _spread(unknown, second, facts.quiet)
        noise[:, range(d), range(d)] += facts.moment_variance[:, None]
        errors = node.noise_variance * facts.ratios[:, None, None] * facts.errors
        gain = errors @ np.linalg.inv(errors + noise)
        inner = facts.sampling - 2 * gain @ facts.sampling
        product = np.einsum("ja,jab,jb->j", location, gain, facts.moments)
        return _Taken(
            location=location,
            square=np.einsum("jab,jab->j", inner, second) + 2 * product,
            hidden=np.einsum("ab,jab->j", facts.slopes.hidden, second),
        )

    def _taken_each(self, node: Node) -> _Taken:
        """For one holder at a time."""
        solution = self.solve(node.noise_variance) if self.spread.any() else None
        facts = self.facts

        def taken(j: int) -> tuple[Array, float, float]:
            location = node.location
            second = self.second
            if solution is not None:
                location, covariance = wide.own_of(solution, self.mean, j)
                second = covariance + np.outer(location, location)
            unknown = facts.grams.own_variance[j]
            unknown = unknown + facts.grams.sizes[j] ** 2 * facts.grams.shared_variance
            noise = _spread(unknown, second, facts.quiet)
            noise.ravel()[:: len(noise) + 1] += facts.moment_variance[j]
            scale = node.noise_variance * facts.ratios[j]
            errors = None if facts.errors is facts.sampling else facts.errors[j]
            explained = wide.Explained.of(facts.sampling[j], noise, scale, errors)
            square = np.sum((facts.sampling[j] - 2 * explained.gram) * second)
            square += 2 * explained.product(location, facts.moments[j])
            return location, float(square), float(np.sum(facts.slopes.hidden * second))

        locations, squares, hidden = zip(*mapped(taken, range(len(facts.moments))), strict=True)
        return _Taken(np.array(locations), np.array(squares), np.array(hidden))


def own_means(solution: Solution, prior_mean: Array) -> Array:
    """Mean (J, d) of every holder's own θ_j, in the eigenbasis."""
    d = len(prior_mean)
    if d >= WIDE:
        return wide.own_means(solution, prior_mean)
    return own_coefficients(solution, prior_mean)[0]


def own_coefficients(solution: Solution, prior_mean: Array) -> tuple[Array, Array]:
    """Mean (J, d) and covariance (J, d, d) of every holder's own θ_j, in the eigenbasis."""
    d = len(prior_mean)
    if d >= WIDE:
        return wide.own_coefficients(solution, prior_mean)
    design = solution.sums.design[:, :, : 2 * d]
    local = solution.sums.design[:, :, :d]
    gain = solution.between @ local.swapaxes(1, 2)
    joint = solution.joint
    left = solution.sums.design[:, :, -1] - design @ joint.mean
    location = prior_mean + joint.mean[:d] + np.einsum("jab,jb->ja", gain, left)
    follow = -gain @ design
    follow[:, :, :d] += np.eye(d)
    covariance = follow @ joint.covariance @ follow.swapaxes(1, 2)
    covariance += solution.between - gain @ local @ solution.between
    return location, covariance


def _spread(variance: Array, second: Array, quiet: Array) -> Array:
    """Cov(Mθ), M symmetric with independent entries of these variances, E[θθ'] = `second`.

    What M has along `quiet` is taken off.
    """
    off: Array = variance * second
    d = second.shape[-1]
    sizes = np.diagonal(second, axis1=-2, axis2=-1)
    off[..., range(d), range(d)] = (variance @ sizes[..., None])[..., 0]
    for along in quiet:
        taken = np.sqrt(variance) * along
        off -= taken @ second @ taken
    return off


def _square_root(covariance: Array) -> Array:
    """A matrix whose square is the covariance; lower triangular from `WIDE` columns on."""
    if len(covariance) >= WIDE:
        with suppress(np.linalg.LinAlgError):  # a tenth of the time, but of positive ones alone
            return np.linalg.cholesky(covariance).astype(float)
    values, vectors = np.linalg.eigh(covariance)
    root: Array = vectors * np.sqrt(np.maximum(values, 0.0))
    if len(covariance) >= WIDE:
        root = np.linalg.qr(root.T).R.T.astype(float)
    return root


def _same(those: tuple[object, ...], these: tuple[object, ...]) -> bool:
    """Whether a state is the same number, then the same objects."""
    pairs = zip(those[1:], these[1:], strict=True)
    return those[0] == these[0] and all(one is other for one, other in pairs)
