"""Publishes in processes that are killed, or that run all at once; started by test_crash.py, in an
interpreter of its own.

Workers are forked from a parent that has everything imported, so that a kill costs milliseconds.
Three kinds of moment are aimed at: any time at all, while the ledger's journal is open, and while a
release is being written.
"""

import json
import os
import random
import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np

from tacit.errors import BudgetError
from tacit.holder.ledger import Ledger
from tacit.holder.publish import publish
from tacit.privacy.gaussian import compose, epsilon_of, mu_of
from tacit.release import Release
from tacit.study import Study

PERSON = os.environ.get("CRASH_PERSON")
"""A column of persons, four rows each, where the study is to be one of persons."""
STUDY = Study.from_document(
    {
        "name": "crash-test",
        "person": PERSON,
        "epsilon": 0.1,
        "delta": 1e-6,
        "response": {"name": "y", "range": [0, 1]},
        "features": [{"name": "x", "range": [0, 1]}],
    }
)
ROWS = {"x": np.linspace(0, 1, 20), "y": np.linspace(1, 0, 20)}
if PERSON is not None:
    ROWS[PERSON] = np.arange(20) % 5
PATIENCE = 5
"""Longest wait for the moment aimed at, in the time that a publication takes here and now."""


def admitting(releases: int) -> float:
    """ε of a limit, at the study's δ, that admits so many releases and not one more."""
    return epsilon_of(mu_of(STUDY.epsilon, STUDY.delta) * releases**0.5, STUDY.delta) * (1 + 1e-9)


def publish_until_killed(ledger: Ledger, folder: Path, ready: int) -> None:
    """What a worker does; it ends by itself only when the budget does."""
    os.write(ready, b"r")
    count = 0
    while True:
        try:
            release = publish(STUDY, ROWS, holder="north", ledger=ledger, again=True)
        except BudgetError:
            return
        release.save(folder / f"{os.getpid()}-{count}.json")
        count += 1


def forked(work) -> int:
    """Run `work` in a child process; its exit status is 0, 3 where the budget was exhausted, 1
    otherwise.
    """
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    except BudgetError:
        status = 3
    finally:
        os._exit(status)


# Kills.


def await_moment(kind: str, ledger: Ledger, folder: Path, rng: random.Random, pace: float) -> None:
    """Wait for any moment, or for the n-th sight of a journal or a half-written release."""
    if kind == "any":
        time.sleep(rng.uniform(0, 3 * pace))
        return
    wanted, seen, before = rng.randint(1, 5), 0, False
    end = time.monotonic() + PATIENCE * pace
    while seen < wanted and time.monotonic() < end:
        now = (
            Path(f"{ledger.path}-journal").exists()
            if kind == "ledger"
            else any(folder.glob(".*.part"))
        )
        seen += now and not before
        before = now
    time.sleep(rng.choice([0, 0, rng.uniform(0, 0.001)]))


def kill_worker(kind: str, ledger: Ledger, folder: Path, rng: random.Random, pace: float) -> bool:
    """Start a worker and kill it; False where the budget ended first."""
    reading, writing = os.pipe()
    child = forked(lambda: publish_until_killed(ledger, folder, writing))
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)
    await_moment(kind, ledger, folder, rng, pace)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.WEXITSTATUS(status) == 0, "a worker failed by itself"
    return False


