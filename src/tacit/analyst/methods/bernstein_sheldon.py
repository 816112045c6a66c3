r"""`bernstein-sheldon`: Gibbs sampling of the exact statistics and the parameters (Bernstein and Sheldon 2019), for J holders.

Rows [x; y] ~ N(0, Γ), with Γ = [[Σ, Σθ], [θ'Σ, θ'Σθ + σ²]]. Holder j's G_j = Σ [x; y][x; y]' = [[S_j, z_j], [z_j', u_j]] is
a Wishart matrix, which the method treats as Gaussian with the same mean n_jΓ and covariances n_j(Γ_acΓ_bd + Γ_adΓ_bc).
One iteration draws

1. every G_j given Γ and the release Ĝ_j, from that Gaussian restricted to positive definite matrices (`move_statistics`);
2. Σ ~ IW(Λ + ΣS_j, κ + Σn_j);
3. (θ, σ²) from the normal-inverse-gamma law given ΣG_j.

Prior. Conjugacy wants θ | σ² ~ N(m, σ²Λ₀⁻¹). We take Λ₀ = (b/(a − 1))·C⁻¹, so that the covariance is C at the prior mean of σ²;
this needs a > 1.

Cost. Symmetric matrices with Frobenius' inner product ⟨A, B⟩ = tr AB are a Euclidean space. There the covariance of G_j is the
operator A ↦ 2n_jΓAΓ, diagonal in Γ's eigenbasis with values 2n_jλ_iλ_k, and `frobenius` noise is s_j² times the identity, in
every basis. So one eigendecomposition per iteration serves all holders: O(d³) each instead of O(d⁶). Three things make the
published noise fit, all exact:

- The response is multiplied by c = gram_sd/(√2·moment_sd): then S and c·z carry one Frobenius noise of sd s_j = gram_sd.
- c²·u has its own noise variance t_j², larger or smaller: a rank-one change of the precision (`conditional`).
- What is left, as under `triangular` noise, is excess variance of single entries over the smallest s_j² among them. The release is then
  seen as Ĝ_j = G_j + Frobenius noise + excess noise, and the sum of the first two is one more Gibbs variable (`without_excess`).

The cone. The Gaussian can leave it, where S_j is no Gram matrix and b_n may be negative. The published code adds I and floors b_n; here
the Gaussian is restricted instead, by a preconditioned Crank–Nicolson move that is rejected outside: G' = M + ρ(G − M) + h·E with E
from the centred conditional, ρ² + h² = 1. It is an independent draw (h = 1) unless rejections are frequent; h is tuned per holder
in warm-up. "statistics" in the acceptance is the fraction of these moves that stayed inside. Inside the cone b_n ≥ b.

Limits. Step 1 takes G_j as Gaussian, steps 2 and 3 as Wishart, and no joint law has both conditionals. At d = 2 and 10 rows per holder
log σ² was off by a third of its posterior sd; at 50 rows by less than a tenth. Features have mean 0. Published counts are used as exact.
Direction (i, k) takes about s_j²/(2n_jλ_iλ_k) iterations to forget its start: where noise outweighs the data, heed R-hat.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.method import Draws, Method, Settings
from tacit.analyst.methods.sampling import adapt, double_precision, jax, jnp, random, run
from tacit.analyst.methods.wishart import bartlett, gamma
from tacit.analyst.prior import Prior
from tacit.errors import MethodError, PriorError

Array = NDArray[np.float64]

FLOOR = 1e-10  # smallest noise sd, relative to the statistic: far below any posterior's width, so that no noise means that
SAME = 1e-9  # variances that differ by less than this fraction are equal
LOPSIDED = 1e3  # c never stretches the response further than this from the features' scale
ROUNDING = 1e-16  # eigenvalues of Γ below this fraction of the largest are that fraction
TARGET = 0.5  # acceptance below which moves of the statistics are shortened
SPREAD = 3.0  # noise sds by which the chains' starts are scattered


class Problem(NamedTuple):
    """Releases and prior in units where S and z carry one Frobenius noise; p = d + 1."""

    released: jax.Array  # (J, p, p): Ĝ_j
    counts: jax.Array  # (J,): n_j
    noise: jax.Array  # (J,): s_j²
    square_noise: jax.Array  # (J,): t_j², the variance of the noise on u_j
    mean: jax.Array  # (d,): m
    precision: jax.Array  # (d, d): Λ₀
    shape: jax.Array  # a
    rate: jax.Array  # b
    feature_scale: jax.Array  # (d, d): Λ
    feature_degrees: jax.Array  # κ
    excess: jax.Array | None = (
        None  # (J, p, p): variance of each entry's noise beyond Frobenius', where there is any
    )


class State(NamedTuple):
    """Parameters, statistics and the log of the step h of every holder's move."""

    theta: jax.Array
    noise_variance: jax.Array
    features: jax.Array  # (d, d): Σ
    statistics: jax.Array  # (J, p, p): G_j
    log_step: jax.Array  # (J,)


