"""Holders that differ: the model of spreads, what is read off it, and where it must say nothing.

Covers `tacit.analyst.methods.noise_aware.spreads`, `tacit.analyst.methods.noise_aware.net` and
`tacit.analyst.methods.separate`.
"""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from analyst.differing import draw_spreads, fitted, level, p_values, simulated
from numpy.testing import assert_allclose
from scipy import stats
from scipy.optimize import minimize

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.noise_aware import net
from tacit.analyst.methods.noise_aware.facts import facts_of
from tacit.analyst.methods.noise_aware.spreads import DEGREES, SCALE, Law, first_net
from tacit.analyst.prior import Prior

TAILS = np.array([0.05, 0.95])


# The law of τ.


def test_without_a_word_of_the_releases_tau_has_its_prior():
    """A flat likelihood: the product is the prior, weights are even, and τ = 0 in 4/5."""
    law = Law(first_net(2), np.zeros((2, 25)))
    cube = net.latin_hypercube(4000, 3)
    tau, ratios = law.draw(cube)
    middles = (np.arange(8) + 0.5) / 8
    assert_allclose(law.shares, 0.5 * (1 - middles) ** 3, rtol=0.02)  # of density 4(1 − π)³
    assert_allclose((tau == 0).mean(axis=0), 4 / 5, atol=0.02)
    weights = np.exp(ratios - ratios.max())
    assert weights.sum() ** 2 / np.sum(weights**2) > 0.99 * len(weights)
    median = SCALE * stats.t.ppf(0.75, DEGREES)
    for column in tau.T:
        below = weights[(column > 0) & (column < median)].sum() / weights[column > 0].sum()
        assert_allclose(below, 0.5, atol=0.03)


def test_a_net_is_narrowed_to_where_tau_is():
    likelihood = np.concatenate([[-500.0], -0.5 * ((first_net(1)[0] - math.log(0.1)) / 0.2) ** 2])
    law = Law(first_net(1), likelihood[None])
    narrow = np.exp(law.narrowed()[0])
    assert 0.01 < narrow[0] < 0.06
    assert 0.2 < narrow[-1] < 0.9
    assert_allclose(law.means(), 0.1, rtol=0.05)


# SBC: Talts and others 2018.


@cache
def levels(runs: int, *, plugged: bool) -> dict[str, np.ndarray]:
    """Distribution functions of the posterior at the truth, (run, coefficient)."""
    found: dict[str, list[np.ndarray]] = {"θ": [], "τ": [], "θ_j": [], "new": []}
    original = net.Law.draw
    for run in range(runs):
        rng = np.random.default_rng(run)
        tau = draw_spreads(rng, 3)
        theta, own, evidence = simulated(rng, tau, holders=5, rows=500, noise=5.0)
        if plugged:
            net.Law.draw = lambda law, cube: (
                np.tile(law.means(), (len(cube), 1)),
                np.zeros(len(cube)),
            )
        try:
            mixture = fitted(evidence)
        finally:
            net.Law.draw = original
        spreads = mixture.differing.spreads
        ties = rng.uniform(size=3) * (mixture.weights @ (spreads == tau))
        found["θ"].append(level(mixture, theta))
        found["τ"].append(mixture.weights @ (spreads < tau) + ties)
        found["θ_j"].append(level(mixture.of_holder(0), own[0]))
        wide = replace(mixture, covariances=mixture.covariances + mixture.differing.between)
        found["new"].append(level(wide, theta + tau * rng.normal(size=3)))
    return {name: np.array(values) for name, values in found.items()}


SOME = 100
MANY = 400


@pytest.mark.xdist_group("holders that differ, calibrated")
@pytest.mark.parametrize("runs", [SOME, pytest.param(MANY, marks=pytest.mark.slow)])
def test_the_posterior_is_calibrated(runs):
    """Under a right posterior the least of twelve p-values is so small once in 250; fixed seeds."""
    told = levels(runs, plugged=False)
    least = {name: 3 * p_values(values).min() for name, values in told.items()}
    assert min(least.values()) > 1e-3, least


