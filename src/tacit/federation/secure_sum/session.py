"""A holder's session in a secure sum: its states, and the folder that remembers them.

    (new) → keyed → shared → masking → masked → agreed → ended

Each state is a record of just what the holder needs from there on, so secrets are gone as soon as
they are of no use: private keys and seed once the masked share is in the ledger, others' shares
once the session has ended. An ended session is remembered and cannot be opened again.

A state is on disk, durably, before the answer that it belongs to is given. What a state replaces is
overwritten on disk; that is as much as a program can do (a disk may keep copies of its own).
"""

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Literal, Protocol

from pydantic import Field, TypeAdapter, ValidationError

from tacit.errors import FederationError
from tacit.federation.secure_sum.masks import SumError
from tacit.files import write_whole
from tacit.records import Record

LIFETIME = 7 * 86_400.0
"""Seconds after which a session that did not go on is ended, and its secrets are erased."""
MOST_OPEN = 100
"""Sessions that may be under way at once, so that a server cannot fill the disk."""


class Secrets(Record):
    """A holder's own secrets: private keys of the sealed channel and of the masks, and the seed."""

    cipher: str
    masking: str
    seed: str


class Keys(Record):
    """Another holder's public keys."""

    cipher: str
    mask: str


class Shares(Record):
    """One holder's shares of a seed and of a masking key."""

    seed: str
    key: str


class _Known(Record):
    """What every state has: what the sum is of, what was asked (digests), and answered."""

    subject: str
    questions: dict[str, str]
    answers: dict[str, str]


class Keyed(_Known):
    """Round 1 is answered: the holder's public keys are signed and known."""

    state: Literal["keyed"] = "keyed"
    secrets: Secrets


class Shared(_Known):
    """Round 2 is answered: the holders with `keys` have shares of the secrets; `own` stay here."""

    state: Literal["shared"] = "shared"
    secrets: Secrets
    keys: dict[str, Keys]
    own: Shares


class Masking(_Known):
    """Round 3 is decided: masks are shared with the holders of `held`, and never with others."""

    state: Literal["masking"] = "masking"
    secrets: Secrets
    keys: dict[str, Keys]
    held: dict[str, Shares]


class Masked(_Known):
    """Round 3 is answered: the masked share is in the ledger, and was masked for all in `held`."""

    state: Literal["masked"] = "masked"
    held: dict[str, Shares]


class Agreed(_Known):
    """Round 4 is answered: this holder signed who stayed, once."""

    state: Literal["agreed"] = "agreed"
    held: dict[str, Shares]
    vectors: dict[str, str]


class Ended(_Known):
    """Round 5 is answered, or the session was given up; there is no way on from here."""

    state: Literal["ended"] = "ended"


Session = Keyed | Shared | Masking | Masked | Agreed | Ended
_READER: TypeAdapter[Session] = TypeAdapter(Annotated[Session, Field(discriminator="state")])


class Store(Protocol):
    """Where sessions are kept. `write` returns when the text is durable; one is inside `alone`."""

    def alone(self) -> AbstractContextManager[None]: ...  # noqa: D102
    def read(self, session: str) -> str | None: ...  # noqa: D102
    def write(self, session: str, text: str) -> None: ...  # noqa: D102


def read_session(store: Store, name: str) -> Session | None:
    """The session by this name; None where it is new."""
    text = store.read(name)
    if text is None:
        return None
    try:
        return _READER.validate_json(text)
    except ValidationError:
        raise FederationError(
            f"the file of secure sum {name} is damaged, or another Tacit wrote it: move it away, "
            "and let the server begin a new sum"
        ) from None


def write_session(store: Store, name: str, session: Session) -> None:
    """Keep a session, durably."""
    store.write(name, session.model_dump_json())


def ended(session: Session) -> Ended:
    """What is remembered of a session that is over: its subject, and its last answer if any."""
    last = {"unmask"}
    return Ended(
        subject=session.subject,
        questions={name: text for name, text in session.questions.items() if name in last},
        answers={name: text for name, text in session.answers.items() if name in last},
    )


class Folder:
    """Sessions as files in a folder of their own, one process at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes out: two who answer one round at once could answer it twice."""
        import fcntl  # late: sites run on systems that have it; the analyst's side may not

        if not self.path.exists():
            self.path.mkdir(parents=True, mode=0o700)
            _settle(self.path.parent)
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self._sweep()
            yield
        finally:
            os.close(descriptor)

    def read(self, session: str) -> str | None:
        """The text of a session's file, if there is one."""
        path = self._file(session)
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else None

    def write(self, session: str, text: str) -> None:
        """Put a text in the place of a session's file, and overwrite what was there."""
        path = self._file(session)
        if not path.exists() and self._open_count() >= MOST_OPEN:
            raise SumError(f"{MOST_OPEN} secure sums are under way already")
        with _overwriting(path):
            write_whole(path, text, mode=0o600)
            _settle(self.path)

    def _file(self, session: str) -> Path:
        return self.path / f"{session}.json"

    def _files(self) -> list[Path]:
        return sorted(self.path.glob("*.json"))

    def _open_count(self) -> int:
        return sum('"state":"ended"' not in _text(path) for path in self._files())

    def _sweep(self) -> None:
        """Remove what a power cut left half written, and end sessions that nobody goes on with."""
        for part in self.path.glob(".*.part"):
            with _overwriting(part):
                part.unlink(missing_ok=True)
        moment = time.time()
        for path in self._files():
            if moment - path.stat().st_mtime > LIFETIME and '"state":"ended"' not in _text(path):
                with suppress(FederationError):  # a damaged file is left for a person
                    session = read_session(self, path.stem)
                    if session is not None:
                        write_session(self, path.stem, ended(session))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


@contextmanager
def _overwriting(path: Path) -> Iterator[None]:
    """Overwrite the file that was at a path before, once something else is in its place."""
    if not path.exists():
        yield
        return
    descriptor = os.open(path, os.O_RDWR)
    try:
        yield
        os.pwrite(descriptor, bytes(os.fstat(descriptor).st_size), 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _settle(folder: Path) -> None:
    """Make names in a folder durable: without it a power cut may bring an older file back."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
