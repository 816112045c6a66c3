"""What a report is about: the posterior, and what all sections read of it."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit.analyst.posterior.convergence import Verdict
from tacit.analyst.posterior.density import densities
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.posterior.summary import Summary
from tacit.analyst.posterior.units import Units
from tacit.analyst.report.charts import Curve, Estimate
from tacit.analyst.report.comparisons import Comparison, comparison_units, comparisons
from tacit.page.numbers import between, number


@dataclass(frozen=True)
class Subject:
    """The posterior a report is about, and what all sections read of it."""

    posterior: Posterior
    probability: float

    @cached_property
    def summary(self) -> Summary:
        """The table in the user's units, with its verdict."""
        return self.posterior.summary(self.probability)

    @property
    def differ(self) -> bool:
        """Whether holders clearly differ in some coefficient."""
        return self.summary.holders is not None and bool(self.summary.holders.differ)

    @cached_property
    def compared(self) -> list[Comparison]:
        """What is compared, feature by feature."""
        return comparisons(self.posterior.model)

    @cached_property
    def units(self) -> Units:
        """The comparisons as a map of θ, in the response's units."""
        return self.posterior.linked(comparison_units(self.posterior.model, self.compared))

    @cached_property
    def contrasts(self) -> list[Estimate]:
        """The estimate of each comparison, in the response's units."""
        posterior = self.posterior
        means = posterior.mean(self.units).tolist()
        bounds = posterior.interval(self.probability, self.units).tolist()
        kept = np.sqrt(1 - posterior.privacy_share(self.units)).tolist()
        curves: list[Curve | None] = [*densities(posterior, self.units)] or [None] * len(means)
        return [
            Estimate(
                label=compared.contrast,
                words=_words(mean, low, high),
                mean=mean,
                low=low,
                high=high,
                curve=curve,
                bare=_bare(mean, low, high, share),
                where=compared.where,
            )
            for compared, mean, (low, high), curve, share in zip(
                self.compared, means, bounds, curves, kept, strict=True
            )
        ]

    @property
    def sound(self) -> bool:
        """Whether the computation can be relied on."""
        return self.summary.verdict in {Verdict.CONVERGED, Verdict.COMPUTED, Verdict.DRAWN}

    @property
    def has_chains(self) -> bool:
        """Whether chains were run, whose mixing is shown; averaged models are drawn without."""
        return any(row.rhat is not None for row in self.summary.rows)

    @property
    def response(self) -> str:
        """What is modelled: the response, or its function."""
        return self.posterior.model.response.shown

    @property
    def interval(self) -> str:
        """What intervals are called."""
        return f"{100 * self.probability:g} % interval"


def _bare(mean: float, low: float, high: float, kept: float) -> tuple[float, float] | None:
    """The interval without privacy noise, which is `kept` of it, if known."""
    if not math.isfinite(kept):
        return None
    return mean + kept * (low - mean), mean + kept * (high - mean)


def _words(mean: float, low: float, high: float) -> str:
    sign = "+" if mean > 0 else ""
    if not math.isfinite(high - low):
        return sign + number(mean)
    return f"{sign}{number(mean, high - low)} ({between(low, high)})"
