"""Encoding against a slow, obvious reference, and what becomes of missing, odd and far-off values.

Covers `tacit.holder.encode`, `tacit.rows.design` and `tacit.rows.arrow`.
"""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from studies import agreed

from tacit.errors import TableError
from tacit.holder.encode import Diagnostics
from tacit.holder.statistics import statistics_of
from tacit.rows.table import table_of

STEP = 2.0**-18
SECRET = "SECRET7731"  # noqa: S105


def study_of(features, **changes):
    return agreed(features, **{"response": {"name": "y", "range": [0, 10]}} | changes)


NUMERIC = [{"name": "a", "range": [-1, 1]}]
MIXED = [
    {"name": "a", "range": [18, 100]},
    {"name": "g", "levels": ["u", "v", "w"]},
    {"name": "b", "range": [-3e-7, 5e-7]},
    {"name": "h", "levels": ["no", "yes"], "other": "unknown"},
    {"name": "c", "range": [1e6, 1e9]},
]


def statistics(study, columns, diagnostics=None):
    return statistics_of(study, table_of(columns, study).batches(), diagnostics=diagnostics)


def one_row(study, **values):
    """The encoded row (x, y) that a row of raw values becomes, read off its statistics."""
    gram = statistics(study, {name: [value] for name, value in values.items()}).gram
    return gram * STEP**2


# The reference.


def centred(value, bounds, typical=None):
    """Clamp to the range; then map the range, or what is typical, to [−1, 1]."""
    value = min(bounds[1], max(bounds[0], value))
    low, high = typical or bounds
    return (value - (low + high) / 2) / ((high - low) / 2)


def dummies(feature, level):
    if level not in feature.all_levels:
        level = feature.other
    return [float(level == other) for other in feature.all_levels[1:]]


def encode_row(study, row):
    """One row as whole multiples of the step, by the book."""
    if any(row[name] is None for name in row):
        return [0] * (study.d + 1)
    x = [1.0] if study.intercept else []
    for feature in study.features:
        x += (
            [centred(row[feature.name], feature.range, feature.typical)]
            if feature.range
            else dummies(feature, row[feature.name])
        )
    y = centred(row[study.response.name], study.response.range)
    norm = math.sqrt(sum(value * value for value in x))
    radius = (
        study.row_radius - math.sqrt(study.d) * STEP
    )  # a hair inside, so that rounding cannot leave the ball
    if study.row_radius < study.longest_row and norm > radius:
        x, y = [value * radius / norm for value in x], y * radius / norm
    bound = math.floor(study.response_bound / STEP) * STEP
    y = min(bound, max(-bound, y))
    return [round(value / STEP) for value in [*x, y]]


def reference(study, rows):
    """The sum of all products, in Python's own whole numbers."""
    size = study.d + 1
    gram = [[0] * size for _ in range(size)]
    for row in rows:
        encoded = encode_row(study, row)
        for i in range(size):
            for k in range(size):
                gram[i][k] += encoded[i] * encoded[k]
    return gram


def random_rows(count, seed):
    rng = np.random.default_rng(seed)

    def some(values):
        return [
            None if gone else value
            for value, gone in zip(values, rng.random(count) < 0.05, strict=True)
        ]

    return {
        "a": some(rng.normal(59, 30, count).tolist()),
        "g": some(rng.choice(["u", "v", "w"], count).tolist()),
        "b": some(rng.normal(0, 4e-7, count).tolist()),
        "h": some(rng.choice(["no", "yes", "perhaps"], count).tolist()),
        "c": some(np.exp(rng.normal(17, 2, count)).tolist()),
        "y": some(rng.normal(5, 4, count).tolist()),
    }


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    "form",
    [
        {},
        {"row_radius": 1.0},
        {"row_radius": 99.0},
        {"row_radius": 1.2, "response_bound": 0.3},
        {"response_bound": 1 / 3},
    ],
    ids=str,
)
def test_statistics_are_those_of_the_reference(intercept, form):
    study = study_of(MIXED, intercept=intercept, release=form)
    columns = random_rows(400, 11)
    rows = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    found = statistics(study, columns)
    assert found.n == 400
    assert found.gram.tolist() == reference(study, rows)


@pytest.mark.parametrize(
    "form", [{}, {"row_radius": 4.0}, {"row_radius": 1.2, "response_bound": 0.3}], ids=str
)
def test_statistics_with_typical_intervals_are_those_of_the_reference(form):
    typical = {"a": [40, 60], "b": [-1e-7, 1e-7], "c": [1e6, 3e7]}
    features = [
        feature | ({"typical": typical[feature["name"]]} if feature["name"] in typical else {})
        for feature in MIXED
    ]
    study = study_of(features, release=form)
    assert study.longest_row > 10
    columns = random_rows(400, 12)
    rows = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    assert statistics(study, columns).gram.tolist() == reference(study, rows)


