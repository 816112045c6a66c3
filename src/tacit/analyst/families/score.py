r"""From the coefficients of a straight line to those of a family, by the family's own score.

Shrinking multiplies a row by α, which depends on its features alone, so both the straight line b
and the coefficients β of y ~ g(x'β) have a score that is 0 on average whatever α is:

    E[α²x(y − x'b)] = 0,        E[α²x(y − g(x'β))] = 0,        hence  E[α²x g(x'β)] = E[α²xx']b.

The right side is what releases tell. The left needs the law of shrunk rows, for which `law.py` has
one with the moments that releases hold. With it, ℓ(β), the straight line through g(x'β), is known,
and β solves ℓ(β) = b. For normal rows this is Stein's lemma: β = b/E[g'(x'β)].

Where b is in doubt, b ~ N(b̄, Σ), β is taken where its density is highest under ℓ(β) ~ N(b̄, Σ)
and a prior β ~ N(0, P⁻¹), P = mm'/100 + Cov(x)/4 + D/2.5² with m the mean row and D the identity
on levels, 0 elsewhere: x'β has a standard deviation of 10 at the mean row and of 2 along each
direction of rows about it, and a level one of 2.5 at most against the reference, the scale that
Gelman, Jakulin, Pittau and Su (2008) take by default: a level that few rows have could else have
any coefficient. The prior is felt only where noise asks for means that no β has, such as one below
0, or nearly so; and β = β̄ + A(b − b̄) around it, with A the square root of what both say together:
A Σ A' = (L'Σ⁻¹L + P)⁻¹, L = ∂ℓ/∂β, and A = L⁻¹ where the prior is not felt.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.families.law import Law
from tacit.analyst.families.links import Link
from tacit.analyst.posterior.family import Family
from tacit.analyst.posterior.laws import Outcome

Array = NDArray[np.float64]

WIDE = 100.0
"""Mean square of the mean row's x'β beforehand."""
USUAL = 4.0
"""Variance of x'β at which slopes explain all that is expected of them: that which rows have along
each direction beforehand."""
LEVEL = 2.5
"""Standard deviation of a level's coefficient beforehand, at most."""
STEPS = 100
HALVINGS = 30
PRECISION = 1e-9
LEAST_MEAN = 1e-4
"""Mean response, over its range, from which the search starts at least."""


