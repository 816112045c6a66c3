"""Presence: a lock by which a site's two processes know of each other without a word.

The executor (`tacit federate serve`) holds a lock on the secret that it shares with the SuperNode
for as long as it lives; the system takes the lock back however the process ends. Whoever may read
the secret can see whether it is held: the SuperNode's supervisor, which then starts the SuperNode
anew, since Flower's would wait for the answer of an executor that is gone; and the status.
"""

import fcntl
import os
import time
from pathlib import Path

from tacit.errors import FederationError

LOOK = 0.5
"""Seconds between two looks of the supervisor; who gives the lock away waits for some of them."""


class Presence:
    """The lock, held by one process from `take` on."""

    def __init__(self, secret: str | Path) -> None:
        self._path = Path(secret)
        self._descriptor: int | None = None

    def take(self) -> None:
        """Hold it; a second executor for the same SuperNode is refused."""
        time.sleep(3 * LOOK)  # the supervisor must have seen that the one before is gone
        descriptor = os.open(self._path, os.O_RDONLY)
        end = time.monotonic() + 10 * LOOK  # somebody who only looks holds it for a moment
        while not _is_locked(descriptor):
            if time.monotonic() > end:
                os.close(descriptor)
                raise FederationError(
                    f"another `tacit federate serve` answers with the secret {str(self._path)!r}: "
                    "a site has one; stop the other first"
                )
            time.sleep(LOOK / 5)
        self._descriptor = descriptor

    def leave(self) -> None:
        """Let go of it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def blink(self) -> None:
        """Let the supervisor see that tasks were lost, so that it starts the SuperNode anew."""
        self.leave()
        self.take()


def is_present(secret: str | Path) -> bool:
    """Whether an executor lives that answers with this secret."""
    descriptor = os.open(secret, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
