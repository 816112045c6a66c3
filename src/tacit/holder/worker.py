"""A worker: a process that adds up pieces of a table for another one, which started it.

It reads from its standard input what is to be added up, then one piece after the other, until the
input ends, as it does when the other process is gone. It answers on its standard output, with whole
numbers, counts, or a sentence that holds no value; whatever else is printed goes nowhere.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import IO, Any

from tacit.errors import TableError
from tacit.holder.pieces import Adder, Task
from tacit.holder.statistics import STATISTICS
from tacit.holder.tally import Tally
from tacit.rows.pieces import Files, Piece
from tacit.rows.written import Format
from tacit.study import Study

PAUSE = 0.1
"""Seconds between two reports of how many rows were read."""


def work() -> None:
    """Add up pieces until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started this decides when it ends
    inlet = sys.stdin.buffer
    outlet = os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), 1)
    adder = adder_of(json.loads(inlet.readline()))
    _say(outlet, "ready")
    for line in inlet:
        path, *others = json.loads(line)
        _say(outlet, answer(adder, Piece(Path(path), *others), outlet))


def adder_of(plain: dict[str, Any]) -> Adder:
    """What adds up pieces for a task that another process told."""
    study = Study.from_document(plain["study"])
    form = plain["form"]
    form["missing"] = tuple(form["missing"])
    is_counted, is_watched = plain["looks"]
    task = Task(
        tally=tally_of(*plain["tally"]),
        files=Files(paths=(), names=tuple(plain["names"]), form=Format(**form)),
        is_counted=is_counted,
        is_watched=is_watched,
    )
    return Adder(task, study)


def tally_of(name: str, question: str | None) -> Tally[Any]:
    """The tally of a name; what few tables need is imported where it is needed."""
    if question is not None:
        from tacit.holder.visits import mapped
        from tacit.release.question import Question

        return mapped(Question.from_json(question))
    if name == "places":
        from tacit.holder.places import PLACES

        return PLACES
    if name == "seen":
        from tacit.holder.rehearse import SEEN

        return SEEN
    return STATISTICS


def answer(adder: Adder, piece: Piece, outlet: IO[bytes]) -> tuple[str, Any]:
    """What a piece adds up to, or why it does not; an unforeseen error is told by its kind."""
    progress = _Progress(outlet)
    try:
        part = adder.part(piece, progress.add)
    except TableError as error:
        return "refused", str(error)
    except MemoryError:
        return "memory", ""
    except Exception as error:  # noqa: BLE001 - its words could quote a row
        return "failed", type(error).__name__
    progress.tell()
    return "part", part.plain()


class _Progress:
    """Says now and then how many rows were read."""

    def __init__(self, outlet: IO[bytes]) -> None:
        self._outlet = outlet
        self._rows = 0
        self._told = time.monotonic()

    def add(self, rows: int) -> None:
        """So many more."""
        self._rows += rows
        if time.monotonic() - self._told >= PAUSE:
            self.tell()

    def tell(self) -> None:
        """Say it now."""
        _say(self._outlet, ("rows", self._rows))
        self._rows = 0
        self._told = time.monotonic()


def _say(outlet: IO[bytes], message: object) -> None:
    outlet.write(json.dumps(message).encode() + b"\n")
    outlet.flush()
