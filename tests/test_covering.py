"""Every module of the package is named by a test file that covers it.

Covers the tests themselves. A file's docstring says "Covers `tacit.study.study`, …" with the
modules' full names in backticks. An `__init__` without code of its own needs no test.
"""

import ast
import re
from pathlib import Path

import tacit

SOURCE = Path(tacit.__file__).parent
TESTS = Path(__file__).parent
COVERS = re.compile(r"\bCovers (.*?)(?:\.\s|\.$|\Z)", re.DOTALL)


def named(docstring):
    """The modules that a docstring says its file covers."""
    sentences = COVERS.findall(docstring)
    return {module for text in sentences for module in re.findall(r"`(tacit[\w.]*)`", text)}


def modules():
    """Every module that has code of its own."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        has_code = any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in tree.body)
        if path.name != "__init__.py" or has_code:
            name = ".".join(("tacit", *path.relative_to(SOURCE).with_suffix("").parts))
            yield name.removesuffix(".__init__")


def covered():
    """The modules that some test file says it covers."""
    files = [*TESTS.rglob("test_*.py")]
    docstrings = [ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "" for path in files]
    return set().union(*map(named, docstrings))


def test_the_sentence_is_read():
    text = "A title.\n\nCovers `tacit.study.study`,\n`tacit.html` and more. Not `tacit.plan`."
    assert named(text) == {"tacit.study.study", "tacit.html"}


def test_what_is_covered_exists():
    packages = {
        ".".join(("tacit", *path.parent.relative_to(SOURCE).parts))
        for path in SOURCE.rglob("__init__.py")
    }
    assert not covered() - set(modules()) - packages


def test_every_module_is_covered_by_a_test_file():
    missing = sorted(set(modules()) - covered())
    assert not missing, "no test file says that it covers\n" + "\n".join(missing)
