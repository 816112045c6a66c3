"""Posterior: what an analyst holds after a fit, in scaled or in the user's units."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from tacit.analyst.method import Draws, Outcome, Student
from tacit.analyst.units import Units, scaled_units, user_units
from tacit.errors import PosteriorError
from tacit.study import Study

if TYPE_CHECKING:
    from xarray import DataTree

    from tacit.analyst.summary import Summary

Array = NDArray[np.float64]
UnitsName = Literal["user", "scaled"]


@dataclass(frozen=True)
class Contribution:
    """What one holder brought: its name, n where it is known, and its budget."""

    holder: str
    n: float | None
    epsilon: float
    delta: float


@dataclass(frozen=True)
class Posterior:
    """Posterior of the coefficients θ and the residual variance σ², by one method.

    Every reading takes `units`: "user" for those of the study's ranges, "scaled" for the study's own [−1, 1].
    """

    study: Study
    method: str
    outcome: Outcome
    contributions: tuple[Contribution, ...]
    caveat: str = ""
    seed: int | None = None
    warmup: int | None = None

    @cached_property
    def _units(self) -> dict[str, Units]:
        return {"user": user_units(self.study), "scaled": scaled_units(self.study)}

    def units(self, name: UnitsName) -> Units:
        """The map from θ to the coefficients in those units."""
        if name not in self._units:
            message = f"units must be user or scaled; got {name!r}"
            raise PosteriorError(message)
        return self._units[name]

    def names(self, units: UnitsName = "user") -> tuple[str, ...]:
        """Names of the coefficients."""
        return self.units(units).names

    def draws(self, units: UnitsName = "user") -> Array:
        """Coefficients with axes (chain, draw, coefficient); for a sampler's posterior only."""
        if not isinstance(self.outcome, Draws):
            message = f"{self.method} has a closed form: use mean, covariance and interval, or sample()"
            raise PosteriorError(message)
        to = self.units(units)
        return self.outcome.theta @ to.matrix.T + to.offset

    def sample(self, count: int, rng: np.random.Generator, units: UnitsName = "user") -> Array:
        """Independent coefficients (count, coefficient): from the closed form, or at random among the draws."""
        if isinstance(self.outcome, Draws):
            flat = self._flat(units)
            return flat[rng.integers(len(flat), size=count)]
        if self.outcome.scale is None:
            raise PosteriorError(_NO_POSTERIOR.format(self.method))
        to = self.units(units)
        root = np.linalg.cholesky(self.outcome.scale)
        normal = rng.standard_normal((count, self.study.d)) @ root.T
        if np.isfinite(self.outcome.degrees):
            normal /= np.sqrt(rng.chisquare(self.outcome.degrees, count) / self.outcome.degrees)[:, None]
        return (self.outcome.location + normal) @ to.matrix.T + to.offset

    def mean(self, units: UnitsName = "user") -> Array:
        """Posterior mean (or the point estimate)."""
        to = self.units(units)
        theta = self.outcome.theta.mean(axis=(0, 1)) if isinstance(self.outcome, Draws) else self.outcome.location
        mean: Array = to.matrix @ theta + to.offset
        return mean

    def covariance(self, units: UnitsName = "user") -> Array:
        """Posterior covariance; NaN for a point estimate, infinite where it does not exist."""
        to = self.units(units)
        covariance: Array = to.matrix @ self._theta_covariance() @ to.matrix.T
        return covariance

    def sd(self, units: UnitsName = "user") -> Array:
        """Posterior standard deviation."""
        return np.sqrt(np.diag(self.covariance(units)))

    def correlation(self, units: UnitsName = "user") -> Array:
        """Posterior correlation."""
        sd = self.sd(units)
        correlation: Array = self.covariance(units) / np.outer(sd, sd)
        return correlation

    def interval(self, probability: float = 0.9, units: UnitsName = "user") -> Array:
        """Equal-tailed credible intervals, (coefficient, 2)."""
        if not 0 < probability < 1:
            message = f"an interval's probability must lie between 0 and 1; got {probability}"
            raise PosteriorError(message)
        tails = [(1 - probability) / 2, (1 + probability) / 2]
        if isinstance(self.outcome, Draws):
            return np.quantile(self._flat(units), tails, axis=0).T
        to = self.units(units)
        scale = np.full((self.study.d, self.study.d), np.nan) if self.outcome.scale is None else self.outcome.scale
        width = np.sqrt(np.diag(to.matrix @ scale @ to.matrix.T))
        quantile = ndtri(tails[1]) if np.isinf(self.outcome.degrees) else stdtrit(self.outcome.degrees, tails[1])
        mean = self.mean(units)
        return np.stack([mean - quantile * width, mean + quantile * width], axis=1)

    def residual_sd(self, units: UnitsName = "user") -> float:
        """Posterior mean of σ (for a closed form √ of the σ² it used), in the response's units."""
        variance = self.outcome.noise_variance
        return float(np.sqrt(variance).mean()) * self.units(units).response

    def summary(self, probability: float = 0.9, units: UnitsName = "user") -> "Summary":
        """Table of coefficients with a verdict in plain words."""
        from tacit.analyst.summary import summarise

        return summarise(self, probability, units)

    def to_arviz(self, units: UnitsName = "user", draws: int = 4000) -> "DataTree":
        """The posterior as ArviZ takes it; a closed form is sampled."""
        from tacit.analyst.arviz import to_arviz

        return to_arviz(self, units, draws)

    def save(self, path: str | Path) -> None:
        """Write one Parquet file: draws in columns, everything else as JSON in its metadata."""
        from tacit.analyst.storage import save

        save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote."""
        from tacit.analyst.storage import load

        return load(cls, Path(path))

    def _flat(self, units: UnitsName) -> Array:
        draws = self.draws(units)
        return draws.reshape(-1, draws.shape[-1])

    def _theta_covariance(self) -> Array:
        outcome, d = self.outcome, self.study.d
        if isinstance(outcome, Draws):
            return np.cov(outcome.theta.reshape(-1, d), rowvar=False).reshape(d, d)
        if outcome.scale is None:
            return np.full((d, d), np.nan)
        return outcome.scale * _student_variance(outcome)


def _student_variance(outcome: Student) -> float:
    """Variance of a standard Student law."""
    nu = outcome.degrees
    return 1.0 if np.isinf(nu) else nu / (nu - 2) if nu > 2 else np.inf  # noqa: PLR2004


_NO_POSTERIOR = "{} gives a point estimate, which cannot be sampled: choose another method"
