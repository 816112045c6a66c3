"""Serve: a site's own executor, which runs the Tacit installed there and no code from the network.

A Flower run carries an app bundle, and a SuperNode left to itself executes the bundle's ClientApp:
whoever may start a run could run any program beside the rows. So the SuperNode is started with
`--isolation process`, in which it executes nothing, and this executor takes its tasks over
loopback. It ignores the bundle, answers with the app installed here, and takes the policy's path
from its own command line. SuperNode and executor may run as different users: only the latter can
read rows.
"""

import logging
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

from flwr.app import Context
from flwr.clientapp import ClientApp

from tacit.errors import FederationError
from tacit.federation.client.jobs import Jobs
from tacit.federation.client.presence import Presence
from tacit.federation.flower import Executor, Task, unanswerable

LOG = logging.getLogger("tacit.federation")
LOOPBACK = ("127.0.0.1:", "localhost:", "[::1]:")
MOST_TASKS = 16
"""Tasks that may be under way, those that hang included."""


@dataclass(frozen=True)
class Runtime:
    """Where the SuperNode on this machine hands out tasks, and the secret shared with it."""

    executor: Executor
    presence: Presence

    @classmethod
    def at(cls, address: str, secret_file: str | Path) -> "Runtime":
        """Read the secret; the address must be on this machine: nothing there is encrypted."""
        if not address.startswith(LOOPBACK):
            raise FederationError(
                "the SuperNode's address must be on this machine, such as 127.0.0.1:9094; "
                f"got {address!r}"
            )
        try:
            secret = Path(secret_file).read_bytes()
        except OSError as error:
            raise FederationError(
                f"cannot read the secret {str(secret_file)!r}: {error.strerror}"
            ) from None
        if not secret:
            raise FederationError(
                f"{str(secret_file)!r} is empty: "
                "it must hold the secret that the SuperNode was started with"
            )
        return cls(Executor(address, secret), Presence(secret_file))


def serve(app: ClientApp, runtime: Runtime, policy: str | Path, *, poll: float = 0.3) -> None:
    """Answer tasks until the process ends.

    A task's message may never arrive, as when its run was stopped, and Flower then waits for hours;
    so each task has a thread of its own. Studies are answered one after the other all the same.
    """
    runtime.presence.take()
    tasks = runtime.executor.tasks()
    site = _Site(app, Path(policy).absolute())
    while True:
        if site.lost.is_set():
            LOG.warning("a task was lost: the SuperNode is started anew")
            site.lost.clear()
            runtime.presence.blink()
        if site.free.acquire(timeout=poll):
            if (task := tasks.next()) is not None:
                threading.Thread(target=site.work, args=(task,), daemon=True).start()
                continue
            site.free.release()
        time.sleep(poll)


class _Site:
    """What all tasks of this site share: questions under way, a bound on tasks, one was lost."""

    def __init__(self, app: ClientApp, policy: Path) -> None:
        self.jobs = Jobs(app)
        self.policy = policy
        self.free = threading.Semaphore(MOST_TASKS)
        self.lost = threading.Event()

    def work(self, task: Task) -> None:
        """One task: take the message, answer it, hand the answer over."""
        try:
            message, context = task.take()
            try:
                reply = self.jobs.reply(message, _at_home(context, self.policy))
            except Exception as error:  # a message that breaks what reads it is answered too
                LOG.exception("unexpected %s", type(error).__name__)
                reply = unanswerable(message)
            task.hand_over(reply)
        except Exception as error:  # a task that failed must not end the executor
            LOG.exception("a task failed: %s", type(error).__name__)
        finally:
            if not task.is_answered:
                self.lost.set()
            task.close()
            self.free.release()


def _at_home(context: Context, policy: Path) -> Context:
    """The context with the policy of this executor's command line, whatever the SuperNode says."""
    return replace(context, node_config={**context.node_config, "policy": str(policy)})
