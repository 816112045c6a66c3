"""`tacit predict` and `tacit report` as a user runs them.

Covers `tacit.cli.predict`, `tacit.cli.report`.
"""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
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


FORMULAS = ["=cmd|'/C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1"]
HARMLESS = ["north", "a=b", "'=1", "", "é"]


def test_predictions_name_the_response_that_was_asked_for(tacit):
    """Of a study of several; the page of the report, too."""
    document = {
        "name": "stay",
        "epsilon": 3.0,
        "delta": 1e-6,
        "responses": ["days", "cost"],
        "response": {"name": "days", "range": [0, 30]},
        "features": [{"name": "age", "range": [18, 100]}, {"name": "cost", "range": [0, 100]}],
    }
    rng = np.random.default_rng(0)
    age = rng.uniform(18, 100, 4000)
    table = {"age": age, "days": age / 5, "cost": age / 2 + rng.normal(0, 5, 4000)}
    release = simulate(package.Study.from_document(document), table, rng, holder="h")
    collected = package.collect([release], allow_simulated=True)
    package.fit(collected, response="cost").save("cost.parquet")
    Path("new.csv").write_text("age\n40\n", encoding="utf-8")
    code, out, _ = tacit("predict", "cost.parquet", "new.csv", "--out", "p.csv")
    assert code == 0
    assert "predictions of 'cost' for 1 rows" in out
    code, _, _ = tacit("report", "cost.parquet", "--out", "r.html")
    assert code == 0
    page = Path("r.html").read_text(encoding="utf-8")
    assert "uncertain about the cost of a single usual case" in page


@pytest.mark.parametrize("dictionary", [False, True])
def test_kept_texts_are_no_formulas_to_a_spreadsheet(tacit, house, posterior, dictionary):
    """In a CSV file alone: a Parquet file has types, and -5 is a number in either."""
    table = patients(np.random.default_rng(0), len(FORMULAS) + len(HARMLESS))
    notes = pa.array(FORMULAS + HARMLESS)
    table = table.append_column("note", notes.dictionary_encode() if dictionary else notes)
    table = table.append_column("balance", pa.array(-np.arange(len(notes)) - 1))
    pq.write_table(table, house / "new.parquet")
    kept = ("--keep", "note", "--keep", "balance")
    assert tacit("predict", posterior, "new.parquet", "--out", "p.csv", *kept)[0] == 0
    with (house / "p.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["note"] for row in rows] == [f"'{text}" for text in FORMULAS] + HARMLESS
    assert [row["balance"] for row in rows] == [str(-k - 1) for k in range(len(notes))]
    assert tacit("predict", posterior, "new.parquet", "--out", "p.parquet", *kept)[0] == 0
    assert pq.read_table(house / "p.parquet")["note"].to_pylist() == FORMULAS + HARMLESS


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_predict_overwrites_predictions_and_nothing_else(tacit, house, posterior, suffix):
    write_new_patients(house / "new.csv")
    out = house / f"p{suffix}"
    command = ("predict", posterior, "new.csv", "--out", out.name, "--keep", "patient")
    assert tacit(*command)[0] == 0
    assert tacit(*command)[0] == 0  # its own
    out.write_bytes(b"")
    assert tacit(*command)[0] == 0  # an empty one
    write_new_patients(house / "other.csv")
    for content in (b"not a table", (house / "other.csv").read_bytes(), b"\x00" * 100):
        out.write_bytes(content)
        code, _, err = tacit(*command)
        assert code == 2
        assert f"{out.name!r} exists already and holds no predictions" in err
        assert out.read_bytes() == content
    pq.write_table(pyarrow.csv.read_csv(house / "other.csv"), house / "q.parquet")
    assert tacit("predict", posterior, "new.csv", "--out", "q.parquet")[0] == 2


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


# Holders.


@pytest.fixture(scope="module")
def three(tmp_path_factory) -> Path:
    """A posterior of three holders whose levels differ, saved beside their releases."""
    folder = tmp_path_factory.mktemp("three")
    study, rng = package.Study.from_toml(STUDY), np.random.default_rng(0)
    for holder, level in (("a", 0.0), ("b", 2.0), ("c", -2.0)):
        table = patients(rng, 6000)
        days = table["days"].to_numpy() + level
        table = table.set_column(table.schema.get_field_index("days"), "days", [days])
        simulate(study, table, rng, holder=holder).save(folder / f"{holder}.json")
    return folder


def test_fit_says_in_its_last_line_that_holders_differ(tacit, three):
    code, out, err = tacit("fit", three, "--allow-simulated", "--out", "p.parquet")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1].startswith("Holders differ in (intercept): ")
    code, out, _ = tacit("summary", "p.parquet", "--by-holder")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[-3:]] == ["a", "b", "c"]
    code, out, _ = tacit("summary", "p.parquet", "--json")
    assert json.loads(out)["holders"]["differ"] == ["(intercept)"]


def test_holders_may_be_taken_as_alike_or_alone(tacit, three):
    widths = {}
    for holders in ("differ", "common", "separate"):
        options = ("--allow-simulated", "--holders", holders, "--out", f"{holders}.parquet")
        code, out, _ = tacit("fit", three, *options, "--json")
        assert code == 0
        first = json.loads(out)["coefficients"][0]
        widths[holders] = first["high"] - first["low"]
    assert max(widths["common"], widths["separate"]) < widths["differ"]
    code, _, err = tacit("summary", "common.parquet", "--by-holder")
    assert code == 2
    assert "takes holders to be alike" in err


def test_predict_for_a_holder(tacit, house, three):
    write_new_patients(house / "new.csv")
    tacit("fit", three, "--allow-simulated", "--out", "p.parquet")
    means = {}
    for holder in ("b", "c", "new"):
        code, _, _ = tacit("predict", "p.parquet", "new.csv", "--holder", holder, "--out", "o.csv")
        assert code == 0
        means[holder] = np.nanmean(pyarrow.csv.read_csv(house / "o.csv")["mean"].to_numpy())
    assert means["b"] - means["c"] == pytest.approx(4, abs=0.3)
    code, _, err = tacit("predict", "p.parquet", "new.csv", "--holder", "d", "--out", "o.csv")
    assert code == 2
    assert "holder must be 'new' or one of a, b, c; got 'd'" in err


def test_plan_takes_a_number_of_visits_and_says_what_they_ask(tacit):
    code, out, _ = tacit("plan", "study.toml", "--rows", "9000", "--visits", "3")
    assert code == 0
    assert "visits:  3 to the same rows, all in one message" in out
    code, out, _ = tacit("plan", "study.toml", "--rows", "9000", "--visits", "3", "--json")
    assert json.loads(out)["forecasts"][0]["visits"] == 3
    code, out, _ = tacit("plan", "study.toml", "--rows", "9,9", "--visits", "3", "--spread", "1")
    assert (code, "visits:  3" in out) == (0, True)


def test_plan_takes_a_spread(tacit):
    rows = ("--rows", "6000,9000,4000", "--json")
    widths = []
    for spread in ((), ("--spread", "0.1")):
        code, out, _ = tacit("plan", "study.toml", *rows, *spread)
        assert code == 0
        widths.append(json.loads(out)["forecasts"][0]["widths"]["age"])
    assert widths[1] > 1.3 * widths[0]
    code, out, _ = tacit("plan", "study.toml", *rows[:2], "--spread", "0.05", "--width", "0.02")
    assert "more holders, or rows, are needed" in out
