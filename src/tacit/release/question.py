"""Question: what a visit asks of every holder's rows, made of releases that are public already.

It holds a map of rows, a first guess of the coefficients and two bounds. A row (x, y) becomes
u = T'x and r = y − x'θ, the longest u are shrunk to the radius, r is cut at the bound, and X'X, X'y
and y'y of (u/radius, r/bound) are published as ever. Nothing in it comes from rows but through the
releases that it names: whoever has them can make it again.
"""

import hashlib
import json
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import FailFast, Field, StringConstraints, ValidationError, model_validator

from tacit.errors import ReleaseError
from tacit.files import write_whole
from tacit.records import Record, at_most, explain, must
from tacit.release.document import lay_out
from tacit.release.texts import MOST_BYTES, parse
from tacit.study import Study
from tacit.study.form import MOST_HOLDERS
from tacit.study.visits import MOST_VISITED, MOST_VISITS

Array = NDArray[np.float64]
Hash = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
LEAST_BOUND = 1e-4
"""Smallest bound of residuals, in half the response's range."""
LEAST_RADIUS = 1e-6
MOST_ENTRY = 1e9
"""Of a map, an offset and a radius. With them no mapped row, nor its square, leaves the numbers
that a computer has: one that did would be told from the others, whatever the noise."""
Entry = Annotated[float, Field(ge=-MOST_ENTRY, le=MOST_ENTRY)]
Row = Annotated[tuple[Entry, ...], Field(strict=False, max_length=MOST_VISITED), FailFast()]


def hash_of(record: Record) -> str:
    """SHA-256 of a record in canonical JSON."""
    document = record.model_dump(mode="json")
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


class Question(Record):
    """One visit's question: the releases that it came from, and how rows are mapped."""

    format: ClassVar[str] = "tacit-question"

    study_hash: Hash
    visit: Annotated[int, Field(ge=1, le=MOST_VISITS)]
    after: Annotated[
        tuple[Hash, ...], Field(strict=False, max_length=MOST_HOLDERS), at_most(MOST_HOLDERS)
    ] = ()
    map: Annotated[tuple[Row, ...], Field(strict=False, max_length=MOST_VISITED), FailFast()]
    offset: Row
    radius: Annotated[float, Field(ge=LEAST_RADIUS, le=MOST_ENTRY)]
    bound: Annotated[float, Field(ge=LEAST_BOUND, le=100)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        d = len(self.offset)
        must(
            len(self.map) == d and all(len(row) == d for row in self.map),
            "map must have as many rows and columns as offset has entries",
        )
        must(tuple(sorted(self.after)) == self.after, "after must be sorted")
        return self

    def check(self, study: Study) -> None:
        """Refuse a question that is none of this study's."""
        must(self.study_hash == study.hash, "the question belongs to another study")
        must(len(self.offset) == study.d, f"offset must have {study.d} entries, as the study has")
        must(self.visit <= study.visit_count, f"the study has {study.visit_count} visits")

    @cached_property
    def matrix(self) -> Array:
        """T: rows of the encoded columns, columns of the mapped ones."""
        return np.array(self.map)

    @cached_property
    def start(self) -> Array:
        """θ: the coefficients that residuals are taken from."""
        return np.array(self.offset)

    # The document.

    def document(self) -> dict[str, Any]:
        """The question as plain values."""
        return {"format": self.format, "version": 1} | self.model_dump(mode="json")

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the question, which names it."""
        return hash_of(self)

    def to_json(self) -> str:
        """The document as JSON laid out for a reader."""
        return lay_out(self.document()) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the document; the file appears whole or not at all."""
        write_whole(path, self.to_json())

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read a question strictly."""
        fields = parse(text)
        if fields.pop("format", None) != cls.format or fields.pop("version", None) != 1:
            raise ReleaseError(f'format must be "{cls.format}" and version 1: this is no question')
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise ReleaseError(explain(error)) from None

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file."""
        try:
            with Path(path).open("rb") as file:
                text = file.read(MOST_BYTES + 1)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a valid path"
            raise ReleaseError(f"cannot read the question {str(path)!r}: {reason}") from None
        try:
            return cls.from_json(text)
        except ReleaseError as error:
            raise ReleaseError(f"{path}: {error}") from None
