"""Release: everything that leaves a holder, as one small JSON document a person can read.

The rules of the format, reading and writing are those of every document (document.py).
"""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import FailFast, Field, StringConstraints, model_validator

from tacit.errors import StudyError
from tacit.privacy.layout import PartName
from tacit.privacy.mechanism import Mechanism, Noise, Shape
from tacit.records import Number, Record, must
from tacit.release.attestation import Attestation, check_sum, subject_of
from tacit.release.document import Published, from_steps, provenance
from tacit.release.places import Places, PlacesRelease, needed_places
from tacit.release.question import Question
from tacit.study import Study
from tacit.study.rules import MOST_COLUMNS
from tacit.study.visits import MOST_VISITS, has_places, summed_visit, visit_mechanism

Vector = Annotated[tuple[Number, ...], Field(strict=False, max_length=MOST_COLUMNS), FailFast()]
Square = Annotated[tuple[Vector, ...], Field(strict=False, max_length=MOST_COLUMNS), FailFast()]


class Further(Record):
    """What is published of a further response: its X'y and y'y."""

    xty: Vector
    yty: Number | None


class BatchNumber(Record):
    """Which batch of which stream a release is of, counted from 1."""

    stream: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]{1,100}$")]
    number: Annotated[int, Field(ge=1, lt=2**53)]


class Answer(Record):
    """What a holder said at an earlier visit, in units of that question's radius and bound."""

    question: Question
    n: Annotated[int, Field(ge=0, lt=2**63)] | Number
    xtx: Square
    xty: Vector
    yty: Number
    noise: Noise
    survivors: Annotated[int, Field(ge=2)] | None = None
    attestation: Attestation | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        d = len(self.question.offset)
        must(
            len(self.xty) == d and len(self.xtx) == d and all(len(row) == d for row in self.xtx),
            "xtx and xty must fit the question",
        )
        must(
            self.xtx == tuple(zip(*self.xtx, strict=True)),
            "xtx must be symmetric",
        )
        return self


class Visit(Record):
    """Which question a release answers, and its holder's answers before it."""

    question: Question
    places: Places | None = None
    earlier: Annotated[tuple[Answer, ...], Field(strict=False, max_length=MOST_VISITS)] = ()

    @classmethod
    def after(cls, before: "PlacesRelease | Release | None", question: Question) -> Self:
        """The visit that answers a question, after a message of the visit before."""
        if isinstance(before, PlacesRelease):
            return cls(question=question, places=before.places)
        if before is None or before.visit is None:
            return cls(question=question)
        return cls(question=question, places=before.visit.places, earlier=before.answers)


