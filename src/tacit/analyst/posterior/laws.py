"""What a method gives: draws, a Student law, or a mixture of Gaussians, all read in the same way.

Each outcome knows the moments and quantiles of any affine map A θ + b of its coefficients, and of A θ + b + r e with a residual
e ~ N(0, σ²): that is what a change of units, the mean response and a new response are.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from tacit.analyst.posterior.mixture import Mixtures
from tacit.errors import PosteriorError

Array = NDArray[np.float64]

ENOUGH = 1000
"""Draws that a new response's quantiles are computed from: the residual, which is not drawn, hides the rest."""
NEGLIGIBLE = 1e-9
"""Weight of a part that no quantile feels."""


@dataclass(frozen=True)
class Draws:
    """Draws after warm-up."""

    theta: Array  # (chain, draw, d)
    noise_variance: Array  # (chain, draw)
    acceptance: dict[str, Array] = field(default_factory=dict)  # per block of the sampler: (chain,)

    @property
    def parts(self) -> int:
        """How many laws are mixed: the draws."""
        return self.noise_variance.size

    @property
    def flat(self) -> Array:
        """All draws, (chain · draw, d)."""
        return self.theta.reshape(-1, self.theta.shape[-1])

    def mean(self) -> Array:
        """Posterior mean of θ."""
        mean: Array = self.flat.mean(axis=0)
        return mean

    def covariance(self) -> Array:
        """Posterior covariance of θ."""
        return np.atleast_2d(np.cov(self.flat, rowvar=False))

    def quantiles(
        self, probabilities: Array, matrix: Array, offset: Array, residual: float = 0.0
    ) -> Array:
        """Quantiles of each entry of matrix @ θ + offset + residual · e, (entry, probability).

        With a residual they are those of the mixture of N(matrix @ θ + offset, residual² σ²) over the draws, or over `ENOUGH` of them
        evenly spaced: no residual is drawn.
        """
        if residual == 0:
            quantiles: Array = np.quantile(self.flat @ matrix.T + offset, probabilities, axis=0).T
            return quantiles
        chosen = np.unique(np.linspace(0, self.parts - 1, ENOUGH).round().astype(int))
        centres = self.flat[chosen] @ matrix.T + offset
        widths = residual * np.sqrt(self.noise_variance.reshape(-1, 1)[chosen])
        return Mixtures(np.full(len(chosen), 1 / len(chosen)), centres, widths).quantiles(
            probabilities
        )

    def residual_sd(self) -> float:
        """Posterior mean of σ."""
        return float(np.sqrt(self.noise_variance).mean())

    def residual_variance(self) -> float:
        """Posterior mean of σ²."""
        return float(self.noise_variance.mean())

    def sample(self, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Coefficients (count, d) and residual variances (count,), picked at random among the draws."""
        chosen = rng.integers(self.flat.shape[0], size=count)
        return self.flat[chosen], self.noise_variance.reshape(-1)[chosen]


@dataclass(frozen=True)
class Student:
    """A closed-form posterior of θ: Student with location, scale matrix and degrees of freedom; Gaussian at infinity.

    A method that gives a point alone has no scale. `noise_variance` is the σ² assumed or its posterior mean.
    """

    location: Array  # (d,)
    scale: Array | None  # (d, d)
    degrees: float
    noise_variance: float
    parts: ClassVar[int] = 1

    def mean(self) -> Array:
        """Posterior mean of θ, or the point."""
        return self.location

    def covariance(self) -> Array:
        """Posterior covariance; NaN for a point, infinite where it does not exist."""
        if self.scale is None:
            return np.full((len(self.location), len(self.location)), np.nan)
        nu = self.degrees
        return self.scale * (1.0 if np.isinf(nu) else nu / (nu - 2) if nu > 2 else np.inf)  # noqa: PLR2004

    def quantiles(
        self, probabilities: Array, matrix: Array, offset: Array, residual: float = 0.0
    ) -> Array:
        """Quantiles of each entry of matrix @ θ + offset + residual · e, (entry, probability).

        A new response has the same degrees of freedom: σ² is then inverse gamma with mean `noise_variance`, whose scale is
        (ν − 2)/ν times that.
        """
        centre = matrix @ self.location + offset
        if self.scale is None:
            return np.full((len(centre), len(probabilities)), np.nan)
        shrink = 1.0 if np.isinf(self.degrees) else max(self.degrees - 2, 0.0) / self.degrees
        variance = np.einsum("ia,ab,ib->i", matrix, self.scale, matrix, optimize=True)
        width = np.sqrt(variance + residual**2 * shrink * self.noise_variance)
        standard = (
            ndtri(probabilities) if np.isinf(self.degrees) else stdtrit(self.degrees, probabilities)
        )
        quantiles: Array = centre[:, None] + width[:, None] * standard
        return quantiles

    def residual_sd(self) -> float:
        """√ of the residual variance."""
        return float(np.sqrt(self.noise_variance))

    def residual_variance(self) -> float:
        """The residual variance; NaN for a point, which knows none."""
        return float("nan") if self.scale is None else self.noise_variance

    def sample(self, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Independent coefficients (count, d), with the residual variance repeated."""
        if self.scale is None:
            raise PosteriorError(
                "a point estimate cannot be sampled: choose a method with a posterior"
            )
        normal = rng.standard_normal((count, len(self.location))) @ np.linalg.cholesky(self.scale).T
        if np.isfinite(self.degrees):
            normal /= np.sqrt(rng.chisquare(self.degrees, count) / self.degrees)[:, None]
        return self.location + normal, np.full(count, self.noise_variance)


@dataclass(frozen=True)
class Differing:
    """How far holders differ, beside the parts of a mixture; in scaled units, holders as collected."""

    spreads: Array  # (k, d): τ at every part, the sd of each coefficient between holders
    locations: Array  # (J, d): mean of every holder's own coefficients
    covariances: Array  # (J, d, d): and their covariance
    within: Array  # (d, d): covariance of a typical holder's coefficients from its release alone
    ratios: Array  # (J,): residual variance of every holder over σ²
    told: NDArray[np.bool_]  # (d,): whether enough holders tell of a coefficient's τ
    alone: bool = False  # whether each holder was fitted by itself, and no τ was estimated
    outlying: tuple[int, ...] = ()  # holders too far from the others to count for the average


@dataclass(frozen=True)
class Mixture:
    """A posterior of θ that is a finite mixture of Gaussians, each at its own σ²."""

    weights: Array  # (k,)
    locations: Array  # (k, d)
    covariances: Array  # (k, d, d)
    noise_variances: Array  # (k,)
    warning: str = ""  # what the evidence cannot support, for the summary
    unshrunk: float = 1.0  # σ² over the residual variance of shrunk rows
    differing: Differing | None = None  # where holders may differ; θ is then the average holder's

    @property
    def parts(self) -> int:
        """How many Gaussians are mixed."""
        return len(self.weights)

    def mean(self) -> Array:
        """Posterior mean of θ."""
        mean: Array = self.weights @ self.locations
        return mean

    def covariance(self) -> Array:
        """Posterior covariance of θ: within the parts, and between them."""
        apart = self.locations - self.mean()
        within = np.einsum("k,kab->ab", self.weights, self.covariances)
        covariance: Array = within + np.einsum("k,ka,kb->ab", self.weights, apart, apart)
        return covariance

    def quantiles(
        self, probabilities: Array, matrix: Array, offset: Array, residual: float = 0.0
    ) -> Array:
        """Quantiles of each entry of matrix @ θ + offset + residual · e, (entry, probability), of the exact law."""
        counts = self.weights > NEGLIGIBLE
        centres = self.locations[counts] @ matrix.T + offset
        variances = np.einsum(
            "ia,kab,ib->ki", matrix, self.covariances[counts], matrix, optimize=True
        )
        widths = np.sqrt(
            np.maximum(variances + residual**2 * self.noise_variances[counts, None], 1e-300)
        )
        return Mixtures(self.weights[counts], centres, widths).quantiles(probabilities)

    def of_new_holder(self) -> "Mixture":
        """The law of a new holder's own coefficients: wider than θ's by τ."""
        if self.differing is None:
            return self
        between = self.differing.spreads[:, :, None] ** 2 * np.eye(self.locations.shape[1])
        return replace(self, covariances=self.covariances + between, differing=None)

    def of_holder(self, j: int) -> "Mixture":
        """The law of the j-th holder's own coefficients."""
        if self.differing is None:
            return self
        return replace(
            self,
            weights=np.ones(1),
            locations=self.differing.locations[j : j + 1],
            covariances=self.differing.covariances[j : j + 1],
            noise_variances=np.array([self.differing.ratios[j] * self.residual_variance()]),
            differing=None,
        )

    def with_aside(self, alone: dict[int, "Mixture"]) -> "Mixture":
        """With holders that were set aside in their places among the others, each as it is alone."""
        if not alone or self.differing is None:
            return self
        locations = list(self.differing.locations)
        covariances = list(self.differing.covariances)
        ratios = self.differing.ratios.tolist()
        for j, law in sorted(alone.items()):
            locations.insert(j, law.mean())
            covariances.insert(j, law.covariance())
            ratios.insert(j, law.residual_variance() / self.residual_variance())
        differing = replace(
            self.differing,
            locations=np.array(locations),
            covariances=np.array(covariances),
            ratios=np.array(ratios),
            outlying=tuple(sorted(alone)),
        )
        return replace(self, differing=differing)

    def residual_sd(self) -> float:
        """Posterior mean of σ."""
        return float(self.weights @ np.sqrt(self.noise_variances))

    def residual_variance(self) -> float:
        """Posterior mean of σ²."""
        return float(self.weights @ self.noise_variances)

    def sample(self, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Independent coefficients (count, d) and residual variances (count,)."""
        part = rng.choice(len(self.weights), size=count, p=self.weights)
        roots = np.linalg.cholesky(self.covariances)
        normal = np.einsum(
            "nab,nb->na", roots[part], rng.standard_normal((count, self.locations.shape[1]))
        )
        return self.locations[part] + normal, self.noise_variances[part]


Outcome = Draws | Student | Mixture
