"""`normal-x`.

Covers `tacit.analyst.methods.normal_x.metropolis`, `tacit.analyst.methods.normal_x.model`.
"""

from dataclasses import replace

import numpy as np
import pytest
from calibration import assert_recovers
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from simulated import conjugate_moments, evidence_of

from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.normal_x import metropolis as normal_x
from tacit.analyst.methods.normal_x.model import whole_counts
from tacit.analyst.methods.sampling import double_precision, jnp
from tacit.analyst.prior import Prior
from tacit.errors import MethodError

pytestmark = pytest.mark.xdist_group("samplers")  # one process compiles what these files share

PRIOR = replace(Prior.weak(2), shape=3.0, rate=0.5)


def grams_of(matrices, noise_variance, problem):
    matrices = jnp.asarray(matrices)
    return normal_x.FactoredGrams(
        matrices,
        jnp.linalg.cholesky(matrices),
        normal_x.covariance_factor(matrices, noise_variance, problem),
    )


def test_the_target_is_the_product_of_its_three_densities():
    """Differences over S of the log-target equal those of SciPy's normal and Wishart densities."""
    evidence = evidence_of()
    theta, variance, feature = np.array([0.3, -0.8]), 0.7, np.array([[1.0, 0.2], [0.2, 0.6]])
    points = stats.wishart(40, feature, seed=1).rvs((4, 3))

    def dense(s, j):
        upper, sds = (
            np.triu_indices(2),
            np.where(np.eye(2), evidence.gram_sd[j], evidence.off_diagonal_sd[j]),
        )
        covariance = variance * s + evidence.moment_sd[j] ** 2 * np.eye(2)
        moment = stats.multivariate_normal.logpdf(evidence.moments[j], s @ theta, covariance)
        release = stats.norm.logpdf(evidence.grams[j][upper], s[upper], sds[upper]).sum()
        return moment + release + stats.wishart.logpdf(s, evidence.counts[j], feature)

    with double_precision():
        problem = normal_x.problem_of(evidence, PRIOR)
        precision = jnp.linalg.inv(jnp.asarray(feature))
        ours = [
            normal_x.log_target(
                grams_of(s, variance, problem), jnp.asarray(theta), precision, problem
            )
            for s in points
        ]
    assert_allclose(
        np.diff(ours, axis=0),
        np.diff([[dense(s[j], j) for j in range(3)] for s in points], axis=0),
        rtol=1e-9,
    )


def test_the_proposal_ratio_is_that_of_the_wishart_densities_both_ways():
    degrees = np.array([2.5, 30.0])
    rng = np.random.default_rng(2)
    bartlett = np.tril(rng.normal(size=(2, 3, 3)), -1) + np.sqrt(degrees)[:, None, None] * np.eye(3)
    factor = np.linalg.cholesky(stats.wishart(9, np.eye(3), seed=4).rvs(2))
    proposed_factor = factor @ bartlett / np.sqrt(degrees)[:, None, None]
    old, new = factor @ factor.swapaxes(1, 2), proposed_factor @ proposed_factor.swapaxes(1, 2)
    expected = [
        stats.wishart.logpdf(old[j], a, new[j] / a) - stats.wishart.logpdf(new[j], a, old[j] / a)
        for j, a in enumerate(degrees)
    ]
    with double_precision():
        ours = normal_x.log_proposal_ratio(jnp.asarray(bartlett), jnp.asarray(degrees))
    assert_allclose(ours, expected, rtol=1e-9)


def test_vanishing_noise_gives_the_conjugate_posterior():
    exact = evidence_of(noise=0.0)
    mean, covariance, variance = conjugate_moments(exact, PRIOR)
    draws = normal_x.fit(exact, PRIOR, Settings(draws=1536, warmup=512, seed=3))
    for k in range(2):
        assert_recovers(draws.theta[..., k], mean[k])
        assert_recovers((draws.theta[..., k] - mean[k]) ** 2, covariance[k, k])
    assert_recovers(draws.noise_variance, variance)


def test_noisy_counts_become_whole_numbers_of_d_or_more():
    evidence = replace(evidence_of(), counts=np.array([60.4, 1.0, -3.0]), count_sd=np.ones(3))
    assert_array_equal(whole_counts(evidence), [60.0, 2.0, 2.0])


@pytest.mark.parametrize(
    ("counts", "message"),
    [(np.array([60.0, 1.0, 60.0]), "2 rows or more"), (None, "publish counts")],
)
def test_missing_rows_are_refused(counts, message):
    with pytest.raises(MethodError, match=message):
        normal_x.fit(replace(evidence_of(), counts=counts), PRIOR, Settings())
