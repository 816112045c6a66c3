r"""The samplers of the published code, step by step, for the columns "as published".

They aim at the same posteriors as the package's kernels where those exist, and reach them less
well; what they do differently is why the printed numbers are what they are.

**normal-x.** Start: θ = 0, σ² = Y/3, $S_j$ the nearest positive semi-definite matrix to $\hat S_j$
plus I. Proposals $W(S_j/\alpha_j, \alpha_j)$ with $\alpha_j = n_j^2/100$ at first. After a tenth of
the run $\log\alpha_j$ falls by $i^{-0.6}(r_j - 0.1)$ at iteration i, and never stops doing so; r is
a running mean of acceptances with the same gain. σ² walks on its own scale with sd 0.1. Λ is V'V
with V standard normal, on public data too: a prior that comes from nowhere.

**bernstein-sheldon.** The statistics are drawn from their Gaussian law without restriction to the
cone. Their total X'X is projected to the cone and I is added to it, at every iteration; the rate of
σ² is held above b. The prior is a precision of 0.0263 I, times σ⁻². Every holder starts from the
first one's release.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from experiments.run.dense import fourth_moments, noise_variances
from tacit.analyst.evidence import Evidence
from tacit.analyst.methods import bernstein_sheldon
from tacit.analyst.methods.linear import solve_vector
from tacit.analyst.methods.normal_x import metropolis
from tacit.analyst.methods.normal_x.model import (
    Problem,
    covariance_factor,
    draw_theta,
    problem_of,
    whitened,
)
from tacit.analyst.methods.sampling import double_precision, jax, jnp, random
from tacit.analyst.methods.wishart import bartlett, gamma
from tacit.analyst.prior import Prior

TARGET = 0.1
"""Acceptance that proposals of S_j are adapted to."""
DECAY = -0.6
"""Power of the iteration in the adaptation's gain."""
WALK = 0.1
"""Standard deviation of σ²'s walk."""


def nearest(matrix: jax.Array) -> jax.Array:
    """The nearest positive semi-definite matrix, plus I."""
    values, vectors = jnp.linalg.eigh(matrix)
    raised = (vectors * jnp.maximum(values, 0.0)[..., None, :]) @ vectors.swapaxes(-1, -2)
    return raised + jnp.eye(matrix.shape[-1])


class Started(NamedTuple):
    """A problem of normal-x and the variance that chains start from."""

    problem: Problem
    variance: jax.Array


class NormalState(NamedTuple):
    """Where a chain is."""

    theta: jax.Array
    noise_variance: jax.Array
    grams: metropolis.FactoredGrams
    log_alpha: jax.Array  # (J,)
    rate: jax.Array  # (J,): running mean of acceptances
    iteration: jax.Array


class Info(NamedTuple):
    """What a step did."""

    acceptance: jax.Array


