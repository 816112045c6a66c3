"""Geweke's joint test and simulation-based calibration of `fixed-s` and `normal-x`, and wrong
kernels that they must reject.

False-alarm rate of a passing assertion: 1e-6 (seeds are fixed, so it was taken once). A wrong
kernel must reach 1e-6.

Covers `tacit.analyst.methods.fixed_s`, `tacit.analyst.methods.normal_x`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import pytest
from calibration import Model, geweke, sbc, smallest

from tacit.analyst.methods import fixed_s
from tacit.analyst.methods.normal_x import metropolis as normal_x
from tacit.analyst.methods.sampling import jax, jnp, random
from tacit.analyst.methods.wishart import bartlett, gamma

FALSE_ALARM = 1e-6  # seeds are fixed, but another processor rounds otherwise
REJECTION = 1e-6
D, J = 2, 2
COUNTS = (12.0, 7.0)
MEAN, SCALE = (0.5, -1.0), ((1.0, 0.3), (0.3, 0.7))  # m, C
SHAPE, RATE = 4.0, 2.0  # a, b: the noise of ẑ below is of the size of σ²S, so that both matter
MOMENT_SD, GRAM_SD = (1.0, 2.0), (2.0, 3.0)


class Truth(NamedTuple):
    theta: jax.Array
    noise_variance: jax.Array


def draw_truth(key) -> Truth:
    key_theta, key_variance = random.split(key)
    theta = jnp.array(MEAN) + jnp.linalg.cholesky(jnp.array(SCALE)) @ random.normal(key_theta, (D,))
    return Truth(theta, RATE / gamma(key_variance, jnp.array(SHAPE)))


def prior_parts():
    precision = jnp.linalg.inv(jnp.array(SCALE))
    return precision, precision @ jnp.array(MEAN), jnp.array(SHAPE), jnp.array(RATE)


# fixed-s: D_k, directions and τ_k² are fixed, one direction carries no data.

VALUES = (9.0, 2.0, 0.0, 4.0)
ANGLES = (0.3, 1.1)


def fixed_s_problem(observations):
    angles = jnp.array(ANGLES)
    pairs = jnp.stack(
        [
            jnp.stack([jnp.cos(angles), jnp.sin(angles)], -1),
            jnp.stack([-jnp.sin(angles), jnp.cos(angles)], -1),
        ],
        1,
    )
    values, variances = jnp.array(VALUES), jnp.repeat(jnp.array(MOMENT_SD) ** 2, D)
    rows = jnp.concatenate([values[:, None] * pairs.reshape(-1, D), observations[:, None]], 1)
    return fixed_s.Problem(rows[None], values[None], variances[None], *prior_parts())


def fixed_s_state(key):
    truth = draw_truth(key)
    return fixed_s.State(
        *truth, fixed_s.Weighted(jnp.zeros((D + 1, D + 1)), jnp.zeros(())), jnp.array(0.3)
    )


def fixed_s_data(key, state):
    empty = fixed_s_problem(jnp.zeros(len(VALUES)))
    means = empty.rows[0, :, :-1] @ state.theta
    sds = jnp.sqrt(state.noise_variance * empty.values[0] + empty.variances[0])
    return fixed_s_problem(means + sds * random.normal(key, means.shape))


def fixed_s_refresh(state, problem):
    return state._replace(weighted=fixed_s.weigh(state.noise_variance, problem))


def parameters(state):
    return jnp.append(state.theta, jnp.log(state.noise_variance))


def fixed_s_model(kernel) -> Model:
    return Model(kernel, fixed_s_state, fixed_s_data, parameters, fixed_s_refresh)


# normal-x: its full model, with latent Σ and S_j.


def normal_x_problem(grams, moments):
    sds = jnp.where(
        jnp.eye(D, dtype=bool),
        jnp.array(GRAM_SD)[:, None, None],
        jnp.array(GRAM_SD)[:, None, None] / jnp.sqrt(2.0),
    )
    variances = jnp.array(MOMENT_SD) ** 2
    law = jnp.array([[1.0, 0.2], [0.2, 0.6]]), jnp.array(7.0)
    return normal_x.Problem(grams, moments, sds, variances, jnp.array(COUNTS), *prior_parts(), *law)


def normal_x_state(key):
    key_truth, key_feature, key_grams = random.split(key, 3)
    empty = normal_x_problem(jnp.zeros((J, D, D)), jnp.zeros((J, D)))
    truth = draw_truth(key_truth)
    scale = jnp.linalg.cholesky(jnp.linalg.inv(empty.feature_scale))
    precision_root = scale @ bartlett(key_feature, empty.feature_degrees, D)
    precision = precision_root @ precision_root.T
    factor = jnp.linalg.cholesky(jnp.linalg.inv(precision)) @ bartlett(key_grams, empty.counts, D)
    matrix = factor @ factor.swapaxes(-1, -2)
    grams = normal_x.FactoredGrams(
        matrix, factor, normal_x.covariance_factor(matrix, truth.noise_variance, empty)
    )
    return normal_x.State(*truth, grams, precision, jnp.full(J, -1.2), jnp.array(0.3))


def normal_x_data(key, state):
    key_grams, key_moments = random.split(key)
    empty = normal_x_problem(jnp.zeros((J, D, D)), jnp.zeros((J, D)))
    upper = jnp.triu(random.normal(key_grams, (J, D, D)))
    noise = empty.gram_sds * (upper + jnp.triu(upper, 1).swapaxes(-1, -2))
    whitened = random.normal(key_moments, (J, D, 1))
    moments = state.grams.matrix @ state.theta + (state.grams.covariance_factor @ whitened)[..., 0]
    return normal_x_problem(state.grams.matrix + noise, moments)


def latent(state):
    determinants = 2 * normal_x.log_diagonal(state.grams.factor)
    traces = jnp.log(jnp.trace(state.grams.matrix, axis1=1, axis2=2))
    features = jnp.append(
        jnp.linalg.slogdet(state.feature_precision)[1], state.feature_precision[0, 1]
    )
    return jnp.concatenate([parameters(state), determinants, traces, features])


def with_rows_more(problem: normal_x.Problem, rows) -> normal_x.Problem:
    """What a kernel is shown that is to be found wrong: χ² with so many degrees too many."""
    return problem._replace(counts=problem.counts + rows)


def normal_x_model(kernel) -> Model:
    return Model(kernel, normal_x_state, normal_x_data, latent, mistaken=with_rows_more)


MODELS = {
    "fixed-s": fixed_s_model(fixed_s.FixedS()),
    "normal-x": normal_x_model(normal_x.NormalX()),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.xdist_group("kernels, calibrated")
def test_the_joint_test_passes(name):
    assert smallest(geweke(MODELS[name], random.key(1))) > FALSE_ALARM


@pytest.mark.xdist_group("kernels, calibrated")
def test_the_joint_test_notices_degrees_of_freedom_too_many():
    """Three of them: p = 1e-50, and 1e-6 with one."""
    assert smallest(geweke(MODELS["normal-x"], random.key(1), mistake=3.0)) < REJECTION


@pytest.mark.parametrize("name", ["fixed-s", pytest.param("normal-x", marks=pytest.mark.slow)])
def test_ranks_are_uniform(name):
    assert smallest(sbc(MODELS[name], random.key(2))) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_both_tests_pass_at_length(name):
    assert (
        smallest(geweke(MODELS[name], random.key(3), replicates=20_000, rounds=200)) > FALSE_ALARM
    )
    assert (
        smallest(sbc(MODELS[name], random.key(4), replicates=4_000, warmup=500, thin=20))
        > FALSE_ALARM
    )


# Deliberately wrong: each is a mistake that has been made, or nearly.


def without_jacobian(log_variance, weighted, theta, problem):
    return RIGHT_DENSITY(log_variance, weighted, theta, problem) - log_variance


def misprinted_mean(noise_variance, problem):
    """The mean of ẑ taken as σ²Sθ, as printed in the paper."""
    factor = jnp.append(jnp.full(D, noise_variance), 1.0)
    right = RIGHT_WEIGHTS(noise_variance, problem)
    return right._replace(gram=factor[:, None] * right.gram * factor)


def without_dimension_term(factor, degrees):
    d = factor.shape[-1]
    growth = 2 * normal_x.log_diagonal(factor) - d * jnp.log(degrees)
    return RIGHT_RATIO(factor, degrees) - (d + 1) / 2 * growth


RIGHT_DENSITY, RIGHT_WEIGHTS, RIGHT_RATIO = (
    fixed_s.log_density,
    fixed_s.weigh,
    normal_x.log_proposal_ratio,
)


@dataclass(frozen=True)
class WrongFixedS(fixed_s.FixedS):
    """Distinct from the right kernel, so that jax compiles it anew with the patched function
    inside.
    """

    mistake: str = ""


@dataclass(frozen=True)
class WrongNormalX(normal_x.NormalX):
    mistake: str = ""


WRONG = {
    "no Jacobian": (
        fixed_s,
        "log_density",
        without_jacobian,
        fixed_s_model(WrongFixedS("jacobian")),
    ),
    "mean σ²Sθ": (fixed_s, "weigh", misprinted_mean, fixed_s_model(WrongFixedS("mean"))),
    "no (d + 1)/2": (
        normal_x,
        "log_proposal_ratio",
        without_dimension_term,
        normal_x_model(WrongNormalX("ratio")),
    ),
}


@pytest.mark.parametrize(
    "mistake",
    ["no Jacobian", "mean σ²Sθ", pytest.param("no (d + 1)/2", marks=pytest.mark.slow)],
)
def test_the_joint_test_rejects(mistake, monkeypatch):
    module, function, wrong, model = WRONG[mistake]
    monkeypatch.setattr(module, function, wrong)
    p_values = geweke(model, random.key(1))
    assert smallest(p_values) < REJECTION


@pytest.mark.slow
@pytest.mark.parametrize("mistake", WRONG)
def test_ranks_reject(mistake, monkeypatch):
    module, function, wrong, model = WRONG[mistake]
    monkeypatch.setattr(module, function, wrong)
    p_values = sbc(model, random.key(2))
    assert smallest(p_values) < REJECTION
