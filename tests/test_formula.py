"""Formulas: what they span, against Formulaic's own design, their coefficients, what is refused.

Covers `tacit.study.formula`, `tacit.study.grammar`, `tacit.study.factors`, `tacit.study.coding`,
`tacit.study.terms`, `tacit.study.expansion`,
`tacit.study.transforms`.
"""

import math
import subprocess
import sys
import time
import tomllib
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from formulaic import model_matrix
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import tacit
from tacit.analyst.methods import method_named
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.posterior.units import user_units
from tacit.analyst.report import report
from tacit.errors import StudyError
from tacit.plan import forecast
from tacit.rows.design import Design
from tacit.simulation import exact, simulate
from tacit.study import Study
from tacit.study.toml import study_toml
from tacit.study.transforms import FUNCTIONS

COLUMNS = {
    "days": (1, 30),
    "age": (18, 100),
    "bmi": (10, 60),
    "income": (100, 1e6),
    "sex": ["female", "male"],
    "ward": ["a", "b", "c"],
}
BUDGET = {"epsilon": 1.0, "delta": 1e-6}
FORMULAS = [
    "days ~ age + sex + age:sex + poly(bmi, 2)",
    "days ~ .",
    "days ~ age * sex * bmi",
    "days ~ (age + bmi + ward)**2 - age:bmi",
    "days ~ 0 + age",
    "days ~ sex + age - 1",
    "days ~ 0 + sex:age",
    "days ~ age:sex",
    "days ~ age:bmi",
    "days ~ sex:ward",
    "days ~ 0 + C(ward) + C(sex) + {bmi**2}",
    "days ~ age + I(age**3)",
    "days ~ log(income) * sex + sqrt(bmi) + log1p(age) + I(age * bmi)",
    "days ~ np.log10(income) + log2(bmi) + income",
    "days ~ exp(bmi) + bmi",
    "days ~ poly(age, 3):sex + sex",
    "days ~ poly(log(income), degree=2) + age/ward",
    "log(days) ~ age + poly(bmi, 4)",
    "days ~ 1",
]


def study_of(formula, columns=COLUMNS, **fields):
    named = {
        name: column for name, column in columns.items() if name in formula or "~ ." in formula
    }
    return Study.from_formula(formula, named, **BUDGET | fields)


def rows(seed, count=300):
    rng = np.random.default_rng(seed)
    frame = {
        name: rng.uniform(*column, count)
        for name, column in COLUMNS.items()
        if isinstance(column, tuple)
    }
    frame |= {
        name: rng.choice(column, count)
        for name, column in COLUMNS.items()
        if isinstance(column, list)
    }
    return pd.DataFrame(frame)


def formulaic_design(formula, frame):
    """Formulaic's design, and its response."""
    frame = frame.assign(
        **{name: pd.Categorical(frame[name], categories=COLUMNS[name]) for name in ("sex", "ward")}
    )
    context = {name: function.forward for name, function in FUNCTIONS.items()}
    both = model_matrix(formula, frame, context=context)
    return np.asarray(both.rhs, dtype=float), np.asarray(both.lhs, dtype=float)[:, 0]


def our_design(study, frame):
    batch = pa.RecordBatch.from_pandas(frame, preserve_index=False)
    return np.hstack(list(Design(study, response=False).blocks(batch, 1000))).T


def same_space(first, second):
    """Two designs have the same columns up to a linear map, by what each leaves of the other."""
    first, second = (design / np.linalg.norm(design, axis=0) for design in (first, second))
    assert (
        np.linalg.matrix_rank(first)
        == np.linalg.matrix_rank(second)
        == first.shape[1]
        == second.shape[1]
    )
    for one, other in ((first, second), (second, first)):
        left = other - one @ np.linalg.lstsq(one, other)[0]
        assert np.abs(left).max() < 1e-7


# What a formula spans.


@pytest.mark.parametrize("formula", FORMULAS)
def test_the_design_spans_what_formulaics_does(formula):
    frame = rows(1)
    same_space(our_design(study_of(formula), frame), formulaic_design(formula, frame)[0])


