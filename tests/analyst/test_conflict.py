"""A first answer that corrections contradict gives way to them, and only there.

Covers `tacit.visits.conflict`.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tacit import Study, fit
from tacit.analyst.collection import collect
from tacit.simulation import simulate
from tacit.visits import conflict
from tacit.visits.conflict import Reach, yielded
from tacit.visits.estimate import update
from tacit.visits.pool import Pool, together

D = 4
ROWS = 1000.0
PRIOR = np.diag([0.04, 0.01, 0.0025, 0.01])
GRAM = ROWS * np.array([[1.0, 0.3, 0, 0], [0.3, 1.0, 0, 0], [0, 0, 0.5, 0.1], [0, 0, 0.1, 0.2]])
MOMENT_SD = 10.0
RESIDUAL = 0.05
NOISE = ("gram_sd", "moment_sd", "square_sd")
FAR = Reach(response=2.0, intercept=True)


def pool(moment):
    return Pool(
        rows=ROWS,
        gram=GRAM,
        moment=moment,
        square=RESIDUAL * ROWS,
        gram_sd=1.0,
        moment_sd=MOMENT_SD,
        square_sd=1.0,
        bound=1.0,
    )


def drawn(rng, theta):
    """Corrections of this line, sampling error and noise included."""
    noise = rng.multivariate_normal(np.zeros(D), RESIDUAL * GRAM + MOMENT_SD**2 * np.eye(D))
    return pool(GRAM @ theta + noise)


def test_a_prior_that_is_right_stays():
    """1,000 axes; chance widens 2.7 of them, and more than 11 once in 20,000 times."""
    rng = np.random.default_rng(5)
    widened = 0
    for _ in range(250):
        theta = rng.multivariate_normal(np.zeros(D), PRIOR)
        new = yielded(drawn(rng, theta), PRIOR, np.zeros(D), RESIDUAL, FAR)
        factors = np.linalg.eigvals(np.linalg.solve(PRIOR, new)).real
        assert np.all(factors > 1 - 1e-9)
        widened += int(np.sum(factors > 1 + 1e-9))
    assert widened <= 11


def test_a_prior_that_is_wrong_along_one_axis_yields_there_alone():
    """Twenty of its sds off along the third: it would draw the line half of the way back."""
    theta = np.array([0.1, -0.05, 1.0, 0.02])
    corrections = pool(GRAM @ theta)
    new = yielded(corrections, PRIOR, np.zeros(D), RESIDUAL, FAR)
    kept, _ = update(corrections, PRIOR, np.zeros(D), RESIDUAL)
    found, _ = update(corrections, new, np.zeros(D), RESIDUAL)
    assert kept[2] < 0.9
    assert found[2] == pytest.approx(1.0, abs=0.02)
    assert_allclose(new[:2, :2], PRIOR[:2, :2], rtol=0.3, atol=0.003)


@pytest.mark.parametrize(("way", "holds"), [(0.5, True), (1.6, False)])
def test_a_prior_does_not_yield_to_a_line_that_moves_more_than_the_response_varies(way, holds):
    """Along the third column, of mean square 0.5, the line moves by 0.7 of `way`; sds are 1."""
    corrections = pool(GRAM @ np.array([0.0, 0.0, way, 0.0]))
    new = yielded(corrections, PRIOR, np.zeros(D), RESIDUAL, Reach(response=1.0, intercept=True))
    assert np.array_equal(new, PRIOR) is not holds


def test_a_mean_may_move_further_than_the_response_varies():
    """Places may have missed it by far; without an intercept there is none."""
    corrections = pool(GRAM @ np.array([3.0, 0.0, 0.0, 0.0]))
    reaches = [Reach(response=1.0, intercept=intercept) for intercept in (True, False)]
    first, second = (yielded(corrections, PRIOR, np.zeros(D), RESIDUAL, each) for each in reaches)
    assert first[0, 0] > 10 * PRIOR[0, 0]
    assert np.array_equal(second, PRIOR)


def test_all_holders_speak_together():
    """Two holders of half the rows, with as much noise together, say what one of all does."""
    whole = pool(GRAM @ np.array([0.1, -0.05, 1.0, 0.02]))
    sds = {name: getattr(whole, name) / math.sqrt(2) for name in NOISE}
    half = replace(whole.of_rows(ROWS / 2), **sds)
    of_both = yielded(together([half, half]), PRIOR, np.zeros(D), RESIDUAL, FAR)
    of_one = yielded(whole, PRIOR, np.zeros(D), RESIDUAL, FAR)
    assert_allclose(of_both, of_one, rtol=1e-6, atol=1e-9)


# Two columns that are nearly one, and whose slopes cancel: the first answer, to which they look as
# one, sees none of the difference of 5.


def alike(rng):
    x = rng.uniform(-1, 1, 5500)
    other = np.clip(x + 0.05 * rng.normal(size=5500), -1, 1)
    rest = rng.uniform(-1, 1, (5500, 3))
    y = 2.5 * (x - other) + 0.25 * rng.normal(size=5500)
    return np.column_stack([x, other, rest, y.clip(-1, 1)])


def conversations():
    study = Study.from_document(
        {
            "name": "alike",
            "epsilon": 1.0,
            "delta": 1e-6,
            "response": {"name": "y", "range": [-1.0, 1.0]},
            "features": [{"name": f"x{k}", "range": [-1.0, 1.0]} for k in range(5)],
            "planned_rows": [5500],
        }
    )
    table = alike(np.random.default_rng(3))
    return [simulate(study, table, np.random.default_rng(run), holder="h") for run in range(3)]


def test_columns_that_hardly_differ_are_told_apart_where_corrections_tell_them(monkeypatch):
    """A first answer that never yields leaves the difference off by 4.5, one that does by 0.5.

    And by 2 if the first pass had the prior itself: of three runs one falls back to it.
    """
    releases = conversations()

    def off():
        slopes = [fit(collect([each], allow_simulated=True)).mean() for each in releases]
        return float(np.mean([abs(slope[1] - slope[2] - 5.0) for slope in slopes]))

    yields = off()
    monkeypatch.setattr(conflict, "CONTRADICTED", np.inf)
    assert yields < 0.25 * off()


def test_questions_follow_corrections_too(monkeypatch):
    """The offset of the last is off by 0.8; where no answer yields, by 4.2."""

    def off():
        starts = [each.answers[-1].question.start for each in conversations()]
        return float(np.mean([abs(start[1] - start[2] - 5.0) for start in starts]))

    yields = off()
    monkeypatch.setattr(conflict, "CONTRADICTED", np.inf)
    assert yields < 0.5 * off()
