"""Pools: several visits to the same mapped rows are joined to one, at the last offset.

Covers `tacit.visits.pool` and `tacit.visits.joined`, and how `tacit.analyst.visited` and
`tacit.analyst.families.visited` read rows that are shrunk beside residuals that are not.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from tacit import Study
from tacit.analyst.collection import collect
from tacit.analyst.fit import fit, refit
from tacit.simulation import simulate
from tacit.visits.joined import Joined, Shape, joined, shape_of
from tacit.visits.known import Known
from tacit.visits.opening import first_opening
from tacit.visits.pool import Pool

Array = NDArray[np.float64]

ROWS = 200_000
D = 4
SD = 0.3
BOUND = 0.35
QUIET = 1e-6
MANY = 60_000
SLOPES = np.array([2.2, -1.8, 1.5, -1.2])


def _rows(rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows with an intercept, and what shrinking at their usual length leaves of each."""
    rows = np.column_stack([np.ones(ROWS), rng.standard_t(8, (ROWS, D - 1)) / np.sqrt(8 / 6)])
    return rows, np.minimum(1.0, np.sqrt(D) / np.linalg.norm(rows, axis=1))


def _pool(rows: Array, shrunk: Array, residuals: Array) -> Pool:
    """What a visit tells, next to no noise on it."""
    short = rows * shrunk[:, None]
    cut = np.clip(residuals, -BOUND, BOUND)
    return Pool(
        rows=float(ROWS),
        gram=short.T @ short,
        moment=short.T @ cut,
        square=float(cut @ cut),
        gram_sd=QUIET,
        moment_sd=QUIET,
        square_sd=QUIET,
        bound=BOUND,
    )


def _joined(offset: Array) -> tuple[Shape, Joined, Pool]:
    """Two visits, the first of which is so far off; residuals of the last are centred."""
    rng = np.random.default_rng(11)
    rows, shrunk = _rows(rng)
    residuals = rng.normal(0, SD, ROWS)
    pools = [_pool(rows, shrunk, residuals + rows @ offset), _pool(rows, shrunk, residuals)]
    apart = [offset, np.zeros(D)]
    known = Known(gram=np.eye(D), variance=np.full((D, D), 0.1), axes=np.eye(D))
    shape = shape_of(pools, apart, known, residual=SD, intercept=True)
    return shape, joined(pools, apart, shape), pools[0]


def test_a_visit_that_was_off_tells_what_the_last_one_does() -> None:
    """Moved to the last offset, X'r of the first visit is next to nothing, as the last one's is.

    With κ in the place of κ/level a tenth of what the offset made is left (seen to fail).
    """
    offset = np.array([0.0, 0.03, -0.02, 0.02])
    shape, both, far = _joined(offset)
    moved = far.moment - both.rates[0] * ROWS * shape.gram @ offset
    left = np.linalg.norm(moved[1:]) / np.linalg.norm(far.moment[1:])
    assert left < 0.06


def test_residuals_are_told_as_rows_have_them() -> None:
    """σ is that of rows as they are, whatever shrinking left of these, and so is the level."""
    shape, both, _ = _joined(np.zeros(D))
    assert shape.level < 0.9
    assert shape.residual == pytest.approx(SD, rel=0.01)
    assert both.whole * both.pool.square / ROWS == pytest.approx(SD**2, rel=0.02)


def _planned_few(low: float, high: float) -> Study:
    """A study for 400 rows, whose bounds are those of few: many rows are then shrunk and cut."""
    return Study.from_document(
        {
            "name": "many rows where few were planned",
            "epsilon": 1.0,
            "delta": 1e-6,
            "response": {"name": "y", "range": [low, high]},
            "features": [{"name": f"x{k}", "range": [-1.0, 1.0]} for k in range(4)],
            "planned_rows": [400],
            "visits": 10,
        }
    )


def test_slopes_and_residuals_are_right_where_many_rows_are_shrunk() -> None:
    """A straight line of 60,000 rows, of which a third is shrunk: noise is next to nothing.

    Slopes are within 3 % of the truth, the residual sd within 2 %, in one draw of fixed seed; those
    of the first answer within 8 % (17 % where it is read by X'X of shrunk rows), the residual sd
    without a feature within 6 % (8 % where what that explained is).
    """
    rng = np.random.default_rng(5)
    x = np.clip(rng.standard_t(8, (MANY, 4)) / 5, -1, 1)
    table = np.column_stack([x, x @ SLOPES + rng.normal(0, 0.6, MANY)])
    study = _planned_few(-6.0, 6.0)
    release = simulate(study, table, rng, holder="north")
    posterior = fit(collect([release], allow_simulated=True))
    assert_allclose(posterior.mean()[1:], SLOPES, rtol=0.03)
    assert 6 * np.sqrt(posterior.outcome.residual_variance()) == pytest.approx(0.6, rel=0.02)
    assert_allclose(6 * first_opening(study, [release]).theta[1:], SLOPES, rtol=0.08)
    fewer = refit(posterior, without="x0")
    left = float(np.hypot(0.6, SLOPES[0] * x[:, 0].std()))
    assert 6 * np.sqrt(fewer.outcome.residual_variance()) == pytest.approx(left, rel=0.06)


def test_log_odds_are_right_where_many_rows_are_shrunk() -> None:
    """The same of 0/1 answers: slopes are right on average within 2 %.

    What a bound leaves of an answer stands beside αu, not α²u: without that they are 4 % short.
    """
    rng = np.random.default_rng(5)
    x = np.clip(rng.normal(0, 0.25, (MANY, 4)), -1, 1)
    answers = rng.random(MANY) < 1 / (1 + np.exp(-x @ SLOPES))
    release = simulate(_planned_few(0.0, 1.0), np.column_stack([x, answers]), rng, holder="north")
    posterior = fit(collect([release], allow_simulated=True), family="logistic")
    told = posterior.mean()[1:]
    assert float(told @ SLOPES / (SLOPES @ SLOPES)) == pytest.approx(1.0, abs=0.02)
