"""The files around the package: one version, no host, and figures that were recorded.

Covers pyproject.toml, Makefile, CITATION.cff, CHANGELOG.md, constraints.txt, .ci/run, .github/ and
docs/figures.py, benchmarks/frame.py.
"""

import ast
import importlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import tacit

REPOSITORY = Path(__file__).parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BENCHMARKS = sorted(
    path
    for path in (REPOSITORY / "benchmarks").glob("*.py")
    if path.stem != "__main__" and "__main__" in path.read_text(encoding="utf-8")
)
RESULTS = sorted((REPOSITORY / "benchmarks" / "results").glob("*.json"))


def test_the_version_is_one():
    version = PROJECT["version"]
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == version
    changes = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", changes, re.MULTILINE)[1] == version
    assert tacit.__version__ == version


def test_pins_name_no_host_and_have_hashes():
    text = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"index|find-links|trusted-host", text)
    pins = re.findall(r"^([\w.-]+)(?:\[\S+\])?==\S+(?: ; [^\\]+)? \\$", text, re.MULTILINE)
    entries = [line for line in text.splitlines() if not line.startswith((" ", "#"))]
    assert len(pins) == len(entries) > 100
    names = {re.split(r"[<>=\[ ]", need)[0].lower() for need in PROJECT["dependencies"]}
    assert names <= {pin.lower() for pin in pins}


def test_extras_for_one_side_stay_small():
    extras = PROJECT["optional-dependencies"]
    for side, absent in (
        ("dev-holder", {"sampling", "flower", "spark"}),
        ("dev-analyst", {"flower", "spark", "sql"}),
        ("dev-federation", {"sampling", "spark", "sql"}),
    ):
        own = re.search(r"tacit-dp\[(.*?)\]", extras[side][0])[1].split(",")
        assert not absent & set(own)
        assert side in extras["dev"][0]


