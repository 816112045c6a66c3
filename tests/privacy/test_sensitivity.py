"""The sensitivity, attacked twice: as a formula, by an optimiser over rows; and as a promise about
the real encoder.

Covers `tacit.privacy.sensitivity`, `tacit.holder.encode` and `tacit.holder.statistics`.
"""

import math

import mpmath
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neighbours import Pair, distance, make_study, splits, statistics, table, worst_pair
from scipy.optimize import minimize

from tacit.holder.encode import BLOCK_ROWS, GRID, GRID_BITS, Encoder
from tacit.holder.statistics import _BLOCKS_PER_FLUSH, STEP_BITS, Statistics, statistics_of
from tacit.privacy.sensitivity import EIGENVALUE_SLACK, Weights, free_square_weight, sensitivity
from tacit.study import Study
from tacit.study.form import LARGEST_ENTRY

RELATIONS = ("replace-one", "add-remove")


# The formula.


def contribution(x: np.ndarray, y: float, weights: Weights) -> np.ndarray:
    """t(x, y) = (xx', w·yx, v·y², k)."""
    return np.concatenate(
        [np.outer(x, x).ravel(), weights.response * y * x, [weights.square * y * y, weights.count]]
    )


def found_by_optimiser(
    x: float, y: float, weights: Weights, relation: str, rng: np.random.Generator
) -> float:
    """Largest change over rows of two columns (two rows span no more), by L-BFGS-B from random
    starts.
    """

    def change(point):
        length, other_length, angle, response, other_response = point
        row = contribution(x * length * np.array([1.0, 0.0]), y * response, weights)
        if relation == "add-remove":
            return np.linalg.norm(row)
        return np.linalg.norm(
            row
            - contribution(
                x * other_length * np.array([math.cos(angle), math.sin(angle)]),
                y * other_response,
                weights,
            )
        )

    bounds = [(0, 1), (0, 1), (0, math.pi), (-1, 1), (-1, 1)]
    low, high = np.array(bounds).T
    scale = change(
        (1.0, 1.0, 0.7, 1.0, -0.5)
    )  # brings the objective near 1, for the optimiser's tolerances
    starts = np.vstack(
        [
            rng.uniform(low, high, (16, 5)),
            [(1, 1, 1, 1, -1), (1, 1, 1.5, 1, -0.01), (1, 1, 0.01, 1, -0.3)],
        ]
    )
    return max(
        -minimize(lambda point: -change(point) / scale, start, bounds=bounds).fun * scale
        for start in starts
    )


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("seed", range(16))
def test_the_formula_is_what_an_optimiser_finds(relation, seed):
    rng = np.random.default_rng(seed)
    x, y = np.exp(rng.uniform(-2, 2, 2))
    w = (x / y) * np.exp(rng.uniform(-2.5, 2.5))
    square = (w * y / x) ** 2 * (x / y) ** 2 * [0.0, 0.3, 1.0, 3.0][seed % 4]
    weights = Weights(w, square, count=x * x / 8)
    claimed, found = (
        sensitivity(x, y, weights, relation),
        found_by_optimiser(x, y, weights, relation, rng),
    )
    assert found <= claimed * (1 + 1e-9)
    assert found >= 0.9999 * claimed


@pytest.mark.parametrize("w", [0.2, 1.0, 1.41, 1.42, 2.0, 5.0])
@pytest.mark.parametrize("v_over_w", [1.0, 1.4, 1.42, 1.5, 2.0, 4.0])
def test_the_formula_where_its_branches_meet(w, v_over_w):
    """X = Y = 1; the branches change at w = √2 and v = √2 w."""
    weights = Weights(w, v_over_w * w)
    claimed, found = (
        sensitivity(1.0, 1.0, weights, "replace-one"),
        found_by_optimiser(1.0, 1.0, weights, "replace-one", np.random.default_rng(1)),
    )
    assert found <= claimed * (1 + 1e-9)
    assert found >= 0.9999 * claimed


unit = st.floats(-1, 1)


