"""What a method gives: draws, a Student law, or a mixture of Gaussians, all read in the same way.

Each outcome knows the moments and quantiles of any affine map A θ + b of its coefficients, and of
A θ + b + r e with a residual e ~ N(0, σ²): that is what a change of units, the mean response and a
new response are.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from tacit.analyst.posterior.differing import Differing
from tacit.errors import PosteriorError

Array = NDArray[np.float64]

ENOUGH = 1000
"""Draws that a new response's quantiles are computed from: the residual, which is not drawn, hides
the rest."""
NEGLIGIBLE = 1e-9
"""Weight of a part that no quantile feels."""
WITH_VARIANCE = 2.0
"""Degrees of freedom above which a Student law has a variance."""
NEWTON = 20
"""Newton steps before bisection takes over: three or four are enough unless the law has a nearly
empty middle."""
HALVINGS = 80
PRECISION = 1e-8
"""Last step, in standard deviations of the mixture, at which a quantile is near enough."""
_ROOT_TWO_PI = np.sqrt(2 * np.pi)


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

        With a residual they are those of the mixture of N(matrix @ θ + offset, residual² σ²) over
        the draws, or over `ENOUGH` of them evenly spaced: no residual is drawn.
        """
        if residual == 0:
            quantiles: Array = np.quantile(self.flat @ matrix.T + offset, probabilities, axis=0).T
            return quantiles
        chosen = np.unique(np.linspace(0, self.parts - 1, ENOUGH).round().astype(int))
        mixtures = ScalarMixtures(
            weights=np.full(len(chosen), 1 / len(chosen)),
            centres=self.flat[chosen] @ matrix.T + offset,
            widths=residual * np.sqrt(self.noise_variance.reshape(-1, 1)[chosen]),
        )
        return mixtures.quantiles(probabilities)

    def positive(self, matrix: Array, offset: Array) -> Array:
        """Probability that each entry of matrix @ θ + offset is above zero."""
        above: Array = np.mean(self.flat @ matrix.T + offset > 0, axis=0)
        return above

    def residual_sd(self) -> float:
        """Posterior mean of σ."""
        return float(np.sqrt(self.noise_variance).mean())

    def residual_variance(self) -> float:
        """Posterior mean of σ²."""
        return float(self.noise_variance.mean())

    def sample(self, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Coefficients (count, d) and residual variances (count,), picked among the draws."""
        chosen = rng.integers(self.flat.shape[0], size=count)
        return self.flat[chosen], self.noise_variance.reshape(-1)[chosen]


@dataclass(frozen=True)
class Student:
    """A closed-form posterior of θ: a Student law, Gaussian at infinite degrees of freedom.

    A method that gives a point alone has no scale. `noise_variance` is the σ² assumed or its
    posterior mean.
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
        if np.isinf(self.degrees):
            return self.scale
        if self.degrees <= WITH_VARIANCE:
            return self.scale * np.inf
        return self.scale * (self.degrees / (self.degrees - 2))

    def quantiles(
        self, probabilities: Array, matrix: Array, offset: Array, residual: float = 0.0
    ) -> Array:
        """Quantiles of each entry of matrix @ θ + offset + residual · e, (entry, probability).

        A new response has the same degrees of freedom: σ² is then inverse gamma with mean
        `noise_variance`, whose scale is (ν − 2)/ν times that.
        """
        centre = matrix @ self.location + offset
        if self.scale is None:
            return np.full((len(centre), len(probabilities)), np.nan)
        normal = np.isinf(self.degrees)
        shrink = 1.0 if normal else max(self.degrees - 2, 0.0) / self.degrees
        variance = np.einsum("ia,ab,ib->i", matrix, self.scale, matrix, optimize=True)
        width = np.sqrt(variance + residual**2 * shrink * self.noise_variance)
        standard = ndtri(probabilities) if normal else stdtrit(self.degrees, probabilities)
        quantiles: Array = centre[:, None] + width[:, None] * standard
        return quantiles

    def positive(self, matrix: Array, offset: Array) -> Array:
        """Probability that each entry of matrix @ θ + offset is above zero; NaN for a point."""
        centre = matrix @ self.location + offset
        if self.scale is None:
            return np.full(len(centre), np.nan)
        width = np.sqrt(np.einsum("ia,ab,ib->i", matrix, self.scale, matrix, optimize=True))
        standard = centre / np.maximum(width, 1e-300)
        normal = np.isinf(self.degrees)
        above: Array = ndtr(standard) if normal else stdtr(self.degrees, standard)
        return above

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
        """Quantiles of each entry of matrix @ θ + offset + residual · e, (entry, probability)."""
        felt = self.weights > NEGLIGIBLE
        covariances = self.covariances[felt]
        variances = np.einsum("ia,kab,ib->ki", matrix, covariances, matrix, optimize=True)
        variances = variances + residual**2 * self.noise_variances[felt, None]
        mixtures = ScalarMixtures(
            weights=self.weights[felt],
            centres=self.locations[felt] @ matrix.T + offset,
            widths=np.sqrt(np.maximum(variances, 1e-300)),
        )
        return mixtures.quantiles(probabilities)

    def positive(self, matrix: Array, offset: Array) -> Array:
        """Probability that each entry of matrix @ θ + offset is above zero."""
        variances = np.einsum("ia,kab,ib->ki", matrix, self.covariances, matrix, optimize=True)
        centres = self.locations @ matrix.T + offset
        above: Array = self.weights @ ndtr(centres / np.sqrt(np.maximum(variances, 1e-300)))
        return above

    def of_new_holder(self) -> "Mixture":
        """The law of a new holder's own coefficients: wider than θ's by what holders differ."""
        if self.differing is None:
            return self
        between = self.differing.of_new_holder(self.weights)
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
        """With holders that were set aside in their places, each as it is alone."""
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

    def about(self, other: "Mixture") -> "Mixture":
        """The same law about the mean of another, holders' own coefficients with it.

        Itself where the other set other holders aside: its mean is then that of other rows.
        """
        moved = other.mean() - self.mean()
        if self.differing is None:
            return replace(self, locations=self.locations + moved)
        if other.differing is None or other.differing.outlying != self.differing.outlying:
            return self
        inner = np.ones(len(self.differing.locations))
        inner[list(self.differing.outlying)] = 0.0
        own = self.differing.locations + np.multiply.outer(inner, moved)
        differing = replace(self.differing, locations=own)
        return replace(self, locations=self.locations + moved, differing=differing)

    def residual_sd(self) -> float:
        """Posterior mean of σ."""
        return float(self.weights @ np.sqrt(self.noise_variances))

    def residual_variance(self) -> float:
        """Posterior mean of σ²."""
        return float(self.weights @ self.noise_variances)

    def sample(self, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Independent coefficients (count, d) and residual variances (count,)."""
        part = rng.choice(len(self.weights), size=count, p=self.weights)
        standard = rng.standard_normal((count, self.locations.shape[1]))
        theta = self.locations[part]
        for k, root in enumerate(np.linalg.cholesky(self.covariances)):
            own = np.flatnonzero(part == k)
            theta[own] += standard[own] @ root.T
        return theta, self.noise_variances[part]


Outcome = Draws | Student | Mixture


class ScalarMixtures(NamedTuple):
    """Many mixtures of k Gaussians on the line, whose quantiles are found all at once.

    Part k of mixture i is N(centres[k, i], widths[k, i]²) with weight weights[k].
    """

    weights: Array  # (k,)
    centres: Array  # (k, i)
    widths: Array  # (k, i), or (k, 1)

    def quantiles(self, probabilities: Array) -> Array:
        """Quantiles, (mixture, probability), to the precision of the computer."""
        mean = self.weights @ self.centres
        sd = np.sqrt(self.weights @ (self.widths**2 + (self.centres - mean) ** 2))
        columns = [self._quantile(probability, mean, sd) for probability in probabilities.tolist()]
        return np.stack(columns, axis=1)

    def _quantile(self, probability: float, mean: Array, sd: Array) -> Array:
        """Newton's steps from the normal law with the same moments, between bounds that close in.

        At first these are Cantelli's: no law with that mean and sd has its quantile outside.
        """
        odds = np.sqrt(probability / (1 - probability))
        low = mean - sd / odds
        high = mean + sd * odds
        now = mean + sd * ndtri(probability)
        for step in range(NEWTON + HALVINGS):
            below, density = self._law(now)
            low = np.where(below < probability, now, low)
            high = np.where(below < probability, high, now)
            after = now - (below - probability) / np.maximum(density, 1e-300)
            inside = (after >= low) & (after <= high) & (step < NEWTON)
            after = np.where(inside, after, (low + high) / 2)
            moved = np.abs(after - now)
            now = after
            if np.all(moved <= PRECISION * sd):
                break
        return now

    def _law(self, at: Array) -> tuple[Array, Array]:
        """Distribution function and density of each mixture."""
        standard = (at - self.centres) / self.widths
        density = np.exp(-0.5 * standard**2) / self.widths / _ROOT_TWO_PI
        return self.weights @ ndtr(standard), self.weights @ density