def random_formula(rng):
    """Sums of products, in all of which main effects may be missing."""
    atoms = ["age", "bmi", "sex", "ward", "log(income)", "C(sex)", "I(bmi**2)", "sqrt(age)"]
    terms = [
        ":".join(rng.choice(atoms, rng.integers(1, 4), replace=False))
        for _ in range(rng.integers(1, 5))
    ]
    kept = [
        term for term in terms if not ("sex" in term.replace("C(sex)", "") and "C(sex)" in term)
    ]
    return f"days ~ {'0' if rng.random() < 0.4 else '1'} + {' + '.join(kept or ['age'])}"


@pytest.mark.parametrize("seed", range(40))
def test_random_formulas_span_what_formulaics_do(seed):
    formula = random_formula(np.random.default_rng(seed))
    if "C(sex)" in formula and "sex" in formula.replace("C(sex)", ""):
        formula = formula.replace(
            "C(sex)", "sex"
        )  # to Formulaic they are two columns, and its design then is not of full rank
    frame = rows(seed, 600)
    same_space(our_design(study_of(formula), frame), formulaic_design(formula, frame)[0])


@pytest.mark.parametrize("formula", FORMULAS)
def test_users_units_predict_what_the_encoded_columns_do(formula):
    """The matrix of units takes encoded columns to the formula's own: X̃θ = Xβ, to rounding."""
    study, frame = study_of(formula), rows(2)
    units = user_units(study)
    assert not any("implied" in name for name in units.names)
    theta = np.random.default_rng(0).normal(size=study.d)
    raw = np.column_stack([column(name, frame) for name in units.names])
    centre, half = study.response.mapping
    assert_allclose(
        raw @ (units.matrix @ theta + units.offset),
        centre + half * (our_design(study, frame) @ theta),
        rtol=1e-6,
        atol=1e-6,
    )


def column(name, frame):
    """A raw column by its name in the user's units."""
    found = np.ones(len(frame))
    for factor in [] if name == "(intercept)" else name.split(":"):
        variable, _, power = factor.partition("^")
        base, _, level = variable.partition("[")
        if level:
            values = (frame[base] == level.removesuffix("]")).to_numpy(float)
        elif "(" in base:
            function, _, inner = base.partition("(")
            values = FUNCTIONS[function].forward(frame[inner.removesuffix(")")].to_numpy())
        else:
            values = frame[base].to_numpy()
        found = found * values ** int(power or 1)
    return found


@pytest.mark.parametrize(
    ("formula", "same"),
    [
        ("days ~ I(age^2) + age", "days ~ age + I(age**2)"),
        ("days ~ (age + bmi)^2", "days ~ age * bmi"),
        ("days ~ `age` + C(sex) + sex", "days ~ age + sex"),
        ("days ~ poly(age, 2, raw = TRUE)", "days ~ poly(age, degree=2, raw=False)"),
        ("days ~ age + 0 + 1", "days ~ age"),
        ("days ~ -1 + age", "days ~ age - 1"),
        ("days ~ age:bmi:age", "days ~ age:bmi"),
        ("days ~ (age + bmi)/ward", "days ~ age + bmi + age:bmi:ward"),
        ("days ~ age*bmi*sex - age:bmi:sex", "days ~ (age + bmi + sex)**2"),
    ],
)
def test_two_ways_to_write_the_same(formula, same):
    one, other = (study_of(text, name="same").document() for text in (formula, same))
    for document in (one, other):
        document["terms"] = sorted(map(str, document.get("terms", [])))
        document["features"] = sorted(map(str, document["features"]))
    assert one == other


def test_a_name_in_backticks_may_be_anything_that_a_column_may_be_called():
    columns = {"length of stay": (0, 1), "a:b + c": (0, 1), "sin(x)": ["f", "m"], "é": (0, 1)}
    formula = "`length of stay` ~ `a:b + c` * `sin(x)` + é"
    study = Study.from_formula(formula, columns, **BUDGET)
    assert study.response.name == "length of stay"
    assert [feature.name for feature in study.features] == ["a:b + c", "sin(x)", "é"]


