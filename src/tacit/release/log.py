"""Release log: all that leaves a holder who publishes a stream, one line of JSON per batch.

A line holds the stream's id, the batch's number, and the release as it would stand in a file of
its own; the release states both again, under its signature. Numbers grow from line to line; one
that is missing belongs to a batch that was lost. A line counts once its end is there: what comes
after the last one is still being written, or was torn by a crash and will be mended when the
stream goes on.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from tacit.errors import ReleaseError
from tacit.release.statistics import BatchNumber, Release
from tacit.release.texts import MOST_BYTES, parse

FORMAT = "tacit-batch"
VERSION = 1
_FIELDS = {"format", "version", "stream", "batch", "release"}
_OPENING = f'{{"format": "{FORMAT}"'.encode()


@dataclass(frozen=True)
class Entry:
    """A line of the log: the release of a batch, which states its stream and number."""

    release: Release

    @property
    def place(self) -> BatchNumber:
        """The stream and the number."""
        if self.release.batch is None:
            raise ReleaseError("the release in a log must state the batch that it is of")
        return self.release.batch

    @property
    def stream(self) -> str:
        """The stream's id."""
        return self.place.stream

    @property
    def batch(self) -> int:
        """The batch's number."""
        return self.place.number

    def to_line(self) -> str:
        """The line, with its end."""
        fields = {
            "format": FORMAT,
            "version": VERSION,
            "stream": self.stream,
            "batch": self.batch,
            "release": self.release.document(),
        }
        return json.dumps(fields, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_line(cls, line: bytes) -> "Entry":
        """Read a line strictly; the release inside is checked like any other."""
        fields = parse(line)
        if set(fields) != _FIELDS or fields["format"] != FORMAT or fields["version"] != VERSION:
            raise ReleaseError(
                f"it must hold {', '.join(sorted(_FIELDS))}, "
                f"with format {FORMAT} and version {VERSION}, and nothing else"
            )
        if not isinstance(fields["release"], dict):
            raise ReleaseError("release must be a JSON object")
        entry = cls(Release.from_fields(fields["release"]))
        stated = (fields["stream"], fields["batch"])
        if stated != (entry.stream, entry.batch) or isinstance(fields["batch"], bool):
            raise ReleaseError("stream and batch must be those that the release states")
        return entry


def is_log(path: str | Path) -> bool:
    """Whether a file is a release log, by its first bytes.

    An empty one is the log of a stream that has published nothing yet.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(len(_OPENING)) in {_OPENING, b""}
    except (OSError, ValueError):
        return False


class LogReader:
    """Reads a log as it grows: each call of `entries` goes on where the last one ended."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._position = 0
        self._lines = 0

    def entries(self) -> Iterator[Entry]:
        """The lines that were finished since the last call."""
        try:
            with self.path.open("rb") as file:
                if file.seek(0, os.SEEK_END) < self._position:
                    self._refuse_shorter()
                file.seek(self._position)
                while (line := file.readline(MOST_BYTES)).endswith(b"\n"):
                    yield self._entry(line)
                    self._position += len(line)
                    self._lines += 1
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a valid path"
            raise ReleaseError(f"cannot read the log {str(self.path)!r}: {reason}") from None

    def _refuse_shorter(self) -> NoReturn:
        raise ReleaseError(
            f"the log {str(self.path)!r} has become shorter while it was followed: "
            "a log only grows, so ask its holder, and begin anew"
        )

    def _entry(self, line: bytes) -> Entry:
        try:
            return Entry.from_line(line)
        except ReleaseError as error:
            raise type(error)(f"{self.path}, line {self._lines + 1}: {error}") from None
