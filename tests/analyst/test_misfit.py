"""How far the best line may lie from the one that visits tell, by what shrinking took of columns.

Covers `tacit.analyst.misfit`.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from tacit import Study, fit
from tacit.analyst import visited
from tacit.analyst.collection import collect
from tacit.analyst.misfit import (
    LOST,
    LOST_BEYOND,
    Column,
    Told,
    columns_of,
    larger_of,
    lost_square,
    misfit_of,
    pull_of,
    shifts_of,
    taken,
    times_levels,
    unexpected_of,
)
from tacit.analyst.sizes import Sizes
from tacit.release.question import Question
from tacit.simulation import simulate, simulate_visits
from tacit.visits.opening import first_opening

ROWS = 20_000


def study(features, epsilon=3.0, visits=6, **fields):
    return Study.from_document(
        {
            "name": "misfit",
            "epsilon": epsilon,
            "delta": 1e-6,
            "response": {"name": "y", "range": [-3.0, 3.0]},
            "features": features,
            "planned_rows": [ROWS],
            "visits": visits,
        }
        | fields
    )


EVEN = {"name": "even", "range": [-2.0, 2.0]}
LONG = {"name": "long", "range": [-2.0, 2.0]}


def rows(rng):
    """Two columns, of which the second has all its spread in few rows."""
    even = 0.8 * rng.choice([-1.0, 1.0], ROWS)
    long = np.where(rng.random(ROWS) < 0.012, 1.8 * rng.choice([-1.0, 1.0], ROWS), 0.0)
    return np.column_stack([even, long, 0.3 * even + 0.1 * rng.normal(size=ROWS)])


class Asked(NamedTuple):
    """What `misfit_of` was asked, and what it said."""

    places: list
    question: Question
    told: Told
    misfit: np.ndarray


@pytest.fixture
def asked(monkeypatch):
    """What is asked of a misfit where a table's visits are read."""
    calls = []

    def remembered(agreed, places, question, told):
        calls.append(Asked(places, question, told, misfit_of(agreed, places, question, told)))
        return calls[-1].misfit

    monkeypatch.setattr(visited, "misfit_of", remembered)

    def read(agreed, table):
        release = simulate(agreed, table, np.random.default_rng(5), holder="north")
        assert collect([release], allow_simulated=True).evidence.frame is not None
        return calls[-1]

    return read


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_share_that_is_told_well_is_found(share):
    column = Column(place=1, middle=0.0, variance=2.0, error=1e-3, usual=1.0, off=0.2)
    assert np.sqrt(lost_square(column, 2 * (1 - share), 1e-3)) == pytest.approx(share, abs=0.02)


def test_a_share_that_noise_hides_is_what_is_usual():
    """A half Cauchy's mean square, cut at 1: noise is without end, or nobody was asked."""
    scale = 0.1
    mass = scale * np.arctan(1 / scale)
    usual = scale**2 * (1 - mass) / mass
    hidden = Column(place=1, middle=0.0, variance=2.0, error=1e-3, usual=scale, off=0.2)
    assert lost_square(hidden, 0.2, 1e6) == pytest.approx(usual, rel=0.01)
    unasked = Column(place=1, middle=0.0, variance=2.0, error=None, usual=scale, off=0.2)
    assert lost_square(unasked, 0.2, 1e-3) == pytest.approx(usual, rel=0.01)


@pytest.mark.parametrize("bound", [0.5, 1.0, 2.5])
def test_what_a_bound_takes_off_a_normal_residual(bound):
    values = np.linspace(bound, 12, 200_001)
    height = np.exp(-(values**2) / 2) / np.sqrt(2 * np.pi)
    whole = 2 * np.trapezoid((values - bound) ** 2 * height, values)
    assert taken(bound) == pytest.approx(whole, rel=1e-5)


