"""The proofs, compiled once for all tests that ask them something."""

import os
import shutil

import pytest

from proofs.check import check

NEEDS_COQ = pytest.mark.skipif(
    shutil.which("coqc") is None and "CI" not in os.environ, reason="Coq is not installed"
)


def pytest_collection_modifyitems(items):
    """Tests that use the proofs run in one process, which compiles them, and need Coq."""
    for item in items:
        if "proven" in getattr(item, "fixturenames", ()):
            item.add_marker(NEEDS_COQ)
            item.add_marker(pytest.mark.xdist_group("proofs"))


@pytest.fixture(scope="session")
def proven(tmp_path_factory):
    """A folder in which all proofs are compiled, from nothing, and rest on nothing unexpected."""
    assert shutil.which("coqc"), "CI must have Coq"
    folder = tmp_path_factory.mktemp("proofs")
    check(folder)
    return folder
