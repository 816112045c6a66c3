"""`tacit stream` and `tacit follow` as real processes: in time, ended, killed, and searched.

Covers `tacit.cli.stream`, `tacit.cli.follow`, `tacit.cli.stopping`. Pipes are real; what a stream
should forget is looked for in its memory.
"""

import json
import os
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tacit.release.log import LogReader

COMMAND = [sys.executable, "-c", "from tacit.cli import main; main()"]
DOCUMENTATION = Path(__file__).parents[2] / "docs" / "stream.md"
STUDY = """\
name = "stream-command"
epsilon = 1.0
delta = 1e-6

[response]
name = "days"
range = [0, 30]

[[features]]
name = "age"
range = [18, 100]

[[features]]
name = "sex"
levels = ["female", "male"]
"""
HEADER = "age,sex,days\n"
SENTINEL = "73.15926535897931"
PATIENCE_S = 300
"""What a busy machine may take; nothing is asserted about speed."""


def rows(count, age="50"):
    return "".join(f"{age},{('female', 'male')[k % 2]},{k % 30}\n" for k in range(count))


def stream_of(*more, source="-", holder="north"):
    files = ["--ledger", f"{holder}.db", "--log", f"{holder}.log"]
    return [
        *COMMAND,
        "stream",
        "study.toml",
        source,
        "--holder",
        holder,
        "--batch-rows",
        "20",
        *files,
        *more,
    ]


@pytest.fixture
def house(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    return tmp_path


@pytest.fixture
def start(house):
    """Start a command in the house; what still runs at the end is killed."""
    running = []

    def starts(command):
        process = subprocess.Popen(
            command,
            cwd=house,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield starts
    for process in running:
        process.kill()
        process.communicate()


def run(house, command, text=""):
    return subprocess.run(
        command,
        cwd=house,
        input=text,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def give(process, text):
    process.stdin.write(text)
    process.stdin.flush()


def until(process, words):
    """Read lines of output until one has these words."""
    for line in process.stdout:
        if words in line:
            return line
    raise AssertionError(words, process.stderr.read())


def logged(house, holder="north"):
    return [
        (entry.batch, entry.release.n) for entry in LogReader(house / f"{holder}.log").entries()
    ]


# Time and ends.


def test_a_batch_is_published_as_soon_as_it_is_full_while_the_pipe_is_open(house, start):
    process = start(stream_of())
    give(process, HEADER + rows(15))
    assert "one batch only" in until(process, "guarantee:")
    for piece in ("50,fem", "ale,3\n" + rows(3), rows(1)):
        give(process, piece)
    assert until(process, "batch 1") == "batch 1: rows 1 to 20 published\n"
    assert logged(house) == [(1, 20)]
    give(process, rows(25))
    until(process, "batch 2")
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, "")
    assert "batch 3: rows 41 to 45 LOST" in out
    assert logged(house) == [(1, 20), (2, 20)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_growing_file_is_followed_until_a_signal_and_taken_up_again(house, start, number):
    table = house / "admissions.csv"
    table.write_text(HEADER + rows(25), encoding="utf-8")
    process = start(stream_of(source="admissions.csv"))
    until(process, "batch 1")
    with table.open("a", encoding="utf-8") as file:
        file.write(rows(20))
    until(process, "batch 2")
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, "")
    assert "5 rows wait in the file" in out
    done = run(house, stream_of("--idle", "0", "--publish-rest", "--json", source="admissions.csv"))
    facts = json.loads(done.stdout)
    assert (facts["published"], facts["rows"], facts["lost"], facts["epsilon"]) == (1, 5, [], 1.0)
    assert logged(house) == [(1, 20), (2, 20), (3, 5)]


def test_a_killed_pipe_is_reported_and_the_stream_goes_on(house, start):
    process = start(stream_of())
    give(process, HEADER + rows(33))
    until(process, "batch 1")
    until_taken(house, 33)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=PATIENCE_S)
    done = run(house, stream_of(), HEADER + rows(20))
    assert done.returncode == 0, done.stderr
    assert "batch 2: rows 21 to 33 LOST" in done.stdout
    assert "batch 3: rows 34 to 53 published" in done.stdout
    assert logged(house) == [(1, 20), (3, 20)]


def until_taken(house, rows):
    """Wait until the ledger has noted so many rows."""
    deadline, found = time.monotonic() + PATIENCE_S, 0
    while found < rows and time.monotonic() < deadline:
        time.sleep(0.05)
        with closing(sqlite3.connect(house / "north.db", timeout=PATIENCE_S)) as database:
            (found,) = database.execute("SELECT taken FROM stream").fetchone()
    assert found == rows


def test_a_killed_file_loses_nothing(house, start):
    table = house / "admissions.csv"
    table.write_text(HEADER + rows(50), encoding="utf-8")
    for _ in range(3):
        process = start(stream_of(source="admissions.csv"))
        until(process, "guarantee:")
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=PATIENCE_S)
    done = run(house, stream_of("--idle", "0", source="admissions.csv"))
    assert done.returncode == 0, done.stderr
    assert "LOST" not in done.stdout
    assert logged(house) == [(1, 20), (2, 20)]
    shown = json.loads(
        run(house, [*COMMAND, "ledger", "show", "--ledger", "north.db", "--json"]).stdout
    )
    assert [charge["batches"] for charge in shown[0]["charges"]] == [2]