def test_a_slope_is_uncertain_by_what_was_lost_of_its_column(asked):
    """1.2 % of rows, which are shrunk, hold nearly all of a column's spread; places tell so."""
    agreed = study([EVEN, LONG], epsilon=1.0)
    table = rows(np.random.default_rng(0))
    places, question, told, misfit = asked(agreed, table)
    encoded = np.column_stack([np.ones(ROWS), table[:, :2] / 2])
    lengths = np.sum((encoded @ told.map) ** 2, axis=1)
    counts = np.minimum(1.0, question.radius**2 / lengths)
    lost = 1 - np.average(encoded[:, 1:] ** 2, axis=0, weights=counts) * counts.mean() / np.mean(
        encoded[:, 1:] ** 2, axis=0
    )
    assert lost[1] > 0.3
    inverse = np.linalg.inv(told.map)
    shares = []
    for column in columns_of(agreed, places, question, told):
        mapped = inverse[:, column.place] - column.middle * inverse[:, 0]
        noise = told.seen_sd * float(mapped @ mapped)
        shares.append(np.sqrt(lost_square(column, float(mapped @ told.seen @ mapped), noise)))
    np.testing.assert_allclose(shares, lost, atol=0.1)
    spread = np.diag(told.map @ misfit @ told.map.T)
    error = np.diag(told.map @ np.linalg.inv(told.gram) @ told.map.T)
    assert spread[2] > (LOST * 0.2 * told.residual) ** 2 * error[2]
    assert spread[1] / error[1] < 0.2 * spread[2] / error[2]


def test_a_stated_typical_interval_says_which_rows_the_line_is_for(asked):
    """Without places: what is usual of a column, and nothing where its typical interval is told."""
    stated = {"name": "stated", "range": [-10.0, 10.0], "typical": [-0.35, 0.35]}
    agreed = study([stated, {"name": "group", "levels": ["a", "b", "c"]}, EVEN], visits=2)
    rng = np.random.default_rng(1)
    table = {
        "stated": 0.2 * rng.normal(size=ROWS),
        "group": rng.choice(["a", "b", "c"], ROWS),
        "even": 0.2 * rng.normal(size=ROWS),
        "y": 0.1 * rng.normal(size=ROWS),
    }
    places, question, told, _ = asked(agreed, table)
    assert not places
    [even] = columns_of(agreed, places, question, told)
    assert even.place == 4
    assert even.error is None


def test_a_range_that_reaches_far_beyond_the_radius_leaves_more_in_doubt(asked):
    """A tenth of the range within the radius: before anything is told, ℓ is usually 0.3·0.9²."""
    agreed = study([EVEN, LONG], epsilon=1.0)
    places, question, told, _ = asked(agreed, rows(np.random.default_rng(0)))
    near, _ = columns_of(agreed, places, question, replace(told, reach=100.0))
    assert near.usual < 0.05
    length = (1 + abs(near.middle)) * np.linalg.norm(told.map[1])
    short = question.model_copy(update={"radius": 0.1 * length})
    far, _ = columns_of(agreed, places, short, replace(told, reach=100.0))
    assert far.usual == pytest.approx(0.3 * 0.9**2, rel=0.02)
    assert near.off == pytest.approx(LOST, abs=0.1)
    assert far.off == pytest.approx(LOST + LOST_BEYOND * 0.9, rel=0.02)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_misfit_is_a_covariance_in_proportion_to_the_residuals(asked, intercept):
    agreed = study([EVEN, LONG], intercept=intercept)
    places, question, told, misfit = asked(agreed, rows(np.random.default_rng(2)))
    assert np.all(np.linalg.eigvalsh(misfit) > 0)
    wider = question.model_copy(update={"bound": 2 * question.bound})
    doubled = misfit_of(agreed, places, wider, replace(told, residual=2 * told.residual))
    np.testing.assert_allclose(doubled, 4 * misfit, rtol=1e-9)


