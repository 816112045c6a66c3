"""Calibration is on the private side, by interval arithmetic: it cannot round in our favour."""

import math
from itertools import product

import numpy as np
import pytest
import scipy.special
from flint import arb, ctx
from intervals import PRECISION, delta_ball, is_private
from rounding import erfcx, erfcx_units, unproven_boxes

from tacit.privacy import gaussian
from tacit.privacy.gaussian import (
    DELTA_RANGE,
    EPSILON_RANGE,
    epsilon_of,
    mu_of,
    multiplier,
    part_of,
)
from tacit.privacy.mechanism import LATTICE_BITS, lattice_multiplier

ENTRIES = (5, 300, 131_840)
"""Numbers that carry noise: a small study, a usual one, one of 512 columns."""
ROUNDING = 2.5e-10
"""Bound on the relative rounding error of `delta_at`, for all budgets."""


def grid(epsilons, deltas):
    """Budgets that cover the admitted ranges, the ends included."""
    ranges = (np.geomspace(*EPSILON_RANGE, epsilons), np.geomspace(*DELTA_RANGE, deltas))
    clipped = (
        values.clip(*ends).tolist()
        for values, ends in zip(ranges, (EPSILON_RANGE, DELTA_RANGE), strict=True)
    )
    return list(product(*clipped))


def exceeded(budgets):
    """Budgets whose calibrated noise is not certainly enough."""
    return [
        (epsilon, delta)
        for epsilon, delta in budgets
        if not is_private(epsilon, delta, mu_of(epsilon, delta))
        or not is_private(epsilon, delta, 1 / arb(multiplier(epsilon, delta)))
    ]


@pytest.fixture(autouse=True)
def _precisely():
    with ctx.workprec(PRECISION):
        yield


SIZES = [(25, 16), pytest.param((301, 151), marks=pytest.mark.slow)]


@pytest.mark.parametrize("size", SIZES)
def test_the_multiplier_is_on_the_private_side(size):
    assert not exceeded(grid(*size))


def test_noise_that_is_a_billionth_too_small_is_noticed(monkeypatch):
    monkeypatch.setattr(gaussian, "_SAFETY", -1e-9)
    assert exceeded(grid(25, 16)) == grid(25, 16)


@pytest.mark.parametrize("size", [(13, 8), pytest.param((101, 51), marks=pytest.mark.slow)])
def test_with_the_lattices_costs_it_still_is(size):
    """docs/privacy.md, "The lattice": √m·2⁻³² comes off μ, and η = m·2⁻⁵⁰ off ε and δ."""
    for (epsilon, delta), entries in product(grid(*size), ENTRIES):
        eta = arb(entries) * arb(2) ** -50
        mu = 1 / arb(lattice_multiplier(entries, epsilon, delta))
        mu += arb(entries).sqrt() * arb(2) ** -LATTICE_BITS
        assert delta_ball(arb(epsilon) - 2 * eta, mu) <= arb(delta) * (1 - 2 * eta)


@pytest.mark.parametrize("size", [(25, 16), pytest.param((301, 151), marks=pytest.mark.slow)])
def test_epsilon_is_on_the_private_side(size):
    """For μ from 10⁻⁴, less than any budget's, to 10², far more than any."""
    mus, deltas = size
    for mu in np.geomspace(1e-4, 1e2, mus).tolist():
        for delta in np.geomspace(*DELTA_RANGE, deltas).clip(*DELTA_RANGE).tolist():
            assert is_private(epsilon_of(mu, delta), delta, mu)


def test_parts_cost_no_more_than_the_whole():
    for (epsilon, delta), number in product(grid(9, 6), (2, 5, 20)):
        part = part_of(epsilon, delta, 1 / number)
        if part >= EPSILON_RANGE[0]:
            assert is_private(epsilon, delta, arb(number).sqrt() / arb(multiplier(part, delta)))


# All budgets at once, from what is assumed of exp and erfcx.


def test_rounding_is_below_its_bound_for_every_budget():
    """So δ is exceeded by at most ROUNDING − _SAFETY of it, and nowhere if _SAFETY is larger."""
    budgets = (arb(DELTA_RANGE[0] * 0.999), EPSILON_RANGE)
    assert not list(unproven_boxes(arb(ROUNDING), *budgets))
    assert next(unproven_boxes(arb(ROUNDING / 2), *budgets)), "a smaller bound is not shown"


@pytest.mark.parametrize(
    ("low", "high"), [(-21.3, -5.0), (-5.0, 0.0), (0.0, 2.0), (2.0, 6.0), (6.0, 60.0)]
)
def test_erfcx_is_as_exact_as_was_assumed(low, high):
    """Seen on random points, not proven: at most half of what is assumed."""
    points = np.random.default_rng(1).uniform(low, high, 10_000)
    for x, value in zip(points.tolist(), scipy.special.erfcx(points).tolist(), strict=True):
        truth = erfcx(arb(x))
        assert abs(arb(value) - truth) <= truth * arb(2) ** -53 * (0.6 * erfcx_units(x))


def test_exp_is_as_exact_as_was_assumed():
    for x in np.random.default_rng(2).uniform(-40, 0, 10_000).tolist():
        truth = arb(x).exp()
        assert abs(arb(math.exp(x)) - truth) <= truth * arb(2) ** -52
