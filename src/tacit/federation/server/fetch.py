"""Fetch: answers from a grid, of which one that was sent by half must not hold up the others.

A site that dies while it hands its answer over leaves the announcement of a message whose content
never comes, and Flower waits for minutes for it. So each message is fetched in a thread of its own,
which is waited for only a moment.
"""

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from flwr.serverapp import Grid

if TYPE_CHECKING:
    from flwr.app import Message

MOMENT = 5.0
"""Seconds that one answer may hold up the others."""


class Fetching:
    """One message being fetched."""

    def __init__(self, grid: Grid, sent: str) -> None:
        self.messages: list[Message] = []
        self.failed = False
        self._thread = threading.Thread(target=self._run, args=(grid, sent), daemon=True)
        self._thread.start()

    def _run(self, grid: Grid, sent: str) -> None:
        try:
            self.messages = list(grid.pull_messages([sent]))
        except Exception:  # noqa: BLE001  (whatever a node sent must not stop the rest)
            self.failed = True

    def is_over(self, seconds: float) -> bool:
        """Whether it has ended, after waiting for so long."""
        self._thread.join(seconds)
        return not self._thread.is_alive()


class Fetcher:
    """All messages being fetched from one grid."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._under_way: dict[str, Fetching] = {}

    def fetched(self, sent: list[str]) -> Iterator[tuple[str, Fetching]]:
        """Whatever of these has come, or failed, by now."""
        for number in sent:
            slow = self._under_way.get(number)
            fetching = slow or Fetching(self._grid, number)
            self._under_way[number] = fetching
            if fetching.is_over(0.0 if slow else MOMENT):
                del self._under_way[number]
                if fetching.messages or fetching.failed:
                    yield number, fetching
