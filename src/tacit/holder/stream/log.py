"""The log as its holder writes it: only ever longer, each line durable, mended after a crash."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tacit.errors import ReleaseError


class LogFile:
    """An open log, locked against a second writer."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor, self._path = descriptor, path

    def mend(self, lines: Iterable[str]) -> int:
        """Make the log hold exactly these lines, by completing it.

        Returns how many were missing or torn.

        A log that holds anything else is another stream's, or was changed: it is refused and left
        as it is.
        """
        missing = 0
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            file.seek(0)
            for text in lines:
                line = text.encode()
                found = file.read(len(line))
                if found != line:
                    if not line.startswith(found) or file.read(1):
                        self._refuse()
                    self.append(line[len(found) :])
                    file.seek(0, os.SEEK_END)
                    missing += 1
            if file.read(1):
                self._refuse()
        return missing

    def append(self, text: bytes) -> None:
        """Write at the end, durably."""
        try:
            while text:
                text = text[os.write(self._descriptor, text) :]
            os.fsync(self._descriptor)
        except OSError as error:
            raise ReleaseError(
                f"cannot write {str(self._path)!r}: {error.strerror}; "
                "the ledger has the batch, and a later run will log it"
            ) from None

    def _refuse(self) -> None:
        raise ReleaseError(
            f"the log {str(self._path)!r} holds something else than this stream's releases: "
            "choose another file, or remove it"
        )


@contextmanager
def open_log(path: str | Path) -> Iterator[LogFile]:
    """Open a log for one writer.

    It is made where there is none, and goes again if nothing was written to it.
    """
    path = Path(path)
    try:
        is_new = not path.exists()
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a valid path"
        raise ReleaseError(f"cannot write {str(path)!r}: {reason}") from None
    try:
        _lock(descriptor, path)
        _settle(path.parent)
        yield LogFile(descriptor, path)
    finally:
        if is_new and os.fstat(descriptor).st_size == 0:
            path.unlink(missing_ok=True)
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    """Keep a second writer out where the system has locks.

    The ledger would stop it in any case, but after it took rows.
    """
    with suppress(ImportError):
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ReleaseError(
                f"another process writes {str(path)!r}: wait for it to end, or stop it"
            ) from None


def _settle(folder: Path) -> None:
    """Make a new file's name durable, where the folder can be opened."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
