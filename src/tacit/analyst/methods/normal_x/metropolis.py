r"""`normal-x`: features are normal, so the exact Gram matrices are Wishart, and they are sampled along with everything else.

Model, per holder j with n_j rows, d columns and noise sds g_j (diagonal of Ŝ_j), o_j (off it), τ_j (of ẑ_j):

- Σ ~ IW(Λ, κ), $S_j \sim W(\Sigma, n_j)$, θ ~ N(m, C), σ² ~ IG(a, b);
- $\hat S_j = S_j$ + symmetric noise, each entry of the upper triangle once; $\hat z_j \sim N(S_j\theta, \sigma^2S_j + \tau_j^2I)$.

Intercept. Where the first column is 1 in every row (`Evidence.constant`), all of this is conditioned on Σ_11 = 1 and S_j,11 = n_j. In terms
of Schur complements that says: features behind the 1 are N(μ, Σ_{2·1}), with the conjugate prior Σ_{2·1} ~ IW(Λ_{2·1}, κ) and
μ | Σ_{2·1} ~ N(Λ_21/Λ_11, Σ_{2·1}/Λ_11); their mean at holder j is N(μ, Σ_{2·1}/n_j) and, independent of it, their scatter is
W(Σ_{2·1}, n_j − 1). The densities below stay as they are, up to constants. Where rows may have been shrunk or left out, the first column
holds their factors α ≤ 1 and is taken for normal with mean 0 like the others; features still have the mean μα given α.

One iteration draws Σ | S; moves every S_j by Metropolis–Hastings; draws θ | S, σ²; moves σ² by a random walk on its logarithm.
Alparslan, Yıldırım and Birbil (2023), Algorithm 1, there called MCMC-normalX; adaptation ends with warm-up here.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.method import Draws, Settings
from tacit.analyst.methods.sampling import (
    adapt,
    double_precision,
    jax,
    jnp,
    metropolis,
    random,
    run,
)
from tacit.analyst.methods.wishart import bartlett, gamma
from tacit.analyst.prior import Prior
from tacit.errors import MethodError

GRAM_TARGET = 0.2  # acceptance of the Gram proposals, as in the paper
VARIANCE_TARGET = (
    0.44  # acceptance of a one-dimensional random walk, Gelman, Roberts and Gilks (1996)
)
VANISHING = 1e-6  # noise sd that stands for none, per unit of a holder's average diagonal entry


class Problem(NamedTuple):
    """Evidence and prior; J holders first."""

    grams: jax.Array  # (J, d, d): Ŝ_j
    moments: jax.Array  # (J, d): ẑ_j
    gram_sds: jax.Array  # (J, d, d): g_j on the diagonal, o_j off it
    moment_variances: jax.Array  # (J,): τ_j²
    counts: jax.Array  # (J,): n_j
    precision: jax.Array  # (d, d): C⁻¹
    shift: jax.Array  # (d,): C⁻¹m
    shape: jax.Array  # a
    rate: jax.Array  # b
    feature_scale: jax.Array  # (d, d): Λ
    feature_degrees: jax.Array  # κ


class Grams(NamedTuple):
    """The matrices S_j with what is known of them; J holders first."""

    matrix: jax.Array  # (J, d, d)
    factor: jax.Array  # (J, d, d): L_j, S_j = L_jL_j'
    covariance_factor: jax.Array  # (J, d, d): K_j, σ²S_j + τ_j²I = K_jK_j'


class State(NamedTuple):
    """Where a chain is."""

    theta: jax.Array
    noise_variance: jax.Array
    grams: Grams
    feature_precision: jax.Array  # (d, d): Σ⁻¹
    log_spread: jax.Array  # (J,): log of the size h_j of Gram proposals
    log_step: jax.Array  # log of the random walk's sd


class Info(NamedTuple):
    """What a step did."""

    acceptance: jax.Array


def problem_of(evidence: Evidence, prior: Prior) -> Problem:
    """Exact evidence gets a noise so small (`VANISHING`) that it stands for none; a constant column's entry of Ŝ_j becomes n_j."""
    size = VANISHING * np.maximum(np.trace(evidence.grams, axis1=1, axis2=2) / evidence.d, 1e-6)
    diagonal, off = np.maximum(evidence.gram_sd, size), np.maximum(evidence.off_diagonal_sd, size)
    gram_sds = np.where(np.eye(evidence.d, dtype=bool), diagonal[:, None, None], off[:, None, None])
    precision, counts, grams = (
        np.linalg.inv(prior.covariance),
        whole_counts(evidence),
        evidence.grams.copy(),
    )
    if evidence.constant:
        grams[:, 0, 0] = counts
    parts = (
        grams,
        evidence.moments,
        gram_sds,
        np.maximum(evidence.moment_sd, size) ** 2,
        counts,
        precision,
        precision @ prior.mean,
        prior.shape,
        prior.rate,
        prior.feature_scale,
        prior.feature_degrees,
    )
    with double_precision():
        return Problem(*map(jnp.asarray, parts))


