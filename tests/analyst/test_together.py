"""Differences of holders that go together, and what a new holder is taken to differ in.

Covers `tacit.analyst.methods.noise_aware.together` and `tacit.analyst.posterior.differing`.
"""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from analyst.differing import draw_spreads, level, p_values, simulated
from numpy.testing import assert_allclose
from scipy import stats

from tacit.analyst.methods import gram, noise_aware
from tacit.analyst.methods.gram import some_of
from tacit.analyst.methods.method import Mixture, Settings
from tacit.analyst.methods.noise_aware import net, outlying, together
from tacit.analyst.methods.noise_aware import whole as whole_module
from tacit.analyst.methods.noise_aware.facts import facts_of
from tacit.analyst.posterior.differing import TAKEN_TO_DIFFER, Differing
from tacit.analyst.posterior.holders import spread_bounds
from tacit.analyst.prior import Prior

MIXING = np.array([[1.0, 0.0], [0.95, np.sqrt(1 - 0.95**2)]])
"""Two features whose correlation is 0.95."""
GRAM = np.eye(3)
GRAM[1:, 1:] = 0.25 * MIXING @ MIXING.T
SHAPE = np.linalg.inv(GRAM)


def evidence_of(seed: int, tau: np.ndarray, kappa: float, holders: int = 8):
    rng = np.random.default_rng(seed)
    return simulated(
        rng,
        tau,
        holders=holders,
        rows=2_000,
        noise=5.0,
        together=kappa**2 * SHAPE,
        mixing=MIXING,
    )


def test_features_that_go_together_give_the_shape_of_differences():
    evidence = evidence_of(0, np.zeros(3), 0.0)[2]
    shape = together.shape_of(facts_of(evidence, Prior.weak(3)), np.arange(3))
    assert_allclose(shape, SHAPE, rtol=0.15, atol=0.5)
    assert together.may_go_together(shape, np.arange(3))
    two = together.shape_of(facts_of(evidence, Prior.weak(3)), np.array([0, 2]))
    assert_allclose(two[[0, 2], [0, 2]], [1.0, 4.0], rtol=0.1)
    assert (two[1] == 0).all()


def test_features_that_do_not_go_together_leave_kappa_at_0():
    evidence = simulated(
        np.random.default_rng(0), np.full(3, 0.05), holders=8, rows=2_000, noise=5.0
    )[2]
    mixture = noise_aware.fit(evidence, Prior.weak(3), Settings())
    assert mixture.differing.together is None


def test_differences_that_go_together_are_told_with_their_covariance():
    kappa = 0.05
    _, own, evidence = evidence_of(3, np.zeros(3), kappa, holders=30)
    mixture = noise_aware.fit(evidence, Prior.weak(3), Settings())
    differing = mixture.differing
    assert mixture.weights @ (differing.together > 0) > 0.95
    assert_allclose(mixture.weights @ np.sqrt(differing.together), kappa, rtol=0.3)
    between = np.einsum("k,kab->ab", mixture.weights, differing.between)
    ratio = between[1, 2] / np.sqrt(between[1, 1] * between[2, 2])
    assert ratio == pytest.approx(-0.95, abs=0.08)
    added = np.array([[0.0, 1.0, 1.0]])  # along which features vary most
    assert_allclose(
        mixture.weights @ differing.variances(added)[:, 0], added[0] @ between @ added[0]
    )
    assert_allclose(np.diag(differing.usual(mixture.weights)), np.diag(between), rtol=0.2)
    sd = np.sqrt(np.diagonal(differing.covariances, axis1=1, axis2=2))
    assert np.mean(np.abs(differing.locations - own) < 1.645 * sd) > 0.8


