"""Killed between or within visits, a holder goes on, pays once, and answers no visit twice.

Covers `tacit.holder.visits` and `tacit.holder.ledger` where a process is killed.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest


def kills(folder, holders, step):
    script = Path(__file__).with_name("visit_crashing.py")
    done = subprocess.run(
        [sys.executable, script, folder, str(holders), str(step)],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("holders", "stages"), [(1, 1), (2, 3)])
def test_a_kill_leaves_nothing_unpaid_and_is_gone_on_from(tmp_path, holders, stages):
    """At every seventh statement; nothing, one answer and two are stored when kills fall."""
    found = kills(tmp_path, holders, 7)
    assert found["kills"] >= 4
    assert found["stages"] == stages


@pytest.mark.slow
@pytest.mark.parametrize("holders", [1, 2])
def test_kills_at_every_statement(tmp_path, holders):
    assert kills(tmp_path, holders, 1)["kills"] > 20
