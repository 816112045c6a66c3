"""Release: everything that leaves a holder, as one small JSON document a person can read.

The rules of the format, reading and writing are those of every document (document.py).
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import FailFast, Field, StringConstraints, model_validator

from tacit.errors import StudyError
from tacit.privacy.mechanism import Mechanism, Noise, Shape
from tacit.records import Number, Record, must
from tacit.release.attestation import Attestation
from tacit.release.document import Published, provenance
from tacit.release.places import Places
from tacit.release.question import Question
from tacit.study import Study
from tacit.study.rules import MOST_COLUMNS
from tacit.study.visits import MOST_VISITS, has_places, visit_mechanism

Vector = Annotated[tuple[Number, ...], Field(strict=False, max_length=MOST_COLUMNS), FailFast()]
Square = Annotated[tuple[Vector, ...], Field(strict=False, max_length=MOST_COLUMNS), FailFast()]


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


class Release(Published):
    """Noisy statistics of one holder for one study, in the study's scaled units."""

    kind: ClassVar[str] = "release"
    optional: ClassVar[tuple[str, ...]] = ("survivors", "attestation", "batch", "visit", "ledger")
    numbers: ClassVar[tuple[str, ...]] = ("xtx", "xty")

    format: Literal["tacit-release"] = "tacit-release"
    version: Literal[1] = 1
    n: Annotated[int, Field(ge=0, lt=2**63)] | Number | None
    xtx: Square
    xty: Vector
    yty: Number | None
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
        return cls(
            study_hash=study.hash,
            study=study.resolved(),
            holder=holder,
            xtx=_symmetric(parts["xtx_diagonal"], parts.get("xtx_off_diagonal", [])),
            xty=tuple(parts["xty"]),
            yty=next(iter(parts.get("yty", [])), None),
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
        must(len(self.xty) == d, f"xty must have {d} entries, as the study has {d} columns")
        must(
            self.xtx == tuple(zip(*self.xtx, strict=True)),
            "xtx must be symmetric",
        )
        must(self.noise_shape == self.study.release.noise, "noise_shape must be the study's")
        must(
            (self.yty is not None) == self.study.response_square,
            "yty must be there exactly when the study publishes it",
        )
        must(
            (self.smallest_eigenvalue is not None) == self.study.release.smallest_eigenvalue,
            "smallest_eigenvalue must be there exactly when the study publishes it",
        )
        must(
            (self.survivors is None) == (self.study.secure_sum is None),
            "survivors must be there exactly in a secure sum",
        )
        if self.attestation is not None:
            self.attestation.check(self.study.secure_sum, self.survivors)
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
        if self.study.secure_sum is not None:
            return self._needed_in_sum()
        if self.visit is None:
            return self.study.mechanism(self.epsilon, self.delta)
        budget = self.study.budget(self.epsilon, self.delta)
        return visit_mechanism(self.study, self.visit.question.visit, budget)

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
        budget = self.study.budget(self.epsilon, self.delta)
        for answer in answers:
            needed = visit_mechanism(self.study, answer.question.visit, budget).noise.by_part()
            stated = answer.noise.by_part()
            agree = stated.keys() == needed.keys() and all(
                math.isclose(stated[part], sd, rel_tol=1e-6) for part, sd in needed.items()
            )
            must(agree, "visit.earlier: noise is not that of the study at this epsilon and delta")

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
        )
        return (*self.visit.earlier, own)

    def _needed_in_sum(self) -> Mechanism:
        """The noise of those who stayed in a secure sum; they all spend what the study says."""
        agreed = self.study.secure_sum
        survivors = self.survivors or 0
        must(
            agreed is not None and agreed.least <= survivors <= len(agreed.holders),
            "survivors must be as many as the study allows",
        )
        must(
            (self.epsilon, self.delta) == (self.study.epsilon, self.study.delta),
            "epsilon and delta must be the study's in a secure sum",
        )
        return self.study.summed(survivors)

    def in_stream(self, stream: str, number: int) -> Self:
        """The release as that batch of a stream; its number is then under the signature."""
        return self.model_copy(update={"batch": BatchNumber(stream=stream, number=number)})

    def _facts(self) -> dict[str, str]:
        rows = "withheld" if self.n is None else f"{self.n:,.6g}"
        noise = f"sd {self.noise.xtx_diagonal:.4g} on X'X, {self.noise.xty:.4g} on X'y"
        return super()._facts() | {"rows": rows, "noise": f"{noise} ({super()._facts()['noise']})"}

    # Arrays for the analyst.

    @cached_property
    def gram(self) -> NDArray[np.float64]:
        """Noisy X'X as an array."""
        return np.array(self.xtx)

    @cached_property
    def moment(self) -> NDArray[np.float64]:
        """Noisy X'y as an array."""
        return np.array(self.xty)


def from_steps(steps: int, lattice: int) -> float:
    """A whole number of lattice steps as a float."""
    return float(steps * 2**lattice) if lattice >= 0 else steps / (1 << -lattice)


def _symmetric(diagonal: list[float], above: list[float]) -> tuple[tuple[float, ...], ...]:
    """A symmetric matrix from its diagonal and what is above it, row by row."""
    matrix = np.diag(diagonal)
    upper = np.triu_indices(len(diagonal), 1)
    matrix[upper] = above
    matrix.T[upper] = above
    return tuple(map(tuple, matrix.tolist()))


def _count(study: Study, noisy: list[float], n: int | None) -> int | float | None:
    """The number of rows as the study publishes it."""
    if study.count == "withheld":
        return None
    return noisy[0] if study.count == "noisy" else n
