"""`tacit predict` and `tacit report` as a user runs them.

Covers `tacit.cli.predict`, `tacit.cli.report`.
"""

import json
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import tacit as package
from tacit.demo.hospitals import STUDY, patients, write_new_patients
from tacit.simulation import simulate


@pytest.fixture(scope="module")
def posterior(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("fit") / "posterior.parquet"
    study, rng = package.Study.from_toml(STUDY), np.random.default_rng(0)
    package.fit(
        package.collect(
            [simulate(study, patients(rng, 6000), rng, holder="a")], allow_simulated=True
        )
    ).save(path)
    return path


def test_predict_writes_a_row_for_each(tacit, house, posterior):
    write_new_patients(house / "new.csv")
    code, out, err = tacit("predict", posterior, "new.csv", "--out", "p.csv", "--keep", "patient")
    assert (code, err) == (0, "")
    assert "p.csv: predictions of 'days' for 200 rows, with 90 % intervals" in out
    assert "rows with a missing value, which get no prediction: 2" in out
    found = pyarrow.csv.read_csv(house / "p.csv")
    assert found.num_rows == 200
    assert found.column_names[:3] == ["patient", "mean", "mean_sd"]
    assert found["mean"].null_count == 2


def test_predict_as_json(tacit, house, posterior):
    write_new_patients(house / "new.csv")
    code, out, _ = tacit(
        "predict", posterior, "new.csv", "--out", "p.parquet", "--interval", 0.5, "--json"
    )
    assert code == 0
    facts = json.loads(out)
    assert (facts["rows"], facts["incomplete"], facts["response"], facts["probability"]) == (
        200,
        2,
        "days",
        0.5,
    )
    assert set(facts["outside"]) <= {"age", "bmi"}
    narrow = pq.read_table(house / "p.parquet")
    wide = package.Posterior.load(posterior).predict(house / "new.csv", 0.9)
    assert (narrow["low"].drop_null().to_numpy() > wide["low"].drop_null().to_numpy()).all()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["predict", "{p}", "table.csv", "--out", "p.txt"], "must end in .parquet or .csv"),
        (["predict", "{p}", "absent.csv", "--out", "p.csv"], "no table at"),
        (["predict", "{p}", "table.csv", "--out", "table.csv"], "would overwrite what is read"),
        (["predict", "{p}", "table.csv", "--out", "no/p.csv"], "its folder must exist"),
        (["predict", "{p}", "table.csv", "--out", "p.csv", "--interval", "2"], "between 0 and 1"),
        (
            ["predict", "{p}", "table.csv", "--out", "p.csv", "--keep", "patient"],
            "column named 'patient'",
        ),
        (["predict", "study.toml", "table.csv", "--out", "p.csv"], "is not a"),
        (["report", "{p}", "--out", "report.pdf"], "must end in .html"),
        (["report", "{p}", "--out", "no/report.html"], "its folder must exist"),
        (["report", "{p}", "--out", "report.html", "--interval", "0"], "between 0 and 1"),
        (
            ["report", "absent.parquet", "--out", "report.html"],
            "cannot read the posterior 'absent.parquet': there is no such file",
        ),
        (["plan", "study.toml", "--rows", "nan"], "--rows must be numbers"),
        (["plan", "study.toml", "--rows", "1e400"], "--rows must be numbers"),
        (["plan", "study.toml", "--rows", "500", "--width", "-1"], "--width must be above 0"),
    ],
    ids=lambda value: " ".join(value[:1] + value[3:]) if isinstance(value, list) else "",
)
def test_wrong_input_gets_one_sentence_and_leaves_nothing(
    tacit, house, posterior, arguments, complaint
):
    before = {path.name for path in house.iterdir()}
    code, out, err = tacit(*(argument.format(p=posterior) for argument in arguments))
    assert (code, out) == (2, "")
    assert complaint in err
    assert err.count("\n") == 1
    assert {path.name for path in house.iterdir()} == before


def test_report_writes_a_page(tacit, house, posterior):
    code, out, err = tacit("report", posterior, "--out", "report.html", "--interval", 0.95)
    assert (code, err) == (0, "")
    assert out == "report.html: open it in a browser, or print it; it holds all it needs\n"
    text = (house / "report.html").read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "95 % interval" in text


def test_report_as_json(tacit, house, posterior):
    code, out, _ = tacit("report", posterior, "--out", "report.html", "--json")
    assert code == 0
    assert json.loads(out)["report"] == "report.html"
    assert (house / "report.html").exists()


def test_the_same_posterior_gives_the_same_page(tacit, house, posterior):
    pages = []
    for name in ("a.html", "b.html"):
        tacit("report", posterior, "--out", name)
        pages.append((house / name).read_bytes())
    assert pages[0] == pages[1]
