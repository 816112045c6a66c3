"""A study as a document, one with a field changed, and the sentence that refuses it."""

import copy

import pytest

from tacit.errors import StudyError
from tacit.study import Study

DOCUMENT = {
    "name": "length-of-stay",
    "relation": "replace-one",
    "epsilon": 1.0,
    "delta": 1e-6,
    "intercept": True,
    "missing": "drop",
    "response": {"name": "days", "range": [0, 30]},
    "features": [
        {"name": "age", "range": [18, 100]},
        {"name": "sex", "levels": ["female", "male"]},
        {"name": "ward", "levels": ["a", "b", "c"], "other": "elsewhere"},
    ],
}
MINIMAL = 'name = "s"\nepsilon = 1\ndelta = 1e-6\n[response]\nname = "y"\nrange = [0, 1]\n'


def changed(path, value, document=DOCUMENT):
    """The document with one field set; a path names keys and places."""
    document = copy.deepcopy(document)
    inner = document
    for part in path[:-1]:
        inner = inner.setdefault(part, {}) if isinstance(inner, dict) else inner[part]
    inner[path[-1]] = value
    return document


def refusal(document):
    with pytest.raises(StudyError) as caught:
        Study.from_document(document) if isinstance(document, dict) else Study.from_toml(document)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert len(sentence) < 300
    return sentence
