"""Summary: a posterior as a table with a verdict."""

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.analyst.families.links import FamilyName
from tacit.analyst.posterior.convergence import Mixing, Verdict, mixing, verdict
from tacit.analyst.posterior.estimand import estimand
from tacit.analyst.posterior.frames import frame_class
from tacit.analyst.posterior.holders import Holders
from tacit.analyst.posterior.laws import Draws, Mixture, Outcome, Student
from tacit.analyst.posterior.posterior import Contribution, Posterior, UnitsName
from tacit.analyst.posterior.ratios import Ratios, ratios_of
from tacit.analyst.posterior.reading import Explained, rough_of, standardised_units
from tacit.analyst.posterior.text_table import text_table
from tacit.study.labels import labelled
from tacit.study.words import counted

if TYPE_CHECKING:
    import pandas as pd


COLUMNS = ("mean", "sd", "low", "high", "positive", "standardised")
AVERAGED = "noise-aware"
"""The method whose draws are not a chain's: it is computed, and drawn from to average models."""
SAMPLED_COLUMNS = (*COLUMNS, "ess_bulk", "ess_tail", "rhat")
"""Columns of a data frame."""


@dataclass(frozen=True)
class Row:
    """One coefficient; effective sizes and R-hat are None where there is no sampling."""

    name: str
    mean: float
    sd: float
    low: float
    high: float
    positive: float  # probability that it is above zero
    standardised: float | None  # in standard deviations; None where it cannot be told
    ess_bulk: float | None
    ess_tail: float | None
    rhat: float | None


@dataclass(frozen=True)
class Summary:
    """The table and what it is worth."""

    method: str
    units: UnitsName
    probability: float
    rows: tuple[Row, ...]
    residual_sd: float
    verdict: Verdict
    caveat: str
    response: str
    estimand: str
    holders: Holders | None = None  # None where holders are taken to be alike
    explained: Explained | None = None  # R²; None where y'y was not published
    contributions: tuple[Contribution, ...] = ()
    relation: str = ""
    counted: str = "rows"  # what n counts, rows or persons
    labels: tuple[str, ...] = ()  # coefficients as the study labels them, for the eye
    measured: str = ""  # the response, as the study labels it and with its unit
    family: FamilyName | None = None  # None for a straight line
    ratios: Ratios | None = None  # odds ratios or rate ratios, of a family that has them

    @property
    def heads(self) -> list[str]:
        """Heads of the table's columns, the first of which names coefficients."""
        tail = 100 * (1 - self.probability) / 2
        heads = ["", "mean", "sd", f"{tail:g}%", f"{100 - tail:g}%", "P(>0)"]
        heads += ["std"] if self._standardised else []
        return [*heads, "ess bulk", "ess tail", "R-hat"] if self._sampled else heads

    @property
    def cells(self) -> list[list[str]]:
        """The table's cells, one line for each coefficient."""
        labels = self.labels or [row.name for row in self.rows]
        return [
            _cells(row, label, sampled=self._sampled, standardised=self._standardised)
            for row, label in zip(self.rows, labels, strict=True)
        ]

    @property
    def notes(self) -> list[str]:
        """What stands under the table: how it was made, the verdict, and the caveat if any."""
        about = f"residual sd {self.residual_sd:.4g} of {self.measured or self.response}"
        if self.family is not None:
            about = f"{self.measured or self.response}, {self.family} family"
        made = f"{about}; method {self.method}; {self.units} units"
        notes = (made, *self._facts, self.estimand, self.verdict.value, self.caveat)
        return [note for note in notes if note]

    @property
    def _facts(self) -> list[str]:
        """R², rows, holders and the budget, as far as they are known."""
        facts = []
        if self.explained is not None:
            share = self.explained
            facts.append(
                f"R2 {share.mean:.3f}, {100 * self.probability:g} % interval "
                f"{share.low:.3f} to {share.high:.3f}"
            )
        if self.contributions:
            facts.append(_budget_words(self.contributions, self.relation, self.counted))
        return facts

    @property
    def _standardised(self) -> bool:
        return any(row.standardised is not None for row in self.rows)

    @property
    def _sampled(self) -> bool:
        return self.rows[0].rhat is not None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; what is not a number is null."""
        rows = [
            {name: None if _absent(value) else value for name, value in asdict(row).items()}
            for row in self.rows
        ]
        return {
            "method": self.method,
            "response": self.response,
            "units": self.units,
            "probability": self.probability,
            "coefficients": rows,
            "residual_sd": None if self.family is not None else self.residual_sd,
            "family": self.family,
            "ratios": None if self.ratios is None else self.ratios.to_list(),
            "verdict": self.verdict.name.lower(),
            "advice": self.verdict.value,
            "caveat": self.caveat,
            "estimand": self.estimand,
            "holders": None if self.holders is None else self.holders.to_dict(),
            "explained": None if self.explained is None else asdict(self.explained),
            "relation": self.relation,
            "n": rows_of(self.contributions),
            "releases": [
                {"holder": c.holder, "n": c.n, "epsilon": c.epsilon, "delta": c.delta}
                for c in self.contributions
            ],
        }

    def to_pandas(self) -> "pd.DataFrame":
        """A data frame with a row for each coefficient, and everything else in its `attrs`."""
        names = [row.name for row in self.rows]
        columns = SAMPLED_COLUMNS if self._sampled else COLUMNS
        values = {column: [getattr(row, column) for row in self.rows] for column in columns}
        frame = frame_class("to_pandas()")(values, index=names)
        frame.index.name = "coefficient"
        frame.attrs = {
            name: fact for name, fact in self.to_dict().items() if name != "coefficients"
        }
        return frame

    def __str__(self) -> str:
        beside = [part for part in (self.ratios, self.holders) if part is not None]
        tables = [text_table([self.heads, *self.cells]), *map(str, beside)]
        return "\n".join(["\n\n".join(tables), "", *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table as a notebook shows it."""
        from tacit.analyst.report.notebook import summary_html

        return summary_html(self)


