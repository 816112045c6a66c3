"""The samplers of the published code, step by step.

Covers `experiments.run.published_chains`.
"""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from experiments.model.priors import paper_prior, prior_for
from experiments.model.release import Budget, noise_sds, noisy, standard_noise, statistics_of
from experiments.run import published_chains as published
from experiments.run.chains import SAMPLERS, Plan
from experiments.run.dense import fourth_moments, noise_variances
from tacit.analyst.methods.sampling import double_precision, jax, jnp, random


def evidence_of(form, epsilon=5.0, holders=2):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 2))
    y = x @ [0.3, -0.2] + 0.2 * rng.normal(size=400)
    statistics = statistics_of(x, y, holders)
    budget = Budget(epsilon, 1e-4)
    sds = noise_sds("as-published", form, statistics, budget)
    return noisy(statistics, sds, standard_noise(rng, holders, 2), budget)


@pytest.fixture(autouse=True)
def in_double_precision():
    with double_precision():
        yield


def test_normal_x_starts_where_the_published_code_does():
    evidence = evidence_of("pair", epsilon=0.2)
    started = published.started_of(evidence, paper_prior(np.eye(2)), 1.5)
    state = published.PublishedNormalX().init(random.key(0), started)
    assert_allclose(state.theta, 0)
    assert state.noise_variance == pytest.approx(0.5)
    assert_allclose(np.exp(state.log_alpha), 400.0)  # (200/10)²
    for matrix, released in zip(state.grams.matrix, evidence.grams, strict=True):
        values, vectors = np.linalg.eigh(released)
        cut = vectors @ np.diag(np.maximum(values, 0)) @ vectors.T
        assert_allclose(matrix, cut + np.eye(2), atol=1e-8)


def test_adaptation_begins_after_a_tenth_and_never_ends():
    evidence = evidence_of("pair")
    started = published.started_of(evidence, paper_prior(np.eye(2)), 1.0)
    kernel = published.PublishedNormalX(iterations=50)
    state = kernel.init(random.key(0), started)
    step = jax.jit(kernel.step)
    alphas = [np.asarray(state.log_alpha)]
    for number in range(200):
        state, _ = step(random.fold_in(random.key(1), number), state, started, jnp.zeros(()))
        alphas.append(np.asarray(state.log_alpha))
    changed = [not np.array_equal(*pair) for pair in itertools.pairwise(alphas)]
    assert changed == [False] * 5 + [True] * 195


def test_gains_and_target_of_the_adaptation():
    """log α falls by i^(−0.6) times what the running rate exceeds 0.1 by."""
    evidence = evidence_of("pair")
    started = published.started_of(evidence, paper_prior(np.eye(2)), 1.0)
    kernel = published.PublishedNormalX(iterations=0)
    state = kernel.init(random.key(0), started)._replace(
        rate=jnp.array([0.5, 0.02]), iteration=jnp.asarray(9.0)
    )
    moved, info = kernel.step(random.key(3), state, started, jnp.zeros(()))
    speed = 10**-0.6
    accepted = np.any(np.asarray(moved.grams.matrix != state.grams.matrix), axis=(1, 2))
    rate = (1 - speed) * np.array([0.5, 0.02]) + speed * accepted
    assert_allclose(moved.rate, rate)
    assert_allclose(moved.log_alpha, np.asarray(state.log_alpha) - speed * (rate - 0.1))
    assert info.acceptance[0] == pytest.approx(accepted.mean())


def test_the_variance_walks_on_its_own_scale():
    """Differences of its log-density are those of the priors and likelihoods by SciPy."""
    evidence = evidence_of("pair")
    prior = paper_prior(np.eye(2))
    started = published.started_of(evidence, prior, 1.0)
    state = published.PublishedNormalX().init(random.key(0), started)
    state = state._replace(theta=jnp.array([0.25, -0.1]))

    def by_hand(variance):
        total = stats.invgamma.logpdf(variance, prior.shape, scale=prior.rate)
        for matrix, moment in zip(np.asarray(state.grams.matrix), evidence.moments, strict=True):
            law = stats.multivariate_normal(
                matrix @ np.array([0.25, -0.1]),
                variance * matrix + evidence.moment_sd[0] ** 2 * np.eye(2),
            )
            total += law.logpdf(moment)
        return total

    def ours(variance):
        factor = published.covariance_factor(state.grams.matrix, variance, started.problem)
        return float(published.log_density(jnp.asarray(variance), factor, state, started.problem))

    assert ours(0.05) - ours(0.4) == pytest.approx(by_hand(0.05) - by_hand(0.4), rel=1e-9)


