"""How large slopes are told to be: by all visits together, where columns lie apart.

Covers `tacit.analyst.sizes`.
"""

import numpy as np
import pytest

from tacit import Study, fit
from tacit.analyst import visited
from tacit.analyst.collection import collect
from tacit.analyst.sizes import DOUBT, LARGER, LOGS, Sizes, factor_weights, sizes_of
from tacit.simulation import simulate_visits
from tacit.visits.opening import first_opening, opening_of, step_of

ROWS = 20_000


def study_of(columns, epsilon):
    return Study.from_document(
        {
            "name": "sizes",
            "epsilon": epsilon,
            "delta": 1e-6,
            "planned_rows": [ROWS],
            "visits": 4,
            "features": [{"name": f"x{k}", "range": [-1, 1]} for k in range(columns)],
            "response": {"name": "y", "range": [-1, 1]},
        }
    )


def talked(common, *, columns=8, epsilon=0.2, slope=0.01, seed=5):
    """Four visits' release of columns that have `common` of their variance in common."""
    agreed = study_of(columns, epsilon)
    rng = np.random.default_rng(seed)
    own = rng.normal(size=(ROWS, columns))
    x = 0.3 * (np.sqrt(common) * rng.normal(size=(ROWS, 1)) + np.sqrt(1 - common) * own)
    x = x.clip(-1, 1)
    y = slope * x.sum(axis=1) + 0.25 * rng.normal(size=ROWS)
    table = np.column_stack([x, y]).clip(-1, 1)
    return agreed, list(simulate_visits(agreed, [table], rng))


def openings(agreed, releases):
    opening, before = opening_of(agreed, releases, len(releases[0].answers) - 1)
    assert before == 0
    return first_opening(agreed, releases), opening, [releases[0].answers]


def told(agreed, releases):
    """What the visits tell of slopes' size."""
    first, opening, talks = openings(agreed, releases)
    return sizes_of(first, opening, [talks[0][:1]], talks)


def test_small_slopes_of_columns_that_lie_apart_are_told_to_be_small():
    """Slopes of 0.01 where 0.13 is expected: eight of them, in independent columns."""
    found = told(*talked(0.0))
    assert found.factor < 0.3
    assert found.larger < 0.5
    assert found.flat < 0.05


def test_slopes_of_columns_that_go_together_are_expected_as_ever():
    """What long directions tell says nothing of those that such columns leave flat."""
    found = told(*talked(0.8))
    assert found == pytest.approx(Sizes(), abs=1e-9)


def test_slopes_that_are_larger_than_expected_leave_the_first_answer_as_it_is():
    assert told(*talked(0.0, slope=0.3)).factor == 1


def test_chances_of_the_factor_are_those_of_slopes_with_such_a_prior():
    """By the density of what visits found, were the prior f times as wide, at every f."""
    agreed, releases = talked(0.0, columns=3, slope=0.1)
    first, opening, talks = openings(agreed, releases)
    step = step_of(opening, talks)
    turn = np.linalg.inv(first.question.matrix) @ opening.map
    covariance = (turn @ step.covariance @ turn.T)[1:, 1:]
    way = np.linalg.inv(first.question.matrix) @ (
        step.start + opening.map @ step.theta - first.question.start
    )
    prior = first.answer.prior[1:, 1:]
    noise = np.linalg.inv(np.linalg.inv(covariance) - np.linalg.inv(prior))
    found = noise @ np.linalg.inv(covariance) @ way[1:]  # least squares, of covariance `noise`
    scores = []
    for log in LOGS:
        whole = noise + np.exp(log) * prior
        scores.append(-0.5 * (np.linalg.slogdet(whole)[1] + found @ np.linalg.solve(whole, found)))
    scores = np.array(scores) - 0.5 * (LOGS / DOUBT) ** 2
    weights = np.exp(scores - scores.max())
    assert factor_weights(first, opening, step) == pytest.approx(weights / weights.sum(), abs=1e-6)


def test_nothing_told_leaves_the_allowance_that_tables_ask_for():
    """The mean of f beforehand is about 1 + `LARGER`: 2.7, since no f is beyond e⁴."""
    weights = np.exp(-0.5 * (LOGS / DOUBT) ** 2)
    assert weights @ np.exp(LOGS) / weights.sum() == pytest.approx(1 + LARGER, rel=0.12)


def test_intervals_of_slopes_that_noise_hides_are_as_narrow_as_all_slopes_say(monkeypatch):
    """20 independent columns with slopes of 0.03: intervals hold them, and are narrower.

    160 intervals, in eight studies; 90 % ones of which fewer than 129 hold have 1 chance in 1,000.
    """

    def ends():
        held = width = 0.0
        for seed in range(8):
            _, releases = talked(0.0, columns=20, epsilon=0.05, slope=0.03, seed=seed)
            low, high = fit(collect(releases, allow_simulated=True)).interval(0.9)[1:].T
            held += int(np.sum((low <= 0.03) & (high >= 0.03)))
            width += float(np.mean(high - low))
        return held, width

    held, width = ends()
    assert held >= 129
    monkeypatch.setattr(visited, "sizes_of", lambda *_: Sizes())
    assert width < 0.9 * ends()[1]
