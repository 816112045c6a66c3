"""`normal-x` with an intercept that is 1 in every row: both samplers against SciPy's densities, the
conjugate posterior and each other.

False-alarm rates: 1e-6 per comparison of means, 1e-6 per calibration test (seeds are fixed, so it
was taken once). A wrong kernel must reach 1e-6.

Covers `tacit.analyst.methods.normal_x.frame`.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from calibration import Model, assert_recovers, geweke, sbc, smallest, standard_error
from numpy.testing import assert_allclose
from scipy import stats
from simulated import conjugate_moments

from tacit.analyst.collection import collect
from tacit.analyst.evidence import Evidence
from tacit.analyst.fit import fit
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.normal_x import (
    frame as normal_x_frame,
)
from tacit.analyst.methods.normal_x import (
    gradient as normal_x_gradient,
)
from tacit.analyst.methods.normal_x import (
    metropolis as normal_x,
)
from tacit.analyst.methods.normal_x.frame import Framed, in_frame
from tacit.analyst.methods.normal_x.gradient import (
    Hamiltonian,
    feature_root,
    gram_factors,
    point_at,
)
from tacit.analyst.methods.sampling import double_precision, jax, jnp, random
from tacit.analyst.methods.wishart import gamma
from tacit.analyst.posterior.convergence import Verdict, mixing, verdict
from tacit.analyst.prior import Prior
from tacit.simulation import exact, simulate
from tacit.study import Study

FALSE_ALARM = 1e-6  # seeds are fixed, but another processor rounds otherwise
REJECTION = 1e-6


def evidence_of(
    *,
    p: int = 1,
    rows: tuple[int, ...] = (60, 25),
    noise: float = 2.0,
    seed: int = 5,
    mean: float = 0.8,
) -> Evidence:
    """Features with mean ±`mean` and sd near 0.3 behind an intercept; `noise` is the sd of every
    statistic's noise (frobenius).
    """
    rng = np.random.default_rng(seed)
    d, root = p + 1, 0.3 * (np.eye(p) + 0.4 * np.tri(p, k=-1))
    theta, grams, moments = rng.normal(size=d), [], []
    for n in rows:
        x = np.column_stack(
            [np.ones(n), mean * (-1) ** np.arange(p) + rng.normal(size=(n, p)) @ root.T]
        )
        full = rng.normal(size=(d, d))
        grams.append(x.T @ x + noise * (full + full.T) / 2)
        moments.append(x.T @ (x @ theta + 0.5 * rng.normal(size=n)) + noise * rng.normal(size=d))
    sd = np.full(len(rows), noise)
    counts = np.array(rows, dtype=float)
    return Evidence(
        np.array(grams),
        np.array(moments),
        sd,
        sd / np.sqrt(2),
        sd,
        counts,
        intercept=True,
        whole_rows=True,
    )


def prior_of(d: int) -> Prior:
    root = np.eye(d) + 0.3 * np.tri(d, k=-1)
    return Prior(np.linspace(0.5, -1.0, d), 0.7 * root @ root.T, 4.0, 2.0, root.T @ root, d + 3.0)


# The model: a normal-inverse-Wishart prior, normal means and Wishart scatters, from SciPy.


def parameters_at(position, framed: Framed):
    """log σ², μ, Σ, and the means and scatters of every holder, in the first basis."""
    entries = position[1:].reshape(framed.problem.counts.shape[0] + 1, -1)
    q = framed.frame.rotation
    root, _ = feature_root(entries[0], framed.frame)
    factors, _ = gram_factors(entries[1:], root, framed)
    half, halves = q @ jnp.linalg.inv(root), q @ factors
    grams, counts = halves @ halves.swapaxes(-1, -2), framed.problem.counts[:, None]
    means = grams[:, 1:, 0] / counts
    scatters = grams[:, 1:, 1:] - counts[..., None] * means[:, :, None] * means[:, None, :]
    return (
        jnp.log(point_at(position, framed).noise_variance),
        half[1:, 0],
        half[1:, 1:] @ half[1:, 1:].T,
        means,
        scatters,
    )


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


# Calibration at one feature, where the model is: v ~ IG, μ | v normal, mean and scatter of every
# holder normal and χ².

D, J, COUNTS = 2, 2, np.array([12.0, 7.0])
SDS = {
    "gram_sd": np.array([4.0, 9.0]),
    "off_diagonal_sd": np.array([4.0, 5.0]),
    "moment_sd": np.array([1.0, 2.0]),
}
PRIOR = prior_of(D)
EMPTY = normal_x.problem_of(
    Evidence(np.zeros((J, D, D)), np.zeros((J, D)), **SDS, counts=COUNTS), PRIOR
)
EXAMPLE = np.array([[[12.0, 9.0], [9.0, 11.0]], [[7.0, -8.0], [-8.0, 1.0]]])
FRAME = in_frame(EMPTY._replace(grams=EXAMPLE), constant=True).frame


def draw_latent(key):
    """θ, σ², v, μ, and every holder's X'X."""
    key_theta, key_feature, key_scatter, key_mean = random.split(key, 4)
    theta = jnp.array(PRIOR.mean) + jnp.linalg.cholesky(
        jnp.array(PRIOR.covariance)
    ) @ random.normal(key_theta, (D,))
    weight, middle = (
        PRIOR.feature_scale[0, 0],
        PRIOR.feature_scale[1, 0] / PRIOR.feature_scale[0, 0],
    )
    scale = PRIOR.feature_scale[1, 1] - weight * middle**2
    draws = gamma(key_feature, jnp.array([PRIOR.shape, PRIOR.feature_degrees / 2]))
    variance, feature = PRIOR.rate / draws[0], scale / 2 / draws[1]
    normal = random.normal(key_mean, (1 + J,))
    mean = middle + jnp.sqrt(feature / weight) * normal[0]
    means = mean + jnp.sqrt(feature / EMPTY.counts) * normal[1:]
    squares = 2 * feature * gamma(key_scatter, (EMPTY.counts - 1) / 2) + EMPTY.counts * means**2
    sums = EMPTY.counts * means
    grams = jnp.stack([jnp.stack([EMPTY.counts, sums], -1), jnp.stack([sums, squares], -1)], -1)
    return theta, variance, (mean, feature), grams


def noisy(key, theta, variance, grams):
    """Releases of these matrices."""
    key_grams, key_moments = random.split(key)
    upper = jnp.triu(random.normal(key_grams, (J, D, D))).at[:, 0, 0].set(0.0)
    noise = EMPTY.gram_sds * (upper + jnp.triu(upper, 1).swapaxes(-1, -2))
    factor = normal_x.covariance_factor(grams, variance, EMPTY)
    return grams + noise, grams @ theta + (factor @ random.normal(key_moments, (J, D, 1)))[..., 0]


def summary_of(state, mean, feature, grams):
    sizes = [jnp.log(jnp.linalg.det(grams)), grams[:, 0, 1]]
    return jnp.concatenate(
        [
            state.theta,
            jnp.log(state.noise_variance)[None],
            mean[None],
            jnp.log(feature)[None],
            *sizes,
        ]
    )


def metropolis_state(key):
    theta, variance, (mean, feature), matrix = draw_latent(key)
    precision = jnp.array(
        [[1 + mean**2 / feature, -mean / feature], [-mean / feature, 1 / feature]]
    )
    grams = normal_x.FactoredGrams(
        matrix, jnp.linalg.cholesky(matrix), normal_x.covariance_factor(matrix, variance, EMPTY)
    )
    return normal_x.State(theta, variance, grams, precision, jnp.full(J, -1.2), jnp.array(0.3))


def metropolis_data(key, state):
    grams, moments = noisy(key, state.theta, state.noise_variance, state.grams.matrix)
    return EMPTY._replace(grams=grams, moments=moments)


def metropolis_summary(state):
    precision = state.feature_precision
    return summary_of(
        state, -precision[0, 1] / precision[1, 1], 1 / precision[1, 1], state.grams.matrix
    )


def metropolis_model(kernel) -> Model:
    return Model(kernel, metropolis_state, metropolis_data, metropolis_summary)


def framed_with(grams, moments) -> Framed:
    return Framed(
        normal_x_frame.rotated(EMPTY._replace(grams=grams, moments=moments), FRAME.rotation), FRAME
    )


NOTHING = jnp.zeros((J, D, D)), jnp.zeros((J, D))


def gradient_state(key):
    """The inverse of the frame's map, written down afresh; one feature can at most change its
    sign.
    """
    theta, variance, (mean, feature), grams = draw_latent(key)
    sign = FRAME.rotation[1, 1]
    beta, weight = sign * mean, FRAME.information[1, 0] * feature
    certainty = 1 + weight
    below = (
        beta / FRAME.axes[1, 0, 0] * certainty - FRAME.centre[1, 0] - weight * FRAME.estimate[1, 0]
    )
    on = (jnp.log(feature) - FRAME.log_centre[1]) / FRAME.log_spread[1]
    root = jnp.array([[1.0, 0.0], [-beta, 1.0]]) / jnp.sqrt(jnp.array([[1.0], [feature]]))
    turn = jnp.diag(jnp.array([1.0, sign]))
    t, guess = root @ jnp.linalg.cholesky(turn @ grams @ turn), root @ FRAME.factors
    middle = FRAME.weight[:, 1, 1] * jnp.log(guess[:, 1, 1]) + (
        1 - FRAME.weight[:, 1, 1]
    ) * 0.5 * jnp.log(EMPTY.counts - 1)
    ends = (jnp.log(t[:, 1, 1]) - middle) / FRAME.spread[:, 1, 1]
    sides = (t[:, 1, 0] - FRAME.weight[:, 1, 0] * guess[:, 1, 0]) / FRAME.spread[:, 1, 0]
    scaled = (jnp.log(variance) - jnp.log(EMPTY.rate / EMPTY.shape)) * jnp.sqrt(EMPTY.shape)
    holders = jnp.stack([ends, sides], -1).ravel()
    position = jnp.concatenate(
        [jnp.stack([scaled, on, below / jnp.sqrt(feature * certainty)]), holders]
    )
    point = point_at(position, framed_with(*NOTHING))
    return normal_x_gradient.State(
        theta, variance, position, point, jnp.log(0.35), jnp.zeros(3), jnp.ones(3)
    )


def grams_at(state):
    _, mean, feature, means, scatters = parameters_at(state.position, framed_with(*NOTHING))
    sums, n = EMPTY.counts * means[:, 0], EMPTY.counts
    grams = jnp.stack(
        [jnp.stack([n, sums], -1), jnp.stack([sums, scatters[:, 0, 0] + sums * means[:, 0]], -1)],
        -1,
    )
    return mean[0], feature[0, 0], grams


def gradient_data(key, state):
    return framed_with(*noisy(key, state.theta, state.noise_variance, grams_at(state)[2]))


def gradient_summary(state):
    return summary_of(state, *grams_at(state))


def refresh(state, framed: Framed):
    return state._replace(point=point_at(state.position, framed))


def gradient_model(kernel) -> Model:
    return Model(kernel, gradient_state, gradient_data, gradient_summary, refresh)


@dataclass(frozen=True)
class OneRowMore(Hamiltonian):
    """χ² with one degree too many, which the mean does not take."""

    def step(self, key, state, framed, gain):
        framed = framed._replace(problem=framed.problem._replace(counts=framed.problem.counts + 1))
        return super().step(key, refresh(state, framed), framed, gain)


@dataclass(frozen=True)
class ScatterOfAllRows(normal_x.NormalX):
    """The scatter about the mean taken for W(Σ, n), as if the mean cost no degree of freedom."""

    def step(self, key, state, problem, gain):
        return super().step(key, state, problem._replace(counts=problem.counts + 1), gain)


MODELS = {
    "gradient": gradient_model(Hamiltonian(constant=True)),
    "metropolis": metropolis_model(normal_x.NormalX(constant=True)),
}
WRONG = {
    "gradient": gradient_model(OneRowMore(constant=True)),
    "metropolis": metropolis_model(ScatterOfAllRows(constant=True)),
}


@pytest.mark.parametrize("name", MODELS)
def test_geweke(name):
    with double_precision():
        assert (
            smallest(geweke(MODELS[name], random.key(2), replicates=500, rounds=40)) > FALSE_ALARM
        )


@pytest.mark.parametrize("name", ["gradient", pytest.param("metropolis", marks=pytest.mark.slow)])
def test_geweke_notices_a_degree_of_freedom_too_many(name):
    with double_precision():
        assert smallest(geweke(WRONG[name], random.key(2), replicates=1000, rounds=40)) < REJECTION


def test_ranks_are_uniform():
    assert smallest(sbc(MODELS["metropolis"], random.key(2))) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_geweke_at_length(name):
    with double_precision():
        assert (
            smallest(geweke(MODELS[name], random.key(3), replicates=4000, rounds=100)) > FALSE_ALARM
        )


@pytest.mark.slow
def test_ranks_of_the_truth_are_uniform():
    """Simulation-based calibration of `fit` by gradient as a whole, the choice of the frame
    included.
    """
    replicates, draws = 480, 15
    with double_precision():
        truths = jax.vmap(draw_latent)(random.split(random.key(5), replicates))
        data = jax.vmap(noisy)(
            random.split(random.key(6), replicates), truths[0], truths[1], truths[3]
        )
    ranks = np.zeros((replicates, 4))
    for r in range(replicates):
        evidence = Evidence(
            np.array(data[0][r]),
            np.array(data[1][r]),
            **SDS,
            counts=COUNTS,
            intercept=True,
            whole_rows=True,
        )
        found = normal_x_gradient.fit(
            evidence, PRIOR, Settings(chains=1, draws=draws * 8, warmup=512, seed=r)
        )
        values = np.column_stack([found.theta[0], found.theta[0].prod(1), found.noise_variance[0]])[
            7::8
        ]
        theta, variance = np.asarray(truths[0][r]), float(truths[1][r])
        ranks[r] = np.sum(values < [*theta, theta.prod(), variance], axis=0)
    p_values = [
        stats.chisquare(np.bincount(column.astype(int), minlength=draws + 1)).pvalue
        for column in ranks.T
    ]
    assert smallest(np.array(p_values)) > FALSE_ALARM


# Draws against known or independent answers.

SAMPLERS = {
    "gradient": (normal_x_gradient.fit, Settings(seed=3)),
    "metropolis": (normal_x.fit, Settings(draws=3000, warmup=1000, seed=3)),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_vanishing_noise_gives_the_conjugate_posterior(name):
    sampler, settings = SAMPLERS[name]
    evidence, prior = evidence_of(noise=0.0), replace(Prior.weak(2), shape=3.0, rate=0.5)
    mean, covariance, variance = conjugate_moments(evidence, prior)
    draws = sampler(evidence, prior, settings)
    for k in range(2):
        assert_recovers(draws.theta[..., k], mean[k])
        assert_recovers((draws.theta[..., k] - mean[k]) ** 2, covariance[k, k])
    assert_recovers(draws.noise_variance, variance)


def assert_same_mean(first: np.ndarray, second: np.ndarray, failure_rate: float = 1e-6) -> None:
    error = abs(first.mean() - second.mean()) / math.hypot(
        standard_error(first), standard_error(second)
    )
    assert error < stats.norm.isf(failure_rate / 2), f"{error:.1f} standard errors apart"


@pytest.mark.parametrize("p", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_both_samplers_have_the_same_posterior(p):
    """Two holders of unequal size, noise as large as what the features vary by."""
    evidence, prior = evidence_of(p=p, rows=(80, 12), noise=4.0), prior_of(p + 1)
    ours = normal_x_gradient.fit(evidence, prior, Settings(seed=1))
    theirs = normal_x.fit(evidence, prior, Settings(draws=30_000, warmup=2000, seed=2))
    centre = theirs.mean()
    for power in (1, 2):
        for k in range(p + 1):
            assert_same_mean(
                (ours.theta[..., k] - centre[k]) ** power,
                (theirs.theta[..., k] - centre[k]) ** power,
            )
        assert_same_mean(
            np.log(ours.noise_variance) ** power, np.log(theirs.noise_variance) ** power
        )
    assert_same_mean(np.prod(ours.theta - centre, axis=-1), np.prod(theirs.theta - centre, axis=-1))


def test_an_intercept_alone_is_a_mean():
    """S_j = n_j is known: θ given σ² is normal with precision 1/C + Σ n²/(σ²n + τ²)."""
    evidence = replace(
        evidence_of(p=1),
        grams=evidence_of(p=1).grams[:, :1, :1],
        moments=np.array([[20.0], [11.0]]),
    )
    prior = Prior(np.zeros(1), np.eye(1), 400.0, 100.0, np.eye(1), 3.0)  # σ² is 1/4, nearly
    counts, variance = evidence.counts, 0.25
    precision = 1 + np.sum(counts**2 / (variance * counts + evidence.moment_sd**2))
    mean = (
        np.sum(counts * evidence.moments[:, 0] / (variance * counts + evidence.moment_sd**2))
        / precision
    )
    for sampler, settings in SAMPLERS.values():
        draws = sampler(evidence, prior, settings)
        assert abs(draws.mean()[0] - mean) < 0.15 / math.sqrt(precision)
        assert_allclose(draws.covariance()[0, 0], 1 / precision, rtol=0.1)


# When it holds, what it is worth, and the user's units.


def study_of(p: int, **changes: object) -> Study:
    """Features with ranges [0, 10] and a response in [0, 100]: rows are whole unless `changes` say
    otherwise.
    """
    document = {
        "name": "s",
        "epsilon": 8.0,
        "delta": 1e-6,
        "missing": "refuse",
        "response": {"name": "y", "range": [0.0, 100.0]},
        "features": [{"name": f"x{k}", "range": [0.0, 10.0]} for k in range(p)],
        "release": {"row_radius": math.sqrt(p + 1)},
    }
    return Study.from_document(document | changes)


@pytest.mark.parametrize(
    ("changes", "constant"),
    [
        ({}, True),
        ({"release": {}}, False),
        ({"missing": "drop"}, False),
        ({"missing": "impute"}, False),
        ({"intercept": False, "release": {}}, False),
        ({"relation": "add-remove"}, False),
        ({"relation": "add-remove", "release": {"row_radius": 2.0, "count": "public"}}, True),
        ({"relation": "add-remove", "release": {"row_radius": 2.0, "count": "withheld"}}, False),
    ],
)
def test_the_first_column_is_constant_where_no_row_is_shrunk_or_left_out_and_n_is_exact(
    changes, constant
):
    study, rng = study_of(2, **changes), np.random.default_rng(0)
    table = np.column_stack([rng.uniform(0, 10, size=(50, 2)), rng.uniform(0, 100, size=50)])
    evidence = collect(simulate(study, table, rng, holder="h"), allow_simulated=True).evidence
    assert evidence.constant is constant
    assert exact(study, table).constant is (constant or (study.whole_rows and study.intercept))
    if constant:
        assert exact(study, table).grams[0, 0, 0] == evidence.counts[0]


def test_results_are_in_the_users_units():
    """Three holders of unequal size at a large budget: coefficients are those that made the data,
    to five posterior sds.
    """
    rng, truth = np.random.default_rng(4), np.array([20.0, 4.0, -2.0])
    releases = []
    for j, n in enumerate((20_000, 5_000, 300)):
        x = np.clip(rng.normal([7.0, 3.0], [0.8, 1.2], size=(n, 2)), 0, 10)
        y = truth[0] + x @ truth[1:] + 3 * rng.normal(size=n)
        releases.append(simulate(study_of(2), np.column_stack([x, y]), rng, holder=f"h{j}"))
    collection = collect(releases, allow_simulated=True)
    assert collection.evidence.constant
    posterior = fit(collection, "normal-x", settings=Settings(draws=500, warmup=500))
    assert (np.abs(posterior.mean() - truth) / posterior.sd()).max() < 5
    assert (posterior.sd() < [2.0, 0.2, 0.2]).all()


def far_from_zero(seed: int, rows: int = 300, noise: float = 30.0) -> tuple[np.ndarray, Evidence]:
    """True coefficients, and the release of few rows of a feature that keeps to one end of its
    range.
    """
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(rows), 0.7 + 0.25 * rng.normal(size=rows)])
    theta, full = np.array([0.8, 0.5]) + 0.2 * rng.normal(size=2), rng.normal(size=(1, 2, 2))
    moments = x.T @ (x @ theta + 0.3 * rng.normal(size=rows)) + noise * rng.normal(size=2)
    grams = x.T @ x + noise * (full + full.swapaxes(1, 2)) / 2
    sd, counts = np.array([noise]), np.array([float(rows)])
    return theta, Evidence(
        grams, moments[None], sd, sd / np.sqrt(2), sd, counts, intercept=True, whole_rows=True
    )


@pytest.mark.slow
def test_a_feature_far_from_zero_is_fitted_better_than_by_the_model_without_the_constant():
    """The squared error of the response's mean, which is (Σy)/n, falls by a tenth or more;
    intervals of coefficients cover.

    This is the third design tried: with 4,000 rows of 5 features and with 30,000 of 4 the model
    with the constant was slightly worse (mean squared errors 2.64 against 2.54 and 0.101 against
    0.095), so it shows a gain where rows are few, and no general one. Coverage: 60 data sets of 2
    coefficients, 90 % intervals; below 75 % has probability under 1e-4 even if a set counts as one.
    """
    errors, covered, at = {True: [], False: []}, [], np.array([1.0, 0.7])
    for seed in range(60):
        theta, evidence = far_from_zero(seed)
        for constant in (True, False):
            draws = normal_x_gradient.fit(
                replace(evidence, whole_rows=constant),
                Prior.weak(2),
                Settings(draws=250, warmup=250, seed=seed),
            )
            errors[constant].append(float(at @ (draws.mean() - theta)) ** 2)
            if constant:
                low, high = np.quantile(draws.flat, [0.05, 0.95], axis=0)
                covered.append((low < theta) & (theta < high))
    assert np.mean(errors[True]) < 0.9 * np.mean(errors[False])
    assert np.mean(covered) > 0.75


def releases_of(p: int, holders: int, rows: int = 40_000) -> Evidence:
    """Whole rows, features up to 0.6 from the middle of their ranges, ε = 8: some directions are
    lost in noise.
    """
    rng, study = np.random.default_rng(p), study_of(p)
    root = 0.15 * (np.eye(p) + 0.3 * rng.normal(size=(p, p)) / math.sqrt(p))
    x = np.clip(rng.uniform(-0.6, 0.6, size=p) + rng.normal(size=(rows, p)) @ root.T, -1, 1)
    y = np.clip(0.3 * rng.normal(size=rows) + x @ rng.normal(size=p) / p, -1, 1)
    table = np.column_stack([5 + 5 * x, 50 + 50 * y])
    parts = np.split(
        table, np.cumsum(np.arange(1, holders) * rows // (holders * (holders + 1) // 2))
    )
    return collect(
        [simulate(study, part, rng, holder=f"h{j}") for j, part in enumerate(parts)],
        allow_simulated=True,
    ).evidence


SLOW_CELLS = [
    pytest.param(*cell, marks=pytest.mark.slow) for cell in [(1, 1), (9, 10), (19, 1), (19, 10)]
]


@pytest.mark.parametrize(("p", "holders"), [(4, 5), *SLOW_CELLS])
def test_chains_converge(p, holders):
    """Holders of unequal size, the first with a few per cent of what the last has."""
    draws = normal_x_gradient.fit(releases_of(p, holders), Prior.weak(p + 1), Settings())
    found = mixing(np.concatenate([draws.theta, draws.noise_variance[..., None]], -1))
    assert verdict(draws, found) is Verdict.CONVERGED
    assert draws.acceptance["undiverged"].min() > 0.99
