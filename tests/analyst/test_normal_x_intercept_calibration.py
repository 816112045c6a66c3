"""`normal-x` with an intercept that is 1 in every row: Geweke's test, and ranks of the truth.

False-alarm rates: 1e-6 per comparison of means, 1e-6 per calibration test (seeds are fixed, so it
was taken once). A wrong kernel must reach 1e-6.
"""

import numpy as np
import pytest
from calibration import Model, geweke, sbc, smallest
from scipy import stats
from with_constant import parameters_at, prior_of

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.normal_x import (
    frame as normal_x_frame,
)
from tacit.analyst.methods.normal_x import (
    gradient as normal_x_gradient,
)
from tacit.analyst.methods.normal_x import (
    metropolis as normal_x,
)
from tacit.analyst.methods.normal_x.frame import Framed, in_frame
from tacit.analyst.methods.normal_x.gradient import (
    Hamiltonian,
    point_at,
)
from tacit.analyst.methods.sampling import double_precision, jax, jnp, random
from tacit.analyst.methods.wishart import gamma

FALSE_ALARM = 1e-6  # seeds are fixed, but another processor rounds otherwise
REJECTION = 1e-6


# Calibration at one feature, where the model is: v ~ IG, μ | v normal, mean and scatter of every
# holder normal and χ².

D, J, COUNTS = 2, 2, np.array([12.0, 7.0])
SDS = {
    "gram_sd": np.array([4.0, 9.0]),
    "off_diagonal_sd": np.array([4.0, 5.0]),
    "moment_sd": np.array([1.0, 2.0]),
}
PRIOR = prior_of(D)
EMPTY = normal_x.problem_of(
    Evidence(np.zeros((J, D, D)), np.zeros((J, D)), **SDS, counts=COUNTS), PRIOR
)
EXAMPLE = np.array([[[12.0, 9.0], [9.0, 11.0]], [[7.0, -8.0], [-8.0, 1.0]]])
FRAME = in_frame(EMPTY._replace(grams=EXAMPLE), constant=True).frame


def draw_latent(key):
    """θ, σ², v, μ, and every holder's X'X."""
    key_theta, key_feature, key_scatter, key_mean = random.split(key, 4)
    theta = jnp.array(PRIOR.mean) + jnp.linalg.cholesky(
        jnp.array(PRIOR.covariance)
    ) @ random.normal(key_theta, (D,))
    weight, middle = (
        PRIOR.feature_scale[0, 0],
        PRIOR.feature_scale[1, 0] / PRIOR.feature_scale[0, 0],
    )
    scale = PRIOR.feature_scale[1, 1] - weight * middle**2
    draws = gamma(key_feature, jnp.array([PRIOR.shape, PRIOR.feature_degrees / 2]))
    variance, feature = PRIOR.rate / draws[0], scale / 2 / draws[1]
    normal = random.normal(key_mean, (1 + J,))
    mean = middle + jnp.sqrt(feature / weight) * normal[0]
    means = mean + jnp.sqrt(feature / EMPTY.counts) * normal[1:]
    squares = 2 * feature * gamma(key_scatter, (EMPTY.counts - 1) / 2) + EMPTY.counts * means**2
    sums = EMPTY.counts * means
    grams = jnp.stack([jnp.stack([EMPTY.counts, sums], -1), jnp.stack([sums, squares], -1)], -1)
    return theta, variance, (mean, feature), grams


def noisy(key, theta, variance, grams):
    """Releases of these matrices."""
    key_grams, key_moments = random.split(key)
    upper = jnp.triu(random.normal(key_grams, (J, D, D))).at[:, 0, 0].set(0.0)
    noise = EMPTY.gram_sds * (upper + jnp.triu(upper, 1).swapaxes(-1, -2))
    factor = normal_x.covariance_factor(grams, variance, EMPTY)
    return grams + noise, grams @ theta + (factor @ random.normal(key_moments, (J, D, 1)))[..., 0]


def summary_of(state, mean, feature, grams):
    sizes = [jnp.log(jnp.linalg.det(grams)), grams[:, 0, 1]]
    return jnp.concatenate(
        [
            state.theta,
            jnp.log(state.noise_variance)[None],
            mean[None],
            jnp.log(feature)[None],
            *sizes,
        ]
    )


def metropolis_state(key):
    theta, variance, (mean, feature), matrix = draw_latent(key)
    precision = jnp.array(
        [[1 + mean**2 / feature, -mean / feature], [-mean / feature, 1 / feature]]
    )
    grams = normal_x.FactoredGrams(
        matrix, jnp.linalg.cholesky(matrix), normal_x.covariance_factor(matrix, variance, EMPTY)
    )
    return normal_x.State(theta, variance, grams, precision, jnp.full(J, -1.2), jnp.array(0.3))


def metropolis_data(key, state):
    grams, moments = noisy(key, state.theta, state.noise_variance, state.grams.matrix)
    return EMPTY._replace(grams=grams, moments=moments)


def metropolis_summary(state):
    precision = state.feature_precision
    return summary_of(
        state, -precision[0, 1] / precision[1, 1], 1 / precision[1, 1], state.grams.matrix
    )


def with_rows_more(problem: normal_x.Problem, rows) -> normal_x.Problem:
    """Wrong: the scatter about the mean taken for W(Σ, n), as if the mean cost no degree."""
    return problem._replace(counts=problem.counts + rows)


def framed_with(grams, moments) -> Framed:
    return Framed(
        normal_x_frame.rotated(EMPTY._replace(grams=grams, moments=moments), FRAME.rotation), FRAME
    )


