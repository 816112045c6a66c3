"""Errors of readers and drivers, which quote rows and queries, in sentences of our own."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tacit.errors import TableError

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
