"""Several responses of one release: what a study declares, and what is fitted of it.

Covers `tacit.study.submodel`, `tacit.study.rules` and `tacit.analyst.posterior.source`.
"""

import numpy as np
import pytest
from studies import AGE, BMI, WARD, agreed

from tacit.analyst.collection import collect
from tacit.analyst.comparison.compare import compare
from tacit.analyst.fit import fit
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.noise_aware import fit as noise_aware
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.posterior.source import of_columns, of_response
from tacit.analyst.prior import Prior
from tacit.cli.study import words
from tacit.errors import PosteriorError, StudyError
from tacit.simulation import exact, simulate
from tacit.study import Study
from tacit.study.submodel import submodel
from tacit.study.toml import study_toml

COST = {"name": "cost", "range": [0, 100]}
FEATURES = [AGE, WARD, COST]


def study(**fields):
    return agreed(FEATURES, responses=["days", "cost"], **fields)


def rows(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.uniform(18, 100, n)
    ward = rng.choice(["1", "2", "3"], n)
    days = 3 + 0.1 * age + 2 * (ward == "3") + rng.normal(0, 2, n)
    cost = 10 + 0.3 * age + 15 * (ward == "2") + rng.normal(0, 6, n)
    return {"age": age, "ward": ward, "cost": cost.clip(0, 100), "days": days.clip(0, 30)}


@pytest.fixture(scope="module")
def collection():
    rng = np.random.default_rng(1)
    made = study(epsilon=3.0)
    return collect(
        [simulate(made, rows(seed=j), rng, holder=f"h{j}") for j in range(2)],
        allow_simulated=True,
    )


def test_a_study_of_several_responses_shrinks_no_row():
    made = study()
    assert made.row_radius == made.longest_row
    assert agreed(FEATURES).row_radius < agreed(FEATURES).longest_row
    assert Study.from_toml(study_toml(made)).hash == made.hash
    assert "responses" not in agreed(FEATURES).document()
    said = " ".join(words(made).split())
    assert "one release serves days, cost; no row is shrunk" in said
    assert "times on X'X" in said


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"responses": ["cost", "days"]}, "name the study's response first"),
        ({"responses": ["days"]}, "name the study's response first"),
        ({"responses": ["days", "cost", "cost"]}, "each once"),
        ({"responses": ["days", "ward"]}, "'ward' must be a feature with a range"),
        ({"responses": ["days", "height"]}, "'height' must be a feature"),
        ({"responses": ["days", "cost"], "intercept": False}, "need an intercept"),
        (
            {"responses": ["days", "cost"], "release": {"row_radius": 1.0}},
            "rows that are not shrunk",
        ),
        ({"responses": ["days", "cost"], "release": {"average": 2}}, "exclude visits"),
    ],
)
def test_what_cannot_be_declared_is_refused(fields, message):
    with pytest.raises(StudyError, match=message):
        agreed(FEATURES, **fields)


def test_a_product_is_no_response():
    terms = [{"product": [name]} for name in ("age", "ward", "cost")]
    terms.append({"product": ["age", "cost"]})
    with pytest.raises(StudyError, match="in one term that is the feature itself"):
        agreed(FEATURES, responses=["days", "cost"], terms=terms)


def test_of_exact_statistics_each_response_is_its_own_least_squares():
    made = study(missing="refuse")
    table = rows()
    ward = np.array(table["ward"])
    design = np.stack([np.ones(len(ward)), table["age"], ward == "2", ward == "3"], axis=1)
    evidence = exact(made, table)
    vague = Prior.weak(4)
    vague = type(vague)(**(vars(vague) | {"covariance": 1e6 * np.eye(4), "by_spread": False}))
    for name in ("days", "cost"):
        kept = submodel(made, response=name)
        assert "cost" not in kept.study.columns
        told = evidence
        if name == "cost":
            told = of_response(evidence, made.columns.index("cost"))
        outcome = noise_aware(of_columns(told, kept.places), vague, Settings())
        posterior = Posterior(made, "m", outcome, (), question=kept.study)
        expected = np.linalg.lstsq(design.astype(float), table[name])[0]
        np.testing.assert_allclose(posterior.mean(), expected, atol=1e-3)
        left = table[name] - design @ expected
        assert posterior.residual_sd() == pytest.approx(left.std(), rel=0.02)


def test_one_release_serves_both(collection, tmp_path):
    days = fit(collection)
    cost = fit(collection, response="cost")
    assert days.names() == cost.names() == ("(intercept)", "age", "ward[2]", "ward[3]")
    low, high = cost.interval(0.999).T
    assert (low <= [10, 0.3, 15, 0]).all()
    assert (high >= [10, 0.3, 15, 0]).all()
    assert "--response cost" in cost.options
    assert cost.explained().mean == pytest.approx(0.6, abs=0.15)
    cost.save(tmp_path / "cost.parquet")
    back = Posterior.load(tmp_path / "cost.parquet").submodel(without="ward")
    assert back.summary().response == "cost"
    again = fit(collection, response="cost", only=["age"])
    np.testing.assert_allclose(back.mean(), again.mean())
    with pytest.raises(PosteriorError, match="the same response"):
        compare(days, cost)
    assert compare(cost, back).answer.startswith("ward: needed with probability 1.000")


def test_another_response_may_be_named_as_a_term(collection):
    assert "cost" in fit(collection, only=["age", "cost"]).names()
    with pytest.raises(StudyError, match="'cost' is the response"):
        fit(collection, response="cost", only=["age", "cost"])
    with pytest.raises(StudyError, match="none of the study's, which has days, cost"):
        fit(collection, response="age")
    with pytest.raises(StudyError, match="which has days"):
        submodel(agreed([AGE, BMI]), response="bmi")
