"""Releases of given tables and seeds keep their bits, as the documents in `golden/` have them.

Covers `tacit.simulation`, and through it the encoder, the statistics, the calibration and the
layout of what is published. The documents were written before the tree was redrawn;
`python tests/test_golden.py` writes them anew: only for a change of the bits that is meant, and
said in the changelog.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from tacit import Study
from tacit.simulation import simulate, simulate_sum

GOLDEN = Path(__file__).parent / "golden"
KEYS = {"north": "A" * 43 + "=", "south": "B" * 43 + "=", "east": "C" * 43 + "="}
PLAIN = """
name = "stay"
epsilon = 1.0
delta = 1e-6
[response]
name = "days"
range = [0, 30]
[[features]]
name = "age"
range = [18, 100]
[[features]]
name = "bmi"
range = [10, 60]
typical = [18, 35]
[[features]]
name = "ward"
levels = ["surgery", "medicine", "other"]
other = "other"
"""
HEAD, TABLES = PLAIN.split("[response]")
STUDIES = {
    "plain": PLAIN,
    "add-remove": f'relation = "add-remove"\n{PLAIN}',
    "through-the-origin": f"intercept = false\n{PLAIN}",
    "triangular": f'{PLAIN}[release]\nnoise = "triangular"\nsmallest_eigenvalue = true\n',
    "responses": 'responses = ["days", "cost"]\n'
    f'{PLAIN}[[features]]\nname = "cost"\nrange = [0, 9]\n',
    "averaged": f"{PLAIN}[release]\naverage = 3\n",
    "sum": PLAIN
    + "[secure_sum]\nleast = 3\ncolluding = 0\n[secure_sum.holders]\n"
    + "".join(f'{name} = "{key}"\n' for name, key in KEYS.items()),
}
FORMULA = {
    "age": (18, 100),
    "bmi": (10, 60),
    "ward": ["surgery", "medicine", "other"],
    "days": (0, 30),
}


def studies():
    every = {name: Study.from_toml(text) for name, text in STUDIES.items()}
    formula = "days ~ age * ward + poly(bmi, 2)"
    return every | {
        "formula": Study.from_formula(formula, FORMULA, name="terms", epsilon=2.0, delta=1e-7)
    }


def table(rows=400):
    rng = np.random.default_rng(20261115)
    return {
        "age": rng.normal(60, 18, rows).round(1),
        "bmi": rng.gamma(20, 1.3, rows).round(2),
        "ward": np.array(["surgery", "medicine", "other"])[rng.integers(3, size=rows)],
        "days": rng.exponential(6, rows).round(),
        "cost": np.random.default_rng(20261116).gamma(2, 1.5, rows).round(1),
    }


def release_of(name, study):
    rng = np.random.default_rng(7)
    if name == "sum":
        return simulate_sum(study, [table(90), table(80), table(70)], rng)
    return simulate(study, table(), rng, holder="north")


def document_of(name, study):
    """What a release says, but for when and by which version it was made."""
    document = json.loads(release_of(name, study).to_json())
    return {
        field: value for field, value in document.items() if field not in {"created", "software"}
    }


@pytest.mark.parametrize("name", [*STUDIES, "formula"])
def test_a_release_keeps_its_bits(name):
    kept = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    assert document_of(name, studies()[name]) == kept


if __name__ == "__main__":
    for name, study in studies().items():
        text = json.dumps(document_of(name, study), indent=1, ensure_ascii=False)
        (GOLDEN / f"{name}.json").write_text(text + "\n", encoding="utf-8")
