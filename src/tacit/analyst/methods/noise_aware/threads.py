"""Linear algebra on all cores: NumPy and LAPACK leave the interpreter free while they compute."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tacit.cores import cores

Given = TypeVar("Given")
Told = TypeVar("Told")


def mapped(
    function: Callable[[Given], Told], items: Sequence[Given], most: int | None = None
) -> list[Told]:
    """The function of every item, in their order; at most so many at a time."""
    count = min(cores(), len(items), most or len(items))
    if count < 2:  # noqa: PLR2004 - one core, or one item
        return [function(item) for item in items]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(function, items))
