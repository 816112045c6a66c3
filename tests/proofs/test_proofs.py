"""The proofs: they compile, rest on the real numbers alone, and prove no wrong constant."""

import re
import shutil
from pathlib import Path

import pytest

from proofs import check
from proofs.check import REAL_NUMBERS, SOURCE, ProofError, axioms, compile_file, files, theorems

DOCS = Path(__file__).parents[2] / "docs" / "proofs.md"

WRONG = [
    ("longest (W V : A) : A := #1 +", "longest (W V : A) : A := #0 +"),
    ("longest (W V : A) : A := #1 +", "longest (W V : A) : A := #2 +"),
    ("one_zero (W V : A) : A := #2 +", "one_zero (W V : A) : A := #1 +"),
    ("one_zero (W V : A) : A := #2 +", "one_zero (W V : A) : A := #3 +"),
    ("A := #2 + #2 * (W * W) + W * W * (W * W) / #2", "A := #2 + #2 * (W * W) + W * W / #2"),
    ("A := #2 + #2 * (W * W) + W * W * (W * W) / #2", "A := #2 + #3 * (W * W) + W * W / #2"),
    ("both := #4 *", "both := #3 *"),
    ("both := #4 *", "both := #5 *"),
    ("if at_most A (W * W) (#2)", "if at_most A (W * W) (#1)"),
    ("if at_most A (W * W) (#2)", "if at_most A (W * W) (#3)"),
    ("if at_most A (V * V) (#2 *", "if at_most A (V * V) (#3 *"),
    ("root A (#1 - #2 *", "root A (#1 - #1 *"),
    ("ReplaceOne => #4 * (k - #1) / k", "ReplaceOne => #3 * (k - #1) / k"),
    ("ReplaceOne => #4 * (k - #1) / k", "ReplaceOne => #4 * (k - #0) / k"),
    ("(#6 * k - #5) / k", "(#6 * k - #6) / k"),
    ("(#6 * k - #5) / k", "(#6 * k - #4) / k"),
    ("AddRemove => c p * c p", "AddRemove => #0"),
    ("eigenvalue_slack : A := #1 / #512", "eigenvalue_slack : A := #1 / #513"),
    ("(W * W + W * W * (W * W) / #2)", "(W * W + W * W * (W * W) / #3)"),
    ("moments_square_weight_squared : A := #2", "moments_square_weight_squared : A := #3"),
    ("moments_squared (columns : A) : A := #4", "moments_squared (columns : A) : A := #3"),
    ("moments_squared (columns : A) : A := #4", "moments_squared (columns : A) : A := #5"),
    ("ReplaceOne => #2 * C", "ReplaceOne => #1 * C"),
    ("ReplaceOne => #2 * C", "ReplaceOne => #3 * C"),
]
"""What `Formulas.v` says, and what it might say wrongly: too little, or more than is needed."""


def compile_after(folder, changed):
    """Compile again what comes after a file that was changed."""
    for name in files()[files().index(changed) + 1 :]:
        compile_file(folder, name)


def test_the_theorems_rest_on_the_real_numbers_alone(proven):
    assert axioms(proven, ["everything"])["everything"] == REAL_NUMBERS


def test_an_assumption_is_noticed(proven, tmp_path, monkeypatch):
    folder = shutil.copytree(proven, tmp_path / "assumed")
    with (folder / "Theorems.v").open("a", encoding="utf-8") as text:
        text.write(
            "Variable wish : False.\nTheorem granted : 1 = 2.\nProof. now destruct wish. Qed.\n"
        )
    monkeypatch.setattr(check, "SOURCE", folder)
    compile_file(folder, "Theorems.v")
    compile_after(folder, "Theorems.v")
    assert axioms(folder, ["everything"])["everything"] - REAL_NUMBERS == {"Theorems.wish"}


def test_the_page_names_every_theorem_and_no_other():
    listed = re.findall(r"^\| `(\w+)`", DOCS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(listed) == sorted(theorems())


@pytest.mark.slow
@pytest.mark.parametrize(("stated", "wrong"), WRONG, ids=[wrong for _, wrong in WRONG])
def test_a_wrong_constant_in_the_statement_is_not_proven(proven, tmp_path, stated, wrong):
    folder = shutil.copytree(proven, tmp_path / "wrong")
    text = (SOURCE / "Formulas.v").read_text(encoding="utf-8")
    assert text.count(stated) == 1
    (folder / "Formulas.v").write_text(text.replace(stated, wrong), encoding="utf-8")
    compile_file(folder, "Formulas.v")
    with pytest.raises(ProofError):
        compile_after(folder, "Formulas.v")