# Coefficients.


@pytest.mark.parametrize("formula", [formula for formula in FORMULAS if "exp" not in formula])
def test_without_noise_coefficients_are_those_of_least_squares(formula):
    """Exact statistics, a flat prior, no shrinking: the mean is `lm` on the raw columns.

    In the user's units, and to the grid's rounding.
    """
    study, frame = study_of(formula, release={"row_radius": 30.0}), rows(3, 4000)
    raw = np.column_stack([column(name, frame) for name in user_units(study).names])
    rng = np.random.default_rng(4)
    half = study.response.mapping[1]
    design = our_design(study, frame)
    centre = study.response.mapping[0] + half * design @ (
        rng.normal(size=study.d) * 0.15 / math.sqrt(study.d)
    )
    response = np.clip(centre + 0.05 * half * rng.normal(size=len(frame)), *sorted(_image(study)))
    frame["days"] = (
        response
        if study.response.function is None
        else FUNCTIONS[study.response.function].inverse(response)
    )
    evidence = exact(study, pa.Table.from_pandas(frame, preserve_index=False))
    prior = tacit.Prior(
        np.zeros(study.d), 1e10 * np.eye(study.d), 2.0, 0.1, np.eye(study.d), study.d + 2.0
    )
    posterior = Posterior(
        study, "non-private", method_named("non-private").fit(evidence, prior, tacit.Settings()), ()
    )
    scale = np.abs(raw).max(axis=0)
    expected = np.linalg.lstsq(raw / scale, response)[0] / scale
    found = posterior.mean()
    fitted = raw @ expected
    assert_allclose(raw @ found, fitted, atol=2e-4 * half)
    assert_allclose(found * scale, expected * scale, atol=2e-3 * half * np.linalg.cond(raw / scale))
    assert_allclose(found, expected, rtol=0.02, atol=1e-3 * np.abs(posterior.sd()).max())


def _image(study):
    low, high = study.response.range
    return (
        (low, high)
        if study.response.function is None
        else tuple(FUNCTIONS[study.response.function].forward(np.array([low, high])))
    )


def test_private_coefficients_cover_those_of_the_raw_formula():
    """Three holders at epsilon 2: each raw coefficient lies within 4 posterior sds.

    A calibrated posterior misses that once in 2,500.
    """
    study = study_of("days ~ age * sex + poly(bmi, 2)", epsilon=2.0)
    truth = {
        "(intercept)": 4.0,
        "age": 0.1,
        "sex[male]": 3.0,
        "bmi": 0.4,
        "bmi^2": -0.005,
        "age:sex[male]": -0.05,
    }
    releases = []
    for seed in range(3):
        frame = rows(seed, 20_000)
        frame["days"] = sum(value * column(name, frame) for name, value in truth.items())
        frame["days"] += np.random.default_rng(seed).normal(size=len(frame))
        releases.append(simulate(study, frame, np.random.default_rng(seed), holder=str(seed)))
    posterior = tacit.fit(tacit.collect(releases, allow_simulated=True))
    assert posterior.names() == ("(intercept)", "age", "sex[male]", "bmi", "bmi^2", "age:sex[male]")
    assert (
        np.abs(posterior.mean() - [truth[name] for name in posterior.names()]) / posterior.sd()
    ).max() < 4
    assert posterior.sd()[1] < 0.1


def test_predictions_and_reports_of_a_formula():
    """Both follow the encoded columns, in the units of log(days)."""
    study, frame = study_of("log(days) ~ age * sex + poly(bmi, 2)", epsilon=5.0), rows(1, 20_000)
    posterior = tacit.fit(
        tacit.collect(
            [simulate(study, frame, np.random.default_rng(0), holder="north")], allow_simulated=True
        )
    )
    raw = np.column_stack([column(name, frame[:5]) for name in posterior.names()])
    found = posterior.predict(frame[:5].drop(columns="days"))
    assert_allclose(found["mean"].to_numpy(), raw @ posterior.mean(), rtol=1e-6)
    assert "of log(days)" in str(posterior.summary())
    assert len(posterior.units("contrast").names) == study.d - 1
    assert "How the logarithm of days goes with age, sex and bmi" in report(posterior)


