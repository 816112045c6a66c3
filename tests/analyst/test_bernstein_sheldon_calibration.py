"""`bernstein-sheldon`: Geweke's test, and calibration by simulation.

Every statistical assertion has a false-alarm rate of at most 1e-6, Bonferroni over its parts; seeds
are fixed.
"""

from functools import cache

import numpy as np
import pytest
from calibration import Model, geweke, sbc, smallest
from dense_releases import FALSE_ALARM, SDS, entry_noise, evidence_of, unvech, without_the_two

from tacit.analyst.methods import bernstein_sheldon as method
from tacit.analyst.methods.sampling import double_precision, jnp, random
from tacit.analyst.prior import Prior


@pytest.fixture(autouse=True)
def float64():
    with double_precision():
        yield


# The joint law


def prior_state(key, template):
    """Parameters from the prior of a problem; its statistics are not from the model yet."""
    key_variance, key_theta, key_features = random.split(key, 3)
    noise_variance = template.rate / random.gamma(key_variance, template.shape)
    root = jnp.linalg.cholesky(template.precision)
    theta = template.mean + jnp.sqrt(noise_variance) * jnp.linalg.solve(
        root.T, random.normal(key_theta, template.mean.shape)
    )
    features = method.inverse_wishart(
        key_features, template.feature_scale, template.feature_degrees
    )
    return method.State(theta, noise_variance, features, template.released, 0 * template.counts)


def parameters(state):
    return [
        *state.theta,
        jnp.log(state.noise_variance),
        jnp.linalg.slogdet(state.features)[1],
        state.features[0, 1],
    ]


@cache
def gaussian_law(name):
    """State, problem and summaries under the law that the method assumes, where its conditionals
    agree with each other.

    Drawing G as Gaussian and the parameters as if it were Wishart is consistent only in the limit
    of many rows, and where Γ is known to a small fraction: so the prior is worth as many rows as
    the data, 100,000. The noise is of the size of the sampling variation.
    """
    rows, sds = 1e5, 60 * np.array(SDS[name])
    with double_precision():
        prior = Prior(
            np.array([0.5, -1.0]),
            0.5 / rows * np.eye(2),
            rows / 2,
            rows / 4,
            rows * np.array([[1.0, 0.3], [0.3, 0.6]]),
            rows,
        )
        evidence = evidence_of(np.random.default_rng(0), sds, counts=(40_000, 60_000))
        template, c = method.problem_of(evidence, prior)
        variances = jnp.asarray(unvech(entry_noise(sds, c, 2), 3) / method.entry_variances(3))

    def draw_state(key):
        key_parameters, key_statistics = random.split(key)
        state = prior_state(key_parameters, template)
        root = jnp.linalg.cholesky(method.joint_covariance(state))
        counts = template.counts[:, None, None]
        deviation = root @ method.standard_symmetric(key_statistics, 2, 3) @ root.T
        return state._replace(
            statistics=counts * (root @ root.T) + jnp.sqrt(2 * counts) * deviation
        )

    def draw_problem(key, state):
        return template._replace(
            released=state.statistics + jnp.sqrt(variances) * method.standard_symmetric(key, 2, 3)
        )

    def summaries(state):
        return jnp.array([*parameters(state), *jnp.linalg.slogdet(state.statistics)[1]])

    return draw_state, draw_problem, summaries


@cache
def exact_law():
    """State, problem and summaries for few rows, a weak prior and no noise: here the method is
    exact.
    """
    counts = (8, 5)
    with double_precision():
        template, _ = method.problem_of(
            evidence_of(np.random.default_rng(0), (0, 0, 0, 0), counts), Prior.weak(2)
        )

    def draw_problem(key, state):
        root = jnp.linalg.cholesky(method.joint_covariance(state))
        rows = [
            random.normal(one, (n, 3)) @ root.T
            for one, n in zip(random.split(key), counts, strict=True)
        ]
        released = jnp.array([x.T @ x for x in rows])
        noise = (method.FLOOR * jnp.abs(released).max((1, 2))) ** 2
        return template._replace(released=released, noise=noise, square_noise=noise)

    return (
        lambda key: prior_state(key, template),
        draw_problem,
        lambda state: jnp.array(parameters(state)),
    )


class HalfVariance(method.BernsteinSheldon):
    """Wrong on purpose where `conditional` is `without_the_two`; a class of its own, so that
    nothing compiled is shared.
    """


class WithoutHalf(method.BernsteinSheldon):
    """Wrong on purpose: b_n lacks the ½, as in the paper's text."""

    def step(self, key, state, problem, _gain):
        statistics, accepted = method.move_statistics(key, state, problem)
        gram, moment, square = (
            statistics.sum(0)[:2, :2],
            statistics.sum(0)[:2, 2],
            statistics.sum(0)[2, 2],
        )
        posterior = gram + problem.precision
        centre = jnp.linalg.solve(posterior, moment)
        rate = problem.rate + square - centre @ posterior @ centre
        key_features, key_variance, key_theta = random.split(key, 3)
        noise_variance = rate / random.gamma(key_variance, problem.shape + problem.counts.sum() / 2)
        theta = random.multivariate_normal(
            key_theta, centre, noise_variance * jnp.linalg.inv(posterior)
        )
        features = method.inverse_wishart(
            key_features,
            problem.feature_scale + gram,
            problem.feature_degrees + problem.counts.sum(),
        )
        return method.State(
            theta, noise_variance, features, statistics, state.log_step
        ), method.Info(accepted[:1])


@pytest.mark.parametrize(
    "name",
    [
        "triangular",
        *(pytest.param(name, marks=pytest.mark.slow) for name in SDS if name != "triangular"),
    ],
)
def test_geweke(name):
    assert (
        smallest(
            geweke(Model(method.BernsteinSheldon(), *gaussian_law(name)), random.key(1), 1000, 30)
        )
        > FALSE_ALARM
    )


def test_geweke_rejects_half_the_variance(monkeypatch):
    monkeypatch.setattr(method, "conditional", without_the_two)
    assert (
        smallest(
            geweke(Model(HalfVariance(), *gaussian_law("triangular")), random.key(1), 1000, 30)
        )
        < 1e-9
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", SDS)
def test_calibration_with_noise(name):
    model = Model(method.BernsteinSheldon(), *gaussian_law(name))
    assert (
        smallest(sbc(model, random.key(2), replicates=2000, warmup=200, draws=63, thin=10))
        > FALSE_ALARM
    )


@pytest.mark.slow
def test_calibration_without_noise():
    model = Model(method.BernsteinSheldon(), *exact_law())
    assert (
        smallest(sbc(model, random.key(2), replicates=1000, warmup=10, draws=63, thin=1))
        > FALSE_ALARM
    )


@pytest.mark.slow
def test_calibration_rejects_a_rate_without_the_half():
    assert (
        smallest(
            sbc(
                Model(WithoutHalf(), *exact_law()),
                random.key(2),
                replicates=300,
                warmup=10,
                draws=63,
                thin=1,
            )
        )
        < 1e-9
    )
