r"""`normal-x` by gradient: the posterior of `normal_x`, sampled by Hamiltonian Monte Carlo in coordinates where it is nearly N(0, I).

θ is integrated out and drawn afterwards. The rest, Σ, S_1..J and σ², is written in coordinates x by a `Frame`: a smooth bijection that is
chosen from the evidence once, so that it decides how fast the chain mixes and nothing else. All is first rotated into the eigenbasis of
the pooled Gram matrix, largest eigenvalue first. Then

- $x_k = \beta_k'x_{<k} + \sqrt{\delta_k}\,e_k$: Σ as a chain of regressions, $\Sigma = AA'$, $A^{-1} = D^{-1/2}(I - B)$. Under the inverse
  Wishart prior $\delta_k \sim IG(\nu_k/2, \lambda_k/2)$ and $\beta_k \mid \delta_k \sim N(b_k, \delta_k\Lambda_{<k}^{-1})$. The release adds about
  $\beta_{ki} \approx 0 \pm 1/\sqrt{p_{ki}}$; coordinates of β_k are standardised by the product of both, at the δ_k of the moment: those
  of the prior where noise swamps the data, those of the data where it does not, and no funnel between.
- $S_j = F_jF_j'$, $F_j = AT_j$, T_j lower triangular with $T_{ii}^2 \sim \chi^2(n_j - i + 1)$, $T_{ik} \sim N(0, 1)$ (Bartlett). With
  $\tilde F_j$ the Cholesky factor of $\hat S_j$ made positive definite, coordinates are $(T_j - w_j\circ A^{-1}\tilde F_j)/r_j$ (logarithms on the
  diagonal): w = 0 is non-centred, w = 1 is centred, and w = signal / (signal + noise) in between (Papaspiliopoulos, Roberts and Sköld 2007).
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.method import Draws, Method, Settings
from tacit.analyst.methods.normal_x import Moments, Problem, covariance_factor, draw_theta, log_diagonal, problem_of, solve
from tacit.analyst.prior import Prior
from tacit.analyst.sampling import adapt, double_precision, jax, jnp, random, run

TARGET = 0.8  # acceptance of a trajectory
TRAJECTORY = 1.57  # mean length of a trajectory: a quarter of the period of N(0, I), after which a coordinate is independent
JITTER = 0.5  # lengths are uniform within this share of the mean, so that no coordinate comes back to its start every time
STEPS = 256  # leapfrog steps at most
OVERDISPERSION = 2.0  # sd of the start, where about 1 is that of the posterior
DIVERGED = 1000.0  # energy error of a trajectory that has left the level set
GRID = np.linspace(-1.0, 1.0, 961)  # for the pilot of log δ_k, around the logarithm of its prior scale

Array = NDArray[np.float64]


class Frame(NamedTuple):
    """Coordinates: a rotation Q, the prior of Σ as a chain of regressions, and what the evidence is about to say."""

    rotation: jax.Array  # (d, d): columns are the new axes
    degrees: jax.Array  # (d,): ν_k
    scale: jax.Array  # (d,): λ_k
    axes: jax.Array  # (d, d, d): V_k, k first, padded with 0: β_k = V_kγ_k, γ_k | δ_k ~ N(c_k, δ_kI) under the prior
    prior_centre: jax.Array  # (d, d): c_k
    information: jax.Array  # (d, d): of the evidence about γ_ki; 0 on and above the diagonal
    log_centre: jax.Array  # (d,): pilot mean of log δ_k
    log_spread: jax.Array  # (d,): and its sd
    factors: jax.Array  # (J, d, d): F̃_j
    weight: jax.Array  # (J, d, d): w_j
    spread: jax.Array  # (J, d, d): r_j


class Posed(NamedTuple):
    """A problem in a frame."""

    problem: Problem  # rotated, except for the sds
    frame: Frame


class Latent(NamedTuple):
    """What coordinates stand for."""

    noise_variance: jax.Array
    root: jax.Array  # (d, d): A⁻¹
    grams: jax.Array  # (J, d, d): S_j


class State(NamedTuple):
    """Where a chain is."""

    theta: jax.Array
    noise_variance: jax.Array
    position: jax.Array  # x
    log_density: jax.Array
    gradient: jax.Array
    log_step: jax.Array  # log of the leapfrog step
    mean: jax.Array  # (1 + d(d + 1)/2,): of the coordinates of σ² and Σ so far
    variance: jax.Array  # and their variance


class Info(NamedTuple):
    """What a step did."""

    acceptance: jax.Array
    steps: jax.Array


def pooled(problem: Problem) -> Array:
    r"""Pilot of Σ: $\sum_j\omega_j\hat S_j/n_j$, weights $\omega_j \propto n_j^2/(o_j^2 + n_jt_j^2)$, t_j the mean diagonal entry of $\hat S_j/n_j$."""
    means = np.asarray(problem.grams / problem.counts[:, None, None])
    size = np.maximum(np.trace(means, axis1=1, axis2=2) / means.shape[-1], 0.0)
    weights = 1 / (np.asarray(problem.gram_sds[:, 0, 0] / problem.counts) ** 2 + size**2 / np.asarray(problem.counts))
    pilot: Array = np.tensordot(weights / weights.sum(), means, 1)
    return pilot


def rotated(problem: Problem, q: Array) -> Problem:
    """The problem for Q'x in place of x; entries of the Gram noise stay as they are."""
    return problem._replace(
        grams=q.T @ problem.grams @ q,
        moments=problem.moments @ q,
        precision=q.T @ problem.precision @ q,
        shift=problem.shift @ q,
        feature_scale=q.T @ problem.feature_scale @ q,
    )


