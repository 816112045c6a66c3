"""The release: what it holds, that it reads back as written, and its files.

Covers `tacit.release.document`, `tacit.release.texts`, `tacit.release.statistics`, `tacit.files`.
"""

import gzip
import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest
from release_documents import DOCUMENT, FORMS, RELEASE, changed, refusal, release_of

from tacit.errors import ReleaseError
from tacit.files import refuse_unwritable, write_whole
from tacit.release import Release
from tacit.release.texts import MOST_BYTES

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
