"""The release: what it holds, that it reads back as written, a sentence for every corruption.

Covers `tacit.release.document`, `tacit.release.texts`, `tacit.release.statistics`, `tacit.files`.
"""

import copy
import gzip
import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import ReleaseError
from tacit.files import refuse_unwritable, write_whole
from tacit.release import Release
from tacit.release.texts import MOST_BYTES
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


# Round trips.


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_release_reads_back_as_written(form, tmp_path):
    release = release_of(**form)
    assert Release.from_json(release.to_json()) == release
    assert Release.from_json(release.to_json().encode()) == release
    assert Release.from_json(release.to_json()).to_json() == release.to_json()
    release.save(tmp_path / "release.json")
    assert Release.load(tmp_path / "release.json") == release
    assert release.gram.shape == (release.study.d, release.study.d)
    assert np.array_equal(release.gram, np.array(release.xtx))
    assert np.array_equal(release.moment, np.array(release.xty))


def test_every_number_survives_to_the_last_bit():
    again = json.loads(RELEASE.to_json())
    assert np.array_equal(np.array(again["xtx"]), RELEASE.gram)
    assert [value.hex() for value in again["xty"]] == [value.hex() for value in RELEASE.xty]


def test_a_release_holds_these_fields_and_no_others():
    assert list(DOCUMENT) == [
        *(
            "format",
            "version",
            "study_hash",
            "study",
            "holder",
            "n",
            "xtx",
            "xty",
            "yty",
            "smallest_eigenvalue",
            "relation",
            "epsilon",
        ),
        *(
            "delta",
            "mu",
            "sensitivity",
            "multiplier",
            "noise_shape",
            "noise",
            "lattice",
            "mechanism",
            "simulated",
            "created",
            "software",
        ),
        "signature",
    ]


def test_what_the_study_does_not_publish_is_null():
    form = {"count": "withheld", "response_square": False}
    withheld = json.loads(release_of(relation="add-remove", release=form).to_json())
    assert withheld["n"] is withheld["yty"] is withheld["smallest_eigenvalue"] is None
    assert (
        withheld["noise"]["count"]
        is withheld["noise"]["yty"]
        is withheld["noise"]["eigenvalue"]
        is None
    )


def test_the_document_is_laid_out_for_a_reader():
    lines = RELEASE.to_json().splitlines()
    assert max(map(len, lines)) <= 130
    assert '  "holder": "Malmö – north",' in lines
    assert RELEASE.to_json().endswith("}\n")


def test_a_simulated_release_says_so():
    assert RELEASE.simulated
    assert RELEASE.mechanism == "seeded pseudo-random noise: protects nobody"
    assert refusal(changed(["simulated"], "no")) == "simulated: input should be a valid boolean"
    assert refusal(changed(["simulated"], None)) == "simulated: input should be a valid boolean"


def test_a_release_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        RELEASE.holder = "south"


# Every corruption its own sentence.

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


# Files.


def test_errors_of_a_file_name_the_file(tmp_path):
    path = tmp_path / "bad.json"
    path.write_text("nope")
    with pytest.raises(ReleaseError, match=r"bad\.json: the release is not valid JSON"):
        Release.load(path)
    for wrong, reason in (
        (tmp_path / "absent", "No such file"),
        (tmp_path, "Is a directory"),
        (tmp_path / ("x" * 300), "too long"),
    ):
        with pytest.raises(ReleaseError, match=reason):
            Release.load(wrong)


def test_a_file_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "release.json"
    seen = []

    def replace_watched(self, target):
        seen.append((self.name, Path(self).read_text(encoding="utf-8"), path.exists()))
        os.replace(self, target)  # noqa: PTH105

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace_watched)
        write_whole(path, "text")
    ((temporary, text, there),) = seen
    assert (text, there) == ("text", False), "the text is complete before the name exists"
    assert not temporary.endswith(".json")
    assert [file.name for file in tmp_path.iterdir()] == ["release.json"]


