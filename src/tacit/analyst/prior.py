r"""The prior, by name; all in the study's scaled units.

θ ~ N(m, C), σ² ~ IG(a, b) and, where a feature law is modelled, Σ ~ IW(Λ, κ). IG(a, b) has density
∝ s^{−a−1} e^{−b/s} and mean b/(a − 1); IW(Λ, κ) has mean Λ/(κ − d − 1).
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tacit.errors import PriorError

Array = NDArray[np.float64]


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
    widths: tuple[float, ...] = (1.0,)  # factors of C, equally likely, in `noise-aware`
    shares: tuple[float, ...] = ()  # ρ with `by_spread`, equally likely; none: as `slopes.py` has
    released_features: bool = False  # Λ, κ from the releases instead, in `normal-x`

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
            released_features=True,
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


def prior_named(name: str, d: int) -> Prior:
    """One of the priors that have a name."""
    named = {"weak": Prior.weak, "paper": Prior.paper}
    if name not in named:
        raise PriorError(
            f"prior must be one of {', '.join(named)}, or a file with a [prior] table; got {name!r}"
        )
    return named[name](d)
