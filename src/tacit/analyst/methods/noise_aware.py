r"""`noise-aware`: the posterior that knows the noise in X'X as well as in X'y. Closed form up to a small quadrature.

With S_j = S̄_j + M_j from `gram.py` (M_j what remains unknown of X'X), ẑ_j = S̄_jθ + M_jθ + e_j + v_j, so

    ẑ_j | θ ~ N(S̄_jθ + n_j c, Ω_j),    Ω_j = σ²S̄_j + σ_z²I + Cov(M_jθ),    c ~ N(0, Cov(M_shared θ)),

where c is the error that holders share because they share B. Ω_j and Cov(c) depend on θ through E[θθ'] alone, which is
iterated to a fixed point; given it, (θ, c) is Gaussian. What remains is two-dimensional:

- σ², the residual variance of shrunk rows. It is read off y'y − 2θ'z + θ'Sθ = Σe² where y'y is published (that sum has
  mean nσ², and variance 2nσ⁴ plus that of its noise), and is left to the prior where it is not. Using shrunk rows' own
  residual variance makes Cov(z | X) = Σ α⁴e²xx' equal σ²S on average, whatever the factors α were.
  Holders whose residual variances σ_j² clearly differ get their own, ρ_jσ²: each is read off that holder's part of the sum and shrunk
  towards σ² by what the releases leave in doubt of it, so that a small holder keeps σ². Under a common σ² a coefficient that mostly
  the noisier holders tell of would have too narrow an interval.
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
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.gram import Grams, grams
from tacit.analyst.methods.method import Method, Mixture, Settings
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
"""Log-likelihood by which a φ or ω above 0 must be better: holders are taken to agree until the releases say otherwise."""
UNLIKE = np.concatenate([[0.0], np.geomspace(0.03, 3.0, 13)])
"""Values of ω, the sd of holders' residual variances over their mean."""
LEAST_RATIO = 0.02
"""Smallest ρ_j."""
PILOT_SCALE = 0.2
"""τ at which φ is chosen."""
NEGLIGIBLE = 30.0
"""Log-density of σ² this far below the top does not count."""
MOST_UNKNOWN = 0.1
"""Share of the response's variance that slopes may leave in doubt, where that is more than what they are known to explain."""
MOST_LEVEL = 0.05
"""The same for the mean response."""
MOST_SPREAD = 0.5
"""Posterior sd of σ² over its mean above which little is known of it."""
TOO_LITTLE = (
    "The releases carry too little to learn most coefficients from: the noise is larger than what the data could show; "
    "more rows or a larger epsilon would help."
)
VAGUE_RESIDUAL = "The releases say little of the residual variance: predictions are given wider intervals than they may need."


@dataclass(frozen=True)
class _Node:
    """The Gaussian at one (τ, σ²)."""

    log_weight: float
    location: Array
    scale: Array
    noise_variance: float


def fit(evidence: Evidence, prior: Prior, settings: Settings) -> Mixture:
    """Mixture over the scale of the coefficients and the residual variance."""
    facts = _agreeing(
        _with_ratios(_facts(evidence), evidence, prior, settings), evidence, prior, settings
    )
    basis = facts.grams.basis
    nodes: list[_Node] = []
    for tau in SCALES:
        model = _Model(facts, prior, tau, intercept=evidence.intercept)
        law = (
            model.noise_variances(evidence, prior)
            if settings.noise_variance is None
            else [(settings.noise_variance, 1.0)]
        )
        for variance, weight in law:
            node = model.gaussian(variance)
            nodes.append(replace(node, log_weight=node.log_weight + math.log(weight * tau)))
    unshrunk = _unshrunk(evidence, facts)
    found = _mixture(nodes, basis, unshrunk)
    warning = _warning(found, facts, unshrunk, intercept=evidence.intercept)
    return replace(found, warning=warning, unshrunk=unshrunk, disagreement=facts.disagreement)


def _agreeing(facts: "_Facts", evidence: Evidence, prior: Prior, settings: Settings) -> "_Facts":
    """The facts with the φ of highest marginal likelihood."""
    if evidence.holders == 1:
        return facts

    def fitness(disagreement: float) -> float:
        model = _Model(
            replace(facts, disagreement=disagreement),
            prior,
            PILOT_SCALE,
            intercept=evidence.intercept,
        )
        variance = settings.noise_variance or _centre(model.noise_variances(evidence, prior))
        return model.gaussian(variance).log_weight

    scores = np.array([fitness(disagreement) for disagreement in DISAGREEMENTS])
    best = int(np.argmax(scores))
    return (
        replace(facts, disagreement=float(DISAGREEMENTS[best]))
        if scores[best] > scores[0] + CLEARLY
        else facts
    )


