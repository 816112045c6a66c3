"""Private scales, attacked: no exchange moves the moments further than claimed, one does, and both
stages are one budget.

Covers `tacit.privacy.scales`.
"""

import math
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neighbours import make_study, table
from scipy.optimize import minimize_scalar

from tacit.holder.charge import Purpose
from tacit.holder.scales import BLOCK_ROWS, moments_of, privatise_scales
from tacit.holder.statistics import STEP_BITS
from tacit.privacy.gaussian import compose, mu_of, split
from tacit.privacy.mechanism import LATTICE_BITS, lattice_multiplier
from tacit.privacy.noise import secure_noise
from tacit.privacy.scales import SQUARE_WEIGHT, calibrate_scales, scales_sensitivity

RELATIONS = ("replace-one", "add-remove")
WEIGHTS = np.array([1.0, 1.0, SQUARE_WEIGHT])


def contribution(row):
    """t(u) of each column of a row, missing values as NaN."""
    there = ~np.isnan(row)
    u = np.where(there, row, 0.0)
    return np.concatenate([there, u, SQUARE_WEIGHT * u * u])


# The formula.

value = st.one_of(st.floats(-1, 1), st.just(math.nan), st.sampled_from([-1.0, 0.0, 1.0]))


@settings(max_examples=400, deadline=None)
@given(
    rows=st.integers(1, 5).flatmap(
        lambda d: st.tuples(*[st.lists(value, min_size=d, max_size=d)] * 2)
    )
)
def test_no_two_rows_beat_the_formula(rows):
    first, second = (contribution(np.array(row)) for row in rows)
    claimed = scales_sensitivity(len(rows[0]))
    assert np.linalg.norm(first - second) <= claimed * (1 + 1e-12)
    assert np.linalg.norm(first) <= claimed * (1 + 1e-12)


def test_the_weight_of_the_square_is_the_largest_at_which_ends_are_worst():
    """Exchanging u for u − t, both in [−1, 1], moves (Σu, cΣu²) by t²(1 + c²(2 − t)²): it increases
    to t = 2 just while c² ≤ 2.
    """

    def slope(t, c):
        return 2 * t * (1 + c * c * (2 - t) * (2 - 2 * t))

    def least(c):
        return minimize_scalar(lambda t: slope(t, c), bounds=(1.0, 2.0), method="bounded").fun

    assert least(SQUARE_WEIGHT) >= -1e-9
    assert least(SQUARE_WEIGHT * 1.01) < -1e-3


# The real code.


def change(study, first, second, others=None):
    """How far the weighted moments move, from the exact difference of whole numbers; None: the row
    is absent.
    """

    def sums(row):
        rows = [row for row in (row, others) if row is not None]
        return np.array(
            moments_of(study, [table(study, np.vstack(rows))] if rows else []), dtype=object
        )

    step = np.ldexp((sums(first) - sums(second)).astype(float), -STEP_BITS)
    return float(np.linalg.norm(step * WEIGHTS))


