"""`normal-x` in a frame, for tests: a prior, a frame with its inverse map, data from the model.

The frame is that of some data, and serves all data of Geweke's test.
"""

import math

import numpy as np
from scipy import stats

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.normal_x import frame as normal_x_frame
from tacit.analyst.methods.normal_x import metropolis as normal_x
from tacit.analyst.methods.normal_x.frame import Framed, in_frame
from tacit.analyst.methods.normal_x.gradient import feature_root, gram_factors, triangle
from tacit.analyst.methods.sampling import jnp, random
from tacit.analyst.methods.wishart import bartlett, gamma
from tacit.analyst.prior import Prior
from tacit.privacy.gaussian import multiplier
from tacit.privacy.sensitivity import Weights, sensitivity


def prior_of(d: int) -> Prior:
    root = np.eye(d) + 0.3 * np.tri(d, k=-1)
    return Prior(np.linspace(0.5, -1.0, d), 0.7 * root @ root.T, 4.0, 2.0, root.T @ root, d + 3.0)


def matrices_at(position, framed: Framed):
    """log σ², Σ and the S_j in the first basis."""
    entries = position[1:].reshape(framed.problem.counts.shape[0] + 1, -1)
    q = framed.frame.rotation
    root, _ = feature_root(entries[0], framed.frame)
    factors, _ = gram_factors(entries[1:], root, framed)
    half, halves = q @ jnp.linalg.inv(root), q @ factors
    scaled = position[0] / jnp.sqrt(framed.problem.shape)
    return (
        jnp.log(framed.problem.rate / framed.problem.shape) + scaled,
        half @ half.T,
        halves @ halves.swapaxes(-1, -2),
    )


D, J, COUNTS = 2, 2, np.array([12.0, 7.0])
SDS = {
    "gram_sd": np.array([4.0, 9.0]),
    "off_diagonal_sd": np.array([4.0, 5.0]),
    "moment_sd": np.array([1.0, 2.0]),
}
EMPTY = normal_x.problem_of(
    Evidence(np.zeros((J, D, D)), np.zeros((J, D)), **SDS, counts=COUNTS), prior_of(D)
)
EXAMPLE = np.array([[[20.0, 9.0], [9.0, 11.0]], [[12.0, -8.0], [-8.0, 1.0]]])
FRAME = in_frame(EMPTY._replace(grams=EXAMPLE)).frame

