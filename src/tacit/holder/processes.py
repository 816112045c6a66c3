"""Processes: pieces of a table shared out among this process and workers, one for each core.

A worker is a Python of its own (worker.py). It is started with the task on its standard input, not
forked, so that no thread or lock of this process is copied, and the program that called is not run
again. It takes one piece after the other and answers on its standard output; nothing else of it is
shown, since what a library prints could quote a row.

Answers come back in the order of the pieces. So does a refusal: that of the first row that gives
cause for one, as if one process had read all rows in turn.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from tacit.cores import ONE_THREAD, cores
from tacit.errors import TableError

VARIABLE = "TACIT_PROCESSES"
"""Environment variable that says how many processes read a table."""
AHEAD = 4
"""Pieces for each worker that may be read before one that is still being read."""
BEGIN = """
import json, sys
sys.path[:] = json.loads(sys.stdin.buffer.readline())
from tacit.holder.worker import work
work()
"""
LOST = (
    "a process that read the table was ended from outside, perhaps for want of memory: nothing was "
    f"published or paid; set {VARIABLE} to fewer processes"
)
MEMORY = (
    "there is not enough memory to read the table by so many processes: nothing was published or "
    f"paid; set {VARIABLE} to fewer processes"
)

OnRows = Callable[[int], None]


def process_count() -> int:
    """How many processes read a table: what the environment says, else one for each core."""
    said = os.environ.get(VARIABLE, "").strip()
    if not sys.executable:  # Python is part of another program: there is none to start
        return 1
    if not said:
        return cores()
    if not said.isdecimal() or int(said) < 1:
        raise TableError(f"{VARIABLE} must be a whole number from 1 on; got {said[:20]!r}")
    return int(said)


def shared_out(
    task: object, pieces: Sequence[object], count: int, on_rows: OnRows, alone: Callable[[int], Any]
) -> Iterator[Any]:
    """What a worker makes of each piece, or this process of the one at a place, in order.

    Task, pieces and answers travel as lines of JSON: nothing that is received names code to run.
    This process reads along, from the first moment on, and so does everything if no worker starts.
    """
    crew = _Crew(task, pieces, count - 1)
    try:
        yield from crew.answers(on_rows, alone)
    finally:
        crew.dismiss()


class _Worker:
    """One process, and the pipes to it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-I", "-c", BEGIN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | ONE_THREAD,
        )

    def begin(self, task: object) -> bool:
        """Tell it where its program lies and what is to be done; whether it is ready then."""
        self.send(sys.path)
        self.send(task)
        return bool(self.receive() == "ready")

    def send(self, item: object) -> None:
        """Hand something over."""
        pipe = self.process.stdin
        if pipe is None:  # pragma: no cover
            raise OSError
        pipe.write(json.dumps(item).encode() + b"\n")
        pipe.flush()

    def receive(self) -> Any:  # noqa: ANN401
        """What it says next."""
        pipe = self.process.stdout
        if pipe is None:  # pragma: no cover
            raise OSError
        if not (line := pipe.readline()):
            raise EOFError
        return json.loads(line)

    def close(self) -> None:
        """Close the pipes to a process that was killed, and wait for its end."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self.process.wait()


class _Crew:
    """Workers, each with a thread here that hands it pieces and listens."""

    def __init__(self, task: object, pieces: Sequence[object], count: int) -> None:
        self._task = task
        self._pieces = pieces
        self._next = 0
        self._lock = threading.Lock()
        self._room = threading.Semaphore(AHEAD * (count + 1))
        self._heard: SimpleQueue[tuple[str, int, Any]] = SimpleQueue()
        self._workers: list[_Worker] = []
        self._is_dismissed = False
        self._threads = [threading.Thread(target=self._lead, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def answers(self, on_rows: OnRows, alone: Callable[[int], Any]) -> Iterator[Any]:
        """Answers in the order of the pieces; some of them are read here."""
        waiting: dict[int, tuple[str, Any]] = {}
        wanted = 0
        while wanted < len(self._pieces):
            own = self._take(wait=False)
            if own >= 0:
                waiting[own] = self._read_here(alone, own)
            # Without a piece to read here, the one that is wanted is being read by a worker.
            for kind, place, said in self._news(wait=own < 0):
                if kind == "rows":
                    on_rows(said)
                else:
                    waiting[place] = (kind, said)
            while wanted in waiting:
                yield answered(*waiting.pop(wanted))
                wanted += 1
                self._room.release()

    def _news(self, *, wait: bool) -> Iterator[tuple[str, int, Any]]:
        """What workers said since; at least one thing if it is waited for."""
        if wait:
            yield self._heard.get()
        while not self._heard.empty():
            yield self._heard.get()

    def _read_here(self, alone: Callable[[int], Any], place: int) -> tuple[str, Any]:
        try:
            return "part", alone(place)
        except Exception as error:  # noqa: BLE001 - raised when its turn has come
            self._stop()
            return "raised", error

    def dismiss(self) -> None:
        """End all workers, and wait for them."""
        with self._lock:
            self._is_dismissed = True
            workers = list(self._workers)
        for _ in self._threads:
            self._room.release()
        for worker in workers:
            worker.process.kill()
        for thread in self._threads:
            thread.join()
        for worker in workers:
            worker.close()

    # In a thread of its own.

    def _lead(self) -> None:
        """Hand pieces to one worker; one that does not even start is done without."""
        place = -1
        try:
            worker = self._started()
            while worker is not None and (place := self._take(wait=True)) >= 0:
                worker.send(self._pieces[place])
                while (heard := worker.receive())[0] == "rows":
                    self._heard.put(("rows", place, heard[1]))
                if heard[0] != "part":
                    self._stop()
                self._heard.put((heard[0], place, heard[1]))
        except (OSError, EOFError, ValueError):
            if place >= 0:
                self._stop()
                self._heard.put(("lost", place, ""))

    def _started(self) -> _Worker | None:
        with self._lock:
            if self._is_dismissed:
                return None
            worker = _Worker()
            self._workers.append(worker)
        return worker if worker.begin(self._task) else None

    def _take(self, *, wait: bool) -> int:
        """The place of the next piece; −1 when there is none, or no room for its answer."""
        if not self._room.acquire(blocking=wait):
            return -1
        with self._lock:
            if not self._is_dismissed and self._next < len(self._pieces):
                self._next += 1
                return self._next - 1
        self._room.release()
        return -1

    def _stop(self) -> None:
        """Give out no more: those before the place of the failure are all given out."""
        with self._lock:
            self._is_dismissed = True


def answered(kind: str, said: Any) -> Any:  # noqa: ANN401
    """An answer, or a refusal."""
    if kind == "part":
        return said
    if kind == "raised":
        raise said
    if kind == "refused":
        raise TableError(said)
    if kind == "memory":
        raise TableError(MEMORY)
    if kind == "lost":
        raise TableError(LOST)
    raise RuntimeError(f"a process that read the table failed with {said}")
