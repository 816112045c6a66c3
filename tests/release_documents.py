"""A release as a document, one with a field changed, and the sentence that refuses it."""

import copy
import json

import numpy as np
import pytest

from tacit.errors import ReleaseError
from tacit.release import Release
from tacit.simulation import simulate
from tacit.study import Study

FEATURES = [{"name": "age", "range": [18, 100]}, {"name": "sex", "levels": ["female", "male"]}]
STUDY = Study.from_document(
    {
        "name": "release-test",
        "epsilon": 1.0,
        "delta": 1e-6,
        "response": {"name": "days", "range": [0, 30]},
        "features": FEATURES,
    }
)
FORMS = [
    {},
    {"release": {"noise": "triangular", "smallest_eigenvalue": True}},
    {"release": {"response_square": False, "row_radius": 1.1, "response_bound": 0.5}},
    {"relation": "add-remove"},
    {"relation": "add-remove", "release": {"count": "noisy", "response_square": True}},
    {"relation": "add-remove", "release": {"count": "public", "smallest_eigenvalue": True}},
    {"intercept": False, "missing": "impute"},
]


def rows(count=300):
    rng = np.random.default_rng(4)
    return {
        "age": rng.uniform(18, 100, count),
        "sex": rng.choice(["female", "male"], count),
        "days": rng.gamma(2, 4, count),
    }


def release_of(**changes):
    document = STUDY.document() | {"release": {}} | changes
    return simulate(
        Study.from_document(document),
        rows(),
        np.random.default_rng(8),
        holder="Malmö – north",
        epsilon=0.75,
    )


RELEASE = release_of()
DOCUMENT = json.loads(RELEASE.to_json())


def refusal(text):
    with pytest.raises(ReleaseError) as caught:
        Release.from_json(text if isinstance(text, (str, bytes)) else json.dumps(text))
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert len(sentence) < 400
    return sentence


def changed(path, value):
    document = copy.deepcopy(DOCUMENT)
    inner = document
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    return document