def pilot_variances(values: Array, degrees: Array, scale: Array, problem: Problem) -> tuple[Array, Array]:
    r"""Mean and sd of log δ_k under $IG(\nu_k/2, \lambda_k/2)\prod_jN(\bar s_k; \delta_k, (g_j^2 + 2n_j\delta_k^2)/n_j^2)$, on a grid."""
    mean, width = np.log(scale / degrees), np.full(len(scale), 12.0)
    counts, sds = np.asarray(problem.counts), np.asarray(problem.gram_sds[:, 0, 0])
    for _ in range(3):
        logs = mean[:, None] + width[:, None] * GRID
        delta = np.exp(logs)
        precision = sum(n**2 / (g**2 + 2 * n * delta**2) for n, g in zip(counts, sds, strict=True))
        log_density = -degrees[:, None] / 2 * logs - scale[:, None] / (2 * delta)
        log_density = log_density + np.log(precision) / 2 - precision * (delta - values[:, None]) ** 2 / 2
        mass = np.exp(log_density - log_density.max(1, keepdims=True))
        mass /= mass.sum(1, keepdims=True)
        mean = np.sum(mass * logs, 1)
        sd = np.sqrt(np.sum(mass * (logs - mean[:, None]) ** 2, 1))
        width = np.maximum(6 * sd, 2 * width / 480)
    return mean, sd


def regressions(feature_scale: Array, delta: Array, problem: Problem) -> tuple[Array, Array, Array]:
    r"""V_k, c_k and the information about γ_k, for every k.

    $\Lambda_{<k} = LL'$, $L^{-1}\operatorname{diag}(p_k)L'^{-1} = U\operatorname{diag}(\cdot)U'$, $V = L'^{-1}U$, $c = U'L^{-1}\Lambda_{<k,k}$, where
    $p_{ki} = \delta_i^2\sum_jn_j^2/(o_j^2 + n_j\delta_i\delta_k)$.
    """
    d = len(delta)
    counts, sds = np.asarray(problem.counts), np.asarray(problem.gram_sds[:, 0, -1])
    pairs = np.outer(delta, delta)
    precision = delta**2 * sum(n**2 / (o**2 + n * pairs) for n, o in zip(counts, sds, strict=True))
    axes, centre, information = np.zeros((d, d, d)), np.zeros((d, d)), np.zeros((d, d))
    for k in range(1, d):
        inverse = np.linalg.inv(np.linalg.cholesky(feature_scale[:k, :k]))
        values, vectors = np.linalg.eigh((inverse * precision[k, :k]) @ inverse.T)
        axes[k, :k, :k] = inverse.T @ vectors
        centre[k, :k] = vectors.T @ inverse @ feature_scale[:k, k]
        information[k, :k] = np.maximum(values, 0.0)
    return axes, centre, information


