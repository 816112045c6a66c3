r"""`noise-aware`: the posterior that knows the noise in X'X as well as in X'y. Closed form up to a small quadrature.

With S_j = S̄_j + M_j from `gram.py` (M_j what remains unknown of X'X), ẑ_j = S̄_jθ + M_jθ + e_j + v_j, so

    ẑ_j | θ ~ N(S̄_jθ + n_j c, Ω_j),    Ω_j = σ²S̄_j + σ_z²I + Cov(M_jθ),    c ~ N(0, Cov(M_shared θ)),

where c is the error that holders share because they share B. Ω_j and Cov(c) depend on θ through E[θθ'] alone, which is
iterated to a fixed point; given it, (θ, c) is Gaussian. What remains is two-dimensional:

- σ², the residual variance of shrunk rows. It is read off y'y − 2θ'z + θ'Sθ = Σe² where y'y is published (that sum has
  mean nσ², and variance 2nσ⁴ plus that of its noise), and is left to the prior where it is not. Using shrunk rows' own
  residual variance makes Cov(z | X) = Σ α⁴e²xx' equal σ²S on average, whatever the factors α were.
- φ, how far holders' own coefficients lie from the common ones: θ_j ~ N(θ, φ²I) adds φ²S̄_jS̄_j' to Ω_j. Holders that differ
  (other instruments, other patients) would otherwise be weighted by noise alone, and the more exact the releases, the more
  one odd holder would pull. φ is chosen by marginal likelihood, and is 0 unless holders clearly disagree.
- τ, one scale for all coefficients but the intercept: θ_k − m_k is τ√C_kk times a Student variable with 2 degrees of
  freedom, τ uniform on (0, 1]. It keeps a fit from chasing noise when the releases hold little: τ is then small and the
  prediction close to the mean, while the heavy tails let a coefficient that stands out stand. The Student law is handled by
  the variational bound log t(θ) ≥ −½(θ²/λC − …), tight at λ_k = (2 + E[(θ_k − m_k)²]/τ²C_kk)/3 [Jaakkola and Jordan 2000].

The result is a finite mixture of Gaussians, from which intervals, moments and independent draws are exact.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.gram import Grams, grams
from tacit.analyst.method import Method, Mixture, Settings
from tacit.analyst.prior import Prior

Array = NDArray[np.float64]

SCALES = np.geomspace(0.01, 1.0, 13)
"""Values of τ; on this grid a uniform law of τ has weights proportional to τ."""
DEGREES = 2.0
"""Degrees of freedom of the coefficients' prior: light enough tails to cover, heavy enough to spare what stands out."""
ROUNDS = 60
TOLERANCE = 1e-3
"""The fixed point is reached when no E[θ_k²] moves by more than this share."""
DISAGREEMENTS = np.concatenate([[0.0], np.geomspace(1e-3, 0.3, 13)])
"""Values of φ."""
CLEARLY = 3.0
"""Log-likelihood by which a φ above 0 must be better: holders are taken to agree until the releases say otherwise."""
PILOT_SCALE = 0.2
"""τ at which φ is chosen."""
_HERMITE = ((-math.sqrt(3), 1 / 6), (0.0, 2 / 3), (math.sqrt(3), 1 / 6))
"""Gauss–Hermite nodes and weights for log σ²."""


@dataclass(frozen=True)
class _Node:
    """The Gaussian at one (τ, σ²)."""

    log_weight: float
    location: Array
    scale: Array
    noise_variance: float


def fit(evidence: Evidence, prior: Prior, settings: Settings) -> Mixture:
    """Mixture over the scale of the coefficients and the residual variance."""
    facts = _agreeing(_facts(evidence), evidence, prior, settings)
    basis = facts.grams.basis
    nodes: list[_Node] = []
    for tau in SCALES:
        model = _Model(facts, prior, tau, intercept=evidence.intercept)
        if settings.noise_variance is None:
            centre, sd = model.log_noise_variance(evidence, prior)
        else:
            centre, sd = math.log(settings.noise_variance), 0.0
        for place, weight in _HERMITE if sd > 0 else ((0.0, 1.0),):
            node = model.gaussian(math.exp(centre + sd * place))
            nodes.append(replace(node, log_weight=node.log_weight + math.log(weight * tau)))
    return _mixture(nodes, basis, _unshrunk(evidence, facts))