def _with_ratios(facts: "_Facts", evidence: Evidence, prior: Prior, settings: Settings) -> "_Facts":
    """The facts with every holder's ρ_j: 1 + ω²/(ω² + v_j)·(its residual sum of squares over n_jσ², less 1), v_j the variance of that."""
    if (
        evidence.holders == 1
        or evidence.squares is None
        or evidence.counts is None
        or settings.noise_variance is not None
    ):
        return facts
    model = _Model(facts, prior, PILOT_SCALE, intercept=evidence.intercept)
    variance, n = _centre(model.noise_variances(evidence, prior)), np.maximum(evidence.counts, 1.0)
    squares, noise = model.residuals(model.gaussian(variance), evidence)
    apart, doubt = squares / (n * variance) - 1, 2 / n + noise / (n * variance) ** 2
    spreads = UNLIKE[:, None] ** 2 + doubt
    scores = -0.5 * np.sum(np.log(spreads) + apart**2 / spreads, axis=1)
    best = int(np.argmax(scores))
    if scores[best] < scores[0] + CLEARLY:
        return facts
    return replace(
        facts, ratios=np.maximum(1 + UNLIKE[best] ** 2 / spreads[best] * apart, LEAST_RATIO)
    )


def _unshrunk(evidence: Evidence, facts: "_Facts") -> float:
    """Residual variance of rows as they are over that of shrunk rows: n/Σα², where Σα² is the intercept's entry of X'X.

    Where rows are averaged, that entry is about n times the square of the mean α: the same where factors differ little. Without an
    intercept, or a count, nothing tells: the residual variance is then that of shrunk rows.
    """
    if not evidence.intercept or evidence.counts is None:
        return 1.0
    first = facts.grams.basis[0]
    n = evidence.average * float(np.maximum(evidence.counts, 1.0).sum())
    return n / float(np.clip(first @ facts.sampling.sum(axis=0) @ first, n / 100, n))


def _warning(found: Mixture, facts: "_Facts", unshrunk: float, *, intercept: bool) -> str:
    """What the releases cannot support, from the posterior's own account of the response's variance."""
    basis, first = facts.grams.basis, int(intercept)
    gram = unshrunk * basis @ facts.sampling.sum(axis=0) @ basis.T / facts.grams.sizes.sum()
    mean, covariance = found.mean(), found.covariance()
    level = 0.0
    if intercept:
        middle = gram[0] / max(gram[0, 0], 1e-12)
        level = float(middle @ covariance @ middle)
        gram = gram - np.outer(middle, gram[0])
    slopes = mean[first:]
    known = float(slopes @ gram[first:, first:] @ slopes)
    unknown = float(np.sum(gram[first:, first:] * covariance[first:, first:]))
    residual = float(found.weights @ found.noise_variances)
    total = residual + known + unknown
    if level > MOST_LEVEL * total or (unknown > known and unknown > MOST_UNKNOWN * total):
        return TOO_LITTLE
    spread = math.sqrt(max(float(found.weights @ found.noise_variances**2) - residual**2, 0.0))
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
    found = grams(evidence)
    values, vectors = np.linalg.eigh(found.mean)
    sampling = np.einsum("jab,jb,jcb->jac", vectors, np.maximum(values, 0.0), vectors)
    size = np.einsum("jaa->j", sampling) / evidence.d
    variance = np.maximum(
        evidence.moment_sd**2, 1e-12 * (1 + size) ** 2
    )  # exact statistics have no noise
    return _Facts(
        found, evidence.moments @ found.basis, variance, sampling, np.ones(evidence.holders)
    )


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
        spread = self.second - np.outer(
            self.mean, self.mean
        )  # of θ about the prior mean, up to terms of first order
        size = (
            np.einsum("ab,bc,ac->a", self.basis, spread, self.basis)[self.free]
            / np.diag(self.covariance)[self.free]
        )
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
        total = noise_variance * facts.ratios[:, None, None] * facts.sampling + _spread(
            found.own_variance, self.second
        )
        total += facts.moment_variance[:, None, None] * np.eye(d)
        if facts.disagreement > 0:
            total += facts.disagreement**2 * facts.sampling @ facts.sampling
        root = np.linalg.cholesky(total)
        shared = found.sizes[:, None, None] * _square_root(
            _spread(found.shared_variance, self.second)
        )
        design = np.linalg.solve(
            root, np.concatenate([found.mean, shared, self.residual[..., None]], axis=2)
        )
        flat = design.reshape(-1, 2 * d + 1)
        normal = flat.T @ flat
        precision = normal[:-1, :-1].copy()
        precision[:d, :d] += self.precision
        precision[d:, d:] += np.eye(d)
        factor = np.linalg.cholesky(precision)
        half = np.linalg.solve(factor, normal[:-1, -1])
        covariance = np.linalg.inv(precision)
        location = self.mean + (covariance @ normal[:-1, -1])[:d]
        determinant = (
            2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum()
            + 2 * np.log(np.diag(factor)).sum()
        )
        fitness = -0.5 * (determinant - self.log_precision + normal[-1, -1] - half @ half)
        return _Node(float(fitness), location, covariance[:d, :d], noise_variance)

    def noise_variances(self, evidence: Evidence, prior: Prior) -> list[tuple[float, float]]:
        """Values of σ² and their weights: its prior and, where y'y is published, the residual sum of squares."""

        def inverse_gamma(log_variance: Array) -> Array:
            return -prior.shape * log_variance - prior.rate * np.exp(-log_variance)

        if evidence.squares is None or evidence.square_sd is None or evidence.counts is None:
            return _quadrature(inverse_gamma)
        log_prior = _log_uniform if prior.flat_noise else inverse_gamma
        n, law = float(np.maximum(evidence.counts, 1.0).sum()), _quadrature(inverse_gamma)
        for _ in range(3):
            squares, noise = self.residuals(self.gaussian(_centre(law)), evidence)
            law = _quadrature(
                partial(_log_posterior, log_prior, float(squares.sum()), float(noise.sum()), n)
            )
        return law

    def residuals(self, node: _Node, evidence: Evidence) -> tuple[Array, Array]:
        """Every holder's residual sum of squares u − 2θ'z + θ'Sθ, averaged over θ, and the variance of its noise, (J,) each."""
        if (
            evidence.squares is None or evidence.square_sd is None
        ):  # pragma: no cover  (who asks has checked)
            raise AssertionError
        size = float(np.trace(self.second))
        squares = (
            evidence.squares
            - 2 * self.facts.moments @ node.location
            + np.einsum("jab,ab->j", self.facts.sampling, self.second)
        )
        noise = (
            evidence.square_sd**2 + 4 * evidence.moment_sd**2 * size + evidence.gram_sd**2 * size**2
        )
        return squares, noise


