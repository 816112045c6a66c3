"""The one door to Flower: whatever is used of it beyond what it promises to keep is in this file.

Flower promises `flwr.app`, `flwr.clientapp` and `flwr.serverapp`, which any module here may import.
What a site's own executor, the SuperLink's tolerance of clocks and a run's folder need lies deeper
and may move with any minor version, so the version is pinned. tests/federation/test_flower.py goes
through this door with every minor version of `SUPPORTED`, and says what breaks with the next one.
"""

import base64
import binascii
import datetime as dt
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
from flwr.app import Context, Error, Message
from flwr.common.config import get_project_dir
from flwr.common.constant import TIMESTAMP_HEADER, ErrorCode, SubStatus
from flwr.common.secure_aggregation.crypto.shamir import combine_shares, create_shares
from flwr.proto.runtime_pb2 import AcquireTaskRequest, SendTaskHeartbeatRequest
from flwr.serverapp import Grid
from flwr.supercore.constant import FLEET_HTTP_PUBLIC_KEY_HEADER, TaskType
from flwr.supercore.heartbeat import HeartbeatSender
from flwr.supercore.interceptors import (
    RuntimeTokenHttpInterceptor,
    RuntimeVersionHttpInterceptor,
    SuperExecAuthHttpInterceptor,
)
from flwr.supercore.protobuf.client import ProtobufClientInterceptor
from flwr.supercore.retry import RetryInvoker, exponential
from flwr.supercore.run import Run
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supercore.task_identity import TaskIdentity
from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output

from tacit.errors import FederationError
from tacit.federation.clock import CLOCK_LIMIT
from tacit.federation.environment import SUPERLINK

SUPPORTED = ("1.41",)
"""Minor versions of Flower that this door was tried with."""
_PROTECTED = frozenset({"/flwr.proto.Runtime/AcquireTask"})

__all__ = [
    "SUPPORTED",
    "Executor",
    "Run",
    "Task",
    "Tasks",
    "combine_shares",
    "create_shares",
    "identify",
    "run_folder",
    "start_superlink",
    "start_supernode",
    "unanswerable",
    "with_number",
]


# A site's executor, in the place of Flower's own.


@dataclass(frozen=True)
class Executor:
    """What takes tasks from the SuperNode on this machine, with the secret shared with it."""

    address: str
    secret: bytes

    def tasks(self) -> "Tasks":
        """A connection that hands out tasks."""
        interceptor = SuperExecAuthHttpInterceptor(
            master_secret=self.secret, protected_methods=_PROTECTED
        )
        return Tasks(self, self.client("SuperExec", interceptor))

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
        lambda: exponential(max_delay=2), httpx.TransportError, max_tries=None, max_time=None
    )


@dataclass(frozen=True)
class Tasks:
    """The tasks of a SuperNode."""

    executor: Executor
    connection: RuntimeHttpClient

    def next(self) -> "Task | None":
        """The next task, if there is one."""
        request = AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP])
        try:
            acquired = self.connection.AcquireTask(request)
        except httpx.HTTPStatusError as error:
            if error.response.status_code in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
                raise FederationError(
                    "the SuperNode does not know this secret: start both with the same file, "
                    "and the SuperNode with --isolation process"
                ) from None
            return None
        if not acquired.HasField("task") or not acquired.token:
            return None
        interceptor = RuntimeTokenHttpInterceptor(acquired.token)
        return Task(self.executor.client("flwr-clientapp", interceptor))


class Task:
    """One task: a message to take, and its answer to hand over."""

    def __init__(self, client: RuntimeHttpClient) -> None:
        self._client = client
        self._context: Context | None = None
        self._heartbeat = HeartbeatSender(lambda: _is_heard(client))
        self._status = SubStatus.FAILED

    def take(self) -> tuple[Message, Context]:
        """The message and the context that the SuperNode keeps for its run."""
        self._heartbeat.start()
        message, context, _run, _bundle = pull_task_input(self._client)
        self._context = context
        return message, context

    def hand_over(self, reply: Message) -> None:
        """Give the answer to the SuperNode."""
        if self._context is None:
            raise FederationError("a task is taken before it is answered")
        push_message(self._client, reply, self._context)
        self._status = SubStatus.COMPLETED

    @property
    def is_answered(self) -> bool:
        """Whether the SuperNode has the whole answer; it hears nothing more while it has half."""
        return bool(self._status == SubStatus.COMPLETED)

    def close(self) -> None:
        """Say how it ended."""
        push_task_output(self._client, self._context, self._status, "")
        if self._heartbeat.is_running:
            self._heartbeat.stop()
        self._client.close()