@dataclass(frozen=True)
class PublishedNormalX:
    """Σ, then every S_j, then θ, then σ²; `iterations` is the length of the run."""

    iterations: int = 10_000
    blocks: ClassVar[tuple[str, ...]] = ("grams", "noise_variance")

    def init(self, key: jax.Array, started: Started) -> NormalState:
        """The same for every chain."""
        del key
        problem = started.problem
        holders, d = problem.moments.shape
        matrix = nearest(problem.grams)
        return NormalState(
            theta=jnp.zeros(d),
            noise_variance=started.variance,
            grams=metropolis.FactoredGrams(
                matrix=matrix,
                factor=jnp.linalg.cholesky(matrix),
                covariance_factor=covariance_factor(matrix, started.variance, problem),
            ),
            log_alpha=2 * jnp.log(problem.counts) - jnp.log(100.0),
            rate=jnp.zeros(holders),
            iteration=jnp.zeros(()),
        )

    def step(
        self, key: jax.Array, state: NormalState, started: Started, gain: jax.Array
    ) -> tuple[NormalState, Info]:
        """One sweep; adaptation has its own gain."""
        del gain
        problem = started.problem
        key_bartlett, key_normal, key_uniform = random.split(key, 3)
        holders, d = problem.moments.shape
        normal = random.normal(key_normal, (d + 1,))
        uniform = random.uniform(key_uniform, (holders + 1,))
        alpha = jnp.maximum(jnp.exp(state.log_alpha), float(d))
        of_features = problem.feature_degrees + problem.counts.sum()
        factors = bartlett(key_bartlett, jnp.append(alpha, of_features), d)
        precision = metropolis.draw_feature_precision(factors[-1], state.grams, problem)
        walker = metropolis.State(
            theta=state.theta,
            noise_variance=state.noise_variance,
            grams=state.grams,
            feature_precision=precision,
            log_spread=-0.5 * jnp.log(alpha - d + 1),
            log_step=jnp.zeros(()),
        )
        grams, _ = metropolis.move_grams(uniform[1:], walker, factors[:-1], problem)
        accepted = jnp.any(grams.matrix != state.grams.matrix, (-2, -1)).astype(alpha.dtype)
        regression = whitened(grams.matrix, grams.covariance_factor, problem)
        theta = draw_theta(normal[1:], regression, problem)
        moved = state._replace(theta=theta, grams=grams)
        moved, walked = move_variance(normal[0], uniform[0], moved, problem)
        iteration = state.iteration + 1
        speed = iteration**DECAY
        rate = (1 - speed) * state.rate + speed * accepted
        late = iteration > self.iterations / 10
        moved = moved._replace(
            log_alpha=state.log_alpha - jnp.where(late, speed * (rate - TARGET), 0.0),
            rate=rate,
            iteration=iteration,
        )
        return moved, Info(acceptance=jnp.stack([accepted.mean(), walked]))


def log_density(
    variance: jax.Array, factor: jax.Array, state: NormalState, problem: Problem
) -> jax.Array:
    """Of σ² itself, given θ and S, up to a constant."""
    residuals = solve_vector(factor, problem.moments - state.grams.matrix @ state.theta)
    walked = jnp.log(variance)
    return metropolis.log_variance_density(walked, residuals, factor, problem) - walked


def move_variance(
    normal: jax.Array, uniform: jax.Array, state: NormalState, problem: Problem
) -> tuple[NormalState, jax.Array]:
    """A random walk on σ²; what is not positive is refused."""
    proposed = state.noise_variance + WALK * normal
    positive = proposed > 0
    safe = jnp.where(positive, proposed, state.noise_variance)
    grams = state.grams
    factor = covariance_factor(grams.matrix, safe, problem)
    after = log_density(safe, factor, state, problem)
    before = log_density(state.noise_variance, grams.covariance_factor, state, problem)
    accepted = positive & (jnp.log(uniform) < after - before)
    kept = jnp.where(accepted, factor, grams.covariance_factor)
    moved = state._replace(
        noise_variance=jnp.where(accepted, safe, state.noise_variance),
        grams=grams._replace(covariance_factor=kept),
    )
    return moved, accepted.astype(proposed.dtype)


def started_of(evidence: Evidence, prior: Prior, response_bound: float) -> Started:
    """The problem of normal-x with its start."""
    with double_precision():
        return Started(problem_of(evidence, prior), jnp.asarray(response_bound / 3))


# bernstein-sheldon.


class SheldonState(NamedTuple):
    """Parameters, and the features' covariance."""

    theta: jax.Array
    noise_variance: jax.Array
    features: jax.Array  # (d, d): Σ


class SheldonStarted(NamedTuple):
    """A problem of bernstein-sheldon and the variance that chains start from."""

    problem: bernstein_sheldon.Problem
    variance: jax.Array


