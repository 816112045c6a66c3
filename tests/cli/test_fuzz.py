"""Broken studies, releases and ledgers: one sentence, exit code 2, nothing half-written.

Covers `tacit.errors`, `tacit.records`, `tacit.cli`.
"""

import json
import math

import numpy as np
from fuzzing import (
    AGREED,
    ODD_TEXT,
    ODD_VALUES,
    examples,
    fuzz,
    mutated_bytes,
    mutated_document,
    one_sentence,
    rows,
    tacit,
)
from hypothesis import strategies as st

from tacit.demo.hospitals import STUDY
from tacit.errors import LedgerError, ReleaseError, StudyError
from tacit.holder.account import Charge
from tacit.holder.ledger import Ledger
from tacit.privacy.gaussian import mu_of
from tacit.release import Release
from tacit.simulation import simulate
from tacit.study import Study

# Studies.

FULL = AGREED.document() | {
    "relation": "add-remove",
    "release": {"noise": "triangular", "row_radius": 1.5, "response_bound": 0.5, "count": "noisy"},
}
FULL["features"] = [{"name": "age", "range": [0, 120], "typical": [40, 60]}, *FULL["features"][1:]]


def check_study(study):
    """A study that was accepted can be used."""
    assert study.hash == study.resolved().hash
    assert all(0 < sd < math.inf for sd in study.mechanism().noise.published())
    assert Study.from_document(json.loads(json.dumps(study.document()))).hash == study.hash


@examples(300, 5000)
def test_broken_study_texts(number):
    def check(content):
        try:
            study = Study.from_toml(
                content.decode("utf-8", "replace") if isinstance(content, bytes) else content
            )
        except StudyError as error:
            assert len(str(error).splitlines()) == 1  # noqa: PT017
        else:
            check_study(study)

    fuzz(
        number,
        mutated_bytes(STUDY.encode())
        | st.text(max_size=40)
        | st.text(alphabet='[]="#\n aeé1.,{}_-', max_size=60),
        check,
    )


@examples(400, 5000)
def test_broken_study_documents(number):
    def check(document):
        try:
            study = Study.from_document(document)
        except StudyError as error:
            assert len(str(error).splitlines()) == 1  # noqa: PT017
        else:
            check_study(study)

    fuzz(number, mutated_document(AGREED.document()) | mutated_document(FULL) | ODD_VALUES, check)


@examples(60, 1000)
def test_broken_study_files(number, tmp_path):
    path = tmp_path / "study.toml"

    def check(content):
        path.write_bytes(content)
        code, out, err = tacit(tmp_path, "study", "check", "study.toml")
        if code != 0:
            one_sentence(code, out, err)
        assert [file.name for file in tmp_path.iterdir()] == ["study.toml"]

    fuzz(number, mutated_bytes(STUDY.encode()) | st.binary(max_size=60), check)


@examples(60, 1000)
def test_odd_column_descriptions(number, tmp_path):
    texts = st.text(alphabet="ab:|.0123e-+\"\\' \n\x1b\u2028é", max_size=12) | ODD_TEXT.filter(
        lambda text: "\x00" not in text
    )

    def check(text):
        code, out, err = tacit(
            tmp_path,
            "study",
            "new",
            "--response",
            "y:0..1",
            f"--columns={text}",
            "--out",
            "new.toml",
        )
        if code == 0:
            check_study(Study.load(tmp_path / "new.toml"))
            (tmp_path / "new.toml").unlink()
        else:
            one_sentence(code, out, err)
        assert not list(tmp_path.iterdir())

    fuzz(number, texts, check)


# Releases.

RELEASE = simulate(AGREED, rows(), np.random.default_rng(1), holder="north")
NOISY = simulate(Study.from_document(FULL), rows(), np.random.default_rng(1), holder="north")


def check_release(text):
    try:
        release = Release.from_json(text)
    except ReleaseError as error:
        assert len(str(error).splitlines()) <= 1  # noqa: PT017
        assert len(str(error)) < 1000  # noqa: PT017
    else:
        assert Release.from_json(release.to_json()).to_json() == release.to_json()
        assert np.isfinite(release.gram).all()
        assert release.study.d == len(release.xty)


@examples(200, 5000)
def test_broken_release_texts(number):
    fuzz(
        number,
        mutated_bytes(RELEASE.to_json().encode()) | st.binary(max_size=50) | st.text(max_size=50),
        check_release,
    )


@examples(300, 5000)
def test_broken_release_documents(number):
    documents = mutated_document(json.loads(RELEASE.to_json())) | mutated_document(
        json.loads(NOISY.to_json())
    )
    fuzz(number, documents | ODD_VALUES, lambda document: check_release(json.dumps(document)))


@examples(40, 1000)
def test_broken_release_files(number, tmp_path):
    def check(content):
        (tmp_path / "north.json").write_bytes(content)
        try:
            Release.from_json(content)
        except ReleaseError:
            one_sentence(
                *tacit(
                    tmp_path, "fit", "north.json", "--out", "posterior.parquet", "--allow-simulated"
                )
            )
            assert [file.name for file in tmp_path.iterdir()] == ["north.json"]

    fuzz(number, mutated_bytes(RELEASE.to_json().encode()), check)


# Ledgers.


@examples(100, 2000)
def test_damaged_ledgers(number, tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.set_limit("default", 5.0, 1e-6)
    charge = Charge(
        0,
        "default",
        "study",
        "sha256:1",
        "north",
        0.1,
        1e-6,
        mu_of(0.1, 1e-6),
        "2026-01-31T09:30:00Z",
        None,
    )
    ledger.record(ledger.pay(charge, "replace-one").charge, RELEASE.to_json())
    whole = ledger.path.read_bytes()

    def check(content):
        ledger.path.write_bytes(content)
        try:
            for account in ledger.accounts():
                assert account.spent >= 0
            ledger.pay(charge, "replace-one", again=True)
        except LedgerError as error:
            assert len(str(error).splitlines()) == 1  # noqa: PT017
        ledger.path.unlink()

    fuzz(number, mutated_bytes(whole), check)
