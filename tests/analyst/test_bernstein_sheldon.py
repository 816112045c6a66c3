"""`bernstein-sheldon` against its plain O(d⁶) form, and the conjugate posterior.

Every statistical assertion has a false-alarm rate of at most 1e-6, Bonferroni over its parts; seeds
are fixed.

Covers `tacit.analyst.methods.bernstein_sheldon`.
"""

from dataclasses import replace

import numpy as np
import pytest
from calibration import smallest
from dense_releases import FALSE_ALARM, SDS, entry_noise, evidence_of, unvech, vech, without_the_two
from numpy.testing import assert_allclose
from scipy import stats

from tacit.analyst.methods import bernstein_sheldon as method
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.sampling import double_precision, jax, jnp, random
from tacit.analyst.prior import Prior
from tacit.errors import MethodError, PriorError

pytestmark = pytest.mark.xdist_group(
    "bernstein-sheldon"
)  # one process compiles what its tests share

# The plain form: one covariance over all (d+1)(d+2)/2 entries


def dense_conditional(gamma, n, released, variances):
    """Mean and covariance of vech G given vech Ĝ, with Cov(G_ab, G_cd) = n(Γ_acΓ_bd + Γ_adΓ_bc) and
    the entries' noise variances.
    """
    p = len(gamma)
    pairs = list(zip(*np.triu_indices(p), strict=True))
    prior = n * np.array(
        [
            [gamma[a, c] * gamma[b, d] + gamma[a, d] * gamma[b, c] for c, d in pairs]
            for a, b in pairs
        ]
    )
    gain = prior @ np.linalg.inv(prior + np.diag(variances))
    mean = n * vech(gamma) + gain @ (vech(released) - n * vech(gamma))
    return mean, prior - gain @ prior


def a_state(problem, rng, d=2):
    """Parameters near those of `evidence_of` and statistics at their mean."""
    root = np.eye(d) + 0.3 + 0.1 * rng.standard_normal((d, d))
    state = method.State(
        jnp.linspace(0.9, -0.4, d),
        jnp.asarray(0.6),
        jnp.asarray(root @ root.T),
        problem.released,
        0 * problem.counts,
    )
    return state._replace(statistics=problem.counts[:, None, None] * method.joint_covariance(state))


def setting(name, seed=0, d=2):
    rng = np.random.default_rng(seed)
    problem, c = method.problem_of(evidence_of(rng, SDS[name], d=d), Prior.weak(d))
    return problem, a_state(problem, rng, d), entry_noise(SDS[name], c, d)


@pytest.fixture(autouse=True)
def float64():
    with double_precision():
        yield


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("name", ["frobenius", "frobenius, noisy square"])
def test_the_conditional_law_is_the_dense_one(name, d):
    problem, state, variances = setting(name, d=d)
    assert problem.excess is None
    gamma = np.asarray(method.joint_covariance(state))
    values, vectors = jnp.linalg.eigh(gamma)
    law = method.conditional(values, vectors, vectors.T @ problem.released @ vectors, problem)
    basis = unvech(
        np.diag(np.sqrt(vech(method.entry_variances(d + 1)))), d + 1
    )  # orthonormal for Frobenius' inner product
    for j, n in enumerate(problem.counts):
        mean, covariance = dense_conditional(gamma, float(n), problem.released[j], variances)
        assert_allclose(vech(vectors @ law.mean[j] @ vectors.T), mean, rtol=1e-10)
        images = np.array(
            [vech(vectors @ law.deviation(jnp.asarray(one))[j] @ vectors.T) for one in basis]
        )
        assert_allclose(images.T @ images, covariance, atol=1e-10 * covariance.max())


def moved(problem, state, steps, replicates=5000):
    """vech of the statistics of `replicates` chains after some moves at fixed parameters, and the
    acceptance.
    """

    def chain(key):
        def move(statistics, one):
            return method.move_statistics(one, state._replace(statistics=statistics), problem)

        statistics, accepted = jax.lax.scan(move, state.statistics, random.split(key, steps))
        return statistics, accepted.mean()

    statistics, accepted = jax.jit(jax.vmap(chain))(random.split(random.key(5), replicates))
    return vech(statistics), float(accepted.mean())


