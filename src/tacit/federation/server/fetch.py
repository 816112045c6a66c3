"""Fetch: answers from a grid, of which one that was sent by half must not hold up the others.

A site that dies while it hands its answer over leaves the announcement of a message whose content
never comes, and Flower waits for minutes for it. So each node's answers are fetched in a thread of
its own, all nodes' at once, and waited for only a moment. Of a node whose thread hangs, later
answers are fetched one by one: what hangs is then one of them, and the next is heard.
"""

import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from flwr.serverapp import Grid

if TYPE_CHECKING:
    from flwr.app import Message

MOMENT = 5.0
"""Seconds that some answers may hold up the others."""


class Fetching:
    """Answers of one node being fetched, to the messages `sent`."""

    def __init__(self, grid: Grid, node: int, sent: tuple[str, ...]) -> None:
        self.node = node
        self.sent = sent
        self.messages: list[Message] = []
        self.failed = False
        self._thread = threading.Thread(target=self._run, args=(grid,), daemon=True)
        self._thread.start()

    def _run(self, grid: Grid) -> None:
        try:
            self.messages = list(grid.pull_messages(list(self.sent)))
        except Exception:  # noqa: BLE001  (whatever a node sent must not stop the rest)
            self.failed = True

    def is_over(self, seconds: float) -> bool:
        """Whether it has ended, after waiting for so long."""
        self._thread.join(seconds)
        return not self._thread.is_alive()


class Fetcher:
    """All answers being fetched from one grid."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._hanging: list[Fetching] = []

    def fetched(self, under_way: dict[int, list[str]]) -> Iterator[Fetching]:
        """Whatever has come, or failed, by now; `under_way` is what each node was sent."""
        every = [*self._hanging, *self._begun(under_way)]
        self._hanging = []
        end = time.monotonic() + MOMENT
        for fetching in every:
            if not fetching.is_over(max(0.0, end - time.monotonic())):
                self._hanging.append(fetching)
            elif fetching.messages or fetching.failed:
                yield fetching

    def _begun(self, under_way: dict[int, list[str]]) -> list[Fetching]:
        """New ones, by node, or by message where the node's other answers hang."""
        slow = {fetching.node for fetching in self._hanging}
        alone = {fetching.sent[0] for fetching in self._hanging if len(fetching.sent) == 1}
        begun = []
        for node, sent in under_way.items():
            groups = [(one,) for one in sent if one not in alone] if node in slow else [(*sent,)]
            begun += [Fetching(self._grid, node, group) for group in groups]
        return begun
