"""Study: the public agreement between holders and analyst, fixed before anybody looks at data.

It is a TOML file. Its hash, taken over the document with every default written out, travels in each
release, so two parties hold the same study exactly when they hold the same hash.
"""

import hashlib
import json
import math
import tomllib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from tacit import limits
from tacit.errors import StudyError
from tacit.html import facts_table
from tacit.privacy.gaussian import DELTA_RANGE, EPSILON_RANGE
from tacit.privacy.mechanism import Form, Mechanism, calibrate, summed
from tacit.privacy.sensitivity import Relation
from tacit.records import Name, Record, at_most
from tacit.study.afford import affordable_radius
from tacit.study.columns import Feature, Response
from tacit.study.complaints import explain_study
from tacit.study.form import (
    LARGEST_ENTRY,
    MOST_ENTRY,
    NEAR_SPHERE,
    NEAR_USUAL,
    RESPONSE_SHARE,
    Count,
    PlannedRows,
    ReleaseForm,
    SecureSum,
    Weight,
    weights_of,
)
from tacit.study.rules import MOST_COLUMNS, check
from tacit.study.terms import Product, Term, products_of
from tacit.study.visits import MOST_VISITS, default_visits

INTERCEPT = "(intercept)"
MOST_HOLDERS = 10_000
Missing = Literal["drop", "impute", "refuse"]
MissingPerson = Literal["refuse", "alone"]
Hash = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]


