"""What crosses the wall: the documents that leave a holder, how they are read and signed."""

from tacit.release.statistics import Release

__all__ = ["Release"]