ORDER = np.argsort(triangle(jnp.arange(1, D * (D + 1) // 2 + 1), D).ravel())[
    D * (D - 1) // 2 :
]  # of the entries of a triangle


def coordinates(log_variance, root, factors):
    """The inverse of the frame's map, written down afresh."""
    delta = jnp.diagonal(root) ** -2
    beta = (jnp.eye(D) - root * jnp.sqrt(delta)[:, None])[1, 0]
    certainty = 1 + FRAME.information[1, 0] * delta[1]
    below = (beta / FRAME.axes[1, 0, 0] - FRAME.centre[1, 0] / certainty) * jnp.sqrt(
        certainty / delta[1]
    )
    feature = (
        jnp.diag((jnp.log(delta) - FRAME.log_centre) / FRAME.log_spread)
        + jnp.array([[0.0, 0.0], [1.0, 0.0]]) * below
    )
    t, guess, diagonal = root @ factors, root @ FRAME.factors, jnp.eye(D, dtype=bool)
    prior_logs = 0.5 * jnp.log(EMPTY.counts[:, None] - jnp.arange(D))[..., None]
    t, guess = (
        jnp.where(diagonal, jnp.log(jnp.where(diagonal, matrix, 1.0)), matrix)
        for matrix in (t, guess)
    )
    middle = FRAME.weight * guess + jnp.where(diagonal, (1 - FRAME.weight) * prior_logs, 0.0)
    grams = (t - middle) / FRAME.spread
    scaled = (log_variance - jnp.log(EMPTY.rate / EMPTY.shape)) * jnp.sqrt(EMPTY.shape)
    return jnp.concatenate(
        [scaled[None], feature.ravel()[ORDER], grams.reshape(J, -1)[:, ORDER].ravel()]
    )


def framed_with(grams, moments) -> Framed:
    return Framed(
        normal_x_frame.rotated(EMPTY._replace(grams=grams, moments=moments), FRAME.rotation), FRAME
    )


def with_rows_more(framed: Framed, rows) -> Framed:
    """What a kernel is shown that is to be found wrong: χ² with so many degrees too many."""
    return framed._replace(problem=framed.problem._replace(counts=framed.problem.counts + rows))


def draw_parameters(key):
    """θ, σ² and the position of σ², Σ and the S_j, from the prior, by ways that share nothing with
    the frame.
    """
    key_theta, key_variance, key_feature, key_grams = random.split(key, 4)
    prior = prior_of(D)
    theta = jnp.array(prior.mean) + jnp.linalg.cholesky(
        jnp.array(prior.covariance)
    ) @ random.normal(key_theta, (D,))
    variance = prior.rate / gamma(key_variance, jnp.array(prior.shape))
    q = FRAME.rotation
    scale = jnp.linalg.cholesky(jnp.linalg.inv(q.T @ EMPTY.feature_scale @ q)) @ bartlett(
        key_feature, EMPTY.feature_degrees, D
    )
    half = jnp.linalg.cholesky(jnp.linalg.inv(scale @ scale.T))
    position = coordinates(
        jnp.log(variance), jnp.linalg.inv(half), half @ bartlett(key_grams, EMPTY.counts, D)
    )
    return theta, variance, position


def draw_data(key, state):
    key_grams, key_moments = random.split(key)
    _, _, grams = matrices_at(state.position, framed_with(jnp.zeros((J, D, D)), jnp.zeros((J, D))))
    upper = jnp.triu(random.normal(key_grams, (J, D, D)))
    noise = EMPTY.gram_sds * (upper + jnp.triu(upper, 1).swapaxes(-1, -2))
    factor = normal_x.covariance_factor(grams, state.noise_variance, EMPTY)
    return framed_with(
        grams + noise,
        grams @ state.theta + (factor @ random.normal(key_moments, (J, D, 1)))[..., 0],
    )


def summaries(state):
    log_variance, feature, grams = matrices_at(
        state.position, framed_with(jnp.zeros((J, D, D)), jnp.zeros((J, D)))
    )
    sizes = [
        jnp.linalg.slogdet(grams)[1],
        jnp.log(jnp.trace(grams, axis1=1, axis2=2)),
        jnp.linalg.slogdet(feature)[1][None],
        feature[0, :1],
    ]
    return jnp.concatenate(
        [state.theta, log_variance[None], state.noise_variance[None], feature[0, 1:], *sizes]
    )


def draw_evidence(rng: np.random.Generator, prior: Prior) -> tuple[np.ndarray, Evidence]:
    """Truth (θ, θ_1θ_2, σ²) from the prior, and two holders' releases with noise of the size of
    their Gram matrices.
    """
    feature = stats.invwishart(prior.feature_degrees, prior.feature_scale).rvs(random_state=rng)
    variance = float(stats.invgamma(prior.shape, scale=prior.rate).rvs(random_state=rng))
    theta = rng.multivariate_normal(prior.mean, prior.covariance)
    rows = COUNTS.astype(int)
    tables = [rng.multivariate_normal(np.zeros(2), feature, n) for n in rows]
    upper = np.triu(
        rng.normal(size=(J, 2, 2))
        * np.where(
            np.eye(2), *(SDS[name][:, None, None] for name in ("gram_sd", "off_diagonal_sd"))
        )
    )
    grams = np.array([x.T @ x for x in tables]) + upper + np.triu(upper, 1).swapaxes(1, 2)
    moments = np.array(
        [x.T @ (x @ theta + math.sqrt(variance) * rng.normal(size=len(x))) for x in tables]
    )
    moments += SDS["moment_sd"][:, None] * rng.normal(size=(J, 2))
    return np.array([*theta, theta.prod(), variance]), Evidence(
        grams, moments, **SDS, counts=COUNTS
    )


def simulated(d: int, holders: int, *, rows: int, seed: int = 0) -> tuple[Evidence, Prior]:
    """θ ~ N(0, I), Σ ~ IW(V'V, d + 1), σ² = 1, ε = 1, δ = 1/n, replace-one. Bounds are the data's
    maxima, as in the paper: a leak.
    """
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d))
    scale = root.T @ root
    x = (
        rng.normal(size=(rows, d))
        @ np.linalg.cholesky(np.atleast_2d(stats.invwishart(d + 1, scale).rvs(random_state=rng))).T
    )
    y = x @ rng.normal(size=d) + rng.normal(size=rows)
    bound = sensitivity(
        np.linalg.norm(x, axis=1).max(), np.abs(y).max(), Weights(1.0), "replace-one"
    )
    sd = np.full(holders, multiplier(1.0, 1 / rows) * bound)
    x, y = x.reshape(holders, -1, d), y.reshape(holders, -1)
    full = sd[0] * rng.normal(size=(holders, d, d))
    grams = x.swapaxes(1, 2) @ x + (full + full.swapaxes(1, 2)) / 2
    moments = np.einsum("jni,jn->ji", x, y) + sd[0] * rng.normal(size=(holders, d))
    counts = np.full(holders, rows / holders)
    return Evidence(grams, moments, sd, sd / math.sqrt(2), sd, counts), Prior(
        np.zeros(d), np.eye(d), 20.0, 0.5, scale, d + 1.0
    )
