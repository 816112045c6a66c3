"""Encoded columns as exact polynomials in the user's own columns: what coefficients mean there.

An encoded column is a product of polynomials of numeric variables and of levels' indicators, so it
is a sum of monomials such as age·sex[male]. The same holds for the columns that a formula names,
which are powers and products without any centring. Where every monomial of the encoded columns is
among (or a sum of) the named ones, coefficients change by a linear map; a monomial that is not
becomes one more, *implied*, coefficient. The reference level's indicator is written as 1 − Σ
others, and each variable is divided by its largest size, so that all numbers are near 1.
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
Array = NDArray[np.float64]

ONE: Sum = {(): 1.0}
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Basis:
    """Wanted columns are `matrix`.T times the named columns followed by the implied monomials."""

    implied: tuple[Monomial, ...]
    matrix: Array  # (named + implied, wanted)


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
    basis = _matrix(named, rows)
    target = _matrix(wanted, rows)
    left = _largest(target - basis @ _solve(basis, target))
    inside: NDArray[np.bool_] = left <= _TOLERANCE * _largest(target)
    return inside


def _largest(columns: Array) -> Array:
    """The largest size of an entry in each column."""
    sizes: Array = np.abs(columns).max(axis=0, initial=0.0)
    return sizes


def express(named: Sequence[Sum], wanted: Sequence[Sum]) -> Basis:
    """The wanted columns as sums of the named ones, and of as few more monomials as that takes."""
    inside = spanned(named, wanted)
    outside = [column for column, is_inside in zip(wanted, inside, strict=True) if not is_inside]
    implied: list[Monomial] = []
    for monomial in _rows(outside):
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


def _solve(basis: Array, target: Array) -> Array:
    """Least squares of sparse columns (rows are monomials).

    A basis column that is one monomial, a *pure* one, fits its row exactly whatever the others are;
    of several for one row the first does it. So only the mixed columns are solved for, on the rows
    without a pure one; each pure column then takes what they leave of its row.
    """
    pure = np.flatnonzero(np.count_nonzero(basis, axis=0) == 1)
    row_of_pure = np.abs(basis[:, pure]).argmax(axis=0)
    pure_rows, first = np.unique(row_of_pure, return_index=True)
    pure = pure[first]
    mixed = np.delete(np.arange(basis.shape[1]), pure)
    mixed_rows = np.delete(np.arange(basis.shape[0]), pure_rows)
    solution = np.zeros((basis.shape[1], target.shape[1]))
    if len(mixed) and len(mixed_rows):
        system = basis[np.ix_(mixed_rows, mixed)]
        solution[mixed] = np.linalg.lstsq(system, target[mixed_rows])[0]
    left = target[pure_rows] - basis[np.ix_(pure_rows, mixed)] @ solution[mixed]
    solution[pure] = left / basis[pure_rows, pure][:, None]
    return solution


def _rows(columns: Iterable[Sum]) -> list[Monomial]:
    """Every monomial that occurs, those of low degree first."""
    monomials = {monomial for column in columns for monomial in column}
    return sorted(monomials, key=lambda monomial: (sum(power for _, power in monomial), monomial))


def _matrix(columns: Sequence[Sum], rows: list[Monomial]) -> Array:
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
    line = Polynomial([-middle / half, _size(part) / half])
    degree = part.factor.degree
    legendre = Polynomial(leg2poly([0.0] * degree + [1.0]))
    curve = legendre(line) if part.factor.centred else line**degree
    terms = [(power, float(value)) for power, value in enumerate(curve.coef) if value != 0]
    return [{((part.symbol, power),) if power else (): value for power, value in terms}]


def _raw(part: Part) -> list[Sum]:
    if part.feature.range is None:
        return _levels(part)
    return [{((part.symbol, part.factor.degree),): 1.0}]


def _levels(part: Part) -> list[Sum]:
    """Indicators of levels that have a column; the reference's is what the others leave of 1."""
    reference, *others = part.feature.all_levels
    indicators: dict[str, Sum] = {
        level: {((f"{part.factor.of}[{level}]", 1),): 1.0} for level in others
    }
    present = [monomial for indicator in indicators.values() for monomial in indicator]
    indicators[reference] = ONE | dict.fromkeys(present, -1.0)
    return [indicators[level] for level in part.levels]