def test_the_largest_entries_still_add_up_exactly():
    """Whole blocks of rows at the largest entry there can be, where a sum of squares comes nearest
    to 2⁵³.
    """
    study = study_of(
        [{"name": "a", "range": [-4, 4], "typical": [-1, 1]}],
        intercept=False,
        release={"row_radius": 4.0, "response_bound": 1.0},
    )
    count = 3 * 2**13 + 5
    gram = statistics(study, {"a": np.full(count, 4.0), "y": np.full(count, 10.0)}).gram
    single = reference(study, [{"a": 4.0, "y": 10.0}])
    assert gram.tolist() == [[count * value for value in line] for line in single]
    assert single[0][0] == 4**2 / STEP**2


def test_statistics_of_many_rows_are_exact_sums():
    """One row a hundred thousand times over: nothing may be rounded on the way."""
    study = study_of(MIXED)
    row = {"a": 91.7, "g": "w", "b": 4.2e-7, "h": "yes", "c": 3.3e8, "y": 1.9}
    columns = {
        name: pa.array([value]).take(pa.array(np.zeros(100_003, dtype=np.int64)))
        for name, value in row.items()
    }
    single = reference(study, [row])
    assert statistics(study, columns).gram.tolist() == [
        [100_003 * value for value in line] for line in single
    ]


# The bounds that the privacy proof rests on.


def test_no_row_leaves_the_ball_or_the_response_bound():
    rng = np.random.default_rng(2)
    features = [{"name": f"f{k}", "range": [-1, 1]} for k in range(40)]
    for radius in (1.0, 1.5, 3.0, 6.0):
        study = study_of(features, release={"row_radius": radius, "response_bound": 0.37})
        for scale in (1e-3, 0.3, 1.0, 1e6):
            row = {f"f{k}": float(scale * rng.standard_normal()) for k in range(40)}
            gram = statistics(
                study, {name: [value] for name, value in (row | {"y": 10.0}).items()}
            ).gram
            square = sum(Fraction(int(gram[k, k])) for k in range(41)) / 2**40
            assert square <= Fraction(radius) ** 2
            assert Fraction(int(gram[41, 41])) / 2**40 <= Fraction(0.37) ** 2


@pytest.mark.parametrize("radius", [1e-3, 0.01])
def test_the_smallest_radius_still_holds(radius):
    features = [{"name": f"f{k}", "range": [-1, 1]} for k in range(300)]
    study = study_of(features, intercept=False, release={"row_radius": radius})
    gram = statistics(study, {name: [0.9] for name in [*(f"f{k}" for k in range(300)), "y"]}).gram
    assert 0 < sum(Fraction(int(gram[k, k])) for k in range(300)) / 2**40 <= Fraction(radius) ** 2


@pytest.mark.parametrize("value", [1.0000001, 2, 1e30, 1.7e308, math.inf])
@pytest.mark.parametrize("sign", [1, -1])
def test_values_outside_the_range_are_clamped(value, sign):
    study = study_of(NUMERIC, intercept=False)
    assert np.array_equal(
        one_row(study, a=sign * value, y=5.0), one_row(study, a=sign * 1.0, y=5.0)
    )
    assert (
        np.array_equal(
            one_row(study, a=0.5, y=sign * value * 1e3),
            one_row(study, a=0.5, y=10.0 if sign > 0 else 0.0),
        )
        or value < 2
    )


def test_values_far_outside_a_narrow_range_do_not_overflow():
    study = study_of(
        [{"name": "a", "range": [-1e-140, 1e-140]}],
        intercept=False,
        response={"name": "y", "range": [0, 1e-140]},
    )
    assert np.array_equal(one_row(study, a=1.7e308, y=-1.7e308), one_row(study, a=1.0, y=-1.0))


def test_wide_ranges_do_not_overflow():
    study = study_of(
        [{"name": "a", "range": [-1e150, 1e150]}],
        intercept=False,
        release={"row_radius": 9.0, "response_bound": 1.0},
    )
    assert one_row(study, a=1e150, y=10.0)[0, 0] == 1.0


