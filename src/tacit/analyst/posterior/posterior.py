"""Posterior: what an analyst holds after a fit, in scaled or in the user's units."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.posterior.family import Family, on_link_scale
from tacit.analyst.posterior.laws import Draws, Outcome
from tacit.analyst.posterior.pooled import Pooled
from tacit.analyst.posterior.source import Source
from tacit.analyst.posterior.units import Units, contrast_units, scaled_units, user_units
from tacit.errors import PosteriorError
from tacit.study import Study

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from tacit.analyst.posterior.effects import Effects
    from tacit.analyst.posterior.holders import Holders
    from tacit.analyst.posterior.prediction import Predictions
    from tacit.analyst.posterior.reading import Explained
    from tacit.analyst.posterior.summary import Summary

Array = NDArray[np.float64]
UnitsName = Literal["user", "scaled", "contrast", "standardised"]
AnyUnits = UnitsName | Units
"""Units by name, or an affine map of θ of one's own."""
CHAINS = 4
DRAWS = 4000
"""Independent draws that stand for a computed posterior, in so many chains."""


@dataclass(frozen=True)
class Contribution:
    """What one holder brought: n where it is known, its budget, its release by hash and time."""

    holder: str
    n: float | None
    epsilon: float
    delta: float
    release: str = ""
    created: str = ""
    simulated: bool = False


