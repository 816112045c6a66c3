"""Uploads: tables that a page hands over lie in a folder of the desk's own until they are used.

Only the officer can read it, and it is removed when the desk closes. What a desk that was killed
left behind is removed by the next one: each holds a lock on its folder for as long as it runs.
"""

import errno
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tacit.errors import TableError

PREFIX = "tacit-desk-"
LOCK = "lock"
MOST_NAME = 100
"""Letters of a file's name that are kept, from its end."""
_UNSAFE = re.compile(r"[^\w .,+=@()-]", re.UNICODE)


@dataclass(frozen=True)
class Upload:
    """A table that lies here: what it is called, where, and the digest of its bytes."""

    id: str
    name: str
    path: Path
    digest: str
    size: int


class Uploads:
    """A folder of tables that lives as long as the desk."""

    def __init__(self, place: Path | None = None) -> None:
        parent = Path(tempfile.gettempdir()) if place is None else place
        sweep(parent)
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        self._lock = (self.folder / LOCK).open("wb")
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._held: dict[str, Upload] = {}

    def every(self) -> list[Upload]:
        """The tables that lie here, the oldest first."""
        return list(self._held.values())

    def find(self, number: str) -> Upload:
        """A table by its number."""
        if number not in self._held:
            raise TableError("this table was removed from the desk: hand it over once more")
        return self._held[number]

    async def receive(self, name: str, pieces: AsyncIterator[bytes]) -> Upload:
        """Write a table as it arrives; half of one does not stay."""
        number = secrets.token_urlsafe(9)
        path = self.folder / number / safe_name(name)
        path.parent.mkdir(mode=0o700)
        digest = hashlib.sha256()
        size = 0
        try:
            with _private(path) as file:
                async for piece in pieces:
                    file.write(piece)
                    digest.update(piece)
                    size += len(piece)
            _refuse_empty(path, size)
        except BaseException as error:
            shutil.rmtree(path.parent, ignore_errors=True)
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                raise TableError(
                    f"there is no room for the table in {str(self.folder.parent)!r}: start the "
                    "desk with the file as a source instead, and it is read where it lies"
                ) from None
            raise
        upload = Upload(
            id=number, name=path.name, path=path, digest=f"sha256:{digest.hexdigest()}", size=size
        )
        self._held[number] = upload
        return upload

    def remove(self, number: str) -> None:
        """Remove a table; one that is gone already is no error."""
        upload = self._held.pop(number, None)
        if upload is not None:
            shutil.rmtree(upload.path.parent, ignore_errors=True)

    def close(self) -> None:
        """Remove all tables, and the folder."""
        self._held.clear()
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()


def sweep(parent: Path) -> None:
    """Remove folders of this user's desks that no longer run."""
    for folder in parent.glob(PREFIX + "*"):
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with (folder / LOCK).open("r+b") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)


def safe_name(name: str) -> str:
    """The last part of a file's name, in letters that mean nothing to a file system or pattern."""
    last = re.split(r"[/\\]", name)[-1]
    plain = _UNSAFE.sub("_", last)[-MOST_NAME:].lstrip(". ")
    return plain or "table"


def digest_of(path: Path) -> str:
    """The digest of a file's bytes."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _refuse_empty(path: Path, size: int) -> None:
    if not size:
        raise TableError(f"{path.name!r} is empty: choose the file with the rows")


def _private(path: Path) -> BinaryIO:
    """A new file that its owner alone can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    return os.fdopen(descriptor, "wb")
