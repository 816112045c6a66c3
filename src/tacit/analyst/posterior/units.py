r"""From scaled coefficients to the user's units, exactly.

The study maps every (typical) range to [−1, 1]: with x̃ = (x − c_x)/h_x and ỹ = (y − c_y)/h_y, the
scaled model ỹ = θ₀ + Σθ_k x̃_k says

    y = [c_y + h_y(θ₀ − Σ θ_k c_k/h_k)] + Σ (h_y θ_k/h_k) x_k,

and a term, a product of polynomials in such x̃, expands likewise into powers and products of the
x_k (expansion.py): with x̃ = Σ A_ik X_i for the user's own columns X, their coefficients are
h_y A θ. What the study does not estimate but its centring implies, such as a constant without an
intercept, is named so.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.study import Study
from tacit.study.expansion import ONE, Monomial, Sum, encoded, express, raw, sizes
from tacit.study.study import INTERCEPT
from tacit.study.terms import Product


@dataclass(frozen=True)
class Units:
    """Coefficients are `matrix` @ θ + `offset`; residual sds are multiplied by `response`."""

    names: tuple[str, ...]
    matrix: NDArray[np.float64]
    offset: NDArray[np.float64]
    response: float


def scaled_units(study: Study) -> Units:
    """The study's own units: nothing is changed."""
    return Units(
        names=study.columns, matrix=np.eye(study.d), offset=np.zeros(study.d), response=1.0
    )


def contrast_units(study: Study) -> Units:
    """The response's units: the top of a column's (typical) range against its bottom.

    A level is taken against the reference. A derived column's range is taken as [−1, 1], which
    products of centred columns and polynomials of odd degree fill.
    """
    _, response = study.response.mapping
    first = int(study.intercept)
    spans = np.array([_span(product) for product in study.products for _ in product.columns])
    matrix = np.zeros((study.d - first, study.d))
    matrix[:, first:] = response * np.diag(spans)
    return Units(
        names=study.columns[first:],
        matrix=matrix,
        offset=np.zeros(study.d - first),
        response=response,
    )


def _span(product: Product) -> float:
    return 2.0 if any(part.feature.range is not None for part in product.parts) else 1.0


def user_units(study: Study) -> Units:
    """The units in which the study's ranges are written.

    Coefficients of the columns, powers and products that its terms name.
    """
    centre, response = study.response.mapping
    columns = _columns(study)
    named = [column.raw for column in columns]
    wanted = [column.encoded for column in columns]
    constant: Sum = {(): centre} if centre else {}
    basis = express(named, [*wanted, constant])
    divisors = [column.size for column in columns]
    divisors += [_size(study, monomial) for monomial in basis.implied]
    matrix = basis.matrix / np.array(divisors)[:, None]
    matrix = np.roll(matrix, len(basis.implied), axis=0)  # what is implied comes first
    implied = [_name(monomial) for monomial in basis.implied]
    return Units(
        names=(*implied, *(column.name for column in columns)),
        matrix=response * matrix[:, :-1],
        offset=matrix[:, -1],
        response=response,
    )


class _Column(NamedTuple):
    """A coefficient's column as a formula names it, as the study encodes it, and its divisor."""

    name: str
    raw: Sum
    encoded: Sum
    size: float


def _columns(study: Study) -> list[_Column]:
    """Those of the study, in its order."""
    columns: list[_Column] = []
    if study.intercept:
        columns.append(_Column(name=INTERCEPT, raw=ONE, encoded=ONE, size=1.0))
    for term in study.products:
        parts = zip(term.raw_columns, raw(term), encoded(term), sizes(term), strict=True)
        columns += [
            _Column(name=name, raw=named, encoded=wanted, size=size)
            for name, named, wanted, size in parts
        ]
    return columns


def _name(monomial: Monomial) -> str:
    factors = [variable if power == 1 else f"{variable}^{power}" for variable, power in monomial]
    return f"({':'.join(factors) or 'intercept'}, implied)"


def _size(study: Study, monomial: Monomial) -> float:
    """By what a monomial was divided, variable by variable."""
    known = {
        part.symbol: max(map(abs, part.typical))
        for product in study.products
        for part in product.parts
    }
    return float(np.prod([known.get(variable, 1.0) ** power for variable, power in monomial]))