def draw_statistics(
    key: jax.Array, gamma_: jax.Array, problem: bernstein_sheldon.Problem
) -> jax.Array:
    r"""Every $G_j$ given its release and Γ, (J, p, p), from the unrestricted Gaussian law.

    $G_0 = n\Gamma + \sqrt{2n}\,LZL'$ with $\Gamma = LL'$ has the law's mean and covariance nV;
    $s_0 + nV(nV + R)^{-1}(\hat s - \hat s_0)$ is then a draw given the release.
    """
    holders, p = problem.released.shape[:2]
    key_own, key_noise = random.split(key)
    lower = jnp.tril_indices(p)
    n = problem.counts[:, None, None]
    values, vectors = jnp.linalg.eigh(gamma_)
    root = vectors * jnp.sqrt(jnp.maximum(values, 0.0))
    own = bernstein_sheldon.standard_symmetric(key_own, holders, p)
    first = n * gamma_ + jnp.sqrt(2 * n) * (root @ own @ root.T)
    noise = noise_variances(problem)
    entries = first[:, *lower]
    seen = entries + jnp.sqrt(noise) * random.normal(key_noise, noise.shape)
    covariance = n * fourth_moments(gamma_)
    total = covariance + noise[:, :, None] * jnp.eye(noise.shape[-1])
    weights = jax.vmap(lambda matrix, side: jax.scipy.linalg.solve(matrix, side, assume_a="pos"))(
        total, problem.released[:, *lower] - seen
    )
    drawn = entries + jnp.einsum("jab,jb->ja", covariance, weights)
    full = jnp.zeros((holders, p, p)).at[:, *lower].set(drawn)
    return full + jnp.tril(full, -1).swapaxes(-1, -2)


def draw_parameters(
    key: jax.Array, total: jax.Array, problem: bernstein_sheldon.Problem
) -> SheldonState:
    """Σ, σ² and θ given the total of the statistics, whose X'X is made positive and gets + I."""
    key_features, key_variance, key_theta = random.split(key, 3)
    gram = nearest(total[:-1, :-1])
    degrees = problem.feature_degrees + problem.counts.sum()
    features = bernstein_sheldon.inverse_wishart(
        key_features, problem.feature_scale + gram, degrees
    )
    root = jnp.linalg.cholesky(gram + problem.precision)
    shift = total[:-1, -1] + problem.precision @ problem.mean
    half = solve_vector(root, shift)
    quadratic = problem.mean @ problem.precision @ problem.mean
    rate = problem.rate + 0.5 * (total[-1, -1] + quadratic - half @ half)
    rate = jnp.maximum(rate, problem.rate)
    variance = rate / gamma(key_variance, problem.shape + problem.counts.sum() / 2)
    noise = jnp.sqrt(variance) * random.normal(key_theta, shift.shape)
    theta = solve_vector(root, half + noise, transpose=True)
    return SheldonState(theta=theta, noise_variance=variance, features=features)


@dataclass(frozen=True)
class PublishedSheldon:
    """The statistics, then the parameters."""

    blocks: ClassVar[tuple[str, ...]] = ("statistics",)

    def init(self, key: jax.Array, started: SheldonStarted) -> SheldonState:
        """θ = 0, σ² = Y/3, Σ given J times the first holder's X'X."""
        problem = started.problem
        holders = problem.released.shape[0]
        d = problem.mean.shape[0]
        first = nearest(problem.released[0, :-1, :-1])
        gram = nearest(holders * first)
        degrees = problem.feature_degrees + problem.counts.sum()
        return SheldonState(
            theta=jnp.zeros(d),
            noise_variance=started.variance,
            features=bernstein_sheldon.inverse_wishart(key, problem.feature_scale + gram, degrees),
        )

    def step(
        self, key: jax.Array, state: SheldonState, started: SheldonStarted, gain: jax.Array
    ) -> tuple[SheldonState, Info]:
        """Every draw is taken."""
        del gain
        key_statistics, key_parameters = random.split(key)
        gamma_ = bernstein_sheldon.joint_covariance(state)  # type: ignore[arg-type]
        statistics = draw_statistics(key_statistics, gamma_, started.problem)
        moved = draw_parameters(key_parameters, statistics.sum(0), started.problem)
        return moved, Info(acceptance=jnp.ones(1))


def sheldon_started(
    evidence: Evidence, prior: Prior, response_bound: float
) -> tuple[SheldonStarted, float]:
    """The problem of bernstein-sheldon with its start, and the unit of its response."""
    problem, stretch = bernstein_sheldon.problem_of(evidence, prior)
    with double_precision():
        start = jnp.asarray(stretch**2 * response_bound / 3)
    return SheldonStarted(problem, start), stretch
