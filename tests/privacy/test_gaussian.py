"""Calibration against a second accountant, and against sixty digits where doubles cannot tell the
private side.

Covers `tacit.privacy.gaussian`.
"""

import math
import random
from itertools import product

import dp_accounting
import mpmath
import numpy as np
import pytest

from tacit.privacy.gaussian import (
    DELTA_RANGE,
    EPSILON_RANGE,
    compose,
    delta_at,
    epsilon_of,
    mu_of,
    multiplier,
    remaining,
)

EPSILONS = np.geomspace(*EPSILON_RANGE, 13).clip(*EPSILON_RANGE).tolist()
DELTAS = np.geomspace(*DELTA_RANGE, 11).clip(*DELTA_RANGE).tolist()
GRID = list(product(EPSILONS, DELTAS))
PUBLISHED = 1.487
"""Noise multiplier of the 2023 paper's code at (1, 1/7655)."""


def exact_delta(epsilon: float, mu: float | mpmath.mpf) -> mpmath.mpf:
    """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) to sixty digits; the arguments are taken as the exact
    numbers they are.
    """
    with mpmath.workdps(60):
        epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
            -mu / 2 - epsilon / mu
        )


def inverse(value: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        return 1 / mpmath.mpf(value)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_multiplier_is_the_second_accountants(epsilon):
    # dp_accounting solves to an absolute 1e-12 and may land on either side: near (1e-3, 1e-15) its
    # δ is up to 1e-10 too large. It is trusted for the value only; which side is private is judged
    # in sixty digits below.
    ours = [multiplier(epsilon, delta) for delta in DELTAS]
    theirs = [dp_accounting.get_sigma_gaussian(epsilon, delta) for delta in DELTAS]
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_multiplier_is_never_too_small_and_hardly_too_large(epsilon):
    for delta in DELTAS:
        mu = inverse(multiplier(epsilon, delta))
        assert exact_delta(epsilon, mu) <= delta
        assert exact_delta(epsilon, mu * (1 + mpmath.mpf("1e-9"))) > delta, (
            "more than 1e-9 of noise is wasted"
        )
        assert exact_delta(epsilon, mu_of(epsilon, delta)) <= delta


def test_random_budgets_land_on_the_private_side():
    budgets = random.Random(7)  # noqa: S311  (a seed on purpose)
    for _ in range(300):
        epsilon, delta = (
            math.exp(budgets.uniform(*map(math.log, bounds)))
            for bounds in (EPSILON_RANGE, DELTA_RANGE)
        )
        assert exact_delta(epsilon, inverse(multiplier(epsilon, delta))) <= delta


def test_delta_is_accurate_to_less_than_the_safety_margin():
    for epsilon, delta in GRID:
        mu = mu_of(epsilon, delta)
        assert abs(delta_at(epsilon, mu) / exact_delta(epsilon, mu) - 1) < 0.5e-10


def test_delta_at_the_edges():
    assert delta_at(1.0, 0.0) == 0.0
    assert delta_at(1e-3, 1e3) == 1.0
    assert delta_at(100.0, 1e-3) == 0.0  # underflow, towards the truth: e^{-5e9}
    assert delta_at(0.0, 1.0) == pytest.approx(math.erf(1 / math.sqrt(8)), rel=1e-14)


@pytest.mark.parametrize(
    ("epsilon", "delta", "expected"), [(1.0, 1e-5, 3.7306), (1.0, 1 / 7655, 3.1185)]
)
def test_reference_multipliers(epsilon, delta, expected):
    assert multiplier(epsilon, delta) == pytest.approx(expected, abs=5e-5)


def test_the_published_codes_noise_is_really_epsilon_2_34():
    epsilon = epsilon_of(1 / PUBLISHED, 1 / 7655)
    assert epsilon == pytest.approx(2.340, abs=5e-4)
    assert epsilon == pytest.approx(
        dp_accounting.get_epsilon_gaussian(PUBLISHED, 1 / 7655), rel=1e-8
    )


def test_mu_and_epsilon_are_inverse_and_both_round_to_the_private_side():
    for epsilon, delta in GRID:
        mu = mu_of(epsilon, delta)
        back = epsilon_of(mu, delta)
        # Two safety margins of 1e-10 in δ apart; where ε hardly moves δ (ε ≪ μ), that is more in ε
        # than in μ.
        assert mu_of(back, delta) == pytest.approx(mu, rel=1e-9)
        assert exact_delta(back, mu) <= delta


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("mu", [1e-4, 1e-2, 0.3, 1.0, 3.0, 10.0])
def test_epsilon_is_rounded_up_but_hardly(mu, delta):
    epsilon = epsilon_of(mu, delta)
    assert exact_delta(epsilon, mu) <= delta
    if epsilon > 0:
        assert exact_delta(epsilon * (1 - 1e-6), mu) > delta


def test_more_budget_is_less_noise():
    for delta in DELTAS:
        assert np.all(np.diff([multiplier(epsilon, delta) for epsilon in EPSILONS]) < 0)
    for epsilon in EPSILONS:
        assert np.all(np.diff([multiplier(epsilon, delta) for delta in DELTAS]) < 0)


def test_composition_is_the_root_of_the_sum_of_squares():
    assert compose([]) == 0.0
    assert compose([0.3]) == 0.3
    assert compose([3.0, 4.0]) == 5.0
    mu = mu_of(1.0, 1e-5)
    assert compose([mu / 2] * 4) == pytest.approx(mu, rel=1e-15)


def test_one_release_that_uses_the_whole_limit_fits():
    for epsilon, delta in GRID:
        mu = mu_of(epsilon, delta)
        assert compose([mu]) <= mu  # or a ledger could not be spent to the end


def test_composition_agrees_with_the_second_accountants_privacy_loss():
    """Two multipliers on one table, against dp_accounting's numerical composition, which is
    pessimistic by design.
    """
    accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-4)
    for sigma in (2.0, 5.0):
        accountant.compose(dp_accounting.GaussianDpEvent(sigma))
    ours = epsilon_of(compose([1 / 2.0, 1 / 5.0]), 1e-6)
    assert ours <= accountant.get_epsilon(1e-6) <= ours * 1.001


def test_what_remains_composes_with_what_is_spent_to_the_limit():
    assert remaining(1.0, 0.0) == 1.0
    assert remaining(1.0, 1.0) == 0.0
    assert remaining(0.5, 0.7) == 0.0
    for spent in (1e-6, 0.1, 0.9, 1 - 1e-12):
        assert compose([spent, remaining(1.0, spent)]) == pytest.approx(1.0, rel=1e-15)
