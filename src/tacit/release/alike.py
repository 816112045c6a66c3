"""Releases alike: of thousands for one study, only what differs between them is read.

Most of a release is what its study, guarantee and noise are, letter by letter the same in every
one. A release that was read strictly is cut into five pieces at the line breaks before `holder`,
`relation` and `created`:

    head  {format … study,     middle  holder … smallest_eigenvalue,
    claims  relation … simulated,     created     end  software … signature}

Middle, claims and end are each, in braces, a JSON object of known names, so the whole is one
exactly if the head opens an object and holds whole members of it, which the same letters did
before. Another text with the same head and claims is then the same document but for middle, time
and end, and these alone are read and checked. Whatever is not quite as expected is left to the
strict reader, which also says what is wrong: here nothing is refused.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError
from pydantic_core import from_json

from tacit.errors import ReleaseError, SignatureError
from tacit.records import Name, Record
from tacit.release.document import (
    Receipt,
    Signature,
    canonical_numbers,
    canonical_text,
    hash_of,
    is_time,
    joined,
)
from tacit.release.statistics import Release
from tacit.release.texts import MOST_BYTES, parse

Array = NDArray[np.float64]

_HOLDER = b'\n  "holder"'
_RELATION = b'\n  "relation"'
_CREATED = b'\n  "created": "'
_AFTER_CREATED = b'Z",\n'
_TIME_LETTERS = 20
_SINGLE = ("holder", "n", "yty", "smallest_eigenvalue")
_STATED = {*_SINGLE, "xtx", "xty"}
_UNUSUAL = (b"r", b"f", b"{")
"""Letters of what no numbers are: true, false and objects."""
_MOST_LETTERS = 200
_MOST_ROWS = 2**63
_MOST_KINDS = 16
"""Pairs of head and claims that are kept: holders of one study may state their own ε."""


class Pieces(NamedTuple):
    """A text, cut."""

    head: bytes
    middle: bytes
    claims: bytes
    created: bytes
    end: bytes


@dataclass(frozen=True, slots=True)
class Told:
    """What a release states by itself; all else is as in the one that it is alike to."""

    like: Release
    holder: str
    n: float | None
    gram: Array
    moment: Array
    yty: float | None
    smallest_eigenvalue: float | None
    created: str
    hash: str
    signature: Signature | None


class Alike:
    """Reads releases by what it has seen of others."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[bytes, bytes], _Kind] = {}

    def learn(self, text: bytes, release: Release) -> None:
        """Take note of a text that was read strictly."""
        pieces = _cut(text)
        if pieces is None or (pieces.head, pieces.claims) in self._kinds:
            return
        kind = _Kind(release)
        told = kind.told(pieces)
        if told is None or told.hash != release.hash or _members(pieces.claims) is None:
            return
        while len(self._kinds) >= _MOST_KINDS:
            del self._kinds[next(iter(self._kinds))]
        self._kinds[pieces.head, pieces.claims] = kind

    def read(self, text: bytes) -> Told | None:
        """The release in a text, or nothing where it must be read strictly."""
        pieces = _cut(text)
        kind = None if pieces is None else self._kinds.get((pieces.head, pieces.claims))
        return None if pieces is None or kind is None else kind.told(pieces)


def _cut(text: bytes) -> Pieces | None:
    holder = text.find(_HOLDER)
    relation = text.find(_RELATION, holder)
    created = text.find(_CREATED, relation)
    time = created + len(_CREATED)
    end = time + _TIME_LETTERS + len(_AFTER_CREATED) - 1
    if min(holder, relation, created) < 0 or len(text) > MOST_BYTES:
        return None
    if text[time + _TIME_LETTERS - 1 : end] != _AFTER_CREATED:
        return None
    return Pieces(
        head=text[:holder],
        middle=text[holder:relation],
        claims=text[relation:created],
        created=text[time : time + _TIME_LETTERS],
        end=text[end:],
    )


def _members(piece: bytes) -> dict[str, Any] | None:
    """Members of an object, with the comma after them; nothing where they are not quite that."""
    inside = piece.rstrip()
    if not inside.endswith(b","):
        return None
    try:
        members = from_json(b"{" + inside[:-1] + b"}", allow_inf_nan=False)
    except ValueError:
        return None
    return members if isinstance(members, dict) else None


