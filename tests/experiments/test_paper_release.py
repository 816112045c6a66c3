"""The paper's release in its two calibrations."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from experiments.model.priors import SIGMA, paper_prior, prior_for
from experiments.model.published import published_multiplier
from experiments.model.release import Budget, noise_sds, noisy, standard_noise, statistics_of
from experiments.run.closed import fixed_s_fast_of
from tacit.analyst.methods.bernstein_sheldon import problem_of
from tacit.privacy.gaussian import multiplier

BUDGET = Budget(1.0, 1e-4)


@pytest.fixture
def statistics():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(103, 3))
    return statistics_of(x, x @ [0.2, -0.1, 0.05] + 0.05 * rng.normal(size=103), 4)


def test_holders_have_consecutive_rows_and_add_up(statistics):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(103, 3))
    assert statistics.counts.tolist() == [26.0, 26.0, 26.0, 25.0]
    assert_allclose(statistics.grams.sum(axis=0), x.T @ x)
    assert statistics.row_bound == pytest.approx(np.linalg.norm(x, axis=1).max())


def test_sds_of_the_two_calibrations(statistics):
    x, y = statistics.row_bound, statistics.response_bound
    published = noise_sds("as-published", "pair", statistics, BUDGET)
    assert (
        published.gram
        == published.moment
        == pytest.approx(published_multiplier(*BUDGET) * math.sqrt(x**4 + x**2 * y**2))
    )
    honest = noise_sds("honest", "pair", statistics, BUDGET)
    assert honest.gram == pytest.approx(multiplier(*BUDGET) * math.sqrt(2) * (x**2 + y**2 / 2))
    thirds = noise_sds("as-published", "eigen", statistics, BUDGET)
    assert thirds.moment == pytest.approx(published_multiplier(1 / 3, 1e-4 / 3) * x * y)
    assert thirds.eigenvalue == pytest.approx(math.sqrt(math.log(6e4)) * 3 * x**2)
    of_100k = noise_sds("as-published", "eigen", statistics, Budget(1.0, 1e-5))
    assert of_100k.eigenvalue / x**2 == pytest.approx(10.94, abs=0.005)
    text = noise_sds("as-published", "text", statistics, BUDGET)
    joint = published_multiplier(2 / 3, 2e-4 / 3) * math.sqrt(x**4 + x**2 * y**2)
    assert text.gram == text.moment == pytest.approx(joint)
    assert noise_sds("as-published", "triple", statistics, BUDGET).square > published.gram


def test_noise_is_triangular_and_of_the_stated_size(statistics):
    """Each variance has a relative sd of 1 % here; five of them are allowed."""
    sds = noise_sds("honest", "triple", statistics, BUDGET)
    rng = np.random.default_rng(0)
    drawn = [noisy(statistics, sds, standard_noise(rng, 4, 3), BUDGET) for _ in range(5000)]
    away = np.array([evidence.grams for evidence in drawn]) - statistics.grams
    assert_allclose(away, away.swapaxes(-1, -2))
    assert_allclose(away.var(axis=(0, 1)), sds.gram**2, rtol=0.05)
    assert_allclose(
        np.var([evidence.squares - statistics.squares for evidence in drawn]),
        sds.square**2,
        rtol=0.05,
    )


def test_the_published_prior_of_bernstein_sheldon_is_a_precision(statistics):
    evidence = noisy(
        statistics,
        noise_sds("as-published", "triple", statistics, BUDGET),
        standard_noise(np.random.default_rng(0), 4, 3),
        BUDGET,
    )
    problem, _ = problem_of(evidence, prior_for("bernstein-sheldon", "as-published", np.eye(3)))
    assert_allclose(problem.precision, SIGMA * np.eye(3))
    problem, _ = problem_of(evidence, prior_for("bernstein-sheldon", "honest", np.eye(3)))
    assert_allclose(problem.precision, np.eye(3))


def test_fixed_s_fast_as_published_is_a_few_lines(statistics):
    noise = standard_noise(np.random.default_rng(1), 4, 3)
    sd = published_multiplier(*BUDGET) * math.sqrt(
        statistics.row_bound**4 + (statistics.row_bound * statistics.response_bound) ** 2
    )
    precision, shift = np.eye(3) / SIGMA, np.zeros(3)
    for gram, moment, more, also in zip(
        statistics.grams, statistics.moments, noise.grams, noise.moments, strict=True
    ):
        values, vectors = np.linalg.eigh(gram + sd * more)
        near = (vectors * np.maximum(values, 0)) @ vectors.T
        inner = np.linalg.inv(statistics.response_bound / 3 * near + sd**2 * np.eye(3))
        precision, shift = (
            precision + near @ inner @ near,
            shift + near @ inner @ (moment + sd * also),
        )
    found = fixed_s_fast_of("as-published", statistics, noise, BUDGET, paper_prior(np.eye(3)))
    assert_allclose(found.mean(), np.linalg.solve(precision, shift), rtol=1e-9)
