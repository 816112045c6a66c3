"""Parts of experiments: what is computed apart, settings, tables of means and verdicts."""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from small_settings import SMALL

from experiments import __main__ as command
from experiments import settings
from experiments.model.printed import NON_PRIVATE, REAL
from experiments.run import apart, compute
from experiments.run.apart import Piece, whole
from experiments.run.parts import PartError, columns_of, part_of, record, save
from experiments.show.ahead import informed_table, ratio_table
from experiments.show.real import same_probability, verdict
from experiments.show.report import INFORMED
from experiments.show.summary import Mean, mean_of

ROOT = Path(__file__).parents[2]


def test_cells_that_the_prior_alone_decides_are_named():
    """Ours is twice as far off as theirs at ε = 1 and half as far at 10; informed, half in both."""
    errors = {"fixed-s": (1.0, 1.0), "noise-aware": (2.0, 0.5), INFORMED: (0.5, 0.5)}
    columns = {
        "method": np.repeat(list(errors), 2),
        "calibration": np.full(6, "honest"),
        "d": np.full(6, 2),
        "holders": np.full(6, 1),
        "epsilon": np.tile([1.0, 10.0], 3),
        "estimation": np.concatenate(list(errors.values())),
    }
    made = settings.record_of("simulated", SMALL["simulated"] | {"holders": [1], "seed": 0})
    plain = ratio_table(columns, "estimation", made)
    assert "of 2 cells, below 0.95: 1 by means and 1 by medians" in plain.caption
    assert plain.rows == [["2", "1", "0.5 (0.5)", "2.0 (2.0)"]]
    informed = informed_table(columns, "estimation", made)
    assert "0 by means" in informed.caption
    assert informed.caption.endswith("the prior alone decides: d = 2, J = 1, ε = 1.")


def test_pieces_by_holders_make_the_part_that_one_process_makes(tmp_path):
    both = settings.record_of("simulated", SMALL["simulated"] | {"holders": (1, 2), "runs": 2})
    part = compute.simulated.chains_part("fixed-s", 2, both, lambda _: None)
    paths = []
    for holders in both.holders:
        paths.append(Piece("fixed-s", "d=2", holders).folder(tmp_path) / "fixed-s-d2.npz")
        own = replace(both, holders=(holders,))
        save(paths[-1], compute.simulated.chains_part("fixed-s", 2, own, lambda _: None))
    together = whole(paths)
    assert set(together) == set(part)
    for name in set(together) - {"seconds"}:
        assert np.array_equal(together[name], part[name]), name


def test_what_is_there_is_not_computed_again(tmp_path):
    made = []
    for _ in range(2):
        part = part_of(
            tmp_path / "p.npz",
            settings.MmdSettings(bandwidth=0.1),
            lambda: made.append(1) or record({"a": np.arange(2), "b": "x"}),
        )
    assert made == [1]
    assert columns_of(part)["b"].tolist() == ["x", "x"]
    with pytest.raises(PartError, match="other settings"):
        part_of(tmp_path / "p.npz", settings.MmdSettings(bandwidth=0.2), dict)


def test_without_data_the_command_says_what_to_fetch(tmp_path, capsys):
    assert command.main(["real", "--out", str(tmp_path)]) == 2
    assert "power_plant_energy.csv" in capsys.readouterr().err


def test_the_core_needs_numpy_scipy_and_jax_alone():
    blocked = (
        "pyarrow",
        "opendp",
        "pydantic",
        "typer",
        "rich",
        "arviz_stats",
        "blackjax",
        "matplotlib",
    )
    code = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked}:
            raise ImportError("blocked: " + name)
sys.meta_path.insert(0, Blocked())
from experiments.run import compute
from dataclasses import replace
settings = replace(compute.settings_of("simulated", quick=True, runs=1), rows=1000)
problems, stretch = compute.simulated.problems_of("bernstein-sheldon", 2, 1, settings)
print(len(stretch))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "6"


def test_a_piece_is_not_cut_further(tmp_path, monkeypatch):
    """Where a GPU is shared the default is many pieces at a time; a piece runs in one process."""
    options = argparse.Namespace(
        experiment="simulated", out=tmp_path, seed=0, quick=True, runs=None, data=None
    )
    commands = []

    def failing(command, **_options):
        commands.append(command)
        return subprocess.CompletedProcess(command, 1, "", "")

    monkeypatch.setattr(apart.subprocess, "run", failing)
    with pytest.raises(PartError, match=r"fixed-s d=2 J=5 failed"):
        apart.run_one(Piece("fixed-s", "d=2", 5), options, {})
    assert commands[0][commands[0].index("--processes") + 1] == "1"


