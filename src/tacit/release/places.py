"""PlacesRelease: a first visit, noisy sums that tell where a holder's values lie.

The rules of the format, reading and writing are those of every document (document.py).
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

from pydantic import FailFast, Field, model_validator

from tacit.errors import StudyError
from tacit.privacy.places import PlacesMechanism, PlacesNoise
from tacit.records import Number, Record, must
from tacit.release.attestation import Attestation, check_sum, subject_of
from tacit.release.document import Published, from_steps, provenance
from tacit.study import Study
from tacit.study.visits import MOST_VISITED, placed, places_mechanism, summed_places

Sums = Annotated[tuple[Number, ...], Field(strict=False, max_length=MOST_VISITED), FailFast()]


class Places(Record):
    """A holder's answer to the first visit, as its later messages repeat it."""

    count: Number
    totals: Sums
    squares: Sums
    noise: PlacesNoise
    survivors: Annotated[int, Field(ge=2)] | None = None
    attestation: Attestation | None = None


class PlacesRelease(Published):
    """Noisy number of complete rows, and Σu and Σu² of each placed column and of the response."""

    kind: ClassVar[str] = "release of places"
    optional: ClassVar[tuple[str, ...]] = ("survivors", "attestation", "ledger")

    format: Literal["tacit-places"] = "tacit-places"
    version: Literal[1] = 1
    count: Number
    totals: Sums
    squares: Sums
    noise: PlacesNoise
    survivors: Annotated[int, Field(ge=2)] | None = None
    attestation: Attestation | None = None

    @classmethod
    def of(
        cls,
        study: Study,
        mechanism: PlacesMechanism,
        steps: Sequence[int],
        *,
        holder: str,
        drawn_by: str,
        simulated: bool = False,
        survivors: int | None = None,
        attestation: Attestation | None = None,
    ) -> Self:
        """The release that states noisy sums, given in whole lattice steps."""
        noisy = [from_steps(step, mechanism.lattice) for step in steps]
        columns = mechanism.columns
        return cls(
            study_hash=study.hash,
            study=study.resolved(),
            holder=holder,
            count=noisy[0],
            totals=tuple(noisy[1 : columns + 1]),
            squares=tuple(noisy[columns + 1 :]),
            noise=mechanism.noise,
            survivors=survivors,
            attestation=attestation,
            **provenance(mechanism, drawn_by, simulated=simulated),
        )

    @property
    def places(self) -> Places:
        """The answer alone."""
        return Places(
            count=self.count,
            totals=self.totals,
            squares=self.squares,
            noise=self.noise,
            survivors=self.survivors,
            attestation=self.attestation,
        )

    @property
    def attested(self) -> list[tuple[str, Attestation | None]]:
        """What holders of a secure sum signed for, and what they signed."""
        return [(subject_of(self.study_hash, 1, "", ""), self.attestation)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._check_provenance()
        columns = len(placed(self.study)) + 1
        must(
            len(self.totals) == columns and len(self.squares) == columns,
            f"totals and squares must have {columns} entries: plain numeric columns and response",
        )
        check_sum(self)
        try:
            needed = needed_places(self.study, self.epsilon, self.delta, self.survivors)
        except StudyError as error:
            raise ValueError(str(error)) from None
        self._check_noise(needed, self.noise.model_dump())
        return self


def needed_places(
    study: Study, epsilon: float, delta: float, survivors: int | None
) -> PlacesMechanism:
    """The mechanism that a study asks for, of one holder or of those who stayed in a sum."""
    if survivors is not None:
        return summed_places(study, survivors)
    return places_mechanism(study, study.budget(epsilon, delta))
