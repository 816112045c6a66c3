"""The first stage at a holder: what is summed, charged before it exists, stored, and refused.

Covers `tacit.holder.scales` and `tacit.holder.publish`.
"""

import json

import numpy as np
import pytest

from tacit.errors import (
    BudgetError,
    LedgerError,
    ReleaseError,
    SignatureError,
    StudyError,
    TableError,
)
from tacit.holder import scales as module
from tacit.holder.encode import Diagnostics
from tacit.holder.ledger import Ledger
from tacit.holder.publish import publish
from tacit.holder.scales import moments_of, publish_scales
from tacit.holder.statistics import STEP_BITS
from tacit.privacy.gaussian import mu_of
from tacit.release import Release
from tacit.release.scales import ScalesRelease
from tacit.release.signature import new_key, verify
from tacit.rows.table import table_of
from tacit.simulation import simulate_scales
from tacit.study import Study

DOCUMENT = {
    "name": "stay",
    "epsilon": 1.0,
    "delta": 1e-6,
    "scales_share": 0.1,
    "response": {"name": "y", "range": [0, 10]},
    "features": [
        {"name": "age", "range": [0, 200]},
        {"name": "sex", "levels": ["f", "m"]},
        {"name": "dose", "range": [-5, 5], "typical": [0, 1]},
        {"name": "bmi", "range": [0, 100]},
    ],
}
STUDY = Study.from_document(DOCUMENT)
ROWS = {
    "age": [100.0, 200.0, 0.0, None, 900.0],
    "sex": ["f", "m", "m", None, "f"],
    "dose": [0.0, 1.0, 2.0, 3.0, 4.0],
    "bmi": [25.0, None, 75.0, None, -np.inf],
    "y": [1.0, 2.0, None, 4.0, 5.0],
}


def sums(study=STUDY, rows=ROWS, **options):
    return np.ldexp(
        np.array(moments_of(study, table_of(rows, study).batches(), **options), dtype=float),
        -STEP_BITS,
    ).tolist()


def test_sums_are_of_clamped_values_that_are_there():
    """Age is 0, 1, −1, missing and (clamped) 1; bmi −½, missing, ½, missing and −1. A missing
    response or level does not matter.
    """
    assert sums() == [[4.0, 1.0, 3.0], [3.0, -1.0, 1.5]]


def test_the_holder_may_see_what_was_clamped():
    diagnostics = Diagnostics()
    seen = []
    sums(diagnostics=diagnostics, on_rows=seen.append)
    assert (diagnostics.rows, diagnostics.incomplete, diagnostics.clamped, seen) == (
        5,
        2,
        {"age": 1, "bmi": 1},
        [5],
    )


def test_missing_values_are_refused_where_the_study_says_so():
    with pytest.raises(TableError, match="the table has missing values"):
        sums(Study.from_document(DOCUMENT | {"missing": "refuse"}))


def test_text_that_is_no_number_is_missing():
    ages = ["100", "200.0", "about 3", None, "9e2"]
    missing = [100.0, 200.0, None, None, 900.0]
    assert sums(rows=ROWS | {"age": ages}) == sums(rows=ROWS | {"age": missing})


