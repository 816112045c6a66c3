"""`normal-x` with an intercept that is 1 in every row: its densities against those of SciPy.

Covers `tacit.analyst.methods.normal_x.frame`.
"""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from with_constant import evidence_of, parameters_at, prior_of

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.normal_x import (
    metropolis as normal_x,
)
from tacit.analyst.methods.normal_x.frame import Framed, in_frame
from tacit.analyst.methods.normal_x.gradient import (
    point_at,
)
from tacit.analyst.methods.sampling import double_precision, jax, jnp
from tacit.analyst.prior import Prior

pytestmark = pytest.mark.xdist_group(
    "normal-x intercept"
)  # one process compiles what its tests share

# The model: a normal-inverse-Wishart prior, normal means and Wishart scatters, from SciPy.


def free_entries(position, framed: Framed):
    log_variance, mean, feature, means, scatters = parameters_at(position, framed)
    upper = jnp.triu_indices(len(mean))
    return jnp.concatenate(
        [log_variance[None], mean, feature[upper], means.ravel(), scatters[:, *upper].ravel()]
    )


def density(parameters, evidence: Evidence, prior: Prior, lost: int) -> float:
    """Parameters and releases, with θ integrated out; scatters have n − `lost` degrees of
    freedom.
    """
    log_variance, mean, feature, means, scatters = (np.asarray(part) for part in parameters)
    variance, d, upper = math.exp(log_variance), evidence.d, np.triu_indices(evidence.d)
    weight, middle = (
        prior.feature_scale[0, 0],
        prior.feature_scale[1:, 0] / prior.feature_scale[0, 0],
    )
    scale = prior.feature_scale[1:, 1:] - weight * np.outer(middle, middle)
    total = stats.invwishart.logpdf(feature, prior.feature_degrees, scale)
    total += stats.multivariate_normal.logpdf(mean, middle, feature / weight)
    total += stats.invgamma.logpdf(variance, prior.shape, scale=prior.rate) + log_variance
    blocks, grams = np.zeros((evidence.holders * d,) * 2), []
    for j, n in enumerate(evidence.counts):
        total += stats.multivariate_normal.logpdf(
            means[j], mean, feature / n
        ) + stats.wishart.logpdf(scatters[j], n - lost, feature)
        whole = np.append(1.0, means[j])
        gram = n * np.outer(whole, whole)
        gram[1:, 1:] += scatters[j]
        sds = np.where(np.eye(d), evidence.gram_sd[j], evidence.off_diagonal_sd[j])
        total += stats.norm.logpdf(evidence.grams[j][upper], gram[upper], sds[upper])[
            1:
        ].sum()  # all but the entry that is n
        blocks[j * d : (j + 1) * d, j * d : (j + 1) * d] = variance * gram + evidence.moment_sd[
            j
        ] ** 2 * np.eye(d)
        grams.append(gram)
    stacked = np.concatenate(grams)
    covariance = blocks + stacked @ prior.covariance @ stacked.T
    return float(
        total
        + stats.multivariate_normal.logpdf(
            evidence.moments.ravel(), stacked @ prior.mean, covariance
        )
    )


@jax.jit
def look(positions, framed: Framed):
    jacobians = jax.vmap(jax.jacobian(free_entries), (0, None))(positions, framed)
    parameters = jax.vmap(parameters_at, (0, None))(positions, framed)
    return (
        jax.vmap(point_at, (0, None))(positions, framed).log_density,
        jnp.linalg.slogdet(jacobians)[1],
        parameters,
    )


def density_gaps(evidence: Evidence, prior: Prior, framed: Framed, lost: int = 1) -> np.ndarray:
    """Our log-density less SciPy's and the log-Jacobian, at random points, less its mean: 0 where
    they are the same law.
    """
    size = 1 + (evidence.holders + 1) * (evidence.d * (evidence.d + 1) // 2 - 1)
    with double_precision():
        ours, jacobian, parameters = look(np.random.default_rng(4).normal(size=(6, size)), framed)
    theirs = np.array(
        [density(each, evidence, prior, lost) for each in zip(*parameters, strict=True)]
    )
    gaps = np.asarray(ours) - np.asarray(jacobian) - theirs
    return gaps - gaps.mean()


@pytest.mark.parametrize(("p", "noise"), [(1, 2.0), (2, 0.5), (3, 30.0)])
def test_the_density_is_that_of_means_and_scatters(p, noise):
    evidence, prior = evidence_of(p=p, rows=(9, 14), noise=noise), prior_of(p + 1)
    framed = in_frame(normal_x.problem_of(evidence, prior), constant=True)
    assert_allclose(density_gaps(evidence, prior, framed), 0.0, atol=1e-7)
    assert np.abs(density_gaps(evidence, prior, framed, lost=0)).max() > 0.05


def test_the_metropolis_target_is_that_of_means_and_scatters():
    """Differences over S of the log-target, the intercept's entry held at n, equal those of SciPy's
    densities.
    """
    evidence, rng = evidence_of(p=2), np.random.default_rng(3)
    mean, feature, theta, variance = (
        np.array([0.7, -0.9]),
        np.array([[0.1, 0.03], [0.03, 0.2]]),
        np.array([0.3, -0.8, 0.2]),
        0.7,
    )
    precision = np.zeros((3, 3))
    precision[1:, 1:] = np.linalg.inv(feature)
    precision[0, 1:] = precision[1:, 0] = (
        -precision[1:, 1:] @ mean
    )  # what is in the corner only multiplies n
    ours, theirs = [], []
    with double_precision():
        problem = normal_x.problem_of(evidence, prior_of(3))
        for _ in range(4):
            grams, total = np.zeros((2, 3, 3)), []
            for j, n in enumerate(evidence.counts):
                x = np.column_stack(
                    [np.ones(int(n)), rng.multivariate_normal(mean, feature, int(n))]
                )
                grams[j] = x.T @ x
                middle = grams[j, 1:, 0] / n
                scatter = grams[j, 1:, 1:] - n * np.outer(middle, middle)
                sds = np.where(np.eye(3), evidence.gram_sd[j], evidence.off_diagonal_sd[j])
                covariance = variance * grams[j] + evidence.moment_sd[j] ** 2 * np.eye(3)
                value = stats.multivariate_normal.logpdf(
                    evidence.moments[j], grams[j] @ theta, covariance
                )
                value += stats.wishart.logpdf(
                    scatter, n - 1, feature
                ) + stats.multivariate_normal.logpdf(middle, mean, feature / n)
                total.append(
                    value
                    + stats.norm.logpdf(evidence.grams[j], grams[j], sds)[np.triu_indices(3)][
                        1:
                    ].sum()
                )
            factor = normal_x.covariance_factor(jnp.asarray(grams), variance, problem)
            all_of_it = normal_x.FactoredGrams(
                jnp.asarray(grams), jnp.linalg.cholesky(jnp.asarray(grams)), factor
            )
            ours.append(
                normal_x.log_target(all_of_it, jnp.asarray(theta), jnp.asarray(precision), problem)
            )
            theirs.append(total)
    assert_allclose(np.diff(ours, axis=0), np.diff(theirs, axis=0), rtol=1e-9)
