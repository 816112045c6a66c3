"""Sitting: one secure sum of a study, which is the only one or one of several visits.

What holders sign, mask and send is bound to its `subject`: the study and, of a later visit, the
session of the first one and the hash of the question. Who was told another question signs for
another subject, and no sum comes of that.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.errors import StudyError
from tacit.privacy.mechanism import Mechanism
from tacit.privacy.places import PlacesMechanism
from tacit.release.attestation import Attestation, subject_of
from tacit.release.places import PlacesRelease
from tacit.release.question import Question
from tacit.release.statistics import Release, Visit
from tacit.study import Study
from tacit.study.visits import has_places, summed_places, summed_visit
from tacit.visits.first import first_question

Message = PlacesRelease | Release


@dataclass(frozen=True)
class Sitting:
    """A study, and of a later visit its question and the session of the first visit."""

    study: Study
    question: Question | None = None
    opening: str = ""

    def __post_init__(self) -> None:
        """Refuse a question that is no later visit's of this study."""
        if self.question is None:
            if self.opening:
                raise StudyError("a first visit has no visit before it")
            return
        if self.question.visit == 1 or not self.opening:
            raise StudyError("a later visit needs its question, and the session of the first")
        try:
            self.question.check(self.study)
        except ValueError as error:
            raise StudyError(f"question: {error}") from None

    @property
    def number(self) -> int:
        """Which visit it is, counted from 1."""
        return 1 if self.question is None else self.question.visit

    @property
    def subject(self) -> str:
        """What keys, masks and signatures are for."""
        if self.study.visit_count == 1:
            return self.study.hash
        asked = "" if self.question is None else self.question.hash
        return subject_of(self.study.hash, self.number, self.opening, asked)

    @property
    def asks_places(self) -> bool:
        """Whether it asks where values lie."""
        several = self.study.visit_count > 1
        return several and self.question is None and has_places(self.study)

    @property
    def mapping(self) -> Question | None:
        """How rows are mapped; None where they are not."""
        if self.question is not None or self.study.visit_count == 1 or self.asks_places:
            return self.question
        return first_question(self.study, [])

    def mechanism(self, holders: int) -> Mechanism | PlacesMechanism:
        """Noise of so many holders' shares."""
        if self.asks_places:
            return summed_places(self.study, holders)
        if self.study.visit_count == 1:
            return self.study.summed(holders)
        return summed_visit(self.study, self.number, holders)

    @property
    def states_rows(self) -> bool:
        """Whether a share ends with the exact number of rows."""
        return not self.asks_places and self.study.count in {"exact", "public"}

    @property
    def length(self) -> int:
        """Entries of a share: every noisy number, and the number of rows where it is exact."""
        return self.mechanism(1).entries + self.states_rows

    def message(
        self,
        vector: Sequence[int],
        survivors: int,
        before: Message | None,
        *,
        drawn_by: str,
        simulated: bool = False,
        attestation: Attestation | None = None,
    ) -> Message:
        """The sum as one document, whose holder is all of them; `before` is the last visit's."""
        mechanism = self.mechanism(survivors)
        holder = f"secure sum of {survivors} holders"
        if isinstance(mechanism, PlacesMechanism):
            return PlacesRelease.of(
                self.study,
                mechanism,
                vector,
                holder=holder,
                drawn_by=drawn_by,
                simulated=simulated,
                survivors=survivors,
                attestation=attestation,
            )
        asked = self.mapping
        return Release.of(
            self.study,
            mechanism,
            vector[: mechanism.entries],
            vector[-1] if self.states_rows else None,
            holder=holder,
            drawn_by=drawn_by,
            simulated=simulated,
            survivors=survivors,
            attestation=attestation,
            visit=None if asked is None else Visit.after(before, asked),
        )