class Info(NamedTuple):
    """Fraction of the holders whose proposal was positive definite."""

    acceptance: jax.Array


class Conditional(NamedTuple):
    """Gaussian law of G_j in Γ's eigenbasis, (J, p, p) each: mean, and covariance K(I + τww')⁻¹K with K = diag(scale)."""

    mean: jax.Array
    scale: jax.Array
    direction: jax.Array  # w
    shrink: jax.Array  # (J, 1, 1): γ, with (I − γww')² = (I + τww')⁻¹

    def deviation(self, standard: jax.Array) -> jax.Array:
        """Turn standard normal matrices into draws around the mean: $K(I - γww')$ times them."""
        along = frobenius(self.direction, standard)
        return self.scale * (standard - self.shrink * along * self.direction)


@dataclass(frozen=True)
class BernsteinSheldon:
    """The kernel."""

    blocks: ClassVar[tuple[str, ...]] = ("statistics",)

    def init(self, key: jax.Array, problem: Problem) -> State:
        """Start from parameters drawn given a pooled statistic, scattered by the noise and lifted into the cone."""
        key_scatter, key_parameters = random.split(key)
        sd = jnp.sqrt(problem.noise.sum())
        scatter = standard_symmetric(key_scatter, 1, problem.released.shape[-1])[0]
        values, vectors = jnp.linalg.eigh(problem.released.sum(0) + SPREAD * sd * scatter)
        pooled = (vectors * jnp.maximum(values, sd + FLOOR * values[-1])) @ vectors.T
        share = problem.counts / problem.counts.sum()
        return draw_parameters(
            key_parameters, share[:, None, None] * pooled, jnp.zeros_like(share), problem
        )

    def step(
        self, key: jax.Array, state: State, problem: Problem, gain: jax.Array
    ) -> tuple[State, Info]:
        """The statistics, then the parameters."""
        key_statistics, key_parameters = random.split(key)
        statistics, accepted = move_statistics(key_statistics, state, problem)
        log_step = jnp.minimum(adapt(state.log_step, accepted, TARGET, gain), 0.0)
        return draw_parameters(key_parameters, statistics, log_step, problem), Info(
            accepted.mean(keepdims=True)
        )


def move_statistics(key: jax.Array, state: State, problem: Problem) -> tuple[jax.Array, jax.Array]:
    r"""$G_j' = M_j + ρ_j(G_j - M_j) + h_j E_j$, kept where positive definite; gives the G_j and 1 where kept, else 0."""
    key_excess, key_deviation = random.split(key)
    released = (
        problem.released
        if problem.excess is None
        else without_excess(key_excess, state.statistics, problem, problem.excess)
    )
    values, vectors = jnp.linalg.eigh(joint_covariance(state))
    values = jnp.maximum(values, ROUNDING * values[-1])
    law = conditional(values, vectors, vectors.T @ released @ vectors, problem)
    standard = standard_symmetric(key_deviation, *released.shape[:2])
    step = jnp.exp(state.log_step)[:, None, None]
    keep = jnp.sqrt(1 - step**2)
    fresh = (1 - keep) * law.mean + step * law.deviation(standard)
    proposal = keep * state.statistics + vectors @ fresh @ vectors.T
    inside = jnp.isfinite(jnp.linalg.cholesky(proposal)).all((1, 2))
    return jnp.where(inside[:, None, None], proposal, state.statistics), inside.astype(
        proposal.dtype
    )


