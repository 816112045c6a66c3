"""Study: the public agreement between holders and analyst, everything fixed before anybody looks at data.

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

from tacit.errors import StudyError
from tacit.privacy.gaussian import DELTA_RANGE, EPSILON_RANGE, split
from tacit.privacy.mechanism import Form, Mechanism, Shape, calibrate, summed
from tacit.privacy.scales import ScalesMechanism, calibrate_scales
from tacit.privacy.sensitivity import Relation, Weights, free_square_weight, lever
from tacit.records import Name, Record, explain
from tacit.study.columns import Feature, Response
from tacit.study.terms import Product, Term, products_of

INTERCEPT = "(intercept)"
MOST_COLUMNS = 512
"""Most encoded columns: the lattice argument of docs/privacy.md is made for up to this many."""
TOO_WIDE = f"the study must encode to between 1 and {MOST_COLUMNS} columns, intercept included"
LARGEST_ENTRY = 4.0
"""Largest entry of an encoded row after shrinking: what keeps sums of products exact (holder/encode.py)."""
NEAR_SPHERE = 0.3
"""Default row radius over the usual row, without an intercept: nearly every row is longer, and is put on the sphere."""
NEAR_USUAL = 0.8
"""The same with an intercept, which keeps rows from being short: a little under what even spread would give."""
RESPONSE_SHARE = 0.8
"""Default response bound without an intercept: a row of usual length is clipped where its response passes this share."""
SQUARE_WEIGHT = 0.3
"""Weight of y'y, against X'X, where it is not free: about two per cent more noise on the rest."""
COUNT_WEIGHT = 1 / 8
"""Weight of a noisy n against X'X: n is worth little noise, and so adds well under one per cent to all the rest."""
EIGENVALUE_WEIGHT = 1 / 2
"""Weight of the smallest eigenvalue against X'X: it adds under three per cent (replace-one) or seven (add-remove)."""
MOST_AVERAGED = 64
"""Largest group of averaged rows: products of two sums still fit into a block of exact sums (holder/averaging.py)."""
LEAST_RADIUS = 1e-3
"""Smallest row radius: some hundreds of steps of the encoding's grid, so that rounding stays small beside it."""


Count = Literal["exact", "noisy", "withheld", "public"]
Missing = Literal["drop", "impute", "refuse"]
PublicKey = Annotated[str, StringConstraints(pattern=r"\A[A-Za-z0-9+/]{43}=\z")]
"""Ed25519, in base64."""
Hash = Annotated[str, StringConstraints(pattern=r"\Asha256:[0-9a-f]{64}\z")]


class ReleaseForm(Record):
    """What is published and how; every default is a function of public quantities (docs/study.md)."""

    noise: Shape = "frobenius"
    row_radius: Annotated[float, Field(ge=LEAST_RADIUS, allow_inf_nan=False)] | None = None
    response_bound: Annotated[float, Field(gt=1e-4, le=1)] | None = None
    response_weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    response_square: bool | None = None
    smallest_eigenvalue: bool = False
    count: Count | None = None
    average: Annotated[int, Field(ge=1, le=MOST_AVERAGED)] = 1