def _agreeing(facts: "_Facts", evidence: Evidence, prior: Prior, settings: Settings) -> "_Facts":
    """The facts with the φ of highest marginal likelihood."""
    if evidence.holders == 1:
        return facts

    def fitness(disagreement: float) -> float:
        model = _Model(replace(facts, disagreement=disagreement), prior, PILOT_SCALE, intercept=evidence.intercept)
        variance = settings.noise_variance or math.exp(model.log_noise_variance(evidence, prior)[0])
        return model.gaussian(variance).log_weight

    scores = np.array([fitness(disagreement) for disagreement in DISAGREEMENTS])
    best = int(np.argmax(scores))
    return replace(facts, disagreement=float(DISAGREEMENTS[best])) if scores[best] > scores[0] + CLEARLY else facts


def _unshrunk(evidence: Evidence, facts: "_Facts") -> float:
    """Residual variance of rows as they are over that of shrunk rows: n/Σα², where Σα² is the intercept's entry of X'X.

    Without an intercept, or a count, nothing tells: the residual variance is then that of shrunk rows.
    """
    if not evidence.intercept or evidence.counts is None:
        return 1.0
    first = facts.grams.basis[0]
    n = float(np.maximum(evidence.counts, 1.0).sum())
    return n / float(np.clip(first @ facts.sampling.sum(axis=0) @ first, n / 100, n))


def _mixture(nodes: list[_Node], basis: Array, unshrunk: float) -> Mixture:
    logs = np.array([node.log_weight for node in nodes])
    weights = np.exp(logs - logs.max())
    return Mixture(
        weights=weights / weights.sum(),
        locations=np.array([basis @ node.location for node in nodes]),
        scales=np.array([basis @ node.scale @ basis.T for node in nodes]),
        noise_variances=unshrunk * np.array([node.noise_variance for node in nodes]),
    )


@dataclass(frozen=True)
class _Facts:
    """What does not change from node to node, in the eigenbasis."""

    grams: Grams
    moments: Array  # (J, d): U'ẑ_j
    moment_variance: Array  # (J,): σ_z²
    sampling: Array  # (J, d, d): S̄_j without its negative part
    disagreement: float = 0.0  # φ


def _facts(evidence: Evidence) -> _Facts:
    found = grams(evidence)
    values, vectors = np.linalg.eigh(found.mean)
    sampling = np.einsum("jab,jb,jcb->jac", vectors, np.maximum(values, 0.0), vectors)
    size = np.einsum("jaa->j", sampling) / evidence.d
    variance = np.maximum(evidence.moment_sd**2, 1e-12 * (1 + size) ** 2)  # exact statistics have no noise
    return _Facts(found, evidence.moments @ found.basis, variance, sampling)