def pose(problem: Problem) -> Posed:
    """Choose the frame for a problem."""
    with double_precision():
        values, vectors = np.linalg.eigh(pooled(problem))
        values, q = values[::-1], vectors[:, ::-1]
        problem = rotated(problem, q)
        d = len(values)
        feature_scale = np.asarray(problem.feature_scale)
        degrees = float(problem.feature_degrees) - d + 1.0 + np.arange(d)
        scale = np.diagonal(np.linalg.cholesky(feature_scale)) ** 2
        log_centre, log_spread = pilot_variances(values, degrees, scale, problem)
        axes = regressions(feature_scale, np.exp(log_centre), problem)
        grams = gram_coordinates(np.exp(log_centre), problem)
        return Posed(problem, Frame(*map(jnp.asarray, (q, degrees, scale, *axes, log_centre, log_spread, *grams))))


def gram_coordinates(delta: Array, problem: Problem) -> tuple[Array, Array, Array]:
    r"""F̃_j, w_j and r_j: with $s_{ik}^2 = n_j\delta_i\delta_k(1 + [i = k])$ the variance of an entry of S_j, w = s²/(s² + sd²).

    On the diagonal coordinates are logarithms of T_ii, of prior variance 1/(2(n_j − i + 1)).
    """
    diagonal = np.eye(len(delta))
    counts, sds, grams = (np.asarray(part) for part in (problem.counts, problem.gram_sds, problem.grams))
    values, vectors = np.linalg.eigh(grams)
    raised = np.maximum(values, sds[:, 0, :1])
    factors = np.linalg.cholesky((vectors * raised[:, None, :]) @ vectors.swapaxes(-1, -2))
    signal = counts[:, None, None] * np.outer(delta, delta) * (1 + diagonal)
    noise = np.where(diagonal == 1, sds[:, :1, :1], sds[:, :1, -1:]) ** 2
    variance = np.where(diagonal == 1, 0.5 / (counts[:, None, None] - np.arange(len(delta))), 1.0)
    return factors, np.tril(signal / (signal + noise)), np.sqrt(variance * noise / (signal + noise))


def triangle(entries: jax.Array, d: int) -> jax.Array:
    """Lower triangular matrices from d(d + 1)/2 entries each, in an order that needs no scatter."""
    return jnp.tril(jnp.concatenate([entries[..., d:], entries[..., ::-1]], -1).reshape(*entries.shape[:-1], d, d))


def feature_root(entries: jax.Array, frame: Frame) -> tuple[jax.Array, jax.Array]:
    r"""A⁻¹ from its coordinates, and the log-density of these under the prior.

    $\log\delta_k$ is affine in its coordinate; $\gamma_{ki} = c_{ki}/(1 + \iota_{ki}\delta_k) + \epsilon_{ki}\sqrt{\delta_k/(1 + \iota_{ki}\delta_k)}$, ι the information.
    Density: $-\frac{\nu_k}2\log\delta_k - \frac{\lambda_k}{2\delta_k} - \sum_i[(\gamma_{ki} - c_{ki})^2/(2\delta_k) + \frac12\log(1 + \iota_{ki}\delta_k)]$, where the last
    term is the prior's $\frac12\log\delta_k$ less the log-Jacobian of γ.
    """
    d = frame.degrees.shape[0]
    matrix = triangle(entries, d)
    log_delta = frame.log_centre + frame.log_spread * jnp.diagonal(matrix)
    delta = jnp.exp(log_delta)[:, None]
    certainty = 1 + frame.information * delta
    gamma = jnp.tril(frame.prior_centre / certainty + matrix * jnp.sqrt(delta / certainty), -1)
    beta = jnp.einsum("kil,kl->ki", frame.axes, gamma)
    density = -0.5 * (frame.degrees @ log_delta + jnp.sum(frame.scale / delta[:, 0]))
    density += -0.5 * jnp.sum((gamma - frame.prior_centre) ** 2 / delta + jnp.log(certainty))
    return (jnp.eye(d) - beta) / jnp.sqrt(delta), density


