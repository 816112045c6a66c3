"""A prior from the `[prior]` table of a TOML file.

Apart from `prior`, so that samplers can be run where there are NumPy, SciPy and jax alone.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tacit.analyst.posterior.units import Units, user_units
from tacit.analyst.prior import Prior, prior_named
from tacit.errors import PriorError
from tacit.records import explain
from tacit.study import Study

Array = NDArray[np.float64]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
SIZES = ("coefficient_sd",)
"""Fields that have no sign."""


class _PriorTable(BaseModel):
    """Fields left out come from the prior called `name`.

    Tables by column leave the other columns at its values. With `units = "user"` coefficients are
    stated in the units of the data, by their names there; what speaks of σ² stays scaled.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Literal["weak", "paper"] = "weak"
    units: Literal["scaled", "user"] = "scaled"
    coefficient_mean: Finite | dict[str, Finite] | None = None
    coefficient_sd: Positive | dict[str, Positive] | None = None
    noise_shape: Positive | None = None
    noise_rate: Positive | None = None
    feature_scale: Positive | None = None
    feature_degrees: Positive | None = None


def load_prior(path: str | Path, study: Study) -> Prior:
    """Read a prior for a study's encoded columns."""
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not valid TOML"
        raise PriorError(f"cannot read the prior {str(path)!r}: {reason}") from None
    if set(document) != {"prior"}:
        raise PriorError(f"{path}: a prior file holds one table, [prior]")
    return prior_from_table(document["prior"], study)


def prior_from_table(table: object, study: Study) -> Prior:
    """Build a prior from plain values."""
    try:
        fields = _PriorTable.model_validate(table)
    except ValidationError as error:
        raise PriorError(f"prior.{explain(error)}") from None
    base = prior_named(fields.name, study.d)
    if fields.units == "user":
        fields = _scaled(fields, study)
    columns = study.columns
    scale = fields.feature_scale
    own_features = scale is not None or fields.feature_degrees is not None
    sds = np.sqrt(np.diag(base.covariance))
    sds = _by_column("coefficient_sd", fields.coefficient_sd, sds, columns)
    prior = Prior(
        mean=_by_column("coefficient_mean", fields.coefficient_mean, base.mean, columns),
        covariance=np.diag(sds**2),
        shape=_given(fields.noise_shape, base.shape),
        rate=_given(fields.noise_rate, base.rate),
        feature_scale=base.feature_scale if scale is None else scale * np.eye(base.d),
        feature_degrees=_given(fields.feature_degrees, base.feature_degrees),
        flat_noise=base.flat_noise and fields.noise_shape is None and fields.noise_rate is None,
        by_spread=base.by_spread and fields.coefficient_sd is None,
        released_features=base.released_features and not own_features,
    )
    if prior.feature_degrees <= prior.d - 1:
        raise PriorError(f"prior.feature_degrees must exceed d − 1 = {prior.d - 1}")
    return prior


def _scaled(fields: _PriorTable, study: Study) -> _PriorTable:
    """The same prior with coefficients in scaled units."""
    units = user_units(study)
    scaled: dict[str, dict[str, float]] = {}
    for field in ("coefficient_mean", "coefficient_sd"):
        given = getattr(fields, field)
        if given is None:
            continue
        if not isinstance(given, Mapping):
            raise PriorError(
                f'prior.{field} must be a table by coefficient where units = "user": one number '
                "means another thing for each column's unit"
            )
        scaled[field] = {}
        for name, value in given.items():
            column, factor = _one_column(field, name, units)
            stated = value / factor
            scaled[field][study.columns[column]] = abs(stated) if field in SIZES else stated
    return fields.model_copy(update=scaled)


def _one_column(field: str, name: str, units: Units) -> tuple[int, float]:
    """The one scaled column that a coefficient is a multiple of, and the factor."""
    if name not in units.names:
        raise PriorError(
            f"prior.{field} names {name!r}, which is no coefficient in the data's units: "
            f"they are {', '.join(units.names)}"
        )
    place = units.names.index(name)
    row = units.matrix[place]
    (columns,) = np.nonzero(row)
    if len(columns) != 1 or units.offset[place]:
        raise PriorError(
            f"prior.{field} names {name!r}, which several scaled coefficients make up together: "
            'leave it out, or state the prior with units = "scaled"'
        )
    return int(columns[0]), float(row[columns[0]])


def _given(value: float | None, default: float) -> float:
    return default if value is None else value


def _by_column(
    field: str,
    given: float | Mapping[str, float] | None,
    default: Array,
    columns: tuple[str, ...],
) -> Array:
    if given is None:
        return default
    if not isinstance(given, Mapping):
        return np.full(len(columns), given)
    values = default.copy()
    for column, value in given.items():
        if column not in columns:
            raise PriorError(
                f"prior.{field} names {column!r}, which is no column of the study: "
                f"they are {', '.join(columns)}"
            )
        values[columns.index(column)] = value
    return values
