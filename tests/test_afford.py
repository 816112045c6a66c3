"""The row radius that planned rows can afford: least noise and bias together.

Covers `tacit.study.afford`.
"""

import math
from itertools import pairwise

import numpy as np
import pytest

from tacit.holder.statistics import statistics_of
from tacit.rows.table import table_of
from tacit.study import Study
from tacit.study.afford import NOISE_COST, POWERS, TAIL, affordable, tail_power
from tacit.study.form import LARGEST_ENTRY, MOST_ENTRY


def study_of(
    *, epsilon: float = 1.0, reach: float = 1.0, features: int = 4, **fields: object
) -> Study:
    """Features whose range is `reach` times as wide as what is typical."""
    columns = [
        {"name": f"x{k}", "range": [-reach, reach], "typical": [-1.0, 1.0]} for k in range(features)
    ]
    document = {"name": "planned", "epsilon": epsilon, "delta": 1e-6, "features": columns}
    response = {"name": "y", "range": [-1.0, 1.0]}
    return Study.from_document(document | {"response": response} | fields)


@pytest.mark.parametrize("noise", [1e-6, 1e-4, 1e-2, 0.1, 10.0])
@pytest.mark.parametrize("longest", [1.5, 4.0, 100.0])
@pytest.mark.parametrize("power", [0.25, 2.0])
def test_the_square_is_where_noise_and_bias_together_are_least(noise, longest, power):
    s = np.linspace(1, longest, 200_001)
    cost = (NOISE_COST * noise * s) ** 2 + (1 - s / longest) ** TAIL / s**power
    chosen = affordable(noise, longest, power)
    assert chosen == pytest.approx(
        float(s[np.argmin(cost)]), rel=0.11
    )  # or, from 0.95 of it, the longest
    assert chosen == longest or chosen == round(chosen, 3)


def test_little_noise_shrinks_no_row_and_much_noise_leaves_the_usual_one():
    assert affordable(1e-12, 9.0) == 9.0
    assert affordable(10.0, 9.0) == 1.0
    assert affordable(1.0, 0.5) == 0.5  # a study whose longest row is shorter


def test_the_radius_grows_with_rows_and_budget_and_never_passes_the_longest_row():
    by_rows = [study_of(reach=5.0, planned_rows=[n]).row_radius for n in (100, 10**4, 10**6, 10**9)]
    by_epsilon = [
        study_of(reach=5.0, planned_rows=[20_000], epsilon=epsilon).row_radius
        for epsilon in (0.1, 1.0, 10.0, 100.0)
    ]
    for radii in (by_rows, by_epsilon):
        assert all(before <= after for before, after in pairwise(radii))
        assert radii[0] < radii[-1]
    assert by_rows[0] == study_of(reach=5.0).usual_row
    assert by_rows[-1] == study_of(reach=5.0).longest_row


def test_ranges_far_beyond_what_is_typical_promise_long_tails():
    """The longest of N rows is N^(1/a) usual ones, and bias falls like s^(2 − a)."""
    assert tail_power(10**6, 1000.0) == 2.0  # a = 4: Λ = √N
    assert tail_power(10**6, 10**4) == pytest.approx(1.0)  # a = 3
    assert tail_power(100, 1e9) == POWERS[0]
    assert tail_power(100, 1.0) == 2.0
    radii = [study_of(reach=r, planned_rows=[10**5]).row_radius for r in (5.0, 25.0, 100.0)]
    assert all(before <= after for before, after in pairwise(radii))
    assert radii[-1] > 1.2 * radii[1]


def test_noise_of_holders_adds_up_in_squares_and_a_secure_sum_has_one_noise():
    keys = {name: name.upper() * 43 + "=" for name in "abcd"}
    agreed = {"holders": keys, "least": 4, "colluding": 0}
    apart = study_of(reach=5.0, planned_rows=[10_000] * 4)
    assert apart.row_radius == study_of(reach=5.0, planned_rows=[20_000]).row_radius
    summed = study_of(reach=5.0, planned_rows=[10_000] * 4, secure_sum=agreed)
    assert summed.row_radius == study_of(reach=5.0, planned_rows=[40_000]).row_radius


def test_an_explicit_radius_stands():
    study = study_of(planned_rows=[10**6], release={"row_radius": 1.25, "response_bound": 0.5})
    assert (study.row_radius, study.response_bound) == (1.25, 0.5)


def test_without_an_intercept_planned_rows_clip_the_response_less():
    few = study_of(intercept=False, planned_rows=[100])
    assert few.row_radius == study_of(intercept=False).row_radius
    assert few.response_bound == study_of(intercept=False).response_bound
    many = study_of(intercept=False, planned_rows=[10**6])
    assert many.row_radius > few.row_radius
    assert many.response_bound == 1.0


def test_sums_of_very_long_rows_are_exact():
    """Entries up to 32: blocks are smaller, and the sums are those of Python's integers."""
    study = study_of(reach=MOST_ENTRY, features=1, planned_rows=[10**9], epsilon=100.0)
    assert study.largest_entry > LARGEST_ENTRY
    rng = np.random.default_rng(0)
    x = np.where(rng.uniform(size=3000) < 0.9, MOST_ENTRY, rng.uniform(-32, 32, 3000))
    y = rng.uniform(-1, 1, 3000)
    whole = statistics_of(study, table_of({"x0": x, "y": y}, study).batches())
    parts = [
        statistics_of(study, table_of({"x0": x[k : k + 1], "y": y[k : k + 1]}, study).batches())
        for k in range(3000)
    ]
    assert whole.gram.tolist() == sum(parts[1:], parts[0]).gram.tolist()
    assert whole.gram[1, 1] > 2**36 * 2000 * 900


def test_a_range_too_wide_for_exact_sums_bounds_the_radius():
    study = study_of(reach=1000.0, planned_rows=[10**9], epsilon=100.0)
    assert study.row_radius == MOST_ENTRY
    assert math.isclose(study.largest_entry, MOST_ENTRY)
