"""Summary: a posterior as a table with a verdict."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tacit.analyst.posterior.diagnostics import Mixing, Verdict, mixing, verdict
from tacit.analyst.posterior.estimand import estimand
from tacit.analyst.posterior.laws import Draws, Mixture, Student
from tacit.analyst.posterior.posterior import Posterior, UnitsName


@dataclass(frozen=True)
class Row:
    """One coefficient; effective sizes and R-hat are None where there is no sampling."""

    name: str
    mean: float
    sd: float
    low: float
    high: float
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

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; what is not a number is null."""
        rows = [
            {name: None if _absent(value) else value for name, value in asdict(row).items()}
            for row in self.rows
        ]
        facts = {
            "method": self.method,
            "response": self.response,
            "units": self.units,
            "probability": self.probability,
            "coefficients": rows,
        }
        judged = {
            "verdict": self.verdict.name.lower(),
            "advice": self.verdict.value,
            "caveat": self.caveat,
            "estimand": self.estimand,
        }
        return facts | {"residual_sd": self.residual_sd} | judged

    def __str__(self) -> str:
        tail = 100 * (1 - self.probability) / 2
        heads = ["", "mean", "sd", f"{tail:g}%", f"{100 - tail:g}%"]
        sampled = self.rows[0].rhat is not None
        heads += ["ess bulk", "ess tail", "R-hat"] if sampled else []
        cells = [heads] + [_cells(row, sampled=sampled) for row in self.rows]
        widths = [max(len(line[k]) for line in cells) for k in range(len(heads))]
        lines = [
            "  ".join(
                [
                    line[0].ljust(widths[0]),
                    *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True)),
                ]
            )
            for line in cells
        ]
        foot = [
            f"residual sd {self.residual_sd:.4g} of {self.response}; method {self.method}; {self.units} units",
            self.estimand,
            self.verdict.value,
            self.caveat,
        ]
        return "\n".join([*lines, "", *(line for line in foot if line)])


def summarise(posterior: Posterior, probability: float, units: UnitsName) -> Summary:
    """Put a posterior into a table; draws are judged on θ and σ² together, which no change of units alters."""
    outcome = posterior.outcome
    found: Mixing | None = None
    if isinstance(outcome, Draws):
        found = mixing(posterior.draws(units))
        judged = mixing(
            np.concatenate([outcome.theta, np.log(outcome.noise_variance)[..., None]], axis=-1)
        )
        judgement = verdict(outcome, judged)
    else:
        judgement = (
            Verdict.POINT
            if isinstance(outcome, Student) and outcome.scale is None
            else Verdict.COMPUTED
        )
    caveat = " ".join(
        filter(None, [posterior.caveat, outcome.warning if isinstance(outcome, Mixture) else ""])
    )
    mean, sd, interval = (
        posterior.mean(units),
        posterior.sd(units),
        posterior.interval(probability, units),
    )
    rows = tuple(
        Row(
            name,
            float(mean[k]),
            float(sd[k]),
            float(interval[k, 0]),
            float(interval[k, 1]),
            *(
                (None, None, None)
                if found is None
                else (float(found.bulk[k]), float(found.tail[k]), float(found.rhat[k]))
            ),
        )
        for k, name in enumerate(posterior.names(units))
    )
    return Summary(
        posterior.method,
        units,
        probability,
        rows,
        posterior.residual_sd(units),
        judgement,
        caveat,
        posterior.study.response.label,
        estimand(posterior),
    )


def _absent(value: str | float | None) -> bool:
    return value is None or (isinstance(value, float) and not np.isfinite(value))


def _cells(row: Row, *, sampled: bool) -> list[str]:
    cells = [row.name, *(f"{value:.4g}" for value in (row.mean, row.sd, row.low, row.high))]
    return (
        [*cells, f"{row.ess_bulk:.0f}", f"{row.ess_tail:.0f}", f"{row.rhat:.3f}"]
        if sampled
        else cells
    )
