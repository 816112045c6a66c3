"""Memory that held rows, overwritten once they were given out."""

import ctypes
from contextlib import suppress

import numpy as np
import pyarrow as pa

_PERTURB = -6
"""GNU's M_PERTURB."""
POOL = pa.system_memory_pool()
"""What this pool frees, `wipe_what_is_freed` overwrites."""


def arrows_own(*texts: bytes | bytearray) -> pa.Buffer:
    """Text in memory that is not Python's.

    Arrow reads in a thread of its own, which may let go of the text only while the program ends:
    with memory of Python's the whole process would be aborted.
    """
    buffer = pa.allocate_buffer(sum(map(len, texts)), memory_pool=POOL)
    view = np.frombuffer(buffer, np.uint8)
    begin = 0
    for text in texts:
        view[begin : begin + len(text)] = np.frombuffer(text, np.uint8)
        begin += len(text)
    return buffer


def wipe(buffer: bytearray | pa.Buffer, begin: int = 0, end: int | None = None) -> None:
    """Overwrite with zeros, in place."""
    np.frombuffer(buffer, np.uint8)[begin : len(buffer) if end is None else end] = 0


def wipe_what_is_freed() -> None:
    """Have the C library overwrite memory as it is freed from now on; GNU's can, others cannot."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_PERTURB, 0xFF)


def wipe_columns(table: pa.Table | pa.RecordBatch) -> None:
    """Overwrite the memory of columns that nobody else holds, as a reader has just made them."""
    for column in table.columns:
        for chunk in getattr(column, "chunks", [column]):
            for buffer in chunk.buffers():
                if buffer is not None and buffer.is_mutable and buffer.size:
                    ctypes.memset(buffer.address, 0, buffer.size)
