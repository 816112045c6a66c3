"""Examples of the documentation, run as they stand."""

import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tacit.study import Study

DOCS = Path(__file__).parents[1] / "docs"
PROGRAM = Path(sysconfig.get_path("scripts")) / "tacit"


def blocks(page, section, language):
    """Code blocks of one section of a page, or of the whole of it."""
    text = (DOCS / page).read_text(encoding="utf-8")
    if section:
        text = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def run(code, folder):
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def expected(code):
    """What the comments after `print` say it prints."""
    return [line.split("  # ", 1)[1] for line in code.splitlines() if line.startswith("print(") and "  # " in line]


def test_the_formula_of_the_study_page(tmp_path):
    [code] = blocks("study.md", "Formulas", "python")
    assert run(code, tmp_path).splitlines() == expected(code)


def test_the_command_of_the_study_page(tmp_path):
    if not PROGRAM.exists():
        pytest.skip("the program `tacit` is not installed beside this Python")
    [command] = blocks("study.md", "Formulas", "sh")
    program, *arguments = shlex.split(command.replace("\\\n", " "))
    assert program == "tacit"
    subprocess.run([PROGRAM, *arguments], cwd=tmp_path, check=True, capture_output=True)
    assert Study.load(tmp_path / "study.toml").columns[-2:] == ("legendre(bmi, 2)", "age:sex[male]")


def test_the_terms_of_the_study_page():
    [terms] = blocks("study.md", "Formulas", "toml")
    columns = [("age", "range = [18, 100]"), ("sex", 'levels = ["f", "m"]'), ("bmi", "range = [10, 60]"), ("income", "range = [100, 1e6]")]
    features = "".join(f'[[features]]\nname = "{name}"\n{kind}\n' for name, kind in columns)
    head = 'name = "s"\nepsilon = 1\ndelta = 1e-6\n[response]\nname = "y"\nrange = [0, 1]\n'
    assert Study.from_toml(head + features + terms).columns[-1] == "log(income):sex[m]"


def test_the_estimators_page(tmp_path):
    first, second = blocks("estimator.md", None, "python")
    printed = run(first, tmp_path).splitlines()
    assert printed[0].endswith(" (3,) (3,)")
    assert any(line.startswith("age ") for line in printed)
    assert run(second, tmp_path).splitlines() == expected(second)
