"""Progress with the time left, on the error stream.

A bar on a terminal, a line per step elsewhere.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Step = Callable[[str], None]


@contextmanager
def steps(total: int) -> Iterator[Step]:
    """Gives the function to call with a step's name when it begins."""
    from rich import progress as rich
    from rich.console import Console

    console = Console(stderr=True)
    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeRemainingColumn(),
    )
    bar = rich.Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    task, began, done = bar.add_task("", total=total), time.monotonic(), 0

    def step(name: str) -> None:
        nonlocal done
        bar.update(task, description=name, completed=done)
        if not console.is_terminal:
            elapsed = time.monotonic() - began
            left = f", about {elapsed / done * (total - done):.0f} s left" if done else ""
            print(f"{done + 1}/{total} {name} ({elapsed:.0f} s{left})", file=sys.stderr, flush=True)
        done += 1

    with bar:
        yield step