def test_the_stage_is_paid_stored_and_leaves_the_rest(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    release = publish_scales(STUDY, ROWS, holder="north", ledger=ledger)
    [account] = ledger.accounts()
    [charge] = account.charges
    assert (charge.study, charge.study_hash) == ("stay (scales)", f"{STUDY.hash}/scales")
    assert (charge.epsilon, charge.mu) == (STUDY.stages[0], mu_of(STUDY.stages[0], 1e-6))
    assert charge.release == release.to_json()
    assert ScalesRelease.from_json(charge.release) == release
    assert (account.epsilon, account.delta) == (1.0, 1e-6), "the limit is the whole study's"
    assert account.admits(mu_of(STUDY.stages[1], 1e-6))
    assert [column.name for column in release.columns] == ["age", "bmi"]


def test_the_same_stage_is_not_published_twice(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    publish_scales(STUDY, ROWS, holder="north", ledger=ledger, epsilon=0.1)
    with pytest.raises(LedgerError, match="published from data set 'default' already, as charge 1"):
        publish_scales(STUDY, ROWS, holder="north", ledger=ledger, epsilon=0.1)
    publish_scales(STUDY, ROWS, holder="north", ledger=ledger, epsilon=0.1, again=True)


def test_nothing_is_drawn_without_budget(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.set_limit("default", 0.01, 1e-6)
    monkeypatch.setattr(module.ScalesStage, "privatise", None)
    with pytest.raises(BudgetError):
        publish_scales(STUDY, ROWS, holder="north", ledger=ledger)


def test_a_crash_after_paying_leaves_the_charge(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "ledger.db")

    def crashes(*_arguments):
        raise RuntimeError

    monkeypatch.setattr(module.ScalesStage, "privatise", crashes)
    with pytest.raises(RuntimeError):
        publish_scales(STUDY, ROWS, holder="north", ledger=ledger)
    assert [charge.release for charge in ledger.accounts()[0].charges] == [None]


def test_a_study_of_two_stages_is_not_published_in_one(tmp_path):
    with pytest.raises(StudyError, match="this study has two stages"):
        publish(STUDY, ROWS, holder="north", ledger=tmp_path / "ledger.db")
    one = Study.from_document(DOCUMENT | {"scales_share": None})
    with pytest.raises(StudyError, match="the study has one stage"):
        publish_scales(one, ROWS, holder="north", ledger=tmp_path / "ledger.db")
    assert not (tmp_path / "ledger.db").exists()


def test_a_holder_may_spend_less_but_not_more(tmp_path):
    with pytest.raises(StudyError, match="a holder may give less than agreed, not more"):
        publish_scales(STUDY, ROWS, holder="north", ledger=tmp_path / "ledger.db", epsilon=0.5)
    assert (
        publish_scales(
            STUDY, ROWS, holder="north", ledger=tmp_path / "ledger.db", epsilon=0.1, delta=1e-7
        ).epsilon
        == 0.1
    )


def test_scales_are_signed_as_releases_are(tmp_path):
    public = new_key(tmp_path / "key")
    release = publish_scales(
        STUDY, ROWS, holder="north", ledger=tmp_path / "ledger.db", key=tmp_path / "key"
    )
    assert verify(ScalesRelease.from_json(release.to_json())) == public
    document = json.loads(release.to_json())
    document["columns"][0]["total"] += 1.0
    with pytest.raises(SignatureError, match="does not verify"):
        ScalesRelease.from_json(json.dumps(document))


# The document.

RELEASE = simulate_scales(STUDY, ROWS, np.random.default_rng(1), holder="north")


def test_a_document_reads_back_and_says_what_it_is():
    assert ScalesRelease.from_json(RELEASE.to_json()) == RELEASE
    assert RELEASE.simulated
    assert (RELEASE.epsilon, RELEASE.delta, RELEASE.relation) == (
        STUDY.stages[0],
        1e-6,
        "replace-one",
    )


def test_a_seed_fixes_a_simulation():
    again = simulate_scales(STUDY, ROWS, np.random.default_rng(1), holder="north")
    assert again.columns == RELEASE.columns


def test_neither_document_is_taken_for_the_other():
    with pytest.raises(ReleaseError, match='format must be "tacit-release": this is not a release'):
        Release.from_json(RELEASE.to_json())
    with pytest.raises(
        ReleaseError, match='format must be "tacit-scales": this is not a release of scales'
    ):
        ScalesRelease.from_json(RELEASE.to_json().replace("tacit-scales", "tacit-release"))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"version": 2}, "version must be one of"),
        ({"epsilon": 1.0}, "the document: epsilon must lie between"),
        ({"mu": 0.5}, "the document: mu is impossible"),
        ({"sensitivity": 2.0}, "the document: sensitivity is impossible"),
        (
            {"noise": {"count": 1.0, "total": 1.0, "square": 1.0}},
            "the document: noise.count is impossible",
        ),
        ({"lattice": 3}, "the document: lattice is coarser than the noise allows"),
        ({"relation": "add-remove"}, "the document: relation must be the study's"),
        (
            {"columns": []},
            "the document: columns must be the study's numeric features without typical, in order",
        ),
        ({"created": "today"}, "the document: created must be a time in UTC"),
        ({"study_hash": "sha256:0"}, "the document: study_hash does not match"),
        ({"extra": 1}, "extra: extra inputs are not permitted"),
    ],
    ids=lambda part: next(iter(part)) if isinstance(part, dict) else "",
)
def test_each_corruption_has_its_own_sentence(changes, sentence):
    with pytest.raises(ReleaseError) as caught:
        ScalesRelease.from_json(json.dumps(json.loads(RELEASE.to_json()) | changes))
    assert str(caught.value).startswith(sentence)
