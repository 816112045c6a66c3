"""A sentence for every corruption of a release.

Covers `tacit.release.document`, `tacit.release.texts`, `tacit.release.statistics`.
"""

import json

import numpy as np
import pytest
from release_documents import DOCUMENT, RELEASE, STUDY, changed, refusal

from tacit.release import Release
from tacit.release.texts import MOST_BYTES
from tacit.simulation import simulate
from tacit.study import Study

D = STUDY.d
CORRUPTIONS = [
    (["format"], "other", 'format must be "tacit-release": this is not a release'),
    (
        ["version"],
        2,
        "version must be one of (1,): this release was written by a newer Tacit, or is damaged",
    ),
    (["version"], "1", "version must be one of (1,)"),
    (["version"], True, "version must be one of (1,)"),
    (["version"], 1.0, "version must be one of (1,)"),
    (["version"], None, "version must be one of (1,)"),
    (["version"], [1], "version must be one of (1,)"),
    (
        ["study_hash"],
        "sha256:0",
        (
            "the document: study_hash does not match the study inside the release: "
            "one of them was changed"
        ),
    ),
    (
        ["study", "name"],
        "another",
        "the document: study_hash does not match the study inside the release",
    ),
    (
        ["study", "features", 0, "range"],
        [18, 101],
        "the document: study_hash does not match the study inside the release",
    ),
    (
        ["study", "epsilon"],
        2.0,
        "the document: study_hash does not match the study inside the release",
    ),
    (["study", "epsilon"], -1, "study.epsilon: input should be greater than or equal to"),
    (["study", "code"], "os.system", "study.code: extra inputs are not permitted"),
    (["study"], None, "study: input should be"),
    (["study"], [], "study: input should be"),
    (["holder"], "", "holder: string should have at least 1 character"),
    (["holder"], "a\x1b[31m", "holder: must hold no control characters or line breaks"),
    (["holder"], "\ud800", "holder: input should be a valid string"),
    (["n"], -1, "the document: n must be a whole number, zero or more"),
    (["n"], 300.5, "the document: n must be a whole number, zero or more"),
    (["n"], None, "the document: n must be there exactly when the study publishes it"),
    (["n"], "300", "n."),
    (["n"], True, "n."),
    (["n"], 10**400, "n."),
    (["n"], 2**63, "the document: n must be a whole number"),
    (["xtx"], [[1.0]], f"the document: xtx must be {D} by {D}, as the study has {D} columns"),
    (["xtx"], [], f"the document: xtx must be {D} by {D}"),
    (["xtx"], DOCUMENT["xtx"][:-1], f"the document: xtx must be {D} by {D}"),
    (["xtx", 1], DOCUMENT["xtx"][1][:-1], f"the document: xtx must be {D} by {D}"),
    (["xtx", 1], [*DOCUMENT["xtx"][1], 0.0], f"the document: xtx must be {D} by {D}"),
    (["xtx", 0, 1], DOCUMENT["xtx"][0][1] + 1e-9, "the document: xtx must be symmetric"),
    (["xtx", 0, 1], "1.0", "xtx.0.1: input should be a valid number"),
    (["xtx", 0, 1], None, "xtx.0.1: input should be a valid number"),
    (["xtx", 0, 1], 10**400, "xtx.0.1: input should be a valid number"),
    (["xtx"], {"0": 1}, "xtx: input should be a list"),
    (
        ["xty"],
        DOCUMENT["xty"][:-1],
        f"the document: xty must have {D} entries, as the study has {D} columns",
    ),
    (["xty"], [*DOCUMENT["xty"], 0.0], f"the document: xty must have {D} entries"),
    (["xty", 0], [1.0], "xty.0: input should be a valid number"),
    (["yty"], None, "the document: yty must be there exactly when the study publishes it"),
    (
        ["smallest_eigenvalue"],
        1.0,
        "the document: smallest_eigenvalue must be there exactly when the study publishes it",
    ),
    (["relation"], "add-remove", "the document: relation must be the study's"),
    (["relation"], "none", "relation: input should be 'replace-one' or 'add-remove'"),
    (["noise_shape"], "triangular", "the document: noise_shape must be the study's"),
    (["epsilon"], 1.5, "the document: epsilon must lie between 0.001 and the study's 1"),
    (["epsilon"], 0, "epsilon: input should be greater than 0"),
    (
        ["epsilon"],
        0.5,
        "the document: noise.xtx_diagonal is impossible: the study at this epsilon and delta needs",
    ),
    (["delta"], 1e-5, "the document: delta must lie between 1e-15 and the study's 1e-06"),
    (["delta"], 1e-7, "the document: noise.xtx_diagonal is impossible"),
    (
        ["mu"],
        DOCUMENT["mu"] * 1.001,
        "the document: mu is impossible: the study at this epsilon and delta gives",
    ),
    (["sensitivity"], DOCUMENT["sensitivity"] / 2, "the document: sensitivity is impossible"),
    (["multiplier"], DOCUMENT["multiplier"] * 1.1, "the document: multiplier is impossible"),
    (
        ["noise", "xtx_diagonal"],
        DOCUMENT["noise"]["xtx_diagonal"] / 2,
        "the document: noise.xtx_diagonal is impossible",
    ),
    (
        ["noise", "xtx_off_diagonal"],
        DOCUMENT["noise"]["xtx_off_diagonal"] * 2,
        "the document: noise.xtx_off_diagonal is impossible",
    ),
    (["noise", "xty"], 1e-300, "the document: noise.xty is impossible"),
    (["noise", "xty"], 0.0, "noise.xty: input should be greater than 0"),
    (["noise", "xty"], -1.0, "noise.xty: input should be greater than 0"),
    (["noise", "yty"], None, "the document: noise.yty is impossible"),
    (["noise", "count"], 1.0, "the document: noise.count is impossible"),
    (["noise", "eigenvalue"], 1.0, "the document: noise.eigenvalue is impossible"),
    (["noise", "extra"], 1.0, "noise.extra: extra inputs are not permitted"),
    (
        ["lattice"],
        DOCUMENT["lattice"] + 1,
        "the document: lattice is coarser than the noise allows",
    ),
    (["lattice"], 101, "lattice: input should be less than or equal to 100"),
    (["lattice"], -40.5, "lattice: input should be a valid integer"),
    (["mechanism"], "", "mechanism: string should have at least 1 character"),
    (
        ["created"],
        "yesterday",
        "the document: created must be a time in UTC such as 2026-01-31T09:30:00Z",
    ),
    (["created"], "2026-13-31T09:30:00Z", "the document: created must be a time in UTC"),
    (["created"], "2026-01-31T09:30:00+0100", "the document: created must be a time in UTC"),
    (["created"], "٢٠٢٦-01-31T09:30:00Z", "the document: created must be a time in UTC"),
    (["created"], "2026-01-31T09:30:00Z\n", "the document: created must be a time in UTC"),
    (["software"], 1, "software: input should be a valid string"),
    (["signature"], "mine", "signature: input should be"),
    (
        ["signature"],
        {"algorithm": "rsa", "public_key": "", "value": ""},
        "signature.algorithm: input should be 'ed25519'",
    ),
    (["extra"], 1, "extra: extra inputs are not permitted"),
    (["a\nb\x1b[31m"], 1, r"'a\nb\x1b[31m': extra inputs are not permitted"),
    (["x" * 10_000], 1, "x" * 100 + ": extra inputs are not permitted"),
]


