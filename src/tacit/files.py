"""Files that appear whole or not at all, and are never written over what is read."""

import os
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from tacit.errors import ReleaseError, TacitError


def read_toml(path: str | Path, noun: str, refusal: type[TacitError]) -> dict[str, Any]:
    """The fields of a TOML file; `noun` and `refusal` say what it is and what is raised."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise refusal(f"cannot read {noun} {str(path)!r}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise refusal(f"{noun} {str(path)!r} is not valid TOML: {reason}") from None


def write_whole(path: str | Path, content: str | bytes, *, mode: int = 0o644) -> None:
    """Write a file under a temporary name beside its place, make it durable, and move it there."""
    with whole_file(path, mode=mode) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(path: str | Path, *, mode: int = 0o644) -> Iterator[BinaryIO]:
    """A file written under a temporary name beside its place, made durable, then moved there."""
    path = Path(path)
    try:
        descriptor, temporary = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".part"
        )
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(mode)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a valid path"
        raise ReleaseError(f"cannot write {str(path)!r}: {reason}") from None


def refuse_unwritable(path: str | Path) -> None:
    """Find out before anything is paid that a release could not be written there."""
    path = Path(path)
    try:
        writable = not path.is_dir() and path.parent.is_dir() and os.access(path.parent, os.W_OK)
    except (OSError, ValueError):  # a name too long, a folder that may not be entered
        writable = False
    if not writable:
        raise ReleaseError(f"cannot write {str(path)!r}: its folder must exist and be writable")


def refuse_overwriting(out: str | Path, read: Iterable[str | Path]) -> None:
    """Find out, before anything is done, that `out` is also read, or a ledger or key in use."""
    if Path(out).resolve() in {Path(path).resolve() for path in read}:
        raise ReleaseError(f"{str(out)!r} would overwrite what is read: choose another file")
