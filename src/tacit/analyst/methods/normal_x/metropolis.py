r"""`normal-x` by the paper's kernel, MCMC-normalX.

One iteration draws Σ | S; moves every S_j by Metropolis–Hastings; draws θ | S, σ²; moves σ² by a
random walk on its logarithm. Alparslan, Yıldırım and Birbil (2023), Algorithm 1; adaptation ends
with warm-up here. Numbers (X1), (X2), … are those of the equations in docs/methods.md, "normal-x".
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.linear import log_diagonal, lower_factor, solve, solve_vector
from tacit.analyst.methods.method import Draws, Settings
from tacit.analyst.methods.normal_x.model import (
    Problem,
    Whitened,
    covariance_factor,
    draw_theta,
    positive_factor,
    problem_of,
    whitened,
)
from tacit.analyst.methods.sampling import adapt, jax, jnp, metropolis, random, run
from tacit.analyst.methods.wishart import bartlett, gamma
from tacit.analyst.prior import Prior

GRAM_TARGET = 0.2
"""Acceptance of the Gram proposals, as in the paper."""
VARIANCE_TARGET = 0.44
"""Acceptance of a one-dimensional random walk, Gelman, Roberts and Gilks (1996)."""


class FactoredGrams(NamedTuple):
    """The matrices S_j with what is known of them; J holders first."""

    matrix: jax.Array  # (J, d, d)
    factor: jax.Array  # (J, d, d): L_j, S_j = L_jL_j'
    covariance_factor: jax.Array  # (J, d, d): K_j, σ²S_j + τ_j²I = K_jK_j'


class State(NamedTuple):
    """Where a chain is."""

    theta: jax.Array
    noise_variance: jax.Array
    grams: FactoredGrams
    feature_precision: jax.Array  # (d, d): Σ⁻¹
    log_spread: jax.Array  # (J,): log of the size h_j of Gram proposals
    log_step: jax.Array  # log of the random walk's sd


class Info(NamedTuple):
    """What a step did."""

    acceptance: jax.Array


def log_target(
    grams: FactoredGrams, theta: jax.Array, feature_precision: jax.Array, problem: Problem
) -> jax.Array:
    """Log-density (X5) of every S_j given θ, σ², Σ and the releases, (J,), up to a constant."""
    d = theta.shape[0]
    residuals = solve_vector(grams.covariance_factor, problem.moments - grams.matrix @ theta)
    moment = -0.5 * jnp.sum(residuals**2, -1) - log_diagonal(grams.covariance_factor)
    trace = jnp.sum(feature_precision * grams.matrix, (-2, -1))
    wishart = (problem.counts - d - 1) * log_diagonal(grams.factor) - 0.5 * trace
    errors = ((grams.matrix - problem.grams) / problem.gram_sds) ** 2
    once = 0.5 + 0.5 * jnp.eye(d)  # both triangles are summed
    return moment + wishart - 0.5 * jnp.sum(once * errors, (-2, -1))


def proposal_degrees(log_spread: jax.Array, d: int) -> jax.Array:
    r"""α of a proposal: $d - 1 + h^{-2}$, so that its relative sd is about $h\sqrt2$."""
    return d - 1 + jnp.exp(-2 * log_spread)


def log_proposal_ratio(bartlett_factor: jax.Array, degrees: jax.Array) -> jax.Array:
    r"""$\log q(S\mid S') - \log q(S'\mid S)$ for a proposal S' of (X6), given its factor A."""
    d = bartlett_factor.shape[-1]
    inverse = solve(bartlett_factor, jnp.broadcast_to(jnp.eye(d), bartlett_factor.shape))
    growth = 2 * log_diagonal(bartlett_factor) - d * jnp.log(degrees)
    forward = jnp.sum(bartlett_factor**2, (-2, -1)) / degrees
    backward = degrees * jnp.sum(inverse**2, (-2, -1))
    return -(degrees - (d + 1) / 2) * growth + degrees / 2 * (forward - backward)


def draw_feature_precision(
    bartlett_factor: jax.Array, grams: FactoredGrams, problem: Problem
) -> jax.Array:
    """Draw Σ⁻¹ from (X3), given a Bartlett factor of κ + n degrees."""
    scale = lower_factor(problem.feature_scale + grams.matrix.sum(0))
    root = solve(scale, bartlett_factor, transpose=True)
    return root @ root.T


def log_variance_density(
    log_variance: jax.Array, residuals: jax.Array, factor: jax.Array, problem: Problem
) -> jax.Array:
    r"""Log-density (X7) of t = log σ² given θ and S, up to a constant.

    From whitened residuals $K_j^{-1}(\hat z_j - S_j\theta)$ and the factors K_j at t.
    """
    likelihood = -0.5 * jnp.sum(residuals**2) - log_diagonal(factor).sum()
    return likelihood - problem.shape * log_variance - problem.rate * jnp.exp(-log_variance)