@settings(max_examples=300, deadline=None)
@given(
    d=st.integers(1, 6),
    rows=st.lists(unit, min_size=14, max_size=14),
    w=st.floats(1e-3, 1e3),
    v=st.one_of(st.just(0.0), st.floats(1e-6, 1e6)),
    bound=st.floats(1e-2, 1e2),
)
def test_no_two_rows_beat_the_formula(d, rows, w, v, bound):
    weights = Weights(w, v, count=0.5)
    first, second = np.array(rows[:d]), np.array(rows[6 : 6 + d])
    first, second = (x / max(1.0, np.linalg.norm(x)) for x in (first, second))
    one, other = (
        contribution(first, bound * rows[12], weights),
        contribution(second, bound * rows[13], weights),
    )
    assert np.linalg.norm(one - other) <= sensitivity(1.0, bound, weights, "replace-one") * (
        1 + 1e-12
    )
    assert np.linalg.norm(one) <= sensitivity(1.0, bound, weights, "add-remove") * (1 + 1e-12)


def test_closed_forms_of_the_unweighted_pair():
    """docs/privacy.md, "Sensitivity": w = 1 and nothing else published."""
    assert sensitivity(2.0, 1.0, Weights(1.0), "add-remove") == pytest.approx(math.sqrt(16 + 4))
    assert sensitivity(2.0, 1.0, Weights(1.0), "replace-one") == pytest.approx(
        math.sqrt(2) * (4 + 1 / 2)
    )
    assert sensitivity(1.0, 3.0, Weights(1.0), "replace-one") == pytest.approx(2 * 3)
    assert sensitivity(1.0, 3.0, Weights(1.0, count=7.0), "replace-one") == pytest.approx(2 * 3)


@pytest.mark.parametrize(("x", "y"), [(1.0, 1.0), (0.3, 2.0), (5.0, 0.1)])
@pytest.mark.parametrize("share", [0.01, 0.3, 1.0, math.sqrt(2)])
def test_the_free_weight_of_the_square_is_the_largest_free_one(x, y, share):
    response = share * x / y
    without = sensitivity(x, y, Weights(response), "replace-one")
    free = free_square_weight(x, y, response)
    assert sensitivity(x, y, Weights(response, free), "replace-one") == pytest.approx(
        without, rel=1e-14
    )
    assert sensitivity(x, y, Weights(response, free * (1 + 1e-6)), "replace-one") > without * (
        1 + 1e-11
    )


# Several responses.


def joint_contribution(x: np.ndarray, y: np.ndarray, weights: Weights) -> np.ndarray:
    """(xx', w·y_j x, v·y_j², k) of a row with several responses."""
    moments = weights.response * np.outer(y, x).ravel()
    squares = weights.square * y**2
    return np.concatenate([np.outer(x, x).ravel(), moments, squares, [weights.count]])


def found_of_several(
    bounds: tuple[float, float], weights: Weights, k: int, relation: str, rng: np.random.Generator
) -> float:
    """Largest change over rows of two columns and k responses, by L-BFGS-B from random starts."""
    x, y = bounds

    def change(point):
        length, other_length, angle = point[:3]
        own = joint_contribution(x * length * np.array([1.0, 0.0]), y * point[3 : 3 + k], weights)
        if relation == "add-remove":
            return np.linalg.norm(own)
        turned = x * other_length * np.array([math.cos(angle), math.sin(angle)])
        return np.linalg.norm(own - joint_contribution(turned, y * point[3 + k :], weights))

    limits = [(0, 1), (0, 1), (0, math.pi), *[(-1, 1)] * (2 * k)]
    low, high = np.array(limits).T
    scale = change(np.array([1.0, 1.0, 0.7, *[1.0] * k, *[-0.5] * k]))
    starts = np.vstack(
        [rng.uniform(low, high, (8, len(limits))), [1, 1, 1, *[1.0] * k, *[-1.0] * k]]
    )
    return max(
        -minimize(lambda point: -change(point) / scale, start, bounds=limits).fun * scale
        for start in starts
    )


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("seed", range(6))
def test_several_responses_move_as_far_as_one_that_stands_for_them(relation, seed):
    rng = np.random.default_rng(seed)
    k = 2 + seed % 3
    x = math.exp(rng.uniform(-1, 1))
    y = math.exp(rng.uniform(-1, 1))
    w = (x / y) * math.exp(rng.uniform(-1.5, 1.0)) / math.sqrt(k)
    square = w * w * [0.0, 0.3, 1.0][seed % 3]
    weights = Weights(w, square, count=x * x / 8)
    claimed = sensitivity(x, y, weights.as_one(k), relation)
    found = found_of_several((x, y), weights, k, relation, rng)
    assert 0.9999 * claimed <= found <= claimed * (1 + 1e-9)
    assert claimed > sensitivity(x, y, weights, relation)