class Study(Record):
    """The whole agreement; see docs/study.md for the meaning of each field."""

    name: Name
    relation: Relation = "replace-one"
    epsilon: Annotated[float, Field(ge=EPSILON_RANGE[0], le=EPSILON_RANGE[1])]
    delta: Annotated[float, Field(ge=DELTA_RANGE[0], le=DELTA_RANGE[1])]
    intercept: bool = True
    missing: Missing = "drop"
    person: Name | None = None
    missing_person: MissingPerson = "refuse"
    weight: Weight | None = None
    response: Response
    features: Annotated[
        tuple[Feature, ...], Field(strict=False, max_length=MOST_COLUMNS), at_most(MOST_COLUMNS)
    ] = ()
    terms: Annotated[
        tuple[Term, ...], Field(strict=False, max_length=MOST_COLUMNS), at_most(MOST_COLUMNS)
    ] = ()
    release: ReleaseForm = ReleaseForm()
    planned_rows: PlannedRows = ()
    holders: Annotated[
        tuple[Name, ...], Field(strict=False, max_length=MOST_HOLDERS), at_most(MOST_HOLDERS)
    ] = ()
    scales_share: None = None
    stage_one: Hash | None = None
    secure_sum: SecureSum | None = None
    visits: Annotated[int, Field(ge=1, le=MOST_VISITS)] | None = None
    responses: Annotated[
        tuple[Name, ...], Field(strict=False, max_length=MOST_COLUMNS), at_most(MOST_COLUMNS)
    ] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        check(self)
        return self

    def __repr__(self) -> str:
        return (
            f"Study({self.name!r}: {self.response.modelled} by {self.d} columns, "
            f"epsilon = {self.epsilon:g} at delta = {self.delta:g}, {self.hash[:15]}…)"
        )

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """The study as a notebook shows it."""
        return facts_table(
            f"Study {self.name}",
            {
                "response": f"{self.response.modelled}, {self.response.range}",
                "columns": ", ".join(self.columns),
                "guarantee": f"epsilon = {self.epsilon:g}, delta = {self.delta:g}, {self.relation}",
                "missing": self.missing,
                "hash": self.hash,
            },
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Columns that a table must have: the features in their order, then the response."""
        return (*(feature.name for feature in self.features), self.response.name)

    @property
    def table_names(self) -> tuple[str, ...]:
        """All columns of a table that is published: the names, the person's and the weight's."""
        person = () if self.person is None else (self.person,)
        weight = () if self.weight is None else (self.weight.column,)
        return (*self.names, *person, *weight)

    # The encoded row.

    @cached_property
    def products(self) -> tuple[Product, ...]:
        """The terms with their features; without terms, the features that are no responses."""
        features = [each for each in self.features if each.name not in self.responses]
        return products_of(tuple(features), self.terms)

    @property
    def response_count(self) -> int:
        """How many responses one release serves."""
        return len(self.responses) or 1

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the d encoded columns, the intercept first."""
        encoded = [column for product in self.products for column in product.columns]
        return (INTERCEPT, *encoded) if self.intercept else tuple(encoded)

    @property
    def d(self) -> int:
        """Number of encoded columns."""
        return len(self.columns)

    @property
    def longest_row(self) -> float:
        """Largest norm of an encoded row.

        Every numeric column is then at the end of its range, every category off its reference.
        """
        return math.sqrt(self.intercept + math.fsum(each.longest**2 for each in self.products))

    @cached_property
    def usual_row(self) -> float:
        """Root mean square norm of rows spread evenly over the (typical) public domain."""
        return math.sqrt(self.intercept + math.fsum(each.mean_square for each in self.products))

    @property
    def largest_entry(self) -> float:
        """Largest entry of an encoded row after shrinking, or `LARGEST_ENTRY` if that is more."""
        return max(LARGEST_ENTRY, min(self.row_radius, self.widest))

    @property
    def most_entry(self) -> float:
        """Largest entry that is allowed: sums of averaged rows must be exact as well."""
        return MOST_ENTRY if self.release.average == 1 else LARGEST_ENTRY

    @property
    def widest(self) -> float:
        """Largest entry of a row as it is."""
        return max((each.longest for each in self.products), default=1.0)

    @property
    def is_anchored(self) -> bool:
        """Whether rows are kept from being short.

        By an intercept or, in a study with terms, by what stands in for it.
        """
        return self.intercept or bool(self.terms)

    # The release form, defaults filled in.

    @cached_property
    def row_radius(self) -> float:
        """R: longer rows are shrunk to it.

        Default: what planned rows can afford or, where none are planned, a share of the usual row,
        and 1 at least with an intercept.
        """
        radius = self.release.row_radius
        if radius is None and self.planned_rows:
            radius = affordable_radius(self)
        if radius is None:
            radius = (NEAR_USUAL if self.is_anchored else NEAR_SPHERE) * self.usual_row
            radius = max(radius, 1.0) if self.intercept else radius
        return min(radius, self.longest_row)

    @property
    def whole_rows(self) -> bool:
        """Whether every row enters at full length.

        None is longer than R then, none is left out because a value is missing, and none is one of
        several of a person's or has a weight.
        """
        long = self.row_radius >= self.longest_row
        apart = self.person is None and self.weight is None
        return long and self.missing == "refuse" and apart

    @property
    def response_bound(self) -> float:
        """Y: the response is clipped at it after row scaling, in units of half its public range.

        Default with an intercept: 1, so that nothing is clipped. Without one, rows are on a small
        sphere and responses, centred by whoever left the intercept out, with them; then it goes
        with the radius. Planned rows that afford a larger sphere make it grow faster: clipping,
        unlike shrinking, biases a straight line too.
        """
        if self.release.response_bound is not None:
            return self.release.response_bound
        if self.is_anchored:
            return 1.0
        bound = RESPONSE_SHARE * self.row_radius / self.usual_row
        if self.planned_rows:
            bound *= max(1.0, self.row_radius / (NEAR_SPHERE * self.usual_row))
        return min(1.0, bound)

    @property
    def response_weight(self) -> float:
        """w: weight of X'y. Default R / Y, over √k for k: X'X and all X'y move equally far."""
        if self.release.response_weight is not None:
            return self.release.response_weight
        return self.row_radius / self.response_bound / math.sqrt(self.response_count)

    @property
    def response_square(self) -> bool:
        """Whether y'y is published; without it only the prior knows the residual variance.

        Default: yes.
        """
        return self.release.response_square is not False

    @property
    def allowed_counts(self) -> tuple[Count, ...]:
        """How n may be published under the study's relation; the first is the default."""
        return ("exact",) if self.relation == "replace-one" else ("noisy", "withheld", "public")

    @property
    def count(self) -> Count:
        """How n is published: exactly under replace-one, by default with noise under add-remove."""
        return self.release.count or self.allowed_counts[0]

    @property
    def form(self) -> Form:
        """What the privacy calculus needs to know of the study."""
        return Form(
            self.d,
            self.row_radius,
            self.response_bound,
            weights_of(self),
            self.relation,
            self.release.noise,
            self.release.average,
            self.response_count,
        )

    @cached_property
    def visit_count(self) -> int:
        """How many questions are put to the same rows: as many as stated, or as suit the plan."""
        return default_visits(self) if self.visits is None else self.visits

    def mechanism(self, epsilon: float | None = None, delta: float | None = None) -> Mechanism:
        """Noise at the study's budget, or at the smaller one a holder chose."""
        return calibrate(self.form, *self.budget(epsilon, delta))

    def budget(
        self, epsilon: float | None = None, delta: float | None = None
    ) -> tuple[float, float]:
        """The study's (ε, δ), or the smaller one that a holder chose."""
        epsilon = self.epsilon if epsilon is None else epsilon
        delta = self.delta if delta is None else delta
        for name, value, agreed, least in (
            ("epsilon", epsilon, self.epsilon, EPSILON_RANGE[0]),
            ("delta", delta, self.delta, DELTA_RANGE[0]),
        ):
            if not least <= value <= agreed:
                raise StudyError(
                    f"{name} must lie between {least:g} and the study's {agreed:g}: "
                    "a holder may give less than agreed, not more"
                )
        return epsilon, delta

    def summed(self, holders: int) -> Mechanism:
        """Noise of so many holders' shares in a secure sum; of one share for 1."""
        if self.secure_sum is None:
            raise StudyError(
                "the study has no secure_sum: each holder publishes a release of its own"
            )
        return summed(self.mechanism(), holders, self.secure_sum.covering)

    # The document.

    @classmethod
    def from_formula(cls, formula: str, columns: Mapping[str, object], **fields: object) -> Self:
        """A study whose terms are a formula's, such as "days ~ age * sex + poly(bmi, 2)".

        `columns` gives each column its public range, as (18, 100), its levels, as
        ["female", "male"], or the fields of a feature as a dictionary; the response needs a range.
        `fields` are the study's others: epsilon and delta at least.
        """
        from tacit.study.formula import document_of

        return cls.from_document(document_of(formula, columns, fields))

    def document(self) -> dict[str, Any]:
        """The study as plain values with every default written out.

        This is what is hashed and embedded in releases.
        """
        document = self.model_dump(mode="json", exclude=None if self.terms else {"terms"})
        document["release"] |= {
            "row_radius": self.row_radius,
            "response_bound": self.response_bound,
            "response_weight": self.response_weight,
            "response_square": self.response_square,
            "count": self.count,
        }
        # A study without averaging, sums, plans, persons or weights keeps the hash that it had
        # before there were any.
        if self.release.average == 1:
            del document["release"]["average"]
        if self.secure_sum is None:
            del document["secure_sum"]
        document["visits"] = self.visit_count
        if not self.planned_rows:
            del document["planned_rows"]
            del document["visits"]
        if not self.holders:
            del document["holders"]
        if not self.responses:
            del document["responses"]
        if self.person is None:
            del document["person"]
            del document["missing_person"]
        if self.weight is None:
            del document["weight"]
        return document

    def resolved(self) -> Self:
        """The same study with every default written out."""
        return self.from_document(self.document())

    @cached_property
    def canonical(self) -> str:
        """The document in canonical JSON."""
        return json.dumps(
            self.document(), sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the document in canonical JSON."""
        return "sha256:" + hashlib.sha256(self.canonical.encode()).hexdigest()

    @classmethod
    def from_document(cls, document: object) -> Self:
        """Validate plain values."""
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            raise StudyError(explain_study(error, document)) from None

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """Read the text of a study file."""
        try:
            limits.STUDY.check_toml(text)
            document = tomllib.loads(text)
        except limits.LimitError as error:
            raise StudyError(str(error)) from None
        except (ValueError, RecursionError) as error:  # too many digits are a plain ValueError
            raise StudyError(f"the study is not valid TOML: {error}") from None
        return cls.from_document(document)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a study file."""
        try:
            with Path(path).open(encoding="utf-8") as file:
                text = file.read(limits.STUDY.letters + 1)
        except (OSError, UnicodeDecodeError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise StudyError(f"cannot read the study {str(path)!r}: {reason}") from None
        try:
            return cls.from_toml(text)
        except StudyError as error:
            raise StudyError(f"{path}: {error}") from None