def whole_counts(evidence: Evidence) -> NDArray[np.float64]:
    """n_j as whole numbers; those published with noise are taken as the nearest at which a Wishart law has a density, d or more."""
    if evidence.counts is None:
        raise MethodError(
            "normal-x needs the number of rows of every holder: publish counts, or choose fixed-s, which does without"
        )
    noisy = np.zeros(evidence.holders) if evidence.count_sd is None else evidence.count_sd
    if np.any((evidence.counts < evidence.d) & (noisy == 0)):
        raise MethodError(
            f"normal-x needs {evidence.d} rows or more, one per column, from every holder: leave small ones out, or choose fixed-s"
        )
    return np.maximum(np.round(evidence.counts), evidence.d)


def positive_factor(grams: jax.Array, least: jax.Array, *, constant: bool) -> jax.Array:
    """Cholesky factors of matrices whose eigenvalues are raised to `least`, (J, 1); those of the Schur complement of a known entry."""
    if constant:
        first = grams[..., :1] / jnp.sqrt(grams[:, :1, :1])
        if grams.shape[-1] == 1:
            return first
        rest = (grams - first @ first.swapaxes(-1, -2))[:, 1:, 1:]
        return jnp.concatenate(
            [
                first,
                jnp.pad(positive_factor(rest, least, constant=False), ((0, 0), (1, 0), (0, 0))),
            ],
            -1,
        )
    values, vectors = jnp.linalg.eigh(grams)
    factor: jax.Array = jnp.linalg.cholesky(
        (vectors * jnp.maximum(values, least)[:, None, :]) @ vectors.swapaxes(-1, -2)
    )
    return factor


def covariance_factor(matrix: jax.Array, noise_variance: jax.Array, problem: Problem) -> jax.Array:
    r"""Cholesky factors of $\sigma^2S_j + \tau_j^2I$."""
    noise = problem.moment_variances[:, None, None] * jnp.eye(matrix.shape[-1])
    factor: jax.Array = jnp.linalg.cholesky(noise_variance * matrix + noise, symmetrize_input=False)
    return factor


def solve(factor: jax.Array, right: jax.Array, *, transpose: bool = False) -> jax.Array:
    """Solve with lower triangular matrices, or with their transposes."""
    solution: jax.Array = jax.lax.linalg.triangular_solve(
        factor, right, left_side=True, lower=True, transpose_a=transpose
    )
    return solution


def log_diagonal(factor: jax.Array) -> jax.Array:
    """Sum of logs of a factor's diagonal: half the log-determinant of the product."""
    return jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)


def log_target(
    grams: Grams, theta: jax.Array, feature_precision: jax.Array, problem: Problem
) -> jax.Array:
    r"""Log-density of every S_j given θ, σ², Σ and the releases, (J,), up to a constant.

    $\log N(\hat z_j; S_j\theta, \sigma^2S_j + \tau_j^2I) + \frac{n_j-d-1}2\log|S_j| - \frac12\operatorname{tr}\Sigma^{-1}S_j
    - \frac12\sum_{i\le k}(S_{ik} - \hat S_{ik})^2/\text{sd}_{ik}^2$.
    """
    d = theta.shape[0]
    residuals = solve(grams.covariance_factor, (problem.moments - grams.matrix @ theta)[..., None])[
        ..., 0
    ]
    moment = -0.5 * jnp.sum(residuals**2, -1) - log_diagonal(grams.covariance_factor)
    wishart = (problem.counts - d - 1) * log_diagonal(grams.factor) - 0.5 * jnp.sum(
        feature_precision * grams.matrix, (-2, -1)
    )
    errors = ((grams.matrix - problem.grams) / problem.gram_sds) ** 2
    once = 0.5 + 0.5 * jnp.eye(d)  # both triangles are summed
    return moment + wishart - 0.5 * jnp.sum(once * errors, (-2, -1))