@settings(max_examples=200, deadline=None)
@given(
    k=st.integers(1, 4),
    rows=st.lists(unit, min_size=14, max_size=14),
    w=st.floats(1e-3, 1e3),
    v=st.one_of(st.just(0.0), st.floats(1e-6, 1e6)),
    bound=st.floats(1e-2, 1e2),
)
def test_what_several_move_is_the_mean_of_what_each_would(k, rows, w, v, bound):
    """The identity behind it, in squares: each alone at √k times the weights of X'y and y'y."""
    weights = Weights(w, v, count=0.5)
    x = np.array([rows[:3], rows[3:6]])
    y = bound * np.array([rows[6 : 6 + k], rows[10 : 10 + k]])
    first, second = (joint_contribution(x[i], y[i], weights) for i in (0, 1))
    alone = [
        contribution(x[0], y[0, j], weights.as_one(k))
        - contribution(x[1], y[1, j], weights.as_one(k))
        for j in range(k)
    ]
    mean = np.mean([move @ move for move in alone])
    assert (first - second) @ (first - second) == pytest.approx(mean, rel=1e-9, abs=1e-12)


# The smallest eigenvalue.


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_smallest_eigenvalue_never_moves_by_more_than_the_square_of_the_radius(relation):
    rng = np.random.default_rng(3)
    largest = 0.0
    for _ in range(4000):
        d, others = rng.integers(1, 4), rng.integers(0, 6)
        rows = rng.normal(size=(others, d)) * np.exp(rng.uniform(-3, 3, (others, 1)))
        rows /= np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
        first, second = (
            v / np.linalg.norm(v) * rng.choice([1.0, 0.5, 0.0], p=[0.7, 0.2, 0.1])
            for v in rng.normal(size=(2, d))
        )
        before = rows.T @ rows + np.outer(first, first)
        after = rows.T @ rows + (np.outer(second, second) if relation == "replace-one" else 0.0)
        largest = max(largest, abs(np.linalg.eigvalsh(before)[0] - np.linalg.eigvalsh(after)[0]))
    assert (
        0.99 <= largest <= 1 + 1e-12
    )  # one column, or an orthonormal rest, moves it by the whole of X²


def test_a_worst_case_table_moves_the_smallest_eigenvalue_by_the_whole_square_in_any_dimension():
    for d in (1, 2, 5):
        before = np.eye(d)
        after = before - np.outer(before[0], before[0])
        assert np.linalg.eigvalsh(before)[0] - np.linalg.eigvalsh(after)[0] == pytest.approx(1.0)


def test_the_eigenvalue_solver_errs_by_far_less_than_its_slack():
    """At 2³² rows of 512 columns, more than may be published: n·11' + k·I has smallest eigenvalue k
    and squared row norms up to d.
    """
    d, k, n = 512, 12345, 2**32
    gram = np.full((d, d), float(n)) + k * np.eye(d)
    assert abs(np.linalg.eigvalsh(gram)[0] - k) < EIGENVALUE_SLACK * d / 4


def test_the_eigenvalue_solver_against_thirty_digits():
    rng = np.random.default_rng(0)
    rows = rng.integers(-(2**20), 2**20, (9, 6))
    gram = (rows.T @ rows) * 2**32  # whole numbers: 2³² copies of nine rows, in steps of 2⁻³⁶
    with mpmath.workdps(30):
        exact = (
            min(mpmath.eigsy(mpmath.matrix(gram.tolist()), eigvals_only=True))
            * mpmath.mpf(2) ** -STEP_BITS
        )
        found = np.linalg.eigvalsh(
            Statistics(9 * 2**32, np.pad(gram.astype(object), (0, 1))).xtx()
        )[0]
        assert abs(found - exact) < EIGENVALUE_SLACK / 100


# The real encoder: rows that fill a ball.


