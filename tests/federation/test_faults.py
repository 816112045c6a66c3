"""tacit.federation with real processes and real faults: a study ends or says why, and is paid once.

Run by `make faults`; a slice of it is in test_processes.py. Nobody but the service manager, which
these tests play, starts anything again. A minute is longer on a machine that has other work too.

Covers `tacit.federation.client.node`, `tacit.federation.client.presence`,
`tacit.federation.client.jobs`, `tacit.federation.server.run`, `tacit.federation.server.control`,
`tacit.federation.server.link`, `tacit.federation.flower`.
"""

import json
import os
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from dying import STEPS
from processes import at_most, federation, until
from sites import STUDY, changed, charges

from tacit.federation.clock import CLOCK_LIMIT
from tacit.study.toml import study_toml

SHIFTED = Path(__file__).with_name("shifted")
HOLDERS = ("north", "south")


def minute():
    """Sixty seconds of a machine that has nothing else to do."""
    return 60 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def record(folder, out="out"):
    return json.loads((folder / out / "federation.json").read_text())


def paid(folder, *names):
    return [len(charges(folder / name / "holder.toml")) for name in names]


def started(made, names=HOLDERS, sites=HOLDERS, **policy):
    """A federation whose holders are registered, and of whom some run."""
    made.start_superlink(names)
    for name in names:
        made.add_site(name, **policy)
    made.trust(*names)
    made.register(*names)
    for name in sites:
        made.start_site(name)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_site_killed_at_any_step_pays_once_and_answers(tmp_path, step):
    with at_most(500), federation(tmp_path) as made:
        started(made, sites=("north",))
        made.start_node("south")
        made.start_dying("south", step)
        study = made.start_study(deadline=300.0, poll=2.0)
        until(lambda: made.running["south-site"].poll() is not None, "south dies")
        died = time.monotonic()
        made.kill("south-site")
        made.start_executor("south")
        code, said = made.ended(study, 360)
        assert code == 0, said
        assert time.monotonic() - died < minute()
        assert paid(tmp_path, *HOLDERS) == [1, 1]


@pytest.mark.slow
def test_a_supernode_that_is_killed_comes_back(tmp_path):
    with at_most(500), federation(tmp_path) as made:
        started(made)
        until(lambda: "SuperNode ID" in made.log("south-node"), "south is connected")
        made.kill_child("south-node")
        code, said = made.ended(made.start_study(deadline=300.0, poll=2.0), 360)
        assert code == 0, said
        assert paid(tmp_path, *HOLDERS) == [1, 1]


@pytest.mark.slow
def test_a_study_outlives_its_superlink(tmp_path):
    with at_most(600), federation(tmp_path) as made:
        started(made, sites=("north",))
        study = made.start_study(deadline=400.0, poll=2.0)
        until(lambda: "north: released" in made.log(study), "north has published")
        made.kill("superlink")
        time.sleep(5)
        made.start_link()
        made.start_site("south")
        code, said = made.ended(study, 400)
        assert code == 0, said
        assert "started again; what was published before is given again, at no cost" in said
        assert paid(tmp_path, *HOLDERS) == [1, 1]


