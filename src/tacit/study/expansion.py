r"""Encoded columns as polynomials in the user's own columns, exactly: what coefficients mean in the user's units.

An encoded column is a product of polynomials of numeric variables and of levels' indicators, so it is a sum of monomials such as
age·sex[male]. The same holds for the columns that a formula names, which are powers and products without any centring. Where every
monomial of the encoded columns is among (or a sum of) the named ones, coefficients change by a linear map; a monomial that is not
becomes one more, *implied*, coefficient. The reference level's indicator is written as 1 − Σ others, and each variable is divided
by its largest size, so that all numbers are near 1.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import Polynomial
from numpy.polynomial.legendre import leg2poly
from numpy.typing import NDArray

from tacit.study.terms import Part, Product

Monomial = tuple[tuple[str, int], ...]
"""Variables with their powers, sorted; () is the constant."""
Sum = dict[Monomial, float]

ONE: Sum = {(): 1.0}
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Basis:
    """Encoded columns (and others asked for) are `matrix`.T times the named columns followed by the implied monomials."""

    implied: tuple[Monomial, ...]
    matrix: NDArray[np.float64]  # (named + implied, encoded)


def encoded(product: Product) -> list[Sum]:
    """A term's encoded columns in divided variables."""
    return _products([_encoded(part) for part in product.parts])


def raw(product: Product) -> list[Sum]:
    """The same columns as a formula names them: powers and products, nothing centred."""
    return _products([_raw(part) for part in product.parts])


def sizes(product: Product) -> list[float]:
    """By what each raw column was divided."""
    size = math.prod(
        _size(part) ** part.factor.degree
        for part in product.parts
        if part.feature.range is not None
    )
    return [size] * len(product.columns)


def spanned(named: Sequence[Sum], wanted: Sequence[Sum]) -> NDArray[np.bool_]:
    """Which of the wanted columns are sums of the named ones."""
    rows = _rows([*named, *wanted])
    basis, target = _matrix(named, rows), _matrix(wanted, rows)
    left = target - basis @ _solve(basis, target)
    inside: NDArray[np.bool_] = np.abs(left).max(axis=0, initial=0.0) <= _TOLERANCE * np.abs(
        target
    ).max(axis=0, initial=0.0)
    return inside


def express(named: Sequence[Sum], wanted: Sequence[Sum]) -> Basis:
    """The wanted columns as sums of the named ones, and of as few more monomials as that takes."""
    implied: list[Monomial] = []
    for monomial in _rows(
        [
            column
            for column, inside in zip(wanted, spanned(named, wanted), strict=True)
            if not inside
        ]
    ):
        extended = [*named, *({each: 1.0} for each in implied)]
        if spanned(extended, wanted).all():
            break
        if not spanned(extended, [{monomial: 1.0}])[0]:
            implied.append(monomial)
    columns = [*named, *({each: 1.0} for each in implied)]
    rows = _rows([*columns, *wanted])
    matrix = _solve(_matrix(columns, rows), _matrix(wanted, rows))
    matrix[np.abs(matrix) < _TOLERANCE * np.abs(matrix).max(initial=0.0)] = 0.0
    return Basis(tuple(implied), matrix)


def _solve(basis: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Least squares; a column that is one monomial takes what is left of its row, so that few columns remain to be solved for."""
    alone = np.flatnonzero(np.count_nonzero(basis, axis=0) == 1)
    rows, first = np.unique(np.abs(basis[:, alone]).argmax(axis=0), return_index=True)
    alone = alone[first]
    others, open_rows = (
        np.delete(np.arange(basis.shape[1]), alone),
        np.delete(np.arange(basis.shape[0]), rows),
    )
    solution = np.zeros((basis.shape[1], target.shape[1]))
    if len(others) and len(open_rows):
        solution[others] = np.linalg.lstsq(basis[np.ix_(open_rows, others)], target[open_rows])[0]
    left = target[rows] - basis[np.ix_(rows, others)] @ solution[others]
    solution[alone] = left / basis[rows, alone][:, None]
    return solution


def _rows(columns: Iterable[Sum]) -> list[Monomial]:
    """Every monomial that occurs, those of low degree first."""
    found = {monomial for column in columns for monomial in column}
    return sorted(found, key=lambda monomial: (sum(power for _, power in monomial), monomial))


def _matrix(columns: Sequence[Sum], rows: list[Monomial]) -> NDArray[np.float64]:
    place = {monomial: row for row, monomial in enumerate(rows)}
    matrix = np.zeros((len(rows), len(columns)))
    for k, column in enumerate(columns):
        for monomial, value in column.items():
            matrix[place[monomial], k] = value
    return matrix


# Polynomials.


def _products(factors: list[list[Sum]]) -> list[Sum]:
    columns = [ONE]
    for factor in factors:
        columns = [_times(column, other) for column in columns for other in factor]
    return columns


def _times(first: Sum, second: Sum) -> Sum:
    total: Sum = {}
    for left, a in first.items():
        for right, b in second.items():
            monomial = _joined(left, right)
            total[monomial] = total.get(monomial, 0.0) + a * b
    return total


def _joined(first: Monomial, second: Monomial) -> Monomial:
    powers = dict(first)
    for variable, power in second:
        powers[variable] = powers.get(variable, 0) + power
    return tuple(sorted(powers.items()))


def _size(part: Part) -> float:
    return max(map(abs, part.typical))


def _encoded(part: Part) -> list[Sum]:
    if part.feature.range is None:
        return _levels(part)
    middle, half = part.mapping
    line, degree = Polynomial([-middle / half, _size(part) / half]), part.factor.degree
    curve = (
        Polynomial(leg2poly([0.0] * degree + [1.0]))(line) if part.factor.centred else line**degree
    )
    return [
        {
            ((part.symbol, power),) if power else (): float(value)
            for power, value in enumerate(curve.coef)
            if value != 0
        }
    ]


def _raw(part: Part) -> list[Sum]:
    return (
        _levels(part)
        if part.feature.range is None
        else [{((part.symbol, part.factor.degree),): 1.0}]
    )


def _levels(part: Part) -> list[Sum]:
    """Indicators of the levels that have a column; that of the reference is what the others leave of 1."""
    reference, *others = part.feature.all_levels
    indicators: dict[str, Sum] = {
        level: {((f"{part.factor.of}[{level}]", 1),): 1.0} for level in others
    }
    indicators[reference] = ONE | {
        monomial: -1.0 for each in list(indicators.values()) for monomial in each
    }
    return [indicators[level] for level in part.levels]
