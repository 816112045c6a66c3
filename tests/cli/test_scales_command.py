"""Two stages through the command line: scales, the second study, its releases, and not a third.

Covers `tacit.cli.scales`.
"""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from tacit.cli import main
from tacit.study import Study

STUDY = """
name = "two stages"
epsilon = 1.0
delta = 1e-6
scales_share = 0.1

[response]
name = "y"
range = [0, 10]

[[features]]
name = 'the "first"'
range = [0, 1000]

[[features]]
name = "second"
range = [0, 1]
"""


@pytest.fixture
def tacit(tmp_path, monkeypatch, capsys):
    """Run the command in this process, in a folder with a study and two holders' tables."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    rng = np.random.default_rng(0)
    for holder in ("north", "south"):
        x = rng.normal(300, 20, 6000)
        table = {
            'the "first"': x,
            "second": rng.uniform(size=6000),
            "y": 5 + (x - 300) / 20 + rng.normal(size=6000),
        }
        pyarrow.csv.write_csv(pa.table(table), tmp_path / f"{holder}.csv")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["tacit", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        streams = capsys.readouterr()
        return code, streams.out, streams.err

    return run


def publish(tacit, study, holder, out, *options):
    return tacit(
        "publish",
        study,
        f"{holder}.csv",
        "--holder",
        holder,
        "--ledger",
        f"{holder}.db",
        "--out",
        out,
        *options,
    )


def spent(tacit, holder):
    code, out, _ = tacit("ledger", "show", "--ledger", f"{holder}.db", "--json")
    assert code == 0
    [account] = json.loads(out)
    return account


def test_two_stages_from_end_to_end(tacit, tmp_path):
    agreed = Study.from_toml(STUDY)
    for holder in ("north", "south"):
        code, out, err = publish(
            tacit, "study.toml", holder, f"{holder}.scales.json", "--stage", "scales", "--json"
        )
        assert (code, err) == (0, "")
        assert json.loads(out)["epsilon"] == agreed.stages[0]
    code, out, err = tacit(
        "scales", "north.scales.json", "south.scales.json", "--out", "study2.toml"
    )
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["column", "range", "typical"]
    assert lines[1].split() == ["the", '"first"', "0", "..", "1000", *lines[1].split()[-3:]]
    assert lines[2].split() == ["second", "0", "..", "1", "the", "whole", "range"]
    second = Study.load("study2.toml")
    low, high = second.features[0].typical
    assert 200 < low < 270
    assert 330 < high < 400

    text = (tmp_path / "study2.toml").read_bytes()
    assert tacit("scales", "south.scales.json", "north.scales.json", "--out", "again.toml")[0] == 0
    assert (tmp_path / "again.toml").read_bytes() == text, (
        "a holder who has the files makes the same study"
    )

    for holder in ("north", "south"):
        assert publish(tacit, "study2.toml", holder, f"{holder}.json")[0] == 0
        account = spent(tacit, holder)
        assert account["limit"] == {"epsilon": 1.0, "delta": 1e-6}
        assert account["epsilon_spent"] == pytest.approx(1.0, rel=1e-8)
        assert account["epsilon_spent"] <= 1.0 + 1e-12
        assert [charge["study"] for charge in account["charges"]] == [
            "two stages (scales)",
            "two stages",
        ]
        for study, stage in (("study.toml", "scales"), ("study2.toml", "statistics")):
            code, out, err = publish(
                tacit, study, holder, "third.json", "--stage", stage, "--again"
            )
            assert (code, out) == (2, "")
            assert "nothing was published" in err
        assert len(spent(tacit, holder)["charges"]) == 2
    assert not (tmp_path / "third.json").exists()

    code, out, _ = tacit("fit", "north.json", "south.json", "--out", "posterior.parquet", "--json")
    assert code == 0
    slope = json.loads(out)["coefficients"][1]
    assert slope["mean"] == pytest.approx(1 / 20, abs=6 * slope["sd"])
    assert slope["sd"] < 0.01


def test_the_typical_intervals_as_json(tacit):
    publish(tacit, "study.toml", "north", "north.scales.json", "--stage", "scales")
    code, out, _ = tacit("scales", "north.scales.json", "--out", "study2.toml", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["hash"] == Study.load("study2.toml").hash
    assert [column["name"] for column in found["columns"]] == ['the "first"', "second"]


def test_what_does_not_fit_is_refused_in_one_sentence(tacit, tmp_path):
    code, _, err = publish(tacit, "study.toml", "north", "north.json")
    assert code == 2
    assert "this study has two stages" in err
    publish(tacit, "study.toml", "north", "north.scales.json", "--stage", "scales")
    (tmp_path / "study2.toml").write_text("mine")
    for arguments, sentence in (
        (["north.scales.json", "--out", "study2.toml"], "exists already"),
        (["north.scales.json", "north.scales.json", "--out", "other.toml"], "is there twice"),
        (["study.toml", "--out", "other.toml"], "not valid JSON"),
        (["absent.json", "--out", "other.toml"], "cannot read the release"),
    ):
        code, out, err = tacit("scales", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert sentence in err
    assert (tmp_path / "study2.toml").read_text() == "mine"
    code, _, err = tacit("fit", "north.scales.json", "--out", "posterior.parquet")
    assert code == 2
    assert "this is not a release" in err


def test_a_check_of_the_study_names_both_stages(tacit):
    code, out, _ = tacit("study", "check", "study.toml")
    assert code == 0
    assert "scales at epsilon = 0.2912, statistics at 0.9448" in " ".join(out.split())
    stages = json.loads(tacit("study", "check", "study.toml", "--json")[1])["stages"]
    assert stages == dict(zip(("scales", "statistics"), Study.from_toml(STUDY).stages, strict=True))
