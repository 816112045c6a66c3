"""Formulas, columns and terms that are refused in one sentence, hostile texts among them.

Covers `tacit.study.formula`, `tacit.study.grammar`, `tacit.study.factors`, `tacit.study.coding`,
`tacit.study.terms`.
"""

import time
import warnings
from contextlib import suppress

import pytest
from formulas import BUDGET, COLUMNS, study_of
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import StudyError
from tacit.study import Study

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
