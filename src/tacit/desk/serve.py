"""Serve: one desk on a port of this machine alone, until it is closed."""

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import uvicorn

from tacit.desk.desk import Desk
from tacit.desk.guard import Lock
from tacit.desk.server import application
from tacit.desk.setting import Setting
from tacit.desk.uploads import Uploads
from tacit.errors import DeskError
from tacit.study import Study

ADDRESS = "127.0.0.1"
GRACE_S = 5
"""Seconds that a request under way has, once the desk is to close."""


@dataclass(frozen=True)
class Opened:
    """A desk that can be reached: its address, which works once, and what closes it."""

    address: str
    close: Callable[[], None]


def serve(
    setting: Setting, studies: Sequence[Study], port: int, announce: Callable[[Opened], None]
) -> None:
    """Answer the officer's browser until the desk is closed; `announce` hears where it is."""
    listening = _listen(port)
    lock = Lock(f"http://{ADDRESS}:{listening.getsockname()[1]}")
    desk = Desk(setting=setting, uploads=Uploads(), room=lock.room)
    desk.studies.update({study.hash: study for study in studies})

    def close() -> None:
        server.should_exit = True

    def tell() -> None:
        announce(Opened(lock.address, close))

    config = uvicorn.Config(
        application(desk, lock, announce=tell, close=close),
        access_log=False,
        http="h11",
        log_level="warning",
        loop="asyncio",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
        ws="none",
    )
    server = uvicorn.Server(config)
    try:
        server.run(sockets=[listening])
    finally:
        desk.uploads.close()
        listening.close()


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.bind((ADDRESS, port))
        listening.listen()  # who is told the address may come before the server is awake
    except (OSError, OverflowError) as error:
        listening.close()
        raise DeskError(
            f"port {port} cannot be used ({error}): choose another --port, or leave it out"
        ) from None
    return listening