def proposal_degrees(log_spread: jax.Array, d: int) -> jax.Array:
    r"""$\alpha = d - 1 + h^{-2}$: the relative sd of a proposal is about $h\sqrt2$, and α > d − 1 always."""
    return d - 1 + jnp.exp(-2 * log_spread)


def log_proposal_ratio(bartlett_factor: jax.Array, degrees: jax.Array) -> jax.Array:
    r"""$\log q(S\mid S') - \log q(S'\mid S)$ for $S' = LAA'L'/\alpha$, where $q(\cdot\mid S) = W(S/\alpha, \alpha)$.

    $(\alpha - \frac{d+1}2)\log\frac{|S|}{|S'|} + \frac\alpha2(\operatorname{tr}S^{-1}S' - \operatorname{tr}S'^{-1}S)$, and here
    $|S'|/|S| = |A|^2\alpha^{-d}$, $\operatorname{tr}S^{-1}S' = \|A\|^2/\alpha$, $\operatorname{tr}S'^{-1}S = \alpha\|A^{-1}\|^2$.
    """
    d = bartlett_factor.shape[-1]
    inverse = solve(bartlett_factor, jnp.broadcast_to(jnp.eye(d), bartlett_factor.shape))
    growth = 2 * log_diagonal(bartlett_factor) - d * jnp.log(degrees)
    traces = jnp.sum(bartlett_factor**2, (-2, -1)) / degrees - degrees * jnp.sum(
        inverse**2, (-2, -1)
    )
    return -(degrees - (d + 1) / 2) * growth + degrees / 2 * traces


def draw_feature_precision(bartlett_factor: jax.Array, grams: Grams, problem: Problem) -> jax.Array:
    r"""Draw Σ⁻¹ from $W((\Lambda + \sum_jS_j)^{-1}, \kappa + n)$, given a Bartlett factor of κ + n degrees."""
    scale = jnp.linalg.cholesky(problem.feature_scale + grams.matrix.sum(0), symmetrize_input=False)
    root = solve(scale, bartlett_factor, transpose=True)
    return root @ root.T


class Moments(NamedTuple):
    r"""What the draws of θ and σ² share: $K_j^{-1}S_j$ and $K_j^{-1}\hat z_j$."""

    design: jax.Array  # (J, d, d)
    response: jax.Array  # (J, d)


def whitened(grams: Grams, problem: Problem) -> Moments:
    """Regression of whitened moments on whitened Gram matrices: noise of unit variance."""
    both = solve(
        grams.covariance_factor, jnp.concatenate([grams.matrix, problem.moments[..., None]], -1)
    )
    return Moments(both[..., :-1], both[..., -1])


def draw_theta(normal: jax.Array, moments: Moments, problem: Problem) -> jax.Array:
    r"""Draw θ from $N(P^{-1}h, P^{-1})$, where $P = C^{-1} + \sum_jS_jA_j^{-1}S_j$ and $h = C^{-1}m + \sum_jS_jA_j^{-1}\hat z_j$.

    $A_j = \sigma^2S_j + \tau_j^2I = K_jK_j'$; with P = LL' and the standard `normal` ε the draw is $L'^{-1}(L^{-1}h + ε)$.
    """
    d = problem.shift.shape[0]
    design, response = moments.design.reshape(-1, d), moments.response.ravel()
    factor = jnp.linalg.cholesky(problem.precision + design.T @ design, symmetrize_input=False)
    noisy = solve(factor, (problem.shift + response @ design)[:, None]) + normal[:, None]
    return solve(factor, noisy, transpose=True)[:, 0]


def log_variance_density(
    log_variance: jax.Array, residuals: jax.Array, factor: jax.Array, problem: Problem
) -> jax.Array:
    r"""Log-density of t = log σ² given θ and S, up to a constant, from whitened residuals $K_j^{-1}(\hat z_j - S_j\theta)$ and K_j at t.

    $\sum_j\log N(\hat z_j; S_j\theta, K_jK_j') - at - be^{-t}$: the last two terms are IG(a, b) and the log-Jacobian t.
    """
    likelihood = -0.5 * jnp.sum(residuals**2) - log_diagonal(factor).sum()
    return likelihood - problem.shape * log_variance - problem.rate * jnp.exp(-log_variance)


