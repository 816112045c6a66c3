"""Links: how the mean of a yes/no answer or a count follows from a sum of effects."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr, ndtri

from tacit.errors import MethodError

Array = NDArray[np.float64]
FamilyName = Literal["logistic", "probit", "poisson"]

_MOST = 30.0
"""Largest sum of effects that is told from infinity: e³⁰ cases are nobody's."""
_ROOT_TWO_PI = np.sqrt(2 * np.pi)


@dataclass(frozen=True)
class Link:
    """A mean function g of η = x'β, its derivative, and the variance of a response of that mean.

    `scale` names what coefficients are differences of, `ratio` what their exponential is.
    """

    name: FamilyName
    mean: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    variance: Callable[[Array], Array]
    inverse: Callable[[float], float]
    scale: str
    ratio: str | None
    binary: bool

    def spread(self, share: float, rate: float) -> float:
        """Standard deviation of x'β at which features explain this share.

        Of what stands behind an answer, x'β and an error of the link's own law (McKelvey and
        Zavoina 1975); or of the variance of counts, whose means are then lognormal.
        """
        odds = share / (1 - share)
        if self.name == "poisson":
            return math.sqrt(math.log1p(odds / rate))
        return math.sqrt(odds) * (math.pi / math.sqrt(3) if self.name == "logistic" else 1.0)


def _expit(eta: Array) -> Array:
    means: Array = expit(eta)
    return means


def _expit_slope(eta: Array) -> Array:
    means = _expit(eta)
    return means * (1 - means)


def _normal(eta: Array) -> Array:
    means: Array = ndtr(eta)
    return means


def _normal_slope(eta: Array) -> Array:
    slopes: Array = np.exp(-0.5 * eta**2) / _ROOT_TWO_PI
    return slopes


def _exponential(eta: Array) -> Array:
    means: Array = np.exp(np.clip(eta, -_MOST, _MOST))
    return means


def _bernoulli(mean: Array) -> Array:
    return mean * (1 - mean)


def _same(mean: Array) -> Array:
    return mean


LINKS: dict[str, Link] = {
    "logistic": Link(
        name="logistic",
        mean=_expit,
        slope=_expit_slope,
        variance=_bernoulli,
        inverse=lambda mean: float(logit(mean)),
        scale="log-odds",
        ratio="odds ratio",
        binary=True,
    ),
    "probit": Link(
        name="probit",
        mean=_normal,
        slope=_normal_slope,
        variance=_bernoulli,
        inverse=lambda mean: float(ndtri(mean)),
        scale="probit index",
        ratio=None,
        binary=True,
    ),
    "poisson": Link(
        name="poisson",
        mean=_exponential,
        slope=_exponential,
        variance=_same,
        inverse=lambda mean: float(np.log(mean)),
        scale="log-rate",
        ratio="rate ratio",
        binary=False,
    ),
}


def link_named(name: str) -> Link:
    """One of the links by name."""
    if name not in LINKS:
        raise MethodError(f"family must be one of {', '.join(get_args(FamilyName))}; got {name!r}")
    return LINKS[name]