def ball_study(seed: int, relation: str, further: int = 0):
    """No intercept, numeric features, R ≤ 1: every x of the ball is a row; R/Y from 0.1 to 10."""
    rng = np.random.default_rng(seed)
    ratio, radius = 10 ** rng.uniform(-1, 1), rng.uniform(0.3, 1.0)
    bound = min(1.0, radius / ratio)
    radius = ratio * bound
    release = {
        "row_radius": radius,
        "response_bound": bound,
        "response_weight": radius / bound * float(np.exp(rng.uniform(-2, 2))),
        "response_square": bool(seed % 2),
    }
    if relation == "add-remove":
        release["count"] = ["noisy", "withheld", "public"][seed % 3]
    return make_study(
        int(rng.integers(2, 9)),
        seed=seed,
        further=further,
        relation=relation,
        intercept=False,
        release=release,
    )


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("seed", range(20))
def test_in_a_ball_the_encoder_reaches_the_sensitivity_and_never_exceeds_it(relation, seed):
    study, rng = ball_study(seed, relation), np.random.default_rng(seed)
    pair = worst_pair(study, rng)
    others = rng.uniform(-1.5, 1.5, (50, len(study.features) + 1))
    alone, among_others = pair.change(study), pair.change(study, others)
    assert alone == pytest.approx(among_others, rel=1e-12)
    assert 0.99 * study.form.sensitivity <= alone <= study.form.sensitivity


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("seed", range(6))
def test_with_several_responses_it_is_reached_and_never_exceeded_too(relation, seed):
    study = ball_study(seed, relation, further=1 + seed % 3)
    change = worst_pair(study, np.random.default_rng(seed)).change(study)
    assert 0.99 * study.form.sensitivity <= change <= study.form.sensitivity


@pytest.mark.parametrize("scale", [0.3, 1.0, 1.3, 3.0])
def test_one_column_reaches_it_under_add_remove_only(scale):
    """Rows on a line have cosine ±1 where the worst case wants W²/2: under replace-one the bound
    has slack up to 1 − 1/√2.
    """
    for relation, least in (("add-remove", 0.9999), ("replace-one", 1 / math.sqrt(2))):
        study = make_study(
            1,
            relation=relation,
            intercept=False,
            release={"row_radius": 0.5, "response_weight": 0.5 * scale},
        )
        change = worst_pair(study, np.random.default_rng(0)).change(study)
        assert least * study.form.sensitivity <= change <= study.form.sensitivity


def test_the_proofs_worst_pair_written_out():
    """Equal norms R, cosine W²/2 = 1/2, opposite responses: Δ = √2·(R² + R²/2), through the encoder
    to six digits.
    """
    study = make_study(2, intercept=False, release={"row_radius": 0.8})
    pair = Pair(np.array([0.8, 0.0, 1.0]), np.array([0.4, 0.8 * math.sqrt(0.75), -1.0]))
    assert study.form.sensitivity == pytest.approx(math.sqrt(2) * 1.5 * 0.64, rel=1e-9)
    assert pair.change(study) == pytest.approx(study.form.sensitivity, rel=1e-5)
    assert pair.change(study) <= study.form.sensitivity


# The real encoder: everything else.


def any_study(seed: int):
    """Any mixture that a study allows of up to 8 encoded columns."""
    rng = np.random.default_rng(1000 + seed)
    relation = RELATIONS[seed % 2]
    numeric = int(rng.integers(0, 6))
    levels = tuple(rng.integers(2, 5, rng.integers(0 if numeric else 1, 2)).tolist())
    intercept = bool(rng.integers(2))
    longest = math.sqrt(intercept + numeric + len(levels))
    radius = float(rng.choice([1.0, 0.5 * longest, 0.9 * longest, longest, 2 * longest]))
    release = {
        "row_radius": max(1.0, radius) if intercept else radius,
        "response_bound": float(rng.choice([0.1, 0.5, 1.0])),
        "response_square": bool(rng.integers(2)),
        "smallest_eigenvalue": seed % 4 == 3,
        "noise": ["frobenius", "triangular"][seed % 3 == 0],
    }
    release["response_weight"] = (
        min(release["row_radius"], longest)
        / release["response_bound"]
        * float(np.exp(rng.uniform(-2, 2)))
    )
    if relation == "add-remove":
        release["count"] = ["noisy", "withheld"][seed // 2 % 2]
    missing = ["drop", "impute", "refuse"][seed % 3]
    return make_study(
        numeric,
        levels,
        seed=seed,
        further=max(0, seed % 5 - 2),
        relation=relation,
        intercept=intercept,
        missing=missing,
        release=release,
    )


@pytest.mark.parametrize("seed", range(60))
def test_no_study_lets_a_row_move_the_statistics_further_than_it_says(seed):
    study, rng = any_study(seed), np.random.default_rng(seed)
    pair = worst_pair(study, rng, rounds=25)
    assert pair.change(study) <= study.form.sensitivity
    for count in (1, 2, 8):  # other rows matter to the smallest eigenvalue alone
        others = rng.uniform(-1, 1, (count, len(pair.first))).round(1)
        others[:, [feature.range is None for feature in study.features] + [False]] = 0
        assert pair.change(study, others) <= study.form.sensitivity


FORMS = {
    "cube": (False, 10.0),
    "cube with intercept": (True, 10.0),
    "default": (True, None),
    "default without intercept": (False, None),
    "sphere with intercept": (True, 1.0),
}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "columns", [(1, ()), (3, ()), (7, ()), (0, (3,)), (0, (2, 2, 2)), (2, (3,))], ids=str
)
@pytest.mark.parametrize("form", FORMS)
def test_slack_where_rows_do_not_fill_the_ball(form, columns, relation):
    """Cube, intercept in the row, categories. Measured at response weights 0.3, 1 and 3 times the
    default.

    With two numeric features or more up to 8 % is lost: with an intercept, a row on the unit sphere
    has a response of at most its first entry, so none has the worst cosine together with a response
    of Y. Rows with one numeric column or none lose up to 30 %.
    """
    intercept, radius = FORMS[form]
    numeric, levels = columns
    for factor in (0.3, 1.0, 3.0):
        release = {} if radius is None else {"row_radius": radius}
        fields = {"seed": 5, "relation": relation, "intercept": intercept}
        weight = factor * make_study(numeric, levels, **fields, release=release).response_weight
        study = make_study(numeric, levels, **fields, release=release | {"response_weight": weight})
        share = (
            worst_pair(study, np.random.default_rng(2), rounds=25).change(study)
            / study.form.sensitivity
        )
        least = 0.70 if numeric < 2 else 0.92
        assert least <= share <= 1, f"{share:.4f} at {factor} of the default weight"