def _log_uniform(log_variance: Array) -> Array:
    """Density of log σ² where σ² is uniform on (0, 1]: a response in [−1, 1] has no larger variance."""
    return np.where(log_variance <= 0, log_variance, -np.inf)


def _log_posterior(
    log_prior: Callable[[Array], Array], squares: float, noise: float, n: float, log_variance: Array
) -> Array:
    """Density of log σ² given a residual sum of squares with mean nσ² and variance 2nσ⁴ + `noise`."""
    variance = 2 * n * np.exp(2 * log_variance) + noise + 1e-300
    density: Array = log_prior(log_variance) - 0.5 * (
        np.log(variance) + (squares - n * np.exp(log_variance)) ** 2 / variance
    )
    return density


def _centre(law: list[tuple[float, float]]) -> float:
    """σ² at the mean of σ."""
    return sum(weight * math.sqrt(variance) for variance, weight in law) ** 2


def _quadrature(log_density: Callable[[Array], Array]) -> list[tuple[float, float]]:
    """Three-point Gauss rule in σ for a law of log σ², by Lanczos steps on a net that is narrowed down to where the mass is."""
    grid = np.linspace(-16.0, 3.0, 400)
    for _ in range(3):
        logs = log_density(grid)
        mass = grid[logs > logs.max() - NEGLIGIBLE]
        step = grid[1] - grid[0]
        grid = np.linspace(mass[0] - step, mass[-1] + step, 400)
    logs = log_density(grid)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    sigma = np.exp(grid / 2)
    centre = float(weights @ sigma)
    vectors, jacobi = [np.sqrt(weights)], np.zeros((3, 3))
    for k in range(3):
        image = (sigma / centre - 1) * vectors[k]
        jacobi[k, k] = vectors[k] @ image
        for vector in vectors:
            image -= (vector @ image) * vector
        if k + 1 < len(jacobi):
            jacobi[k, k + 1] = jacobi[k + 1, k] = norm = float(np.linalg.norm(image))
            vectors.append(image / max(norm, 1e-300))
    places, axes = np.linalg.eigh(jacobi)
    return [
        ((centre * (1 + place)) ** 2, axis**2)
        for place, axis in zip(places.tolist(), axes[0].tolist(), strict=True)
        if axis != 0.0
    ]


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
