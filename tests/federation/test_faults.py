"""tacit.federation with real processes and real faults: a study ends or says why, and is paid once.

Run by `make faults`; a slice of it is in test_processes.py. Nobody but the service manager, which
these tests play, starts anything again. A minute is longer on a machine that has other work too;
every test prints the true seconds and the load (`pytest -rA` shows them).

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
from tacit.federation.wire import ROUNDS
from tacit.study.toml import study_toml

SHIFTED = Path(__file__).with_name("shifted")
HOLDERS = ("north", "south")


def within(seconds, since, what):
    """Assert that no more seconds have passed on a machine that has nothing else to do."""
    passed = time.monotonic() - since
    load = os.getloadavg()[0]
    cores = os.cpu_count() or 1
    print(f"{what}: {passed:.1f} seconds of {seconds}, at load {load:.1f} on {cores} cores")  # noqa: T201
    assert passed < seconds * max(1.0, load / cores)


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
        within(60, died, "a site died, then the study ended")
        assert paid(tmp_path, *HOLDERS) == [1, 1]


@pytest.mark.slow
def test_a_supernode_that_is_killed_comes_back(tmp_path):
    with at_most(500), federation(tmp_path) as made:
        started(made)
        until(lambda: "SuperNode ID" in made.log("south-node"), "south is connected")
        made.kill_child("south-node")
        killed = time.monotonic()
        code, said = made.ended(made.start_study(deadline=300.0, poll=2.0), 360)
        assert code == 0, said
        within(60, killed, "a SuperNode was killed, then a study asked, then ended")
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
        mended = time.monotonic()
        code, said = made.ended(study, 400)
        assert code == 0, said
        within(60, mended, "the SuperLink was started again, then the study ended")
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
        within(60, mended, "the network was mended, then the study ended")
        assert paid(tmp_path, *HOLDERS) == [1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("ahead", [CLOCK_LIMIT - 10, 10 - CLOCK_LIMIT])
def test_clocks_within_the_limit_do_no_harm(tmp_path, ahead):
    with at_most(500), federation(tmp_path) as made:
        started(made, sites=("north",))
        made.start_site("south", before=wrong_clock(ahead))
        begun = time.monotonic()
        code, said = made.ended(made.start_study(deadline=60.0, poll=2.0), 240)
        assert code == 0, said
        within(60, begun, "a site with a wrong clock was started, then a study asked, then ended")
        told = {node["holder"]: node["clock_ahead"] for node in record(tmp_path)["nodes"]}
        assert told["south"] == pytest.approx(ahead, abs=20)


@pytest.mark.slow
@pytest.mark.parametrize("ahead", [CLOCK_LIMIT + 60, -CLOCK_LIMIT - 60])
def test_a_clock_beyond_the_limit_is_named(tmp_path, ahead):
    with at_most(500), federation(tmp_path) as made:
        started(made, sites=("north",))
        made.start_site("south", before=wrong_clock(ahead))
        begun = time.monotonic()
        code, said = made.ended(made.start_study(deadline=30.0, poll=2.0), 240)
        assert code == 2
        within(60, begun, "a site with a wrong clock was started, then a study asked, then ended")
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
            begun = time.monotonic()
            study = made.start_study(deadline=300.0, poll=2.0)
            until(lambda: "south: waiting: " in made.log(study), "south says why")
            within(60, begun, "a study was asked, then the ledger's fault was said")
            obstacle.rmdir() if obstacle.is_dir() else obstacle.unlink()
            mended = time.monotonic()
            code, said = made.ended(study, 300)
            assert code == 0, said
            within(60, mended, "the ledger was mended, then the study ended")
            for name in HOLDERS:
                assert len(charges(tmp_path / name / "book/x")) == 1


@pytest.mark.slow
def test_two_studies_at_once(tmp_path):
    with at_most(600), federation(tmp_path) as made:
        started(made, most={"epsilon_in_all": 2.0, "delta_in_all": 1e-5})
        second = changed(name="length-of-two", epsilon=0.5)
        made.copy_app("other", study_toml(second), out="other-out")
        begun = time.monotonic()
        runs = [made.start_study("project/app", poll=2.0), made.start_study("other", poll=2.0)]
        ends = [made.ended(run, 400) for run in runs]
        assert [code for code, _ in ends] == [0, 0], ends
        within(60, begun, "two studies were asked, then both ended")
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


FIVE = ("north", "south", "east", "west", "centre")
LOST = ("west", "centre")
KEPT = ("north", "south", "east")
SILENCE = 30
"""Seconds for which a sum waits for a holder that says nothing: its last chance to be back."""


def start_sum(made, least, silence=SILENCE):
    """Ask five holders, all of whom have approved, for a secure sum."""
    keys = {name: made.public[name] for name in FIVE}
    agreed = {"holders": keys, "least": least, "colluding": 0}
    study = changed(name=f"length-of-{least}", epsilon=0.5, secure_sum=agreed)
    (made.folder / "project/app/study.toml").write_text(study_toml(study))
    for name in FIVE:
        made.approve(name, study)
    return made.start_study(deadline=400.0, poll=2.0, silence=float(silence))


def take_away(made, signal_=signal.SIGSTOP):
    """Two sites stop dead, though their SuperNodes go on; or they go on too."""
    for name in LOST:
        os.killpg(made.running[f"{name}-site"].pid, signal_)


def lose_two(made, round_):
    """Lose two sites once they have done what comes before a round."""
    if round_ != ROUNDS[0]:
        done = f"round {ROUNDS[ROUNDS.index(round_) - 1]!r} of secure sum"
        until(lambda: all(done in made.log(f"{name}-site") for name in LOST), done, 120)
        time.sleep(0.3)  # what is logged is sent right after
    take_away(made)
    return time.monotonic()


def masked(made, *names):
    """Who has given a masked vector, and so has paid."""
    return [int("round 'masked' of secure sum" in made.log(f"{name}-site")) for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("round_", ROUNDS)
def test_two_of_five_lost_in_a_round_of_a_sum(tmp_path, round_):
    """Three are enough: there is a sum, and who gave no vector has not paid."""
    with at_most(500), federation(tmp_path) as made:
        started(made, FIVE, FIVE)
        run = start_sum(made, least=3)
        lost = lose_two(made, round_)
        code, said = made.ended(run, 360)
        assert code == 0, said
        within(SILENCE + 30, lost, f"two of five were lost before {round_!r}, then the study ended")
        assert paid(tmp_path, *KEPT) == [1, 1, 1]
        assert paid(tmp_path, *LOST) == masked(made, *LOST)


@pytest.mark.slow
@pytest.mark.parametrize("round_", ROUNDS)
def test_two_of_five_back_in_a_round_of_a_sum(tmp_path, round_):
    """They go on where they were: the sum is of all five, and each has paid once."""
    with at_most(500), federation(tmp_path) as made:
        started(made, FIVE, FIVE)
        run = start_sum(made, least=5, silence=120)
        lose_two(made, round_)
        time.sleep(10)
        take_away(made, signal.SIGCONT)
        back = time.monotonic()
        code, said = made.ended(run, 360)
        assert code == 0, said
        within(30, back, f"two of five were back in {round_!r}, then the study ended")
        assert paid(tmp_path, *FIVE) == [1] * 5


@pytest.mark.slow
def test_a_sum_that_fails_says_who_was_missing(tmp_path):
    """Lost in the masking round, where four are needed; who gave a vector has paid."""
    with at_most(500), federation(tmp_path) as made:
        started(made, FIVE, FIVE)
        run = start_sum(made, least=4)
        lost = lose_two(made, "masked")
        code, said = made.ended(run, 360)
        assert code == 2, said
        within(SILENCE + 30, lost, "two of five were lost, then it was said")
        assert "west: " in said.splitlines()[-1]
        assert set(record(tmp_path)["missing"]) >= set(LOST)
        assert paid(tmp_path, *KEPT) == masked(made, *KEPT)


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
        last = time.monotonic()
        code, said = made.ended(run, 1700)
        assert code == 0, said
        within(60, last, "the last of fifty sites was started, then the study ended")
        assert paid(tmp_path, *names) == [1] * 50
