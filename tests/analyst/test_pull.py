"""The default prior's pull on slopes widens their law, and only where there is one.

Covers `tacit.analyst.methods.noise_aware.pull`.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from analyst.differing import simulated
from numpy.testing import assert_allclose

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods import noise_aware
from tacit.analyst.methods.gram import some_of, total_of
from tacit.analyst.methods.method import Mixture, Settings
from tacit.analyst.methods.noise_aware import whole
from tacit.analyst.methods.noise_aware.pull import flatness, pulled
from tacit.analyst.methods.noise_aware.slopes import Slopes, slopes_of
from tacit.analyst.prior import Prior

NOISE = 6.0
FLAT = np.array([0.0, 1.0, -1.0])
LONG = np.array([0.0, 1.0, 1.0])
MIXING = np.array([[1.0, 0.0], [1.0, 0.1]])


def evidence_of(slope: float, noise: float, seed: int = 0) -> Evidence:
    """Statistics of two columns that hardly differ, y going by their difference, and noise."""
    rng = np.random.default_rng([seed, 7])
    shared = 0.4 * rng.normal(size=3000)
    x = np.column_stack([shared, shared + 0.08 * rng.normal(size=3000)])
    rows = np.column_stack([np.ones(3000), x])
    y = slope * (x[:, 0] - x[:, 1]) / np.sqrt(2) + 0.2 * rng.normal(size=3000)
    full = rng.normal(size=(3, 3))
    return Evidence(
        grams=(rows.T @ rows + noise * (full + full.T) / 2)[None],
        moments=(rows.T @ y + noise / 2 * rng.normal(size=3))[None],
        gram_sd=np.array([noise]),
        off_diagonal_sd=np.array([noise / np.sqrt(2)]),
        moment_sd=np.array([noise / 2]),
        counts=np.array([3000.0]),
        squares=np.array([y @ y + noise / 2 * rng.normal()]),
        square_sd=np.array([noise / 2]),
        intercept=True,
    )


def expected(evidence: Evidence) -> Slopes:
    return slopes_of(evidence, total_of(evidence), Prior.weak(evidence.d))


def fitted(evidence: Evidence, prior: Prior | None = None) -> Mixture:
    return noise_aware.fit(evidence, prior or Prior.weak(evidence.d), Settings())


def left(_: Slopes, __: float, ___: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """A covariance without any pull."""
    return covariance


def unwidened(evidence: Evidence, monkeypatch: pytest.MonkeyPatch) -> Mixture:
    """The same fit without the pull."""
    with monkeypatch.context() as patch:
        patch.setattr(noise_aware, "pulled", left)
        return fitted(evidence)


def test_the_pull_is_the_priors_share_of_the_mean_along_flat_axes():
    """With P = C/4 the pull is 3/8·√w(m − m₀) along a flat axis, and nothing along a long one."""
    slopes = expected(evidence_of(1.0, 1.0))
    slopes = replace(slopes, prior=replace(slopes.prior, mean=np.array([0.0, 0.3, 0.0])))
    covariance = slopes.covariance(2.0) / 4
    short, long = slopes.axes.T
    share = np.sqrt(1 - (slopes.spreads[0] + 2 / 3000) / slopes.spreads.mean())
    location = slopes.prior.mean + np.concatenate([[0.1], 0.6 * short + 0.4 * long])
    pull = np.concatenate([[0.0], 0.375 * share * 0.6 * short])
    widened = pulled(slopes, 2.0, location, covariance)
    assert_allclose(widened, covariance + np.outer(pull, pull), rtol=1e-3)


def test_columns_that_do_not_go_together_are_left():
    _, _, evidence = simulated(
        np.random.default_rng(1), np.zeros(5), holders=1, rows=2000, noise=20.0
    )
    assert flatness(expected(evidence)).max() < 0.15
    alone = replace(expected(evidence), spreads=np.zeros(0), axes=np.zeros((0, 0)))
    assert len(flatness(alone)) == 0


def test_what_noise_hides_is_not_called_flat():
    slopes = expected(evidence_of(1.0, 1.0))
    assert flatness(slopes)[0] > 0.9
    assert not flatness(replace(slopes, noise=slopes.spreads.mean() / 2)).any()


def test_a_stated_prior_is_taken_at_its_word():
    slopes = expected(evidence_of(1.0, 10.0))
    stated = replace(slopes, prior=Prior.paper(3))
    covariance = 0.25 * np.eye(3)
    assert pulled(stated, 1.0, np.ones(3), covariance) is covariance


def test_intervals_are_wider_along_flat_directions_where_slopes_are_large(monkeypatch):
    evidence = evidence_of(2.0, NOISE)
    before, after = unwidened(evidence, monkeypatch), fitted(evidence)
    assert_allclose(after.mean(), before.mean())
    flat, long = (
        float(axis @ after.covariance() @ axis) / float(axis @ before.covariance() @ axis)
        for axis in (FLAT, LONG)
    )
    assert flat > 1.25
    assert long - 1 < (flat - 1) / 2


def test_nothing_is_added_where_releases_tell_all_or_nothing(monkeypatch):
    """Without noise the prior has no say; where there is no slope, there is nothing to pull."""
    for evidence in (evidence_of(2.0, 1e-3), evidence_of(0.0, 30.0)):
        before, after = unwidened(evidence, monkeypatch), fitted(evidence)
        assert_allclose(np.diag(after.covariance()), np.diag(before.covariance()), rtol=0.03)


def test_more_holders_than_a_net_is_solved_for_are_widened_too(monkeypatch):
    _, _, evidence = simulated(
        np.random.default_rng(3), np.zeros(3), holders=60, rows=50, noise=1.0, mixing=MIXING
    )
    monkeypatch.setattr(noise_aware, "some_of", partial(some_of, most=40))
    after = fitted(evidence)
    monkeypatch.setattr(whole, "pulled", left)
    before = fitted(evidence)
    assert_allclose(after.mean(), before.mean())
    assert np.all(np.diag(after.covariance())[1:] > 1.001 * np.diag(before.covariance())[1:])
