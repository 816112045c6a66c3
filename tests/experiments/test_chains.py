"""Many problems at once: the chains that the experiments run."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from experiments.model.priors import paper_prior
from experiments.model.release import Budget, noise_sds, noisy, standard_noise, statistics_of
from experiments.run.chains import KEPT, SAMPLERS, Plan, sample, stacked
from experiments.run.dense import conditional, draw_statistics, noise_variances
from experiments.run.mmd import mmd_own, mmd_published
from tacit.analyst.methods import bernstein_sheldon, exact_fixed_s
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.sampling import double_precision, jax, jnp


def evidences(count, form, holders=2):
    found = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(400, 2))
        statistics, budget = (
            statistics_of(x, x @ [0.3, -0.2] + 0.2 * rng.normal(size=400), holders),
            Budget(5.0, 1e-4),
        )
        found.append(
            noisy(
                statistics,
                noise_sds("honest", form, statistics, budget),
                standard_noise(rng, holders, 2),
                budget,
            )
        )
    return found


def run(method, found, iterations, seed=0):
    sampler = SAMPLERS[method]
    priors = [paper_prior(np.eye(2))] * len(found)
    problems, stretch = stacked(sampler, found, priors, [1.0] * len(found))
    return sample(sampler, problems, stretch, Plan(iterations, seed))


def test_each_chain_is_that_of_its_own_problem():
    """Six chains against the exact posterior.

    12 means and 12 variances, each within 5 (false alarm about 1e-5 for normal errors).
    """
    found = evidences(6, "pair")
    chains = run("fixed-s", found, 8000)
    exact = [
        exact_fixed_s.METHOD.fit(evidence, paper_prior(np.eye(2)), Settings()) for evidence in found
    ]
    means, variances = (
        np.array([law.mean() for law in exact]),
        np.array([np.diag(law.covariance()) for law in exact]),
    )
    assert_allclose(chains.mean, means, atol=5 * np.sqrt(variances.max() / 1000))
    spread = np.diagonal(
        chains.second - chains.mean[:, :, None] * chains.mean[:, None, :], axis1=1, axis2=2
    )
    assert_allclose(spread, variances, rtol=5 * np.sqrt(2 / 1000))
    assert chains.thinned.shape == (6, KEPT, 2)
    assert_allclose(chains.thinned.mean(axis=1), means, atol=5 * np.sqrt(variances.max() / KEPT))
    assert np.ptp(means[:, 0]) > 10 * np.sqrt(
        variances.max() / 1000
    )  # problems differ by more than that


def test_a_seed_fixes_the_chains():
    found = evidences(3, "pair")
    first, again, other = (run("fixed-s", found, 400, seed) for seed in (7, 7, 8))
    assert_array_equal(first.thinned, again.thinned)
    assert not np.array_equal(first.thinned, other.thinned)


def test_the_dense_law_of_the_statistics_is_the_packages():
    """Means by formula.

    Covariances from 4,000 draws of the dense form, entry by entry within 15 % of the largest.
    """
    evidence = evidences(1, "triple")[0]
    problem, _ = bernstein_sheldon.problem_of(evidence, paper_prior(np.eye(2)))
    lower = np.tril_indices(3)
    with double_precision():
        gamma = jnp.asarray([[1.0, 0.2, 0.1], [0.2, 0.8, -0.2], [0.1, -0.2, 0.5]])
        prior, _, gain = conditional(gamma, problem)
        mean = prior + jnp.einsum("jab,jb->ja", gain, problem.released[:, *lower] - prior)
        n_v = np.asarray(problem.counts)[:, None, None] * np.asarray(
            expected_fourth_moments(np.asarray(gamma))
        )
        noise = np.asarray(noise_variances(problem))
        draws = np.asarray(
            jax.vmap(lambda key: draw_statistics(key, gamma, problem))(
                jax.random.split(jax.random.key(0), 4000)
            )
        )
    for j in range(2):
        precision = np.linalg.inv(n_v[j]) + np.diag(1 / noise[j])
        covariance = np.linalg.inv(precision)
        by_hand = covariance @ (
            np.linalg.solve(n_v[j], np.asarray(prior)[j])
            + np.asarray(problem.released)[j][lower] / noise[j]
        )
        assert_allclose(np.asarray(mean)[j], by_hand, rtol=1e-6)
        assert_allclose(np.cov(draws[:, j][:, *lower].T), covariance, atol=0.15 * covariance.max())


def expected_fourth_moments(gamma):
    """Cov(g_a g_b, g_c g_e) of a centred normal vector, entry by entry."""
    pairs = list(zip(*np.tril_indices(len(gamma)), strict=True))
    return [
        [gamma[a, c] * gamma[b, e] + gamma[a, e] * gamma[b, c] for c, e in pairs] for a, b in pairs
    ]


def test_mmd_as_the_published_code_has_it():
    """Its expectation for N(0, s²I) and N(m, s²I) is 2(φ(0) − φ(m)), φ of variance h + 2s².

    20 estimates from 100 draws against 2,000; five standard errors are allowed, and the mean of
    estimates between equal laws is zero within as many (false alarm below 1e-5 in all).
    """
    rng = np.random.default_rng(0)
    h = 0.1
    variance = h + 2 * 0.2**2
    expected = 2 / (2 * np.pi * variance) * (1 - np.exp(-(0.3**2) / (2 * variance)))
    for shift, wanted in ((0.3, expected), (0.0, 0.0)):
        values = [
            mmd_published(
                0.2 * rng.normal(size=(100, 2)), 0.2 * rng.normal(size=(2000, 2)) + [shift, 0.0], h
            )
            for _ in range(20)
        ]
        assert np.mean(values) == pytest.approx(wanted, abs=5 * np.std(values) / np.sqrt(20))


def test_mmd_of_normal_samples():
    """N(0, s²I) and N(m, s²I) in two dimensions: 2(1 + 2s²/h²)⁻¹(1 − exp(−‖m‖²/(2h² + 4s²))).

    3,000 draws of each.
    """
    rng = np.random.default_rng(0)
    left, right = 0.1 * rng.normal(size=(3000, 2)), 0.1 * rng.normal(size=(3000, 2)) + [0.15, 0.0]
    expected = 2 / (1 + 2) * (1 - np.exp(-(0.15**2) / (6 * 0.01)))
    assert mmd_own(left, right, 0.1) == pytest.approx(expected, rel=0.1)
    assert mmd_own(left, left, 0.1) == pytest.approx(0.0, abs=1e-12)
