"""Families: what is refused, and the way from releases to probabilities by commands.

Covers `tacit.analyst.families.fit`.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from answered import MIXED, NORMAL, drawn, study_of
from numpy.testing import assert_allclose
from scipy.special import expit

from tacit.analyst.collection import Collection, collect
from tacit.analyst.fit import fit
from tacit.errors import MethodError
from tacit.holder.statistics import statistics_of
from tacit.rows.table import table_of
from tacit.simulation import simulate
from tacit.study import Study


def refused(study: Study, **options: Any) -> str:
    rng = np.random.default_rng(7)
    features = [feature.model_dump() for feature in study.features]
    table, x = drawn([{k: v for k, v in f.items() if v is not None} for f in features], rng, 200)
    table["y"] = (x[:, 1] > 0) * 1.0
    release = simulate(study, table, rng, holder="a")
    with pytest.raises(MethodError) as refusal:
        fit(collect([release], allow_simulated=True), **({"family": "logistic"} | options))
    return str(refusal.value)


def test_refusals_name_the_field_the_rule_and_the_way_out() -> None:
    plain = study_of(NORMAL)
    assert "range is [0, 1]" in refused(study_of(NORMAL, 2.0))
    assert "one of logistic, probit, poisson" in refused(plain, family="gamma")
    assert "goes with noise-aware" in refused(plain, method="exact-fixed-s")
    assert "fit its release by itself" in refused(plain, holders="separate")
    assert "with an intercept" in refused(study_of(NORMAL, intercept=False))
    bound = study_of(NORMAL, release={"response_bound": 0.5})
    assert "response_bound of 1" in refused(bound)
    withheld = study_of(NORMAL, relation="add-remove", release={"count": "withheld"})
    assert "number of rows" in refused(withheld)


def test_a_count_must_begin_at_zero() -> None:
    study = Study.from_document(
        study_of(NORMAL).document() | {"response": {"name": "y", "range": [-1, 1]}}
    )
    assert "begins at 0" in refused(study, family="poisson")


def test_a_response_of_zero_and_one_is_not_cut() -> None:
    """Shrinking takes ±1 nearer to 0, and the bound of 1 cuts nothing: y'y is Σα²."""
    rng = np.random.default_rng(8)
    table, x = drawn(MIXED, rng, 2000)
    table["y"] = (rng.random(len(x)) < 0.3) * 1.0
    study = study_of(MIXED)
    gram = statistics_of(study, table_of(table, study).batches()).floats()
    assert study.response_bound == 1
    assert gram[-1, -1] == pytest.approx(gram[0, 0], rel=1e-4)


def test_collections_keep_their_straight_line() -> None:
    """A family changes nothing of what a fit without one says."""
    rng = np.random.default_rng(10)
    table, x = drawn(NORMAL, rng, 2000)
    table["y"] = (rng.random(len(x)) < expit(x[:, 1])) * 1.0
    study = study_of(NORMAL)
    collection: Collection = collect(
        [simulate(study, table, rng, holder="a")], allow_simulated=True
    )
    before = fit(collection).interval()
    fit(collection, family="logistic")
    assert_allclose(fit(collection).interval(), before)


# The command line.


def test_from_releases_to_probabilities_by_commands(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from tacit.cli import app

    rng = np.random.default_rng(11)
    table, x = drawn(NORMAL, rng, 5000)
    table["y"] = (rng.random(len(x)) < expit(x @ np.array([-1.0, 0.8, 0.0, 0.0]))) * 1.0
    release = simulate(study_of(NORMAL, epsilon=3.0), table, rng, holder="a")
    (tmp_path / "a.json").write_text(release.to_json(), encoding="utf-8")
    rows = "x0,x1,x2\n-2,0,0\n2,0,0\n"
    (tmp_path / "new.csv").write_text(rows, encoding="utf-8")

    def tacit(*words: str) -> dict[str, Any]:
        done = CliRunner().invoke(app, [*words, "--json"])
        assert done.exit_code == 0, done.output
        facts: dict[str, Any] = json.loads(done.stdout)
        return facts

    posterior = str(tmp_path / "posterior.parquet")
    fitted = tacit(
        *("fit", str(tmp_path / "a.json"), "--allow-simulated", "--family", "logistic"),
        *("--out", posterior),
    )
    assert fitted["family"] == "logistic"
    assert fitted["ratios"][0]["ratio"] == pytest.approx(np.exp(0.8), rel=0.2)
    told = tacit("predict", posterior, str(tmp_path / "new.csv"), "--out", str(tmp_path / "p.csv"))
    assert told["response"] == "y"
    lines = (tmp_path / "p.csv").read_text(encoding="utf-8").splitlines()[1:]
    means = [float(line.split(",")[0]) for line in lines]
    assert_allclose(means, expit([-2.6, 0.6]), atol=0.05)
    planned = tacit(
        *("plan", _written(tmp_path, study_of(NORMAL)), "--rows", "5000"),
        *("--family", "logistic", "--rate", "0.3"),
    )
    assert planned["forecasts"][0]["widths"]["x0"] > 0


def _written(folder: Path, study: Study) -> str:
    from tacit.study.toml import study_toml

    path = folder / "study.toml"
    path.write_text(study_toml(study), encoding="utf-8")
    return str(path)
