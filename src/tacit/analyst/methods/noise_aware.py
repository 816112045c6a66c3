r"""`noise-aware`: the posterior that knows the noise in X'X as well as in X'y.

A finite mixture of Gaussians over τ, one scale of all coefficients but the intercept, and σ²; so
intervals, moments and independent draws are exact. Numbers (N1), (N2), … are those of the equations
in docs/methods.md, "noise-aware".
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.gram import Grams, grams
from tacit.analyst.methods.method import Method, Mixture, Settings
from tacit.analyst.methods.quadrature import gauss_rule
from tacit.analyst.prior import Prior

Array = NDArray[np.float64]

SCALES = np.geomspace(0.01, 1.0, 13)
"""Values of τ; on this grid a uniform law of τ has weights proportional to τ."""
DEGREES = 2.0
"""Degrees of freedom of the coefficients' prior (N9): light enough tails to cover, heavy enough to
spare what stands out."""
ROUNDS = 60
TOLERANCE = 1e-3
"""The fixed point is reached when no E[θ_k²] moves by more than this share."""
DISAGREEMENTS = np.concatenate([[0.0], np.geomspace(1e-3, 0.3, 13)])
"""Values of φ."""
CLEARLY = 3.0
"""Log-likelihood by which a φ or ω above 0 must be better: holders are taken to agree until the
releases say otherwise."""
UNLIKE = np.concatenate([[0.0], np.geomspace(0.03, 3.0, 13)])
"""Values of ω, the sd of holders' residual variances over their mean."""
LEAST_RATIO = 0.02
"""Smallest ρ_j."""
PILOT_SCALE = 0.2
"""τ at which φ is chosen."""
MOST_UNKNOWN = 0.1
"""Share of the response's variance that slopes may leave in doubt, where that is more than what
they are known to explain."""
MOST_LEVEL = 0.05
"""The same for the mean response."""
MOST_SPREAD = 0.5
"""Posterior sd of σ² over its mean above which little is known of it."""
TOO_LITTLE = (
    "The releases carry too little to learn most coefficients from: the noise is larger than what "
    "the data could show; more rows or a larger epsilon would help."
)
VAGUE_RESIDUAL = (
    "The releases say little of the residual variance: predictions are given wider intervals "
    "than they may need."
)


@dataclass(frozen=True)
class _Node:
    """The Gaussian at one (τ, σ²)."""

    log_weight: float
    location: Array
    scale: Array
    noise_variance: float


def fit(evidence: Evidence, prior: Prior, settings: Settings) -> Mixture:
    """Mixture over the scale of the coefficients and the residual variance."""
    facts = _with_ratios(_facts(evidence), evidence, prior, settings)
    facts = _agreeing(facts, evidence, prior, settings)
    nodes: list[_Node] = []
    for tau in SCALES:
        model = _Model(facts, prior, tau, intercept=evidence.intercept)
        law = [(settings.noise_variance, 1.0)] if settings.noise_variance else []
        for variance, weight in law or model.noise_variances(evidence, prior):
            node = model.gaussian(variance)
            nodes.append(replace(node, log_weight=node.log_weight + math.log(weight * tau)))
    unshrunk = _unshrunk(evidence, facts)
    mixture = _mixture(nodes, facts.grams.basis, unshrunk)
    return replace(
        mixture,
        warning=_warning(mixture, facts, unshrunk, intercept=evidence.intercept),
        unshrunk=unshrunk,
        disagreement=facts.disagreement,
    )


def _agreeing(facts: "_Facts", evidence: Evidence, prior: Prior, settings: Settings) -> "_Facts":
    """The facts with the φ of highest marginal likelihood (N8)."""
    if evidence.holders == 1:
        return facts

    def fitness(disagreement: float) -> float:
        differing = replace(facts, disagreement=disagreement)
        model = _Model(differing, prior, PILOT_SCALE, intercept=evidence.intercept)
        variance = settings.noise_variance or _centre(model.noise_variances(evidence, prior))
        return model.gaussian(variance).log_weight

    scores = np.array([fitness(disagreement) for disagreement in DISAGREEMENTS])
    best = int(np.argmax(scores))
    if scores[best] <= scores[0] + CLEARLY:
        return facts
    return replace(facts, disagreement=float(DISAGREEMENTS[best]))


def _with_ratios(facts: "_Facts", evidence: Evidence, prior: Prior, settings: Settings) -> "_Facts":
    """The facts with every holder's ρ_j (N7)."""
    if evidence.holders == 1 or settings.noise_variance is not None:
        return facts
    if evidence.squares is None or evidence.counts is None:
        return facts
    model = _Model(facts, prior, PILOT_SCALE, intercept=evidence.intercept)
    variance = _centre(model.noise_variances(evidence, prior))
    squares, noise = model.residuals(model.gaussian(variance), evidence)
    n = np.maximum(evidence.counts, 1.0)
    apart = squares / (n * variance) - 1
    doubt = 2 / n + noise / (n * variance) ** 2
    spreads = UNLIKE[:, None] ** 2 + doubt
    scores = -0.5 * np.sum(np.log(spreads) + apart**2 / spreads, axis=1)
    best = int(np.argmax(scores))
    if scores[best] < scores[0] + CLEARLY:
        return facts
    ratios = 1 + UNLIKE[best] ** 2 / spreads[best] * apart
    return replace(facts, ratios=np.maximum(ratios, LEAST_RATIO))