@pytest.mark.xdist_group("holders that differ, calibrated")
@pytest.mark.parametrize("runs", [SOME, pytest.param(MANY, marks=pytest.mark.slow)])
def test_a_version_that_plugs_tau_in_is_rejected(runs):
    plugged = levels(runs, plugged=True)
    assert 3 * p_values(plugged["τ"]).min() < 1e-6
    outside = {
        case: np.mean([np.abs(values[name] - 0.5) > 0.45 for name in ("θ", "new")])
        for case, values in {"in": plugged, "over": levels(runs, plugged=False)}.items()
    }
    assert outside["in"] > outside["over"]  # six intervals of each run


# REML on exact statistics.


def tables(rng: np.random.Generator, tau: np.ndarray, holders: int) -> list[tuple]:
    theta = 0.2 * rng.normal(size=len(tau))
    rows = []
    for _ in range(holders):
        x = np.column_stack([np.ones(60), 0.5 * rng.normal(size=(60, len(tau) - 1))])
        own = theta + tau * rng.normal(size=len(tau))
        rows.append((x, x @ own + 0.15 * rng.normal(size=60)))
    return rows


def reml(rows: list[tuple]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Estimates, standard errors and sds between holders, from the rows themselves."""
    d = rows[0][0].shape[1]

    def parts(logs: np.ndarray) -> tuple:
        between, residual = np.diag(np.exp(2 * logs[:d])), np.exp(2 * logs[d])
        precision, moment, square, determinant = np.zeros((d, d)), np.zeros(d), 0.0, 0.0
        for x, y in rows:
            covariance = residual * np.eye(len(y)) + x @ between @ x.T
            solved = np.linalg.solve(covariance, np.column_stack([x, y]))
            precision += x.T @ solved[:, :d]
            moment += x.T @ solved[:, d]
            square += y @ solved[:, d]
            determinant += np.linalg.slogdet(covariance)[1]
        return precision, moment, square, determinant

    def deviance(logs: np.ndarray) -> float:
        precision, moment, square, determinant = parts(logs)
        fitted = moment @ np.linalg.solve(precision, moment)
        return 0.5 * (determinant + np.linalg.slogdet(precision)[1] + square - fitted)

    start = np.log([*np.full(d, 0.1), 0.2])
    best = minimize(deviance, start, method="BFGS", options={"gtol": 1e-4}).x
    precision, moment, _, _ = parts(best)
    covariance = np.linalg.inv(precision)
    return covariance @ moment, np.sqrt(np.diag(covariance)), np.exp(best[:d])


def exact(rows: list[tuple]) -> Evidence:
    none = np.zeros(len(rows))
    return Evidence(
        grams=np.array([x.T @ x for x, _ in rows]),
        moments=np.array([x.T @ y for x, y in rows]),
        gram_sd=none,
        off_diagonal_sd=none,
        moment_sd=none,
        counts=np.full(len(rows), 60.0),
        squares=np.array([y @ y for _, y in rows]),
        square_sd=none,
        intercept=True,
    )


def test_exact_statistics_give_what_reml_gives():
    rows = tables(np.random.default_rng(0), np.array([0.1, 0.15, 0.08]), 131)
    estimates, errors, tau = reml(rows)
    mixture = fitted(exact(rows))
    assert (np.abs(mixture.mean() - estimates) < 0.1 * errors).all()
    assert_allclose(mixture.weights @ mixture.differing.spreads, tau, rtol=0.05)
    assert_allclose(np.sqrt(np.diag(mixture.covariance())), errors, rtol=0.05)


# Coverage and widths, small; benchmarks/holders_differ.py has the grid.


def test_the_average_is_covered_where_one_slope_differs_and_the_others_stay_narrow():
    """Of 60 right 90 % intervals fewer than 46 cover with probability 2e-3; seeds are fixed."""
    tau = np.array([0.0, 0.1, 0.0])
    hits, ratios = [], []
    for seed in range(60):
        theta, _, evidence = simulated(
            np.random.default_rng(seed), tau, holders=8, rows=800, noise=8.0
        )
        low, high = fitted(evidence).quantiles(TAILS, np.eye(3), np.zeros(3)).T
        hits.append(low[1] <= theta[1] <= high[1])
        alike = fitted(evidence, Settings(spread=0.0))
        known = np.diff(alike.quantiles(TAILS, np.eye(3), np.zeros(3)), axis=1)[:, 0]
        ratios.append((high - low) / known)
    assert sum(hits) >= 46
    ratios = np.mean(ratios, axis=0)
    assert ratios[1] > 2
    assert max(ratios[0], ratios[2]) < 1.15


def test_holders_that_are_alike_cost_little_width():
    ratios = []
    for seed in range(30):
        _, _, evidence = simulated(
            np.random.default_rng(seed), np.zeros(3), holders=8, rows=800, noise=8.0
        )
        widths = [
            np.diff(fitted(evidence, settings).quantiles(TAILS, np.eye(3), np.zeros(3)), axis=1)
            for settings in (Settings(), Settings(spread=0.0))
        ]
        ratios.append(widths[0] / widths[1])
    assert np.mean(ratios) < 1.1


# Holders' own coefficients.


def test_a_holder_of_many_rows_keeps_its_own_coefficients_and_a_small_one_is_drawn_to_the_rest():
    rng = np.random.default_rng(3)
    rows = np.array([20_000, 20_000, 20_000, 20_000, 20_000, 40])
    _, own, evidence = simulated(rng, np.array([0.1, 0.1]), holders=6, rows=rows, noise=3.0)
    mixture = fitted(evidence)
    differing = mixture.differing
    alone = [fitted(evidence.only([j])) for j in range(6)]
    for j in range(5):
        assert_allclose(differing.locations[j], alone[j].mean(), atol=0.005)
    sd = np.sqrt(np.diagonal(differing.covariances, axis1=1, axis2=2))
    assert (sd[5] > 2 * sd[:5].max()).all()
    assert (sd[5] < np.sqrt(np.diag(mixture.of_new_holder().covariance()))).all()
    assert (np.abs(differing.locations - own) < 4 * sd).all()


def test_two_holders_are_too_few_and_it_is_said():
    _, _, evidence = simulated(
        np.random.default_rng(0), np.zeros(2), holders=2, rows=800, noise=8.0
    )
    mixture = fitted(evidence)
    assert mixture.differing is None
    assert "Two holders are too few" in mixture.warning
    assert "Two holders" not in fitted(evidence, Settings(spread=0.0)).warning


def test_a_coefficient_of_which_two_holders_tell_is_not_said_to_differ():
    """Two large holders beside three with next to no rows: no spread can be told from them."""
    rows = np.array([50_000, 50_000, 10, 10, 10])
    _, _, evidence = simulated(
        np.random.default_rng(1), np.array([0.05, 0.05]), holders=5, rows=rows, noise=30.0
    )
    mixture = fitted(evidence)
    assert not mixture.differing.told.any()
    assert (mixture.differing.spreads == 0).all()


def test_a_given_spread_widens_the_average_by_its_share():
    """At a known τ that drowns all else, the average's sd is τ/√J."""
    _, _, evidence = simulated(
        np.random.default_rng(0), np.zeros(2), holders=9, rows=20_000, noise=1.0
    )
    mixture = fitted(evidence, Settings(spread=0.03))
    assert_allclose(np.sqrt(np.diag(mixture.covariance())), 0.01, rtol=0.05)


def test_the_order_of_holders_does_not_matter():
    _, _, evidence = simulated(
        np.random.default_rng(5), np.array([0.1, 0.0, 0.1]), holders=6, rows=900, noise=8.0
    )
    first = fitted(evidence)
    other = fitted(evidence.only([5, 3, 1, 0, 2, 4]))
    assert_allclose(first.mean(), other.mean(), atol=1e-6)
    assert_allclose(first.differing.locations[5], other.differing.locations[0], atol=1e-6)


@pytest.mark.parametrize("holders", [4, 9], ids=["fewer than 2d", "more than 2d"])
def test_a_profile_is_the_likelihood_of_the_model(holders):
    """τ moved along its profiles, and the model solved anew there, agree up to a constant."""
    _, _, evidence = simulated(
        np.random.default_rng(2), np.full(3, 0.1), holders=holders, rows=500, noise=10.0
    )
    pilot = net.pilot_of(evidence, Prior.weak(3), 0.06)
    grams = replace(pilot.facts.grams, own_variance=np.zeros((holders, 3, 3)))  # D enters it too
    facts = replace(pilot.facts, grams=grams)
    model = net.Model(facts, net.PILOT_SHARE, spread=np.array([0.01, 0.02, 0.003]))
    profile = net.Profile.of(model, model.solve(0.06))
    tau = np.array([0.0, 0.02, 0.1, 0.3])
    for k in (1, 0):  # the second profile from where the first has moved to
        along = profile.likelihood(k, tau)
        direct = []
        for value in tau:
            model.spread = profile.spread.copy()
            model.spread[k] = value**2
            direct.append(model.solve(0.06).node.log_weight)
        assert_allclose(along - along[0], np.array(direct) - direct[0], rtol=1e-6)
        profile.move(k, 0.05**2)


# Columns that are the same for all rows of a holder.


def at_holder_level(seed: int, noise: float = 5.0) -> tuple[np.ndarray, Evidence]:
    """Twelve holders, half of them of another kind; intercepts differ with sd 0.05."""
    rng = np.random.default_rng(seed)
    theta = np.array([0.1, 0.2, 0.15])
    parts = []
    for j in range(12):
        x = np.column_stack([np.ones(1500), 0.5 * rng.normal(size=1500), np.full(1500, j % 2)])
        own = theta + np.array([0.05 * rng.normal(), 0.0, 0.0])
        y = x @ own + 0.25 * rng.normal(size=1500)
        full = rng.normal(size=(3, 3))
        moments = x.T @ y + noise * rng.normal(size=3)
        parts.append((x.T @ x + noise * (full + full.T), moments, y @ y + noise * rng.normal()))
    grams, moments, squares = (np.array(part) for part in zip(*parts, strict=True))
    sd = np.full(12, 2 * noise)
    evidence = Evidence(
        grams=grams,
        moments=moments,
        gram_sd=sd,
        off_diagonal_sd=sd / np.sqrt(2),
        moment_sd=sd / 2,
        counts=np.full(12, 1500.0),
        squares=squares,
        square_sd=sd / 2,
        intercept=True,
    )
    return theta, evidence


def test_a_column_that_is_constant_within_holders_is_told_by_comparing_them():
    """Its error is that of two means of six intercepts.

    Of 60 right intervals fewer than 45 hold it with probability 1e-3; seeds are fixed.
    """
    hits, widths = [], []
    for seed in range(60):
        theta, evidence = at_holder_level(seed)
        mixture = fitted(evidence)
        assert mixture.differing.constant.tolist() == [False, False, True]
        assert (mixture.differing.spreads[:, 2] == 0).all()
        low, high = mixture.quantiles(TAILS, np.eye(3), np.zeros(3)).T
        hits.append((low <= theta) & (theta <= high))
        widths.append(high[2] - low[2])
    assert np.sum(hits, axis=0).min() >= 45
    assert_allclose(np.mean(widths), 2 * 1.645 * 0.05 / np.sqrt(3), rtol=0.2)


def test_a_column_of_holders_is_known_where_noise_gives_it_some_variance_within():
    """By noise alone its variance within holders looks like 3 to 11 % of that between."""
    flagged = []
    for seed in range(20):
        _, evidence = at_holder_level(seed, noise=20.0)
        flagged.append(net.holder_level(facts_of(evidence, Prior.weak(3)), intercept=True))
    assert np.mean(flagged, axis=0).tolist() == [0.0, 0.0, 1.0]