def conditional(
    values: jax.Array, vectors: jax.Array, released: jax.Array, problem: Problem
) -> Conditional:
    r"""Law of $Q'G_jQ$ given $Q'\hat G_jQ$ and $Γ = Q\,\mathrm{diag}(λ)\,Q'$, before restriction to the cone.

    If u had the noise s², precision and mean would be entrywise: $1/k = 1/v + 1/s²$ with $v = 2nλ_iλ_k$, and
    $m_0 = nλ + (v/(v + s²))\,(\hat G - nλ)$. That u has the noise t² adds $τ = 1/t² - 1/s²$, of either sign, to the precision along
    $a = qq'$, q being the last row of Q, for u = ⟨a, Q'GQ⟩. With $w = \sqrt{k}\,a$ and $F = 1 + τ⟨w, w⟩ > 0$ the covariance is
    $\sqrt{k}(I - (τ/F)\,ww')\sqrt{k}$ and the mean $m_0 + k a\,(τ/F)\,⟨a, \hat G - m_0⟩$. $F = ⟨a, (s²/(v + s²))\,a⟩ + ⟨w, w⟩/t²$
    is how it is computed, without cancellation, since ⟨a, a⟩ = 1.
    """
    n, s2, t2 = (
        part[:, None, None] for part in (problem.counts, problem.noise, problem.square_noise)
    )
    prior_variance = 2 * n * jnp.outer(values, values)
    trust = prior_variance / (prior_variance + s2)
    doubt = s2 / (prior_variance + s2)
    surprise = released - n * jnp.diag(values)
    a = jnp.outer(vectors[-1], vectors[-1])
    scale = jnp.sqrt(trust * s2)
    direction = scale * a
    length = frobenius(direction, direction)
    factor = frobenius(a, doubt * a) + length / t2
    correction = (1 / t2 - 1 / s2) / factor * frobenius(a, doubt * surprise)
    mean = n * jnp.diag(values) + trust * surprise + scale * direction * correction
    return Conditional(mean, scale, direction, (1 - 1 / jnp.sqrt(factor)) / length)


def without_excess(
    key: jax.Array, statistics: jax.Array, problem: Problem, excess: jax.Array
) -> jax.Array:
    r"""Draw Ĝ less its excess noise, given G and Ĝ: entrywise $N(G + (r/(r + e))(\hat G - G),\; re/(r + e))$ for noise r and excess e."""
    holders, p = statistics.shape[:2]
    standard = standard_symmetric(key, holders, p)
    r = problem.noise[:, None, None] * entry_variances(p)
    trust = r / (r + excess)
    return (
        statistics
        + trust * (problem.released - statistics)
        + jnp.sqrt(problem.noise[:, None, None] * (1 - trust)) * standard
    )


def draw_parameters(
    key: jax.Array, statistics: jax.Array, log_step: jax.Array, problem: Problem
) -> State:
    """Σ, σ² and θ given the statistics."""
    key_features, key_coefficients = random.split(key)
    total = statistics.sum(0)
    degrees = problem.feature_degrees + problem.counts.sum()
    features = inverse_wishart(key_features, problem.feature_scale + total[:-1, :-1], degrees)
    theta, noise_variance = draw_coefficients(key_coefficients, total, problem)
    return State(theta, noise_variance, features, statistics, log_step)


def draw_coefficients(
    key: jax.Array, total: jax.Array, problem: Problem
) -> tuple[jax.Array, jax.Array]:
    r"""$σ² \sim IG(a + n/2, b_n)$ and $θ \sim N(μ_n, σ²Λ_n^{-1})$ with $Λ_n = S + Λ_0$, $μ_n = Λ_n^{-1}(z + Λ_0 m)$ and
    $b_n = b + ½(u + m'Λ_0m - μ_n'Λ_nμ_n) = b + ½(‖y - Xμ_n‖² + (μ_n - m)'Λ_0(μ_n - m))$; the last form cancels least.
    """  # noqa: D205 - the formula is the summary
    key_variance, key_theta = random.split(key)
    gram, moment = total[:-1, :-1], total[:-1, -1]
    root = jnp.linalg.cholesky(gram + problem.precision)
    half = solve(root, moment + problem.precision @ problem.mean)
    centre = solve(root, half, transposed=True)
    residual = jnp.append(-centre, 1.0)
    shift = centre - problem.mean
    rate = problem.rate + 0.5 * (residual @ total @ residual + shift @ problem.precision @ shift)
    noise_variance = rate / gamma(key_variance, problem.shape + problem.counts.sum() / 2)
    standard = random.normal(key_theta, centre.shape)
    return solve(root, half + jnp.sqrt(noise_variance) * standard, transposed=True), noise_variance


def inverse_wishart(key: jax.Array, scale: jax.Array, degrees: jax.Array) -> jax.Array:
    r"""$IW(Ψ, ν)$: with $Ψ = LL'$ and T of Bartlett, $TT' \sim W(I, ν)$, it is $X'X$ for $X = T^{-1}L'$."""
    factor = bartlett(key, degrees, len(scale))
    root = jax.lax.linalg.triangular_solve(
        factor, jnp.linalg.cholesky(scale).T, left_side=True, lower=True
    )
    return root.T @ root


def solve(lower: jax.Array, vector: jax.Array, *, transposed: bool = False) -> jax.Array:
    """Solve Lx = v, or L'x = v."""
    return jax.lax.linalg.triangular_solve(
        lower, vector[:, None], left_side=True, lower=True, transpose_a=transposed
    )[:, 0]


