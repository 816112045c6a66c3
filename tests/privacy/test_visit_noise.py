"""Several visits: their shares of the budget, and how far a row can move what a visit publishes,
whatever its question; attacked by an optimiser through the real encoder.

Covers `tacit.privacy.visits`, `tacit.privacy.places`, `tacit.study.visits`, `tacit.holder.row_map`
and `tacit.holder.places`.
"""

import math
from unittest import mock

import numpy as np
import pytest
from neighbours import make_study, table
from random_studies import hostile_question

from tacit.holder.encode import Encoder
from tacit.holder.places import places_of
from tacit.holder.row_map import RowMap
from tacit.holder.statistics import STEP_BITS, statistics_of
from tacit.privacy.gaussian import compose
from tacit.privacy.places import places_sensitivity
from tacit.privacy.visits import shares_of
from tacit.release.question import MOST_ENTRY, Question
from tacit.study.grid import GRID
from tacit.study.visits import (
    MOST_VISITS,
    placed,
    places_mechanism,
    statistics_form,
    visit_mechanism,
)

RELATIONS = ("replace-one", "add-remove")


def visited(features=3, relation="replace-one", visits=4, **fields):
    return make_study(
        features, (3,), relation=relation, visits=visits, planned_rows=[1000], **fields
    )


# Shares.


@pytest.mark.parametrize("visits", range(1, MOST_VISITS + 1))
def test_shares_add_up_to_the_budget_and_no_more(visits):
    shares = shares_of(visits)
    assert len(shares) == visits
    assert 1 - 1e-9 < math.fsum(shares) <= 1


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("visits", range(2, MOST_VISITS + 1))
def test_all_visits_together_spend_no_more_than_the_study(relation, visits):
    study = visited(relation=relation, visits=visits)
    budget = study.budget()
    first = 2 if visits > 2 else 1
    spent = [1 / visit_mechanism(study, k, budget).multiplier for k in range(first, visits + 1)]
    if visits > 2:
        spent.append(1 / places_mechanism(study, budget).multiplier)
    whole = study.mechanism().mu
    assert compose(spent) <= whole
    assert compose(spent) > whole * (1 - 1e-6)


# What a row moves.


def contributions(study, question, rows):
    """Every row's t = (uu', r·u, v·r²), weighted, by the holder's own encoder."""
    (block,) = Encoder(study, question=question).blocks(table(study, rows))
    u = block[:-1].T / GRID
    r = block[-1] / GRID
    weights = statistics_form(study).weights
    d = study.d
    products = (u[:, :, None] * u[:, None, :]).reshape(len(u), d * d)
    moments = weights.response * r[:, None] * u
    squares = weights.square * r**2
    return np.column_stack([products, moments, squares])


def random_rows(study, rng, count):
    """Rows in unit coordinates: anywhere, at corners, beyond ranges, with values missing."""
    numeric = sum(feature.range is not None for feature in study.features)
    values = rng.uniform(-1, 1, size=(count, numeric + 2))
    corners = rng.random(count) < 0.6
    values[corners] = np.sign(values[corners])
    values[rng.random(values.shape) < 0.03] *= 50
    values[:, numeric] = rng.integers(-1, 3, size=count)
    return values


