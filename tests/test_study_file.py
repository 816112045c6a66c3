"""The file of a study: what is written reads back as the same study, whatever its names are.

Covers `tacit.study.toml`.
"""

import tomllib

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tacit.errors import StudyError
from tacit.study import Study
from tacit.study.toml import study_toml

NAMES = st.text(st.characters(exclude_categories=["Cc", "Zl", "Zp", "Cs"]), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(
    names=st.lists(NAMES, min_size=4, max_size=4, unique=True),
    low=st.floats(-1e6, 1e6),
    epsilon=st.floats(0.001, 100),
)
def test_a_study_file_reads_back_as_the_same_study(names, low, epsilon):
    name, response, numeric, level = names
    assume(response != f"{numeric}!")
    features = [{"name": numeric, "range": [low, low + 10.0], "typical": [low + 1.0, low + 3.3]}]
    features += (
        [{"name": f"{numeric}!", "levels": [level, f"{level}'\\"], "other": name}]
        if name not in {level, f"{level}'\\"}
        else []
    )
    document = {
        "name": name,
        "epsilon": epsilon,
        "delta": 1e-7,
        "response": {"name": response, "range": [low, low + 1.0]},
    }
    study = Study.from_document(
        document | {"features": features, "stage_one": "sha256:" + "ab" * 32}
    )
    text = study_toml(study)
    assert Study.from_toml(text) == study.resolved()
    assert Study.from_toml(text).hash == study.hash
    assert study_toml(Study.from_toml(text)) == text


def test_a_file_of_a_study_without_features_or_typical_reads_back():
    study = Study.from_document(
        {"name": "s", "epsilon": 1, "delta": 1e-6, "response": {"name": "y", "range": [0, 1]}}
    )
    assert Study.from_toml(study_toml(study)) == study.resolved()
    assert "None" not in study_toml(study)
    assert "scales_share" not in tomllib.loads(study_toml(study))


def test_every_field_of_a_study_is_named_where_one_is_unknown():
    with pytest.raises(StudyError) as refused:
        Study.from_document({"formula": "days ~ age"})
    named = str(refused.value).partition("those are ")[2].split(", ")
    assert sorted(named) == sorted(Study.model_fields)
