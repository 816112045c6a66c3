"""Sound: refuse messages of which no numbers can be made.

A question and its answers may be anything that a stranger wrote: a map without an inverse, answers
of 10³⁰⁰. What would end in no number at all is refused by its own sentence.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import ArrayLike

from tacit.errors import ReleaseError

REFUSAL = (
    "nothing follows from these releases: the questions or answers in them lead to numbers that "
    "cannot be; ask their holders, or leave them out"
)


@contextmanager
def numbers_follow() -> Iterator[None]:
    """Refuse what is worked on here where it has no solution, or one that no question may hold."""
    try:
        with np.errstate(all="ignore"):
            yield
    except (np.linalg.LinAlgError, ValueError, ArithmeticError):
        raise ReleaseError(REFUSAL) from None


def must_be_finite(*arrays: ArrayLike) -> None:
    """Refuse numbers that are none."""
    if not all(np.isfinite(array).all() for array in arrays):
        raise ReleaseError(REFUSAL)
