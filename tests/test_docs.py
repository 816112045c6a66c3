"""Every command and every piece of Python in the documentation runs, as its reader would run it.

Page by page, in a folder of its own: blocks marked `sh` and `python` are run in the order in which
they stand; a page's Python shares one namespace, and a `text` block right after a `python` block is
what that one prints. Blocks of other kinds (`toml`, `console` for what needs other machines) are
shown, not run. Every page finds `study.toml` and the tables of three hospitals, as `tacit demo
--tables` makes them: `patients.csv` (north's), `south.csv` and `east.csv`.
"""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tacit.demo.hospitals import write_tables

REPOSITORY = Path(__file__).parents[1]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<kind>\w+)[^\n]*\n(?P<text>.*?)^(?P=indent)```$"
    r"(?:\s*^```text\n(?P<printed>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
RUN = {"sh", "python"}


def blocks(page):
    text = page.read_text(encoding="utf-8")
    return [
        (found["kind"], textwrap.dedent(found["text"]), found["printed"])
        for found in BLOCK.finditer(text)
        if found["kind"] in RUN
    ]


@pytest.fixture(scope="module")
def hospitals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hospitals")
    write_tables(folder)
    return folder


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name
)
@pytest.mark.filterwarnings("default")
def test_the_examples_of_a_page_run(page, hospitals, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "reader"
    shutil.copytree(hospitals, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TACIT_LEDGER", str(folder / "ledger.db"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    names = {"__name__": "__documentation__"}
    for kind, text, printed in blocks(page):
        if kind == "python":
            capsys.readouterr()
            exec(compile(text, page.name, "exec"), names)  # noqa: S102
            assert printed in (None, capsys.readouterr().out)
        else:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", text],  # noqa: S607
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(
        r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8")
    ):
        assert (page.parent / target).exists(), target


def test_the_reference_of_commands_is_what_help_says(monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "docs")
    import commands

    assert commands.PAGE.read_text(encoding="utf-8") == commands.page(), (
        "run `python docs/commands.py`"
    )


def test_the_site_builds_without_a_warning(tmp_path):
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(tmp_path / "site"),
    ]
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "paper" / "index.html").exists()
