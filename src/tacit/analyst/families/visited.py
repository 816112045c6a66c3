r"""A family's score over several visits, whose residuals were cut at bounds.

At visit k a row is u = T'x with r = y − x'θ_k; u is shrunk by α, which depends on x alone, and r is
cut at ±B_k. A response that is 0 or 1, or a count, has few values, so the mean of what a
bound leaves of it is known for every row:

    q̄(x) = Σ_s P(y = s | x'β) Σ_k w_k cut(s − x'θ_k; ±B_k)/α,

w_k being the weights by which the visits' moments were joined (`readings.py`). The joined moment
has the mean E[α²u q̄(x)] + const, the constant being what joining added, and a straight line reads
b = (κE[α²uu'])⁻¹ of that: so ℓ(β) = θ₀ + Tb is known under the law of rows, and ℓ(β) = θ is solved
for β as with one visit. Whether κ is the rate at which such residuals move does not matter, since
the same κ is in both. Rows of the law have the moments of shrunk rows: they are rows with the
weights α²/E[α²].

A sub-model keeps the columns x_K; its mapped columns are W'u and its residuals r + u'γ
(`asked_of_visits.py`), hence b_K = (κW'SW)⁻¹W'(moment + κSγ). Where rows were cut still depends on
all columns, for which the whole law is kept.

The first answer, which had other columns, bounds and shrunk rows, is the prior of θ. Its own line
ℓ₁(β) differs from ℓ(β) by what it cut: as a prior of ℓ(β) it is ℓ(β̂) + J(θ₁ − ℓ₁(β̂)) with
J = ∂ℓ/∂ℓ₁.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.asked_of_visits import Kept, kept_of
from tacit.analyst.families.answers import Answers
from tacit.analyst.families.law import Law, law_of
from tacit.analyst.families.links import Link
from tacit.analyst.families.quiet import level_places
from tacit.analyst.families.score import Score
from tacit.analyst.frame import Frame
from tacit.analyst.prior import Prior
from tacit.analyst.readings import Readings
from tacit.errors import MethodError
from tacit.study import Study

Array = NDArray[np.float64]


@dataclass(frozen=True)
class VisitedScore(Score):
    """A family over a law of rows; `law` has the columns that are kept."""

    answers: Answers
    rows: Array  # (K, d): of the law, all columns of the study
    frame: Frame  # of all columns
    readings: Readings
    own: Frame  # of the columns that are kept
    kept: Kept

    @classmethod
    def over(
        cls,
        study: Study,
        link: Link,
        frame: Frame,
        own: Frame,
        places: list[int],
        *,
        normal: bool = False,
    ) -> "VisitedScore":
        """A family over the law that X'X of all visits tells of rows."""
        if frame.readings is None:
            raise MethodError(
                f"family: {link.name} needs to know how visits were read, and this posterior's "
                "file is from before that was kept: fit the releases"
            )
        back = np.linalg.inv(frame.map)
        law = law_of(study, back.T @ frame.gram @ back, normal=normal)
        centre, half = study.response.mapping
        levels = level_places(study)
        return cls(
            law=Law(rows=law.rows[:, places]),
            link=link,
            centre=centre,
            half=half,
            levels=tuple(own for own, place in enumerate(places) if place in levels),
            answers=Answers.of(link, study.response.range[1]),
            rows=law.rows,
            frame=frame,
            readings=frame.readings,
            own=own,
            kept=kept_of(frame, places),
        )

    # What visits see of rows.

    @cached_property
    def _mapped(self) -> Array:
        """Mapped rows, u."""
        mapped: Array = self.rows @ self.frame.map
        return mapped

    @cached_property
    def _shrunk(self) -> Array:
        """α of every row."""
        return _shrinking(self._mapped, self.readings.radius)

    @cached_property
    def _scaled(self) -> Array:
        """The response's values as the study scales them."""
        scaled: Array = (self.answers.values - self.centre) / self.half
        return scaled

    @cached_property
    def _left(self) -> Array:
        """What bounds leave of every value at every row, over α: (K, m)."""
        readings = self.readings
        left = np.zeros((len(self.rows), len(self._scaled)))
        for start, bound, weight in zip(
            readings.starts, readings.bounds, readings.weights, strict=True
        ):
            residuals = self._scaled - (self.rows @ start)[:, None]
            left += weight * np.clip(residuals, -bound, bound)
        over: Array = left / self._shrunk[:, None]
        return over

    @cached_property
    def _level(self) -> float:
        """E[α²]."""
        back = np.linalg.inv(self.frame.map)[:, 0]
        return float(back @ self.frame.gram @ back) / self.frame.rate

    @cached_property
    def _gram(self) -> Array:
        """S: E[α²uu'] over rows, in all mapped columns."""
        gram: Array = self._level * self._mapped.T @ self._mapped / len(self.rows)
        return gram

    @cached_property
    def _apart(self) -> Array:
        """Σ w_kκ_k times the mapped difference between the last offset and that of visit k."""
        readings = self.readings
        apart = (self.frame.start - readings.starts) @ np.linalg.inv(self.frame.map).T
        weighed: Array = (readings.weights * readings.rates) @ apart
        return weighed

    @cached_property
    def _bend(self) -> float:
        return float(self.readings.weights @ self.readings.bends)

    def _line_of(self, moment: Array) -> Array:
        """b_K of a joined moment, (d,) or one in every column, less what joining added."""
        basis = self.kept.basis
        inner = self.frame.rate * basis.T @ self._gram @ basis
        return np.asarray(np.linalg.solve(inner, basis.T @ moment), dtype=float)

    def _own_line(self, beta: Array) -> Array:
        """b_K at β."""
        means = np.sum(self.answers.chances(self.law.rows @ beta) * self._left, axis=1)
        moment = self._level * self._mapped.T @ means / len(self.rows)
        moment = moment - self.frame.gram @ self._apart / self.frame.rate
        moment[0] += self._bend
        return self._line_of(moment + self.frame.rate * self._gram @ self.kept.rest)

    # The score.

    def line(self, beta: Array) -> Array:
        """ℓ(β): the straight line that joined visits tell, in the study's columns."""
        line: Array = self.own.start + self.own.map @ self._own_line(beta)
        return line

    def slope(self, beta: Array) -> Array:
        """∂ℓ/∂β."""
        slopes = np.sum(self.answers.slopes(self.law.rows @ beta) * self._left, axis=1)
        moments = self._level * self._mapped.T @ (slopes[:, None] * self.law.rows) / len(self.rows)
        slope: Array = self.own.map @ self._line_of(moments)
        return slope

    # Errors.

    def dispersion(self, beta: Array, residual_variance: float) -> float:
        """Variance of what bounds leave of responses about its mean, over the family's."""
        variances, bend = self._variances_and_bend(beta)
        told = self.frame.rate * residual_variance / self.own.whole - float(np.mean(bend**2))
        return max(told / max(float(np.mean(variances)), 1e-300), 0.0)

    def mapped_errors(self, beta: Array, dispersion: float, variance: float) -> Array:
        """C with Cov(moment) = σ²CκSC' in the kept mapped columns, κ the frame's rate."""
        variances, bend = self._variances_and_bend(beta)
        squares = dispersion * variances + bend**2
        mapped = self._mapped @ self.kept.basis
        count = len(self.rows)
        errors = (mapped * squares[:, None]).T @ mapped / (count * self.frame.rate * variance)
        inverse = np.linalg.inv(np.linalg.cholesky(mapped.T @ mapped / count))
        return np.asarray(np.linalg.cholesky(errors) @ inverse, dtype=float)

    def _variances_and_bend(self, beta: Array) -> tuple[Array, Array]:
        """Of cut residuals, αq, at every row: the variance, and how far the mean is off the line.

        What joining added to the intercept's moment, E[αu·αq], lies beside rows' mean α ≈ √level.
        """
        chances = self.answers.chances(self.law.rows @ beta)
        cut = self._left * self._shrunk[:, None]
        means = np.sum(chances * cut, axis=1)
        variances = np.maximum(np.sum(chances * cut**2, axis=1) - means**2, 0.0)
        line = self.kept.basis @ self._own_line(beta) - self.kept.rest
        straight = self._level * (self._mapped @ (self.frame.rate * line + self._apart))
        return variances, means + self._bend / np.sqrt(self._level) - straight

    # The first answer.

    def prior(self, prior: Prior, beta: Array) -> Prior:
        """The first answer, a prior of what a straight line reads, as one of what visits read."""
        now = self.own.map @ prior.mean + self.own.start
        line = self.line(beta)
        turn = self.slope(beta) @ np.linalg.inv(self._first(beta, slope=True))
        moved = line + turn @ (now - self._first(beta, slope=False))
        back = np.linalg.inv(self.own.map)
        mapped = back @ turn @ self.own.map
        covariance = mapped @ prior.covariance @ mapped.T
        return replace(
            prior,
            mean=back @ (moved - self.own.start),
            covariance=(covariance + covariance.T) / 2,
        )

    def _first(self, beta: Array, *, slope: bool) -> Array:
        """ℓ₁(β), or its derivative."""
        readings = self.readings
        mapped = self.rows @ readings.first_map
        shrunk = _shrinking(mapped, readings.first_radius)
        bound = readings.first_bound
        residuals = self._scaled - (self.rows @ readings.first_start)[:, None]
        left = np.clip(residuals, -bound, bound) / shrunk[:, None]
        kept = (shrunk / self._shrunk) ** 2
        weighed = mapped * kept[:, None]
        level = self._level * float(np.mean(kept))  # of the first answer's rows
        inner = readings.first_rate / level * weighed.T @ mapped
        index = self.law.rows @ beta
        if slope:
            slopes = np.sum(self.answers.slopes(index) * left, axis=1)
            first = np.linalg.solve(inner, weighed.T @ (slopes[:, None] * self.law.rows))
            return self._kept_part(readings.first_map @ first)
        means = np.sum(self.answers.chances(index) * left, axis=1)
        first = np.linalg.solve(inner, weighed.T @ means)
        return self._kept_part(readings.first_start + readings.first_map @ first)

    def _kept_part(self, line: Array) -> Array:
        """Coefficients of all columns as those of the sub-model, as in least squares."""
        basis = self.kept.basis
        gram = self._gram
        own = np.linalg.solve(
            basis.T @ gram @ basis, basis.T @ gram @ np.linalg.solve(self.frame.map, line)
        )
        part: Array = self.own.map @ own
        return part


def _shrinking(mapped: Array, radius: float) -> Array:
    """What shrinking leaves of rows' length."""
    lengths = np.sqrt(np.sum(mapped**2, axis=1))
    shrunk: Array = radius / np.maximum(lengths, radius)
    return shrunk
