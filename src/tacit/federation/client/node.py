"""Node: a site's SuperNode, kept alive by a supervisor that says why where it cannot be.

Flower's SuperNode takes one question at a time and waits for its answer. Where the executor dies
at the wrong moment it waits for ever: connected, and deaf. So it is started anew whenever the
executor was there and is gone (`presence`), and whenever it ends by itself. What it was asked is
not lost, since the server asks again and the ledger gives what was published before.

Where a connection is cut in the middle of a handshake Flower gives the server up for good, and goes
on living. Nothing but its own words tells of that, so they are listened to.
"""

import contextlib
import ctypes
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tacit.federation.client.presence import LOOK, is_present
from tacit.federation.clock import look
from tacit.federation.environment import SUPERNODE

LOG = logging.getLogger("tacit.federation")
SHORTEST_PAUSE = 1.0
LONGEST_PAUSE = 20.0
"""Seconds between two starts of a SuperNode that ends at once: longer each time."""
STEADY = 60.0
"""Seconds after which a SuperNode that ends is started again without a pause."""
GIVEN_UP = ("Giving up reconnection", "Heartbeat failed unexpectedly", "Exception in thread")
"""What a SuperNode says that will hear nothing more."""
_SYSTEM = ctypes.CDLL(None)
_SET_PARENT_DEATH_SIGNAL = 1
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
PARTING = 8.0
"""Seconds that a SuperNode has to say good-bye to the server."""


@dataclass(frozen=True)
class Link:
    """What a SuperNode needs: the server's address, and files of the site."""

    address: str
    certificate: Path
    key: Path
    secret: Path
    port: int

    def command(self) -> list[str]:
        """How the SuperNode is started."""
        return [
            *(sys.executable, "-m", "tacit.federation.client.supernode"),
            *("--superlink", self.address),
            *("--root-certificates", str(self.certificate)),
            *("--auth-supernode-private-key", str(self.key)),
            *("--isolation", "process"),
            *("--host", "127.0.0.1"),
            *("--port", str(self.port)),
            *("--superexec-auth-secret-file", str(self.secret)),
        ]


class Supervisor:
    """One SuperNode as a child process, and whether an executor was seen since it was started."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._child: subprocess.Popen[str] | None = None
        self._started = 0.0
        self._pause = SHORTEST_PAUSE
        self._seen = False
        self._lost = threading.Event()

    def step(self) -> None:
        """Look once, and do what is needed."""
        if self._child is None:
            self._start()
            return
        if self._child.poll() is not None:
            self._ended(self._child.returncode)
            return
        if self._lost.is_set():
            LOG.warning("the SuperNode has given the server up: it is started anew")
            self.stop()
            return
        present = is_present(self._link.secret)
        if self._seen and not present:
            LOG.warning("the site's executor is gone: the SuperNode is started anew")
            self.stop()
        self._seen = present

    def _start(self) -> None:
        self._child = subprocess.Popen(  # noqa: S603 - our own command
            self._link.command(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=os.environ | SUPERNODE,
            preexec_fn=_ends_with_its_parent,  # noqa: PLW1509 - one call of the system, no lock
        )
        self._lost = threading.Event()
        words = (self._child, self._lost)
        threading.Thread(target=_pass_on, args=words, daemon=True).start()
        self._started = time.monotonic()
        self._seen = False

    def _ended(self, code: int) -> None:
        """Say why it ended, as far as can be seen from here, and wait a little longer each time."""
        self._child = None
        lived = time.monotonic() - self._started
        self._pause = SHORTEST_PAUSE if lived > STEADY else min(1.5 * self._pause, LONGEST_PAUSE)
        door = look(self._link.address, self._link.certificate)
        unknown = "the server may not know this site's key yet (`tacit federate admit` there)"
        why = door.trouble or door.clock_trouble or unknown
        LOG.warning("the SuperNode ended (%d): %s; next try in %.0f s", code, why, self._pause)
        time.sleep(self._pause)

    def stop(self) -> None:
        """End the SuperNode, which then tells the server that it leaves."""
        if self._child is None:
            return
        self._child.send_signal(signal.SIGTERM)
        try:
            self._child.wait(PARTING)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._child = None


def _pass_on(child: "subprocess.Popen[str]", lost: threading.Event) -> None:
    """What Flower says, as lines of this service's log; and that it has given up."""
    for line in child.stdout or ():
        if words := _COLOURS.sub("", line).strip():
            LOG.info("SuperNode: %s", words)
        if any(sign in line for sign in GIVEN_UP):
            lost.set()


def _ends_with_its_parent() -> None:
    """Let a child end with this process, however that ends: an orphan would keep the port."""
    with contextlib.suppress(AttributeError):  # where there is no Linux beneath
        _SYSTEM.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)


def supervise(link: Link, is_over: Callable[[], bool] = lambda: False) -> None:
    """Keep the SuperNode alive until this process is ended."""
    supervisor = Supervisor(link)

    def leave(_signal: int, _frame: object) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, leave)
    try:
        while not is_over():
            supervisor.step()
            time.sleep(LOOK)
    finally:
        supervisor.stop()
