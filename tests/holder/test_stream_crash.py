"""Killed at any step, a stream publishes no batch twice and loses none in silence; the log is
mended from the ledger.

Covers `tacit.holder.stream.log`.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def quick_folder(tmp_path):
    """A folder in memory where there is one: a kill does not care, and thousands of durable writes
    are then quick.
    """
    memory = Path("/dev/shm")  # noqa: S108
    if not memory.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def run(work, folder):
    script = Path(__file__).with_name("stream_crashing.py")
    done = subprocess.run(
        [sys.executable, script, work, folder],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_kill_at_any_step_of_a_file_loses_and_repeats_nothing(quick_folder):
    totals = run("file", quick_folder)
    assert totals["kills"] > 40
    assert totals["mended"] == 4, "no kill fell between ledger and log: the test does not test"
    assert totals["torn"] == 2, "no kill fell into a line of the log"


def test_a_kill_at_any_step_of_a_pipe_repeats_nothing_and_accounts_for_every_row(quick_folder):
    totals = run("pipe", quick_folder)
    assert totals["kills"] > 60
    assert totals["mended"] == 4
    assert totals["lost"] > 10, "no kill fell into a batch"
    assert 0 < totals["unnoted"] < totals["kills"]
