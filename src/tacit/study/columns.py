"""The columns of a study: response and features, and how each becomes numbers of a public range."""

from typing import Annotated, Any, Self

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from tacit.records import Finite, Name, Record, at_most
from tacit.study.grid import mapping_of, on_grid
from tacit.study.transforms import FunctionName, check, image, label

MOST_STRETCH = 1e4
"""How many times wider than its typical interval a range may be."""
MOST_LEVELS = 513
"""Most levels that are listed: all but one become a column, of which there are 512 at most."""
Range = tuple[Finite, Finite]


def _increasing(field: str, bounds: Range) -> None:
    low, high = bounds
    if not high - low > max(1e-9 * max(abs(low), abs(high)), 1e-150):
        raise ValueError(f"{field} must be [low, high] with low clearly below high")


class Described(Record):
    """A column with a name of its own for people to read, and the unit it is measured in."""

    name: Name
    label: Name | None = None
    unit: Name | None = None

    @property
    def shown(self) -> str:
        """What reports and charts call it."""
        return self.label or self.name

    @property
    def measured(self) -> str:
        """The same with its unit, for the title of an axis."""
        return self.shown if self.unit is None else f"{self.shown} ({self.unit})"

    @model_serializer(mode="wrap")
    def _brief(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without what was not said: a study has the hash that it had before it could be."""
        unsaid = self._usual
        return {
            name: value
            for name, value in handler(self).items()
            if name not in unsaid or value != unsaid[name]
        }

    @property
    def _usual(self) -> dict[str, Any]:
        return {"label": None, "unit": None}


class Response(Described):
    """The response and its public range, which is mapped to [−1, 1], perhaps after a function.

    Not `centred`, it is divided by its largest size instead: for a model without a constant, which
    would have to be zero at zero.
    """

    range: Annotated[Range, Field(strict=False)]
    function: FunctionName | None = None
    centred: bool = True

    @model_validator(mode="after")
    def _check(self) -> Self:
        _increasing("range", self.range)
        check(self.function, self.name, self.range)
        return self

    @property
    def _usual(self) -> dict[str, Any]:
        return super()._usual | {"function": None, "centred": True}

    @property
    def modelled(self) -> str:
        """What is modelled: the response, or its function."""
        return label(self.function, self.name)

    @property
    def shown(self) -> str:
        """What reports and charts call what is modelled."""
        return label(self.function, super().shown)

    @property
    def mapping(self) -> tuple[float, float]:
        """Middle and half-width of what is mapped to [−1, 1]."""
        return mapping_of(image(self.function, self.range), centred=self.centred)

    @property
    def limits(self) -> tuple[float, float]:
        """The range, mapped."""
        if self.centred:
            return -1.0, 1.0
        low, high = image(self.function, self.range)
        return low / self.mapping[1], high / self.mapping[1]


class Feature(Described):
    """A numeric feature with a public `range`, or a categorical one with public `levels`.

    `typical`, the interval that most values lie in, is what is mapped to [−1, 1] where it is given;
    values are still clamped at the range, and a row that an outlier makes long is shrunk, not
    clipped. The first level is the reference; a level outside the list is an error unless `other`
    names the level that takes it.
    """

    range: Annotated[Range, Field(strict=False)] | None = None
    typical: Annotated[Range, Field(strict=False)] | None = None
    levels: (
        Annotated[
            tuple[Name, ...], Field(strict=False, max_length=MOST_LEVELS), at_most(MOST_LEVELS)
        ]
        | None
    ) = None
    other: Name | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.range is None) == (self.levels is None):
            raise ValueError("give exactly one of range (numeric) and levels (categorical)")
        if self.range is not None:
            _increasing("range", self.range)
        if self.typical is not None:
            self._check_typical(self.typical)
        if self.other is not None and self.levels is None:
            raise ValueError("other goes with levels")
        if self.levels is not None and (
            len(self.all_levels) < 2 or len(set(self.levels)) < len(self.levels)  # noqa: PLR2004
        ):
            raise ValueError("levels must be at least two different names (other counts as one)")
        return self

    def _check_typical(self, typical: Range) -> None:
        _increasing("typical", typical)
        if (
            self.range is None
            or not self.range[0] <= typical[0] < typical[1] <= self.range[1]
            or self.longest > MOST_STRETCH
        ):
            raise ValueError(
                "typical must lie inside the range of a numeric feature, "
                f"which may be {MOST_STRETCH:g} times as wide at most"
            )

    @property
    def mapping(self) -> tuple[float, float]:
        """Middle and half-width of what is mapped to [−1, 1], for a numeric feature."""
        return mapping_of(self.typical or self.range or (-1.0, 1.0))

    @property
    def limits(self) -> tuple[float, float]:
        """The range, mapped: [−1, 1] unless `typical` is narrower."""
        if self.typical is None or self.range is None:
            return -1.0, 1.0
        middle, half = self.mapping
        return (self.range[0] - middle) / half, (self.range[1] - middle) / half

    @property
    def longest(self) -> float:
        """Largest norm of the feature's encoded columns once they are rounded."""
        return on_grid(max(map(abs, self.limits)))

    @property
    def all_levels(self) -> tuple[str, ...]:
        """Every level, `other` last where it is one of its own; the first is the reference."""
        levels = self.levels or ()
        return levels if self.other is None or self.other in levels else (*levels, self.other)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the encoded columns: the feature itself, or each level but the reference."""
        if self.levels is None:
            return (self.name,)
        return tuple(f"{self.name}[{level}]" for level in self.all_levels[1:])
