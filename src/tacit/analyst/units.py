r"""From scaled coefficients to the user's units, exactly.

The study maps every (typical) range to [−1, 1]: with x̃ = (x − c_x)/h_x and ỹ = (y − c_y)/h_y, the scaled model ỹ = θ₀ + Σθ_k x̃_k says

    y = [c_y + h_y(θ₀ − Σ θ_k c_k/h_k)] + Σ (h_y θ_k/h_k) x_k.

A level's column is 0 or 1 in both, so it has c = 0, h = 1. Without an intercept in the study the bracket still holds
with θ₀ = 0: the constant is then implied, not estimated.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.study import Study

IMPLIED = "(intercept, implied)"


@dataclass(frozen=True)
class Units:
    """Coefficients in the user's units are `matrix` @ θ + `offset`; residual sds are multiplied by `response`."""

    names: tuple[str, ...]
    matrix: NDArray[np.float64]
    offset: NDArray[np.float64]
    response: float


def scaled_units(study: Study) -> Units:
    """The study's own units: nothing is changed."""
    return Units(study.columns, np.eye(study.d), np.zeros(study.d), 1.0)


def contrast_units(study: Study) -> Units:
    """The response's units: the top of a feature's (typical) range against its bottom, a level against the reference."""
    _, response = study.response.mapping
    first = int(study.intercept)
    spans = np.array([2.0 if feature.levels is None else 1.0 for feature in study.features for _ in feature.columns])
    matrix = np.zeros((study.d - first, study.d))
    matrix[:, first:] = response * np.diag(spans)
    return Units(study.columns[first:], matrix, np.zeros(study.d - first), response)


def user_units(study: Study) -> Units:
    """The units in which the study's ranges are written."""
    centre, response = study.response.mapping
    middles = np.zeros(study.d)
    halves = np.ones(study.d)
    row = int(study.intercept)
    for feature in study.features:
        if feature.range is not None:
            middles[row], halves[row] = feature.mapping
        row += len(feature.columns)
    slopes = response * np.diag(1 / halves)
    constant = -response * middles / halves
    if study.intercept:
        constant[0] = response
        slopes[0] = constant
        return Units(study.columns, slopes, np.concatenate([[centre], np.zeros(study.d - 1)]), response)
    matrix = np.vstack([constant, slopes])
    return Units((IMPLIED, *study.columns), matrix, np.concatenate([[centre], np.zeros(study.d)]), response)
