"""Labels and units, expected holders, and what is said of a wrong study.

Covers `tacit.study.labels`, `tacit.study.complaints`, `tacit.study.columns`.
"""

import json

import numpy as np
import pytest
from studies import AGE, BMI, DAYS, agreed, document

import tacit
from tacit.errors import StudyError
from tacit.holder.publish import publish
from tacit.simulation import simulate
from tacit.study import Study
from tacit.study.labels import labelled
from tacit.study.toml import study_toml

SEX = {"name": "sex", "levels": ["f", "age"], "label": "Sex"}
LABELLED = agreed(
    [AGE | {"label": "Age", "unit": "years"}, SEX],
    response=DAYS | {"label": "Length of stay", "unit": "days"},
    holders=["north", "south"],
)


def test_a_study_without_labels_and_holders_keeps_its_document():
    plain = agreed().document()
    assert "holders" not in plain
    assert all({"label", "unit"}.isdisjoint(feature) for feature in plain["features"])
    assert {"label", "unit"}.isdisjoint(plain["response"])


def test_labels_and_holders_are_part_of_the_agreement():
    assert Study.from_toml(study_toml(LABELLED)).hash == LABELLED.hash
    other = LABELLED.model_copy(update={"holders": ("north",)})
    assert other.hash != LABELLED.hash
    with pytest.raises(StudyError, match="each is named once"):
        agreed(holders=["north", "north"])


def test_coefficients_are_shown_by_label_and_levels_left_alone():
    names = ["(intercept)", "age", "sex[age]", "age:sex[age]", "log(age)", "wage", "age^2"]
    assert labelled(LABELLED, names) == [
        *("(intercept)", "Age", "Sex[age]", "Age:Sex[age]", "log(Age)", "wage", "Age^2"),
    ]
    assert labelled(agreed([AGE, BMI]), names) == names


def patients(rng, count):
    age = rng.uniform(20, 90, count)
    return {"age": age, "sex": rng.choice(["f", "age"], count), "days": 0.2 * age}


@pytest.fixture(scope="module")
def posterior():
    rng = np.random.default_rng(3)
    release = simulate(LABELLED, patients(rng, 5000), rng, holder="north")
    return tacit.fit(tacit.collect(release, allow_simulated=True))


def test_summary_and_report_speak_in_labels(posterior, tmp_path):
    overview = posterior.summary()
    text = str(overview)
    assert "\nAge " in text
    assert "of Length of stay (days)" in text
    assert overview.rows[1].name == "age"  # a program goes on finding it
    posterior.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Length of stay" in page
    assert "years" in page


def test_who_is_missing_is_known(posterior, tmp_path):
    rng = np.random.default_rng(5)
    rows = patients(rng, 50)
    north, east = (simulate(LABELLED, rows, rng, holder=name) for name in ("north", "east"))
    collection = tacit.collect([north, east], allow_simulated=True)
    assert collection.absent == ("south",)
    assert collection.unexpected == ("east",)
    with pytest.raises(StudyError, match="does not expect a holder 'nort'"):
        publish(LABELLED, {}, holder="nort", ledger=tmp_path / "l.db")
    assert posterior is not None


WRONG = {
    "levels as numbers": (
        {"features": [AGE, {"name": "sex", "levels": [0, 1]}]},
        "feature 'sex': levels.entry 1: must be text in quotation marks",
    ),
    "a field misspelt": (
        {"features": [{"name": "age", "ranges": [0, 1]}]},
        "feature 'age': ranges: no such field in a feature; did you mean range?",
    ),
    "a field of the study": ({"epsilom": 1}, "did you mean epsilon?"),
    "no name": ({"features": [{"range": [0, 1]}]}, "feature number 1: name: must be given"),
    "a range turned round": (
        {"features": [{"name": "age", "range": [5, 1]}]},
        "feature 'age': range must be [low, high]",
    ),
    "neither": ({"features": [{"name": "age"}]}, "feature 'age': give exactly one of range"),
    "a range as text": (
        {"features": [{"name": "age", "range": "0..1"}]},
        "feature 'age': range: must be a list of two numbers, as [18, 100]",
    ),
    "a kind of missing": ({"missing": "x"}, "missing: must be 'drop', 'impute' or 'refuse'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_study_is_told_by_the_columns_name_and_the_way_out(case):
    changed, words = WRONG[case]
    with pytest.raises(StudyError) as caught:
        Study.from_document(document() | changed)
    assert words in str(caught.value)
    assert "input should" not in str(caught.value)
    assert json.dumps(changed) not in str(caught.value)
