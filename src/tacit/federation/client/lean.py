"""Lean: a site's executor stays small, since it may share a machine with the hospital's own work.

pyarrow loads pandas wherever it is installed, for objects that a site does not have: 20 MB for
nothing. Of what a site reads only Spark needs it.
"""

import contextlib
import ctypes
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_ARENA_MAX = -8
"""The number that the C library knows the most heaps of a process by."""


class _Unwanted(MetaPathFinder):
    """Says of pandas that it is not installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuse pandas; whatever else is looked for is found as always."""
        del path, target
        if fullname == "pandas":
            raise ModuleNotFoundError("a site does without pandas", name=fullname)
        return None


_UNWANTED = _Unwanted()


def stay_small() -> None:
    """Do without pandas in this process, and let its threads share two heaps."""
    if _UNWANTED not in sys.meta_path:
        sys.meta_path.insert(0, _UNWANTED)
    with contextlib.suppress(AttributeError):  # where there is no such C library
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 2)


def want_pandas() -> None:
    """Find pandas again, as Spark must."""
    if _UNWANTED in sys.meta_path:
        sys.meta_path.remove(_UNWANTED)