def test_the_diagnostics_count_what_was_done():
    study = study_of(MIXED, release={"row_radius": 1.0})
    diagnostics = Diagnostics()
    columns = {
        "a": [50.0, 10.0, None, 101.0],
        "g": ["u", "v", "u", None],
        "b": [0.0, 1.0, 0.0, 0.0],
        "h": ["no", "yes", "no", "no"],
        "c": [5e8] * 4,
        "y": [5.0, 5.0, 11.0, 5.0],
    }
    statistics(study, columns, diagnostics)
    assert (diagnostics.rows, diagnostics.incomplete) == (4, 2)
    assert {name: count for name, count in diagnostics.clamped.items() if count} == {
        "a": 2,
        "b": 1,
        "y": 1,
    }
    assert diagnostics.shrunk >= 2
    assert np.array_equal(
        statistics(study, columns).gram, statistics(study, columns, Diagnostics()).gram
    )


# Missing values.

MISSING = {
    "None": pa.array,
    "NaN": lambda values: np.array([np.nan if value is None else value for value in values]),
    "pandas NA": lambda values: pd.array(values, dtype="Float64"),
    "pandas object": lambda values: pd.Series(values, dtype=object),
    "Polars null": lambda values: pl.Series(values).to_arrow(),
    "decimal": lambda values: pa.array(
        [None if value is None else Decimal(str(value)) for value in values], pa.decimal128(9, 3)
    ),
    "float32": lambda values: pa.array(values, pa.float32()),
    "Arrow NaN": lambda values: pa.array(
        [math.nan if value is None else value for value in values]
    ),
}
VALUES = [0.5, None, -0.25, None]


@pytest.mark.parametrize("kind", MISSING)
@pytest.mark.parametrize("column", ["a", "y"])
def test_a_missing_number_makes_a_zero_row_that_still_counts(kind, column):
    study = study_of(NUMERIC)
    columns = {
        "a": [0.5, 0.1, -0.25, 0.2],
        "y": [1.0, 2.0, 3.0, 4.0],
        column: MISSING[kind](VALUES),
    }
    kept = {
        name: [column_[0], column_[2]] for name, column_ in columns.items() if name != column
    } | {column: [0.5, -0.25]}
    found = statistics(study, columns)
    assert found.n == 4
    assert np.array_equal(found.gram, statistics(study, kept).gram)


@pytest.mark.parametrize("kind", MISSING)
def test_a_missing_feature_is_imputed_at_the_middle_of_its_range(kind):
    study = study_of(NUMERIC, missing="impute")
    found = statistics(study, {"a": MISSING[kind](VALUES), "y": [1.0, 2.0, 3.0, 4.0]})
    assert np.array_equal(
        found.gram, statistics(study, {"a": [0.5, 0.0, -0.25, 0.0], "y": [1.0, 2.0, 3.0, 4.0]}).gram
    )


@pytest.mark.parametrize("kind", MISSING)
def test_a_missing_response_is_never_imputed(kind):
    study = study_of(NUMERIC, missing="impute")
    found = statistics(study, {"a": [0.1, 0.2, 0.3, 0.4], "y": MISSING[kind](VALUES)})
    assert found.n == 4
    assert np.array_equal(found.gram, statistics(study, {"a": [0.1, 0.3], "y": [0.5, -0.25]}).gram)


@pytest.mark.parametrize("kind", MISSING)
@pytest.mark.parametrize("column", ["a", "y"])
def test_missing_values_are_refused_where_the_study_says_so(kind, column):
    study = study_of(NUMERIC, missing="refuse")
    columns = {
        "a": [0.5, 0.1, -0.25, 0.2],
        "y": [1.0, 2.0, 3.0, 4.0],
        column: MISSING[kind](VALUES),
    }
    with pytest.raises(TableError, match="the table has missing values: fill them, or agree on"):
        statistics(study, columns)