def gram_factors(entries: jax.Array, root: jax.Array, posed: Posed) -> tuple[jax.Array, jax.Array]:
    r"""F_j from its coordinates and A⁻¹, and the log-density of these under the prior.

    $\sum_i[(n_j - i + 1)\log T_{ii} - T_{ii}^2/2] - \sum_{i>k}T_{ik}^2/2$: the first is $\chi^2$ with the Jacobian of the logarithm.
    """
    frame, d = posed.frame, root.shape[0]
    degrees = posed.problem.counts[:, None] - jnp.arange(d)
    diagonal = jnp.eye(d, dtype=bool)
    logs = jnp.log(jnp.diagonal(frame.factors, axis1=1, axis2=2)) + jnp.log(jnp.diagonal(root))
    weight = jnp.diagonal(frame.weight, axis1=1, axis2=2)
    middle = weight * logs + (1 - weight) * 0.5 * jnp.log(degrees)
    offset = jnp.where(diagonal, middle[..., None], frame.weight * (root @ frame.factors))
    bartlett = offset + frame.spread * triangle(entries, d)
    log_bartlett = jnp.diagonal(bartlett, axis1=1, axis2=2)
    bartlett = jnp.where(diagonal, jnp.exp(bartlett), bartlett)
    bartlett = jnp.tril(bartlett)
    density = jnp.sum(degrees * log_bartlett) - 0.5 * jnp.sum(bartlett**2)
    return solve(jnp.broadcast_to(root, bartlett.shape), bartlett), density


def latent(position: jax.Array, posed: Posed) -> tuple[Latent, jax.Array]:
    """What a position stands for, and its log-density under the prior."""
    problem = posed.problem
    holders, d = problem.moments.shape
    entries = position[1:].reshape(holders + 1, -1)
    log_variance = jnp.log(problem.rate / problem.shape) + position[0] / jnp.sqrt(problem.shape)
    root, feature_density = feature_root(entries[0], posed.frame)
    factors, gram_density = gram_factors(entries[1:], root, posed)
    density = feature_density + gram_density - problem.shape * log_variance - problem.rate * jnp.exp(-log_variance)
    return Latent(jnp.exp(log_variance), root, factors @ factors.swapaxes(-1, -2)), density


def gram_likelihood(grams: jax.Array, posed: Posed) -> jax.Array:
    r"""$-\frac12\sum_{i\le k}E_{ik}^2/\text{sd}_{ik}^2 = -\frac14\|E\|^2/o^2 - \frac12\sum_iE_{ii}^2(g^{-2} - \frac12o^{-2})$ for the errors E in the first basis.

    The norm is the same in every basis, and with frobenius noise, g² = 2o², the rest vanishes.
    """
    q = posed.frame.rotation
    errors = grams - posed.problem.grams
    first, last = posed.problem.gram_sds[:, 0, 0] ** -2, posed.problem.gram_sds[:, 0, -1] ** -2
    diagonal = jnp.sum((q @ errors) * q, -1)
    last = jnp.where(q.shape[0] > 1, last, 2 * first)
    return -0.25 * last @ jnp.sum(errors**2, (-2, -1)) - 0.5 * (first - 0.5 * last) @ jnp.sum(diagonal**2, -1)


def whitened(position: Latent, problem: Problem) -> tuple[Moments, jax.Array]:
    """Regression of whitened moments on whitened Gram matrices, and the log-determinant of the whitening."""
    factor = covariance_factor(position.grams, position.noise_variance, problem)
    both = solve(factor, jnp.concatenate([position.grams, problem.moments[..., None]], -1))
    return Moments(both[..., :-1], both[..., -1]), -log_diagonal(factor).sum()


def moment_likelihood(moments: Moments, problem: Problem) -> jax.Array:
    r"""Log-density of whitened moments with θ integrated out: $-\frac12\|r\|^2 + \frac12h'P^{-1}h - \frac12\log|P|$, P and h as in `draw_theta`."""
    d = problem.shift.shape[0]
    design, response = moments.design.reshape(-1, d), moments.response.ravel()
    factor = jnp.linalg.cholesky(problem.precision + design.T @ design, symmetrize_input=False)
    explained = solve(factor, (problem.shift + response @ design)[:, None])
    return 0.5 * (jnp.sum(explained**2) - jnp.sum(response**2)) - log_diagonal(factor)


