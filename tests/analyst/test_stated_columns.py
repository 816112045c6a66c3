"""Visits of studies that state where columns typically lie, and of lines that leave little.

Covers `tacit.visits.reach`, `tacit.visits.estimate`.
"""

import numpy as np
import pytest

from tacit.analyst.collection import collect
from tacit.analyst.fit import fit
from tacit.simulation import simulate_visits
from tacit.study import Study
from tacit.visits import estimate, reach
from tacit.visits.estimate import LEAST_RESIDUAL, LEAST_WHOLE, least_residual
from tacit.visits.reach import MOST_STATED, row_reach

ROWS = 20_000
SLOPES = np.array([1.0, -0.5, 0.3])
REACH = 4.5
"""Public range of a column, in its standard deviations."""


def study_of(*, stated: int, rows: int = ROWS, holders: int = 3) -> Study:
    """Three columns, of which so many have a typical interval stated."""
    typical = [-np.sqrt(3), np.sqrt(3)]
    features = [
        {"name": f"x{k}", "range": [-REACH, REACH]} | ({"typical": typical} if k < stated else {})
        for k in range(3)
    ]
    return Study.from_document(
        {
            "name": "stated",
            "epsilon": 2.0,
            "delta": 1e-5,
            "intercept": False,
            "planned_rows": [rows] * holders,
            "response": {"name": "y", "range": [-5.0, 5.0]},
            "features": features,
        }
    )


def test_rows_are_kept_to_three_usual_lengths_where_all_columns_are_stated():
    assert row_reach(study_of(stated=3)) == MOST_STATED
    assert row_reach(study_of(stated=2)) == row_reach(study_of(stated=0)) > 4
    assert row_reach(study_of(stated=3, rows=100)) == row_reach(study_of(stated=0, rows=100))


def error_along(seed: int) -> float:
    """Of the slopes' mean along the axis of two columns that hardly differ."""
    rng = np.random.default_rng(seed)
    study = study_of(stated=3)
    x = rng.standard_normal((3 * ROWS, 3))
    x[:, 1] = np.sqrt(1 - 0.1**2) * x[:, 0] + 0.1 * x[:, 1]
    y = x @ SLOPES + 0.3 * rng.standard_normal(len(x))
    parts = np.array_split(np.column_stack([x, y]), 3)
    posterior = fit(collect(simulate_visits(study, parts, rng), allow_simulated=True))
    away = posterior.mean()[-3:] - SLOPES
    return float(away[0] - away[1]) / np.sqrt(2)


def test_columns_that_hardly_differ_are_told_apart(monkeypatch):
    """Seeded; without the limit the same noise makes the errors three times as large and more."""
    short = [error_along(seed) for seed in range(4)]
    monkeypatch.setattr(reach, "MOST_STATED", reach.RADII[1])
    long = [error_along(seed) for seed in range(4)]
    assert np.mean(np.square(short)) < np.mean(np.square(long)) / 3


@pytest.mark.parametrize(("bound", "least"), [(4.0, LEAST_WHOLE), (1.0, LEAST_RESIDUAL)])
def test_residuals_that_are_whole_tell_a_small_sd(bound, least):
    assert least_residual(1.0, bound) == least


def last_bound() -> float:
    """Of residuals, in the last question about a line that leaves a fiftieth of the response."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal((3 * ROWS, 3))
    y = x @ SLOPES + 0.02 * rng.standard_normal(len(x))
    parts = np.array_split(np.column_stack([x, y]), 3)
    release = simulate_visits(study_of(stated=3), parts, rng)[0]
    return release.answers[-1].question.bound


def test_a_line_that_leaves_little_is_asked_with_a_small_bound(monkeypatch):
    """Seeded; bounds of residuals that are whole may be a sixth of what those of cut ones are."""
    small = last_bound()
    monkeypatch.setattr(estimate, "LEAST_WHOLE", LEAST_RESIDUAL)
    assert small < last_bound() / 3
