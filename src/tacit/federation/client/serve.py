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

import httpx
from flwr.app import Context, Error, Message
from flwr.clientapp import ClientApp
from flwr.common.constant import ErrorCode, SubStatus
from flwr.proto.runtime_pb2 import AcquireTaskRequest, SendTaskHeartbeatRequest
from flwr.supercore.constant import TaskType
from flwr.supercore.heartbeat import HeartbeatSender
from flwr.supercore.interceptors import (
    RuntimeTokenHttpInterceptor,
    RuntimeVersionHttpInterceptor,
    SuperExecAuthHttpInterceptor,
)
from flwr.supercore.protobuf.client import ProtobufClientInterceptor
from flwr.supercore.retry import RetryInvoker, exponential
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output

from tacit.errors import FederationError

LOG = logging.getLogger("tacit.federation")
LOOPBACK = ("127.0.0.1:", "localhost:", "[::1]:")
MOST_TASKS = 16
"""Tasks that may be under way, those that hang included."""
_PROTECTED = frozenset({"/flwr.proto.Runtime/AcquireTask"})


@dataclass(frozen=True)
class Runtime:
    """Where the SuperNode on this machine hands out tasks, and the secret shared with it."""

    address: str
    secret: bytes

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
        return cls(address, secret)

    def client(self, component: str, interceptor: ProtobufClientInterceptor) -> RuntimeHttpClient:
        """A connection that waits where the SuperNode is not there yet."""
        return RuntimeHttpClient.from_server_address(
            server_address=self.address,
            insecure=True,
            root_certificates=None,
            interceptors=[RuntimeVersionHttpInterceptor(component_name=component), interceptor],
            retry_invoker=_patient(),
        )


def _patient() -> RetryInvoker:
    """Try again while the SuperNode cannot be reached.

    Flower's own way would end the process when a task has expired.
    """
    return RetryInvoker(
        lambda: exponential(max_delay=20), httpx.TransportError, max_tries=None, max_time=None
    )


def serve(app: ClientApp, runtime: Runtime, policy: str | Path, *, poll: float = 1.0) -> None:
    """Answer tasks until the process ends.

    A task's message may never arrive, as when its run was stopped, and Flower then waits for hours;
    so each task has a thread of its own. Studies are answered one after the other all the same.
    """
    client = runtime.client(
        "SuperExec",
        SuperExecAuthHttpInterceptor(master_secret=runtime.secret, protected_methods=_PROTECTED),
    )
    site = _Site(app, runtime, Path(policy).absolute())
    while True:
        if site.free.acquire(timeout=poll):
            if (token := _next_task(client)) is not None:
                threading.Thread(target=site.work, args=(token,), daemon=True).start()
                continue
            site.free.release()
        time.sleep(poll)


def _next_task(client: RuntimeHttpClient) -> str | None:
    """The token of the next task, if there is one."""
    try:
        acquired = client.AcquireTask(
            AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP])
        )
    except httpx.HTTPStatusError as error:
        if error.response.status_code in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            raise FederationError(
                "the SuperNode does not know this secret: start both with the same file, "
                "and the SuperNode with --isolation process"
            ) from None
        LOG.warning("the SuperNode answers with status %d", error.response.status_code)
        return None
    return acquired.token if acquired.HasField("task") and acquired.token else None


def log_to_stderr() -> None:
    """Let the site's own log, details included, appear on the error stream of its own machine."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)


class _Site:
    """What all tasks of this site share: the app, one answer at a time, a bound on tasks."""

    def __init__(self, app: ClientApp, runtime: Runtime, policy: Path) -> None:
        self.app = app
        self.runtime = runtime
        self.policy = policy
        self.free = threading.Semaphore(MOST_TASKS)
        self._answering = threading.Lock()

    def work(self, token: str) -> None:
        """One task: take the message, answer it, hand the answer over."""
        client = self.runtime.client("flwr-clientapp", RuntimeTokenHttpInterceptor(token))
        heartbeat = HeartbeatSender(lambda: _is_heard(client))
        heartbeat.start()
        context = None
        status = SubStatus.FAILED
        try:
            message, context, _run, _bundle = pull_task_input(client)
            with self._answering:
                reply = _reply(self.app, message, _at_home(context, self.policy))
            push_message(client, reply, context)
            status = SubStatus.COMPLETED
        except Exception as error:  # a task that failed must not end the executor
            LOG.exception("a task failed: %s", type(error).__name__)
        finally:
            push_task_output(client, context, status, "")
            heartbeat.stop()
            client.close()
            self.free.release()


def _is_heard(client: RuntimeHttpClient) -> bool:
    """Tell the SuperNode that the task is worked on; an expired one is finished all the same."""
    try:
        client.SendTaskHeartbeat(SendTaskHeartbeatRequest())
    except httpx.TransportError:
        return False
    except httpx.HTTPStatusError as error:
        LOG.info("the SuperNode has given the task up (status %d)", error.response.status_code)
    return True


def _at_home(context: Context, policy: Path) -> Context:
    """The context with the policy of this executor's command line, whatever the SuperNode says."""
    return replace(context, node_config={**context.node_config, "policy": str(policy)})


def _reply(app: ClientApp, message: Message, context: Context) -> Message:
    try:
        return app(message, context)
    except Exception as error:  # its text could quote data, and Flower would send it
        LOG.exception("unexpected %s", type(error).__name__)
        return Message(
            Error(code=ErrorCode.CLIENT_APP_RAISED_EXCEPTION, reason="the site could not answer"),
            reply_to=message,
        )
