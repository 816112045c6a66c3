"""Comparisons: what is said of a feature, as the difference between two cases otherwise alike.

A feature that stands by itself, in no product and as a straight line, has one slope, and so one
comparison: the top of its (typical) range against the bottom, or a level against the reference. In
a product the difference depends on the other features, of which a few cases are taken; along a
curve the bottom, the middle and the top of the range are compared. Each is exact: it is
h_y (x₁ − x₂)'θ for the encoded rows x₁ and x₂ of the two cases.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.analyst.posterior.units import Units
from tacit.page.numbers import exact, listed
from tacit.rows.design import Design
from tacit.study import Study
from tacit.study.columns import Feature

Value = float | str
Case = dict[str, Value]

MOST_CASES = 8
"""Cases of other features for which a feature is compared."""


@dataclass(frozen=True)
class Comparison:
    """A feature at `top` against `bottom`.

    `held` says where other features are if not as usual, `where` says it in words.
    """

    feature: Feature
    bottom: Value
    top: Value
    is_straight: bool
    held: tuple[tuple[str, Value], ...] = ()
    where: str = ""  # nothing if the difference is the same everywhere

    @property
    def has_slope(self) -> bool:
        """Whether the response goes along a straight line from one to the other."""
        return self.feature.range is not None and self.is_straight

    @property
    def ends(self) -> tuple[str, str]:
        """What is compared: from and to."""
        return _word(self.bottom), _word(self.top)

    @property
    def is_zero_to_one(self) -> bool:
        """Whether 0 and 1 are compared, as of answers and shares: no step of that says more."""
        return self.ends == ("0", "1") and self.feature.unit is None

    @property
    def contrast(self) -> str:
        """What is compared, for a label."""
        bottom, top = self.ends
        unit = "" if self.feature.unit is None else f" {self.feature.unit}"
        return f"{self.feature.shown}: {top} against {bottom}{unit}"

    @property
    def label(self) -> str:
        """What is compared and where, for a row of its own."""
        return f"{self.contrast} {self.where}".rstrip()

    @property
    def name(self) -> str:
        """The feature, with its level or, on a curve, its ends, and where."""
        bottom, top = self.ends
        name = self.feature.shown
        if self.feature.range is None:
            name += f" {top}"
        elif not self.is_straight:
            name += f" {top} against {bottom}"
        return f"{name} ({self.where})" if self.where else name

    @property
    def step(self) -> float:
        """A round step of a numeric feature, of which its (typical) range has ten or more."""
        low, high = _bounds(self.feature)
        return float(10.0 ** math.floor(math.log10((high - low) / 10)))


def comparisons(study: Study) -> list[Comparison]:
    """Those of every feature."""
    return [
        Comparison(
            feature=feature,
            bottom=bottom,
            top=top,
            is_straight=_is_straight(study, feature),
            held=held,
            where=where,
        )
        for feature in study.features
        for held, where in _cases(study, _partners(study, feature))
        for bottom, top in _pairs(study, feature)
    ]


def comparison_units(study: Study, compared: Sequence[Comparison]) -> Units:
    """The response's units: one row for each comparison."""
    _, response = study.response.mapping
    cases = [
        usual(study) | dict(c.held) | {c.feature.name: end}
        for c in compared
        for end in (c.bottom, c.top)
    ]
    rows = _encoded(study, cases)
    return Units(
        names=tuple(c.label for c in compared),
        matrix=response * (rows[1::2] - rows[::2]),
        offset=np.zeros(len(compared)),
        response=response,
    )


def usual(study: Study) -> Case:
    """The middle of every range, and reference levels."""
    return {f.name: f.mapping[0] if f.levels is None else f.all_levels[0] for f in study.features}


def _encoded(study: Study, cases: Sequence[Case]) -> NDArray[np.float64]:
    """Rows of the design, (case, d)."""
    if not cases:
        return np.empty((0, study.d))
    batch = pa.RecordBatch.from_pylist([dict(case) for case in cases])
    [block] = Design(study, response=False).blocks(batch, len(cases))
    return block.T


def _word(value: Value) -> str:
    return exact(value) if isinstance(value, float) else value


def _bounds(feature: Feature) -> tuple[float, float]:
    return feature.typical or feature.range or (0.0, 1.0)


# What a feature is compared at.


def _is_straight(study: Study, feature: Feature) -> bool:
    """Whether it enters every term once, as it is; levels always do."""
    for term in study.products:
        factors = [part.factor for part in term.parts if part.factor.of == feature.name]
        if len(factors) > 1:
            return False
        if any(factor.degree != 1 or factor.function is not None for factor in factors):
            return False
    return True


def _points(study: Study, feature: Feature) -> tuple[Value, ...]:
    """Values that stand for a feature: its levels, or the ends of its (typical) range.

    Of a curve the middle too.
    """
    if feature.range is None:
        return feature.all_levels
    low, high = map(float, _bounds(feature))
    return (low, high) if _is_straight(study, feature) else (low, feature.mapping[0], high)


def _pairs(study: Study, feature: Feature) -> list[tuple[Value, Value]]:
    """Bottom and top of each comparison: from point to point, or from reference to level."""
    points = _points(study, feature)
    if feature.range is not None:
        return list(itertools.pairwise(points))
    return [(points[0], level) for level in points[1:]]


def _partners(study: Study, feature: Feature) -> list[Feature]:
    """Features that stand in a product with it."""
    named = [{part.factor.of for part in term.parts} for term in study.products]
    together = {name for names in named if feature.name in names for name in names} - {feature.name}
    return [other for other in study.features if other.name in together]


def _cases(
    study: Study, partners: list[Feature]
) -> list[tuple[tuple[tuple[str, Value], ...], str]]:
    """What is held of the other features, and that in words.

    Each with each or, where these are too many, one away from usual.
    """
    points = {partner.name: _points(study, partner) for partner in partners}
    if math.prod(map(len, points.values())) <= MOST_CASES:
        combinations = itertools.product(*points.values())
        every = [tuple(zip(points, values, strict=True)) for values in combinations]
        return [(held, _where(held)) for held in every]
    middle = usual(study)
    changes = [
        ((name, value),)
        for name, values in points.items()
        for value in values
        if value != middle[name]
    ]
    single = [(held, f"{_where(held)}, otherwise as usual") for held in changes]
    return [((), "in the usual case"), *single[: MOST_CASES - 1]]


def _where(held: tuple[tuple[str, Value], ...]) -> str:
    return "where " + listed([f"{name} is {_word(value)}" for name, value in held]) if held else ""
