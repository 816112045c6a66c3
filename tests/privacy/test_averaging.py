"""Averaged rows: their sensitivity attacked as a formula and through the real encoder, and the
dealing of rows that it rests on.

Covers `tacit.holder.averaging` and the averaging part of `tacit.privacy.sensitivity`.
"""

import math
from collections import Counter
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neighbours import distance, make_study, splits, statistics, table
from scipy import stats
from scipy.optimize import minimize

from tacit.errors import TableError
from tacit.holder.averaging import secure_order
from tacit.holder.charge import Purpose
from tacit.holder.encode import BLOCK_ROWS, Encoder
from tacit.holder.perturb import privatise
from tacit.holder.statistics import STEP_BITS, Statistics, statistics_of
from tacit.privacy.sensitivity import Weights, sensitivity
from tacit.study import Study
from tacit.study.form import LARGEST_ENTRY, MOST_AVERAGED

RELATIONS = ("replace-one", "add-remove")
SIZES = (2, 3, 16, 64)


# The formula.


def products(row: np.ndarray, weights: Weights) -> np.ndarray:
    """T(x, y) = (xx', w·yx, v·y²) of a row or of a sum of rows, the response last."""
    x, y = row[:-1], row[-1]
    return np.concatenate(
        [np.outer(x, x).ravel(), weights.response * y * x, [weights.square * y * y]]
    )


def moved(rows: tuple[np.ndarray, ...], weights: Weights, relation: str, size: int) -> float:
    """How far the statistics move: `rows` are the row that leaves, the one that comes, and the sums
    of the others in their groups.

    Under add-remove the row that comes was the last of all, and leaves its own group.
    """
    leaves, comes, others, last = rows
    step = products(others + leaves, weights) - products(others + comes, weights)
    if relation == "add-remove":
        step += products(last + comes, weights) - products(last, weights)
    return float(np.hypot(np.linalg.norm(step) / size, weights.count * (relation == "add-remove")))


def found_by_optimiser(
    weights: Weights, relation: str, size: int, rng: np.random.Generator
) -> float:
    """Largest change for X = Y = 1 over rows of two columns, by L-BFGS-B from random starts."""
    most = np.array([1, 1, size - 1, size - 1])

    def change(point):
        lengths, angles, responses = np.reshape(point, (3, 4))
        rows = most * np.array([lengths * np.cos(angles), lengths * np.sin(angles), responses])
        return moved(tuple(rows.T), weights, relation, size)

    bounds = [(0, 1)] * 4 + [(-math.pi, math.pi)] * 4 + [(-1, 1)] * 4
    scale = sensitivity(1.0, 1.0, weights, relation, size)  # brings the objective near 1
    starts = rng.uniform(*np.array(bounds).T, (5, 12))
    return max(
        -minimize(lambda point: -change(point) / scale, start, bounds=bounds).fun * scale
        for start in starts
    )


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("w", "v"), [(0.3, 0.0), (1.0, 0.3), (1.0, 1.2), (3.0, 9.0)])
def test_the_formula_is_what_an_optimiser_finds(relation, size, w, v):
    weights = Weights(w, v, count=1 / 8)
    claimed, found = (
        sensitivity(1.0, 1.0, weights, relation, size),
        found_by_optimiser(weights, relation, size, np.random.default_rng(size)),
    )
    assert found <= claimed * (1 + 1e-9)
    assert found >= 0.9999 * claimed


@settings(max_examples=300, deadline=None)
@given(
    size=st.integers(2, MOST_AVERAGED),
    numbers=st.lists(st.floats(-1, 1), min_size=16, max_size=16),
    w=st.floats(1e-2, 1e2),
    v=st.one_of(st.just(0.0), st.floats(1e-2, 1e2)),
)
def test_no_rows_beat_the_formula(size, numbers, w, v):
    rows, weights = np.reshape(numbers, (4, 4)), Weights(w, v)
    rows[:, :-1] /= np.maximum(1.0, np.linalg.norm(rows[:, :-1], axis=1, keepdims=True))
    rows[2:] *= size - 1
    for relation in RELATIONS:
        assert moved(tuple(rows), weights, relation, size) <= sensitivity(
            1.0, 1.0, weights, relation, size
        ) * (1 + 1e-12)


def test_the_papers_claim_that_averaging_leaves_the_sensitivity_as_it_was_is_false():
    """X'X alone, X = 1: √2 without averaging, 4(k − 1)/k with it."""
    bare = Weights(1e-9)
    assert sensitivity(1.0, 1.0, bare, "replace-one") == pytest.approx(math.sqrt(2))
    for size in SIZES:
        assert sensitivity(1.0, 1.0, bare, "replace-one", size) == pytest.approx(
            4 * (size - 1) / size
        )
    assert sensitivity(1.0, 1.0, bare, "add-remove", 1) == pytest.approx(1.0)