@pytest.mark.parametrize(("count", "most"), [(500, 4.0), (10_000, 0.4)])
def test_where_residuals_are_cut_rows_count_anew(asked, count, most):
    """At a bound of one sd all of the raise is there; at two a twenty-seventh of it.

    It falls from 1,000 rows on, of which r'r tells whether they have tails.
    """
    agreed = study([EVEN, LONG])
    places, question, told, _ = asked(agreed, rows(np.random.default_rng(2)))
    told = replace(told, rows=count)
    cut, less, whole = (
        misfit_of(agreed, places, question.model_copy(update={"bound": bound}), told)
        for bound in (told.residual, 2 * told.residual, 100 * told.residual)
    )
    error = told.map @ np.linalg.inv(told.gram) @ told.map.T * told.residual**2 / told.rows
    for misfit, raised in ((cut, 1.0), (less, (taken(2.0) / 0.06) ** 2)):
        added = told.map @ (misfit - whole) @ told.map.T
        np.testing.assert_allclose(added, most * raised * error, rtol=0.01, atol=1e-9)


def test_what_a_tail_loses_to_the_bound_may_move_every_coefficient(asked):
    """By 0.7 of it, over σ and the error from one row, and however many rows there are."""
    agreed = study([EVEN, LONG])
    places, question, told, _ = asked(agreed, rows(np.random.default_rng(2)))
    for count in (told.rows, 100 * told.rows):
        tailed, normal = (
            misfit_of(agreed, places, question, replace(told, rows=count, excess=excess))
            for excess in (0.04, 0.0)
        )
        error = np.linalg.inv(told.gram) * told.residual**2
        np.testing.assert_allclose(tailed - normal, (0.7 * 0.2) ** 2 * error, rtol=0.01, atol=1e-9)


def test_uneven_residuals_raise_the_error_of_rows_by_a_seventh(asked):
    agreed = study([EVEN, LONG])
    places, question, told, misfit = asked(agreed, rows(np.random.default_rng(2)))
    more = misfit_of(agreed, places, question, replace(told, rows=2 * told.rows))
    error = told.residual**2 / told.rows * np.linalg.inv(told.gram)
    np.testing.assert_allclose(misfit - more, 0.15 * error / 2, rtol=0.01, atol=1e-9)


def test_a_number_times_levels_lies_far_out_where_the_number_does(asked):
    """The product has no place of its own: without its number's share it would be in much doubt."""
    stated = {"name": "stated", "range": [-10.0, 10.0], "typical": [-0.35, 0.35]}
    group = {"name": "group", "levels": ["a", "b", "c"]}
    terms = [["group", "stated"], ["stated"], ["group", "even"], ["even"], ["even", "stated"]]
    agreed = study(
        [stated, group, EVEN], visits=2, terms=[{"product": product} for product in terms]
    )
    rng = np.random.default_rng(1)
    table = {
        "stated": 0.2 * rng.normal(size=ROWS),
        "group": rng.choice(["a", "b", "c"], ROWS),
        "even": 0.2 * rng.normal(size=ROWS),
        "y": 0.1 * rng.normal(size=ROWS),
    }
    places, question, told, _ = asked(agreed, table)
    assert times_levels(agreed) == {1: 3, 2: 3, 4: 6, 5: 6}
    shifts = shifts_of(agreed, places, question, told)
    assert set(shifts) == {4, 5, 6, 7}  # but those of the stated one
    assert shifts[4] == shifts[5] == shifts[6] != shifts[7]


def test_a_number_times_levels_alone_is_a_column_like_any_other():
    product = {"product": ["group", "even"]}
    group = {"name": "group", "levels": ["a", "b"]}
    assert times_levels(study([EVEN, group], terms=[product])) == {}


def test_noise_in_the_gram_does_not_blow_up_what_is_said_of_a_slope(asked):
    """A direction that noise makes look a thousand times flatter, which would be as much wider."""
    agreed = study([EVEN, LONG], epsilon=1.0)
    places, question, told, _ = asked(agreed, rows(np.random.default_rng(0)))
    flat = replace(told, gram=np.diag([1.0, 1.0, 1e-6]), seen_sd=0.1)
    flatter = replace(flat, gram=np.diag([1.0, 1.0, 1e-9]))
    widest = [misfit_of(agreed, places, question, each).max() for each in (flat, flatter)]
    assert widest[1] < 10 * widest[0]