class _Model:
    """The Gaussian model of (θ, c) at one τ; `gaussian` solves it at a σ², starting from where it last was."""

    def __init__(self, facts: _Facts, prior: Prior, tau: float, *, intercept: bool) -> None:
        self.facts, self.basis = facts, facts.grams.basis
        self.mean = self.basis.T @ prior.mean
        self.residual = facts.moments - facts.grams.mean @ self.mean
        self.free = np.arange(prior.d) >= int(intercept)  # τ and λ leave the intercept alone
        scales = np.where(self.free, tau, 1.0)
        self.covariance = prior.covariance * np.outer(scales, scales)
        self._set_prior(np.ones(prior.d))
        self.second = np.linalg.inv(self.precision) + np.outer(self.mean, self.mean)  # E[θθ']

    def _set_prior(self, stretch: Array) -> None:
        """Prior precision of θ at local scales λ = `stretch`."""
        root = np.sqrt(stretch)
        precision = np.linalg.inv(self.covariance * np.outer(root, root))
        self.precision = self.basis.T @ precision @ self.basis
        self.log_precision = float(np.linalg.slogdet(precision)[1])

    def _stretch(self) -> float:
        """Set λ from E[(θ − m)²]; returns what the Student law adds to the bound on the marginal likelihood."""
        spread = self.second - np.outer(self.mean, self.mean)  # of θ about the prior mean, up to terms of first order
        size = np.einsum("ab,bc,ac->a", self.basis, spread, self.basis)[self.free] / np.diag(self.covariance)[self.free]
        size = np.maximum(size, 0.0)
        stretch = np.ones(len(self.mean))
        stretch[self.free] = (DEGREES + size) / (DEGREES + 1)
        self._set_prior(stretch)
        local = stretch[self.free]
        bound = size / local - (DEGREES + 1) * np.log1p(size / DEGREES) + np.log(local)
        return 0.5 * float(bound.sum())

    def gaussian(self, noise_variance: float) -> _Node:
        """Posterior of θ at a given σ², E[θθ'] iterated to its fixed point."""
        for _ in range(ROUNDS):
            bound = self._stretch()
            node = self._solve(noise_variance)
            second = node.scale + np.outer(node.location, node.location)
            moved = np.abs(np.diag(second) - np.diag(self.second)) / np.diag(second)
            self.second = second
            if moved.max() < TOLERANCE:
                break
        return replace(node, log_weight=node.log_weight + bound)

    def _solve(self, noise_variance: float) -> _Node:
        facts, found = self.facts, self.facts.grams
        d = len(self.mean)
        total = noise_variance * facts.sampling + _spread(found.own_variance, self.second)
        total += facts.moment_variance[:, None, None] * np.eye(d)
        if facts.disagreement > 0:
            total += facts.disagreement**2 * facts.sampling @ facts.sampling
        root = np.linalg.cholesky(total)
        shared = found.sizes[:, None, None] * _square_root(_spread(found.shared_variance, self.second))
        design = np.linalg.solve(root, np.concatenate([found.mean, shared, self.residual[..., None]], axis=2))
        flat = design.reshape(-1, 2 * d + 1)
        normal = flat.T @ flat
        precision = normal[:-1, :-1].copy()
        precision[:d, :d] += self.precision
        precision[d:, d:] += np.eye(d)
        factor = np.linalg.cholesky(precision)
        half = np.linalg.solve(factor, normal[:-1, -1])
        covariance = np.linalg.inv(precision)
        location = self.mean + (covariance @ normal[:-1, -1])[:d]
        determinant = 2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum() + 2 * np.log(np.diag(factor)).sum()
        fitness = -0.5 * (determinant - self.log_precision + normal[-1, -1] - half @ half)
        return _Node(float(fitness), location, covariance[:d, :d], noise_variance)

    def log_noise_variance(self, evidence: Evidence, prior: Prior) -> tuple[float, float]:
        """Mean and sd of log σ² under its prior and, where y'y is published, the residual sum of squares."""
        grid = np.linspace(-16.0, 3.0, 400)
        density = -prior.shape * grid - prior.rate * np.exp(-grid)
        centre, sd = _moments(grid, density)
        if evidence.squares is None or evidence.square_sd is None or evidence.counts is None:
            return centre, sd
        n = float(np.maximum(evidence.counts, 1.0).sum())
        for _ in range(3):
            node = self.gaussian(math.exp(centre))
            size = float(np.trace(self.second))
            squares = float(evidence.squares.sum() - 2 * node.location @ self.facts.moments.sum(axis=0))
            squares += float(np.sum(self.facts.sampling.sum(axis=0) * self.second))
            noise = np.sum(evidence.square_sd**2 + 4 * evidence.moment_sd**2 * size + evidence.gram_sd**2 * size**2)
            variance = 2 * n * np.exp(2 * grid) + float(noise)
            likelihood = -0.5 * (np.log(variance) + (squares - n * np.exp(grid)) ** 2 / variance)
            centre, sd = _moments(grid, density + likelihood)
        return centre, sd


def _moments(grid: Array, log_density: Array) -> tuple[float, float]:
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    mean = float(weights @ grid)
    return mean, math.sqrt(float(weights @ (grid - mean) ** 2))


def _spread(variance: Array, second: Array) -> Array:
    """Cov(Mθ) of symmetric M with independent entries of the given variances, where E[θθ'] = `second`."""
    diagonal = variance @ np.diag(second)
    off = variance * second
    d = second.shape[0]
    off[..., range(d), range(d)] = diagonal
    return off


def _square_root(covariance: Array) -> Array:
    values, vectors = np.linalg.eigh(covariance)
    root: Array = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


METHOD = Method("noise-aware", (), fit)
