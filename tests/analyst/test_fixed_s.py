"""`fixed-s`.

Covers `tacit.analyst.methods.fixed_s`, `tacit.analyst.methods.linear`.
"""

from dataclasses import replace

import numpy as np
import pytest
from calibration import assert_recovers
from numpy.testing import assert_allclose
from scipy import stats
from simulated import conjugate_moments, evidence_of

from tacit.analyst.methods import fixed_s
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.sampling import double_precision, jnp
from tacit.analyst.prior import Prior

pytestmark = pytest.mark.xdist_group("samplers")  # one process compiles what these files share

PRIOR = replace(Prior.weak(2), shape=3.0, rate=0.5)
SETTINGS = Settings(draws=1536, warmup=512, seed=3)


def test_vanishing_noise_gives_the_conjugate_posterior():
    exact = evidence_of(noise=0.0)
    mean, covariance, variance = conjugate_moments(exact, PRIOR)
    draws = fixed_s.fit(exact, PRIOR, SETTINGS)
    for k in range(2):
        assert_recovers(draws.theta[..., k], mean[k])
        assert_recovers((draws.theta[..., k] - mean[k]) ** 2, covariance[k, k])
    assert_recovers(
        (draws.theta[..., 0] - mean[0]) * (draws.theta[..., 1] - mean[1]), covariance[0, 1]
    )
    assert_recovers(draws.noise_variance, variance)


def test_the_variance_step_has_the_dense_density():
    """Differences over σ² of the log-density equal those of dense normal and inverse-gamma
    densities with the Jacobian.
    """
    evidence = evidence_of()
    evidence.grams[1] = [[1.0, 3.0], [3.0, 2.0]]  # indefinite, so that a direction is cut
    problem = fixed_s.problem_of(evidence, PRIOR)
    theta, logs = np.array([0.3, -0.8]), np.array([-2.0, -0.5, 1.0])

    def dense(t):
        total = stats.invgamma.logpdf(np.exp(t), PRIOR.shape, scale=PRIOR.rate) + t
        for gram, moment, sd in zip(
            evidence.grams, evidence.moments, evidence.moment_sd, strict=True
        ):
            values, vectors = np.linalg.eigh(gram)
            nearest = vectors @ np.diag(np.maximum(values, 0)) @ vectors.T
            total += stats.multivariate_normal.logpdf(
                moment, nearest @ theta, np.exp(t) * nearest + sd**2 * np.eye(2)
            )
        return total

    with double_precision():
        ours = [
            float(
                fixed_s.log_density(
                    t, fixed_s.weigh(jnp.exp(t), problem), jnp.asarray(theta), problem
                )
            )
            for t in logs
        ]
    assert_allclose(np.diff(ours), np.diff([dense(t) for t in logs]), rtol=1e-10)


def test_negative_eigenvalues_are_cut():
    problem = fixed_s.problem_of(replace(evidence_of(), grams=-np.stack([np.eye(2)] * 3)), PRIOR)
    assert np.all(np.asarray(problem.values) == 0)


def test_blocks_and_padding_change_nothing(monkeypatch):
    evidence = evidence_of()
    with double_precision():
        whole = fixed_s.weigh(jnp.asarray(0.7), fixed_s.problem_of(evidence, PRIOR))
        monkeypatch.setattr(fixed_s, "BLOCK", 4)
        problem = fixed_s.problem_of(evidence, PRIOR)
        cut = fixed_s.weigh(jnp.asarray(0.7), problem)
    assert problem.rows.shape == (2, 4, 3)
    assert_allclose(cut.gram, whole.gram, rtol=1e-12)
    assert_allclose(cut.log_variances, whole.log_variances, rtol=1e-12)


@pytest.mark.parametrize(
    "grams", [np.zeros((3, 2, 2)), np.ones((3, 2, 2))], ids=["no data", "collinear"]
)
def test_exact_singular_evidence_gives_finite_draws(grams):
    exact = evidence_of(noise=0.0)
    draws = fixed_s.fit(
        replace(exact, grams=grams, moments=grams @ np.array([0.2, 0.1])), PRIOR, SETTINGS
    )
    assert np.isfinite(draws.theta).all()
    assert np.isfinite(draws.noise_variance).all()


def test_without_data_the_posterior_is_the_prior():
    draws = fixed_s.fit(replace(evidence_of(), grams=np.zeros((3, 2, 2))), PRIOR, SETTINGS)
    assert_recovers(draws.theta[..., 0], 0.0)
    assert_recovers(draws.theta[..., 0] ** 2, 1.0)
    assert_recovers(
        np.log(draws.noise_variance),
        stats.invgamma.expect(np.log, (PRIOR.shape,), scale=PRIOR.rate),
    )
