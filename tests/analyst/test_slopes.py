"""What is expected of slopes: shares of variance by axis, stated priors kept, no narrow lies.

Covers `tacit.analyst.methods.noise_aware.slopes`, `tacit.analyst.methods.noise_aware.facts`,
`tacit.analyst.methods.noise_aware.model`,
`tacit.analyst.methods.noise_aware.residual`.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods import method_named
from tacit.analyst.methods.gram import total_of
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.noise_aware.facts import facts_of
from tacit.analyst.methods.noise_aware.model import Model
from tacit.analyst.methods.noise_aware.slopes import SHARES, Slopes, slopes_of
from tacit.analyst.prior import Prior

TAILS = np.array([0.05, 0.95])


def evidence_of(x: np.ndarray, y: np.ndarray, noise: float, seed: int = 0) -> Evidence:
    """Statistics of rows with an intercept, and noise of that sd on X'X, half of it elsewhere."""
    rng = np.random.default_rng([seed, 9])
    rows = np.column_stack([np.ones(len(y)), x])
    full = rng.normal(size=(rows.shape[1], rows.shape[1]))
    return Evidence(
        grams=(rows.T @ rows + noise * (full + full.T) / 2)[None],
        moments=(rows.T @ y + noise / 2 * rng.normal(size=rows.shape[1]))[None],
        gram_sd=np.array([noise]),
        off_diagonal_sd=np.array([noise / np.sqrt(2)]),
        moment_sd=np.array([noise / 2]),
        counts=np.array([float(len(y))]),
        squares=np.array([y @ y + noise / 2 * rng.normal()]),
        square_sd=np.array([noise / 2]),
        intercept=True,
    )


def rows_of(seed: int, n: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Three features, the third nearly the sum of the others, off centre."""
    rng = np.random.default_rng(seed)
    x = 0.3 * rng.normal(size=(n, 3)) + [0.2, -0.4, 0.0]
    x[:, 2] = (x[:, 0] + x[:, 1]) / 2 + 0.05 * rng.normal(size=n)
    return x, 0.1 + x @ [0.2, 0.2, 0.1] + 0.2 * rng.normal(size=n)


def slopes(evidence: Evidence, prior: Prior | None = None) -> Slopes:
    return slopes_of(evidence, total_of(evidence), prior or Prior.weak(evidence.d))


def test_slopes_are_expected_to_explain_the_share_and_an_axis_by_its_sd():
    x, y = rows_of(0)
    prior = slopes(evidence_of(x, y, 1e-3))
    covariance = np.cov(x.T, bias=True)
    assert_allclose(prior.spreads, np.linalg.eigvalsh(covariance), rtol=1e-3)
    assert prior.variance == pytest.approx(float(y.var()), rel=1e-3)
    for share in SHARES:
        expected = prior.covariance(share)[1:, 1:]
        assert np.sum(covariance * expected) == pytest.approx(share * prior.variance, rel=1e-3)
        along = np.diag(prior.axes.T @ expected @ prior.axes)
        explained = along * prior.spreads
        assert_allclose(
            explained / np.sqrt(prior.spreads), explained[0] / np.sqrt(prior.spreads[0])
        )
    assert prior.covariance(1.0)[0, 0] == 1.0


def test_what_noise_hides_is_counted_up_to_the_noise_and_no_further():
    x, y = rows_of(1)
    swamped = slopes(evidence_of(x, y, 40.0))
    assert swamped.spreads.min() == pytest.approx(40.0 / 4000 / 2, rel=0.05)
    assert np.trace(swamped.hidden) > 0
    assert slopes(evidence_of(x, y, 1e6)).spreads.min() >= 0.05
    assert np.abs(slopes(evidence_of(x, y, 1e-6)).hidden).max() < 1e-6


def test_a_prior_that_is_stated_is_taken_as_it_is():
    x, y = rows_of(2)
    evidence = evidence_of(x, y, 5.0)
    stated = Prior.paper(4)
    prior = slopes(evidence, stated)
    assert prior.shares == {1.0: 1.0}
    assert_allclose(prior.covariance(1.0), stated.covariance)
    tight = Prior(np.full(4, 0.3), 1e-8 * np.eye(4), 2.0, 0.1, np.eye(4), 6.0)
    outcome = method_named("noise-aware").fit(evidence, tight, Settings())
    assert_allclose(outcome.mean(), 0.3, atol=1e-3)


def test_contrasts_of_near_collinear_columns_keep_their_interval():
    """Slopes of 2 and −2 that nearly cancel: 90 % intervals hold them.

    60 fits of two slopes; fewer than 88 of 120 has probability below 1e-5 at 90 %, were the two
    independent. A common scale of slopes in encoded columns covers none of them.
    """
    theta = np.array([0.0, 2.0, -2.0])
    hits = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        shared = 0.4 * rng.normal(size=3000)
        x = np.column_stack([shared, shared + 0.08 * rng.normal(size=3000)])
        y = x @ theta[1:] + 0.2 * rng.normal(size=3000)
        outcome = method_named("noise-aware").fit(
            evidence_of(x, y, 3.0, seed), Prior.weak(3), Settings()
        )
        low, high = outcome.quantiles(TAILS, np.eye(3), np.zeros(3)).T
        hits += int(np.sum(((low <= theta) & (theta <= high))[1:]))
    assert hits >= 88


def test_the_residual_variance_is_no_more_than_the_responses():
    """Even where noise hides everything: what features do not explain is at most all of it."""
    x, y = rows_of(3)
    outcome = method_named("noise-aware").fit(evidence_of(x, y, 300.0), Prior.weak(4), Settings())
    most = slopes(evidence_of(x, y, 300.0)).most
    assert outcome.noise_variances.max() <= outcome.unshrunk * most * (1 + 1e-9)


def test_the_residual_sum_without_noise_is_that_of_the_rows():
    x, y = rows_of(4)
    evidence = evidence_of(x, y, 1e-9)
    rows = np.column_stack([np.ones(len(y)), x])
    residual = y - rows @ np.linalg.lstsq(rows, y, rcond=None)[0]
    model = Model(facts_of(evidence, Prior.weak(4)), 1.0)
    sums, noise = model.residuals(model.gaussian(0.04), evidence)
    assert sums[0] == pytest.approx(float(residual @ residual), rel=0.01)
    assert noise[0] < 1
