"""Streams in processes that are killed at every step; started by test_stream_crash.py, in an
interpreter of its own.

A step is an SQL statement of the ledger, or a write to the log: not begun, half done, or done and
not yet durable.
"""

import json
import mmap
import os
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa

from tacit.holder.statistics import STEP_BITS, statistics_of
from tacit.holder.stream.publish import stream
from tacit.release.log import LogReader
from tacit.rows.arriving import Text
from tacit.study import Study

STUDY = Study.from_document(
    {
        "name": "stream-crash",
        "epsilon": 100.0,  # so little noise that a batch's rows can be told from its release
        "delta": 0.1,
        "response": {"name": "y", "range": [0, 1]},
        "features": [{"name": "x", "range": [0, 1]}],
    }
)
BATCH, PIECE, TOTAL = 40, 30, 100
ROWS = pa.record_batch({"x": np.linspace(0, 1, TOTAL) ** 2, "y": np.linspace(1, 0, TOTAL)})


class Killer:
    """Ends this process at its n-th step."""

    def __init__(self, fatal: int) -> None:
        self.fatal, self.count = fatal, 0

    def step(self) -> None:
        self.count += 1
        if self.count == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def arm(self) -> None:
        connect, write = sqlite3.connect, os.write

        def connect_traced(*args, **kwargs):
            database = connect(*args, **kwargs)
            database.set_trace_callback(lambda _sql: self.step())
            return database

        def write_in_two(descriptor, text):
            self.step()
            half = write(descriptor, text[: len(text) // 2])
            self.step()
            rest = write(descriptor, text[half:])
            self.step()
            return half + rest

        sqlite3.connect, os.write = connect_traced, write_in_two


def run(folder: Path, kind: str, begin: int, handed: mmap.mmap | None = None) -> dict[str, object]:
    """A run over the file, or over pieces of rows from `begin` on; `handed` counts them."""

    def pieces():
        for start in range(begin, TOTAL, PIECE):
            piece = ROWS.slice(start, PIECE)
            if handed is not None:
                handed[0] = start + piece.num_rows
            yield piece

    source = Text(STUDY, folder / "rows.csv", idle=0) if kind == "file" else pieces()
    report = stream(
        STUDY,
        source,
        holder="north",
        ledger=folder / "ledger.db",
        log=folder / "north.log",
        batch_rows=BATCH,
    )
    return {"lost": len(report.lost), "mended": report.mended}


def killed(folder: Path, kind: str, fatal: int) -> tuple[bool, int]:
    """Run in a child that is killed at a step; whether it was, and how many rows it had been
    handed.
    """
    handed = mmap.mmap(-1, 1)
    child = os.fork()
    if not child:
        status = 1
        try:
            Killer(fatal).arm()
            run(folder, kind, 0, handed)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "a run failed by itself"
    return os.WIFSIGNALED(status), handed[0]


def batches(folder: Path) -> tuple[int, int, list[tuple[int, int, int, str | None]]]:
    """Number of charges, rows noted as taken, and every batch, straight from the ledger's file."""
    if not (folder / "ledger.db").exists():
        return 0, 0, []
    with closing(sqlite3.connect(folder / "ledger.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        if not database.execute(
            "SELECT count(*) FROM sqlite_schema WHERE name = 'stream'"
        ).fetchone()[0]:
            return 0, 0, []
        charges = database.execute("SELECT count(*) FROM charge").fetchone()[0]
        taken = database.execute("SELECT coalesce(max(taken), 0) FROM stream").fetchone()[0]
        return (
            charges,
            taken,
            database.execute(
                "SELECT number, first_row, last_row, entry FROM batch ORDER BY number"
            ).fetchall(),
        )


def check(folder: Path) -> None:
    """What must hold at any time: one charge at most, rows spanned once and in order, and a log
    that is the ledger's, or its beginning.
    """
    charges, _, found = batches(folder)
    assert charges <= 1, "charged twice"
    assert [number for number, *_ in found] == list(range(1, len(found) + 1))
    assert [first for _, first, *_ in found] == [1, *(last + 1 for _, _, last, _ in found)][
        : len(found)
    ], "rows twice, or passed over"
    lines = "".join(entry for *_, entry in found if entry is not None)
    log = folder / "north.log"
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    assert lines.startswith(text), "the log holds what the ledger does not"


def check_contents(folder: Path, start_of: dict[int, int]) -> None:
    """Each published batch is of its own rows; `start_of` says with which row a batch begins."""
    for entry in LogReader(folder / "north.log").entries():
        rows = ROWS.slice(start_of[entry.batch], entry.release.n)
        exact = np.ldexp(statistics_of(STUDY, [rows]).gram.astype(float), -STEP_BITS)
        assert (
            np.abs(entry.release.gram - exact[:-1, :-1]).max()
            < 8 * entry.release.noise.xtx_diagonal
        ), "the wrong rows"


def file_steps(folder: Path) -> dict[str, int]:
    """Kill a run over a file at every step, go on, and find every row published once."""
    totals = dict.fromkeys(("kills", "mended", "torn"), 0)
    alive = False
    while not alive:
        house = folder / f"file{totals['kills']}"
        house.mkdir()
        lines = [
            f"{x!r},{y!r}\n"
            for x, y in zip(ROWS["x"].to_pylist(), ROWS["y"].to_pylist(), strict=True)
        ]
        (house / "rows.csv").write_text("x,y\n" + "".join(lines), encoding="utf-8")
        was_killed, _ = killed(house, "file", totals["kills"] + 1)
        alive = not was_killed
        check(house)
        log = house / "north.log"
        totals["torn"] += (
            log.exists() and log.stat().st_size > 0 and not log.read_bytes().endswith(b"\n")
        )
        report = run(house, "file", 0)
        check(house)
        _, _, found = batches(house)
        assert [(first, last) for _, first, last, _ in found] == [(1, 40), (41, 80)], (
            "a batch is missing"
        )
        assert report["lost"] == 0
        assert [entry.batch for entry in LogReader(log).entries()] == [1, 2]
        check_contents(house, {1: 0, 2: 40})
        totals["kills"] += was_killed
        totals["mended"] += report["mended"]
    return totals


def pipe_steps(folder: Path) -> dict[str, int]:
    """Kill a run over what can be read only once at every step, go on with the rows that follow,
    and account for all of them.
    """
    totals = dict.fromkeys(("kills", "mended", "lost", "unnoted"), 0)
    alive = False
    while not alive:
        house = folder / f"pipe{totals['kills']}"
        house.mkdir()
        was_killed, handed = killed(house, "pipe", totals["kills"] + 1)
        alive = not was_killed
        check(house)
        _, taken, before = batches(house)
        assert handed - taken in {0, (handed - 1) % PIECE + 1}, (
            "more than the last piece was not noted"
        )
        report = run(house, "pipe", handed)
        check(house)
        _, after_taken, found = batches(house)
        spanned = found[-1][2] if found else 0
        assert spanned == after_taken == taken + TOTAL - handed, "rows were lost in silence"
        begun = len(before) + (taken > (before[-1][2] if before else 0))
        starts = {
            number: first - 1 + (handed - taken if number > begun else 0)
            for number, first, *_ in found
        }
        if (house / "north.log").exists():
            check_contents(house, starts)
        totals["kills"] += was_killed
        totals["mended"] += report["mended"]
        totals["lost"] += sum(entry is None for *_, entry in found[: begun + 1])
        totals["unnoted"] += handed > taken
    return totals


if __name__ == "__main__":
    work = {"file": file_steps, "pipe": pipe_steps}[sys.argv[1]]
    stream(
        STUDY,
        [ROWS],
        holder="warm",
        ledger=Path(sys.argv[2]) / "warm.db",
        log=Path(sys.argv[2]) / "warm.log",
        batch_rows=BATCH,
    )
    print(json.dumps(work(Path(sys.argv[2]))))  # noqa: T201
