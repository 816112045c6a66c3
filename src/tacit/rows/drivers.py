"""Errors of readers and drivers, which quote rows and queries, in sentences of our own."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from tacit.errors import TableError

Item = TypeVar("Item")
Reasons = Sequence[tuple[str, str]]
"""A pattern in the kind and the words of an error, and the sentence that takes its place."""


@contextmanager
def rewritten(reasons: Reasons, otherwise: str) -> Iterator[None]:
    """Replace any error by the first sentence whose pattern fits it, or by `otherwise`."""
    try:
        yield
    except TableError:
        raise
    except Exception as error:  # noqa: BLE001  (nor may an answer that breaks its reader)
        words = f"{type(error).__name__} {error}"
        fitting = (sentence for pattern, sentence in reasons if re.search(pattern, words))
        raise TableError(next(fitting, otherwise)) from None


def guarded(reader: Iterable[Item], source: str) -> Iterator[Item]:
    """What a reader gives, its errors rewritten; those of who consumes it do not pass here."""
    with reading(source):
        yield from reader


@contextmanager
def reading(source: str) -> Iterator[None]:
    """Replace a reader's error, which may quote data, by one that names the place alone."""
    unreadable = (
        f"{source} cannot be read as a table: check that it is whole, "
        "and that each column holds values of one kind"
    )
    twice = ("Duplicate column names", f"{source} has two columns of the same name: rename one")
    with rewritten([twice], unreadable):
        try:
            yield
        except OSError as error:
            if error.strerror:
                raise TableError(f"cannot read {source}: {error.strerror}") from None
            raise