@pytest.mark.parametrize("spelling", ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL"])
@pytest.mark.parametrize("row", ["{},u,1", "0.5,{},1", "0.5,u,{}"])
def test_spellings_of_missing_in_csv(tmp_path, spelling, row):
    study = study_of([*NUMERIC, {"name": "g", "levels": ["u", "v"]}])
    path = tmp_path / "table.csv"
    path.write_text("a,g,y\n0.5,v,1\n" + row.format(spelling) + "\n")
    found = statistics(study, path)
    assert found.n == 2
    assert np.array_equal(found.gram, one_row(study, a=0.5, g="v", y=1.0) / STEP**2)


def test_a_column_of_nothing_but_missing_values():
    study = study_of([*NUMERIC, {"name": "g", "levels": ["u", "v"]}])
    for columns in ({"a": pa.nulls(2), "g": ["u", "v"]}, {"a": [0.1, 0.2], "g": pa.nulls(2)}):
        found = statistics(study, columns | {"y": [1.0, 2.0]})
        assert found.n == 2
        assert not found.gram.any()


@pytest.mark.parametrize(("other", "taken"), [(None, "u"), ("v", "v"), ("rest", "rest")])
def test_a_missing_level_is_imputed_as_other_or_the_reference(other, taken):
    feature = {"name": "g", "levels": ["u", "v"]} | ({"other": other} if other else {})
    study = study_of([feature], missing="impute")
    found = statistics(study, {"g": pa.array([None]), "y": [1.0]})
    assert np.array_equal(found.gram, statistics(study, {"g": [taken], "y": [1.0]}).gram)


# Levels.


@pytest.mark.parametrize("seen", [SECRET, "U", "u u", "uu", "ü", "0"])
def test_an_unseen_level_is_refused_without_naming_it(seen):
    study = study_of([{"name": "g", "levels": ["u", "v"]}])
    with pytest.raises(TableError) as caught:
        statistics(study, {"g": ["u", seen, "v"], "y": [1.0] * 3})
    assert str(caught.value).startswith("column 'g' holds a level that the study does not list")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(("other", "columns"), [("v", ("g[v]",)), ("rest", ("g[v]", "g[rest]"))])
def test_other_takes_unseen_levels(other, columns):
    study = study_of([{"name": "g", "levels": ["u", "v"], "other": other}], intercept=False)
    assert study.columns == columns
    found = statistics(study, {"g": ["u", SECRET, other], "y": [1.0] * 3})
    assert np.array_equal(
        found.gram, statistics(study, {"g": ["u", other, other], "y": [1.0] * 3}).gram
    )


LEVELS = {
    "text": ["1", "0", None],
    "large text": pa.array(["1", "0", None], pa.large_string()),
    "text view": pa.array(["1", "0", None], pa.string_view()),
    "dictionary": pa.array(["1", "0", None]).dictionary_encode(),
    "dictionary of large text": pa.array(["1", "0", None], pa.large_string()).dictionary_encode(),
    "dictionary of numbers": pa.array([1, 0, None]).dictionary_encode(),
    "int8": pa.array([1, 0, None], pa.int8()),
    "int64": pa.array([1, 0, None], pa.int64()),
    "uint64": pa.array([1, 0, None], pa.uint64()),
    "float64": np.array([1.0, 0.0, np.nan]),
    "float32": pa.array([1.0, 0.0, None], pa.float32()),
    "float16": pa.array([np.float16(1), np.float16(0), None], pa.float16()),
    "pandas Int64": pd.array([1, 0, None], dtype="Int64"),
    "pandas string": pd.array(["1", "0", None], dtype="string"),
    "pandas categorical": pd.Categorical(["1", "0", None], categories=["x", "0", "1"]),
    "Polars text": pl.Series(["1", "0", None]),
    "Polars categorical": pl.Series(["1", "0", None], dtype=pl.Categorical),
    "Polars enum": pl.Series(["1", "0", None], dtype=pl.Enum(["0", "1"])),
}


def as_frame(column, response):
    """A table of the library that the column comes from."""
    if isinstance(column, pl.Series):
        return pl.DataFrame({"g": column, "y": response})
    if isinstance(column, (pd.Categorical, pd.api.extensions.ExtensionArray)):
        return pd.DataFrame({"g": column, "y": response})
    return {"g": column, "y": response}


@pytest.mark.parametrize("kind", LEVELS)
def test_levels_may_be_stored_in_many_ways(kind):
    study = study_of([{"name": "g", "levels": ["0", "1"]}])
    found = statistics(study, as_frame(LEVELS[kind], [1.0, 2.0, 3.0]))
    assert np.array_equal(found.gram, statistics(study, {"g": ["1", "0"], "y": [1.0, 2.0]}).gram)


@pytest.mark.parametrize(
    "column",
    [np.array([True, False]), pa.array([True, False]), pd.array([True, False], dtype="boolean")],
)
def test_booleans_are_the_levels_true_and_false(column):
    study = study_of([{"name": "g", "levels": ["false", "true"]}])
    found = statistics(study, {"g": column, "y": [1.0, 2.0]})
    assert np.array_equal(
        found.gram, statistics(study, {"g": ["true", "false"], "y": [1.0, 2.0]}).gram
    )


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"0"]),
        pa.array([["0"]]),
        pa.array([{"a": "0"}]),
        pa.array([0], pa.date32()),
        pa.array([Decimal(1)]),
    ],
)
def test_levels_of_another_kind_are_refused(column):
    study = study_of([{"name": "g", "levels": ["0", "1"]}])
    with pytest.raises(TableError, match="column 'g' must hold text, whole numbers or booleans"):
        statistics(study, {"g": column, "y": [1.0]})