@pytest.mark.slow
def test_a_network_that_is_cut_for_a_minute(tmp_path):
    with at_most(600), federation(tmp_path) as made:
        started(made, sites=("north",))
        wire = made.start_wire()
        made.start_node("south", address=f"127.0.0.1:{wire.port}")
        made.start_executor("south")
        until(lambda: "SuperNode ID" in made.log("south-node"), "south is connected")
        wire.cut()
        study = made.start_study(deadline=500.0, poll=2.0)
        until(lambda: "north: released" in made.log(study), "north has published")
        time.sleep(60)
        wire.mend()
        mended = time.monotonic()
        code, said = made.ended(study, 400)
        assert code == 0, said
        assert time.monotonic() - mended < minute()
        assert paid(tmp_path, *HOLDERS) == [1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("ahead", [CLOCK_LIMIT - 10, 10 - CLOCK_LIMIT])
def test_clocks_within_the_limit_do_no_harm(tmp_path, ahead):
    with at_most(500), federation(tmp_path) as made:
        started(made, sites=("north",))
        made.start_site("south", before=wrong_clock(ahead))
        code, said = made.ended(made.start_study(deadline=60.0, poll=2.0), 240)
        assert code == 0, said
        told = {node["holder"]: node["clock_ahead"] for node in record(tmp_path)["nodes"]}
        assert told["south"] == pytest.approx(ahead, abs=20)


@pytest.mark.slow
@pytest.mark.parametrize("ahead", [CLOCK_LIMIT + 60, -CLOCK_LIMIT - 60])
def test_a_clock_beyond_the_limit_is_named(tmp_path, ahead):
    with at_most(500), federation(tmp_path) as made:
        started(made, sites=("north",))
        made.start_site("south", before=wrong_clock(ahead))
        code, said = made.ended(made.start_study(deadline=30.0, poll=2.0), 240)
        assert code == 2
        assert "south: its SuperNode is not connected" in said
        side = "ahead of" if ahead > 0 else "behind"
        until(lambda: f"seconds {side} the server's" in made.log("south-node"), "it is named")
        seen = made.run(*made.tacit_words("federate", "status", "project/app", *made.server_words))
        assert seen.returncode == 3
        assert "its clock is" in seen.stdout, seen.stdout
        assert paid(tmp_path, "south") == [0]


def wrong_clock(ahead):
    paths = f"{SHIFTED}:{Path(__file__).parents[2] / 'src'}"
    return ("env", f"TEST_CLOCK_AHEAD={ahead}", f"PYTHONPATH={paths}")


@contextmanager
def full_disk(folder):
    """A small disk with no room left; gives the file that fills it."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("no disk can be mounted here")
    filler = folder / "filler"
    try:
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))
        yield filler
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # noqa: S607


@contextmanager
def read_only_ledger(folder):
    """A ledger that cannot be written, whoever tries; gives what is in its way."""
    (folder / "ledger.db").mkdir(parents=True)
    yield folder / "ledger.db"


@pytest.mark.slow
@pytest.mark.parametrize("fault", [read_only_ledger, full_disk])
def test_a_ledger_that_cannot_be_written_is_said_and_asked_again(tmp_path, fault):
    with at_most(500), federation(tmp_path) as made:
        started(made, sites=("north",), ledger="book/ledger.db")
        (tmp_path / "north/book").mkdir()
        with fault(tmp_path / "south/book") as obstacle:
            made.start_site("south")
            study = made.start_study(deadline=300.0, poll=2.0)
            until(lambda: "south: waiting: " in made.log(study), "south says why")
            obstacle.rmdir() if obstacle.is_dir() else obstacle.unlink()
            code, said = made.ended(study, 300)
            assert code == 0, said
            for name in HOLDERS:
                assert len(charges(tmp_path / name / "book/x")) == 1


@pytest.mark.slow
def test_two_studies_at_once(tmp_path):
    with at_most(600), federation(tmp_path) as made:
        started(made, most={"epsilon_in_all": 2.0, "delta_in_all": 1e-5})
        second = changed(name="length-of-two", epsilon=0.5)
        made.copy_app("other", study_toml(second), out="other-out")
        runs = [made.start_study("project/app", poll=2.0), made.start_study("other", poll=2.0)]
        ends = [made.ended(run, 400) for run in runs]
        assert [code for code, _ in ends] == [0, 0], ends
        assert record(tmp_path)["study_hash"] == STUDY.hash
        assert record(tmp_path, "other-out")["study_hash"] == second.hash
        assert paid(tmp_path, *HOLDERS) == [2, 2]


@pytest.mark.slow
def test_what_cannot_be_fitted_ends_with_one_sentence_and_a_code(tmp_path):
    with at_most(500), federation(tmp_path) as made:
        started(made, studies=["other"])
        code, said = made.ended(made.start_study(deadline=60.0, poll=2.0), 180)
        assert code == 2
        assert "Traceback" not in said
        assert said.splitlines()[-1].startswith("tacit: nothing was fitted: 0 of at least 2")
        assert record(tmp_path)["outcome"] == "failed"
        (tmp_path / "project/app/study.toml").write_text("name = 3\n")
        code, said = made.ended(made.start_study(), 180)
        assert (code, "Traceback" in said) == (2, False)
        assert "name" in record(tmp_path)["failure"]
        assert paid(tmp_path, *HOLDERS) == [0, 0]


@pytest.mark.slow
def test_two_of_five_lost_in_a_secure_sum(tmp_path):
    """Stopped dead in the masking round: with least = 3 there is a sum, with 4 there is none."""
    names = ("north", "south", "east", "west", "centre")
    with at_most(840), federation(tmp_path) as made:
        started(made, names, names)
        for least, code_wanted in ((3, 0), (4, 2)):
            keys = {name: made.public[name] for name in names}
            agreed = {"holders": keys, "least": least, "colluding": 0}
            study = changed(name=f"length-of-{least}", epsilon=0.5, secure_sum=agreed)
            (tmp_path / "project/app/study.toml").write_text(study_toml(study))
            for name in names:
                made.approve(name, study)
            run = made.start_study(deadline=400.0, poll=2.0)
            shared = f"study 'length-of-{least}': round 'shares'"
            until(lambda shared=shared: shared in made.log("west-site"), "shares are given", 120)
            for name in ("west", "centre"):
                os.killpg(made.running[f"{name}-site"].pid, signal.SIGSTOP)
            stopped = time.monotonic()
            code, said = made.ended(run, 360)
            assert code == code_wanted, said
            assert time.monotonic() - stopped < 100 / 60 * minute()
            if code:
                assert "west: " in said.splitlines()[-1]
                assert set(record(tmp_path)["missing"]) >= {"west", "centre"}
            for name in ("west", "centre"):
                os.killpg(made.running[f"{name}-site"].pid, signal.SIGCONT)


@pytest.mark.slow
def test_fifty_sites(tmp_path):
    """SuperNodes and executors of fifty sites; they begin in groups, as hospitals do."""
    names = tuple(f"site{k:02d}" for k in range(50))
    with at_most(1800), federation(tmp_path) as made:
        started(made, names, ())
        run = made.start_study(deadline=1600.0, poll=5.0)
        for name in names:
            made.start_site(name)
            time.sleep(1)
        code, said = made.ended(run, 1700)
        assert code == 0, said
        assert paid(tmp_path, *names) == [1] * 50
