"""Pieces of a table, each added up by itself: here, or by several processes at once.

What a piece gives is a short list of whole numbers, and what was counted and seen on the way. They
are put together in the order of the rows, so that row numbers and refusals are those of one reading
from the first row to the last, whoever read which piece.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from tacit.holder.encode import Diagnostics
from tacit.holder.processes import process_count, shared_out
from tacit.holder.tally import OnRows, Tally, Total
from tacit.holder.watch import Watch
from tacit.rows.pieces import Files, Piece, Reader, report_of
from tacit.rows.reading import Reading
from tacit.rows.table import Table
from tacit.study import Study
from tacit.study.grid import GRID

LEAST_WORK = 10**8
"""Cells of Parquet, or bytes of text, that are worth starting processes: over a second's work."""


@dataclass(frozen=True)
class Part:
    """What one piece adds up to, and what its reader learned of it."""

    numbers: list[int]
    rows: int
    reading: Reading
    diagnostics: Diagnostics | None


@dataclass(frozen=True)
class Task:
    """What is to be added up, as plain values that another process understands."""

    tally: Tally[Any]
    document: dict[str, Any]
    files: Files
    is_counted: bool
    is_watched: bool


class Adder:
    """Adds up one piece after the other."""

    def __init__(self, task: Task, study: Study) -> None:
        self._task = task
        self._study = study
        self._reader = Reader(task.files, study)

    def part(self, piece: Piece, on_rows: OnRows) -> Part:
        """What a piece adds up to."""
        task = self._task
        report = report_of(piece)
        rows = 0

        def count(more: int) -> None:
            nonlocal rows
            rows += more
            on_rows(more)

        watch = Watch(self._study, GRID) if task.is_watched else None
        diagnostics = Diagnostics(watch=watch) if task.is_counted else None
        total = task.tally.add_up(
            self._study,
            self._reader.batches(piece, report),
            diagnostics=diagnostics,
            on_rows=count,
        )
        return Part(task.tally.to_numbers(total), rows, report, diagnostics)


def total_of_pieces(
    tally: Tally[Total],
    study: Study,
    table: Table,
    *,
    diagnostics: Diagnostics | None,
    on_rows: OnRows,
) -> Total:
    """What a table's files add up to, whole number by whole number."""
    files = table.files or Files((), ())
    pieces = files.pieces()
    task = Task(
        tally=tally,
        document=study.document(),
        files=Files(files.paths, files.names, files.form),
        is_counted=diagnostics is not None,
        is_watched=diagnostics is not None and diagnostics.watch is not None,
    )
    adder = Adder(task, study)
    files.readings.clear()
    numbers = tally.to_numbers(tally.add_up(study, iter(())))
    rows = 0
    with closing(_parts(task, pieces, on_rows, adder.part)) as parts:
        for piece, part in zip(pieces, parts, strict=True):
            numbers = [some + more for some, more in zip(numbers, part.numbers, strict=True)]
            rows += part.rows
            files.note(piece, part.reading)
            if diagnostics is not None and part.diagnostics is not None:
                diagnostics.add(part.diagnostics)
    table.enough(rows)
    return tally.from_numbers(study, numbers)


def _parts(
    task: Task, pieces: Sequence[Piece], on_rows: OnRows, alone: Callable[[Piece, OnRows], Part]
) -> Generator[Part]:
    """The parts in the order of their pieces; by several processes where they are worth it."""
    count = min(process_count(), len(pieces))
    if count > 1 and sum(piece.work for piece in pieces) >= LEAST_WORK:
        yield from shared_out(task, pieces, count, on_rows, alone)
        return
    for piece in pieces:
        yield alone(piece, on_rows)
