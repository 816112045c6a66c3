r"""Averaging: rows dealt at random into groups of k, of which only the sums go on.

A group's sum over √k is a row of the same regression, y = x'θ + e with the same residual variance,
and nearly normal. The square root never appears: the statistics are sums of products, so the sums
of whole numbers are multiplied and 1/k is left to the end.

Dealing is at random, by coins that nobody else sees, because which rows meet must not depend on the
order of the table: in a sorted one, exchanging or removing a row would move all rows behind it into
other groups (docs/privacy.md, "Averaging").
"""

import secrets
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TableError
from tacit.holder.encode import BLOCK_ROWS
from tacit.rows.design import Block

Order = Callable[[int], NDArray[np.int64]]
"""Gives so many places in random order, each order as likely as any other."""


def secure_order(places: int) -> NDArray[np.int64]:
    """A random order: that of as many secure random numbers, drawn anew if two are equal."""
    while True:
        keys = np.frombuffer(secrets.token_bytes(8 * places), dtype=np.uint64)
        order = np.argsort(keys)
        drawn = keys[order]
        if not np.any(drawn[1:] == drawn[:-1]):
            return order


def averaged(blocks: Iterable[Block], size: int, order: Order) -> Iterator[Block]:
    """Sums of groups of `size` rows, in blocks whose products are exact; the last may be smaller.

    A sum is at most `size` times as large as a row, so a block has `size`² times fewer columns. All
    rows are in memory meanwhile.
    """
    rows = np.hstack(
        [block.astype(np.int32) for block in blocks] or [np.zeros((0, 0), dtype=np.int32)]
    )
    dealt = order(rows.shape[1])
    width = BLOCK_ROWS // size**2
    for start in range(0, len(dealt), width * size):
        yield _sums(rows[:, dealt[start : start + width * size]], size)


def _sums(rows: NDArray[np.int32], size: int) -> Block:
    """Sums of consecutive `size` columns; what the last group lacks counts as zero rows."""
    full = np.pad(rows, ((0, 0), (0, -rows.shape[1] % size)))
    sums: Block = full.reshape(len(full), -1, size).sum(axis=2, dtype=np.float64)
    return sums


def refuse_pieces() -> NoReturn:
    """Refuse statistics that are not of rows dealt over the whole table."""
    raise TableError(
        "release.average deals rows over the whole table, so it must be read in one piece: "
        "publish from files, or leave averaging out"
    )