def test_workflows_run_what_is_run_here():
    script = (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")
    workflow = yaml.safe_load(
        (REPOSITORY / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    )
    jobs = workflow["jobs"]["tests"]["strategy"]["matrix"]["include"]
    assert {job["python"] for job in jobs if job["what"] == "wheel"} == {"3.11", "3.12", "3.13"}
    for job in jobs:
        assert f"\n  {job['what']})\n" in script
    assert {"all", "alone", "wheel", "proofs", "lowest"} == {job["what"] for job in jobs}


def test_every_slow_test_is_run_by_a_target():
    """`make audit`, `calibrate` and `faults` run what is slow in some folders, `proofs` its own."""
    text = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    lines = re.findall(r"pytest -(?:m slow|n 2 --dist loadgroup) (tests/.*)$", text, re.MULTILINE)
    run = [REPOSITORY / place for line in lines for place in line.split()]
    assert len(run) > 5
    for path in (REPOSITORY / "tests").rglob("test_*.py"):
        if "pytest.mark.slow" in path.read_text(encoding="utf-8") and path != Path(__file__):
            assert any(path.is_relative_to(place) for place in run), path


def test_the_script_of_continuous_integration_refuses_what_it_does_not_know():
    done = subprocess.run(
        ["bash", REPOSITORY / ".ci" / "run", "nothing"],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "usage" in done.stderr


def test_the_design_draws_the_tree_that_is_there():
    text = (REPOSITORY / "docs" / "design.md").read_text(encoding="utf-8")
    [tree] = re.findall(r"^src/tacit/\n(.*?)^experiments/", text, re.MULTILINE | re.DOTALL)
    drawn = set()
    parent = ""
    for line in tree.splitlines():
        folder = re.match(r"( +)(\w+)/", line)
        if folder is None:
            continue
        name = folder[2] if len(folder[1]) == 2 else f"{parent}/{folder[2]}"
        parent = folder[2] if len(folder[1]) == 2 else parent
        drawn.add(name)
    source = Path(tacit.__file__).parent
    there = {
        str(path.parent.relative_to(source))
        for path in source.rglob("*.py")
        if path.parent != source
    }
    mentioned = re.findall(r"\w+/", text.split("## Decisions")[0])
    hidden = {folder for folder in there if folder not in drawn}
    assert all(f"{folder.split('/')[-1]}/" in mentioned for folder in hidden), hidden
    assert drawn <= there
    top = {path.stem for path in source.glob("*.py") if not path.stem.startswith("__")}
    assert all(re.search(rf"\b{name}\b", tree) for name in top), top


# Benchmarks.


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_every_benchmark_stands_on_the_frame(path):
    text = path.read_text(encoding="utf-8")
    assert "bench.finish()" in text
    assert "ArgumentParser" not in text
    assert f"python benchmarks/{path.name}" in text


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_what_a_benchmark_imports_is_there(path):
    """Nobody runs all of them after every change."""
    pytest.importorskip("flwr")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tacit"):
            module = importlib.import_module(node.module)
            for alias in node.names:
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")


def test_a_benchmark_explains_itself():
    command = [sys.executable, REPOSITORY / "benchmarks" / "formula.py", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for option in ("--quick", "--check", "--out", "--runs"):
        assert option in done.stdout


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_a_record_says_what_was_measured_where(path):
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["benchmark"] == path.stem.split("-")[0]
    assert re.match(r"[0-9a-f]{12}", record["commit"])
    assert {"processor", "cores", "python"} <= set(record["machine"])
    assert not record["options"].get("quick")
    assert "/" not in json.dumps(record["options"])
    for table in record["tables"].values():
        assert all(len(row) == len(table["columns"]) for row in table["rows"])


FRAMED = """
import sys
sys.path.append({folder!r})
sys.argv = ["toy.py", "--check", "--out", {out!r}]
from frame import Bench
bench = Bench("A toy.", quick="less")
bench.options()
table = bench.table("t", {{"name": "<6", "share": ".0f%", "n": ",", "none": ".1f"}})
table.row("a", 0.5, 1234, float("nan"))
bench.say("words")
bench.bar("one", met=True)
bench.bar("two", met={met})
bench.finish()
"""


@pytest.mark.parametrize("met", [True, False])
def test_the_frame_prints_records_and_judges(tmp_path, met):
    folder = str(REPOSITORY / "benchmarks")
    code = FRAMED.format(folder=folder, out=str(tmp_path), met=met)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == (0 if met else 1), done.stderr
    assert ("all 2 bars met" if met else "1 of 2 bars missed:\n  two") in done.stdout
    record = json.loads((tmp_path / "toy.json").read_text(encoding="utf-8"))
    assert record["tables"]["t"] == {
        "columns": ["name", "share", "n", "none"],
        "rows": [["a", "50%", "1,234", ""]],
    }
    assert record["said"] == ["words"]
    assert [bar["met"] for bar in record["bars"]] == [True, met]


# Figures of the documentation.


@pytest.fixture
def figures(monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "docs")
    import figures

    return figures


def test_the_figures_of_the_docs_are_those_recorded(figures):
    for page in figures.PAGES:
        text = page.read_text(encoding="utf-8")
        assert figures.filled(text) == text, f"{page.name}: run `python docs/figures.py`"


def test_a_page_is_filled_from_a_record(figures, tmp_path, monkeypatch):
    table = {"columns": ["way", "n"], "rows": [["a", "1"], ["b", "2"]]}
    (tmp_path / "toy.json").write_text(json.dumps({"tables": {"t": table}}), encoding="utf-8")
    monkeypatch.setattr(figures, "RESULTS", tmp_path)
    page = "<!-- bench:toy t -->\nold\n<!-- end -->\n\n"
    page += "<!-- bench:toy t where way=b -->\n<!-- end -->\n"
    assert figures.filled(page) == (
        "<!-- bench:toy t -->\n| way | n |\n| --- | --- |\n| a | 1 |\n| b | 2 |\n<!-- end -->\n\n"
        "<!-- bench:toy t where way=b -->\n| n |\n| --- |\n| 2 |\n<!-- end -->\n"
    )
    unknown = "<!-- bench:other t -->\nkept\n<!-- end -->\n"
    assert figures.filled(unknown) == unknown


def test_every_marker_is_one_that_can_be_filled(figures):
    for page in figures.PAGES:
        text = page.read_text(encoding="utf-8")
        assert text.count("<!-- bench:") == len(figures.MARKER.findall(text)), page.name
        for marker in figures.MARKER.finditer(text):
            script = f"{marker['bench'].split('-')[0]}.py"
            assert (REPOSITORY / "benchmarks" / script).exists(), marker[0]
