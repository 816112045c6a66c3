"""A worker: a process that adds up pieces of a table for another one, which started it.

It reads from its standard input what is to be added up, then one piece after the other, until the
input ends, as it does when the other process is gone. It answers on its standard output, with whole
numbers, counts, or a sentence that holds no value; whatever else is printed goes nowhere.
"""

import os
import pickle
import signal
import sys
import time
from typing import IO, Any

from tacit.errors import TableError
from tacit.holder.pieces import Adder
from tacit.rows.pieces import Piece
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
    task = pickle.load(inlet)  # noqa: S301 - of the process that started this one
    adder = Adder(task, Study.from_document(task.document))
    _say(outlet, "ready")
    while True:
        try:
            piece = pickle.load(inlet)  # noqa: S301
        except EOFError:
            return
        _say(outlet, answer(adder, piece, outlet))


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
    return "part", part


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
    pickle.dump(message, outlet)
    outlet.flush()
