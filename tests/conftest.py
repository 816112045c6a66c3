"""What all tests share."""

import sys

import numpy as np
import pytest
from house import ROWS
from hypothesis import HealthCheck, settings

from tacit.cli import main
from tacit.demo.hospitals import STUDY
from tacit.privacy.gaussian import mu_of

# The same examples in every run, however slow the machine: what fails, fails for everybody.
settings.register_profile(
    "same in every run",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("same in every run")


@pytest.fixture(autouse=True)
def nothing_remembered():
    """A test that breaks the calculus must not be answered by what another computed."""
    mu_of.cache_clear()
    yield
    mu_of.cache_clear()


@pytest.fixture
def same_noise(monkeypatch):
    """Noise of a seed in place of the system's, for what is said of a fit: the same in every run.

    It is drawn where OpenDP would draw, so that all before and after it is as in earnest.
    """
    rng = np.random.default_rng(20261116)

    def measurement(scale):
        return lambda zeros: np.rint(rng.normal(0, scale, len(zeros))).astype(np.int64).tolist()

    monkeypatch.setattr("tacit.privacy.noise._measurement", measurement)


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A holder's working folder, with a study, a table and a ledger of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TACIT_LEDGER", str(tmp_path / "ledger.db"))
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    (tmp_path / "table.csv").write_text(ROWS, encoding="utf-8")
    return tmp_path


@pytest.fixture
def tacit(house, monkeypatch, capsys):  # noqa: ARG001
    """Run the command in this process: gives its exit code, output and error output."""

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
