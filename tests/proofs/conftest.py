"""The proofs, compiled once for all tests that ask them something."""

import os
import shutil

import pytest

from proofs.check import compile_all


@pytest.fixture(scope="session")
def proven(tmp_path_factory):
    """A folder in which all proofs are compiled, from nothing; what they rest on is a test's."""
    if shutil.which("coqc") is None:
        assert "CI" not in os.environ, "CI must have Coq"
        pytest.skip("Coq is not installed")
    folder = tmp_path_factory.mktemp("proofs")
    compile_all(folder)
    return folder