class SecureSum(Record):
    """A sum that is published instead of each holder's release: who takes part, and what its noise must survive.

    `holders` names each holder's public key. At least `least` of them must stay to the end, and the noise covers `colluding` of
    those, who may tell the server what they know.
    """

    holders: Annotated[dict[Name, PublicKey], Field(min_length=2, max_length=1000)]
    least: Annotated[int, Field(ge=2)]
    colluding: Annotated[int, Field(ge=0)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.colluding < self.least <= len(self.holders):
            raise ValueError(
                "secure_sum needs colluding < least, and least at most the number of holders"
            )
        if 2 * self.least <= len(self.holders) + self.colluding:
            raise ValueError(
                "secure_sum.least must be more than half of all holders and colluding ones together, or a server could divide them"
            )
        if len(set(self.holders.values())) < len(self.holders):
            raise ValueError("secure_sum.holders must each have a key of their own")
        return self

    @property
    def threshold(self) -> int:
        """How many holders must agree to unmask: so many that no two different sums can both find as many."""
        return (len(self.holders) + self.colluding) // 2 + 1

    @property
    def covering(self) -> int:
        """How many honest holders' shares of noise there are at least."""
        return self.least - self.colluding


class Study(Record):
    """The whole agreement; see docs/study.md for the meaning of each field."""

    name: Name
    relation: Relation = "replace-one"
    epsilon: Annotated[float, Field(ge=EPSILON_RANGE[0], le=EPSILON_RANGE[1])]
    delta: Annotated[float, Field(ge=DELTA_RANGE[0], le=DELTA_RANGE[1])]
    intercept: bool = True
    missing: Missing = "drop"
    response: Response
    features: Annotated[tuple[Feature, ...], Field(strict=False)] = ()
    terms: Annotated[tuple[Term, ...], Field(strict=False)] = ()
    release: ReleaseForm = ReleaseForm()
    scales_share: Annotated[float, Field(gt=0, lt=1)] | None = None
    stage_one: Hash | None = None
    secure_sum: SecureSum | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(set(self.names)) < len(self.names):
            raise ValueError("the names of response and features must all differ")
        self._check_terms(set(self.names[:-1]))
        if len(set(self.columns)) < len(self.columns):
            raise ValueError("two encoded columns share a name: rename a feature or level")
        if not 1 <= len(self.columns) <= MOST_COLUMNS:
            raise ValueError(TOO_WIDE)
        if self.intercept and self.release.row_radius is not None and self.release.row_radius < 1:
            raise ValueError(
                "release.row_radius must be at least 1 with an intercept: below that only the unit changes"
            )
        if not 1e-3 <= self.response_weight * self.response_bound / self.row_radius <= 1e3:  # noqa: PLR2004
            raise ValueError(
                "release.response_weight must lie within a factor 1000 of row_radius / response_bound"
            )
        if any(min(self.row_radius, product.longest) > LARGEST_ENTRY for product in self.products):
            raise ValueError(
                f"release.row_radius must be at most {LARGEST_ENTRY:g} where a range is that many times wider than typical"
            )
        if (self.release.count or self.count) not in self._counts:
            raise ValueError(
                f"release.count must be one of {', '.join(self._counts)} under {self.relation}"
            )
        if self.scales_share is not None:
            self._check_stages(self.stages)
        if self.secure_sum is not None and (
            self.release.smallest_eigenvalue
            or self.release.average > 1
            or self.scales_share is not None
        ):
            raise ValueError(
                "secure_sum excludes release.smallest_eigenvalue, which does not add up, release.average and scales_share"
            )
        return self

    def _check_terms(self, features: set[str]) -> None:
        if not self.terms:
            return
        used = {factor.of for term in self.terms for factor in term.product}
        if unknown := sorted(used ^ features):
            rule = (
                "is in no term: use it in one, or remove it"
                if unknown[0] in features
                else "is in a term but is no feature: add it to them"
            )
            raise ValueError(f"terms: {unknown[0]!r} {rule}")
        for product in self.products:
            product.check()
        if (
            sum(product.width for product in self.products) > MOST_COLUMNS
        ):  # before all their names are made
            raise ValueError(TOO_WIDE)
        raw = [column for product in self.products for column in product.raw_columns]
        if len(set(raw)) < len(raw):
            raise ValueError(
                f"terms: {max(raw, key=raw.count)!r} is there twice: name each product, power and level once"
            )

    def _check_stages(self, stages: tuple[float, float]) -> None:
        if not self.scaled or self.stage_one is not None:
            raise ValueError(
                "scales_share needs a numeric feature without typical, and a study that no first stage made (stage_one)"
            )
        if min(stages) < EPSILON_RANGE[0]:
            raise ValueError(
                f"scales_share must leave both stages an epsilon of {EPSILON_RANGE[0]:g} at least: raise epsilon, or lower delta"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Columns that a table must have: the features in their order, then the response."""
        return (*(feature.name for feature in self.features), self.response.name)

    # The encoded row.

    @cached_property
    def products(self) -> tuple[Product, ...]:
        """The terms with their features; without terms, the features themselves."""
        return products_of(self.features, self.terms)

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
        """Largest norm of an encoded row: every numeric column at the end of its range, every category off its reference."""
        return math.sqrt(
            self.intercept + math.fsum(product.longest**2 for product in self.products)
        )

    @cached_property
    def usual_row(self) -> float:
        """Root mean square norm of rows spread evenly over the (typical) public domain."""
        return math.sqrt(
            self.intercept + math.fsum(product.mean_square for product in self.products)
        )

    @property
    def _is_anchored(self) -> bool:
        """Whether rows are kept from being short: by an intercept or, in a study with terms, by what stands in for it."""
        return self.intercept or bool(self.terms)

    # The release form, defaults filled in.

    @cached_property
    def row_radius(self) -> float:
        """R: longer rows are shrunk to it. Default: a share of the usual row, and 1 at least with an intercept."""
        default = (NEAR_USUAL if self._is_anchored else NEAR_SPHERE) * self.usual_row
        default = max(default, 1.0) if self.intercept else default
        return min(
            default if self.release.row_radius is None else self.release.row_radius,
            self.longest_row,
        )

    @property
    def whole_rows(self) -> bool:
        """Whether every row enters at full length: none is longer than R, and none is left out because a value is missing."""
        return self.row_radius >= self.longest_row and self.missing == "refuse"

    @property
    def response_bound(self) -> float:
        """Y: the response is clipped at it after row scaling, in units of half its public range.

        Default with an intercept: 1, so that nothing is clipped. Without one, rows are on a small sphere and responses,
        centred by whoever left the intercept out, with them; then it goes with the radius.
        """
        if self.release.response_bound is not None:
            return self.release.response_bound
        return (
            1.0
            if self._is_anchored
            else min(1.0, RESPONSE_SHARE * self.row_radius / self.usual_row)
        )

    @property
    def response_weight(self) -> float:
        """w: weight of X'y. Default R / Y, at which X'X and X'y can move equally far."""
        default = self.row_radius / self.response_bound
        return self.release.response_weight if self.release.response_weight is not None else default

    @property
    def response_square(self) -> bool:
        """Whether y'y is published, without which nothing but the prior knows the residual variance. Default: yes."""
        return self.release.response_square is not False

    @property
    def _counts(self) -> tuple[Count, ...]:
        return ("exact",) if self.relation == "replace-one" else ("noisy", "withheld", "public")

    @property
    def count(self) -> Count:
        """How n is published: exactly under replace-one; with noise by default under add-remove."""
        return self.release.count or self._counts[0]

    @property
    def form(self) -> Form:
        """What the privacy calculus needs to know of the study."""
        w, ratio = self.response_weight, self.row_radius / self.response_bound
        average = self.release.average
        is_free = self.relation == "replace-one" and average == 1 and w <= math.sqrt(2) * ratio
        square = (
            free_square_weight(self.row_radius, self.response_bound, w)
            if is_free
            else SQUARE_WEIGHT * ratio**2
        )
        weights = Weights(
            response=w,
            square=square if self.response_square else 0.0,
            count=self.row_radius**2 * COUNT_WEIGHT * lever(self.relation, average)
            if self.count == "noisy"
            else 0.0,
            eigenvalue=EIGENVALUE_WEIGHT if self.release.smallest_eigenvalue else 0.0,
        )
        return Form(
            self.d,
            self.row_radius,
            self.response_bound,
            weights,
            self.relation,
            self.release.noise,
            average,
        )

    def mechanism(self, epsilon: float | None = None, delta: float | None = None) -> Mechanism:
        """Noise at the study's budget, or at the smaller one a holder chose."""
        return calibrate(self.form, *self._budget(epsilon, delta, self.epsilon))

    def summed(self, holders: int) -> Mechanism:
        """Noise of so many holders' shares in a secure sum; of one share for 1."""
        if self.secure_sum is None:
            raise StudyError(
                "the study has no secure_sum: each holder publishes a release of its own"
            )
        return summed(self.mechanism(), holders, self.secure_sum.covering)

    def _budget(
        self, epsilon: float | None, delta: float | None, agreed_epsilon: float
    ) -> tuple[float, float]:
        epsilon = agreed_epsilon if epsilon is None else epsilon
        delta = self.delta if delta is None else delta
        for name, value, agreed, least in (
            ("epsilon", epsilon, agreed_epsilon, EPSILON_RANGE[0]),
            ("delta", delta, self.delta, DELTA_RANGE[0]),
        ):
            if not least <= value <= agreed:
                raise StudyError(
                    f"{name} must lie between {least:g} and the study's {agreed:g}: a holder may give less than agreed, not more"
                )
        return epsilon, delta

    # Two stages: private scales first.

    @property
    def scaled(self) -> tuple[Feature, ...]:
        """Features whose typical interval the first stage is to find: numeric ones that state none."""
        return tuple(
            feature
            for feature in self.features
            if feature.range is not None and feature.typical is None
        )

    @cached_property
    def stages(self) -> tuple[float, float]:
        """ε of the first and the second stage, at the study's δ; together they are the study's."""
        if self.scales_share is None:
            raise StudyError(
                "the study has one stage: give it a scales_share, such as 0.1, to find typical intervals first"
            )
        return split(self.epsilon, self.delta, self.scales_share)

    def scales_mechanism(
        self, epsilon: float | None = None, delta: float | None = None
    ) -> ScalesMechanism:
        """Noise of the first stage at its part of the budget, or at the smaller one a holder chose."""
        return calibrate_scales(
            len(self.scaled), self.relation, *self._budget(epsilon, delta, self.stages[0])
        )

    # The document.

    @classmethod
    def from_formula(cls, formula: str, columns: Mapping[str, object], **fields: object) -> Self:
        """A study whose terms are a formula's, such as "days ~ age * sex + poly(bmi, 2)" (needs `tacit[formula]`).

        `columns` gives each column its public range, as (18, 100), its levels, as ["female", "male"], or the fields of a feature
        as a dictionary; the response needs a range. `fields` are the study's others: epsilon and delta at least.
        """
        from tacit.study.formula import document_of

        return cls.from_document(document_of(formula, columns, fields))

    def document(self) -> dict[str, Any]:
        """The study as plain values with every default written out: what is hashed and embedded in releases."""
        document = self.model_dump(mode="json", exclude=None if self.terms else {"terms"})
        document["release"] |= {
            "row_radius": self.row_radius,
            "response_bound": self.response_bound,
            "response_weight": self.response_weight,
            "response_square": self.response_square,
            "count": self.count,
        }
        if (
            self.release.average == 1
        ):  # a study without averaging keeps the hash that it had before there was any
            del document["release"]["average"]
        if self.secure_sum is None:  # as studies were written before there were sums
            del document["secure_sum"]
        return document

    def resolved(self) -> Self:
        """The same study with every default written out."""
        return self.from_document(self.document())

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the document in canonical JSON."""
        text = json.dumps(
            self.document(), sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()

    @classmethod
    def from_document(cls, document: object) -> Self:
        """Validate plain values."""
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            raise StudyError(explain(error)) from None

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """Read the text of a study file."""
        try:
            return cls.from_document(tomllib.loads(text))
        except (
            ValueError,
            RecursionError,
        ) as error:  # a number of too many digits is a plain ValueError
            raise StudyError(f"the study is not valid TOML: {error}") from None

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a study file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise StudyError(f"cannot read the study {str(path)!r}: {reason}") from None
        try:
            return cls.from_toml(text)
        except StudyError as error:
            raise StudyError(f"{path}: {error}") from None
