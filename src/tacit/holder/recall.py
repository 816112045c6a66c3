"""Recall: which slot each row's person has, in the order of rows, for a reading without ids."""

from collections import deque

import numpy as np
from numpy.typing import NDArray

MOST_ROWS = 2**24
"""Rows that are remembered, four bytes each; of a longer table none are."""
NOBODY = -1
"""Slot of a row without a person."""

Slots = NDArray[np.int32]


class Recall:
    """The slots of rows, at most so many; `whole` says whether it has those of all that came."""

    def __init__(self, most: int) -> None:
        self.whole = True
        self._most = most
        self._rows = 0
        self._slots: deque[Slots] = deque()

    def add(self, slots: NDArray[np.int64], known: NDArray[np.bool_] | None) -> None:
        """Remember rows that come next: all of them, or those that are `known` have a slot."""
        self._rows += len(slots) if known is None else len(known)
        if self._rows > self._most:
            self.whole = False
            self._slots.clear()
            return
        places = slots.astype(np.int32)
        if known is not None:
            places = np.full(len(known), NOBODY, np.int32)
            places[known] = slots
        self._slots.append(places)

    def move(self, before: NDArray[np.int64], after: NDArray[np.int64]) -> None:
        """All slots are others now."""
        moved = np.full(before.max(initial=0) + 2, NOBODY, np.int32)  # the last is nobody's
        moved[before] = after
        self._slots = deque(moved[places] for places in self._slots)

    def taken(self, rows: int) -> NDArray[np.int64] | None:
        """The slots of so many rows that come next, which are forgotten; none if too few came."""
        pieces: list[Slots] = []
        while rows and self._slots:
            places = self._slots.popleft()
            pieces.append(places[:rows])
            if len(places) > rows:
                self._slots.appendleft(places[rows:])
            rows -= len(pieces[-1])
        if rows:
            return None
        return np.concatenate([np.zeros(0, np.int64), *pieces])
