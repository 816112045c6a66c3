"""Gamma and Wishart draws, by Kolmogorov–Smirnov tests with a false-alarm rate of 1e-4 each and
fixed seeds.

Covers `tacit.analyst.methods.wishart`.
"""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

from tacit.analyst.methods.sampling import double_precision, jax, jnp, random
from tacit.analyst.methods.wishart import bartlett, gamma

DRAWS = 20_000


@pytest.mark.parametrize("shape", [0.05, 0.7, 1.0, 3.5, 4000.0])
def test_gamma_draws_follow_their_law(shape):
    with double_precision():
        draws = np.asarray(jax.jit(gamma)(random.key(1), jnp.full(DRAWS, shape)))
    assert stats.kstest(draws, stats.gamma(shape).cdf).pvalue > 1e-4


def test_bartlett_factors_give_wishart_matrices():
    """Diagonals of TT' are χ²(ν); its determinant is a product of χ²(ν), χ²(ν − 1), …, whose logs
    have a known mean.
    """
    d, degrees = 3, 4.5
    with double_precision():
        factor = np.asarray(
            jax.jit(bartlett, static_argnums=2)(random.key(2), jnp.full(DRAWS, degrees), d)
        )
    matrices = factor @ factor.swapaxes(1, 2)
    assert_array_equal(np.triu(factor, 1), np.zeros_like(factor))
    for i in range(d):
        assert stats.kstest(matrices[:, i, i], stats.chi2(degrees).cdf).pvalue > 1e-4
    logs = np.linalg.slogdet(matrices)[1]
    expected = sum(stats.chi2.expect(np.log, (degrees - i,)) for i in range(d))
    assert abs(logs.mean() - expected) < stats.norm.isf(5e-5) * logs.std() / np.sqrt(DRAWS)
    correlation = np.corrcoef(matrices[:, 0, 1], matrices[:, 0, 2])[0, 1]
    assert abs(correlation) < stats.norm.isf(5e-5) * 3 / np.sqrt(
        DRAWS
    )  # 0; heavy tails widen it, by less than 3
