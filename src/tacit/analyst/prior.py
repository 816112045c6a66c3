r"""The prior, by name or from the `[prior]` table of a TOML file; all in the study's scaled units.

θ ~ N(m, C), σ² ~ IG(a, b) and, where a feature law is modelled, Σ ~ IW(Λ, κ). IG(a, b) has density
∝ s^{−a−1} e^{−b/s} and mean b/(a − 1); IW(Λ, κ) has mean Λ/(κ − d − 1).
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tacit.errors import PriorError
from tacit.records import explain

Array = NDArray[np.float64]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


@dataclass(frozen=True)
class Prior:
    """Prior of a regression with d columns."""

    mean: Array  # (d,): m
    covariance: Array  # (d, d): C
    shape: float  # a
    rate: float  # b
    feature_scale: Array  # (d, d): Λ
    feature_degrees: float  # κ
    flat_noise: bool = False  # σ² uniform instead, where y'y tells of it
    by_spread: bool = False  # C of slopes by the features' own spread instead, in `noise-aware`

    @property
    def d(self) -> int:
        """Number of columns."""
        return len(self.mean)

    @property
    def noise_variance(self) -> float:
        """Prior mean of σ², or b/a where the mean is infinite."""
        return self.rate / (self.shape - 1) if self.shape > 1 else self.rate / self.shape

    @classmethod
    def weak(cls, d: int) -> Self:
        """The default, weakly informative where response and features fill [−1, 1].

        A coefficient of 1 carries the response through its whole public range, so each has mean 0
        and sd 1. The residual variance has prior mean 0.1 (a residual sd of about a third of half
        the range) with the weight of four observations, and features have the variance 1/3 of a
        uniform law.
        """
        return cls(
            mean=np.zeros(d),
            covariance=np.eye(d),
            shape=2.0,
            rate=0.1,
            feature_scale=np.eye(d) / 3,
            feature_degrees=d + 2.0,
            flat_noise=True,
            by_spread=True,
        )

    @classmethod
    def paper(cls, d: int) -> Self:
        """The 2023 paper's: a = 20, b = 0.5, m = 0, C = b/(a − 1)·I, Λ = I, κ = d + 1."""
        return cls(
            mean=np.zeros(d),
            covariance=np.eye(d) * 0.5 / 19,
            shape=20.0,
            rate=0.5,
            feature_scale=np.eye(d),
            feature_degrees=d + 1.0,
        )


class _PriorTable(BaseModel):
    """Fields left out come from the prior called `name`.

    Tables by column leave the other columns at its values.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Literal["weak", "paper"] = "weak"
    coefficient_mean: Finite | dict[str, Finite] | None = None
    coefficient_sd: Positive | dict[str, Positive] | None = None
    noise_shape: Positive | None = None
    noise_rate: Positive | None = None
    feature_scale: Positive | None = None
    feature_degrees: Positive | None = None


def load_prior(path: str | Path, columns: tuple[str, ...]) -> Prior:
    """Read a prior for the given encoded columns."""
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not valid TOML"
        raise PriorError(f"cannot read the prior {str(path)!r}: {reason}") from None
    if set(document) != {"prior"}:
        raise PriorError(f"{path}: a prior file holds one table, [prior]")
    return prior_from_table(document["prior"], columns)


def prior_from_table(table: object, columns: tuple[str, ...]) -> Prior:
    """Build a prior from plain values."""
    try:
        fields = _PriorTable.model_validate(table)
    except ValidationError as error:
        raise PriorError(f"prior.{explain(error)}") from None
    base = prior_named(fields.name, len(columns))
    scale = fields.feature_scale
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
    )
    if prior.feature_degrees <= prior.d - 1:
        raise PriorError(f"prior.feature_degrees must exceed d − 1 = {prior.d - 1}")
    return prior


def prior_named(name: str, d: int) -> Prior:
    """One of the priors that have a name."""
    named = {"weak": Prior.weak, "paper": Prior.paper}
    if name not in named:
        raise PriorError(
            f"prior must be one of {', '.join(named)}, or a file with a [prior] table; got {name!r}"
        )
    return named[name](d)


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
