"""ScalesRelease: the first of two stages, noisy moments of each column without a typical interval.

The rules of the format, reading and writing are those of every document (document.py).
"""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tacit.errors import StudyError
from tacit.privacy.scales import MomentNoise
from tacit.records import Name, Number, Record, at_most, must
from tacit.release.document import Published
from tacit.study.rules import MOST_COLUMNS


class Moments(Record):
    """Noisy sums over one column's values u ∈ [−1, 1], as the range maps them: Σ1, Σu and Σu²."""

    name: Name
    count: Number
    total: Number
    square: Number


class ScalesRelease(Published):
    """Noisy moments of one holder's columns for one study of two stages."""

    kind: ClassVar[str] = "release of scales"

    format: Literal["tacit-scales"] = "tacit-scales"
    version: Literal[1] = 1
    columns: Annotated[
        tuple[Moments, ...], Field(strict=False, max_length=MOST_COLUMNS), at_most(MOST_COLUMNS)
    ]
    noise: MomentNoise

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._check_provenance()
        names = tuple(feature.name for feature in self.study.scaled)
        must(
            tuple(column.name for column in self.columns) == names,
            "columns must be the study's numeric features without typical, in order",
        )
        try:
            needed = self.study.scales_mechanism(self.epsilon, self.delta)
        except StudyError as error:
            raise ValueError(str(error)) from None
        self._check_noise(needed, self.noise.model_dump())
        return self