# The real encoder.


def ball_study(size: int, relation: str, seed: int, **release) -> Study:
    """No intercept and R < 1: every x of the ball is a row."""
    rng = np.random.default_rng([size, seed])
    radius, bound = rng.uniform(0.3, 0.9), rng.uniform(0.2, 0.9)
    form = {
        "row_radius": radius,
        "response_bound": bound,
        "response_weight": radius / bound * float(np.exp(rng.uniform(-2, 2))),
    }
    form |= {"average": size, "response_square": bool(seed % 2)}
    if relation == "add-remove":
        form["count"] = ["noisy", "withheld", "public"][seed % 3]
    return make_study(3, seed=seed, relation=relation, intercept=False, release=form | release)


def without(order: np.ndarray, row: int) -> np.ndarray:
    """The order in which the rows less one are dealt, coupled to `order`: the last of all takes the
    place of the one that leaves.
    """
    places = order.tolist()
    gone = places.index(row)
    last = places.pop()
    if gone < len(places):
        places[gone] = last
    return np.array([each - (each > row) for each in places], dtype=np.int64)


def change(study: Study, rows: np.ndarray, order: np.ndarray, row: int, other: np.ndarray) -> float:
    """How far the statistics move when a row is exchanged for another, or removed, under coins
    coupled as in the proof.
    """
    before = statistics(study, rows, order=lambda _places: order)
    if study.relation == "add-remove":
        return distance(
            study,
            before,
            statistics(
                study, np.delete(rows, row, axis=0), order=lambda _places: without(order, row)
            ),
        )
    rows = rows.copy()
    rows[row] = other
    return distance(study, before, statistics(study, rows, order=lambda _places: order))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", range(3))
def test_the_worst_tables_reach_the_sensitivity_and_none_exceeds_it(relation, size, seed):
    """Two groups: one of equal rows, of which one leaves; one of opposite rows. Then random tables,
    some rows of them incomplete.
    """
    study, rng = ball_study(size, relation, seed), np.random.default_rng(seed)
    extreme = np.array([study.row_radius, 0.0, 0.0, study.response_bound]) * (
        1 - 1e-4
    )  # just short of being shrunk
    worst = np.vstack([np.tile(extreme, (size, 1)), np.tile(-extreme, (size, 1))])
    reached = change(study, worst, np.arange(2 * size), 0, -extreme)
    assert 0.99 * study.form.sensitivity <= reached <= study.form.sensitivity
    for _ in range(40):
        count = int(rng.integers(1, 4 * size))
        rows = rng.choice([-1.0, 1.0], (count + 1, 1)) * extreme + rng.normal(
            size=(count + 1, 4)
        ) * rng.choice([0.0, 0.1, 2.0])
        rows[rng.random(count + 1) < 0.1, 1] = np.nan
        assert (
            change(study, rows[:-1], rng.permutation(count), int(rng.integers(count)), rows[-1])
            <= study.form.sensitivity
        )


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("seed", range(6))
def test_no_study_lets_a_row_move_averages_further_than_it_says(relation, seed):
    """Intercept, categories, and the smallest eigenvalue published too."""
    rng = np.random.default_rng(seed)
    study = make_study(
        2, (3,), seed=seed, relation=relation, release={"average": 4, "smallest_eigenvalue": True}
    )
    for _ in range(40):
        count = int(rng.integers(1, 20))
        rows = np.column_stack(
            [
                rng.normal(size=(count + 1, 2)) * 3,
                rng.integers(-1, 3, count + 1),
                rng.choice([-1, 1], count + 1),
            ]
        )
        assert (
            change(study, rows[:-1], rng.permutation(count), int(rng.integers(count)), rows[-1])
            <= study.form.sensitivity
        )


# Dealing.


def test_the_coupled_orders_are_as_likely_as_any():
    """Over all orders of five rows, removing one gives every order of four equally often: the
    proof's coupling has the right law.
    """
    for row in range(5):
        orders = Counter(
            tuple(without(np.array(order), row).tolist()) for order in permutations(range(5))
        )
        assert set(orders) == set(permutations(range(4)))
        assert set(orders.values()) == {5}


