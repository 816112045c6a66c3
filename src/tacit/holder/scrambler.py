"""Scrambler: a random function that makes numbers of ids, with a new secret key each time."""

import secrets

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tacit.rows.arrow import MOST_LETTERS

NUMBERS = 2
"""Numbers made of an id: its mark and its check."""
WORD = 2
"""Letters that are taken together."""
LOWER = 32
"""Bits in the lower part of a secret number: 2³² times the words of an id stays below 2⁵³."""
PIECE = 2**12
"""Ids that are scrambled at once: what is worked on then stays in the processor's cache."""

Bits = NDArray[np.uint64]


class Scrambler:
    """A random function from ids to two numbers, of 63 and 64 bits; its key is secret.

    A number is the sum of an id's words, two bytes each, every one times a secret number of 64 bits
    that belongs to its place, and of its length times another, modulo 2⁶⁴ (a multilinear function;
    Lemire and Kaser 2014). Two ids differ by some Δ, |Δ| < 2¹⁶, in one of these places at least;
    whatever the others add, at most 2¹⁵ of the 2⁶⁴ numbers for that place make the sums equal:
    probability 2⁻⁴⁹.
    """

    def __init__(self) -> None:
        places = MOST_LETTERS // WORD + 1
        key = np.frombuffer(secrets.token_bytes(8 * NUMBERS * places), np.uint64)
        key = key.reshape(places, NUMBERS)
        self._of_length = key[0]
        self._upper = (key[1:] >> np.uint64(LOWER)).astype(np.float64)
        self._lower = (key[1:] & np.uint64(2**LOWER - 1)).astype(np.float64)

    def marks(self, ids: pa.Array) -> Bits:
        """The first number of each id; it is odd."""
        marks: Bits = self._numbers(ids, 1)[0]
        return marks | np.uint64(1)

    def marks_and_checks(self, ids: pa.Array) -> tuple[Bits, Bits]:
        """Both numbers of each id."""
        marks, checks = self._numbers(ids, NUMBERS)
        return marks | np.uint64(1), checks

    def _numbers(self, ids: pa.Array, count: int) -> Bits:
        """The first so many numbers of each id, those of one kind in a row.

        The upper and lower parts of the key are multiplied as floats, for speed: their sums are
        whole numbers below 2⁵³, so exact in any order.
        """
        words, lengths = _words_and_lengths(ids)
        places = words.shape[1]
        key = np.hstack([self._upper[:places, :count], self._lower[:places, :count]])
        numbers = np.empty((count, len(ids)), np.int64)
        floats = np.empty((PIECE, places))
        for start in range(0, len(ids), PIECE):
            piece = words[start : start + PIECE]
            rows = floats[: len(piece)]
            rows[:] = piece
            sums = (rows @ key).astype(np.int64).T
            place = numbers[:, start : start + PIECE]
            np.left_shift(sums[:count], LOWER, out=place)
            place += sums[count:]
        sums_of_all: Bits = numbers.view(np.uint64)
        sums_of_all += self._of_length[:count, None] * lengths
        return sums_of_all


def _words_and_lengths(ids: pa.Array) -> tuple[NDArray[np.uint16], Bits]:
    """The words of all ids, a row for each, zero behind the end of a short one; and their lengths.

    There is one length where all have the same; a whole number has eight bytes.
    """
    if pa.types.is_integer(ids.type):
        return ids.to_numpy().view(np.uint16).reshape(len(ids), 8 // WORD), np.zeros(1, np.uint64)
    if not len(ids):
        return np.zeros((0, 0), np.uint16), np.zeros(1, np.uint64)
    lengths = np.diff(_offsets(ids)).astype(np.uint64)
    longest = int(lengths.max())
    width = longest + longest % WORD
    if lengths.min() == width:
        lengths = lengths[:1]
    else:
        ids = pc.ascii_rpad(ids, width=width, padding="\0")
    start = _offsets(ids)[0]
    letters = np.frombuffer(ids.buffers()[2] or b"", np.uint8)
    words = letters[start : start + width * len(ids)].view(np.uint16)
    return words.reshape(len(ids), width // WORD), lengths


def _offsets(ids: pa.Array) -> NDArray[np.int32]:
    """Where the letters of each id begin, and the last one's end."""
    return np.frombuffer(ids.buffers()[1], np.int32)[ids.offset : ids.offset + len(ids) + 1]
