"""Formulas: what they span, against Formulaic's own design, and the studies that they make.

Covers `tacit.study.formula`, `tacit.study.grammar`, `tacit.study.factors`, `tacit.study.coding`,
`tacit.study.terms`, `tacit.study.expansion`,
`tacit.study.transforms`.
"""

import math
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from formulas import (
    BUDGET,
    FORMULAS,
    column,
    formulaic_design,
    our_design,
    rows,
    same_space,
    study_of,
)
from numpy.testing import assert_allclose

import tacit
from tacit.analyst.posterior.units import user_units
from tacit.plan import forecast
from tacit.simulation import simulate
from tacit.study import Study
from tacit.study.toml import study_toml

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
