"""`normal-x` by gradient: its density against SciPy's, its draws against Metropolis, Geweke's test,
calibration and mixing.

False-alarm rates: 1e-6 per comparison of means, 1e-6 per calibration test (seeds are fixed, so it
was taken once). A wrong kernel must reach 1e-6.

Covers `tacit.analyst.methods.normal_x.gradient`.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from calibration import Model, assert_recovers, assert_same_posterior, geweke, smallest
from framed import (
    D,
    J,
    draw_data,
    draw_evidence,
    draw_parameters,
    framed_with,
    matrices_at,
    prior_of,
    simulated,
    summaries,
    with_rows_more,
)
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from simulated import conjugate_moments, evidence_of

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.method import Settings
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
from tacit.analyst.posterior.convergence import Verdict, mixing, verdict
from tacit.analyst.prior import Prior
from tacit.errors import MethodError

pytestmark = pytest.mark.xdist_group(
    "normal-x gradient"
)  # one process compiles what its tests share

FALSE_ALARM = 1e-6  # seeds are fixed, but another processor rounds otherwise
REJECTION = 1e-6


# The density against the product of SciPy's, with the Jacobian of the coordinates.


def free_entries(position, framed: Framed):
    log_variance, feature, grams = matrices_at(position, framed)
    upper = jnp.triu_indices(feature.shape[0])
    return jnp.concatenate([log_variance[None], feature[upper], grams[:, *upper].ravel()])


def centred_density(matrices, evidence: Evidence, prior: Prior) -> float:
    """Σ, S_j, log σ² and the releases, with θ integrated out, from SciPy."""
    log_variance, feature, grams = (np.asarray(part) for part in matrices)
    variance, d, upper = math.exp(log_variance), evidence.d, np.triu_indices(evidence.d)
    density = stats.invwishart.logpdf(feature, prior.feature_degrees, prior.feature_scale)
    density += stats.invgamma.logpdf(variance, prior.shape, scale=prior.rate) + log_variance
    blocks = np.zeros((evidence.holders * d,) * 2)
    for j, gram in enumerate(grams):
        sds = np.where(np.eye(d), evidence.gram_sd[j], evidence.off_diagonal_sd[j])[upper]
        density += stats.wishart.logpdf(gram, evidence.counts[j], feature)
        density += stats.norm.logpdf(evidence.grams[j][upper], gram[upper], sds).sum()
        blocks[j * d : (j + 1) * d, j * d : (j + 1) * d] = variance * gram + evidence.moment_sd[
            j
        ] ** 2 * np.eye(d)
    stacked = grams.reshape(-1, d)
    covariance = blocks + stacked @ prior.covariance @ stacked.T
    return float(
        density
        + stats.multivariate_normal.logpdf(
            evidence.moments.ravel(), stacked @ prior.mean, covariance
        )
    )


@jax.jit
def look(positions, framed: Framed):
    """At every position: our log-density, the log-Jacobian of the free entries, and the
    matrices.
    """
    jacobians = jax.vmap(jax.jacobian(free_entries), (0, None))(positions, framed)
    matrices = jax.vmap(matrices_at, (0, None))(positions, framed)
    return (
        jax.vmap(point_at, (0, None))(positions, framed).log_density,
        jnp.linalg.slogdet(jacobians)[1],
        matrices,
    )


def density_gaps(evidence: Evidence, prior: Prior, framed: Framed) -> np.ndarray:
    """Our log-density less SciPy's and the log-Jacobian, at random points, less its mean: 0 where
    they are the same law.
    """
    size = 1 + (evidence.holders + 1) * evidence.d * (evidence.d + 1) // 2
    with double_precision():
        density, jacobian, matrices = look(np.random.default_rng(4).normal(size=(6, size)), framed)
    gaps = (
        np.asarray(density)
        - np.asarray(jacobian)
        - np.array([centred_density(each, evidence, prior) for each in zip(*matrices, strict=True)])
    )
    return gaps - gaps.mean()


@pytest.mark.parametrize("triangular", [False, True], ids=["frobenius", "triangular"])
@pytest.mark.parametrize(("d", "noise"), [(1, 2.0), (2, 8.0), (3, 0.5), (3, 50.0)])
def test_the_density_is_the_centred_one_with_its_jacobian(d, noise, triangular):
    evidence = evidence_of(d=d, holders=2, noise=noise, rows=9)
    evidence = replace(evidence, off_diagonal_sd=evidence.gram_sd) if triangular else evidence
    framed = in_frame(normal_x.problem_of(evidence, prior_of(d)))
    assert_allclose(density_gaps(evidence, prior_of(d), framed), 0.0, atol=1e-7)


def test_a_wrong_density_is_noticed():
    evidence, prior = evidence_of(d=2, holders=2, noise=8.0, rows=9), prior_of(2)
    framed = in_frame(normal_x.problem_of(evidence, prior))
    fewer = framed._replace(
        problem=framed.problem._replace(counts=np.asarray(framed.problem.counts) - 1)
    )
    no_jacobian = framed._replace(
        frame=framed.frame._replace(degrees=np.asarray(framed.frame.degrees) + 2)
    )
    for wrong in (fewer, no_jacobian):
        assert np.abs(density_gaps(evidence, prior, wrong)).max() > 0.05


# Draws against known or independent answers.


@pytest.mark.parametrize("d", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_vanishing_noise_gives_the_conjugate_posterior(d):
    exact, prior = (
        evidence_of(d=d, noise=0.0),
        replace(Prior.weak(d), shape=3.0, rate=0.5),
    )
    mean, covariance, variance = conjugate_moments(exact, prior)
    draws = normal_x_gradient.fit(exact, prior, Settings(seed=3))
    for k in range(d):
        assert_recovers(draws.theta[..., k], mean[k])
        assert_recovers((draws.theta[..., k] - mean[k]) ** 2, covariance[k, k])
    assert_recovers(draws.noise_variance, variance)


@pytest.mark.parametrize(("noise", "triangular"), [(6.0, False), (25.0, True)])
def test_metropolis_samples_the_same_posterior(noise, triangular):
    evidence = evidence_of(noise=noise)
    evidence = replace(evidence, off_diagonal_sd=evidence.gram_sd) if triangular else evidence
    ours = normal_x_gradient.fit(evidence, prior_of(2), Settings(seed=1))
    theirs = normal_x.fit(evidence, prior_of(2), Settings(draws=30_000, warmup=2000, seed=2))
    assert_same_posterior(ours, theirs)


# Geweke's joint test, in one frame for all data; the frame is that of some data.


def draw_state(key):
    theta, variance, position = draw_parameters(key)
    known = 1 + D * (D + 1) // 2
    point = point_at(position, framed_with(jnp.zeros((J, D, D)), jnp.zeros((J, D))))
    return normal_x_gradient.State(
        theta, variance, position, point, jnp.log(0.35), jnp.zeros(known), jnp.ones(known)
    )


def refresh(state, framed: Framed):
    return state._replace(point=point_at(state.position, framed))


MODEL = Model(Hamiltonian(), draw_state, draw_data, summaries, refresh, with_rows_more)


def joint_test(**settings) -> float:
    with double_precision():
        return smallest(geweke(MODEL, random.key(2), **settings))


def test_geweke_and_it_notices_a_degree_of_freedom_too_many():
    assert joint_test(replicates=500, rounds=40) > FALSE_ALARM
    assert joint_test(replicates=500, rounds=40, mistake=1.0) < REJECTION


@pytest.mark.slow
def test_geweke_at_length():
    assert joint_test(replicates=4000, rounds=100) > FALSE_ALARM


@pytest.mark.slow
def test_ranks_of_the_truth_are_uniform():
    """Simulation-based calibration of `fit` as a whole, the choice of the frame included; every
    draw is nearly independent.
    """
    rng, prior, replicates, draws = np.random.default_rng(8), prior_of(2), 480, 15
    ranks = np.zeros((replicates, 4))
    for r in range(replicates):
        truth, evidence = draw_evidence(rng, prior)
        found = normal_x_gradient.fit(
            evidence, prior, Settings(chains=1, draws=draws * 8, warmup=512, seed=r)
        )
        values = np.column_stack([found.theta[0], found.theta[0].prod(1), found.noise_variance[0]])[
            7::8
        ]
        ranks[r] = np.sum(values < truth, axis=0)
    p_values = [
        stats.chisquare(np.bincount(column.astype(int), minlength=draws + 1)).pvalue
        for column in ranks.T
    ]
    assert smallest(np.array(p_values)) > FALSE_ALARM


# Mixing on the paper's simulated design.


SLOW_CELLS = [
    pytest.param(*cell, marks=pytest.mark.slow)
    for cell in [
        (2, 1, 100_000),
        (10, 5, 100_000),
        (10, 10, 10_000),
        (20, 10, 10_000),
        (20, 10, 100_000),
    ]
]


@pytest.mark.parametrize(("d", "holders", "rows"), [(5, 5, 10_000), *SLOW_CELLS])
def test_chains_converge(d, holders, rows):
    """Swamped directions included: at d = 5 some eigenvalues of Σ are below a tenth of the
    noise.
    """
    draws = normal_x_gradient.fit(*simulated(d, holders, rows=rows), Settings())
    found = mixing(np.concatenate([draws.theta, draws.noise_variance[..., None]], -1))
    assert verdict(draws, found) is Verdict.CONVERGED
    assert draws.acceptance["undiverged"].min() > 0.99


# The contract of every method.


def test_a_seed_fixes_the_chains_and_progress_is_told():
    evidence, heard = evidence_of(), []
    settings = Settings(seed=7, on_progress=heard.append)
    first, second = (normal_x_gradient.fit(evidence, prior_of(2), settings) for _ in range(2))
    other = normal_x_gradient.fit(evidence, prior_of(2), replace(settings, seed=8))
    assert_array_equal(first.theta, second.theta)
    assert not np.array_equal(first.theta, other.theta)
    assert first.theta.shape == (4, 1000, 2)
    assert heard[-1].done == heard[-1].total == 2000
    assert set(heard[-1].acceptance) == {"trajectory", "undiverged"}


@pytest.mark.parametrize(
    ("counts", "message"),
    [(np.array([60.0, 1.0, 60.0]), "2 rows or more"), (None, "publish counts")],
)
def test_missing_rows_are_refused(counts, message):
    with pytest.raises(MethodError, match=message):
        normal_x_gradient.fit(replace(evidence_of(), counts=counts), prior_of(2), Settings())