def test_some_tell_how_differences_go_together_and_all_are_drawn_so(monkeypatch):
    """Holders of the second part have their own H_j, though the first part's is the model's."""
    _, own, evidence = evidence_of(4, np.zeros(3), 0.05, holders=60)
    whole = noise_aware.fit(evidence, Prior.weak(3), Settings()).differing
    monkeypatch.setattr(noise_aware, "some_of", partial(some_of, most=40))
    monkeypatch.setattr(gram, "PART", 30)
    monkeypatch.setattr(whole_module, "PART", 30)
    some = noise_aware.fit(evidence, Prior.weak(3), Settings()).differing
    assert some.locations.shape == own.shape
    sd = np.sqrt(np.diagonal(whole.covariances, axis1=1, axis2=2))
    assert_allclose((some.locations - whole.locations) / sd, 0.0, atol=0.5)
    assert_allclose(np.sqrt(np.diagonal(some.covariances, axis1=1, axis2=2)) / sd, 1.0, atol=0.3)


def test_a_holder_whose_rows_hardly_vary_may_differ_far_in_a_slope():
    evidence = evidence_of(5, np.zeros(3), 0.05)[2]
    grams = evidence.grams.copy()
    grams[2, 1:, 1:] /= 9.0
    facts = facts_of(replace(evidence, grams=grams), Prior.weak(3))
    told = np.arange(3)
    facts = replace(facts, shape=together.shape_of(facts, told))
    most = np.array([0.0, 1.0, 1.0]) @ facts.axes  # along which features vary most
    along = most @ together.shapes_of(facts, told) @ most
    assert 3.0 < along[2] / np.median(along) < 9.0


def test_a_way_that_nothing_speaks_for_is_not_looked_at_more_closely():
    evidence = evidence_of(1, np.array([0.2, 0.0, 0.0]), 0.0)[2]
    pilot = net.pilot_of(evidence, Prior.weak(3), None)
    ways = net.ways_of(pilot)
    flat = replace(ways.ways[0], log_weight=50.0 + max(way.log_weight for way in ways.ways))
    certain = together.Ways((flat, *ways.ways[1:]))
    assert certain.tried().size == 0
    kappa, chosen, _ = certain.draw(np.linspace(0.01, 0.99, 20))
    assert (kappa == 0).all()
    assert (chosen == 0).all()


def test_without_a_word_of_the_releases_kappa_has_its_prior():
    """All ways are as likely as beforehand: weights are even, and κ is half-Student."""
    law = net.Law(net.first_net(0), np.zeros((0, 25)))
    values = [0.0, *np.geomspace(1e-4, 3.0, 60)]
    ways = [together.Way(value, law, together.chance(value)) for value in values]
    kappa, _, ratios = together.Ways(tuple(ways)).draw((np.arange(4000) + 0.5) / 4000)
    assert np.mean(kappa == 0) == pytest.approx(1 - together.CHANCE, abs=0.01)
    weights = np.exp(ratios - ratios.max())
    assert weights.sum() ** 2 / np.sum(weights**2) > 0.98 * len(weights)
    median = together.SCALE * stats.t.ppf(0.75, 3.0)
    assert np.mean(kappa[kappa > 0] < median) == pytest.approx(0.5, abs=0.02)


# SBC, where κ is above 0 in half of all studies.


@cache
def levels(runs: int) -> dict[str, np.ndarray]:
    """Distribution functions of the posterior at the truth, (run, coefficient)."""
    told: dict[str, list[np.ndarray]] = {"θ": [], "τ": [], "θ_j": []}
    usual = together.CHANCE
    together.CHANCE = 0.5
    try:
        for run in range(runs):
            rng = np.random.default_rng([run, 1])
            tau = draw_spreads(rng, 3)
            kappa = 0.0
            if rng.uniform() < together.CHANCE:
                kappa = float(np.clip(together.SCALE * np.abs(rng.standard_t(3.0)), 0.001, 0.3))
            theta, own, evidence = evidence_of(run, tau, kappa, holders=5)
            mixture = noise_aware.fit(evidence, Prior.weak(3), Settings())
            spreads = mixture.differing.spreads
            truth = np.sqrt(tau**2 + kappa**2 * np.diag(SHAPE))
            ties = rng.uniform(size=3) * (mixture.weights @ (spreads == truth))
            told["θ"].append(level(mixture, theta))
            told["τ"].append(mixture.weights @ (spreads < truth) + ties)
            told["θ_j"].append(level(mixture.of_holder(0), own[0]))
    finally:
        together.CHANCE = usual
    return {name: np.array(values) for name, values in told.items()}


