"""Derived columns: no row leaves its limits, and no exchange moves the statistics further than the
study says.

Covers `tacit.rows.design` with terms, through `tacit.holder.encode`.
"""

import math

import numpy as np
import pyarrow as pa
import pytest
from neighbours import worst_pair
from studies import agreed

from tacit.holder.encode import Encoder
from tacit.rows.design import Design
from tacit.study.grid import GRID

RELATIONS = ["replace-one", "add-remove"]
TYPICAL = [None, 0.9, 0.35]
"""Share of the range that is typical."""


def study_of(features, **fields):
    usual = {"delta": 1e-5, "response": {"name": "y", "range": [0.0, 1.0]}}
    return agreed(features, **usual | fields)


def derived_study(seed, **release):
    """Three numeric features and two categorical ones in products, polynomials and functions,
    centred or not.
    """
    rng = np.random.default_rng(seed)
    share = TYPICAL[seed % 3]
    columns = []
    for k, low in enumerate((1e-3, 5.0, 1200.0)):
        high = low + 10.0 ** rng.integers(0, 4)
        columns.append({"name": f"x{k}", "range": [low, high]})
        if share is not None:
            start = rng.uniform(0, 1 - share)
            columns[-1]["typical"] = [
                low + start * (high - low),
                low + (start + share) * (high - low),
            ]
    columns += [
        {"name": f"c{k}", "levels": [f"level {level}" for level in range(2 + k)]} for k in range(2)
    ]
    every = [
        ["x0"],
        ["x1", "c0"],
        [{"of": "x0", "degree": 2}],
        [{"of": "x1", "function": "log"}],
        ["x0", "x1"],
    ]
    every += [
        [{"of": "x2", "degree": 3, "centred": False}],
        [{"of": "c1", "every_level": True}],
        ["c0", "c1"],
        ["x1", {"of": "x1", "degree": 2}],
    ]
    every += [[{"of": "x2", "function": "sqrt", "degree": 4}, "c0"]]
    return study_of(
        columns,
        relation=RELATIONS[seed % 2],
        intercept=bool(seed // 2 % 2),
        missing=["drop", "impute"][seed % 2],
        response={"name": "y", "range": [0.5, 30.0]}
        | ({"function": "log"} if seed % 3 == 0 else {})
        | {"centred": seed % 4 > 0},
        terms=[{"product": product} for product in every],
        release=release,
    )


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("radius", [None, 1.0, 4.0])
def test_no_exchange_moves_a_study_with_derived_columns_further_than_it_says(seed, radius):
    study = derived_study(seed, **({} if radius is None else {"row_radius": radius}))
    pair = worst_pair(study, np.random.default_rng(seed), rounds=15, width=80)
    share = pair.change(study) / study.form.sensitivity
    assert 0.4 < share <= 1  # rows on curves do not fill the ball, so the bound has slack


def test_polynomials_alone_come_close_to_the_bound():
    """1, x and P_2(x) on the unit sphere: the search must find almost all of the bound, or it would
    show nothing.
    """
    columns = [{"name": "x", "range": [-1.0, 1.0]}, {"name": "z", "range": [-1.0, 1.0]}]
    terms = [
        {"product": product} for product in (["x"], [{"of": "x", "degree": 2}], ["z"], ["x", "z"])
    ]
    study = study_of(
        columns, terms=terms, intercept=False, release={"row_radius": 0.5, "response_bound": 1.0}
    )
    share = (
        worst_pair(study, np.random.default_rng(0), rounds=25).change(study)
        / study.form.sensitivity
    )
    assert 0.95 < share <= 1


@pytest.mark.parametrize("seed", range(12))
def test_derived_columns_stay_within_their_limits_for_any_value(seed):
    """Before shrinking each column, and after it each row, in whole numbers; values far outside
    every range included.
    """
    study = derived_study(seed, row_radius=4.0)
    rng = np.random.default_rng(seed)
    edges = [
        end
        for feature in study.features
        if feature.range
        for end in (*feature.range, *(feature.typical or ()))
    ]
    extremes = [
        *edges,
        *np.nextafter(edges, np.inf),
        *np.nextafter(edges, -np.inf),
        0.0,
        -1e300,
        1e300,
        np.inf,
        -np.inf,
        1e-300,
    ]
    count = 5000
    columns = {
        feature.name: rng.choice(extremes, count) for feature in study.features if feature.range
    }
    columns |= {
        feature.name: rng.choice(feature.all_levels, count)
        for feature in study.features
        if feature.range is None
    }
    batch = pa.record_batch(columns | {"y": rng.choice(extremes, count)})
    [block] = Design(study, response=True, unit=GRID).blocks(batch, count)
    row = int(study.intercept)
    for product in study.products:
        rounded = np.rint(block[row : row + product.width])
        assert np.sqrt((rounded**2).sum(axis=0)).max() <= product.longest * GRID
        assert np.count_nonzero(rounded, axis=0).max() <= 1
        row += product.width
    low, high = study.response.limits
    assert low * GRID <= block[-1].min() <= block[-1].max() <= high * GRID
    encoded = np.hstack(list(Encoder(study).blocks(batch)))
    assert (encoded[:-1] ** 2).sum(axis=0).max() <= (study.row_radius * GRID) ** 2
    assert np.abs(encoded).max() <= 4 * GRID


@pytest.mark.parametrize("share", np.linspace(0.3, 0.99, 40))
def test_rows_that_no_radius_shrinks_stay_within_the_longest_row_after_rounding(share):
    """Where the range is wider than what is typical, a limit is no multiple of the grid's step, and
    rounding may pass it.
    """
    column = {"name": "x", "range": [0.0, 10.0], "typical": [0.0, 10.0 * share]}
    for terms in ([], [{"product": ["x"]}, {"product": [{"of": "x", "degree": 2}]}]):
        if study_of([column], terms=terms, intercept=False).longest_row > 4:
            continue
        study = study_of([column], terms=terms, intercept=False, release={"row_radius": 5.0})
        assert study.row_radius == study.longest_row
        [block] = Encoder(study).blocks(pa.record_batch({"x": [10.0], "y": [1.0]}))
        assert math.fsum(block[:-1, 0] ** 2) <= (study.longest_row * GRID) ** 2
