"""Rows still arriving: CSV text from a pipe or a growing file, or record batches one by one.

A source gives each row once, to one function, and keeps none: text is read into one buffer and
overwritten there as soon as it was parsed, as are the columns that Arrow made of it. What Python
and Arrow copied on the way is freed, not overwritten.
"""

import csv
import hashlib
import io
import os
import select
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.csv

from tacit.errors import TableError
from tacit.rows.drivers import reading
from tacit.rows.names import check_names
from tacit.rows.text import Dialect, is_text, make_text, usual_separator
from tacit.rows.wiped import POOL, arrows_own, wipe, wipe_columns
from tacit.rows.written import PLAIN, check_header, header_of
from tacit.study import Study

READ_BYTES = 2**16
"""Most text that is read at once, so also the most that is held."""
LONGEST_LINE = 2**22
_NOT_LINES = (".parquet", ".feather", ".arrow", ".gz")
POLL = 0.2
"""Seconds between two looks at a file that does not grow."""

Use = Callable[[pa.RecordBatch], None]


@dataclass(frozen=True)
class Place:
    """Where a stream stands in a file: so many bytes were given out, and this is their SHA-256."""

    position: int
    digest: str | None


class Source(Protocol):
    """Where arriving rows come from."""

    @property
    def name(self) -> str:
        """A file's path, by which its stream finds it again; "-" for what can be read only once."""

    @property
    def taken(self) -> int:
        """Rows taken so far from the outside, those still waiting here included."""

    @property
    def place(self) -> Place | None:
        """How far the file was given out; None where it cannot be read again."""

    def resume(self, place: Place) -> None:
        """Go on from there; a file whose beginning has changed since is refused."""

    def wait(self) -> bool:
        """Wait until there is a row; False when there will be none."""

    def read(self, most: int, use: Use) -> None:
        """Give at most so many of the rows that are there to `use`, and forget them."""


class Handed:
    """Record batches from anything that can be iterated."""

    name = "-"
    place = None

    def __init__(self, batches: Iterable[pa.RecordBatch], study: Study) -> None:
        self._batches = iter(batches)
        self._names = study.table_names
        self._current: pa.RecordBatch | None = None
        self.taken = 0

    def resume(self, place: Place) -> None:
        """Nothing handed over can be had again."""
        raise NotImplementedError(place)

    def wait(self) -> bool:
        """Fetch the next batch that has rows."""
        while self._current is None:
            batch = next(self._batches, None)
            if batch is None:
                return False
            if not isinstance(batch, pa.RecordBatch):
                raise TableError("a stream's batches must be Arrow record batches")
            check_names(batch.schema.names, self._names, "the record batch")
            self.taken += batch.num_rows
            self._current = batch.select(self._names) if batch.num_rows else None
        return True

    def read(self, most: int, use: Use) -> None:
        """Give out a slice of the current batch, which is the caller's: let go, not overwritten."""
        batch = self._current
        if batch is None:
            return
        self._current = batch.slice(most) if batch.num_rows > most else None
        use(batch.slice(0, most))