@pytest.mark.parametrize("missing", ["drop", "impute"])
def test_exchanging_an_incomplete_row_moves_no_further(missing):
    """Under "drop" it becomes the zero row, which is in the ball: the distance to it is a row's own
    length.
    """
    rng = np.random.default_rng(0)
    for intercept in (False, True):
        study = make_study(
            3, (3,), intercept=intercept, missing=missing, release={"response_weight": 2.0}
        )
        rows = np.column_stack(
            [rng.uniform(-1.2, 1.2, (300, 3)), rng.integers(-1, 3, 300), rng.uniform(-1, 1, 300)]
        )
        holed = rows.copy()
        holed[np.arange(300), rng.integers(0, 5, 300)] = np.nan
        holed[:, 3] = np.where(np.isnan(holed[:, 3]), -1, holed[:, 3])
        changes = [Pair(a, b).change(study) for a, b in zip(rows, holed, strict=True)]
        assert max(changes) <= study.form.sensitivity
        assert max(changes) > 0.3 * study.form.sensitivity
    if missing == "drop":
        dropped = statistics(
            study, np.array([[np.nan, 0, 0, 0, 1.0], [0, 0, 0, -1, 1.0], [0, 0, 0, 1, np.nan]])
        )
        assert dropped.n == 3
        assert not dropped.gram.any()


# Whole numbers.


@pytest.mark.parametrize("radius", [1e-3, 0.1, 0.77, 1.5, 2.3])
@pytest.mark.parametrize("d", [1, 8, 40])
def test_encoded_rows_never_leave_the_ball(d, radius):
    """Checked in whole numbers: Σ x² ≤ R²·2³⁶ for rows of every length, many of them a rounding
    error from the sphere.
    """
    study = make_study(
        d, seed=d, intercept=False, release={"row_radius": radius, "response_bound": 0.37}
    )
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4000, d + 1))
    lengths = study.row_radius * rng.choice(
        [0.5, 1 - 1e-6, 1 - 1e-7, 1.0, 1 + 1e-9, 1 + 1e-6, 3.0, 1e20], (4000, 1)
    )
    rows[:, :-1] *= lengths / np.linalg.norm(rows[:, :-1], axis=1, keepdims=True)
    rows[:50] = np.sign(rows[:50]) * np.inf
    for block in Encoder(study).blocks(table(study, rows)):
        whole = block.astype(np.int64).astype(object)
        assert np.array_equal(whole.astype(float), block)
        assert max((whole[:-1] ** 2).sum(axis=0)) <= math.floor(
            mpmath.mpf(study.row_radius) ** 2 * 2**STEP_BITS
        )
        assert max(abs(whole[-1])) <= study.response_bound * GRID