def candidates(study, rng, count=60):
    """Rows at ends, middles, anywhere, far outside, and with values missing; the response last."""
    width = len(study.features) + 1
    rows = rng.choice([-1.0, 1.0, 0.0, 0.5, 1e30, -1e30, 1 - 2**-18], (count, width))
    rows[: count // 2] = rng.uniform(-1.2, 1.2, (count // 2, width))
    rows[count // 3 : count // 2, :-1][rng.random((count // 2 - count // 3, width - 1)) < 0.5] = (
        np.nan
    )
    for sign, row in zip((1.0, -1.0), rows, strict=False):
        row[:] = sign
    rows[2, :] = np.nan
    for k, feature in enumerate(study.features):
        if feature.range is None:
            rows[:, k] = 0
    return rows


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("seed", range(8))
def test_the_real_code_reaches_the_sensitivity_and_never_exceeds_it(relation, seed):
    rng = np.random.default_rng(seed)
    study = make_study(
        1 + seed % 5, (3,) * (seed % 2), seed=seed, relation=relation, scales_share=0.1
    )
    claimed = study.scales_mechanism().sensitivity
    assert claimed == pytest.approx(2 * math.sqrt(1 + seed % 5), rel=1e-11)
    rows = candidates(study, rng, 24)
    pairs = product(rows, rows) if relation == "replace-one" else ((row, None) for row in rows)
    changes = [change(study, first, second) for first, second in pairs]
    assert 0.99 * claimed <= max(changes) <= claimed


def test_both_worst_exchanges_are_as_far_as_claimed():
    """From end to end, and from an end to missing: presence and the weight of the square cost
    nothing.
    """
    study = make_study(3, scales_share=0.1)
    claimed = study.scales_mechanism().sensitivity
    ends, missing = np.ones(4), np.full(4, np.nan)
    assert change(study, ends, -ends) == pytest.approx(claimed, rel=1e-9)
    assert change(study, ends, missing) == pytest.approx(claimed, rel=1e-9)
    others = np.random.default_rng(0).uniform(-2, 2, (50, 4))
    assert change(study, ends, -ends, others) == pytest.approx(claimed, rel=1e-9)


def test_a_column_with_a_typical_interval_is_not_paid_for():
    study = make_study(3, scales_share=0.1)
    stated = study.document()
    low, high = study.features[1].range
    stated["features"][1]["typical"] = [low, low + (high - low) / 3]
    fewer = type(study).from_document(stated)
    assert [feature.name for feature in fewer.scaled] == ["x0", "x2"]
    assert fewer.scales_mechanism().sensitivity == pytest.approx(2 * math.sqrt(2))


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_any_split_and_order_gives_the_same_bits(seed):
    rng = np.random.default_rng(seed)
    study = make_study(2, scales_share=0.1)
    rows = rng.normal(size=(int(rng.integers(1, 2 * BLOCK_ROWS)), 3))
    rows[rng.random(rows.shape) < 0.1] = np.nan
    cut = int(rng.integers(0, len(rows)))
    shuffled = rows[rng.permutation(len(rows))]
    whole = moments_of(study, [table(study, rows)])
    assert moments_of(study, [table(study, shuffled[:cut]), table(study, shuffled[cut:])]) == whole


def test_sums_of_extreme_rows_are_exact():
    study = make_study(1, scales_share=0.1)
    low, high = study.features[0].range
    rows = 3 * BLOCK_ROWS + 1
    batch = pa.record_batch(
        {"x0": np.where(np.arange(rows) % 3 == 0, low, high), "y": np.zeros(rows)}
    )
    ((count, total, square),) = moments_of(study, [batch])
    lows = -(-rows // 3)
    assert (count, total, square) == (
        rows << STEP_BITS,
        (rows - 2 * lows) << STEP_BITS,
        rows << STEP_BITS,
    )


# Noise and budget.


def test_the_noise_is_what_the_mechanism_says():
    """Whole release of no rows by the secure sampler: 3·170 draws, mean square within five standard
    errors.
    """
    study = make_study(170, scales_share=0.1, missing="drop")
    mechanism = study.scales_mechanism()
    release = privatise_scales(study, [(0, 0, 0)] * 170, Purpose("h"))
    draws = np.array([[column.count, column.total, column.square] for column in release.columns])
    ratio = np.mean(
        (draws / [mechanism.noise.count, mechanism.noise.total, mechanism.noise.square]) ** 2
    )
    assert abs(ratio - 1) < 5 * math.sqrt(2 / draws.size)
    assert not release.simulated
    steps = secure_noise([mechanism.noise.count], mechanism.lattice)
    assert abs(steps[0]) > 2 ** (LATTICE_BITS - 20)


def test_noise_over_sensitivity_is_the_lattices_multiplier():
    for columns, relation in product((1, 7, 512), RELATIONS):
        mechanism = calibrate_scales(columns, relation, 0.3, 1e-6)
        assert (
            mechanism.multiplier
            == lattice_multiplier(3 * columns, 0.3, 1e-6)
            >= 1 / mu_of(0.3, 1e-6)
        )
        weighted = [
            mechanism.noise.count,
            mechanism.noise.total,
            SQUARE_WEIGHT * mechanism.noise.square,
        ]
        assert min(weighted) >= mechanism.multiplier * scales_sensitivity(columns)
        assert mechanism.lattice <= math.log2(mechanism.noise.square) - LATTICE_BITS


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("delta", [1e-15, 1e-9, 1e-5, 1e-3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.3, 100.0])
def test_two_stages_are_one_budget_and_never_more(epsilon, delta, share):
    first, second = split(epsilon, delta, share)
    whole, spent = mu_of(epsilon, delta), [mu_of(first, delta), mu_of(second, delta)]
    assert compose(spent) <= whole
    assert compose(spent) == pytest.approx(whole, rel=1e-9)
    assert spent[0] ** 2 == pytest.approx(share * whole**2, rel=1e-9)


def test_a_stage_that_delta_alone_covers_has_no_epsilon():
    assert split(0.1, 0.1, 0.1) == (0.0, 0.0)