def _is_heard(client: RuntimeHttpClient) -> bool:
    """Tell the SuperNode that the task is worked on; an expired one is finished all the same."""
    try:
        client.SendTaskHeartbeat(SendTaskHeartbeatRequest())
    except httpx.TransportError:
        return False
    except httpx.HTTPStatusError:
        return True
    return True


def unanswerable(message: Message) -> Message:
    """The answer to a message that broke what answers it; its words are fixed."""
    error = Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, "the site could not answer")
    return Message(error, reply_to=message)


# A run.


def run_folder(grid: Grid) -> Path:
    """Where the app of a run was unpacked, on the SuperLink's machine."""
    run = grid.run
    return Path(get_project_dir(run.fab_id, run.fab_version, run.fab_hash))


# A federation in one process.


def identify() -> None:
    """Say who we are: without an identity no message can be made."""
    TaskIdentity.run_id = 1
    TaskIdentity.task_id = 1
    TaskIdentity.node_id = 1


def with_number(message: Message, number: str) -> Message:
    """The message with the number under which it is sent, as Flower's own grids do."""
    message.metadata.__dict__["_message_id"] = number
    return message


# The SuperLink.


def start_superlink(arguments: list[str], on_wrong_clock: Callable[[str, float], None]) -> None:
    """Run a SuperLink in this process, until it is stopped, with `CLOCK_LIMIT` for sites' clocks.

    Flower allows a SuperNode's clock to be five seconds ahead. A signature on the time of a request
    is what a SuperNode is known by, so a wider limit lets one be used again for as long; it travels
    under TLS. `on_wrong_clock` hears the public key and the seconds of a clock that is further off.
    """
    from flwr.superlink.cli import flower_superlink
    from flwr.superlink.routers.fleet import node_auth

    authenticate = node_auth.authenticate_node

    def timed(request: Any) -> None:  # noqa: ANN401 - of the web framework beneath Flower
        key, seconds = _signed_at(request.headers)
        if seconds is not None and abs(seconds) > CLOCK_LIMIT:
            on_wrong_clock(key, seconds)
        authenticate(request)

    names = {
        "SYSTEM_TIME_TOLERANCE": int(CLOCK_LIMIT),
        "TIMESTAMP_TOLERANCE": 0,
        "authenticate_node": timed,
    }
    for name, value in names.items():
        _replace(node_auth, name, value)
    os.environ.update(SUPERLINK)
    # Flower starts its helpers by their names.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    sys.argv = ["flower-superlink", *arguments]
    flower_superlink()


def _replace(module: ModuleType, name: str, value: object) -> None:
    """Put something of ours in the place of something of Flower's, which must be there."""
    if not hasattr(module, name):
        raise FederationError(f"this Flower has no {name}: install one of {SUPPORTED}")
    setattr(module, name, value)


def _signed_at(headers: Any) -> tuple[str, float | None]:  # noqa: ANN401
    """A SuperNode's public key, and how far its clock is ahead; None where it does not say."""
    try:
        key = base64.b64decode(headers[FLEET_HTTP_PUBLIC_KEY_HEADER], validate=True).decode()
        moment = dt.datetime.fromisoformat(headers[TIMESTAMP_HEADER])
    except (KeyError, ValueError, TypeError, binascii.Error):
        return "", None
    return key, moment.timestamp() - time.time()


# A SuperNode.


RESTS = (0.5, 1.5)
"""Seconds that a SuperNode rests between two looks for a message: soon after one, and at most.

Flower's own rests three seconds, and a study waits for the slowest of its sites in every round.
"""
_GROWTH = 1.1


PULSE = 12
"""Seconds within which a SuperNode says that it lives; the server misses it after twice as long.

Flower's own says so within thirty, and one that was killed is turned away for a minute, since the
server believes that it is still there.
"""


class _Clock:
    """In the place of the module `time`, of which Flower's loop uses nothing but `sleep`."""

    def __init__(self) -> None:
        self._rest = RESTS[0]

    def sleep(self, seconds: float) -> None:
        """Rest longer each time there was no message, and briefly where Flower wants it brief."""
        if seconds <= RESTS[0]:
            self._rest = RESTS[0]
            time.sleep(seconds)
        else:
            time.sleep(min(seconds, self._rest))
            self._rest = min(_GROWTH * self._rest, RESTS[1])


def start_supernode(arguments: list[str]) -> None:
    """Run a SuperNode in this process, until it is stopped; messages and pulse are at our pace."""
    from flwr.supercore import heartbeat
    from flwr.supernode import fleet_http_connection, start_client_internal
    from flwr.supernode.cli import flower_supernode

    _replace(start_client_internal, "time", _Clock())
    for module in (heartbeat, fleet_http_connection):
        _replace(module, "HEARTBEAT_DEFAULT_INTERVAL", PULSE)
    sys.argv = ["flower-supernode", *arguments]
    flower_supernode()