def moment_p_value(draws, mean, covariance):
    """Bonferroni p-value that independent draws have this mean and covariance, by z-tests in
    whitened coordinates.
    """
    white = np.linalg.solve(np.linalg.cholesky(covariance), (draws - mean).T).T
    rows, columns = np.triu_indices(len(mean))
    functions = np.concatenate(
        [white, white[:, rows] * white[:, columns] - (rows == columns)], axis=1
    )
    z = functions.mean(axis=0) / (functions.std(axis=0) / np.sqrt(len(functions)))
    return smallest(2 * stats.norm.sf(np.abs(z)))


def dense_laws(problem, state, variances):
    gamma = np.asarray(method.joint_covariance(state))
    return [
        dense_conditional(gamma, float(n), released, variances)
        for n, released in zip(problem.counts, problem.released, strict=True)
    ]


@pytest.mark.parametrize(
    ("step", "steps"), [(1.0, 25), pytest.param(0.6, 100, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", SDS)
def test_moves_reach_the_dense_law(name, step, steps):
    problem, state, variances = setting(name)
    laws = dense_laws(problem, state, variances)
    start = jnp.asarray(unvech(np.array([mean for mean, _ in laws]), 3))
    draws, accepted = moved(
        problem, state._replace(statistics=start, log_step=state.log_step + np.log(step)), steps
    )
    assert accepted > 0.9999  # so far from the cone's edge that restriction changes nothing
    p_values = np.array([moment_p_value(draws[:, j], *law) for j, law in enumerate(laws)])
    assert smallest(p_values) > FALSE_ALARM


def test_half_the_variance_is_told_from_the_dense_law(monkeypatch):
    problem, state, variances = setting("frobenius")
    monkeypatch.setattr(method, "conditional", without_the_two)
    draws, _ = moved(problem, state, steps=25)
    assert moment_p_value(draws[:, 0], *dense_laws(problem, state, variances)[0]) < 1e-12


@pytest.mark.parametrize("step", [1.0, 0.5])
def test_near_the_edge_the_law_is_the_dense_one_restricted_to_the_cone(step):
    rng = np.random.default_rng(2)
    problem, c = method.problem_of(
        evidence_of(rng, SDS["frobenius"], counts=(6,), d=1), Prior.weak(1)
    )
    state = a_state(problem, rng, d=1)
    [(mean, covariance)] = dense_laws(problem, state, entry_noise(SDS["frobenius"], c, 1))
    free = rng.multivariate_normal(mean, covariance, 400_000)
    inside = free[np.linalg.eigvalsh(unvech(free, 2))[:, 0] > 0]
    assert len(inside) < 0.9 * len(free)
    draws, accepted = moved(
        problem, state._replace(log_step=state.log_step + np.log(step)), steps=300
    )
    assert accepted < 0.99
    pairs = [
        *zip(draws[:, 0].T, inside.T, strict=True),
        tuple(rows[:, 0] * rows[:, 2] - rows[:, 1] ** 2 for rows in (draws[:, 0], inside)),
    ]
    assert smallest(np.array([stats.ks_2samp(*pair).pvalue for pair in pairs])) > FALSE_ALARM


def test_few_rows_and_much_noise_leave_the_chain_moving_inside_the_cone():
    problem, _ = method.problem_of(
        evidence_of(np.random.default_rng(4), (8.0, 8.0, 8.0, 8.0), counts=(7, 6, 9), d=4),
        Prior.weak(4),
    )
    kernel = method.BernsteinSheldon()

    def iterate(state, now):
        state, info = kernel.step(now[0], state, problem, now[1])
        return state, (info.acceptance[0], jnp.linalg.eigvalsh(state.statistics).min(), state.theta)

    gain = jnp.concatenate([(1 + jnp.arange(1500) / 20) ** -0.75, jnp.zeros(500)])
    keys = random.split(random.key(1), len(gain))
    start = jax.jit(kernel.init)(random.key(0), problem)
    _, (accepted, least, theta) = jax.jit(lambda: jax.lax.scan(iterate, start, (keys, gain)))()
    assert least.min() > 0
    assert 0.3 < accepted[1500:].mean() < 0.8
    assert np.all(np.isfinite(theta))


# Whole fits

SHORT = Settings(chains=4, draws=1536, warmup=512, seed=3)


def conjugate(evidence, prior):
    """Student law of θ and inverse-gamma law of σ² given exact statistics."""
    precision = prior.rate / (prior.shape - 1) * np.linalg.inv(prior.covariance)
    gram, moment, square = evidence.grams.sum(0), evidence.moments.sum(0), evidence.squares.sum()
    posterior = gram + precision
    centre = np.linalg.solve(posterior, moment + precision @ prior.mean)
    shape = prior.shape + evidence.counts.sum() / 2
    rate = (
        prior.rate
        + (square + prior.mean @ precision @ prior.mean - centre @ posterior @ centre) / 2
    )
    return stats.multivariate_t(
        centre, rate / shape * np.linalg.inv(posterior), df=2 * shape
    ), stats.invgamma(shape, scale=rate)


@pytest.mark.parametrize(
    "counts", [(60, 90, 40), (40, 30, 2)]
)  # the last holder's exact matrix is singular
def test_vanishing_noise_gives_the_conjugate_posterior(counts):
    evidence = evidence_of(np.random.default_rng(7), (0, 0, 0, 0), counts=counts)
    prior = replace(
        Prior.weak(2),
        mean=np.array([0.5, 0.2]),
        covariance=np.array([[0.02, 0.01], [0.01, 0.03]]),
        shape=3.0,
    )
    draws = method.fit(evidence, prior, SHORT)
    theta, noise_variance = conjugate(evidence, prior)
    marginals = [stats.t(theta.df, theta.loc[k], np.sqrt(theta.shape[k, k])) for k in range(2)]
    contrast = stats.t(
        theta.df,
        theta.loc[0] - theta.loc[1],
        np.sqrt(np.array([1, -1]) @ theta.shape @ np.array([1, -1])),
    )
    samples = [
        draws.theta[..., 0],
        draws.theta[..., 1],
        draws.theta[..., 0] - draws.theta[..., 1],
        draws.noise_variance,
    ]
    laws = [*marginals, contrast, noise_variance]
    p_values = [
        stats.kstest(sample.ravel(), law.cdf).pvalue
        for sample, law in zip(samples, laws, strict=True)
    ]
    assert smallest(np.array(p_values)) > FALSE_ALARM


def test_order_of_holders_does_not_matter():
    evidence = evidence_of(np.random.default_rng(8), SDS["triangular"], counts=(900, 500, 200))
    order = np.array([2, 0, 1])
    arrays = {
        name: value[order]
        for name, value in vars(evidence).items()
        if isinstance(value, np.ndarray)
    }
    first, second = (
        method.fit(one, Prior.weak(2), SHORT) for one in (evidence, replace(evidence, **arrays))
    )
    chains = [
        np.concatenate([one.theta.mean(1), np.log(one.noise_variance).mean(1)[:, None]], axis=1)
        for one in (first, second)
    ]
    assert smallest(stats.ttest_ind(*chains).pvalue) > FALSE_ALARM
    assert not np.array_equal(first.theta, second.theta)


def test_units_of_the_response_do_not_matter():
    evidence, prior, k = (
        evidence_of(np.random.default_rng(9), SDS["triangular"]),
        Prior.weak(2),
        16.0,
    )
    scaled = replace(
        evidence,
        moments=k * evidence.moments,
        moment_sd=k * evidence.moment_sd,
        squares=k**2 * evidence.squares,
        square_sd=k**2 * evidence.square_sd,
    )
    scaled_prior = replace(
        prior, mean=k * prior.mean, covariance=k**2 * prior.covariance, rate=k**2 * prior.rate
    )
    first, second = method.fit(evidence, prior, SHORT), method.fit(scaled, scaled_prior, SHORT)
    assert_allclose(second.theta, k * first.theta, rtol=1e-6, atol=1e-8)
    assert_allclose(second.noise_variance, k**2 * first.noise_variance, rtol=1e-6)


def test_one_column_has_no_triangular_noise():
    rng = np.random.default_rng(10)
    problem, _ = method.problem_of(evidence_of(rng, SDS["triangular"], d=1), Prior.weak(1))
    assert problem.excess is None


def test_a_seed_fixes_the_chain():
    evidence = evidence_of(np.random.default_rng(11), SDS["frobenius"])
    first, second = (method.fit(evidence, Prior.weak(2), SHORT) for _ in range(2))
    assert np.array_equal(first.theta, second.theta)
    assert set(first.acceptance) == {"statistics"}


def test_what_it_cannot_do_is_refused():
    evidence = evidence_of(np.random.default_rng(12), SDS["frobenius"])
    with pytest.raises(MethodError, match="counts and squares"):
        method.fit(replace(evidence, squares=None), Prior.weak(2), SHORT)
    with pytest.raises(PriorError, match="shape must exceed 1"):
        method.fit(evidence, replace(Prior.weak(2), shape=1.0), SHORT)
