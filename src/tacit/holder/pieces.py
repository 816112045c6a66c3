"""Pieces of a table, each added up by itself: here, or by several processes at once.

What a piece gives is a short list of whole numbers, and what was counted and seen on the way. They
are put together in the order of the rows, so that row numbers and refusals are those of one reading
from the first row to the last, whoever read which piece.
"""

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any, Self

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

    def plain(self) -> dict[str, Any]:
        """All of it in numbers, lists and names, for another process."""
        counted = self.diagnostics
        watch = None if counted is None else counted.watch
        return {
            "numbers": self.numbers,
            "rows": self.rows,
            "reading": asdict(self.reading),
            "counted": None if counted is None else _counts(counted),
            "watch": None if watch is None else watch.plain(),
        }

    @classmethod
    def from_plain(cls, study: Study, plain: dict[str, Any]) -> Self:
        """The part that another process told."""
        counted = plain["counted"]
        diagnostics = None if counted is None else Diagnostics(**counted)
        if diagnostics is not None and plain["watch"] is not None:
            diagnostics.watch = Watch(study, GRID)
            diagnostics.watch.take(plain["watch"])
        return cls(plain["numbers"], plain["rows"], Reading(**plain["reading"]), diagnostics)


def _counts(diagnostics: Diagnostics) -> dict[str, Any]:
    return {
        name: getattr(diagnostics, name) for name in ("rows", "shrunk", "incomplete", "clamped")
    }


@dataclass(frozen=True)
class Task:
    """What is to be added up."""

    tally: Tally[Any]
    files: Files
    is_counted: bool
    is_watched: bool

    def plain(self, study: Study) -> dict[str, Any]:
        """All of it in names and lists, for another process."""
        return {
            "tally": [self.tally.name, self.tally.question],
            "study": study.document(),
            "names": self.files.names,
            "form": asdict(self.files.form),
            "looks": [self.is_counted, self.is_watched],
        }


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
        if watch is not None and piece.is_later:
            watch.trim()
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
        files=files,
        is_counted=diagnostics is not None,
        is_watched=diagnostics is not None and diagnostics.watch is not None,
    )
    files.readings.clear()
    numbers = tally.to_numbers(tally.add_up(study, iter(())))
    rows = 0
    with closing(_parts(task, study, pieces, on_rows)) as parts:
        for piece, part in zip(pieces, parts, strict=True):
            numbers = [some + more for some, more in zip(numbers, part.numbers, strict=True)]
            rows += part.rows
            files.note(piece, part.reading)
            if diagnostics is not None and part.diagnostics is not None:
                diagnostics.add(part.diagnostics)
    table.enough(rows)
    return tally.from_numbers(study, numbers)


def _parts(task: Task, study: Study, pieces: Sequence[Piece], on_rows: OnRows) -> Generator[Part]:
    """The parts in the order of their pieces; by several processes where they are worth it."""
    count = min(process_count(), len(pieces))
    is_worth_it = sum(piece.work for piece in pieces) >= LEAST_WORK
    adder = Adder(task, study)

    def here(place: int) -> Part:
        return adder.part(pieces[place], on_rows)

    if count == 1 or not is_worth_it or task.tally.name is None:
        yield from map(here, range(len(pieces)))
        return
    plain = [[str(piece.path), *piece[1:]] for piece in pieces]
    for part in shared_out(task.plain(study), plain, count, on_rows, here):
        yield part if isinstance(part, Part) else Part.from_plain(study, part)
