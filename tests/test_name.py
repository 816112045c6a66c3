"""The name `tacit` on the package index is another project's: every text says `tacit-dp`.

Covers the texts of the repository. Command and import stay `tacit`.
"""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
KINDS = {".py", ".md", ".toml", ".ipynb", ".in", ".yml", ".yaml", ".cff", ".txt", ".service", ""}
PLACES = ("src", "docs", "notebooks", "benchmarks", "experiments", "tests", ".github")
OLD = re.compile(
    r"\btacit\[|pip3? (?:install|uninstall|download)[^\n`,;]*?['\" ]tacit(?![-\w/.])|"
    r"(?:uvx?|pipx)[^\n`]* tacit(?![-\w/.])|pypi\.org/project/tacit(?!-)",
)
FOREIGN = {
    "src/tacit/cli/doctor.py",
    "tests/test_covering.py",
    "tests/test_name.py",
    "tests/cli/test_manners.py",
}
"""Files that name the stranger on purpose."""


def texts():
    """Every text of the repository that a reader or a machine takes a command from."""
    top = [path for path in REPOSITORY.iterdir() if path.is_file()]
    below = [path for place in PLACES for path in (REPOSITORY / place).rglob("*")]
    return [path for path in top + below if path.is_file() and path.suffix in KINDS]


@pytest.mark.parametrize(
    "text",
    [
        "pip install 'tacit[sign]'",
        "pip install tacit",
        "pip install --upgrade 'tacit[flower]'",
        'dependencies = ["tacit[flower]"]',
        "needs tacit[plots]",
        "uv pip install tacit",
        "https://pypi.org/project/tacit/",
    ],
)
def test_the_old_form_is_recognised(text):
    assert OLD.search(text)


@pytest.mark.parametrize(
    "text",
    [
        "pip install 'tacit-dp[sign]'",
        "pip install tacit-dp",
        "pip install numpy, then run tacit doctor",
        "pip install ./tacit_dp-0.1.0.whl",
        "import tacit",
        "tacit publish study.toml",
        "/opt/tacit/bin/pip install 'tacit-dp[flower]'",
    ],
)
def test_the_new_form_is_not(text):
    assert not OLD.search(text)


def test_no_text_names_the_stranger():
    found = [
        f"{path.relative_to(REPOSITORY)}:{number}: {line.strip()[:80]}"
        for path in texts()
        if str(path.relative_to(REPOSITORY)) not in FOREIGN
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if OLD.search(line)
    ]
    assert not found, "\n".join(found)