class Release(Published):
    """Noisy statistics of one holder for one study, in the study's scaled units."""

    kind: ClassVar[str] = "release"
    instead: ClassVar[Mapping[str, str]] = {
        "tacit-places": "this is the message of a first visit, which tells where values lie and "
        "nothing of the regression: its holder answers the next question, or it is left out"
    }
    optional: ClassVar[tuple[str, ...]] = (
        *("further", "survivors", "attestation", "batch", "visit", "ledger"),
    )
    numbers: ClassVar[tuple[str, ...]] = ("xtx", "xty")

    format: Literal["tacit-release"] = "tacit-release"
    version: Literal[1] = 1
    n: Annotated[int, Field(ge=0, lt=2**63)] | Number | None
    xtx: Square
    xty: Vector
    yty: Number | None
    further: Annotated[tuple[Further, ...], Field(strict=False, max_length=MOST_COLUMNS)] | None = (
        None
    )
    smallest_eigenvalue: Number | None
    noise_shape: Shape
    noise: Noise
    survivors: Annotated[int, Field(ge=2)] | None = None
    attestation: Attestation | None = None
    batch: BatchNumber | None = None
    visit: Visit | None = None

    @classmethod
    def of(
        cls,
        study: Study,
        mechanism: Mechanism,
        steps: Sequence[int],
        n: int | None,
        *,
        holder: str,
        drawn_by: str,
        simulated: bool = False,
        survivors: int | None = None,
        attestation: Attestation | None = None,
        visit: Visit | None = None,
    ) -> Self:
        """The release that states noisy statistics.

        `steps` are whole lattice steps in the order of the mechanism's layout, `n` is the exact
        number of rows, where the study publishes that, and `drawn_by` says what made the noise.
        """
        noisy = [from_steps(step, mechanism.lattice) for step in steps]
        parts = mechanism.layout.divided(noisy)
        own, *further = _responses(parts, study.d)
        return cls(
            study_hash=study.hash,
            study=study.resolved(),
            holder=holder,
            xtx=_symmetric(parts["xtx_diagonal"], parts.get("xtx_off_diagonal", [])),
            xty=own.xty,
            yty=own.yty,
            further=tuple(further) or None,
            n=_count(study, parts.get("count", []), n),
            smallest_eigenvalue=next(iter(parts.get("eigenvalue", [])), None),
            noise_shape=mechanism.shape,
            noise=mechanism.noise,
            survivors=survivors,
            attestation=attestation,
            visit=visit,
            **provenance(mechanism, drawn_by, simulated=simulated),
        )

    @model_validator(mode="after")
    def _check(self) -> Self:
        d = self.study.d
        self._check_provenance()
        must(
            len(self.xtx) == d and all(len(row) == d for row in self.xtx),
            f"xtx must be {d} by {d}, as the study has {d} columns",
        )
        must(
            all(len(moment) == d for moment in self._moments),
            f"xty must have {d} entries, as the study has {d} columns",
        )
        must(
            len(self._moments) == self.study.response_count,
            "further must hold each further response of the study, and nothing else",
        )
        must(
            self.xtx == tuple(zip(*self.xtx, strict=True)),
            "xtx must be symmetric",
        )
        must(self.noise_shape == self.study.release.noise, "noise_shape must be the study's")
        must(
            all((square is not None) == self.study.response_square for square in self._squares),
            "yty must be there exactly when the study publishes it",
        )
        must(
            (self.smallest_eigenvalue is not None) == self.study.release.smallest_eigenvalue,
            "smallest_eigenvalue must be there exactly when the study publishes it",
        )
        check_sum(self)
        must(
            (self.n is None) == (self.study.count == "withheld"),
            "n must be there exactly when the study publishes it",
        )
        must(
            self.study.count == "noisy" or self.n is None or isinstance(self.n, int),
            "n must be a whole number, zero or more",
        )
        must(
            (self.visit is None) == (self.study.visit_count == 1),
            "visit must be there exactly when the study has several visits",
        )
        try:
            needed = self._needed()
            self._check_visits()
        except StudyError as error:
            raise ValueError(str(error)) from None
        self._check_noise(needed, self.noise.model_dump())
        return self

    def _needed(self) -> Mechanism:
        """The mechanism that the study and the visit ask for."""
        if self.visit is not None:
            return self._needed_in_visit(self.visit.question.visit, self.survivors)
        if self.survivors is not None:
            return self.study.summed(self.survivors)
        return self.study.mechanism(self.epsilon, self.delta)

    def _needed_in_visit(self, number: int, survivors: int | None) -> Mechanism:
        """The same of any visit, of one holder or of those who stayed in its sum."""
        if survivors is not None:
            return summed_visit(self.study, number, survivors)
        return visit_mechanism(self.study, number, self.study.budget(self.epsilon, self.delta))

    def _check_visits(self) -> None:
        """Every answer is to a question of this study, in order, with the noise of its visit."""
        if self.visit is None:
            return
        answers = self.visit.earlier
        questions = [*(answer.question for answer in answers), self.visit.question]
        for question in questions:
            question.check(self.study)
        numbers = [question.visit for question in questions]
        first = 1 + has_places(self.study)
        must(
            numbers == list(range(first, first + len(numbers))),
            "visit.earlier must hold the holder's answer to every earlier question, in order",
        )
        must(
            (self.visit.places is not None) == has_places(self.study),
            "visit.places must be there exactly when the study asks for places",
        )
        self._check_earlier(self.visit)

    def _check_earlier(self, visit: Visit) -> None:
        """Every earlier answer has the noise of its visit, and is a sum where this one is."""
        said_before: list[Places | Answer] = [*visit.earlier]
        if visit.places is not None:
            said_before.append(visit.places)
        for said in said_before:
            must(
                (said.survivors is None) == (self.survivors is None),
                "visit: survivors must be there exactly in a secure sum",
            )
            if said.attestation is not None and said.survivors is not None:
                said.attestation.check(self.study.secure_sum, said.survivors)
        if visit.places is not None:
            needed = needed_places(self.study, self.epsilon, self.delta, visit.places.survivors)
            _must_agree("visit.places", visit.places.noise, needed.noise)
        for answer in visit.earlier:
            noise = self._needed_in_visit(answer.question.visit, answer.survivors).noise
            _must_agree("visit.earlier", answer.noise, noise)

    @property
    def attested(self) -> list[tuple[str, Attestation | None]]:
        """What holders of a secure sum signed for, and what they signed, visit by visit."""
        if self.visit is None:
            return [(self.study_hash, self.attestation)]
        said: list[tuple[int, str, Attestation | None]] = []
        if self.visit.places is not None:
            said.append((1, "", self.visit.places.attestation))
        said += [
            (answer.question.visit, answer.question.hash, answer.attestation)
            for answer in self.answers
        ]
        first = said[0][2]
        opening = "" if first is None else first.session
        return [
            (subject_of(self.study_hash, 1, "", ""), attestation)
            if number == 1
            else (subject_of(self.study_hash, number, opening, question), attestation)
            for number, question, attestation in said
        ]

    @property
    def answers(self) -> tuple[Answer, ...]:
        """All that its holder has answered so far, this included; none in a study of one visit."""
        if self.visit is None or self.n is None or self.yty is None:
            return ()
        own = Answer(
            question=self.visit.question,
            n=self.n,
            xtx=self.xtx,
            xty=self.xty,
            yty=self.yty,
            noise=self.noise,
            survivors=self.survivors,
            attestation=self.attestation,
        )
        return (*self.visit.earlier, own)

    def in_stream(self, stream: str, number: int) -> Self:
        """The release as that batch of a stream; its number is then under the signature."""
        return self.model_copy(update={"batch": BatchNumber(stream=stream, number=number)})

    def _facts(self) -> dict[str, str]:
        rows = "withheld" if self.n is None else f"{self.n:,.6g}"
        noise = f"sd {self.noise.xtx_diagonal:.4g} on X'X, {self.noise.xty:.4g} on X'y"
        return super()._facts() | {"rows": rows, "noise": f"{noise} ({super()._facts()['noise']})"}

    @property
    def _moments(self) -> tuple[Vector, ...]:
        return (self.xty, *(each.xty for each in self.further or ()))

    @property
    def _squares(self) -> tuple[float | None, ...]:
        return (self.yty, *(each.yty for each in self.further or ()))

    # Arrays for the analyst.

    @cached_property
    def gram(self) -> NDArray[np.float64]:
        """Noisy X'X as an array."""
        return np.array(self.xtx)

    @cached_property
    def moment(self) -> NDArray[np.float64]:
        """Noisy X'y as an array."""
        return np.array(self.xty)

    @cached_property
    def moments(self) -> NDArray[np.float64]:
        """Noisy X'y of every response."""
        return np.array(self._moments)

    @cached_property
    def squares(self) -> NDArray[np.float64] | None:
        """Noisy y'y of every response, where that is published."""
        return None if self.yty is None else np.array(self._squares, dtype=float)