@pytest.mark.parametrize("runs", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_the_posterior_is_calibrated_where_differences_may_go_together(runs):
    """Under a right posterior the least of nine p-values is so small once in 330; fixed seeds."""
    least = {name: 3 * p_values(values).min() for name, values in levels(runs).items()}
    assert min(least.values()) > 1e-3, least


# Residual variances of holders that are not alike.


def test_holders_are_held_against_each_other_with_their_own_residual_variances():
    """One of six has three times the residual sd: σ² of all is far from that of the others."""
    rng = np.random.default_rng(2)
    tau = np.zeros(3)
    quiet, loud = (
        simulated(rng, tau, holders=holders, rows=2_000, noise=2.0, sigma=sigma)[2]
        for holders, sigma in ((5, 0.15), (1, 0.45))
    )
    both = {
        name: np.concatenate([value, getattr(loud, name)])
        for name, value in vars(quiet).items()
        if isinstance(value, np.ndarray)
    }
    pilot = net.pilot_of(replace(quiet, **both), Prior.weak(3), None)
    without = net.pilot_of(quiet, Prior.weak(3), None)
    ratios = outlying._ratios(pilot, without, 5)
    assert_allclose(ratios[:5] * without.noise_variance, 0.15**2, rtol=0.2)
    assert_allclose(ratios[5] * without.noise_variance, 0.45**2, rtol=0.2)


# A new holder.


def two_parts(weight: float) -> Mixture:
    """Holders differ in the second coefficient with this probability, never in the first."""
    return Mixture(
        weights=np.array([1 - weight, weight / 2, weight / 2]),
        locations=np.zeros((3, 2)),
        covariances=np.tile(0.01 * np.eye(2), (3, 1, 1)),
        noise_variances=np.ones(3),
        differing=Differing(
            spreads=np.array([[0.0, 0.0], [0.0, 0.2], [0.0, 0.4]]),
            locations=np.zeros((4, 2)),
            covariances=np.zeros((4, 2, 2)),
            within=np.eye(2),
            ratios=np.ones(4),
            told=np.ones(2, dtype=bool),
            constant=np.zeros(2, dtype=bool),
        ),
    )


def test_a_new_holder_is_taken_to_differ_where_that_is_in_doubt():
    new = two_parts(TAKEN_TO_DIFFER + 0.01).of_new_holder()
    assert new.differing is None
    assert_allclose(new.covariances[:, 0, 0], 0.01)
    assert (new.covariances[:, 1, 1] >= 0.01 + 0.2**2).all()


def test_a_new_holder_is_taken_not_to_differ_where_that_is_unlikely():
    mixture = two_parts(TAKEN_TO_DIFFER - 0.01)
    assert_allclose(mixture.of_new_holder().covariances, mixture.covariances)


def test_the_spread_reaches_up_to_what_it_is_where_it_is_above_0():
    tails = np.array([0.05, 0.95])
    for weight in (TAKEN_TO_DIFFER + 0.01, TAKEN_TO_DIFFER - 0.01):
        mixture = two_parts(weight)
        bounds = spread_bounds(mixture.weights, mixture.differing.spreads, tails)
        assert_allclose(bounds[:, 0], 0.0)
        assert bounds[0, 1] == 0.0
        assert (bounds[1, 1] == pytest.approx(0.4)) == (weight > TAKEN_TO_DIFFER)