# Forgetting.


def occurrences(process, needles):
    """How often each needle is in the readable memory of a process."""
    found = dict.fromkeys(needles, 0)
    with (
        Path(f"/proc/{process.pid}/maps").open(encoding="utf-8") as maps,
        Path(f"/proc/{process.pid}/mem").open("rb", buffering=0) as memory,
    ):
        for line in maps:
            low, high, access = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line).groups()
            if "r" not in access or "[v" in line:
                continue
            try:
                memory.seek(int(low, 16))
                content = memory.read(int(high, 16) - int(low, 16))
            except (OSError, ValueError):
                continue
            for name, needle in needles.items():
                found[name] += content.count(needle)
    return found


def gnu():
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") is not None
    except (ValueError, AttributeError, OSError):
        return False


@pytest.mark.skipif(
    not gnu() and not os.environ.get("CI"), reason="needs Linux's /proc and the GNU C library"
)
def test_nothing_of_a_published_row_is_left_in_memory_or_on_disk(house, start):
    value = float(SENTINEL)
    needles = {
        "text": SENTINEL.encode(),
        "number": struct.pack("d", value),
        "encoded": struct.pack("d", float(np.rint((value - 59) / 41 * 2**18))),
        "known": b"stream-command",  # the search does find what is there
    }
    process = start(stream_of("--batch-rows", "200"))
    give(process, HEADER + rows(99) + rows(1, SENTINEL) + rows(100))
    until(process, "batch 1")
    give(process, rows(3))
    until_taken(house, 203)
    found = occurrences(process, needles)
    assert found.pop("known") > 0
    assert found == {"text": 0, "number": 0, "encoded": 0}
    for path in house.iterdir():
        content = path.read_bytes()
        assert not any(
            content.count(needle) for name, needle in needles.items() if name != "known"
        ), path
    process.communicate(timeout=PATIENCE_S)


# Following.


def test_follow_prints_plain_text_to_a_pipe_and_the_same_as_fit(house, start):
    table = house / "admissions.csv"
    table.write_text(HEADER + rows(40), encoding="utf-8")
    assert run(house, stream_of("--idle", "0", source="admissions.csv")).returncode == 0
    process = start([*COMMAND, "follow", "north.log", "--every", "0.1", "--out", "live.parquet"])
    until(process, "2 batches of 1 stream, 40 rows, epsilon = 1")
    with table.open("a", encoding="utf-8") as file:
        file.write(rows(20))
    assert run(house, stream_of("--idle", "0", source="admissions.csv")).returncode == 0
    until(process, "3 batches of 1 stream, 60 rows, epsilon = 1")
    until(process, "residual sd")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, "")
    fitted = json.loads(
        run(house, [*COMMAND, "fit", "north.log", "--out", "fit.parquet", "--json"]).stdout
    )
    live = json.loads(run(house, [*COMMAND, "summary", "live.parquet", "--json"]).stdout)
    once = json.loads(run(house, [*COMMAND, "follow", "north.log", "--once", "--json"]).stdout)
    assert once["streams"] == [{"holder": "north", "batches": 3, "rows": 60, "epsilon": 1.0}]
    for other in (live, once):
        for mine, theirs in zip(fitted["coefficients"], other["coefficients"], strict=True):
            assert [mine["mean"], mine["low"], mine["high"]] == pytest.approx(
                [theirs["mean"], theirs["low"], theirs["high"]], rel=1e-9
            )