class _Kind:
    """Releases that state the same study, guarantee and noise as one that was read strictly."""

    def __init__(self, like: Release) -> None:
        self._like = like
        self._d = like.study.d
        shared = like.canonical_texts()
        self._texts = {name: shared[name] for name in shared if name != "ledger"}
        self._ends: dict[bytes, _End] = {}

    def told(self, pieces: Pieces) -> Told | None:
        """What these pieces state; nothing where they must be read strictly."""
        stated = self._stated(pieces.middle)
        end = self._end(pieces.end)
        created = pieces.created.decode("ascii", "replace")
        if stated is None or end is None or not is_time(created):
            return None
        gram = _numbers(stated["xtx"], (self._d, self._d))
        moment = _numbers(stated["xty"], (self._d,))
        if gram is None or moment is None or not (gram == gram.T).all():
            return None
        texts = self._texts | {name: canonical_text(stated[name]) for name in _SINGLE}
        texts["created"] = f'"{created}"'
        texts["software"] = canonical_text(end.software)
        texts["xtx"] = canonical_numbers(stated["xtx"], gram)
        texts["xty"] = canonical_numbers(stated["xty"], moment)
        if end.ledger is not None:
            texts["ledger"] = canonical_text(end.ledger.model_dump(mode="json"))
        canonical = joined(texts)
        if end.signature is not None and not _signed(end.signature, canonical):
            return None
        return Told(
            like=self._like,
            gram=gram,
            moment=moment,
            created=created,
            hash=hash_of(canonical),
            signature=end.signature,
            **{name: stated[name] for name in _SINGLE},
        )

    def _stated(self, middle: bytes) -> dict[str, Any] | None:
        """The members of a middle that has the right form: sizes before it is parsed.

        A name that is there twice would be one comma more.
        """
        d = self._d
        formed = (
            middle.count(b"[") == d + 2
            and middle.count(b",") == d * d + d + 4
            and middle.find(b'"n"') > 0
            and not any(middle.find(sign, middle.find(b'"n"')) >= 0 for sign in _UNUSUAL)
        )
        stated = _members(middle) if formed else None
        if stated is None or stated.keys() != _STATED:
            return None
        like = self._like
        fits = (
            _is_name(stated["holder"])
            and _is_like(stated["n"], like.n)
            and _is_like(stated["yty"], like.yty)
            and _is_like(stated["smallest_eigenvalue"], like.smallest_eigenvalue)
        )
        return stated if fits else None

    def _end(self, text: bytes) -> "_End | None":
        """What stands after the time; most have the same, where there is neither of the two."""
        if text in self._ends:
            return self._ends[text]
        try:
            end = _End.model_validate(parse(b"{" + text))
        except (ReleaseError, ValidationError):
            return None
        if end.ledger is None and end.signature is None:
            self._ends = {text: end}
        return end


class _End(Record):
    """The last fields of a release that is all that its holder publishes."""

    software: Name
    ledger: Receipt | None = None
    signature: Signature | None


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MOST_LETTERS and value.isprintable()


def _is_like(value: float | None, other: float | None) -> bool:
    """Whether a number is there as it is in another release, and of its type."""
    if value is None or other is None or type(value) is not type(other):
        return value is other
    return 0 <= value < _MOST_ROWS if isinstance(value, int) else math.isfinite(value)


def _numbers(values: object, shape: tuple[int, ...]) -> Array | None:
    """Finite numbers in this shape; nothing where they are not quite that."""
    try:
        array = np.array(values)
    except ValueError:  # lists of several lengths
        return None
    if array.shape != shape or array.dtype != np.float64:
        return None
    return array if np.abs(array).max() < math.inf else None  # of what is no number neither


def _signed(signature: Signature, text: bytes) -> bool:
    from tacit.release.signature import check_key, is_signed  # needs cryptography

    try:
        check_key(signature.public_key)
    except SignatureError:
        return False
    return is_signed(signature.public_key, signature.value, text)