def test_a_study_by_hand_says_what_centring_implies():
    """A centred product without its main effects: what it adds to them is named.

    Predictions in either units agree.
    """
    document = study_of("days ~ age + sex + age:bmi").document() | {
        "terms": [{"product": ["age", "bmi"]}, {"product": ["sex"]}]
    }
    study = Study.from_document(document)
    units = user_units(study)
    assert units.names == (
        "(age, implied)",
        "(bmi, implied)",
        "(intercept)",
        "age:bmi",
        "sex[male]",
    )
    frame, theta = rows(5), np.array([0.1, 0.2, 0.3])
    raw = np.column_stack(
        [
            column(
                name.strip("()").removesuffix(", implied").replace("intercept", "(intercept)"),
                frame,
            )
            for name in units.names
        ]
    )
    assert_allclose(
        raw @ (units.matrix @ theta + units.offset), 15.5 + 14.5 * our_design(study, frame) @ theta
    )


# The study.


def test_a_formula_of_plain_columns_is_the_plain_study():
    study = Study.from_formula(
        "days ~ age + sex", {"days": (1, 30), "age": (18, 100), "sex": ["female", "male"]}, **BUDGET
    )
    assert study.terms == ()
    features = [{"name": "age", "range": [18, 100]}, {"name": "sex", "levels": ["female", "male"]}]
    by_hand = {
        "name": "days ~ age + sex",
        "response": {"name": "days", "range": [1, 30]},
        "features": features,
    } | BUDGET
    assert study.hash == Study.from_document(by_hand).hash


@pytest.mark.parametrize("formula", FORMULAS)
def test_the_study_survives_its_file_and_its_release(formula):
    study = study_of(formula)
    assert Study.from_toml(study_toml(study)).hash == study.hash == study.resolved().hash
    release = simulate(study, rows(0, 50), np.random.default_rng(0), holder="north")
    assert tacit.Release.from_json(release.to_json()).study.terms == study.terms


def test_terms_read_as_what_they_are():
    study = study_of("days ~ age * sex + log(income) + poly(bmi, 2)")
    assert study.document()["terms"] == [
        {"product": ["age"]},
        {"product": ["sex"]},
        {"product": [{"of": "income", "function": "log"}]},
        {"product": ["bmi"]},
        {"product": [{"of": "bmi", "degree": 2}]},
        {"product": ["age", "sex"]},
    ]
    assert study.columns == (
        "(intercept)",
        "age",
        "sex[male]",
        "log(income)",
        "bmi",
        "legendre(bmi, 2)",
        "age:sex[male]",
    )


def test_the_terms_of_the_documentation_are_a_study():
    page = (
        (Path(__file__).parents[1] / "docs" / "study.md")
        .read_text(encoding="utf-8")
        .split("## Formulas")[1]
    )
    terms = tomllib.loads(page.split("```toml")[1].split("```")[0])
    study = Study.from_document(study_of("days ~ age + sex + bmi + income").document() | terms)
    assert study.columns == (
        "(intercept)",
        "age",
        "age:sex[male]",
        "legendre(bmi, 2)",
        "log(income):sex[male]",
    )


def test_columns_may_state_everything_that_a_feature_may():
    columns = {
        "days": (1, 30),
        "age": {"range": [0, 120], "typical": [20, 80]},
        "ward": {"levels": ["a", "b"], "other": "elsewhere"},
    }
    study = Study.from_formula(
        "days ~ age * ward", columns, name="mine", relation="add-remove", missing="impute", **BUDGET
    )
    assert study.features[0].typical == (20, 80)
    assert (study.name, study.relation, study.missing) == ("mine", "add-remove", "impute")
    assert study.columns[-1] == "age:ward[elsewhere]"


