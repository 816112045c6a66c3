"""Covers analyst/methods/quadrature.py."""

import numpy as np
import pytest

from tacit.analyst.methods.quadrature import gauss_rule

CENTRE, SD = -2.0, 0.3


def normal(log_variance):
    """log σ² ~ N(CENTRE, SD²), so that E[σᵏ] = exp(k·CENTRE/2 + k²·SD²/8)."""
    return -0.5 * ((log_variance - CENTRE) / SD) ** 2


@pytest.mark.parametrize("power", range(6))
def test_the_rule_is_exact_for_polynomials_of_degree_five_in_sigma(power):
    value = sum(weight * variance ** (power / 2) for variance, weight in gauss_rule(normal))
    exact = np.exp(power * CENTRE / 2 + power**2 * SD**2 / 8)
    assert value == pytest.approx(exact, rel=1e-6)


def test_the_rule_is_not_exact_for_degree_six():
    value = sum(weight * variance**3 for variance, weight in gauss_rule(normal))
    assert value != pytest.approx(np.exp(3 * CENTRE + 36 * SD**2 / 8), rel=1e-5)


def test_a_law_without_spread_is_one_point():
    law = gauss_rule(lambda values: -1e9 * (values - CENTRE) ** 2)
    assert sum(weight for _, weight in law) == pytest.approx(1)
    assert max(variance for variance, _ in law) == pytest.approx(np.exp(CENTRE), rel=1e-3)
