"""Progress bars for what takes over two seconds, on the error stream of a terminal."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tacit.cli.options import is_quiet

if TYPE_CHECKING:
    from tacit.analyst.methods.method import SamplerProgress

PATIENCE = 2.0
"""Seconds of silence before a bar appears."""


def _wanted() -> bool:
    return sys.stderr.isatty() and not is_quiet()


@contextmanager
def rows_bar(total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar that counts rows; gives the function to report them to."""
    if not _wanted():
        yield lambda _rows: None
        return
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.TextColumn("{task.completed:,.0f} rows"),
        rich.BarColumn(),
        rich.TimeRemainingColumn(),
    )
    bar = rich.Progress(*columns, console=Console(stderr=True), transient=True)
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


@contextmanager
def draws_bar() -> Iterator[Callable[["SamplerProgress"], None]]:
    """A bar for a sampler, with its acceptance rates and the time left."""
    if not _wanted():
        yield lambda _progress: None
        return
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TaskProgressColumn(),
        rich.TimeRemainingColumn(),
    )
    bar = rich.Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("sampling", total=None)
    begun = time.monotonic()

    def on_progress(progress: "SamplerProgress") -> None:
        rates = ", ".join(
            f"{block} accepts {rate:.2f}" for block, rate in progress.acceptance.items()
        )
        bar.update(
            task, total=progress.total, completed=progress.done, description=rates or "sampling"
        )
        if not bar.live.is_started and time.monotonic() - begun > PATIENCE:
            bar.start()

    try:
        yield on_progress
    finally:
        bar.stop()
