"""One factor of a formula: `age`, `C(sex)`, `poly(bmi, 2)`, `I(age^2)`, `log(income)`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from tacit.errors import StudyError
from tacit.study.columns import Feature
from tacit.study.grammar import Call, Chain, Name, Node, Number
from tacit.study.terms import MOST_DEGREE, MOST_FACTORS, Factor
from tacit.study.transforms import FUNCTIONS

SUPPORTED = (
    f"columns, C(column), poly(column, degree), I(column**power) with powers to {MOST_DEGREE}, "
    f"products of columns by ':' or '*', and {', '.join(FUNCTIONS)} of a column"
)
TRUTHS = {"TRUE", "FALSE", "True", "False", "T", "F"}
Features = Mapping[str, Feature]
Column = tuple[Factor, ...]
"""A product of our factors: one column of a numeric factor, or all columns of levels."""


@dataclass(frozen=True)
class Atom:
    """A factor of a formula as the columns that it stands for, and how it was written."""

    columns: tuple[Column, ...]
    text: str = field(compare=False)

    def is_categorical(self, features: Features) -> bool:
        """Whether it has levels."""
        return features[self.columns[0][0].of].range is None

    def columns_with(self, *, every_level: bool) -> tuple[Column, ...]:
        """The columns, that of the reference level among them or not."""
        if not every_level:
            return self.columns
        [[factor]] = self.columns
        return ((factor.model_copy(update={"every_level": True}),),)


def atom_of(node: Node, features: Features) -> Atom:
    """The columns of one factor."""
    columns = None
    if isinstance(node, Call) and node.function == "poly":
        columns = _poly(node, features)
    else:
        column = _column(node, features)
        columns = None if column is None else (column,)
    if columns is None:
        _refuse(node, features)
    return Atom(columns, node.text)


def response_of(left: Node, features: Features, formula: str) -> tuple[str, str | None]:
    """Name and function of the response."""
    if isinstance(left, Chain | Number):
        raise StudyError(
            f"formula: {formula[:200]!r} must have one response, "
            "a column or a function of one, left of '~'"
        )
    columns = atom_of(left, features).columns
    [factor, *others] = columns[0]
    if len(columns) > 1 or others or factor.degree > 1:
        raise StudyError(
            f"formula: the response {left.text!r} is not supported; "
            f"give a column, or one of {', '.join(FUNCTIONS)} of a column"
        )
    if features[factor.of].range is None:
        raise StudyError(f"formula: the response {factor.of!r} must have a range, not levels")
    return factor.of, factor.function


def _refuse(node: Node, features: Features) -> NoReturn:
    if isinstance(node, Name):
        raise StudyError(
            f"formula: {node.name[:100]!r} is not among the columns, "
            f"which are {', '.join(features)}: give it a range or levels"
        )
    raise StudyError(
        f"formula: {node.text[:100]!r} is not supported; a formula is made of {SUPPORTED}"
    )


def _poly(call: Call, features: Features) -> tuple[Column, ...] | None:
    """Degrees 1 to k of one variable.

    `raw` changes the basis, not what it spans, and ours is neither R's nor the powers.
    """
    options = dict(call.options)
    raw = options.pop("raw", None)
    if not call.arguments or (raw is not None and not _is_truth(raw)):
        return None
    variable, *rest = call.arguments
    degrees = [*rest, *([options.pop("degree")] if "degree" in options else [])]
    factor = _variable(variable, features)
    degree = _degree(*degrees) if len(degrees) < 2 else None  # noqa: PLR2004
    if factor is None or degree is None or options or not _is_numeric(factor, features):
        return None
    return tuple((factor.model_copy(update={"degree": k}),) for k in range(1, degree + 1))


def _is_truth(node: Node) -> bool:
    return isinstance(node, Name) and node.name in TRUTHS


def _degree(node: Node = Number("1")) -> int | None:  # noqa: B008 - frozen
    """A whole number from 1 to the highest degree."""
    if not isinstance(node, Number) or not node.text.isdigit():
        return None
    degree = int(node.text[:3])  # however long the text is: three digits are too many already
    return degree if 1 <= degree <= MOST_DEGREE else None


def _is_numeric(factor: Factor, features: Features) -> bool:
    return features[factor.of].range is not None


def _column(node: Node, features: Features) -> Column | None:
    """A variable, or I() around a product of powers of numeric ones."""
    if isinstance(node, Call) and node.function == "I":
        if len(node.arguments) != 1 or node.options:
            return None
        return _power_product(node.arguments[0], features)
    factor = _variable(node, features)
    return None if factor is None else (factor,)


def _power_product(node: Node, features: Features) -> Column | None:
    """A variable, a power of one, or a product of such, all of them numeric."""
    if isinstance(node, Chain) and node.rest[0][0] in "*/" and node.first is not None:
        if any(mark == "/" for mark, _ in node.rest) or len(node.rest) >= MOST_FACTORS:
            return None
        sides = [
            _power_product(side, features) for side in (node.first, *(n for _, n in node.rest))
        ]
        product = [factor for side in sides if side is not None for factor in side]
        return None if None in sides or len(product) > MOST_FACTORS else tuple(product)
    if isinstance(node, Chain) and node.rest[0][0] == "^" and node.first is not None:
        factor = _variable(node.first, features)
        degree = _degree(node.rest[0][1])
    else:
        factor = _variable(node, features)
        degree = 1
    if factor is None or degree is None:
        return None
    if not _is_numeric(factor, features):
        return (factor,) if isinstance(node, Name) and degree == 1 else None
    return (factor.model_copy(update={"degree": degree}),)


def _variable(node: Node, features: Features) -> Factor | None:
    """A column, C() of a categorical one, or a function of a numeric one."""
    if isinstance(node, Name):
        return Factor(of=node.name) if node.name in features else None
    if not isinstance(node, Call) or len(node.arguments) != 1 or node.options:
        return None
    [argument] = node.arguments
    if not isinstance(argument, Name) or argument.name not in features:
        return None
    factor = Factor(of=argument.name)
    is_numeric = _is_numeric(factor, features)
    if node.function == "C":
        return None if is_numeric else factor
    if node.function not in FUNCTIONS or not is_numeric:
        return None
    return factor.model_copy(update={"function": node.function})