def log_density(position: jax.Array, posed: Posed) -> jax.Array:
    """Log-density of the posterior of the coordinates, up to a constant."""
    found, prior = latent(position, posed)
    moments, determinant = whitened(found, posed.problem)
    return prior + gram_likelihood(found.grams, posed) + determinant + moment_likelihood(moments, posed.problem)


def trajectory(state: State, momentum: jax.Array, steps: jax.Array, posed: Posed) -> tuple[State, jax.Array]:
    """Leapfrog; gives the end and its momentum."""
    value_and_gradient = jax.value_and_grad(log_density)
    free = state.position.shape[0] - state.variance.shape[0]
    h = jnp.exp(state.log_step) * jnp.append(jnp.sqrt(state.variance), jnp.ones(free))

    def leap(_: int, carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        position, momentum, _, gradient = carry
        momentum += 0.5 * h * gradient
        position += h * momentum
        density, gradient = value_and_gradient(position, posed)
        return position, momentum + 0.5 * h * gradient, density, gradient

    start = (state.position, momentum, state.log_density, state.gradient)
    position, momentum, density, gradient = jax.lax.fori_loop(0, steps, leap, start)
    return state._replace(position=position, log_density=density, gradient=gradient), momentum


def finished(normal: jax.Array, state: State, posed: Posed) -> State:
    """The state with σ² read from its position and θ drawn from its conditional, in the first basis."""
    found, _ = latent(state.position, posed)
    moments, _ = whitened(found, posed.problem)
    theta = posed.frame.rotation @ draw_theta(normal, moments, posed.problem)
    return state._replace(theta=theta, noise_variance=found.noise_variance)


@dataclass(frozen=True)
class NormalXHamiltonian:
    """One trajectory, then θ."""

    blocks: ClassVar[tuple[str, ...]] = ("trajectory", "stable")

    def init(self, key: jax.Array, posed: Posed) -> State:
        """Coordinates wider than the posterior."""
        holders, d = posed.problem.moments.shape
        key_position, key_theta = random.split(key)
        position = OVERDISPERSION * random.normal(key_position, (1 + (holders + 1) * d * (d + 1) // 2,))
        density, gradient = jax.value_and_grad(log_density)(position, posed)
        state = State(jnp.zeros(d), jnp.ones(()), position, density, gradient, jnp.log(0.1) * jnp.ones(()), jnp.zeros(1 + d * (d + 1) // 2), jnp.ones(1 + d * (d + 1) // 2))
        return finished(random.normal(key_theta, (d,)), state, posed)

    def step(self, key: jax.Array, state: State, posed: Posed, gain: jax.Array) -> tuple[State, Info]:
        """One trajectory of random length."""
        size, d = state.position.shape[0], state.theta.shape[0]
        key_normal, key_uniform = random.split(key)
        normal, uniform = random.normal(key_normal, (size + d,)), random.uniform(key_uniform, (2,))
        length = TRAJECTORY * (1 + JITTER * (2 * uniform[0] - 1))
        steps = jnp.clip(jnp.ceil(length / jnp.exp(state.log_step)), 1, STEPS).astype(int)
        end, momentum = trajectory(state, normal[:size], steps, posed)
        gain_energy = end.log_density - state.log_density - 0.5 * (momentum @ momentum - normal[:size] @ normal[:size])
        log_ratio = jnp.where(jnp.isnan(gain_energy), -jnp.inf, gain_energy)
        accepted, acceptance = jnp.log(uniform[1]) < log_ratio, jnp.exp(jnp.minimum(log_ratio, 0.0))
        state = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), end, state)
        slow = 0.25 * gain**(4/3)
        away = state.position[: state.mean.shape[0]] - state.mean
        state = state._replace(log_step=adapt(state.log_step, acceptance, TARGET, gain), mean=state.mean + slow * away,
            variance=state.variance + slow * (away**2 * (1-slow) - state.variance))
        return finished(normal[size:], state, posed), Info(jnp.stack([acceptance, 1.0 * (log_ratio > -DIVERGED)]), steps)


def fit(evidence: Evidence, prior: Prior, settings: Settings) -> Draws:
    """Draws of θ and σ²."""
    return run(NormalXHamiltonian(), pose(problem_of(evidence, prior)), settings)


METHOD = Method("normal-x", ("counts",), fit)