def test_in_a_sorted_table_consecutive_groups_would_break_the_promise():
    """Pairs of a sorted table: the row that moves from one end to the other shifts all those
    between into other pairs.
    """
    study = make_study(2, intercept=False, release={"row_radius": 0.5, "average": 2})
    rows = np.array(
        [[x, 0.4 * (-1) ** (i // 2), 0.9] for i, x in enumerate(np.linspace(-0.2, 0.2, 200))]
    )
    exchanged = rows.copy()
    exchanged[0, 0] = 0.3
    exchanged = exchanged[np.argsort(exchanged[:, 0])]
    first, second = (statistics(study, each, order=np.arange) for each in (rows, exchanged))
    assert distance(study, first, second) > 10 * study.form.sensitivity


def test_the_secure_order_is_uniform(monkeypatch):
    """Six orders of three, 6,000 times, with a seed in place of the secure generator; false-alarm
    rate 1e-6.
    """
    rng = np.random.default_rng(0)
    monkeypatch.setattr("tacit.holder.averaging.secrets.token_bytes", rng.bytes)
    counts = Counter(tuple(secure_order(3).tolist()) for _ in range(6000))
    assert stats.chisquare([counts[order] for order in permutations(range(3))]).pvalue > 1e-6


def test_the_secure_order_is_drawn_anew_when_two_keys_are_equal(monkeypatch):
    keys = iter([[5, 5, 1], [7, 3, 9]])
    monkeypatch.setattr(
        "tacit.holder.averaging.secrets.token_bytes",
        lambda _bytes: np.array(next(keys), dtype=np.uint64).tobytes(),
    )
    assert secure_order(3).tolist() == [1, 0, 2]


def test_rows_are_dealt_anew_each_time_and_unseen():
    study = make_study(2, release={"average": 4})
    rows = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    assert statistics(study, rows).gram.tolist() != statistics(study, rows).gram.tolist()


# Whole numbers.


@pytest.mark.parametrize("size", [2, 3, 7, 64])
def test_batches_do_not_matter_and_sums_are_exact(size):
    rng = np.random.default_rng(size)
    study = make_study(3, (3,), release={"average": size})
    count = 3 * size + 1 if size > 7 else 500
    rows = np.column_stack(
        [rng.normal(size=(count, 3)), rng.integers(-1, 3, count), rng.normal(size=count)]
    )
    order = rng.permutation(count)
    found = statistics_of(
        study,
        [table(study, rows[part]) for part in splits(rng, count, 5)],
        order=lambda _places: order,
    )
    encoded = np.hstack(list(Encoder(study).blocks(table(study, rows)))).astype(np.int64)[:, order]
    sums = [
        encoded[:, start : start + size].sum(axis=1).astype(object)
        for start in range(0, count, size)
    ]
    assert found.n == count
    assert found.gram.tolist() == sum(np.outer(each, each) for each in sums).tolist()


@pytest.mark.parametrize("size", [2, 5, 64])
def test_groups_of_extreme_rows_are_exact(size):
    """Every entry at 4, the largest there is, in many full groups."""
    assert (BLOCK_ROWS // size**2) * (size * LARGEST_ENTRY * 2**18) ** 2 <= 2**53
    far = {"name": "x", "range": [-4.0, 4.0], "typical": [-1.0, 1.0]}
    document = {
        "name": "far",
        "epsilon": 1.0,
        "delta": 1e-5,
        "intercept": False,
        "features": [far],
        "response": {"name": "y", "range": [-1, 1]},
    }
    study = Study.from_document(
        document | {"release": {"row_radius": 4.0, "response_bound": 1.0, "average": size}}
    )
    groups = 9000 // size
    found = statistics(study, np.tile([1.0, 1.0], (groups * size, 1)))
    assert found.gram[0, 0] == groups * size**2 * 2**40


@pytest.mark.parametrize("size", [3, 64])
def test_what_is_released_is_the_average_to_half_a_step_of_the_lattice(size):
    study = make_study(2, relation="add-remove", release={"average": size})
    exact = statistics(study, np.random.default_rng(1).uniform(-1, 1, (500, 3)))
    release = privatise(study, exact, Purpose("north"), lambda sds, _lattice: [0] * len(sds))
    half = Fraction(2) ** (release.lattice - 1)
    for i in range(study.d):
        for k in range(study.d):
            assert (
                abs(Fraction(release.xtx[i][k]) - Fraction(exact.gram[i, k], size * 2**STEP_BITS))
                <= half
            )
    assert release.n == 500


def test_averaged_statistics_of_pieces_are_not_merged():
    study = make_study(2, release={"average": 4})
    part = statistics(study, np.zeros((5, 3)))
    with pytest.raises(TableError, match="in one piece"):
        part + part
    with pytest.raises(TableError, match="in one piece"):
        Statistics.zero(study) + part


def test_statistics_of_another_average_are_not_published():
    study, plain = make_study(2, release={"average": 4}), make_study(2)
    with pytest.raises(TableError, match="in one piece"):
        privatise(study, statistics(plain, np.zeros((5, 3))), Purpose("north"))


def test_a_table_without_rows_has_statistics():
    study = make_study(2, release={"average": 4})
    assert not statistics(study, np.zeros((0, 3))).gram.any()