def _must_agree(where: str, stated: Record, needed: Record) -> None:
    """Refuse noise of an earlier visit that is not what the study asks for."""
    sds = stated.model_dump()
    agree = all(
        math.isclose(sds[part] or 0.0, sd or 0.0, rel_tol=1e-6)
        for part, sd in needed.model_dump().items()
    )
    must(agree, f"{where}: noise is not that of the study at this epsilon and delta")


def _symmetric(diagonal: list[float], above: list[float]) -> tuple[tuple[float, ...], ...]:
    """A symmetric matrix from its diagonal and what is above it, row by row."""
    matrix = np.diag(diagonal)
    upper = np.triu_indices(len(diagonal), 1)
    matrix[upper] = above
    matrix.T[upper] = above
    return tuple(map(tuple, matrix.tolist()))


def _responses(parts: Mapping[PartName, Sequence[float]], d: int) -> list[Further]:
    """X'y and y'y of each response, one after the other."""
    moments = parts["xty"]
    squares = parts.get("yty", ())
    return [
        Further(
            xty=tuple(moments[place * d : (place + 1) * d]),
            yty=squares[place] if squares else None,
        )
        for place in range(len(moments) // d)
    ]


def _count(study: Study, noisy: list[float], n: int | None) -> int | float | None:
    """The number of rows as the study publishes it."""
    if study.count == "withheld":
        return None
    return noisy[0] if study.count == "noisy" else n
