"""Terms: columns of the design that are built from features, within limits from public ranges.

A *factor* takes a feature, perhaps after a function, to its mapped variable u: [−1, 1] where it is
centred, or divided by its largest size where it is not. A numeric factor of degree k is the
Legendre polynomial P_k(u), which stays within [−1, 1] and is nearly orthogonal to the others, so
that noise does not make them look alike; uncentred it is the power u^k. A categorical factor is its
0/1 columns. A *term* is a product of factors. A study without terms has one for each feature, the
feature itself.
"""

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from pydantic import (
    Field,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from scipy.special import eval_legendre

from tacit.records import Name, Record, at_most
from tacit.study.columns import Feature
from tacit.study.grid import mapping_of, on_grid
from tacit.study.transforms import Bounds, FunctionName, check, image, label

MOST_DEGREE = 8
MOST_FACTORS = 6
MOST_MONOMIALS = 2_000
"""Most monomials that a column may expand to in the user's units (expansion.py)."""
LONGEST_TERM = 1e12
"""Largest entry of a term before rows are shrunk, far from where its square would overflow."""


class Factor(Record):
    """A feature within a term; a document writes one that is the feature alone as its name."""

    of: Name
    function: FunctionName | None = None
    degree: Annotated[int, Field(ge=1, le=MOST_DEGREE)] = 1
    centred: bool = True
    every_level: bool = False

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: object) -> object:
        return {"of": value} if isinstance(value, str) else value

    @classmethod
    def __get_pydantic_json_schema__(
        cls,
        schema: Any,  # noqa: ANN401 - pydantic's own
        handler: GetJsonSchemaHandler,
    ) -> JsonSchemaValue:
        """In a JSON schema: a name, or the fields."""
        return {"anyOf": [{"type": "string"}, handler(schema)]}

    @model_serializer(mode="wrap")
    def _brief(self, handler: SerializerFunctionWrapHandler) -> Any:  # noqa: ANN401
        stated = {
            name: value
            for name, value in handler(self).items()
            if value != type(self).model_fields[name].default
        }
        return self.of if stated == {"of": self.of} else stated


class Term(Record):
    """A product of factors."""

    product: Annotated[
        tuple[Factor, ...],
        Field(strict=False, min_length=1, max_length=MOST_FACTORS),
        at_most(MOST_FACTORS),
    ]


@dataclass(frozen=True)
class Part:
    """A factor with its feature: how it is named, mapped and limited."""

    factor: Factor
    feature: Feature

    def check(self) -> None:
        """Refuse what a factor cannot ask of its feature."""
        factor = self.factor
        bounds = self.feature.range
        if bounds is None:
            if factor.function is not None or factor.degree > 1 or not factor.centred:
                raise ValueError(
                    f"{factor.of!r} has levels: a function, a degree or centred goes with a range"
                )
        elif factor.every_level:
            raise ValueError(f"{factor.of!r} has a range: every_level goes with levels")
        else:
            check(factor.function, factor.of, bounds)
            check(factor.function, factor.of, self.feature.typical or bounds)

    @property
    def is_plain(self) -> bool:
        """Whether it is the feature itself, mapped."""
        return (
            self.factor.function is None and self.factor.degree == 1 and not self.factor.every_level
        )

    # Names.

    @property
    def symbol(self) -> str:
        """The variable of a numeric factor in the user's units."""
        return label(self.factor.function, self.factor.of)

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels that have a column, for a categorical factor."""
        return self.feature.all_levels[0 if self.factor.every_level else 1 :]

    @property
    def width(self) -> int:
        """Number of encoded columns."""
        return 1 if self.feature.range is not None else len(self.levels)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        centred = self.factor.centred and self.factor.degree > 1
        return (f"legendre({self.symbol}, {self.factor.degree})",) if centred else self.raw_columns

    @property
    def raw_columns(self) -> tuple[str, ...]:
        """Names of the same columns in the user's units: powers in place of polynomials."""
        if self.feature.range is None:
            return tuple(f"{self.factor.of}[{level}]" for level in self.levels)
        return (self.symbol if self.factor.degree == 1 else f"{self.symbol}^{self.factor.degree}",)

    @property
    def monomials(self) -> int:
        """Most monomials that a column is a sum of; a reference level is 1 less all others."""
        if self.feature.range is None:
            return len(self.feature.all_levels) if self.factor.every_level else 1
        return self.factor.degree + 1 if self.factor.centred else 1

    # Numbers, for a numeric factor unless said otherwise.

    @cached_property
    def typical(self) -> Bounds:
        """The (typical) range after the function."""
        return image(
            self.factor.function, self.feature.typical or self.feature.range or (-1.0, 1.0)
        )

    @cached_property
    def mapping(self) -> tuple[float, float]:
        """Middle and half-width of what is mapped to [−1, 1] (`mapping_of`)."""
        return mapping_of(self.typical, centred=self.factor.centred)

    @cached_property
    def limits(self) -> Bounds:
        """The range, mapped."""
        if self.feature.range is None or (self.factor.centred and self.feature.typical is None):
            return -1.0, 1.0
        low, high = image(self.factor.function, self.feature.range)
        middle, half = self.mapping
        return (low - middle) / half, (high - middle) / half

    @cached_property
    def longest(self) -> float:
        """Largest norm of the factor's columns, categorical ones included."""
        reach = max(map(abs, self.limits))
        degree = self.factor.degree
        if degree == 1 or not self.factor.centred:
            return reach**degree
        # Within [−1, 1] no |P_k| exceeds 1; outside it grows.
        return max(1.0, float(eval_legendre(degree, reach)))

    @cached_property
    def mean_square(self) -> float:
        """Mean square norm of the columns.

        The variable is spread evenly over its (typical) interval, or over its levels.
        """
        if self.feature.range is None:
            return len(self.levels) / len(self.feature.all_levels)
        power = 2 * self.factor.degree + 1
        if self.factor.centred:
            return 1 / power
        low, high = (end / self.mapping[1] for end in self.typical)
        return (high**power - low**power) / (power * (high - low))


