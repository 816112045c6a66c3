"""Progress bars for what takes over two seconds, on the error stream of a terminal."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 2.0
"""Seconds of silence before a bar appears."""


@contextmanager
def rows_bar(total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar that counts rows; gives the function to report them to."""
    if not sys.stderr.isatty():
        yield lambda _rows: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.completed:,.0f} rows"), BarColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("rows", total=total)
    begun = time.monotonic()

    def on_rows(rows: int) -> None:
        bar.update(task, advance=rows)
        if not bar.live.is_started and time.monotonic() - begun > PATIENCE:
            bar.start()

    try:
        yield on_rows
    finally:
        bar.stop()