def test_what_is_not_positive_is_refused():
    evidence = evidence_of("pair")
    started = published.started_of(evidence, paper_prior(np.eye(2)), 0.03)
    state = published.PublishedNormalX().init(random.key(0), started)
    moved, accepted = published.move_variance(
        jnp.asarray(-1.0), jnp.asarray(1e-12), state, started.problem
    )
    assert moved.noise_variance == state.noise_variance
    assert accepted == 0


def test_the_length_of_the_run_reaches_the_kernel():
    sampler = SAMPLERS["normal-x-published"]
    assert sampler.kernel_for(Plan(400, 0)).iterations == 400
    assert sampler.calibrations == ("as-published",)


def test_statistics_are_drawn_from_the_unrestricted_law():
    """Mean and covariance from 4,000 draws against the formula; five standard errors of the mean,
    and 15 % of the largest covariance."""
    evidence = evidence_of("triple")
    problem = published.sheldon_started(evidence, paper_prior(np.eye(2)), 1.0)[0].problem
    gamma = jnp.asarray([[1.0, 0.2, 0.1], [0.2, 0.8, -0.2], [0.1, -0.2, 0.5]])
    lower = np.tril_indices(3)
    draws = np.asarray(
        jax.vmap(lambda key: published.draw_statistics(key, gamma, problem))(
            random.split(random.key(0), 4000)
        )
    )[:, :, *lower]
    noise = np.asarray(noise_variances(problem))
    for j in range(2):
        own = float(problem.counts[j]) * np.asarray(fourth_moments(gamma))
        mean = float(problem.counts[j]) * np.asarray(gamma)[lower]
        covariance = np.linalg.inv(np.linalg.inv(own) + np.diag(1 / noise[j]))
        released = np.asarray(problem.released)[j][lower]
        wanted = covariance @ (np.linalg.solve(own, mean) + released / noise[j])
        error = np.sqrt(np.diag(covariance) / 4000)
        assert np.all(np.abs(draws[:, j].mean(axis=0) - wanted) < 5 * error)
        assert_allclose(np.cov(draws[:, j].T), covariance, atol=0.15 * covariance.max())


def test_coefficients_are_those_of_a_gram_matrix_plus_the_identity():
    """θ's mean over 4,000 draws is (X'X + I + Λ₀)⁻¹z, within five standard errors; the rate of σ²
    is held above b."""
    evidence = evidence_of("triple")
    prior = prior_for("bernstein-sheldon-published", "as-published", np.eye(2))
    problem = published.sheldon_started(evidence, prior, 1.0)[0].problem
    total = jnp.asarray([[6.0, 1.0, 2.0], [1.0, -3.0, 1.0], [2.0, 1.0, 0.1]])
    states = jax.vmap(lambda key: published.draw_parameters(key, total, problem))(
        random.split(random.key(0), 4000)
    )
    values, vectors = np.linalg.eigh(np.asarray(total)[:2, :2])
    gram = vectors @ np.diag(np.maximum(values, 0)) @ vectors.T + np.eye(2)
    wanted = np.linalg.solve(gram + np.asarray(problem.precision), np.asarray(total)[:2, 2])
    theta = np.asarray(states.theta)
    assert np.all(np.abs(theta.mean(axis=0) - wanted) < 5 * theta.std(axis=0) / np.sqrt(4000))
    shape = float(problem.shape + problem.counts.sum() / 2)
    mean = np.asarray(states.noise_variance).mean()
    assert mean == pytest.approx(float(problem.rate) / (shape - 1), rel=0.02)