@dataclass(frozen=True)
class Product:
    """A term with its features: columns of which at most one is not zero in a row."""

    parts: tuple[Part, ...]

    def check(self) -> None:
        """Refuse a term that cannot be encoded."""
        for part in self.parts:
            part.check()
        levels = [part.factor.of for part in self.parts if part.feature.range is None]
        if len(set(levels)) < len(levels):
            twice = max(levels, key=levels.count)
            raise ValueError(f"a term must not hold {twice!r} twice: it has levels")
        if self.monomials > MOST_MONOMIALS:
            raise ValueError(
                f"the term {self._first_column!r} expands to more than {MOST_MONOMIALS:,} "
                "monomials: lower its degrees, or use fewer factors"
            )
        if self.size > LONGEST_TERM:
            raise ValueError(
                f"the term {self._first_column!r} grows too large outside typical intervals: "
                "widen them, or lower its degree"
            )

    @property
    def _first_column(self) -> str:
        return ":".join(part.columns[0] for part in self.parts)

    @property
    def width(self) -> int:
        """Number of encoded columns."""
        return math.prod(part.width for part in self.parts)

    @property
    def is_typical(self) -> bool:
        """Whether it is one number whose typical interval is stated."""
        first, *others = self.parts
        return not others and first.is_plain and first.feature.typical is not None

    @property
    def monomials(self) -> int:
        """Most monomials in the user's columns that one of the encoded columns is a sum of."""
        return math.prod(part.monomials for part in self.parts)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return _crossed([part.columns for part in self.parts])

    @cached_property
    def raw_columns(self) -> tuple[str, ...]:
        """Names of the same columns in the user's units."""
        return _crossed([part.raw_columns for part in self.parts])

    @cached_property
    def size(self) -> float:
        """Largest entry, at which the encoder clamps."""
        return math.prod(part.longest for part in self.parts)

    @cached_property
    def longest(self) -> float:
        """Largest norm of the term's columns once they are rounded."""
        return on_grid(self.size)

    @cached_property
    def mean_square(self) -> float:
        """Mean square norm where features are spread evenly and independently."""
        return math.prod(part.mean_square for part in self.parts)


def _crossed(names: list[tuple[str, ...]]) -> tuple[str, ...]:
    """Names of a product's columns from those of its factors."""
    return tuple(map(":".join, itertools.product(*names)))


def products_of(features: tuple[Feature, ...], terms: tuple[Term, ...]) -> tuple[Product, ...]:
    """Every term with its features; without terms, each feature."""
    by_name = {feature.name: feature for feature in features}
    terms = terms or tuple(Term(product=(Factor(of=feature.name),)) for feature in features)
    return tuple(
        Product(tuple(Part(factor, by_name[factor.of]) for factor in term.product))
        for term in terms
    )