def test_a_typical_interval_makes_polynomials_grow_and_says_how_far():
    columns = {"days": (1, 30), "rain": {"range": [0, 10], "typical": [0, 2]}}
    study = Study.from_formula("days ~ poly(rain, 2)", columns, **BUDGET)
    assert study.products[1].size == pytest.approx((3 * 81 - 1) / 2)  # P_2 at (10 − 1)/1 = 9
    design = our_design(
        study, pd.DataFrame({"rain": [0.0, 1.0, 2.0, 10.0, 1e300, -1e300, math.inf]})
    )
    assert_allclose(design[:, 2], [1, -0.5, 1, 121, 121, 1, 121])


def test_a_missing_value_is_imputed_before_terms_are_built():
    study = study_of("days ~ age * sex + log(income)", missing="impute")
    whole = our_design(
        study, pd.DataFrame({"age": [59.0], "sex": ["female"], "income": [500_050.0]})
    )
    holed = our_design(study, pd.DataFrame({"age": [np.nan], "sex": [None], "income": [np.nan]}))
    assert_allclose(whole, holed)
    dropped = our_design(
        study_of("days ~ age:sex + age"),
        pd.DataFrame({"age": [np.nan, 20.0], "sex": ["female", None]}),
    )
    assert np.isnan(dropped[:, 2:]).all()