def check(ledger: Ledger, folder: Path, limit: float, seen: set[str]) -> dict[str, int]:
    """What must hold after every kill; `seen` are files found whole before: they never change."""
    with closing(sqlite3.connect(ledger.path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        charges = database.execute("SELECT mu, release FROM charge").fetchall()
    assert compose(mu for mu, _ in charges) <= limit, "overspent"
    stored = {release for _, release in charges if release is not None}
    assert len(stored) == sum(release is not None for _, release in charges), (
        "two charges share one noise"
    )
    for path in set(folder.glob("*.json")) - seen:
        text = path.read_text(encoding="utf-8")
        assert text in stored, (
            "a release on disk was not paid for, or differs from what the ledger stored"
        )
        Release.from_json(text)
        seen.add(path)
    assert all(path.name.endswith(".part") for path in folder.iterdir() if path not in seen), (
        "an unknown file"
    )
    return {
        "charges": len(charges),
        "lost": sum(release is None for _, release in charges),
        "files": len(seen),
    }


def paced(folder: Path) -> float:
    """Seconds of a worker's first publication, which is its slowest."""
    folder.mkdir()
    start = time.monotonic()

    def work() -> None:
        publish(STUDY, ROWS, holder="north", ledger=folder / "l.db").save(folder / "north.json")

    _, status = os.waitpid(forked(work), 0)
    assert status == 0, "a worker failed by itself"
    return time.monotonic() - start


def kills(folder: Path, number: int, seed: int, releases: int = 40) -> dict[str, int]:
    """Kill `number` workers; a ledger whose budget is spent is followed by a new one."""
    rng = random.Random(seed)  # noqa: S311
    totals = dict.fromkeys(
        ("kills", "ledgers", "charges", "lost", "files", "in_ledger", "in_release"), 0
    )
    limit = mu_of(admitting(releases), STUDY.delta)
    publish(STUDY, ROWS, holder="warm", ledger=folder / "warm.db")
    pace = max(paced(folder / f"pace{count}") for count in range(3))
    while totals["kills"] < number:
        house = folder / f"house{totals['ledgers']}"
        (house / "releases").mkdir(parents=True)
        ledger, seen = Ledger(house / "ledger.db"), set()
        ledger.set_limit("default", admitting(releases), STUDY.delta)
        found: dict[str, int] = {}
        killed = True
        while killed and totals["kills"] < number:
            kind = rng.choice(["any", "ledger", "release"])
            killed = kill_worker(kind, ledger, house / "releases", rng, pace)
            totals["kills"] += killed
            totals["in_ledger"] += Path(f"{ledger.path}-journal").exists()
            parts = list((house / "releases").glob(".*.part"))
            totals["in_release"] += len(parts)
            found = check(ledger, house / "releases", limit, seen)
            for part in parts:
                part.unlink()
        totals["ledgers"] += 1
        for name, count in found.items():
            totals[name] += count
    return totals


def kill_at_statement(folder: Path, statement: int) -> dict[str, int]:
    """Kill a publishing process just before it runs its n-th SQL statement."""
    ledger = Ledger(folder / "ledger.db")
    ledger.set_limit("default", admitting(1), STUDY.delta)
    connect, count = sqlite3.connect, 0

    def traced(_sql: str) -> None:
        nonlocal count
        count += 1
        if count == statement:
            os.kill(os.getpid(), signal.SIGKILL)

    def connect_traced(*args, **kwargs):
        database = connect(*args, **kwargs)
        database.set_trace_callback(traced)
        return database

    def work() -> None:
        sqlite3.connect = connect_traced
        publish(STUDY, ROWS, holder="north", ledger=ledger).save(folder / "releases" / "north.json")

    _, status = os.waitpid(forked(work), 0)
    found = check(ledger, folder / "releases", mu_of(admitting(1), STUDY.delta), set())
    return found | {"killed": int(os.WIFSIGNALED(status))}


def statements(folder: Path) -> list[dict[str, int]]:
    """Kill at every SQL statement of a publication, until one survives."""
    publish(STUDY, ROWS, holder="warm", ledger=folder / "warm.db")
    outcomes = []
    while not outcomes or outcomes[-1]["killed"]:
        house = folder / f"house{len(outcomes)}"
        (house / "releases").mkdir(parents=True)
        outcomes.append(kill_at_statement(house, len(outcomes) + 1))
    return outcomes


# All at once.


def at_once(folder: Path, processes: int, releases: int | None) -> dict[str, int]:
    """Let processes publish at the same moment against a limit, or (None) against a ledger that is
    not there yet.
    """
    ledger = Ledger(folder / "ledger.db")
    (folder / "releases").mkdir()
    publish(STUDY, ROWS, holder="warm", ledger=folder / "warm.db")
    if releases is not None:
        ledger.set_limit("default", admitting(releases), STUDY.delta)
    reading, writing = os.pipe()

    def work() -> None:
        os.close(writing)
        os.read(reading, 1)  # returns when the parent lets go
        publish(STUDY, ROWS, holder="north", ledger=ledger, again=True).save(
            folder / "releases" / f"{os.getpid()}.json"
        )

    children = [forked(work) for _ in range(processes)]
    os.close(writing)
    codes = [os.WEXITSTATUS(os.waitpid(child, 0)[1]) for child in children]
    found = check(ledger, folder / "releases", mu_of(admitting(releases or 1), STUDY.delta), set())
    return found | {"published": codes.count(0), "refused": codes.count(3)}


if __name__ == "__main__":
    work = {"kills": kills, "statements": statements, "at_once": at_once}[sys.argv[1]]
    print(json.dumps(work(Path(sys.argv[2]), *json.loads(sys.argv[3]))))  # noqa: T201
