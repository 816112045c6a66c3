"""The proofs: they compile, rest on the real numbers alone, and prove no wrong constant."""

import re
import shutil
from pathlib import Path

import pytest

from proofs import check
from proofs.check import REAL_NUMBERS, SOURCE, ProofError, axioms, compile_file, files, theorems

pytestmark = pytest.mark.xdist_group("proofs")  # one process compiles them
DOCS = Path(__file__).parents[2] / "docs" / "proofs.md"

WRONG = {
    "Blocks.v": [
        ("longest (W V : A) : A := #1 +", "longest (W V : A) : A := #0 +"),
        ("longest (W V : A) : A := #1 +", "longest (W V : A) : A := #2 +"),
    ],
    "Optimum.v": [
        ("one_zero (W V : A) : A := #2 +", "one_zero (W V : A) : A := #1 +"),
        ("one_zero (W V : A) : A := #2 +", "one_zero (W V : A) : A := #3 +"),
        ("#2 + #2 * (W * W) + W * W * (W * W) / #2", "#2 + #2 * (W * W) + W * W / #2"),
        ("#2 + #2 * (W * W) + W * W * (W * W) / #2", "#2 + #3 * (W * W) + W * W / #2"),
        ("both := #4 *", "both := #3 *"),
        ("both := #4 *", "both := #5 *"),
        ("if at_most A (W * W) (#2)", "if at_most A (W * W) (#1)"),
        ("if at_most A (W * W) (#2)", "if at_most A (W * W) (#3)"),
        ("if at_most A (V * V) (#2 *", "if at_most A (V * V) (#3 *"),
        ("root A (#1 - #2 *", "root A (#1 - #1 *"),
    ],
    "Tables.v": [
        ("AddRemove => c p * c p", "AddRemove => #0"),
        ("eigenvalue_slack : A := #1 / #512", "eigenvalue_slack : A := #1 / #513"),
    ],
    "Averaging.v": [
        ("ReplaceOne => #4 * (k - #1) / k", "ReplaceOne => #3 * (k - #1) / k"),
        ("ReplaceOne => #4 * (k - #1) / k", "ReplaceOne => #4 * (k - #0) / k"),
        ("(#6 * k - #5) / k", "(#6 * k - #6) / k"),
        ("(#6 * k - #5) / k", "(#6 * k - #4) / k"),
    ],
    "FreeSquare.v": [("(W * W + W * W * (W * W) / #2)", "(W * W + W * W * (W * W) / #3)")],
    "Places.v": [
        ("places_square_weight_squared : A := #2", "places_square_weight_squared : A := #3"),
        (
            "places_count_weight_squared (columns : A) : A := columns",
            "places_count_weight_squared (columns : A) : A := #2 * columns",
        ),
        ("places_squared (columns : A) : A := #4", "places_squared (columns : A) : A := #3"),
        ("places_squared (columns : A) : A := #4", "places_squared (columns : A) : A := #5"),
    ],
    "Clipped.v": [
        ("ReplaceOne => #2 * C", "ReplaceOne => #1 * C"),
        ("ReplaceOne => #2 * C", "ReplaceOne => #3 * C"),
    ],
}
"""What `Formulas.v` might say wrongly, too little or too much, by the file that cannot prove it."""
CHANGES = [(file, *change) for file, several in WRONG.items() for change in several]


def needed_by(name):
    """The files that one needs, directly or not, in the order of their compilation."""
    text = (SOURCE / name).read_text(encoding="utf-8")
    imported = re.search(r"From Tacit Require Import ([\w\s]+)\.", text)
    direct = {f"{module}.v" for module in imported[1].split()} if imported else set()
    every = direct.union(*(needed_by(other) for other in direct))
    return [other for other in files() if other in every]


def test_the_theorems_rest_on_the_real_numbers_alone(proven):
    assert axioms(proven, ["everything"])["everything"] == REAL_NUMBERS


def test_an_assumption_is_noticed(proven, tmp_path, monkeypatch):
    folder = shutil.copytree(proven, tmp_path / "assumed")
    with (folder / "Theorems.v").open("a", encoding="utf-8") as text:
        text.write(
            "Variable wish : False.\nTheorem granted : 1 = 2.\nProof. now destruct wish. Qed.\n"
        )
    compile_file(folder, "Theorems.v")
    monkeypatch.setattr(check, "SOURCE", folder)
    assert axioms(folder, ["everything"])["everything"] - REAL_NUMBERS == {"Theorems.wish"}


def test_the_page_names_every_theorem_and_no_other():
    listed = re.findall(r"^\| `(\w+)`", DOCS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(listed) == sorted(theorems())


def test_the_page_counts_what_there_is():
    text = DOCS.read_text(encoding="utf-8")
    assert f"{len(CHANGES)} wrong" in text
    read = ("Formulas.v", "Model.v", "Theorems.v")
    lines = sum(len((SOURCE / name).read_text(encoding="utf-8").splitlines()) for name in read)
    assert f"three files, {lines} lines" in text


@pytest.mark.slow
@pytest.mark.xdist_group("statements")
@pytest.mark.parametrize(("refusing", "stated", "wrong"), CHANGES, ids=[row[2] for row in CHANGES])
def test_a_wrong_constant_in_the_statement_is_not_proven(proven, tmp_path, refusing, stated, wrong):
    folder = shutil.copytree(proven, tmp_path / "wrong")
    text = (SOURCE / "Formulas.v").read_text(encoding="utf-8")
    assert text.count(stated) == 1
    (folder / "Formulas.v").write_text(text.replace(stated, wrong), encoding="utf-8")
    for name in needed_by(refusing):
        compile_file(folder, name)
    with pytest.raises(ProofError):
        compile_file(folder, refusing)