def joint_covariance(state: State) -> jax.Array:
    """Γ, the covariance of [x; y]."""
    cross = state.features @ state.theta
    response = state.theta @ cross + state.noise_variance
    return jnp.block([[state.features, cross[:, None]], [cross[None, :], response[None, None]]])


def frobenius(left: jax.Array, right: jax.Array) -> jax.Array:
    """⟨A, B⟩ of the last two axes, which stay."""
    return jnp.sum(left * right, axis=(-2, -1), keepdims=True)


def entry_variances(p: int) -> Array:
    """Of standard Frobenius noise: 1 on the diagonal, ½ off it."""
    return (1 + np.eye(p)) / 2


def standard_symmetric(key: jax.Array, holders: int, p: int) -> jax.Array:
    """Symmetric matrices, standard normal for Frobenius' inner product.

    The loop over holders keeps XLA from fusing the normals into the gather, which would compute each of them twice.
    """
    place = np.zeros((p, p), dtype=int)
    place[np.tril_indices(p)] = np.arange(p * (p + 1) // 2)
    entries: jax.Array = jax.lax.map(
        lambda one: random.normal(one, (p * (p + 1) // 2,)), random.split(key, holders)
    )
    return entries[:, np.maximum(place, place.T)] * np.sqrt(entry_variances(p))


def bordered(gram: Array, moment: Array, square: Array) -> Array:
    """The (J, p, p) matrices [[gram, moment], [moment', square]]."""
    above = np.concatenate([gram, moment[:, :, None]], axis=2)
    below = np.concatenate([moment, square[:, None]], axis=1)
    return np.concatenate([above, below[:, None, :]], axis=1)


def problem_of(evidence: Evidence, prior: Prior) -> tuple[Problem, float]:
    """The kernel's problem, whose response is multiplied by c, and c."""
    if evidence.counts is None or evidence.squares is None or evidence.square_sd is None:
        raise MethodError(
            "bernstein-sheldon needs counts and squares; let the study publish them or choose another method"
        )
    if prior.shape <= 1:
        raise PriorError(
            "shape must exceed 1 for bernstein-sheldon, so that the residual variance has a prior mean; raise it"
        )
    size, square_size = np.abs(evidence.grams).max(), np.abs(evidence.squares).max()
    diagonal, off_diagonal = (
        np.maximum(sd, FLOOR * size)
        for sd in (evidence.gram_sd, np.sqrt(2) * evidence.off_diagonal_sd)
    )
    moment = np.maximum(np.sqrt(2) * evidence.moment_sd, FLOOR * np.sqrt(size * square_size))
    square = np.maximum(evidence.square_sd, FLOOR * square_size)
    stretch = np.sqrt(size / square_size) * np.array([1 / LOPSIDED, LOPSIDED])
    c = float(np.clip(np.median(diagonal / moment), *stretch))
    noise, excess = split_noise(diagonal, off_diagonal, c * moment, evidence.d)
    parts = (
        *(
            bordered(evidence.grams, c * evidence.moments, c**2 * evidence.squares),
            np.maximum(evidence.counts, 1.0),
        ),
        *(noise, (c**2 * square) ** 2),
        *(c * prior.mean, prior.rate / (prior.shape - 1) * np.linalg.inv(prior.covariance)),
        *(prior.shape, c**2 * prior.rate, prior.feature_scale, prior.feature_degrees),
    )
    with double_precision():
        return Problem(*map(jnp.asarray, parts))._replace(
            excess=None if excess is None else jnp.asarray(excess)
        ), c


def split_noise(
    diagonal: Array, off_diagonal: Array, moment: Array, d: int
) -> tuple[Array, Array | None]:
    """s_j², the smallest of the squared sds in Frobenius' measure (√2 times an entry's off the diagonal), and the excess over it."""
    gram = np.where(np.eye(d, dtype=bool), diagonal[:, None, None], off_diagonal[:, None, None])
    moments = np.repeat(moment[:, None], d, axis=1)
    noise = np.minimum(gram.min(axis=(1, 2)), moment) ** 2
    excess = (
        bordered(gram, moments, np.sqrt(noise)) ** 2 - noise[:, None, None]
    ) * entry_variances(d + 1)
    return noise, excess if np.any(excess > SAME * noise[:, None, None]) else None


def fit(evidence: Evidence, prior: Prior, settings: Settings) -> Draws:
    """Draws of the posterior of the Gaussian approximation."""
    problem, c = problem_of(evidence, prior)
    draws = run(BernsteinSheldon(), problem, settings)
    return replace(draws, theta=draws.theta / c, noise_variance=draws.noise_variance / c**2)


METHOD = Method("bernstein-sheldon", ("counts", "squares"), fit)
