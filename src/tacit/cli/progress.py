"""Progress bars for what takes over two seconds, on the error stream of a terminal."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tacit.cli.options import is_quiet

if TYPE_CHECKING:
    from tacit.analyst.methods.method import SamplerProgress

PATIENCE = 2.0
"""Seconds of silence before a bar appears."""


@contextmanager
def rows_bar(total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar that counts rows; gives the function to report them to."""
    with _bar("{task.completed:,.0f} rows", total) as update:
        yield lambda rows: update(advance=rows)


@contextmanager
def talks_bar() -> Iterator[Callable[[], None]]:
    """A bar that counts what is imagined, of which nobody knows how much there will be."""
    with _bar("{task.completed:.0f} releases imagined", None) as update:
        yield lambda: update(advance=1)


@contextmanager
def draws_bar() -> Iterator[Callable[["SamplerProgress"], None]]:
    """A bar for a sampler, with its acceptance rates and the time left."""
    with _bar("{task.description} {task.percentage:.0f} %", None) as update:

        def on_progress(progress: "SamplerProgress") -> None:
            rates = ", ".join(
                f"{block} accepts {rate:.2f}" for block, rate in progress.acceptance.items()
            )
            update(total=progress.total, completed=progress.done, description=rates or "sampling")

        yield on_progress


@contextmanager
def _bar(text: str, total: int | None) -> Iterator[Callable[..., None]]:
    """A bar that appears after a while, where a person watches; gives the function to move it."""
    if not sys.stderr.isatty() or is_quiet():
        yield lambda **_change: None
        return
    from rich import progress as rich
    from rich.console import Console

    columns = (rich.TextColumn(text), rich.BarColumn(), rich.TimeRemainingColumn())
    bar = rich.Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("", total=total)
    begun = time.monotonic()

    def update(**change: Any) -> None:  # noqa: ANN401 - what a bar of rich can change
        bar.update(task, **change)
        if not bar.live.is_started and time.monotonic() - begun > PATIENCE:
            bar.start()

    try:
        yield update
    finally:
        bar.stop()
