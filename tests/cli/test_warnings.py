"""Warnings and advice as a user meets them: files in a folder, `fit`, `summary`, `report`.

Releases have seeded noise, so that every run sees the same numbers. Covers
`tacit.analyst.cautions`, `tacit.analyst.methods.method`, `tacit.analyst.report.findings`.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import tacit
from tacit.analyst.methods import method_named
from tacit.cli import app
from tacit.simulation import simulate

Table = dict[str, np.ndarray]


def study_of(*, wide: float = 1.0, names: tuple[str, ...] = ("age", "dose"), **fields: object):
    """Features in [−1, 1]; the second's public range is `wide` times that."""
    features = [{"name": name, "range": [-1, 1]} for name in names]
    features[1]["range"] = [-wide, wide]
    document = {"name": "warnings", "epsilon": 1.0, "delta": 1e-6, "features": features}
    return tacit.Study.from_document(
        document | {"response": {"name": "y", "range": [-4, 4]}} | fields
    )


def table(rows: int, seed: int, *, dose: float | None = None, age: float = 0.5) -> Table:
    rng = np.random.default_rng(seed)
    ages = rng.uniform(-1, 1, rows)
    doses = rng.uniform(-1, 1, rows) if dose is None else np.full(rows, dose)
    y = age * ages + 0.5 * doses + 0.3 * rng.normal(size=rows)
    return {"age": ages, "dose": doses, "y": y}


@dataclass(frozen=True)
class Told:
    """What one posterior says: on the terminal, as JSON, and in the report's first lines."""

    summary: str
    caveat: str
    report: str


def tell(folder: Path, study: tacit.Study, *tables: Table, method: str = "noise-aware") -> Told:
    """Fit what holders of these tables release, by the commands."""
    rng = np.random.default_rng(0)
    paths = []
    for k, rows in enumerate(tables):
        paths.append(folder / f"h{k}.json")
        simulate(study, rows, rng, holder=f"h{k}").save(paths[-1])
    posterior = str(folder / "posterior.parquet")
    report = folder / "report.html"
    shown = []
    for arguments in (
        ["fit", *map(str, paths), "--out", posterior, "--method", method, "--allow-simulated"],
        ["summary", posterior],
        ["summary", posterior, "--json"],
        ["report", posterior, "--out", str(report)],
    ):
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
        shown.append(done.stdout)
    assert " ".join(shown[1].split()) in " ".join(shown[0].split())
    page = report.read_text(encoding="utf-8").partition("In short")[2].partition("</section>")[0]
    return Told(summary=shown[1], caveat=json.loads(shown[2])["caveat"], report=page)


def assert_said(told: Told, sentence: str) -> None:
    """A sentence stands in the summary, its JSON and the report's head."""
    assert sentence in told.caveat
    assert sentence in " ".join(told.summary.split())
    assert sentence in told.report.replace("&#x27;", "'")


def test_nothing_is_said_of_a_good_study(tmp_path):
    told = tell(tmp_path, study_of(), table(20_000, 1))
    assert told.caveat == ""
    assert "higher" in told.report


@pytest.mark.parametrize(("rows", "planned"), [(5000, []), (1000, [1000])])
def test_ranges_100_times_too_wide_are_told(tmp_path, rows, planned):
    told = tell(tmp_path, study_of(wide=100.0, planned_rows=planned), table(rows, 2))
    assert_said(told, "The noise hides the spread of 'dose'")
    assert "epsilon" not in told.caveat
    assert ("planned_rows" in told.caveat) == (not planned)


def test_a_response_range_100_times_too_wide_is_told(tmp_path):
    """Nothing is then known of any slope: not that none goes with the response."""
    study = study_of(response={"name": "y", "range": [-400, 400]})
    told = tell(tmp_path, study, table(2000, 1))
    assert_said(told, "too little to learn most coefficients from")
    assert_said(told, "a narrower range of the response")
    assert "The study is too small to tell what goes with" in told.report


def test_an_interval_that_is_the_priors_is_told(tmp_path):
    study = study_of(names=("age", "dose", "copy"), epsilon=0.3)
    rows = table(8000, 4)
    rng = np.random.default_rng(4)
    rows["copy"] = np.clip(rows["age"] + 0.01 * rng.normal(size=8000), -1, 1)
    told = tell(tmp_path, study, rows)
    assert_said(told, "the releases tell hardly more than was expected beforehand")
    assert "epsilon" not in told.caveat


def test_a_column_constant_within_each_holder_is_told(tmp_path):
    tables = [table(5000, 5 + k, dose=dose) for k, dose in enumerate((-0.9, 0.1, 0.8))]
    told = tell(tmp_path, study_of(), *tables)
    assert_said(told, "Hardly any variation within holders is seen of 'dose'")
    assert "epsilon" not in told.caveat


def test_a_study_too_small_to_tell_says_so(tmp_path):
    told = tell(tmp_path, study_of(), table(60, 6))
    assert_said(told, "too little to learn most coefficients from")
    assert_said(told, "more rows or a larger epsilon would help")
    assert "The study is too small to tell what goes with" in told.report
    assert "No feature goes clearly" not in told.report


def test_a_large_study_with_nothing_to_find_says_that(tmp_path):
    rows = table(20_000, 7)
    rows["y"] = 0.3 * np.random.default_rng(7).normal(size=20_000)
    told = tell(tmp_path, study_of(), rows)
    assert told.caveat == ""
    assert "No feature goes clearly with" in told.report
    assert "too small" not in told.report


def test_holders_that_differ_are_not_told_to_raise_epsilon(tmp_path):
    """Sites with slopes of either sign, each known well; noise is not what hides the average."""
    tables = [table(8000, 8 + k, age=slope) for k, slope in enumerate((1.5, -1.5, 1.4, -1.3))]
    told = tell(tmp_path, study_of(), *tables)
    assert_said(told, "Holders differ in age")
    assert_said(told, "not more rows or epsilon")
    assert "a larger epsilon would help" not in told.caveat


def test_a_residual_variance_that_is_told_well_enough_is_not_called_vague(tmp_path):
    """Intervals for a new response hold there; of few rows and at half of ε they are rough."""
    assert "residual variance" not in tell(tmp_path, study_of(), table(20_000, 9)).caveat
    told = tell(tmp_path, study_of(epsilon=0.5), table(700, 9))
    assert_said(told, "The releases say little of the residual variance")


@pytest.mark.parametrize(
    ("method", "is_said"),
    [("noise-aware", False), ("exact-fixed-s", True), ("fixed-s-fast", True)],
)
def test_methods_that_leave_the_residual_sd_to_the_prior_say_so(tmp_path, method, is_said):
    """The truth is 0.3; where y'y is not read the prior makes it about 1."""
    told = tell(tmp_path, study_of(), table(5000, 10), method=method)
    sentence = "It does not read y'y: the residual sd, and with it intervals for a new response"
    assert (sentence in told.caveat) == is_said
    if is_said:
        assert_said(told, sentence)


@pytest.mark.parametrize("method", ["normal-x", "fixed-s", "exact-fixed-s", "fixed-s-fast"])
def test_every_such_method_carries_the_sentence(method):
    assert method_named(method).caveat.endswith("rest mostly on the prior.")
    assert method_named("noise-aware").caveat == ""