def _unshrunk(evidence: Evidence, facts: "_Facts") -> float:
    """Residual variance of rows as they are over that of shrunk rows (N10).

    Without an intercept, or a count, nothing tells: the residual variance is then that of shrunk
    rows.
    """
    if not evidence.intercept or evidence.counts is None:
        return 1.0
    first = facts.grams.basis[0]
    n = evidence.average * float(np.maximum(evidence.counts, 1.0).sum())
    return n / float(np.clip(first @ facts.sampling.sum(axis=0) @ first, n / 100, n))


def _warning(mixture: Mixture, facts: "_Facts", unshrunk: float, *, intercept: bool) -> str:
    """What the releases cannot support, by the posterior's account of the response's variance."""
    basis = facts.grams.basis
    gram = unshrunk * basis @ facts.sampling.sum(axis=0) @ basis.T / facts.grams.sizes.sum()
    covariance = mixture.covariance()
    level = 0.0
    if intercept:
        middle = gram[0] / max(gram[0, 0], 1e-12)
        level = float(middle @ covariance @ middle)
        gram = gram - np.outer(middle, gram[0])
    first = int(intercept)
    slopes = mixture.mean()[first:]
    known = float(slopes @ gram[first:, first:] @ slopes)
    unknown = float(np.sum(gram[first:, first:] * covariance[first:, first:]))
    residual = float(mixture.weights @ mixture.noise_variances)
    total = residual + known + unknown
    if level > MOST_LEVEL * total or (unknown > known and unknown > MOST_UNKNOWN * total):
        return TOO_LITTLE
    square = float(mixture.weights @ mixture.noise_variances**2)
    spread = math.sqrt(max(square - residual**2, 0.0))
    return VAGUE_RESIDUAL if spread > MOST_SPREAD * residual else ""


def _mixture(nodes: list[_Node], basis: Array, unshrunk: float) -> Mixture:
    logs = np.array([node.log_weight for node in nodes])
    weights = np.exp(logs - logs.max())
    return Mixture(
        weights=weights / weights.sum(),
        locations=np.array([basis @ node.location for node in nodes]),
        covariances=np.array([basis @ node.scale @ basis.T for node in nodes]),
        noise_variances=unshrunk * np.array([node.noise_variance for node in nodes]),
    )


@dataclass(frozen=True)
class _Facts:
    """What does not change from node to node, in the eigenbasis."""

    grams: Grams
    moments: Array  # (J, d): U'ẑ_j
    moment_variance: Array  # (J,): σ_z²
    sampling: Array  # (J, d, d): S̄_j without its negative part
    ratios: Array  # (J,): ρ_j
    disagreement: float = 0.0  # φ


def _facts(evidence: Evidence) -> _Facts:
    posterior = grams(evidence)
    values, vectors = np.linalg.eigh(posterior.mean)
    sampling = np.einsum("jab,jb,jcb->jac", vectors, np.maximum(values, 0.0), vectors)
    size = np.einsum("jaa->j", sampling) / evidence.d
    rounding = 1e-12 * (1 + size) ** 2  # exact statistics have no noise
    return _Facts(
        grams=posterior,
        moments=evidence.moments @ posterior.basis,
        moment_variance=np.maximum(evidence.moment_sd**2, rounding),
        sampling=sampling,
        ratios=np.ones(evidence.holders),
    )