# Numbers.

NUMBERS = {
    "int8": pa.array([1, 0, -1], pa.int8()),
    "int64": pa.array([1, 0, -1], pa.int64()),
    "float16": pa.array([np.float16(1), np.float16(0), np.float16(-1)], pa.float16()),
    "float32": pa.array([1, 0, -1], pa.float32()),
    "decimal128": pa.array([Decimal(1), Decimal(0), Decimal(-1)], pa.decimal128(30, 2)),
    "decimal256": pa.array([Decimal(1), Decimal(0), Decimal(-1)], pa.decimal256(60, 2)),
    "dictionary": pa.array([1.0, 0.0, -1.0]).dictionary_encode(),
    "NumPy strided": np.array([1.0, 9.0, 0.0, 9.0, -1.0])[::2],
    "pandas Int64": pd.array([1, 0, -1], dtype="Int64"),
    "list of int": [1, 0, -1],
    "chunks": pa.chunked_array([[1.0], [0.0, -1.0]]),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_may_be_stored_in_many_ways(kind):
    study = study_of(NUMERIC)
    found = statistics(study, {"a": NUMBERS[kind], "y": [1.0, 2.0, 3.0]})
    assert np.array_equal(
        found.gram, statistics(study, {"a": [1.0, 0.0, -1.0], "y": [1.0, 2.0, 3.0]}).gram
    )


@pytest.mark.parametrize(
    "column", [np.array([True, False]), pa.array([True, False]), pa.array([1, 0], pa.uint64())]
)
def test_booleans_and_unsigned_numbers_are_numbers(column):
    study = study_of(NUMERIC)
    found = statistics(study, {"a": column, "y": [1.0, 2.0]})
    assert np.array_equal(found.gram, statistics(study, {"a": [1.0, 0.0], "y": [1.0, 2.0]}).gram)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"1"]),
        pa.array([[1.0]]),
        pa.array([0], pa.date32()),
        pa.array([0], pa.duration("s")),
    ],
)
@pytest.mark.parametrize("name", ["a", "y"])
def test_a_numeric_column_of_another_kind_is_refused_without_quoting_it(column, name):
    study = study_of(NUMERIC)
    with pytest.raises(TableError) as caught:
        statistics(study, {"a": [1.0], "y": [1.0], name: column})
    assert str(caught.value) == f"column '{name}' must hold numbers, as the study gives it a range"


# The same bits in every split.

WIDE = [{"name": f"x{k}", "range": [-1, 1]} for k in range(23)]
WIDE_STUDY = study_of(
    WIDE,
    intercept=False,
    release={"row_radius": 1.0},
    response={"name": "y", "range": [-1, 1]},
)


def copies_of(row, count):
    columns = {f"x{k}": np.full(count, value) for k, value in enumerate(row)}
    return statistics(WIDE_STUDY, columns | {"y": np.full(count, 0.3)}).gram


def at_a_rounding_boundary(seed):
    """A long row whose first entry, once shrunk, is a rounding error away from a tie."""
    row = np.random.default_rng(seed).uniform(-1, 1, len(WIDE))
    low, high = 0.3, 0.3001

    def product_at(value):
        return copies_of([value, *row[1:]], 1)[0, -1]

    below = product_at(low)
    while np.nextafter(low, high) < high:
        middle = (low + high) / 2
        low, high = (middle, high) if product_at(middle) == below else (low, middle)
    return low, row[1:]


@pytest.mark.parametrize("seed", range(24))
def test_a_row_has_the_same_bits_whichever_rows_stand_beside_it(seed):
    """A library's sum of squares adds a single row in another order; some of these show it."""
    first, others = at_a_rounding_boundary(seed)
    for _ in range(3):
        first = np.nextafter(first, 0)
    for _ in range(7):
        alone = copies_of([first, *others], 1)
        for count in (2, 3, 17):
            assert np.array_equal(count * alone, copies_of([first, *others], count))
        first = np.nextafter(first, 1)


def test_any_split_of_constructed_rows_gives_the_same_statistics():
    rows = []
    for seed in range(6):
        first, others = at_a_rounding_boundary(seed)
        rows.append([first, *others, 0.3])
    table = np.array(rows * 3)
    whole = statistics(WIDE_STUDY, table)
    for size in (1, 2, 5, len(table)):
        parts = [statistics(WIDE_STUDY, table[k : k + size]) for k in range(0, len(table), size)]
        assert np.array_equal(sum(parts[1:], parts[0]).gram, whole.gram)