def test_the_first_answer_pulls_along_axes_that_it_took_for_longer_than_they_are():
    """It expected a variance of 1 where rows have 1/4: slopes have four times the variance."""
    first = np.diag([0.5, 2.0, 2.0])
    unexpected = unexpected_of(first, np.eye(3), np.diag([1.0, 1.0, 1 / 4]))
    assert unexpected == pytest.approx(np.diag([0.0, 0.0, 3 * 2.0]), abs=1e-12)
    assert unexpected_of(first, np.eye(3), np.eye(3)) == pytest.approx(0.0, abs=1e-12)
    pull = pull_of(first, first, unexpected)  # corrections told nothing
    assert pull == pytest.approx(unexpected, abs=1e-12)
    halved = pull_of(first / 2, first, unexpected)  # they told as much as it did
    assert halved == pytest.approx(pull / 4, abs=1e-12)
    many = pull_of(np.array([first, first / 2]), first, unexpected)
    assert many == pytest.approx(np.array([pull, halved]), abs=1e-12)
    assert pull_of(9 * first, first, unexpected) == pytest.approx(pull, abs=1e-12)


@pytest.mark.parametrize(("count", "least", "most"), [(20, 1.8, 2.01), (200_000, 0.0, 0.02)])
def test_slopes_may_be_larger_than_expected_where_noise_hides_them(count, least, most):
    """By twice the variance that was expected of them, and by nothing where rows tell them."""
    agreed = study(
        [{"name": name, "range": [-1, 1]} for name in ("a", "b")],
        planned_rows=[count],
        epsilon=1.0,
        response={"name": "y", "range": [-1, 1]},
    )
    rng = np.random.default_rng(8)
    table = {name: rng.uniform(-1, 1, count) for name in ("a", "b")}
    table["y"] = 0.2 * table["a"] + 0.2 * rng.normal(size=count)
    release = simulate(agreed, table, rng, holder="h")
    first = first_opening(agreed, [release])
    turn = first.stretch.map
    larger = turn @ larger_of(first, 2.0) @ turn.T
    share = np.diag(larger)[1:] / np.diag(first.answer.prior)[1:]
    assert np.all((share >= least) & (share <= most))
    assert larger[0, 0] <= 0.02 * first.answer.prior[0, 0]


def test_slopes_of_columns_that_go_together_are_held_where_noise_hides_them(monkeypatch):
    """Six columns of correlation 0.8, slopes of ±0.5 where 0.17 is expected, four holders of 60.

    Of 48 intervals of 90 % 41 hold them; without what larger slopes add, 28.
    """
    agreed = study(
        [{"name": f"x{k}", "range": [-1, 1]} for k in range(6)],
        planned_rows=[60] * 4,
        epsilon=1.0,
        visits=4,
        response={"name": "y", "range": [-1, 1]},
    )
    rng = np.random.default_rng(3)
    common = rng.normal(size=(240, 1))
    x = 0.3 * (np.sqrt(0.8) * common + np.sqrt(0.2) * rng.normal(size=(240, 6)))
    slopes = np.array([-0.5, 0.5] * 3)
    y = x.clip(-1, 1) @ slopes + 0.1 * rng.normal(size=240)
    parts = np.array_split(np.column_stack([x, y]).clip(-1, 1), 4)
    talks = [simulate_visits(agreed, parts, np.random.default_rng(run)) for run in range(8)]

    def held():
        ends = [fit(collect(each, allow_simulated=True)).interval(0.9)[1:].T for each in talks]
        return sum(int(np.sum((low <= slopes) & (slopes <= high))) for low, high in ends)

    assert held() >= 38
    monkeypatch.setattr(visited, "sizes_of", lambda *_: Sizes(larger=0.0))
    assert held() < 34