def test_no_formula_needs_another_package():
    code = """
import sys
sys.modules["formulaic"] = None
sys.modules["pandas"] = None
import tacit
columns = {"days": (0, 1), "age": (0, 1), "sex": ["f", "m"]}
print(tacit.Study.from_formula("days ~ age * sex", columns, epsilon=1.0, delta=1e-6).d)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "4\n"


def test_a_formula_can_be_planned():
    study = study_of("log(days) ~ age * sex + poly(bmi, 2) + log(income)")
    few, many = (forecast(study, [count], [1.0])[0] for count in (2_000, 50_000))
    assert many.names == (
        "(intercept)",
        "age",
        "sex[male]",
        "bmi",
        "bmi^2",
        "log(income)",
        "age:sex[male]",
    )
    assert (many.scaled_widths < few.scaled_widths).all()


def test_terms_follow_the_typical_intervals_of_a_second_stage():
    """A study that an earlier version made of private scales is read, published and fitted."""
    columns = {"days": (1, 30), "income": (1, 1e6), "age": (0, 1000), "sex": ["female", "male"]}
    study = Study.from_formula(
        "days ~ age * sex + poly(age, 3) + log(income)",
        columns,
        **BUDGET | {"epsilon": 5.0},
    )
    document = study.document() | {"stage_one": "sha256:" + "ab" * 32}
    for feature in document["features"]:
        feature["typical"] = [20.0, 110.0] if feature["name"] == "age" else None
    document["release"] = {}
    second = Study.from_document(document)
    frame = rows(0, 20_000)
    [cubic] = [product for product in second.products if product.columns == ("legendre(age, 3)",)]
    assert cubic.size > 100
    release = simulate(second, frame, np.random.default_rng(1), holder="north")
    assert (
        tacit.fit(tacit.collect([release], allow_simulated=True)).names() == user_units(study).names
    )


# Refusals.

NOT_SUPPORTED = "is not supported; a formula is made of columns, C(column), poly(column, degree)"
REFUSED = [
    ("days ~ center(age)", f"formula: 'center(age)' {NOT_SUPPORTED}"),
    ("days ~ bs(age, 3)", f"formula: 'bs(age, 3)' {NOT_SUPPORTED}"),
    ("days ~ age + I(age / bmi)", f"formula: 'I(age / bmi)' {NOT_SUPPORTED}"),
    ("days ~ I(age**0.5)", f"formula: 'I(age**0.5)' {NOT_SUPPORTED}"),
    ("days ~ poly(age, 99)", f"formula: 'poly(age, 99)' {NOT_SUPPORTED}"),
    ("days ~ poly(sex, 2)", f"formula: 'poly(sex, 2)' {NOT_SUPPORTED}"),
    ("days ~ C(age)", f"formula: 'C(age)' {NOT_SUPPORTED}"),
    ("days ~ log(sex)", f"formula: 'log(sex)' {NOT_SUPPORTED}"),
    ("days ~ sin(age)", f"formula: 'sin(age)' {NOT_SUPPORTED}"),
    (
        "days ~ {print('seen') or age}",
        'formula: "days ~ {print(\'seen\') or age}" cannot be read: "\'" has no meaning there',
    ),
    ("days ~ (0 + age):bmi", "formula: 0 leaves the intercept out, and stands outside parenth"),
    ("days ~ age^9", "formula: 'age^9' must have a power from 1 to 8"),
    ("days ~ age**9999999999", "formula: 'age**9999999999' must have a power from 1 to 8"),
    ("days ~ I(age**9999999999)", f"formula: 'I(age**9999999999)' {NOT_SUPPORTED}"),
    ("days ~ age^2^3", "formula: 'days ~ age^2^3' cannot be read: a power of a power needs"),
    ("days ~ age %in% sex", "formula: 'days ~ age %in% sex' cannot be read: '%' has no meaning"),
    ("days ~ poly(age, 2, raw=print)", f"formula: 'poly(age, 2, raw=print)' {NOT_SUPPORTED}"),
    ("days ~ poly(age, 2, 3)", f"formula: 'poly(age, 2, 3)' {NOT_SUPPORTED}"),
    ("days ~ age bmi", "formula: 'days ~ age bmi' cannot be read: 'bmi' has no meaning there"),
    ("days ~ age +", "formula: 'days ~ age +' cannot be read: a column is missing before its end"),
    ("days ~ `no such`", "formula: 'no such' is not among the columns, which are days: give it"),
    (
        "days ~ height",
        "formula: 'height' is not among the columns, which are days: give it a range or levels",
    ),
    ("days ~ 2:age", "formula: '2:age' scales a term by a number"),
    ("days ~ days + age", "formula: 'days' stands on both sides"),
    ("poly(days, 2) ~ age", "formula: the response 'poly(days, 2)' is not supported"),
    ("sex ~ age", "formula: the response 'sex' must have a range, not levels"),
    ("days + age ~ bmi", "formula: 'days + age ~ bmi' must have one response"),
    ("age", "formula: 'age' cannot be read: write it as 'response ~ terms'"),
    ("days ~ age | sex", "formula: 'days ~ age | sex' cannot be read"),
    ("days ~ log(age", "formula: 'days ~ log(age' cannot be read: ')' is missing before"),
    ("days ~ 0", "the document: the study must encode to between 1 and 512 columns"),
]


@pytest.mark.parametrize(("formula", "sentence"), REFUSED)
def test_each_unsupported_formula_is_refused_in_one_sentence(formula, sentence, capsys):
    with pytest.raises(StudyError) as caught, warnings.catch_warnings():
        study_of(formula)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)
    assert capsys.readouterr().out == ""  # nothing that was not understood was run


@pytest.mark.parametrize(
    ("formula", "columns", "sentence"),
    [
        (
            "log(y) ~ x",
            {"y": (0, 1), "x": (0, 1)},
            "response: log(y) needs a range above 0: change the range of 'y', or the function",
        ),
        (
            "y ~ log(x)",
            {"y": (0, 1), "x": (0, 1)},
            "formula: log(x) needs a range above 0: change the range of 'x', or the function",
        ),
        (
            "y ~ sqrt(x)",
            {"y": (0, 1), "x": (-1, 1)},
            "formula: sqrt(x) needs a range at or above 0: change the range of 'x'",
        ),
        (
            "y ~ exp(x)",
            {"y": (0, 1), "x": (0, 1e4)},
            "formula: exp(x) needs a range above -300 and at most 300",
        ),
        (
            "y ~ x",
            {"y": (0, 1), "x": (0, 1), "z": (0, 1)},
            "columns: 'z' is not in the formula: remove it, or add it there",
        ),
        (
            "y ~ x",
            {"y": (0, 1), "x": (1, 0)},
            "columns.x.the document: range must be [low, high] with low clearly below high",
        ),
        ("y ~ x", {"y": (0, 1), "x": "ab"}, "columns.x.range: "),
        (
            "y ~ x",
            {"y": (0, 1), "x": ["a"]},
            "columns.x.the document: levels must be at least two different names",
        ),
    ],
)
def test_columns_that_do_not_fit_are_refused_in_one_sentence(formula, columns, sentence):
    with pytest.raises(StudyError) as caught:
        Study.from_formula(formula, columns, **BUDGET)
    assert str(caught.value).startswith(sentence)


TERMS = [
    ([{"product": []}], "terms.entry 1.product: must not be empty"),
    (
        [{"product": ["age"]}],
        "the document: terms: 'sex' is in no term: use it in one, or remove it",
    ),
    (
        [{"product": ["age", "sex"]}, {"product": ["bmi"]}],
        "the document: terms: 'bmi' is in a term but is no feature: add it to them",
    ),
    (
        [{"product": ["age", "sex"]}, {"product": ["age", "sex"]}],
        "the document: terms: 'age:sex[male]' is there twice",
    ),
    (
        [{"product": ["sex", "sex", "age"]}],
        "the document: a term must not hold 'sex' twice: it has levels",
    ),
    (
        [{"product": ["sex", {"of": "age", "degree": 9}]}],
        "terms.entry 1.product.entry 2.degree: must be at most 8",
    ),
    (
        [{"product": [{"of": "sex", "degree": 2}, "age"]}],
        "the document: 'sex' has levels: a function, a degree or centred goes with a range",
    ),
    (
        [{"product": ["sex", {"of": "age", "every_level": True}]}],
        "the document: 'age' has a range: every_level goes with levels",
    ),
    (
        [{"product": ["sex", {"of": "age", "function": "tan"}]}],
        "terms.entry 1.product.entry 2.function: must be 'log'",
    ),
    (
        [{"product": ["age", {"of": "sex", "unit": 1}]}],
        "terms.entry 1.product.entry 2.unit: no such field in terms",
    ),
]


@pytest.mark.parametrize(("terms", "sentence"), TERMS)
def test_terms_that_make_no_sense_are_refused_in_one_sentence(terms, sentence):
    document = study_of("days ~ age + sex").document() | {"terms": terms}
    with pytest.raises(StudyError) as caught:
        Study.from_document(document)
    assert str(caught.value).startswith(sentence)


def test_a_product_of_many_levels_is_refused_before_its_names_are_made():
    features = [{"name": f"g{k}", "levels": [str(level) for level in range(300)]} for k in range(6)]
    document = study_of("days ~ age").document() | {
        "features": features,
        "terms": [{"product": [f["name"] for f in features]}],
    }
    with pytest.raises(StudyError, match="between 1 and 512 columns"):
        Study.from_document(document)


def test_a_polynomial_that_would_overflow_is_refused():
    columns = {"y": (0, 1), "x": {"range": [0, 1e6], "typical": [0, 200]}}
    with pytest.raises(
        StudyError, match=r"the term 'legendre\(x, 3\)' grows too large outside typical intervals"
    ):
        Study.from_formula("y ~ poly(x, 8)", columns, **BUDGET)


# Hostile texts.

CODE = [
    "__import__('os').system('touch seen')",
    '__import__("os").system("touch seen")',
    "open('seen', 'w')",
    "exec(chr(112))",
    "().__class__.__bases__[0].__subclasses__()",
    "lambda: 0",
    "[x for x in ()]",
    "x if x else x",
    "age.__class__",
    "f'{age}'",
    "eval(`age`)",
    "getattr(age, 'x')()",
    "(yield)",
    "age := 3",
    "@age",
    "age; import os",
    "age\\\nage",
    "np.load(age)",
    "numpy.exp.outer(age)",
]
SHAPES = [
    "{code}",
    "days ~ {code}",
    "{code} ~ age",
    "days ~ I({code})",
    "days ~ {{{code}}}",
    "days ~ poly(age, 2, raw={code})",
    "days ~ poly(age, {code})",
    "days ~ poly({code}, 2)",
    "days ~ log({code})",
    "days ~ C({code})",
    "days ~ age + `{code}`",
    "days ~ age ** {code}",
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("code", CODE)
def test_code_is_refused_and_not_run(shape, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StudyError) as caught:
        Study.from_formula(shape.format(code=code), COLUMNS, **BUDGET)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", CODE)
def test_a_column_named_like_code_is_a_name_and_nothing_more(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = f"I({code})".replace("\n", "").replace("`", "")
    columns = {"days": (0, 1), name: (0, 1)}
    study = Study.from_formula(f"days ~ `{name}`", columns, **BUDGET)
    assert [feature.name for feature in study.features] == [name]
    with pytest.raises(StudyError):
        Study.from_formula(f"days ~ {name}", columns, **BUDGET)
    assert list(tmp_path.iterdir()) == []


PIECES = st.sampled_from(
    [
        *("days", "age", "bmi", "sex", "ward", "~", "+", "-", "*", "/", ":", "^", "**", "(", ")"),
        *(
            "{",
            "}",
            ",",
            "=",
            ".",
            "0",
            "1",
            "2",
            "8",
            "9",
            "1e9",
            "99999999999999999999",
            "`",
            " ",
        ),
        *("poly(", "log(", "I(", "C(", "np.log(", "degree=", "raw=", "TRUE", "`age`", "%in%", "|"),
        *CODE,
    ]
)


@settings(max_examples=400, deadline=None, derandomize=True, database=None)
@given(st.one_of(st.lists(PIECES, max_size=30).map("".join), st.text(max_size=60)))
def test_any_text_is_a_study_or_one_sentence(text):
    """Nothing but a study or Tacit's own error comes of it, within a second."""
    for formula in (text, f"days ~ {text}"):
        begun = time.process_time()
        with suppress(StudyError):
            assert Study.from_formula(formula, COLUMNS, **BUDGET).d <= 512
        assert time.process_time() - begun < 2


