"""A clean end where somebody presses Ctrl-C: what is being done is finished first."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MOMENT = 0.1
"""Longest time in seconds that is slept before looking whether an end was asked for."""

Stopped = Callable[[], bool]


@contextmanager
def stopping() -> Iterator[Stopped]:
    """Make Ctrl-C and SIGTERM ask for a clean end; a second one breaks off."""
    asked: list[int] = []

    def ask(number: int, _frame: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    import pyarrow as pa

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    # Arrow's own handlers would break off the parsing of rows that were read already.
    pa.enable_signal_handlers(False)
    try:
        yield lambda: bool(asked)
    finally:
        pa.enable_signal_handlers(True)
        for number, handler in before.items():
            signal.signal(number, handler)


def pause(seconds: float, stopped: Stopped) -> None:
    """Sleep for so long, or until an end is asked for."""
    end = time.monotonic() + seconds
    while not stopped() and (left := end - time.monotonic()) > 0:
        time.sleep(min(left, MOMENT))