def test_a_piece_does_without_flags_that_its_jax_does_not_know(tmp_path, monkeypatch):
    """XLA ends at once over a flag that it does not know; this one it never will."""
    options = argparse.Namespace(
        experiment="simulated", out=tmp_path, seed=0, quick=True, runs=None, data=None
    )
    flags = []

    def ending(_command, environment):
        flags.append(environment.get("XLA_FLAGS"))
        code = "import jax; jax.numpy.ones(2)" if flags[-1] else "raise SystemExit(3)"
        return subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    monkeypatch.setattr(apart, "tried", ending)
    with pytest.raises(PartError, match=r"fixed-s d=2 J=5 failed"):
        apart.run_one(
            Piece("fixed-s", "d=2", 5), options, os.environ | {"XLA_FLAGS": "--xla_no_such=1"}
        )
    assert flags == ["--xla_no_such=1", None]


@pytest.mark.slow
def test_pieces_side_by_side_end_and_make_whole_parts(tmp_path):
    """The way of a GPU's processes, with a stand-in for its MPS; every piece once, none within."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / apart.MPS
    program.write_text("#!/bin/sh\ncat > /dev/null < /dev/null\n")
    program.chmod(0o755)
    words = ["compute", "simulated", "--quick", "--runs", "1", "--methods", "fixed-s"]
    done = subprocess.run(
        [sys.executable, "-m", "experiments", *words, "--out", tmp_path / "out"],
        cwd=ROOT,
        env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"},
        timeout=600,
        check=True,
        capture_output=True,
        text=True,
    )
    quick = settings.settings_of("simulated", quick=True, runs=1)
    pieces = [f"fixed-s d={d} J={j}:" for d in quick.columns for j in quick.holders]
    assert all(done.stdout.count(piece) == 1 for piece in pieces)
    for d in quick.columns:
        with np.load(tmp_path / "out" / f"fixed-s-d{d}.npz") as part:
            assert len(part["record:estimation"]) == 2 * len(quick.holders) * len(quick.epsilons)
            assert np.isfinite(part["record:estimation"]).all()
    told = json.loads((tmp_path / "out" / "times.json").read_text())
    assert len(told["lines"]) == len(pieces)


def test_every_experiment_has_a_settings_file():
    assert settings.NAMES == ("audit", "mmd", "one", "real", "runtimes", "simulated")
    assert set(settings.KINDS) == set(settings.NAMES)
    full, quick = (settings.settings_of("simulated", quick=quick) for quick in (False, True))
    assert (full.runs, full.iterations, full.rows) == (50, 10_000, 100_000)
    assert quick.runs == 6
    assert settings.settings_of("simulated", runs=3, seed=4) == replace(full, runs=3, seed=4)
    with pytest.raises(TypeError, match="unknown"):
        settings.record_of("mmd", {"bandwidth": 0.1, "unknown": 1})


def test_what_the_paper_prints():
    assert REAL["BikeSharing", 10, "normal-x"] == Mean(0.0812, 0.0671, 0.0954)
    assert REAL["AirQuality", 5, "fixed-s"] == Mean(0.0100, 0.0089, 0.0100)
    assert len(REAL) == 60
    assert NON_PRIVATE["prediction", 2] == 9.60e-5


def test_the_probability_that_two_means_are_of_the_same_thing():
    """By hand, Student with 49 degrees: standard errors of 0.01 each, apart by one and by five."""
    rng = np.random.default_rng(0)
    errors = rng.normal(size=50)
    errors = 1.0 + (errors - errors.mean()) / errors.std(ddof=1) * 0.01 * np.sqrt(50)
    half = 0.01 * stats.t.ppf(0.95, 49)
    for away in (0.01, 0.05):
        printed = Mean(1.0 + away, 1.0 + away - half, 1.0 + away + half)
        expected = 2 * stats.t.sf(away / (0.01 * np.sqrt(2)), 49)
        assert same_probability(errors, printed) == pytest.approx(expected, rel=1e-3)


def test_the_verdict_on_a_replicated_mean():
    printed = Mean(0.0045, 0.0041, 0.0049)
    assert verdict(Mean(0.00494, 0.0, 1.0), printed) == "inside"
    assert verdict(Mean(0.0053, 0.0, 1.0), printed) == "within 10 %"
    assert verdict(Mean(0.0056, 0.0, 1.0), printed) == "**outside**"


def test_the_interval_of_a_mean_covers():
    """90 % nominal.

    Of 400 normal samples of 50 at least 83 % and at most 95 % should cover (five standard errors
    below, four above).
    """
    rng = np.random.default_rng(0)
    found = [mean_of(rng.normal(3.0, 1.0, 50)) for _ in range(400)]
    assert 0.83 < np.mean([mean.low < 3.0 < mean.high for mean in found]) < 0.95