def widest(study, question, rng, *, rounds=12, count=120):
    """Largest distance of two rows' contributions that a random search with moves finds."""
    rows = random_rows(study, rng, count)
    best = 0.0
    numeric = rows.shape[1] - 2
    for _ in range(rounds):
        told = contributions(study, question, rows)
        if study.relation == "add-remove":
            sizes = np.linalg.norm(told, axis=1)
            chosen = np.argsort(-sizes)[: count // 4]
            best = max(best, float(sizes.max()))
        else:
            apart = np.linalg.norm(told[:, None] - told[None], axis=2)
            order = np.argsort(-apart.max(axis=1))
            chosen = order[: count // 4]
            best = max(best, float(apart.max()))
        moved = np.repeat(rows[chosen], 3, axis=0)
        step = rng.normal(size=moved.shape) * 10.0 ** rng.uniform(-3, 0, size=(len(moved), 1))
        step[:, numeric] = 0.0
        rows = np.vstack([rows[chosen], moved + step])
    return best


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_question_lets_a_row_move_more_than_the_sensitivity(relation):
    study = visited(
        relation=relation, release={"count": "public"} if relation != RELATIONS[0] else {}
    )
    rng = np.random.default_rng(1)
    bound = statistics_form(study).sensitivity
    nearest = 0.0
    for _ in range(12):
        change = widest(study, hostile_question(study, rng), rng)
        assert change <= bound
        nearest = max(nearest, change / bound)
    assert nearest > 0.9  # the search comes near enough to see a bound that is a tenth too small


def test_the_search_catches_rows_that_are_not_shrunk():
    study = visited()
    rng = np.random.default_rng(1)
    with mock.patch.object(Encoder, "_shrink", return_value=None):
        changes = [widest(study, hostile_question(study, rng), rng) for _ in range(3)]
    assert max(changes) > 2 * statistics_form(study).sensitivity


def test_a_mapped_row_is_the_same_whichever_rows_stand_beside_it():
    study = visited(features=5)
    rng = np.random.default_rng(2)
    rows = random_rows(study, rng, 300)
    question = hostile_question(study, rng)
    whole = statistics_of(study, [table(study, rows)], question=question)
    for cut in (1, 7, 150):
        parts = [rows[:cut], rows[cut:]]
        pieces = [statistics_of(study, [table(study, part)], question=question) for part in parts]
        assert np.array_equal(whole.gram, (pieces[0] + pieces[1]).gram)
    mixed = rows[rng.permutation(len(rows))]
    assert np.array_equal(
        whole.gram, statistics_of(study, [table(study, mixed)], question=question).gram
    )


@pytest.mark.parametrize("seed", range(6))
def test_the_map_is_exact_in_whole_numbers(seed):
    study = visited(features=6)
    rng = np.random.default_rng(seed)
    question = hostile_question(study, rng)
    row_map = RowMap.of(study, question)
    block = np.rint(rng.uniform(-1, 1, size=(study.d + 1, 50)) * GRID)
    exact = [
        [sum(int(a) * int(b) for a, b in zip(row, column, strict=True)) for column in block.T]
        for row in row_map.whole
    ]
    assert max(abs(value) for row in exact for value in row) < 2**53
    told = row_map.apply(block.copy()) / row_map.steps
    assert np.array_equal(told, np.array(exact, dtype=float))


# Places.


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_row_moves_places_by_more_than_their_sensitivity(relation):
    study = visited(relation=relation, visits=3)
    rng = np.random.default_rng(4)
    rows = random_rows(study, rng, 300)
    corners = np.sign(rng.normal(size=(60, rows.shape[1])))
    corners[:, -2] = rng.integers(0, 3, size=60)
    missing = corners[:1].copy()
    missing[0, 0] = np.nan
    rows = np.vstack([rows, corners, -corners, missing])
    rows[-121:-1, -2] = 0
    columns = len(placed(study)) + 1
    weights = np.array([math.sqrt(columns)] + [1.0] * columns + [math.sqrt(2)] * columns)
    told = np.array([places_of(study, [table(study, row[None])])[1:] for row in rows], dtype=float)
    told = np.ldexp(told, -STEP_BITS) * weights
    if relation == "replace-one":
        change = np.linalg.norm(told[:, None] - told[None], axis=2).max()
    else:
        change = np.linalg.norm(told, axis=1).max()
    bound = places_sensitivity(columns)
    assert bound * (1 - 1e-6) < change <= bound * (1 + 1e-9)


# Questions whose rows a computer cannot hold: whether a row overflows would tell of it.


@pytest.mark.parametrize(
    "change",
    [{"radius": 4e-154}, {"radius": 1e300}, {"map": 1e150}, {"offset": -1e10}],
    ids=["short radius", "long radius", "map", "offset"],
)
def test_a_question_beyond_all_numbers_is_refused(change):
    study = visited()
    fields = hostile_question(study, np.random.default_rng(3)).model_dump()
    if "map" in change:
        change = {"map": (tuple([change["map"]] * study.d),) * study.d}
    if "offset" in change:
        change = {"offset": tuple([change["offset"]] * study.d)}
    with pytest.raises(ValueError, match="should be"):
        Question.model_validate(fields | change)


@pytest.mark.parametrize("missing", ["drop", "refuse"])
def test_no_row_overflows_however_the_question_is_chosen(missing):
    study = visited(missing=missing)
    values = np.random.default_rng(4).uniform(0, 1, size=(20, len(study.features) + 1))
    rows = table(study, values)
    most = (study.d + 1) * [1e9]
    fields = {"map": (tuple(most[:-1]),) * study.d, "offset": tuple(most[:-1])}
    admitted = hostile_question(study, np.random.default_rng(3)).model_copy(
        update=fields | {"radius": 1e-6, "bound": 1e-4}
    )
    forged = admitted.model_copy(update={"radius": 1e-297})  # past the limits of questions
    for question in (Question.model_validate(admitted.model_dump()), forged):
        with np.errstate(over="ignore", invalid="ignore"):
            gram = statistics_of(study, [rows], question=question).gram
        assert np.abs(gram).max() <= 20 * 2**STEP_BITS


@pytest.mark.parametrize("entry", [5e-324, 1e-300, 1e-160, 1e-80, 1e-20])
def test_no_number_that_is_made_of_rows_is_denormal(entry):
    """A processor may take longer over such numbers, and so tell how many rows have them."""
    study = visited()
    question = hostile_question(study, np.random.default_rng(3)).model_copy(
        update={
            "map": ((entry,) * study.d,) * study.d,
            "offset": (entry,) * study.d,
            "radius": MOST_ENTRY,
        }
    )
    block = np.rint(np.random.default_rng(4).uniform(-1, 1, size=(study.d + 1, 50)) * GRID)
    mapped = RowMap.of(study, question).apply(block)
    numbers = np.abs(np.concatenate([mapped.ravel(), (mapped * mapped).ravel()]))
    assert np.all((numbers == 0) | (numbers >= np.finfo(float).tiny))


class Skipping:
    """A matrix as some libraries multiply it: what has the factor 0 is not looked at."""

    def __init__(self, matrix):
        self.matrix = matrix

    def __matmul__(self, block):
        return np.array([row[row != 0] @ block[row != 0] for row in self.matrix])


def test_a_row_with_a_missing_value_is_left_out_though_the_map_takes_nothing_of_it():
    study = visited()
    question = hostile_question(study, np.random.default_rng(3)).model_copy(
        update={"map": ((1.0, *[0.0] * (study.d - 1)),) * study.d, "offset": (0.0,) * study.d}
    )
    row_map = RowMap.of(study, question)
    block = np.ones((study.d + 1, 3))
    block[1, 1] = np.nan
    skipping = RowMap(whole=Skipping(row_map.whole), steps=row_map.steps)
    for each in (row_map, skipping):
        assert np.isnan(each.apply(block.copy())).all(axis=0).tolist() == [False, True, False]