def summarise(posterior: Posterior, probability: float, units: UnitsName) -> Summary:
    """Put a posterior into a table."""
    outcome = posterior.outcome
    is_chain = isinstance(outcome, Draws) and posterior.method != AVERAGED
    mixed = mixing(posterior.draws(units)) if is_chain else None
    warning = outcome.warning if isinstance(outcome, Mixture) else ""
    rough = "" if warning else rough_of(posterior)
    holders = posterior.holders(probability, units)
    differ = "" if holders is None else holders.sentence
    return Summary(
        method=posterior.method,
        units=units,
        probability=probability,
        rows=_rows(posterior, probability, units, mixed),
        residual_sd=posterior.residual_sd(units),
        verdict=_judged(outcome, is_chain=is_chain),
        caveat=" ".join(filter(None, [posterior.caveat, warning, rough, differ])),
        response=posterior.model.response.modelled,
        estimand=estimand(posterior),
        holders=holders,
        explained=posterior.explained(probability),
        contributions=posterior.contributions,
        relation=posterior.study.relation,
        counted=counted(posterior.study),
        labels=tuple(labelled(posterior.model, list(posterior.names(units)))),
        measured=posterior.model.response.measured,
        family=None if posterior.family is None else posterior.family.name,
        ratios=ratios_of(posterior, probability, units),
    )


def _judged(outcome: Outcome, *, is_chain: bool) -> Verdict:
    """Draws are judged on θ and σ² together, which no change of units alters."""
    if isinstance(outcome, Draws):
        if not is_chain:
            return Verdict.DRAWN
        variance = np.log(outcome.noise_variance)[..., None]
        return verdict(outcome, mixing(np.concatenate([outcome.theta, variance], axis=-1)))
    if isinstance(outcome, Student) and outcome.scale is None:
        return Verdict.POINT
    return Verdict.COMPUTED


def _rows(
    posterior: Posterior, probability: float, units: UnitsName, mixed: Mixing | None
) -> tuple[Row, ...]:
    mean = posterior.mean(units)
    sd = posterior.sd(units)
    interval = posterior.interval(probability, units)
    positive = posterior.positive(units)
    standardised = _standardised(posterior, units)
    return tuple(
        Row(
            name=name,
            mean=float(mean[k]),
            sd=float(sd[k]),
            low=float(interval[k, 0]),
            high=float(interval[k, 1]),
            positive=float(positive[k]),
            standardised=standardised.get(name),
            ess_bulk=None if mixed is None else float(mixed.bulk[k]),
            ess_tail=None if mixed is None else float(mixed.tail[k]),
            rhat=None if mixed is None else float(mixed.rhat[k]),
        )
        for k, name in enumerate(posterior.names(units))
    )


def _standardised(posterior: Posterior, units: UnitsName) -> dict[str, float]:
    """Standardised coefficients by name; none where they are not those of the table's units."""
    told = standardised_units(posterior) if units in {"user", "standardised"} else None
    if told is None:
        return {}
    return dict(zip(told.names, posterior.mean(told).tolist(), strict=True))


def _budget_words(contributions: tuple[Contribution, ...], relation: str, counted: str) -> str:
    """Rows or persons, holders and what each spent, in one line."""
    n = rows_of(contributions)
    rows = f"{counted} not published" if n is None else f"{n:,.0f} {counted}"
    count = len(contributions)
    who = f"{count} holders"
    if count == 1:
        alone = contributions[0].holder
        who = f"a {alone}" if alone.startswith("secure sum of ") else f"1 holder, {alone}"
    epsilon = _span([each.epsilon for each in contributions])
    delta = _span([each.delta for each in contributions])
    spent = "" if count == 1 else " each"
    return f"{rows} of {who}; epsilon {epsilon} at delta {delta}{spent}, {relation}"


def rows_of(contributions: tuple[Contribution, ...]) -> float | None:
    """Rows of all holders; None where one does not publish them."""
    known = [each.n for each in contributions if each.n is not None]
    return sum(known) if contributions and len(known) == len(contributions) else None


def _span(values: list[float]) -> str:
    low = min(values)
    high = max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _absent(value: str | float | None) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def _cells(row: Row, label: str, *, sampled: bool, standardised: bool) -> list[str]:
    cells = [label, *(f"{value:.4g}" for value in (row.mean, row.sd, row.low, row.high))]
    cells.append(f"{row.positive:.3f}")
    if standardised:
        cells.append("" if row.standardised is None else f"{row.standardised:.3f}")
    if sampled:
        cells += [f"{row.ess_bulk:.0f}", f"{row.ess_tail:.0f}", f"{row.rhat:.3f}"]
    return cells