class Text:
    """CSV lines with a header, from a pipe (`path` None) or a growing file.

    A pipe ends when it is closed. A file ends never: `idle` is the number of seconds without a new
    byte after which either is taken to have ended, and `stopped` is asked whether to stop early.
    What was read by then is still given out, save a line without its end.
    """

    def __init__(
        self,
        study: Study,
        path: str | Path | None = None,
        *,
        descriptor: int = 0,
        idle: float | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._study = study
        self._idle = idle
        self._stopped = stopped
        self._grows = path is not None
        self.name = "-" if path is None else str(Path(path).resolve())
        self._shown = "standard input" if path is None else Path(path).name
        if self.name.endswith(_NOT_LINES):
            raise TableError(
                f"{self._shown} is no text that grows line by line: stream a CSV file, or publish "
                "this one with `tacit publish`"
            )
        with reading(self._shown):
            self._descriptor = descriptor if path is None else os.open(path, os.O_RDONLY)
        self._dialect = Dialect(study.table_names, study, separator=usual_separator(self.name))
        self._buffer = bytearray(READ_BYTES)
        # Unread text is buffer[begin:end]; lines are known up to `seen`.
        self._begin = self._end = self._seen = 0
        self._ends: deque[int] = deque()  # where each waiting row ends
        self._header: bytes | None = None
        self._offset = 0  # of buffer[0] in the file
        self._closed = False
        self._digest = hashlib.sha256()  # of all text up to `begin`, for a file
        self.taken = 0

    @property
    def place(self) -> Place | None:
        """How far the file was given out."""
        if not self._grows:
            return None
        return Place(self._offset + self._begin, self._digest.hexdigest())

    def resume(self, place: Place) -> None:
        """Read the header, then go on after what was given out before, if it is still there."""
        if not self._has_header():
            raise TableError(
                f"{self._shown} is shorter than what was published from it: put back the file "
                "that this stream reads"
            )
        with reading(self._shown):
            self._digest = self._digest_of(place.position)
        if place.digest not in {None, self._digest.hexdigest()}:
            raise TableError(
                f"{self._shown} is not the file that this stream has read so far: put that back"
            )
        os.lseek(self._descriptor, place.position, os.SEEK_SET)
        wipe(self._buffer)
        self._begin = self._end = self._seen = 0
        self._ends.clear()
        self._offset = place.position
        self.taken = 0

    def _digest_of(self, length: int) -> "hashlib._Hash":
        """SHA-256 of the file's first bytes; a shorter file gives another one."""
        digest = hashlib.sha256()
        position = 0
        while position < length:
            text = os.pread(self._descriptor, min(2**20, length - position), position)
            if not text:
                break
            digest.update(text)
            position += len(text)
        return digest

    def _forget(self, end: int) -> None:
        """What is before `end` was given out: take it into the digest of a file, and forget it."""
        if self._grows:
            with memoryview(self._buffer) as view:
                self._digest.update(view[self._begin : end])
        wipe(self._buffer, self._begin, end)
        self._begin = end

    def wait(self) -> bool:
        """Wait for a whole line after the header."""
        if not self._has_header():
            return False
        while not self._ends and self._fill():
            pass
        return bool(self._ends)

    def read(self, most: int, use: Use) -> None:
        """Parse waiting lines, give them out, and overwrite text and columns."""
        count = min(most, len(self._ends))
        ends = [self._ends.popleft() - self._begin for _ in range(count)]
        end = self._begin + ends[-1]
        text = self._buffer[self._begin : end]
        self._forget(end)
        try:
            self._parse(text, ends, use)
        finally:
            wipe(text)

    def _parse(self, text: bytearray, ends: list[int], use: Use) -> None:
        """Give out one row for each line; of missing values where a line is no row of this table.

        Where the lines together do not give a row each they are parsed one by one, so that a
        quotation mark that is never closed spoils its own line alone.
        """
        if self._give_out(text, len(ends), use):
            return
        for begin, end in zip([0, *ends], ends, strict=False):
            line = text[begin:end]
            if not self._give_out(line, 1, use):
                use(self._dialect.missing(1))
            wipe(line)

    def _give_out(self, lines: bytearray, rows: int, use: Use) -> bool:
        """Give out lines if they are so many rows; else say so, and give out nothing."""
        if not is_text(lines):
            if rows > 1:
                return False
            make_text(lines)
        self._dialect.out_of_shape = 0
        text = arrows_own(self._header or b"", lines)
        try:
            table = self._table(text)
        except pa.ArrowInvalid:
            return False
        finally:
            wipe(text)
        missing = self._dialect.out_of_shape
        try:
            if table.num_rows + missing != rows:
                return False
            for batch in table.to_batches():
                self._give_typed(batch, use)
            if missing:
                use(self._dialect.missing(missing))
        finally:
            wipe_columns(table)
        return True

    def _give_typed(self, batch: pa.RecordBatch, use: Use) -> None:
        typed = self._dialect.typed(batch, POOL)
        try:
            use(typed)
        finally:
            wipe_columns(typed)

    def _table(self, text: pa.Buffer) -> pa.Table:
        options = pyarrow.csv.ReadOptions(use_threads=False, block_size=max(text.size, READ_BYTES))
        return pyarrow.csv.read_csv(
            pa.BufferReader(text),
            read_options=options,
            parse_options=self._dialect.parse,
            convert_options=self._dialect.convert,
            memory_pool=POOL,
        )

    def _has_header(self) -> bool:
        while self._header is None and not self._ends:
            if not self._fill():
                return False
        if self._header is None:
            end = self._ends.popleft()
            self._header = bytes(memoryview(self._buffer)[self._begin : end])
            self._forget(end)
            self.taken -= 1
            self._read_names(self._header)
        return True

    def _read_names(self, line: bytes) -> None:
        """Find out what separates names, and so cells, and refuse names that are others."""
        text = line.decode("utf-8", "replace").strip("\r\n")
        names = self._study.table_names
        header = header_of([text], names, PLAIN, usual_separator(self.name))
        check_header(header, names, self._shown)
        self._dialect = Dialect(names, self._study, separator=header.separator)
        written = io.StringIO()
        csv.writer(written, delimiter=header.separator, lineterminator="\n").writerow(header.names)
        self._header = written.getvalue().encode()

    def _fill(self) -> bool:
        """Read more text and note where its lines end; False at the end of the stream."""
        self._make_room()
        count = self._receive()
        if not count:
            return self._close_last_line()
        self._end += count
        self._note_lines()
        return True

    def _make_room(self) -> None:
        """Move unread text to the front; grow the buffer for a line that fills it."""
        left = self._end - self._begin
        if self._begin:
            with memoryview(self._buffer) as view:
                view[:left] = view[self._begin : self._end]
            wipe(self._buffer, left, self._end)
            self._offset += self._begin
            self._seen -= self._begin
            self._ends = deque(end - self._begin for end in self._ends)
            self._begin = 0
            self._end = left
        if left == len(self._buffer):
            if left >= LONGEST_LINE:
                raise TableError(
                    f"{self._shown} has a line of over {LONGEST_LINE >> 20} MB: it cannot be read "
                    "as a stream of rows"
                )
            larger = bytearray(2 * left)
            larger[:left] = self._buffer
            wipe(self._buffer)
            self._buffer = larger

    def _receive(self) -> int:
        """Read into the buffer, waiting for text; 0 when the stream has ended."""
        begun = time.monotonic()
        while not self._closed and not self._stopped():
            ready = self._grows or select.select([self._descriptor], [], [], POLL)[0]
            if ready:
                with reading(self._shown):
                    count = os.readv(self._descriptor, [memoryview(self._buffer)[self._end :]])
                if count or not self._grows:
                    self._closed = not count
                    return count
            if self._idle is not None and time.monotonic() - begun >= self._idle:
                return 0
            if self._grows:
                time.sleep(POLL)
        return 0

    def _note_lines(self) -> None:
        while (end := self._buffer.find(b"\n", self._seen, self._end) + 1) > 0:
            blank = end - self._seen == 1 or (
                end - self._seen == 2 and self._buffer[self._seen] == ord("\r")  # noqa: PLR2004
            )
            self._seen = end
            if not blank:
                self._ends.append(end)
                self.taken += 1

    def _close_last_line(self) -> bool:
        """A pipe that is closed ends its last line; a file's may still be growing."""
        if not self._closed or self._seen == self._end:
            return False
        self._buffer[self._end] = ord("\n")
        self._end += 1
        self._note_lines()
        return bool(self._ends)