def move_grams(
    uniform: jax.Array, state: State, bartlett_factor: jax.Array, problem: Problem
) -> tuple[FactoredGrams, jax.Array]:
    """Metropolis–Hastings for every S_j at once, given Bartlett factors of the proposals (X6).

    Gives also the acceptance, (J,).
    """
    grams = state.grams
    degrees = proposal_degrees(state.log_spread, problem.shift.shape[0])
    factor = grams.factor @ bartlett_factor / jnp.sqrt(degrees)[:, None, None]
    matrix = factor @ factor.swapaxes(-1, -2)
    proposed = FactoredGrams(
        matrix=matrix,
        factor=factor,
        covariance_factor=covariance_factor(matrix, state.noise_variance, problem),
    )
    before = log_target(grams, state.theta, state.feature_precision, problem)
    after = log_target(proposed, state.theta, state.feature_precision, problem)
    log_ratio = after - before + log_proposal_ratio(bartlett_factor, degrees)
    accepted, acceptance = metropolis(uniform, log_ratio)
    choose = accepted[:, None, None]
    moved = jax.tree.map(lambda new, old: jnp.where(choose, new, old), proposed, grams)
    return moved, acceptance


def move_variance(
    chance: tuple[jax.Array, jax.Array], state: State, regression: Whitened, problem: Problem
) -> tuple[State, jax.Array]:
    """Random walk on log σ², given a normal and a uniform.

    Gives the state with σ² and its covariance factors, and the acceptance.
    """
    normal, uniform = chance
    now = jnp.log(state.noise_variance)
    proposed = now + jnp.exp(state.log_step) * normal
    grams = state.grams
    factor = covariance_factor(grams.matrix, jnp.exp(proposed), problem)
    residuals = solve_vector(factor, problem.moments - grams.matrix @ state.theta)
    residuals_now = regression.response - regression.design @ state.theta
    before = log_variance_density(now, residuals_now, grams.covariance_factor, problem)
    after = log_variance_density(proposed, residuals, factor, problem)
    accepted, acceptance = metropolis(uniform, after - before)
    kept = jnp.where(accepted, factor, grams.covariance_factor)
    moved = state._replace(
        noise_variance=jnp.where(accepted, jnp.exp(proposed), state.noise_variance),
        grams=grams._replace(covariance_factor=kept),
    )
    return moved, acceptance


@dataclass(frozen=True)
class NormalX:
    """Σ, then every S_j, then θ, then σ²."""

    constant: bool = False  # whether the first column is 1 in every row
    blocks: ClassVar[tuple[str, ...]] = ("grams", "noise_variance")

    def init(self, key: jax.Array, problem: Problem) -> State:
        """θ from the prior, σ² wider by a lognormal factor of sd 1, S_j with its noise drawn again.

        S_j is made positive definite by raising its eigenvalues to the noise sd of a diagonal
        entry.
        """
        key_gram, key_normal, key_variance = random.split(key, 3)
        d = problem.shift.shape[0]
        upper = jnp.triu(random.normal(key_gram, problem.grams.shape))
        upper = upper.at[:, 0, 0].set(0.0) if self.constant else upper
        noisy = problem.grams + problem.gram_sds * (upper + jnp.triu(upper, 1).swapaxes(-1, -2))
        factor = positive_factor(noisy, problem.gram_sds[:, 0, :1], constant=self.constant)
        matrix = factor @ factor.swapaxes(-1, -2)
        normal = random.normal(key_normal, (d + 1,))
        noise_variance = jnp.exp(normal[0]) * problem.rate / gamma(key_variance, problem.shape)
        no_data = Whitened(design=jnp.zeros((1, d, d)), response=jnp.zeros((1, d)))
        return State(
            theta=draw_theta(normal[1:], no_data, problem),
            noise_variance=noise_variance,
            grams=FactoredGrams(
                matrix=matrix,
                factor=factor,
                covariance_factor=covariance_factor(matrix, noise_variance, problem),
            ),
            feature_precision=jnp.eye(d),
            log_spread=-0.5 * jnp.log(problem.counts),
            log_step=jnp.zeros(()),
        )

    def step(
        self, key: jax.Array, state: State, problem: Problem, gain: jax.Array
    ) -> tuple[State, Info]:
        """One sweep; random numbers are drawn together as far as they can be."""
        key_bartlett, key_normal, key_uniform = random.split(key, 3)
        d = problem.shift.shape[0]
        normal = random.normal(key_normal, (d + 1,))
        uniform = random.uniform(key_uniform, (problem.counts.shape[0] + 1,))
        of_features = problem.feature_degrees + problem.counts.sum()
        degrees = jnp.append(proposal_degrees(state.log_spread, d), of_features)
        factors = bartlett(key_bartlett, degrees, d)
        precision = draw_feature_precision(factors[-1], state.grams, problem)
        state = state._replace(feature_precision=precision)
        proposals = factors[:-1]
        if self.constant:  # S_j,11 stays n_j
            proposals = proposals.at[:, 0, 0].set(jnp.sqrt(degrees[:-1]))
        grams, gram_acceptance = move_grams(uniform[1:], state, proposals, problem)
        regression = whitened(grams.matrix, grams.covariance_factor, problem)
        state = state._replace(grams=grams, theta=draw_theta(normal[1:], regression, problem))
        state, acceptance = move_variance((normal[0], uniform[0]), state, regression, problem)
        state = state._replace(
            log_spread=adapt(state.log_spread, gram_acceptance, GRAM_TARGET, gain),
            log_step=adapt(state.log_step, acceptance, VARIANCE_TARGET, gain),
        )
        return state, Info(acceptance=jnp.stack([gram_acceptance.mean(), acceptance]))


def fit(evidence: Evidence, prior: Prior, settings: Settings) -> Draws:
    """Draws of θ and σ² by the paper's kernel."""
    return run(NormalX(constant=evidence.constant), problem_of(evidence, prior), settings)
