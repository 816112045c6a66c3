"""A level that few rows have, of which noise says what no log-odds can give.

Covers `tacit.analyst.families.score`.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tacit.analyst.families.law import Law
from tacit.analyst.families.links import LINKS
from tacit.analyst.families.score import Score
from tacit.analyst.posterior.laws import Mixture

SD = 0.02
"""Of the straight line's coefficients."""
TRUTH = np.array([2.5, 1.1, -0.5])


def score_of() -> Score:
    """A logistic family over an intercept, a level that one row in ten has, and a normal number."""
    rng = np.random.default_rng(1)
    level = (np.arange(8000) % 10 == 0) * 1.0
    rows = np.column_stack([np.ones(8000), level, rng.standard_normal(8000)])
    return Score(law=Law(rows=rows), link=LINKS["logistic"], centre=0.5, half=0.5, levels=(1,))


def told(line: np.ndarray) -> Mixture:
    return Mixture(
        weights=np.ones(1),
        locations=line[None],
        covariances=SD**2 * np.eye(3)[None],
        noise_variances=np.array([0.2]),
    )


@pytest.mark.parametrize("above", [0.0, 0.01, 0.02])
def test_a_rate_above_one_asks_for_no_endless_log_odds(above: float) -> None:
    """The level's mean is told to be `above` 1.

    Were nothing known of levels beforehand, log-odds would be 3.3 to 4.7, with an sd of up to 6.
    """
    score = score_of()
    line = score.line(TRUTH)
    line[1] += 2 * (1 + above) - (1 + line[0] + line[1])
    family = score.family(told(line))
    beta = family.coefficients(line)
    sd = np.sqrt(np.diag(family.matrix @ (SD**2 * np.eye(3)) @ family.matrix.T))
    assert 1.1 < beta[1] < 3.3
    assert sd[1] < 2
    assert abs(beta[1] - TRUTH[1]) < 2 * sd[1]
    assert_allclose(beta[[0, 2]], TRUTH[[0, 2]], atol=0.3)


def test_where_every_mean_can_be_the_prior_is_hardly_felt() -> None:
    """The level's sd is 0.45: a prior sd of 2.5 moves it by a thirtieth of itself."""
    score = score_of()
    beta = score.family(told(score.line(TRUTH))).coefficients(score.line(TRUTH))
    assert_allclose(beta, TRUTH, atol=0.05)
