"""`bernstein-sheldon` against its plain O(d⁶) form, the conjugate posterior, and Geweke's test and
calibration by simulation.

Every statistical assertion has a false-alarm rate of at most 1e-6, Bonferroni over its parts; seeds
are fixed.

Covers `tacit.analyst.methods.bernstein_sheldon`.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from calibration import Model, geweke, sbc, smallest
from numpy.testing import assert_allclose
from scipy import stats

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods import bernstein_sheldon as method
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.sampling import double_precision, jax, jnp, random
from tacit.analyst.prior import Prior
from tacit.errors import MethodError, PriorError

FALSE_ALARM = 1e-6  # seeds are fixed, but another processor rounds otherwise
SDS = {  # gram, off-diagonal, moment, square
    "frobenius": (8.0, 8.0 / np.sqrt(2), 3.0, 2.0),
    "frobenius, noisy square": (8.0, 8.0 / np.sqrt(2), 8.0, 90.0),
    "triangular": (8.0, 8.0, 3.0, 5.0),
    "quiet off the diagonal": (8.0, 4.0, 12.0, 9.0),
}


def evidence_of(rng, sds, counts=(300, 450, 200), d=2, *, theta=None):
    """Releases of rows drawn from the model, with noise of the given sds on diagonal, off-diagonal,
    moments and squares.
    """
    theta = np.linspace(1, -0.5, d) if theta is None else theta
    grams, moments, squares = [], [], []
    for n in counts:
        x = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3)
        y = x @ theta + 0.7 * rng.standard_normal(n)
        noise = np.tril(rng.standard_normal((d, d)) * sds[1], -1)
        grams.append(x.T @ x + noise + noise.T + np.diag(rng.standard_normal(d)) * sds[0])
        moments.append(x.T @ y + sds[2] * rng.standard_normal(d))
        squares.append(y @ y + sds[3] * rng.standard_normal())
    every = [np.full(len(counts), float(sd)) for sd in sds]
    return Evidence(
        grams=np.array(grams),
        moments=np.array(moments),
        gram_sd=every[0],
        off_diagonal_sd=every[1],
        moment_sd=every[2],
        counts=np.array(counts, dtype=float),
        squares=np.array(squares),
        square_sd=every[3],
    )


# The plain form: one covariance over all (d+1)(d+2)/2 entries


def vech(matrix):
    rows, columns = np.triu_indices(matrix.shape[-1])
    return np.asarray(matrix)[..., rows, columns]


def unvech(vector, p):
    matrix = np.zeros((*np.shape(vector)[:-1], p, p))
    rows, columns = np.triu_indices(p)
    matrix[..., rows, columns] = matrix[..., columns, rows] = vector
    return matrix


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


def entry_noise(sds, c, d):
    """Noise variances of vech [[S, cz], [cz', c²u]]."""
    variances = np.where(np.eye(d + 1, dtype=bool), sds[0] ** 2, sds[1] ** 2)
    variances[:d, d] = (c * sds[2]) ** 2
    variances[d, d] = (c**2 * sds[3]) ** 2
    return vech(variances)


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


def without_the_two(values, vectors, released, problem, right=method.conditional):
    """The wrong law whose G has variances nλ_iλ_k in Frobenius' measure, half the right ones, and
    the right mean nλ.
    """
    return right(values / 2, vectors, released, problem._replace(counts=2 * problem.counts))


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

SHORT = Settings(chains=4, draws=1000, warmup=200, seed=3)


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


def test_calibration_without_noise():
    model = Model(method.BernsteinSheldon(), *exact_law())
    assert (
        smallest(sbc(model, random.key(2), replicates=1000, warmup=10, draws=63, thin=1))
        > FALSE_ALARM
    )


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