def move_grams(
    uniform: jax.Array, state: State, bartlett_factor: jax.Array, problem: Problem
) -> tuple[Grams, jax.Array]:
    """Metropolis–Hastings for every S_j at once, given Bartlett factors of the proposals; gives also the acceptance, (J,)."""
    grams, degrees = state.grams, proposal_degrees(state.log_spread, problem.shift.shape[0])
    factor = grams.factor @ bartlett_factor / jnp.sqrt(degrees)[:, None, None]
    matrix = factor @ factor.swapaxes(-1, -2)
    proposed = Grams(matrix, factor, covariance_factor(matrix, state.noise_variance, problem))
    before, after = (
        log_target(each, state.theta, state.feature_precision, problem)
        for each in (grams, proposed)
    )
    accepted, acceptance = metropolis(
        uniform, after - before + log_proposal_ratio(bartlett_factor, degrees)
    )
    return jax.tree.map(
        lambda new, old: jnp.where(accepted[:, None, None], new, old), proposed, grams
    ), acceptance


def move_variance(
    chance: tuple[jax.Array, jax.Array], state: State, moments: Moments, problem: Problem
) -> tuple[State, jax.Array]:
    """Random walk on log σ², given a normal and a uniform; gives σ² with its covariance factors, in the state, and the acceptance."""
    normal, uniform = chance
    now = jnp.log(state.noise_variance)
    proposed = now + jnp.exp(state.log_step) * normal
    factor = covariance_factor(state.grams.matrix, jnp.exp(proposed), problem)
    residuals = solve(factor, (problem.moments - state.grams.matrix @ state.theta)[..., None])
    before = log_variance_density(
        now, moments.response - moments.design @ state.theta, state.grams.covariance_factor, problem
    )
    accepted, acceptance = metropolis(
        uniform, log_variance_density(proposed, residuals, factor, problem) - before
    )
    grams = state.grams._replace(
        covariance_factor=jnp.where(accepted, factor, state.grams.covariance_factor)
    )
    return state._replace(
        noise_variance=jnp.where(accepted, jnp.exp(proposed), state.noise_variance), grams=grams
    ), acceptance


@dataclass(frozen=True)
class NormalX:
    """Σ, then every S_j, then θ, then σ²."""

    constant: bool = False  # whether the first column is 1 in every row
    blocks: ClassVar[tuple[str, ...]] = ("grams", "noise_variance")

    def init(self, key: jax.Array, problem: Problem) -> State:
        """θ from the prior and σ² wider, by a lognormal factor of sd 1; S_j is Ŝ_j with a second draw of its noise.

        S_j is made positive definite by raising its eigenvalues to the noise sd of a diagonal entry.
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
        grams = Grams(matrix, factor, covariance_factor(matrix, noise_variance, problem))
        no_data = Moments(jnp.zeros((1, d, d)), jnp.zeros((1, d)))
        theta = draw_theta(normal[1:], no_data, problem)
        return State(
            theta, noise_variance, grams, jnp.eye(d), -0.5 * jnp.log(problem.counts), jnp.zeros(())
        )

    def step(
        self, key: jax.Array, state: State, problem: Problem, gain: jax.Array
    ) -> tuple[State, Info]:
        """One sweep; random numbers are drawn together as far as they can be."""
        key_bartlett, key_normal, key_uniform = random.split(key, 3)
        d, holders = problem.shift.shape[0], problem.counts.shape[0]
        normal, uniform = (
            random.normal(key_normal, (d + 1,)),
            random.uniform(key_uniform, (holders + 1,)),
        )
        degrees = jnp.append(
            proposal_degrees(state.log_spread, d), problem.feature_degrees + problem.counts.sum()
        )
        factors = bartlett(key_bartlett, degrees, d)
        state = state._replace(
            feature_precision=draw_feature_precision(factors[-1], state.grams, problem)
        )
        proposals = (
            factors[:-1].at[:, 0, 0].set(jnp.sqrt(degrees[:-1])) if self.constant else factors[:-1]
        )  # S_j,11 stays n_j
        grams, gram_acceptance = move_grams(uniform[1:], state, proposals, problem)
        moments = whitened(grams, problem)
        state = state._replace(grams=grams, theta=draw_theta(normal[1:], moments, problem))
        state, acceptance = move_variance((normal[0], uniform[0]), state, moments, problem)
        log_spread = adapt(state.log_spread, gram_acceptance, GRAM_TARGET, gain)
        state = state._replace(
            log_spread=log_spread, log_step=adapt(state.log_step, acceptance, VARIANCE_TARGET, gain)
        )
        return state, Info(jnp.stack([gram_acceptance.mean(), acceptance]))


def fit(evidence: Evidence, prior: Prior, settings: Settings) -> Draws:
    """Draws of θ and σ² by the paper's kernel."""
    return run(NormalX(evidence.constant), problem_of(evidence, prior), settings)
