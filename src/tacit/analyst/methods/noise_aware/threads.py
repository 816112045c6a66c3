"""Linear algebra on all cores: NumPy and LAPACK leave the interpreter free while they compute."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Given = TypeVar("Given")
Told = TypeVar("Told")


def mapped(function: Callable[[Given], Told], items: Sequence[Given]) -> list[Told]:
    """The function of every item, in their order."""
    cores = min(len(os.sched_getaffinity(0)), len(items))
    if cores < 2:  # noqa: PLR2004 - one core, or one item
        return [function(item) for item in items]
    with ThreadPoolExecutor(cores) as pool:
        return list(pool.map(function, items))