@dataclass(frozen=True)
class Score:
    """A family over a law of rows; the response is `centre` + `half` times the scaled one."""

    law: Law
    link: Link
    centre: float
    half: float
    levels: tuple[int, ...]  # columns that are 0 or 1

    @cached_property
    def second(self) -> Array:
        """E[xx']."""
        return self.law.second()

    @cached_property
    def _means(self) -> Array:
        return self.law.mean(np.ones(len(self.law.rows)))

    @cached_property
    def _prior(self) -> Array:
        """Root of the precision beforehand, of the mean row's x'β and of how rows' lie about it."""
        mean = np.outer(self._means, self._means)
        spread = self.second - mean
        precision = mean / WIDE + spread / USUAL
        precision[self.levels, self.levels] += 1 / LEVEL**2
        return np.asarray(np.linalg.cholesky(precision).T, dtype=float)

    def line(self, beta: Array) -> Array:
        """ℓ(β): the straight line through g(x'β), in scaled units."""
        means = self.law.mean(self.link.mean(self.law.rows @ beta))
        line = np.linalg.solve(self.second, means - self.centre * self._means)
        return np.asarray(line / self.half, dtype=float)

    def slope(self, beta: Array) -> Array:
        """L = ∂ℓ/∂β."""
        weighted = self.law.second(self.link.slope(self.law.rows @ beta))
        return np.asarray(np.linalg.solve(self.second, weighted) / self.half, dtype=float)

    def solve(self, location: Array, covariance: Array) -> Array:
        """β̄ of ℓ(β) ~ N(location, covariance) and the wide prior: Gauss–Newton, halving steps."""
        whiten = np.linalg.inv(np.linalg.cholesky(covariance))
        prior = self._prior

        def errors(beta: Array) -> Array:
            return np.concatenate([whiten @ (self.line(beta) - location), prior @ beta])

        beta = self._start(location)
        now = errors(beta)
        for _ in range(STEPS):
            design = np.concatenate([whiten @ self.slope(beta), prior])
            step = np.linalg.lstsq(design, -now)[0]
            for _ in range(HALVINGS):
                after = errors(beta + step)
                if after @ after <= now @ now:
                    break
                step = step / 2
            beta = beta + step
            now = after
            if np.abs(step).max() < PRECISION * (1 + np.abs(beta).max()):
                break
        return beta

    def _start(self, location: Array) -> Array:
        """No slopes, and the mean that releases tell."""
        mean = self.centre + self.half * float(self._means @ location)
        low = self.centre - self.half
        least = LEAST_MEAN * self.half
        most = low + 2 * self.half - least
        start = np.zeros(len(location))
        start[0] = self.link.inverse(float(np.clip(mean, low + least, most)))
        return start

    def family(self, outcome: Outcome) -> Family:
        """The family's map at a posterior of the straight line."""
        location = outcome.mean()
        covariance = outcome.covariance()
        beta = self.solve(location, covariance)
        root = np.linalg.cholesky(covariance)
        prior = self._prior
        scaled = np.linalg.solve(root, self.slope(beta)) @ np.linalg.inv(prior)
        left, sizes, right = np.linalg.svd(scaled)
        middle = right.T / np.sqrt(1 + sizes**2) @ left.T
        matrix = np.linalg.solve(prior, middle) @ np.linalg.inv(root)
        return Family(
            name=self.link.name,
            matrix=matrix,
            offset=beta - matrix @ location,
            dispersion=self.dispersion(beta, outcome.residual_variance()),
        )

    # What is to be expected.

    def explainable(self, beta: Array) -> float:
        """Share of the response's variance that a straight line may explain, 1 at most.

        What it explains where x'β has variance 4, were means as steep there as they are on
        average: E[g']²·4 of p(1 − p) is 4p(1 − p), about 0.2 for a rate of 5 %.
        """
        eta = self.law.rows @ beta
        means = self.link.mean(eta)
        variance = float(np.mean(self.link.variance(means)) + np.var(means))
        return min(1.0, USUAL * float(np.mean(self.link.slope(eta))) ** 2 / variance)

    # Errors.

    def dispersion(self, beta: Array, residual_variance: float) -> float:
        """Variance of responses about their means, over the family's."""
        means, bend = self._means_and_bend(beta)
        told = self.half**2 * residual_variance - float(np.mean(bend**2))
        return max(told / float(np.mean(self.link.variance(means))), 0.0)

    def error_map(self, beta: Array, dispersion: float, radius: float, level: float) -> Array:
        """C with Cov(z) = σ²CSC': errors about a straight line have no one variance.

        A row's error has the family's variance at its mean, and how far that mean is off the
        straight line; shrunk rows count by α², whose mean over all rows is `level`.
        """
        means, bend = self._means_and_bend(beta)
        squares = dispersion * self.link.variance(means) + bend**2
        kept = np.minimum(1.0, radius**2 / np.sum(self.law.rows**2, axis=1))
        errors = self.law.second(kept * squares) / (level * float(np.mean(squares)))
        inverse = np.linalg.inv(np.linalg.cholesky(self.second))
        return np.asarray(np.linalg.cholesky(errors) @ inverse, dtype=float)

    def _means_and_bend(self, beta: Array) -> tuple[Array, Array]:
        """g(x'β) of every row of the law, and how far it is off the straight line."""
        rows = self.law.rows
        means = self.link.mean(rows @ beta)
        straight = self.centre + self.half * (rows @ self.line(beta))
        return means, means - straight
