"""Comparisons of the report: today's contrasts for plain columns, differences of predictions for
products and curves.

Covers `tacit.analyst.report.comparisons`, `tacit.analyst.report.cases`,
`tacit.analyst.report.subject`.
"""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tacit
from tacit.analyst.posterior.laws import Draws
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.posterior.units import contrast_units
from tacit.analyst.report.comparisons import MOST_CASES, comparison_units, comparisons
from tacit.analyst.report.words import FUNCTION_WORDS, terms_in_words
from tacit.study.transforms import FUNCTIONS

FEATURES = [
    {"name": "age", "range": [18, 100]},
    {"name": "sex", "levels": ["female", "male"]},
    {"name": "bmi", "range": [5, 80], "typical": [10, 60]},
    {"name": "income", "range": [1000, 200_000]},
]
LOG_INCOME = {"of": "income", "function": "log"}
TERMS = [["age"], ["sex"], ["bmi"], [{"of": "bmi", "degree": 2}], [LOG_INCOME], ["age", "sex"]]


def study_of(
    terms: list[list[object]], features: list[dict[str, object]] | None = None, **fields: object
) -> tacit.Study:
    response = {"name": "days", "range": [0.5, 40]}
    document = {
        "name": "stays",
        "epsilon": 1.0,
        "delta": 1e-6,
        "response": response,
        "features": features or FEATURES,
    }
    return tacit.Study.from_document(
        document | {"terms": [{"product": term} for term in terms]} | fields
    )


def posterior_of(study: tacit.Study) -> Posterior:
    theta = np.random.default_rng(0).normal(0, 0.3, (2, 200, study.d))
    return Posterior(study, "m", Draws(theta, np.full((2, 200), 0.05)), ())


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    "features",
    [
        FEATURES,
        [{"name": "w", "levels": ["a", "b"], "other": "c"}, {"name": "x", "range": [-0.1, 0.3]}],
    ],
)
def test_plain_columns_are_compared_over_their_range(features, intercept):
    study = study_of([], features, intercept=intercept)
    compared = comparisons(study)
    assert_allclose(
        comparison_units(study, compared).matrix,
        contrast_units(study).matrix,
        rtol=1e-12,
        atol=1e-12,
    )
    assert not any(c.where for c in compared)
    assert all(c.is_straight for c in compared)


def test_terms_are_compared_as_their_coefficients_say():
    """Against the coefficients in the user's units, whose arithmetic is another."""
    study = study_of(TERMS)
    posterior, compared = posterior_of(study), comparisons(study)
    b = dict(zip(posterior.names(), posterior.mean().tolist(), strict=True))
    expected = {
        "age: 100 against 18 where sex is female": 82 * b["age"],
        "age: 100 against 18 where sex is male": 82 * (b["age"] + b["age:sex[male]"]),
        "sex: male against female where age is 18": b["sex[male]"] + 18 * b["age:sex[male]"],
        "sex: male against female where age is 100": b["sex[male]"] + 100 * b["age:sex[male]"],
        "bmi: 35 against 10": 25 * b["bmi"] + (35**2 - 10**2) * b["bmi^2"],
        "bmi: 60 against 35": 25 * b["bmi"] + (60**2 - 35**2) * b["bmi^2"],
        "income: 100,500 against 1,000": math.log(100.5) * b["log(income)"],
        "income: 200,000 against 100,500": math.log(200 / 100.5) * b["log(income)"],
    }
    units = comparison_units(study, compared)
    assert units.names == tuple(expected)
    assert_allclose(posterior.mean(units), list(expected.values()), rtol=1e-8)


def test_a_comparison_is_the_difference_of_two_predictions_wherever_the_rest_is():
    """Features that are not named do not matter; the interval is that of the difference, draw by
    draw.
    """
    study = study_of([*TERMS, [{"of": "bmi", "degree": 2}, "sex"]])
    posterior, compared, rng = posterior_of(study), comparisons(study), np.random.default_rng(1)
    units = comparison_units(study, compared)
    for k, c in enumerate(compared):
        rest = {
            "age": rng.uniform(18, 100),
            "sex": "male",
            "bmi": rng.uniform(5, 80),
            "income": rng.uniform(1000, 2e5),
        } | dict(c.held)
        cases = [rest | {c.feature.name: end} for end in (c.bottom, c.top)]
        low, high = posterior.predict({name: [case[name] for case in cases] for name in rest})[
            "mean"
        ].to_pylist()
        assert high - low == pytest.approx(posterior.mean(units)[k], rel=1e-9)
    draws = posterior.outcome.flat @ units.matrix.T
    assert_allclose(posterior.interval(0.9, units), np.quantile(draws, [0.05, 0.95], axis=0).T)


def test_many_partners_are_taken_one_at_a_time():
    names = [f"x{k}" for k in range(6)]
    features = [{"name": name, "range": [0, 1]} for name in names]
    pairs = [[a, b] for k, a in enumerate(names) for b in names[:k]]
    compared = comparisons(study_of([*([name] for name in names), *pairs], features))
    of_first = [c for c in compared if c.feature.name == "x0"]
    assert len(of_first) == MOST_CASES
    assert of_first[0].where == "in the usual case"
    assert of_first[1].where == "where x1 is 0, otherwise as usual"
    assert len({c.label for c in compared}) == len(compared)
    three = comparisons(study_of([["x0"], ["x1"], ["x0", "x1", "x2"]], features[:3]))
    assert [c.where for c in three if c.feature.name == "x1"] == [
        f"where x0 is {a} and x2 is {b}" for a in (0, 1) for b in (0, 1)
    ]


def test_terms_in_words():
    assert terms_in_words(study_of(TERMS)) == [
        "age",
        "sex",
        "bmi, curved (powers up to 2)",
        "the logarithm of income",
        "age together with sex",
    ]
    cubic = [["sex"], [{"of": "bmi", "degree": 3}], ["age", "age"], [LOG_INCOME, "sex"]]
    words = [
        "sex",
        "bmi, curved (power 3)",
        "age, curved (power 2)",
        "the logarithm of income together with sex",
    ]
    assert terms_in_words(study_of(cubic)) == words
    assert set(FUNCTION_WORDS) == set(FUNCTIONS)


def test_a_column_that_is_multiplied_by_itself_is_a_curve():
    compared = comparisons(study_of([["age"], ["age", "age"]], FEATURES[:1]))
    assert [c.contrast for c in compared] == ["age: 59 against 18", "age: 100 against 59"]
    assert not any(c.has_slope for c in compared)