@dataclass(frozen=True)
class Posterior:
    """Posterior of the coefficients θ and the residual variance σ², by one method.

    Every reading takes `units`: "user" for those of the study's ranges, "scaled" for the study's
    own [−1, 1], "contrast" for the response's, of what goes with a feature's whole (typical) range
    or with a level instead of the reference, "standardised" for standard deviations of the
    response per standard deviation of a column.
    """

    study: Study
    method: str
    outcome: Outcome
    contributions: tuple[Contribution, ...]
    caveat: str = ""
    seed: int | None = None
    warmup: int | None = None
    options: str = ""  # those of `tacit fit` that give this posterior again
    software: str = ""
    pooled: Pooled | None = None  # what tells sampling from privacy
    question: Study | None = None  # of a sub-model: the study that has its terms alone
    source: Source | None = None  # what it was inferred from, where that was kept
    family: Family | None = None  # None for a straight line; else coefficients are a map of θ

    @property
    def asked(self) -> Study:
        """The study whose terms and response were asked for: all of it, or a sub-model's."""
        return self.study if self.question is None else self.question

    @cached_property
    def model(self) -> Study:
        """The study whose response and columns this posterior speaks of.

        Of a family the response is on the scale of the coefficients, such as log-odds.
        """
        if self.family is None:
            return self.asked
        return on_link_scale(self.asked, self.family.link)

    @cached_property
    def _units(self) -> dict[str, Units]:
        units = {
            "user": user_units(self.model),
            "scaled": scaled_units(self.model),
            "contrast": contrast_units(self.model),
        }
        return {name: self.linked(to) for name, to in units.items()}

    def linked(self, units: Units) -> Units:
        """Units of the coefficients as a map of θ; those of a family are one themselves."""
        return units if self.family is None else self.family.through(units)

    @cached_property
    def _standardised(self) -> Units:
        from tacit.analyst.posterior.reading import standardised_units

        units = standardised_units(self)
        if units is None:
            raise PosteriorError(
                "standardised units need a straight line, releases with y'y, the statistics in "
                "the posterior, and no implied coefficients: use user or contrast"
            )
        return units

    def units(self, name: AnyUnits) -> Units:
        """The map from θ to the coefficients in those units."""
        if isinstance(name, Units):
            return name
        if name == "standardised":
            return self._standardised
        if name not in self._units:
            raise PosteriorError(
                f"units must be user, scaled, contrast or standardised; got {name!r}"
            )
        return self._units[name]

    def names(self, units: AnyUnits = "user") -> tuple[str, ...]:
        """Names of the coefficients."""
        return self.units(units).names

    @property
    def rows(self) -> float | None:
        """Rows, or persons, behind it, of all holders; None where they are not published."""
        counts = [c.n for c in self.contributions]
        known = [n for n in counts if n is not None]
        return sum(known) if counts and len(known) == len(counts) else None

    def draws(self, units: UnitsName = "user") -> Array:
        """Coefficients with axes (chain, draw, coefficient).

        A sampler's own; of a computed posterior 4 chains of 1,000 independent ones, always the
        same.
        """
        to = self.units(units)
        return self.chains()[0] @ to.matrix.T + to.offset

    def chains(self, draws: int = DRAWS) -> tuple[Array, Array]:
        """θ (chain, draw, d) and σ² (chain, draw), in scaled units; `draws` of a computed one."""
        if isinstance(self.outcome, Draws):
            return self.outcome.theta, self.outcome.noise_variance
        if draws < CHAINS:
            raise PosteriorError(f"draws must be at least {CHAINS}, one for each chain")
        each = draws // CHAINS
        theta, variance = self.outcome.sample(CHAINS * each, np.random.default_rng(0))
        return theta.reshape(CHAINS, each, -1), variance.reshape(CHAINS, each)

    def sample(
        self, count: int, rng: np.random.Generator | None = None, units: UnitsName = "user"
    ) -> Array:
        """Independent coefficients (count, coefficient).

        From the closed form, or at random among the draws; with a generator of your own they can be
        drawn again.
        """
        to = self.units(units)
        theta, _ = self.outcome.sample(count, rng or np.random.default_rng())
        return theta @ to.matrix.T + to.offset

    def mean(self, units: AnyUnits = "user") -> Array:
        """Posterior mean (or the point estimate)."""
        to = self.units(units)
        mean: Array = to.matrix @ self.outcome.mean() + to.offset
        return mean

    def covariance(self, units: AnyUnits = "user") -> Array:
        """Posterior covariance; NaN for a point estimate, infinite where it does not exist."""
        to = self.units(units)
        covariance: Array = to.matrix @ self.outcome.covariance() @ to.matrix.T
        return covariance

    def sd(self, units: AnyUnits = "user") -> Array:
        """Posterior standard deviation."""
        return np.sqrt(np.diag(self.covariance(units)))

    def correlation(self, units: UnitsName = "user") -> Array:
        """Posterior correlation."""
        sd = self.sd(units)
        correlation: Array = self.covariance(units) / np.outer(sd, sd)
        return correlation

    def interval(self, probability: float = 0.9, units: AnyUnits = "user") -> Array:
        """Equal-tailed credible intervals, (coefficient, 2)."""
        if not 0 < probability < 1:
            raise PosteriorError(
                f"an interval's probability must lie between 0 and 1; got {probability}"
            )
        to = self.units(units)
        tails = np.array([(1 - probability) / 2, (1 + probability) / 2])
        return self.outcome.quantiles(tails, to.matrix, to.offset)

    def positive(self, units: AnyUnits = "user") -> Array:
        """Probability that each coefficient is above zero; NaN for a point estimate."""
        to = self.units(units)
        return self.outcome.positive(to.matrix, to.offset)

    def explained(self, probability: float = 0.9) -> "Explained | None":
        """R² with an interval, over rows as they count; None where y'y was not published."""
        from tacit.analyst.posterior.reading import explained

        return explained(self, probability)

    def privacy_share(self, units: AnyUnits = "user") -> Array:
        """Share of each coefficient's variance that is due to privacy noise; NaN if not known."""
        if self.pooled is None:
            return np.full(len(self.names(units)), np.nan)
        matrix = self.units(units).matrix
        sampling = np.diag(matrix @ self.pooled.sampling @ matrix.T)
        share: Array = np.clip(1 - sampling / self.sd(units) ** 2, 0.0, 1.0)
        return share

    def residual_sd(self, units: UnitsName = "user") -> float:
        """Posterior mean of σ (where σ² is fixed, its root), in the response's units."""
        return self.outcome.residual_sd() * self.units(units).response

    def summary(self, probability: float = 0.9, units: UnitsName = "user") -> "Summary":
        """Table of coefficients with a verdict in plain words."""
        from tacit.analyst.posterior.summary import summarise

        return summarise(self, probability, units)

    def holders(self, probability: float = 0.9, units: AnyUnits = "user") -> "Holders | None":
        """How far holders differ, and each holder's own coefficients; None where they are alike."""
        from tacit.analyst.posterior.holders import holders_of

        return holders_of(self, probability, units)

    def submodel(
        self, only: "str | Sequence[str]" = (), without: "str | Sequence[str]" = ()
    ) -> "Posterior":
        """The posterior of `only` some of its terms, or of all `without` some, by the same method.

        Terms are named as in a formula: "age", "bmi^2", "age:sex"; nothing further is published.
        """
        from tacit.analyst.fit import refit

        return refit(self, only, without)

    def effects(self, *questions: str, probability: float = 0.9) -> "Effects":
        """Contrasts, slopes and means by name, in the response's units, with intervals.

        Such as "age: 70 - 40", "age * 10", "sex[male] * 1 at age = 60", "sex: male" or "mean".
        What a question leaves open is averaged over rows.
        """
        from tacit.analyst.posterior.effects import effects

        return effects(self, questions, probability)

    def predict(
        self, table: object, interval: float = 0.9, holder: str | None = None
    ) -> "Predictions":
        """Predict the response of every row of a table, given as to `publish`.

        For the average holder; or for one `holder` by its name; or for "new", one that has not
        published.

        In the response's units: `mean`, with `mean_sd`, `mean_low` and `mean_high` for the mean
        response of such rows, and `sd`, `low` and `high` for a new one; sd² is `variance_residual`
        + `variance_sampling` + `variance_privacy`.
        """
        from tacit.analyst.posterior.prediction import predict

        return predict(self, table, interval, holder)

    def plot_forest(
        self, ax: "Axes | None" = None, probability: float = 0.9, units: UnitsName = "contrast"
    ) -> "Axes":
        """Draw every coefficient's interval and what privacy noise adds to it.

        By default in the response's units.
        """
        from tacit.analyst.posterior.plots import plot_forest

        return plot_forest(self, ax, probability, units)

    def plot_holders(
        self,
        name: str,
        ax: "Axes | None" = None,
        probability: float = 0.9,
        units: UnitsName = "contrast",
    ) -> "Axes":
        """Draw one coefficient holder by holder, over the average holder's and a new one's."""
        from tacit.analyst.posterior.plots import plot_holders

        return plot_holders(self, name, ax, probability, units)

    def plot_trace(
        self, axes: "Sequence[Sequence[Axes]] | None" = None, units: UnitsName = "user"
    ) -> "NDArray[Any]":
        """Draw density and chains of every coefficient on (coefficient, 2) axes.

        For a sampler's posterior only.
        """
        from tacit.analyst.posterior.plots import plot_trace

        return plot_trace(self, axes, units)

    def plot_pairs(
        self, axes: "Sequence[Sequence[Axes]] | None" = None, units: UnitsName = "user"
    ) -> "NDArray[Any]":
        """Draw every two coefficients against each other on (coefficient, coefficient) axes."""
        from tacit.analyst.posterior.plots import plot_pairs

        return plot_pairs(self, axes, units)

    def to_arviz(self, units: UnitsName = "user", draws: int = DRAWS) -> Any:  # noqa: ANN401
        """The posterior as the ArviZ that is installed takes it; a computed one is sampled."""
        from tacit.analyst.posterior.arviz import to_arviz

        return to_arviz(self, units, draws)

    def report(self, path: str | Path, probability: float = 0.9) -> None:
        """Write one self-contained HTML page for a reader who is no statistician."""
        from tacit.analyst.report import write_report

        write_report(self, Path(path), probability)

    def save(self, path: str | Path) -> None:
        """Write one Parquet file: draws in columns, everything else as JSON in its metadata."""
        from tacit.analyst.posterior.storage import save

        save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote."""
        from tacit.analyst.posterior.storage import load

        return load(cls, Path(path))

    def __repr__(self) -> str:
        holders = len(self.contributions)
        who = "1 holder" if holders == 1 else f"{holders} holders"
        counted = "rows" if self.study.person is None else "persons"
        rows = "" if self.rows is None else f", {self.rows:,.0f} {counted}"
        return (
            f"<Posterior of {self.study.name!r} by {self.method}: "
            f"{len(self.names())} coefficients of {self.model.response.modelled}, {who}{rows}>"
        )

    def _repr_html_(self) -> str:
        """The summary and a chart, as a notebook shows them."""
        from tacit.analyst.report.notebook import posterior_html

        return posterior_html(self)
