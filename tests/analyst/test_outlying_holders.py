"""A holder far from the others is set aside and named; holders that only differ are not.

Covers `tacit.analyst.methods.noise_aware.outlying`.
"""

from dataclasses import replace

import numpy as np
import pytest
from analyst.differing import fitted, simulated
from numpy.testing import assert_allclose

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.noise_aware import net, outlying
from tacit.analyst.prior import Prior


@pytest.mark.parametrize("wrong", [0.3, 1.0, 10.0])
def test_one_wrong_holder_of_ten_is_named_and_moves_the_average_by_little(wrong):
    theta, _, evidence = simulated(
        np.random.default_rng(4), np.array([0.02, 0.02, 0.0]), holders=10, rows=2_000, noise=8.0
    )
    honest = fitted(evidence)
    moments = evidence.moments.copy()
    moments[6] += evidence.grams[6] @ np.array([0.0, wrong, -wrong])
    squares = evidence.squares.copy()
    squares[6] += 2_000 * wrong**2
    misled = fitted(replace(evidence, moments=moments, squares=squares))
    assert misled.differing.outlying == (6,)
    sd = np.sqrt(np.diag(honest.covariance()))
    assert (np.abs(misled.mean() - honest.mean()) < sd).all()
    assert_allclose(misled.differing.locations[6] - theta, [0, wrong, -wrong], atol=0.1)
    assert misled.differing.locations.shape == (10, 3)


def test_holders_that_only_differ_are_rarely_set_aside():
    """At a rate of 1e-3, two of 60 fits or more set one aside with probability 2e-3."""
    fits = [
        fitted(
            simulated(
                np.random.default_rng(seed), np.full(3, 0.1), holders=10, rows=800, noise=8.0
            )[2]
        )
        for seed in range(60)
    ]
    assert sum(bool(mixture.differing.outlying) for mixture in fits) <= 1


@pytest.fixture
def pilots(monkeypatch) -> list[int]:
    """How many holders every pilot that is made has."""
    made: list[int] = []

    def counted(evidence: Evidence, *rest: object) -> net.Pilot:
        made.append(evidence.holders)
        return net.pilot_of(evidence, *rest)

    monkeypatch.setattr(outlying, "pilot_of", counted)
    return made


def test_who_causes_most_of_one_of_many_coefficients_is_not_looked_at_closely_for_that(pilots):
    """At 0.02 a fit, four of 15 or more with probability 2e-4; fixed seeds."""
    for seed in range(15):
        evidence = simulated(
            np.random.default_rng(seed), np.full(24, 0.05), holders=6, rows=800, noise=8.0
        )[2]
        outlying.kept_of(evidence, Prior.weak(24), None)
    assert pilots.count(5) <= 3


def test_one_wrong_holder_of_ten_is_named_among_many_columns(pilots):
    """Wrong in a single one of 130 coefficients, where holders differ in a few."""
    wrong = 5.0
    tau = np.zeros(130)
    tau[:5] = 0.02
    evidence = simulated(np.random.default_rng(4), tau, holders=10, rows=2_000, noise=8.0)[2]
    assert outlying.kept_of(evidence, Prior.weak(130), None).aside == ()
    assert pilots == [10]
    moments = evidence.moments.copy()
    moments[6] += wrong * evidence.grams[6, 100]
    squares = evidence.squares + np.where(np.arange(10) == 6, 500 * wrong**2, 0.0)
    poisoned = replace(evidence, moments=moments, squares=squares)
    assert outlying.kept_of(poisoned, Prior.weak(130), None).aside == (6,)
    assert pilots == [10, 10, 9]
