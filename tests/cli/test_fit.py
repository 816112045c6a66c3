"""`tacit fit`, `tacit summary` and `tacit plan`, as a user would run them.

Covers `tacit.cli.fit`, `tacit.cli.plan`.
"""

import json
import subprocess
import sys

import pytest

from tacit.demo.hospitals import write_hospitals


def run(*arguments: object, folder) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", "from tacit.cli import main; main()", *map(str, arguments)]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A folder with two releases of the demonstration's hospitals."""
    folder = tmp_path_factory.mktemp("house")
    for holder, table in list(write_hospitals(folder).items())[:2]:
        done = run(
            "publish",
            "study.toml",
            table,
            "--holder",
            holder,
            "--out",
            f"{holder}.json",
            "--ledger",
            f"{holder}.db",
            folder=folder,
        )
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def posterior(house):
    """The same folder, with a posterior."""
    done = run("fit", "north.json", "--out", "p.parquet", folder=house)
    assert done.returncode == 0, done.stderr
    return house


def test_fit_and_summary_tell_the_same(house):
    fitted = run("fit", "north.json", "south.json", "--out", "both.parquet", "--json", folder=house)
    shown = run("summary", "both.parquet", "--json", folder=house)
    assert fitted.returncode == shown.returncode == 0, fitted.stderr + shown.stderr
    first, second = json.loads(fitted.stdout), json.loads(shown.stdout)
    assert first.pop("posterior") == "both.parquet"
    assert first.pop("left_out") == first.pop("absent") == first.pop("unexpected") == []
    assert first == second
    assert [row["name"] for row in second["coefficients"]][:2] == ["(intercept)", "age"]
    assert second["verdict"] == "computed"


def test_a_sampler_reports_its_mixing(house):
    done = run(
        "fit",
        ".",
        "--method",
        "fixed-s",
        "--chains",
        2,
        "--draws",
        600,
        "--warmup",
        300,
        "--out",
        "s.parquet",
        folder=house,
    )
    assert done.returncode == 0, done.stderr
    assert "R-hat" in done.stdout
    assert "takes the noisy X'X for the true one" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["fit", "nowhere.json", "--out", "x.parquet"], "cannot read the release"),
        (["fit", "north.json", "north.json", "--out", "x.parquet"], "twice"),
        (["fit", "north.json", "--method", "magic", "--out", "x.parquet"], "method must be one of"),
        (["fit", "north.json", "--method", "ada-ssp", "--out", "x.parquet"], "smallest_eigenvalue"),
        (["fit", "north.json", "--prior", "strong", "--out", "x.parquet"], "prior must be one of"),
        (
            ["fit", "north.json", "--noise-variance", "-1", "--out", "x.parquet"],
            "noise_variance must be positive",
        ),
        (
            ["fit", "north.json", "--method", "fixed-s", "--chains", "0", "--out", "x.parquet"],
            "chains must be at least 1",
        ),
        (
            ["fit", "north.json", "--trusted-key", "abc", "--out", "x.parquet"],
            "a trusted key goes with its holder",
        ),
        (["fit", "north.json", "--out", "no/x.parquet"], "its folder must exist"),
        (["summary", "north.json"], "is not a posterior"),
        (["summary", "p.parquet", "--interval", "1.5"], "between 0 and 1"),
        (["plan", "study.toml", "--rows", "many"], "--rows must be numbers"),
        (["plan", "study.toml", "--rows", "1000", "--picture", "plan.txt"], ".svg"),
    ],
    ids=lambda value: " ".join(value[:4]) if isinstance(value, list) else "",
)
def test_wrong_input_gets_one_sentence_and_exit_code_2(
    posterior, tacit, monkeypatch, arguments, complaint
):
    monkeypatch.chdir(posterior)
    code, _, told = tacit(*arguments)
    assert code == 2
    assert complaint in told
    assert len(told.strip().splitlines()) == 1
    assert not (posterior / "x.parquet").exists()


def test_plan_gives_a_table_and_a_picture(house):
    done = run(
        "plan",
        "study.toml",
        "--rows",
        "6000,9000",
        "--epsilon",
        "0.5,1",
        "--width",
        "0.1",
        "--picture",
        "plan.svg",
        folder=house,
    )
    assert done.returncode == 0, done.stderr
    assert "epsilon = 0.5" in done.stdout
    assert "is enough" in done.stdout
    assert (house / "plan.svg").read_text(encoding="utf-8").startswith("<?xml")
    facts = json.loads(run("plan", "study.toml", "--rows", "6000", "--json", folder=house).stdout)
    assert set(facts["forecasts"][0]["widths"]) == {
        "(intercept)",
        "age",
        "bmi",
        "sex[male]",
        "admission[emergency]",
    }
