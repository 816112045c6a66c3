r"""The prior: θ ~ N(m, C), σ² ~ IG(a, b) and, where a feature law is modelled, Σ ~ IW(Λ, κ); all in scaled units.

IG(a, b) has density ∝ s^{−a−1} e^{−b/s} and mean b/(a − 1); IW(Λ, κ) has mean Λ/(κ − d − 1).
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

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
    flat_noise: bool = (
        False  # σ² uniform on (0, 1] instead, for a method that has y'y to learn it from
    )

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

        A coefficient of 1 carries the response through its whole public range, so each has mean 0 and sd 1. The
        residual variance has prior mean 0.1 (a residual sd of about a third of half the range) with the weight of
        four observations, and features have the variance 1/3 of a uniform law.
        """
        return cls(np.zeros(d), np.eye(d), 2.0, 0.1, np.eye(d) / 3, d + 2.0, flat_noise=True)

    @classmethod
    def paper(cls, d: int) -> Self:
        """The prior of the 2023 paper: a = 20, b = 0.5, m = 0, C = b/(a − 1)·I, Λ = I, κ = d + 1."""
        return cls(np.zeros(d), np.eye(d) * 0.5 / 19, 20.0, 0.5, np.eye(d), d + 1.0)