@pytest.mark.parametrize("formula", ["days ~ age * sex", "days ~ ."])
def test_further_responses_are_in_no_term(formula):
    columns = {"days": (0, 30), "cost": (0, 2000), "age": (18, 100), "sex": ["f", "m"]}
    study = Study.from_formula(formula, columns, responses=["days", "cost"], **BUDGET)
    assert study.responses == ("days", "cost")
    assert not any("cost" in column for column in study.columns)
    with pytest.raises(StudyError, match="'cost' is not in the formula"):
        Study.from_formula("days ~ age * sex", columns, **BUDGET)
    missing = {name: columns[name] for name in ("days", "age", "sex")}
    with pytest.raises(StudyError, match="responses"):
        Study.from_formula(formula, missing, responses=["days", "cost"], **BUDGET)


@pytest.mark.parametrize(
    ("formula", "sentence"),
    [
        ("days ~ " + "age + " * 3000 + "bmi", "it is longer than 5,000 letters"),
        ("days ~ " + "(" * 900 + "age" + ")" * 900, "nested more than 30 deep"),
        ("days ~ " + "I(" * 900 + "age" + ")" * 900, "nested more than 30 deep"),
        ("days ~ (" + "+".join(f"x{k}" for k in range(60)) + ")^8", "more than"),
        ("days ~ " + "*".join(f"x{k}" for k in range(60)), "multiplies more than 6 columns"),
        ("days ~ " + ":".join(f"poly(x{k}, 8)" for k in range(6)), "more than 512 terms"),
        ("days ~ " + "*".join(f"poly(x{k}, 8)" for k in range(6)), "more than 512 terms"),
    ],
    ids=["long", "nested", "calls", "powers", "products", "polynomials", "crossed"],
)
def test_a_formula_that_would_explode_is_refused_first(formula, sentence):
    columns = {"days": (0, 1), "age": (0, 1), "bmi": (0, 1)}
    columns |= {f"x{k}": (0, 1) for k in range(60)}
    begun = time.process_time()
    with pytest.raises(StudyError, match=sentence):
        Study.from_formula(formula, columns, **BUDGET)
    assert time.process_time() - begun < 1