NOTHING = jnp.zeros((J, D, D)), jnp.zeros((J, D))


def gradient_state(key):
    """The inverse of the frame's map, written down afresh; one feature can at most change its
    sign.
    """
    theta, variance, (mean, feature), grams = draw_latent(key)
    sign = FRAME.rotation[1, 1]
    beta, weight = sign * mean, FRAME.information[1, 0] * feature
    certainty = 1 + weight
    below = (
        beta / FRAME.axes[1, 0, 0] * certainty - FRAME.centre[1, 0] - weight * FRAME.estimate[1, 0]
    )
    on = (jnp.log(feature) - FRAME.log_centre[1]) / FRAME.log_spread[1]
    root = jnp.array([[1.0, 0.0], [-beta, 1.0]]) / jnp.sqrt(jnp.array([[1.0], [feature]]))
    turn = jnp.diag(jnp.array([1.0, sign]))
    t, guess = root @ jnp.linalg.cholesky(turn @ grams @ turn), root @ FRAME.factors
    middle = FRAME.weight[:, 1, 1] * jnp.log(guess[:, 1, 1]) + (
        1 - FRAME.weight[:, 1, 1]
    ) * 0.5 * jnp.log(EMPTY.counts - 1)
    ends = (jnp.log(t[:, 1, 1]) - middle) / FRAME.spread[:, 1, 1]
    sides = (t[:, 1, 0] - FRAME.weight[:, 1, 0] * guess[:, 1, 0]) / FRAME.spread[:, 1, 0]
    scaled = (jnp.log(variance) - jnp.log(EMPTY.rate / EMPTY.shape)) * jnp.sqrt(EMPTY.shape)
    holders = jnp.stack([ends, sides], -1).ravel()
    position = jnp.concatenate(
        [jnp.stack([scaled, on, below / jnp.sqrt(feature * certainty)]), holders]
    )
    point = point_at(position, framed_with(*NOTHING))
    return normal_x_gradient.State(
        theta, variance, position, point, jnp.log(0.35), jnp.zeros(3), jnp.ones(3)
    )


def grams_at(state):
    _, mean, feature, means, scatters = parameters_at(state.position, framed_with(*NOTHING))
    sums, n = EMPTY.counts * means[:, 0], EMPTY.counts
    grams = jnp.stack(
        [jnp.stack([n, sums], -1), jnp.stack([sums, scatters[:, 0, 0] + sums * means[:, 0]], -1)],
        -1,
    )
    return mean[0], feature[0, 0], grams


def gradient_data(key, state):
    return framed_with(*noisy(key, state.theta, state.noise_variance, grams_at(state)[2]))


def gradient_summary(state):
    return summary_of(state, *grams_at(state))


def refresh(state, framed: Framed):
    return state._replace(point=point_at(state.position, framed))


def framed_with_rows_more(framed: Framed, rows) -> Framed:
    return framed._replace(problem=with_rows_more(framed.problem, rows))


MODELS = {
    "gradient": Model(
        Hamiltonian(constant=True),
        gradient_state,
        gradient_data,
        gradient_summary,
        refresh,
        framed_with_rows_more,
    ),
    "metropolis": Model(
        normal_x.NormalX(constant=True),
        metropolis_state,
        metropolis_data,
        metropolis_summary,
        mistaken=with_rows_more,
    ),
}


def joint_test(name: str, **settings) -> float:
    with double_precision():
        return smallest(geweke(MODELS[name], random.key(2), replicates=1000, rounds=40, **settings))


@pytest.mark.parametrize(("name", "mistake"), [("gradient", 1.0), ("metropolis", 3.0)])
def test_geweke_and_it_notices_degrees_of_freedom_too_many(name, mistake):
    """p = 1e-34 and 1e-30; Metropolis moves less in as many rounds."""
    assert joint_test(name) > FALSE_ALARM
    assert joint_test(name, mistake=mistake) < REJECTION


@pytest.mark.slow
def test_ranks_are_uniform():
    assert smallest(sbc(MODELS["metropolis"], random.key(2))) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_geweke_at_length(name):
    with double_precision():
        assert (
            smallest(geweke(MODELS[name], random.key(3), replicates=4000, rounds=100)) > FALSE_ALARM
        )


@pytest.mark.slow
def test_ranks_of_the_truth_are_uniform():
    """Simulation-based calibration of `fit` by gradient as a whole, the choice of the frame
    included.
    """
    replicates, draws = 480, 15
    with double_precision():
        truths = jax.vmap(draw_latent)(random.split(random.key(5), replicates))
        data = jax.vmap(noisy)(
            random.split(random.key(6), replicates), truths[0], truths[1], truths[3]
        )
    ranks = np.zeros((replicates, 4))
    for r in range(replicates):
        evidence = Evidence(
            np.array(data[0][r]),
            np.array(data[1][r]),
            **SDS,
            counts=COUNTS,
            intercept=True,
            whole_rows=True,
        )
        found = normal_x_gradient.fit(
            evidence, PRIOR, Settings(chains=1, draws=draws * 8, warmup=512, seed=r)
        )
        values = np.column_stack([found.theta[0], found.theta[0].prod(1), found.noise_variance[0]])[
            7::8
        ]
        theta, variance = np.asarray(truths[0][r]), float(truths[1][r])
        ranks[r] = np.sum(values < [*theta, theta.prod(), variance], axis=0)
    p_values = [
        stats.chisquare(np.bincount(column.astype(int), minlength=draws + 1)).pvalue
        for column in ranks.T
    ]
    assert smallest(np.array(p_values)) > FALSE_ALARM