def test_an_end_that_is_asked_for_is_never_lost_and_a_second_breaks_off():
    """A handler notes it, so that no code in whose midst it comes can swallow it."""
    script = (
        "import os, signal\n"
        "from tacit.cli.stopping import pause, stopping\n"
        "before = signal.getsignal(signal.SIGINT)\n"  # who started us may ignore it
        "with stopping() as stopped:\n"
        "    pause(0.01, stopped)\n"
        "    assert not stopped()\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    pause(600, stopped)\n"
        "    assert stopped()\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "    except KeyboardInterrupt:\n"
        "        print('broken off')\n"
        "assert signal.getsignal(signal.SIGINT) is before\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (done.stdout, done.stderr) == ("broken off\n", "")


def test_follow_draws_a_table_on_a_terminal(house):
    assert run(house, stream_of(), HEADER + rows(40)).returncode == 0
    terminal, other = os.openpty()  # no fork of this process, in which JAX may have threads
    environment = os.environ | {"COLUMNS": "120", "TERM": "xterm"}
    command = [*COMMAND, "follow", "north.log", "--every", "0.1"]
    child = subprocess.Popen(
        command,
        cwd=house,
        env=environment,
        stdin=other,
        stdout=other,
        stderr=other,
        start_new_session=True,
    )
    os.close(other)
    shown, deadline = b"", time.monotonic() + PATIENCE_S
    while b"Ctrl-C ends" not in shown.partition(b"sex[male]")[2] and time.monotonic() < deadline:
        shown += os.read(terminal, 2**16)
    child.send_signal(signal.SIGINT)
    while True:
        try:
            shown += os.read(terminal, 2**16)
        except OSError:
            break
    os.close(terminal)
    assert child.wait(PATIENCE_S) == 0
    text = shown.decode()
    assert "2 batches of 1 stream, 40 rows, epsilon = 1" in text
    assert "●" in text
    assert "├" in text


# Refusals.


@pytest.mark.parametrize(
    ("more", "text", "rule"),
    [
        ([], "age,days\n1,2\n", "standard input needs exactly one column named 'sex'"),
        ([], HEADER + "30,SECRET,3\n", "holds a level that the study does not list"),
        (["--log", "north.db"], HEADER + rows(20), "would be mixed with what is read"),
        (["--log", "no/north.log"], HEADER + rows(20), "cannot write"),
        (["--batch-rows", "0"], HEADER + rows(20), "batch_rows must be at least 1"),
        (["--sign", "none.key"], HEADER + rows(20), "none.key"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_input_gets_one_sentence_and_exit_code_2(house, more, text, rule):
    done = run(house, stream_of(*more), text)
    assert done.returncode == 2
    assert rule in done.stderr
    assert "SECRET" not in done.stderr + done.stdout
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["follow", "study.toml"], "is not a release log"),
        (["follow", "nowhere.log"], "is not a release log"),
        (["follow", "empty.log", "--once"], "needs at least one release"),
        (["fit", "empty.log", "--out", "p.parquet"], "needs at least one release"),
        (["follow", "empty.log", "--method", "fixed-s"], "to follow a stream"),
        (["follow", "empty.log", "--out", "no/p.parquet"], "its folder must exist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_followed_gets_one_sentence(house, tacit, arguments, rule):
    (house / "empty.log").touch()
    code, out, err = tacit(*arguments)
    assert (code, out) == (2, "")
    assert rule in err
    assert len(err.strip().splitlines()) == 1


def test_help_says_for_whom_the_guarantee_holds(house):
    words = re.sub(r"[\s│]+", " ", run(house, [*COMMAND, "stream", "--help"]).stdout)
    assert "for each person whose rows are in one batch only" in words
    assert "√k times the μ" in words


# The documentation.


def test_the_worked_example_runs_and_prints_what_the_page_says(tmp_path):
    page = (
        DOCUMENTATION.read_text(encoding="utf-8")
        .partition("## A worked example")[2]
        .partition("## Sources and ends")[0]
    )
    commands = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    printed = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert (len(commands), len(printed)) == (4, 2)
    tacit = f'tacit() {{ "{sys.executable}" -c "from tacit.cli import main; main()" "$@"; }}\n'
    done = subprocess.run(
        ["/bin/bash", "-e", "-c", tacit + "".join(commands)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for text in printed:
        assert text in done.stdout
