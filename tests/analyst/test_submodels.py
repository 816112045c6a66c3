"""Sub-models: fewer terms, the same releases.

Covers `tacit.study.submodel`, `tacit.analyst.posterior.source`,
`tacit.analyst.posterior.source_facts` and `tacit.analyst.fit`.
"""

from dataclasses import replace

import numpy as np
import pytest
from studies import agreed

from tacit.analyst.collection import collect
from tacit.analyst.fit import fit
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.noise_aware import fit as noise_aware
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.posterior.source import of_columns
from tacit.analyst.prior import Prior
from tacit.errors import PosteriorError, StudyError
from tacit.simulation import exact, simulate
from tacit.study import Study
from tacit.study.submodel import lower_terms, submodel, term_names

COLUMNS = {"age": (18, 100), "sex": ["f", "m"], "bmi": (15, 50), "days": (0, 60)}
STUDY = Study.from_formula(
    "days ~ age * sex + poly(bmi, 2)", COLUMNS, name="stay", epsilon=3.0, delta=1e-6
)


def rows(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 95, n)
    sex = rng.choice(["f", "m"], n)
    bmi = rng.normal(27, 5, n).clip(15, 50)
    days = 5 + 0.2 * age + 3 * (sex == "m") + 0.4 * (bmi - 27) + rng.normal(0, 4, n)
    return {"age": age, "sex": sex, "bmi": bmi, "days": days.clip(0, 60)}


def releases(study=STUDY, holders=3):
    rng = np.random.default_rng(1)
    return collect(
        [simulate(study, rows(seed=j), rng, holder=f"h{j}") for j in range(holders)],
        allow_simulated=True,
    )


@pytest.fixture(scope="module")
def posterior():
    return fit(releases())


def test_terms_are_named_as_a_formula_names_them():
    assert term_names(STUDY) == ("age", "sex", "bmi", "bmi^2", "age:sex")
    assert lower_terms(STUDY)["age:sex"] == ("age", "sex")
    assert lower_terms(STUDY)["bmi^2"] == ("bmi",)
    assert term_names(agreed()) == ("age", "ward", "bmi")


def test_a_submodel_is_a_study_of_the_terms_kept():
    kept = submodel(STUDY, without=["bmi", "bmi^2"])
    assert kept.study.columns == ("(intercept)", "age", "sex[m]", "age:sex[m]")
    assert [STUDY.columns[k] for k in kept.places] == list(kept.study.columns)
    assert [feature.name for feature in kept.study.features] == ["age", "sex"]
    assert submodel(agreed(), without=["age", "ward", "bmi"]).study.columns == ("(intercept)",)
    assert submodel(STUDY).left_out == ()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"without": ["age"]}, "'age:sex' is kept without its lower term 'age'.*leave 'age:sex'"),
        ({"only": ["age", "age:sex"]}, "lower term 'sex'.*add 'sex'"),
        ({"only": ["bmi^2"]}, "lower term 'bmi'"),
        ({"only": ["sex[m]"]}, "one level of 'sex': name the whole"),
        ({"only": ["height"]}, "no term of the study, which has age, sex"),
        ({"only": ["(intercept)"]}, "the intercept always stays"),
        ({"only": ["age", "age"]}, "named once"),
        ({"only": ["age"], "without": ["sex"]}, "exclude each other"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(asked, words):
    with pytest.raises(StudyError, match=words):
        submodel(STUDY, **asked)


def test_a_study_without_intercept_keeps_a_term():
    study = agreed(intercept=False)
    with pytest.raises(StudyError, match="must keep a term"):
        submodel(study, without=["age", "ward", "bmi"])


def test_of_exact_statistics_it_is_least_squares_on_those_columns():
    study = agreed(release={"row_radius": 100.0}, missing="refuse")
    rng = np.random.default_rng(3)
    n = 2000
    age = rng.uniform(18, 100, n)
    table = {
        "age": age,
        "ward": rng.choice(["1", "2", "3"], n),
        "bmi": (20 + 0.1 * age + rng.normal(0, 3, n)).clip(15, 50),
    }
    table["days"] = (3 + 0.1 * age + 0.2 * table["bmi"] + rng.normal(0, 2, n)).clip(0, 30)
    kept = submodel(study, only=["age", "ward"])
    evidence = of_columns(exact(study, table), kept.places)
    vague = replace(Prior.weak(4), covariance=1e6 * np.eye(4), by_spread=False)
    mean = noise_aware(evidence, vague, Settings()).mean()
    ward = np.array(table["ward"])
    design = np.stack([np.ones(n), (age - 59) / 41, ward == "2", ward == "3"], axis=1)
    response = (table["days"] - 15) / 15
    np.testing.assert_allclose(mean, np.linalg.lstsq(design, response)[0], atol=1e-6)


def test_it_is_what_fitting_those_terms_gives(posterior):
    by_name = posterior.submodel(only="age,sex")
    again = fit(releases(), without=["bmi", "bmi^2", "age:sex"])
    assert by_name.names() == ("(intercept)", "age", "sex[m]")
    np.testing.assert_array_equal(by_name.mean(), again.mean())
    assert "--without bmi,bmi^2,age:sex" in again.options.replace("'", "")
    in_steps = posterior.submodel(without="age:sex").submodel(without=["bmi^2", "bmi"])
    np.testing.assert_array_equal(in_steps.mean(), again.mean())


def test_its_words_say_what_was_left_out(posterior):
    said = str(posterior.submodel(without=["bmi", "bmi^2"]).summary())
    assert "Left out of the study's terms: bmi, bmi^2." in said
    assert "those left out included" in said
    assert "changes nothing" not in said
    assert "Left out" not in str(posterior.summary())


def test_a_file_keeps_what_more_can_be_asked_of(posterior, tmp_path):
    first = posterior.submodel(without="age:sex")
    first.save(tmp_path / "p.parquet")
    back = Posterior.load(tmp_path / "p.parquet")
    assert back.names() == first.names()
    assert back.summary().to_dict() == first.summary().to_dict()
    second = back.submodel(only="age")
    np.testing.assert_array_equal(second.mean(), posterior.submodel(only="age").mean())
    predicted = second.predict({"age": [40.0]})["mean"].to_pylist()
    assert 0 < predicted[0] < 60
    second.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "which this question leaves out" in page


def test_without_its_statistics_a_posterior_says_where_to_go(posterior):
    with pytest.raises(PosteriorError, match="fit the sub-model from the releases"):
        replace(posterior, source=None).submodel(only="age")


def test_a_stated_prior_is_that_of_the_columns_kept():
    mean = np.arange(6.0)
    prior = replace(Prior.weak(6), mean=mean, covariance=1e-8 * np.eye(6), by_spread=False)
    kept = fit(releases(), prior=prior, only="age,bmi")
    np.testing.assert_allclose(kept.mean("scaled"), mean[[0, 1, 3]], atol=1e-2)


def test_other_methods_answer_too():
    assert fit(releases(), "exact-fixed-s", only=["age"]).names() == ("(intercept)", "age")