@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.chmod", "pathlib.Path.replace"])
def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch, step):
    path = tmp_path / "release.json"
    path.write_text("old")

    def fails(*_arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(step, fails)
        with pytest.raises(
            ReleaseError, match=r"cannot write .*release\.json.*: No space left on device"
        ):
            write_whole(path, "new")
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["release.json"]


def test_a_release_may_be_read_by_others_on_the_machine(tmp_path):
    RELEASE.save(tmp_path / "release.json")
    assert stat.S_IMODE((tmp_path / "release.json").stat().st_mode) == 0o644


@pytest.mark.parametrize("name", ["", "absent/release.json", "file/release.json", "x" * 300])
def test_a_place_that_cannot_be_written_is_found_beforehand(tmp_path, name):
    (tmp_path / "file").write_text("")
    with pytest.raises(ReleaseError, match="its folder must exist and be writable"):
        refuse_unwritable(tmp_path / name)
    with pytest.raises(ReleaseError, match="cannot write"):
        RELEASE.save(tmp_path / name)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("name", ["release.json", "x" * 250])
def test_a_place_found_writable_can_be_written(tmp_path, name):
    refuse_unwritable(tmp_path / name)
    RELEASE.save(tmp_path / name)
    assert (tmp_path / name).exists()


def test_releases_are_compared_by_what_they_state():
    release = release_of()
    again = Release.from_json(release.to_json())
    assert release.gram is not None
    assert release == again
    assert hash(release.study) == hash(again.study)
    assert release != again.model_copy(update={"holder": "another"})


def test_numbers_are_signed_as_python_writes_them_whatever_their_size():
    sizes = [0.0, -0.0, 1e-5, 1e-4, 0.1, 1 / 3, 123456.789, 1e15, 1e16, -1.5e22, 5e-324]
    for size in sizes:
        xtx = tuple(tuple(size for _ in row) for row in RELEASE.xtx)
        changed = RELEASE.model_copy(update={"xtx": xtx})
        fields = changed.document()
        del fields["signature"]
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert changed.canonical() == text.encode(), size


@pytest.mark.parametrize(
    "inside", ['{"a": 1, "a": 2}', '[1, {"a": 1, "a": 2}]', '[[{"a": {"b": 1, "b": 1}}]]']
)
def test_a_field_named_twice_is_found_however_deep(inside):
    assert refusal(f'{{"format": "tacit-release", "more": {inside}}}') == (
        "a release must not name a field twice"
    )
    assert "twice" not in refusal('{"format": "tacit-release", "more": {"a:b": "c:d"}}')


@pytest.mark.parametrize("number", ["1e999", "-1E+400", "NaN", "Infinity", "1e0400"])
def test_an_infinite_number_is_refused_wherever_it_stands(number):
    assert refusal(f'{{"format": "tacit-release", "n": [{number}]}}').startswith(
        "a release holds finite numbers only, not "
    )


def test_a_compressed_release_is_the_same_release(tmp_path):
    path = tmp_path / "north.json.gz"
    RELEASE.save(path)
    assert Release.load(path) == RELEASE
    assert len(path.read_bytes()) < len(RELEASE.to_json()) / 2
    again = tmp_path / "again.json.gz"
    RELEASE.save(again)
    assert path.read_bytes() == again.read_bytes()


def test_a_damaged_or_swelling_compressed_release_is_refused(tmp_path):
    path = tmp_path / "north.json.gz"
    RELEASE.save(path)
    whole = path.read_bytes()
    swelling = gzip.compress(b" " * (MOST_BYTES + 5))
    for content, sentence in (
        (whole[:-9], "its end is missing"),
        (whole + whole, "its end is missing, or more"),
        (whole[:30] + b"\0\0\0\0" + whole[34:], "compressed and damaged"),
        (swelling, "a release is at most"),
    ):
        path.write_bytes(content)
        with pytest.raises(ReleaseError, match=sentence):
            Release.load(path)