@pytest.mark.parametrize(
    ("path", "value", "sentence"), CORRUPTIONS, ids=lambda part: ascii(part)[:40]
)
def test_each_corruption_has_its_own_sentence(path, value, sentence):
    assert refusal(changed(path, value)).startswith(sentence)


@pytest.mark.parametrize(
    "field", [field for field in DOCUMENT if field not in {"format", "version", "signature"}]
)
def test_a_missing_field_is_named(field):
    assert (
        refusal({name: value for name, value in DOCUMENT.items() if name != field})
        == f"{field}: field required"
    )


def test_a_missing_format_or_version_is_no_release():
    assert "this is not a release" in refusal(
        {name: value for name, value in DOCUMENT.items() if name != "format"}
    )
    assert "version must be" in refusal(
        {name: value for name, value in DOCUMENT.items() if name != "version"}
    )


def test_a_missing_noise_scale_is_named():
    for part in DOCUMENT["noise"]:
        noise = {name: sd for name, sd in DOCUMENT["noise"].items() if name != part}
        assert refusal(changed(["noise"], noise)) == f"noise.{part}: field required"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
@pytest.mark.parametrize(
    "path",
    [["yty"], ["xtx", 0, 0], ["xty", 1], ["epsilon"], ["noise", "xty"], ["n"], ["study", "delta"]],
    ids=str,
)
def test_numbers_are_finite(number, path):
    text = json.dumps(changed(path, "HERE")).replace('"HERE"', number)
    assert refusal(text) == f"a release holds finite numbers only, not {number}"


def test_a_long_number_is_not_repeated():
    assert (
        len(refusal(json.dumps(changed(["yty"], "HERE")).replace('"HERE"', "1" * 400 + ".0"))) < 100
    )


@pytest.mark.parametrize("path", [[], ["study"], ["noise"], ["study", "release"]], ids=str)
def test_a_field_named_twice_is_refused(path):
    inner = DOCUMENT
    for part in path:
        inner = inner[part]
    name, value = next(iter(inner.items()))
    old = json.dumps(inner)
    new = old.replace("{", "{" + f"{json.dumps(name)}: {json.dumps(value)}, ", 1)
    text = json.dumps(DOCUMENT)
    assert text.count(old) == 1
    assert refusal(text.replace(old, new)) == "a release must not name a field twice"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "nope",
        RELEASE.to_json()[:-5],
        RELEASE.to_json() + "x",
        b"\xff\xfe\x00",
        b"\x00" * 20,
        "9" * 5000,
    ],
    ids=lambda text: ascii(text[:12]),
)
def test_what_is_not_json_is_refused(text):
    assert refusal(text) == "the release is not valid JSON"


@pytest.mark.parametrize("text", ["null", "[]", "1", '"release"', "true"])
def test_what_is_not_an_object_is_refused(text):
    assert refusal(text) == "a release must be a JSON object"


def test_deep_nesting_inside_a_field_is_refused():
    for depth in (13, 400, 20_000):
        text = json.dumps(DOCUMENT).replace("null", "[" * depth + "]" * depth, 1)
        assert refusal(text) == "a release is nested at most 12 deep"


def test_an_oversized_document_is_refused_before_it_is_parsed():
    assert refusal(" " * (MOST_BYTES + 1)) == "a release is at most 10 MB long"


def test_the_widest_study_fits():
    features = [{"name": "g", "levels": [f"level {k}" for k in range(512)]}]
    study = Study.from_document(STUDY.document() | {"features": features, "release": {}})
    release = simulate(
        study, {"g": ["level 1"], "days": [3.0]}, np.random.default_rng(0), holder="north"
    )
    assert len(release.to_json()) < MOST_BYTES
    assert Release.from_json(release.to_json()) == release
