"""PlacesRelease: a first visit, noisy sums that tell where a holder's values lie.

The rules of the format, reading and writing are those of every document (document.py).
"""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import FailFast, Field, model_validator

from tacit.errors import StudyError
from tacit.privacy.places import PlacesNoise
from tacit.records import Number, Record, must
from tacit.release.document import Published
from tacit.study.visits import MOST_VISITED, placed, places_mechanism

Sums = Annotated[tuple[Number, ...], Field(strict=False, max_length=MOST_VISITED), FailFast()]


class Places(Record):
    """A holder's answer to the first visit, as its later messages repeat it."""

    count: Number
    totals: Sums
    squares: Sums
    noise: PlacesNoise


class PlacesRelease(Published):
    """Noisy number of complete rows, and Σu and Σu² of each placed column and of the response."""

    kind: ClassVar[str] = "release of places"

    format: Literal["tacit-places"] = "tacit-places"
    version: Literal[1] = 1
    count: Number
    totals: Sums
    squares: Sums
    noise: PlacesNoise

    @property
    def places(self) -> Places:
        """The answer alone."""
        return Places(count=self.count, totals=self.totals, squares=self.squares, noise=self.noise)

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._check_provenance()
        columns = len(placed(self.study)) + 1
        must(
            len(self.totals) == columns and len(self.squares) == columns,
            f"totals and squares must have {columns} entries: plain numeric columns and response",
        )
        try:
            needed = places_mechanism(self.study, self.study.budget(self.epsilon, self.delta))
        except StudyError as error:
            raise ValueError(str(error)) from None
        self._check_noise(needed, self.noise.model_dump())
        return self
