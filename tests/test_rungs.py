"""Plans that are monotone in ε, in rows and in holders, whatever is found at a rung.

Covers `tacit.rungs`, `tacit.plan`.
"""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tacit
from tacit.imagined import Guess
from tacit.plan import forecast
from tacit.privacy.gaussian import mu_of
from tacit.rungs import LANE, TOP, Rungs, Size

ROUNDING = 1e-9
SPOKEN = Guess(fill=0.55)


def study_of(features: int = 3, **fields: object) -> tacit.Study:
    columns = [{"name": f"x{k}", "range": [-1, 1]} for k in range(features)]
    document = {
        "name": "rungs",
        "epsilon": 1.0,
        "delta": 1e-6,
        "response": {"name": "y", "range": [0, 30]},
        "features": columns,
    }
    return tacit.Study.from_document(document | fields)


class Invented:
    """Any widths at rungs, and one that never falls, so that all rungs are looked at."""

    def __init__(self, few: list[float], many: list[float]) -> None:
        self.widths = (few, many)
        self.looked = 0

    def __call__(self, rows: int, epsilon: float) -> np.ndarray:
        rung = round(3 * np.log10(rows * mu_of(epsilon, 1e-6)))
        lane = int(rows != round(10 ** (rung / 3) / mu_of(1.0, 1e-6)))
        self.looked += 1
        return np.array([self.widths[lane][rung], 1.0])


ANY = st.lists(st.floats(0.01, 10.0), min_size=12, max_size=12)
SIZE = st.tuples(st.floats(1.0, 40.0), st.floats(10.0, 1e3), st.floats(1, 4), st.floats(1, 4))


@given(ANY, ANY, SIZE)
@settings(max_examples=60)
def test_widths_fall_with_rows_and_weight_whatever_the_rungs_are(few, many, size):
    """Each by itself and both together, of plans that know nothing of each other."""
    share, weight, more_rows, more_weight = size
    rows = share * weight
    nothing = np.zeros(2)
    few, many = (each + [1e-9] * (TOP + 1 - len(each)) for each in (few, many))

    def width(rows: float, weight: float) -> float:
        return Rungs(Invented(few, many), 1.0, 1e-6).widths(Size(rows, weight), nothing)[0]

    least = width(rows, weight)
    for larger in (
        width(rows * more_rows, weight),
        width(rows, weight * more_weight),
        width(rows * more_rows, weight * more_weight),
    ):
        assert larger <= least * (1 + ROUNDING)


def test_widths_of_one_holder_at_the_studys_budget_are_those_of_its_rung():
    """What is found there is told as it is, where it falls from rung to rung."""
    falling = [10 * 0.5**k for k in range(TOP + 1)]
    rungs = Rungs(Invented(falling, [0.8 * width for width in falling]), 1.0, 1e-6)
    rows, _ = rungs.node(9)
    found = rungs.widths(Size(rows, 10**3.0 * (1 + 1e-12)), np.zeros(2))
    assert found[0] == pytest.approx(falling[9], rel=1e-6)
    [many, _] = rungs.widths(Size(LANE * rows, 10**3.0 * (1 + 1e-12)), np.zeros(2))
    assert many == pytest.approx(0.8 * falling[9], rel=1e-6)


def test_no_more_is_looked_at_than_is_needed():
    """Where all widths fall, two rungs from two sides and one look above; more where one rises."""
    falling = Invented([10 * 0.5**k for k in range(TOP + 1)], [9 * 0.5**k for k in range(TOP + 1)])

    def look(rows: int, epsilon: float) -> np.ndarray:
        return falling(rows, epsilon)[:1]

    Rungs(look, 1.0, 1e-6).widths(Size(1500.0, 300.0), np.zeros(1))
    assert falling.looked <= 6
    falling.looked = 0
    Rungs(look, 1.0, 1e-6).widths(Size(1500.0, 300.0), np.full(1, 100.0))
    assert falling.looked == 4


ROWS = st.lists(st.integers(40, 8000), min_size=1, max_size=4)
MORE = st.tuples(st.integers(0, 3), st.integers(1, 8000), st.integers(1, 8000))
BUDGETS = st.tuples(st.floats(0.05, 20.0), st.floats(1.0, 4.0))


def more_is_never_wider(study, rows, more, budgets):
    """One holder's rows, a further holder and ε grow, each by itself."""
    place, added, further = more
    epsilon, factor = budgets
    larger = [n + added * (j == place % len(rows)) for j, n in enumerate(rows)]
    [plan] = forecast(study, rows, [epsilon], SPOKEN)
    for rows_then, epsilon_then in (
        (larger, epsilon),
        ([*rows, further], epsilon),
        (rows, factor * epsilon),
    ):
        [then] = forecast(study, rows_then, [epsilon_then], SPOKEN)
        assert np.all(then.widths <= plan.widths * (1 + ROUNDING)), (rows_then, epsilon_then)
        assert np.all(then.scaled_widths <= plan.scaled_widths * (1 + ROUNDING))


@given(ROWS, MORE, BUDGETS, st.integers(1, 13), st.sampled_from(["follows", "is fixed"]))
@settings(max_examples=12)
@example([500], (0, 1, 40), (1.0, 1.78), 13, "follows")
def test_more_rows_holders_or_budget_never_make_a_wider_plan(rows, more, budgets, columns, form):
    """In one visit, with a form that follows the rows and with one that does not."""
    fields = {"planned_rows": rows, "visits": 1} if form == "follows" else {}
    more_is_never_wider(study_of(columns, **fields), rows, more, budgets)


@given(ROWS, MORE, BUDGETS, st.integers(1, 13), st.sampled_from([2, 4, 10]))
@settings(max_examples=2)
@example([506], (0, 120, 40), (1.0, 1.78), 13, 10)
def test_nor_where_visits_are_several(rows, more, budgets, columns, visits):
    fields = {"planned_rows": rows, "visits": visits}
    more_is_never_wider(study_of(columns, **fields), rows, more, budgets)