class _Model:
    """The Gaussian model (N5) of (θ, c) at one τ.

    `gaussian` solves it at a σ², starting from where it last was.
    """

    def __init__(self, facts: _Facts, prior: Prior, tau: float, *, intercept: bool) -> None:
        self.facts = facts
        self.basis = facts.grams.basis
        self.mean = self.basis.T @ prior.mean
        self.residual = facts.moments - facts.grams.mean @ self.mean
        self.free = np.arange(prior.d) >= int(intercept)  # τ and λ leave the intercept alone
        scales = np.where(self.free, tau, 1.0)
        self.covariance = prior.covariance * np.outer(scales, scales)
        self._set_prior(np.ones(prior.d))
        self.square = np.outer(self.mean, self.mean)
        self.second = np.linalg.inv(self.precision) + self.square  # E[θθ']

    def _set_prior(self, stretch: Array) -> None:
        """Prior precision of θ at local scales λ = `stretch`."""
        root = np.sqrt(stretch)
        precision = np.linalg.inv(self.covariance * np.outer(root, root))
        self.precision = self.basis.T @ precision @ self.basis
        self.log_precision = float(np.linalg.slogdet(precision)[1])

    def _stretch(self) -> float:
        """Set λ from E[(θ − m)²] (N9); returns what the Student law adds to the bound."""
        spread = self.second - self.square  # of θ about the prior mean, to first order
        squares = np.einsum("ab,bc,ac->a", self.basis, spread, self.basis)
        size = np.maximum(squares[self.free] / np.diag(self.covariance)[self.free], 0.0)
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
        """The least squares of (θ, c) over all holders, each whitened by its Ω_j."""
        grams = self.facts.grams
        d = len(self.mean)
        root = np.linalg.cholesky(self._covariances(noise_variance))
        shared_root = _square_root(_spread(grams.shared_variance, self.second))
        shared = grams.sizes[:, None, None] * shared_root
        design = np.concatenate([grams.mean, shared, self.residual[..., None]], axis=2)
        flat = np.linalg.solve(root, design).reshape(-1, 2 * d + 1)
        normal = flat.T @ flat
        precision = normal[:-1, :-1].copy()
        precision[:d, :d] += self.precision
        precision[d:, d:] += np.eye(d)
        factor = np.linalg.cholesky(precision)
        half = np.linalg.solve(factor, normal[:-1, -1])
        covariance = np.linalg.inv(precision)
        location = self.mean + (covariance @ normal[:-1, -1])[:d]
        determinant = 2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum()
        determinant += 2 * np.log(np.diag(factor)).sum()
        fitness = -0.5 * (determinant - self.log_precision + normal[-1, -1] - half @ half)
        return _Node(
            log_weight=float(fitness),
            location=location,
            scale=covariance[:d, :d],
            noise_variance=noise_variance,
        )

    def _covariances(self, noise_variance: float) -> Array:
        """Every holder's Ω_j (N5), with the φ of (N8), (J, d, d)."""
        facts = self.facts
        total = noise_variance * facts.ratios[:, None, None] * facts.sampling
        total = total + _spread(facts.grams.own_variance, self.second)
        total += facts.moment_variance[:, None, None] * np.eye(len(self.mean))
        if facts.disagreement > 0:
            total += facts.disagreement**2 * facts.sampling @ facts.sampling
        return total

    def noise_variances(self, evidence: Evidence, prior: Prior) -> list[tuple[float, float]]:
        """Values of σ² and their weights: its prior and, where y'y is published, (N6)."""

        def inverse_gamma(log_variance: Array) -> Array:
            return -prior.shape * log_variance - prior.rate * np.exp(-log_variance)

        if evidence.squares is None or evidence.square_sd is None or evidence.counts is None:
            return gauss_rule(inverse_gamma)
        log_prior = _log_uniform if prior.flat_noise else inverse_gamma
        n = float(np.maximum(evidence.counts, 1.0).sum())
        law = gauss_rule(inverse_gamma)
        for _ in range(3):
            squares, noise = self.residuals(self.gaussian(_centre(law)), evidence)
            total = float(squares.sum())
            law = gauss_rule(partial(_log_posterior, log_prior, total, float(noise.sum()), n))
        return law

    def residuals(self, node: _Node, evidence: Evidence) -> tuple[Array, Array]:
        """Every holder's residual sum of squares (N6) and the variance of its noise, (J,) each."""
        if evidence.squares is None or evidence.square_sd is None:
            raise AssertionError("whoever asks has checked")  # pragma: no cover
        squares = evidence.squares - 2 * self.facts.moments @ node.location
        squares = squares + np.einsum("jab,ab->j", self.facts.sampling, self.second)
        size = float(np.trace(self.second))
        noise = evidence.square_sd**2 + 4 * evidence.moment_sd**2 * size
        return squares, noise + evidence.gram_sd**2 * size**2


def _log_uniform(log_variance: Array) -> Array:
    """Density of log σ² where σ² is uniform on (0, 1].

    A response in [−1, 1] has no larger variance.
    """
    return np.where(log_variance <= 0, log_variance, -np.inf)


def _log_posterior(
    log_prior: Callable[[Array], Array], squares: float, noise: float, n: float, log_variance: Array
) -> Array:
    """Density of log σ² given a residual sum of squares, as (N6) has it."""
    variance = 2 * n * np.exp(2 * log_variance) + noise + 1e-300
    deviation = squares - n * np.exp(log_variance)
    return log_prior(log_variance) - 0.5 * (np.log(variance) + deviation**2 / variance)


def _centre(law: list[tuple[float, float]]) -> float:
    """σ² at the mean of σ."""
    return sum(weight * math.sqrt(variance) for variance, weight in law) ** 2


def _spread(variance: Array, second: Array) -> Array:
    """Cov(Mθ) of symmetric M with independent entries of these variances, E[θθ'] = `second`."""
    covariance = variance * second
    diagonal = range(second.shape[0])
    covariance[..., diagonal, diagonal] = variance @ np.diag(second)
    return covariance


def _square_root(covariance: Array) -> Array:
    values, vectors = np.linalg.eigh(covariance)
    root: Array = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


METHOD = Method(name="noise-aware", fit=fit, computed=True)