def test_a_row_longer_than_the_radius_keeps_its_direction():
    study = make_study(2, intercept=False, release={"row_radius": 0.5})
    (block,) = Encoder(study).blocks(table(study, np.array([[0.6, 0.8, 0.4]])))
    np.testing.assert_allclose(block[:, 0] / GRID, [0.3, 0.4, 0.2], atol=3 / GRID)


def test_products_of_a_block_stay_below_the_doubles_whole_numbers():
    assert BLOCK_ROWS * LARGEST_ENTRY**2 * 2 ** (2 * GRID_BITS) <= 2**53
    assert _BLOCKS_PER_FLUSH * 2**53 < 2**63


def far_study(radius: float) -> Study:
    """One column whose range is four times as wide as its typical interval: entries reach 4."""
    far = {"name": "x", "range": [-4.0, 4.0], "typical": [-1.0, 1.0]}
    document = {"name": "far", "epsilon": 1.0, "delta": 1e-5, "intercept": False, "features": [far]}
    form = {"row_radius": radius, "response_bound": 1.0}
    return Study.from_document(
        document | {"response": {"name": "y", "range": [-1.0, 1.0]}, "release": form}
    )


def far_batch(x: np.ndarray, y: np.ndarray) -> pa.RecordBatch:
    return pa.record_batch({"x": x, "y": y})


def test_a_full_block_of_extreme_rows_is_exact():
    """2¹³ rows at every bound at once, against Python's own integers; also with signs and odd last
    digits mixed.
    """
    study = far_study(LARGEST_ENTRY)
    signs = np.random.default_rng(0).choice([-1.0, 1.0, 1 - 2**-18, 2**-18 - 1], (2, BLOCK_ROWS))
    for x, y in ((np.full(BLOCK_ROWS, 4.0), np.ones(BLOCK_ROWS)), (4 * signs[0], signs[1])):
        (block,) = Encoder(study).blocks(far_batch(x, y))
        whole = [[int(value) for value in row] for row in block]
        exact = [
            [sum(a * b for a, b in zip(one, other, strict=True)) for other in whole]
            for one in whole
        ]
        assert statistics_of(study, [far_batch(x, y)]).gram.tolist() == exact
    assert statistics_of(study, [far_batch(np.full(BLOCK_ROWS, 4.0), y)]).gram[0, 0] == 2**53


def test_many_full_blocks_of_extreme_rows_do_not_overflow(monkeypatch):
    """The 64-bit accumulator holds what one flush allows; here the flush itself is crossed, three
    times.
    """
    monkeypatch.setattr("tacit.holder.statistics._BLOCKS_PER_FLUSH", 4)
    study = far_study(LARGEST_ENTRY)
    batch = far_batch(np.full(BLOCK_ROWS, 4.0), np.ones(BLOCK_ROWS))
    assert statistics_of(study, [batch] * 14).gram[0, 0] == 14 * 2**53
    assert statistics_of(study, [batch] * 14).n == 14 * BLOCK_ROWS


def test_typical_intervals_keep_rows_in_the_ball():
    """Outliers far beyond the typical interval are shrunk, not clipped: the direction of the row
    stays.
    """
    (block,) = Encoder(far_study(0.5)).blocks(
        far_batch(np.array([3.0, -2.0, 0.25, 9.0]), np.array([0.9, -0.9, 0.5, 0.4]))
    )
    assert (np.abs(block[0]) <= 0.5 * GRID).all()
    np.testing.assert_allclose(block[1] / block[0], [0.3, 0.45, 2.0, 0.1], rtol=1e-4)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), parts=st.integers(1, 6))
def test_any_split_permutation_and_merge_gives_the_same_bits(seed, parts):
    rng = np.random.default_rng(seed)
    study = make_study(3, (3,), seed=seed % 7, missing="drop")
    count = int(rng.integers(1, 3 * BLOCK_ROWS))
    rows = np.column_stack(
        [rng.normal(size=(count, 3)), rng.integers(-1, 3, count), rng.normal(size=count)]
    )
    whole = statistics(study, rows)
    shuffled = rows[rng.permutation(count)]
    pieces = [table(study, shuffled[part]) for part in splits(rng, count, parts)]
    streamed = statistics_of(study, pieces)
    merged = sum(
        (statistics_of(study, [piece]) for piece in reversed(pieces)), Statistics.zero(study)
    )
    for other in (streamed, merged):
        assert other.n == whole.n
        assert other.gram.tolist() == whole.gram.tolist()
        assert distance(study, whole, other) == 0.0
