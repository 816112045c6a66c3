"""What a reader of a family's coefficients should know: where the approximation is poor."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import pdtrc

from tacit.analyst.families.score import Score
from tacit.analyst.posterior.family import Family
from tacit.analyst.posterior.laws import Outcome
from tacit.study import Study

Array = NDArray[np.float64]

FEW_PER_COLUMN = 20
"""Cases of the rarer answer, for each column, below which it is called rare."""
STRONG = 2.0
"""Spread of x'β between rows, in logits, from which on effects are strong."""
PROBIT_SCALE = 1.7
"""Logits in a unit of the probit index, about."""
SHAPE_SDS = 0.5
SHAPE_SHARE = 0.03
"""How far a coefficient may move with the shape taken of features: in posterior sds, and in
shares of itself."""
ROUGH = 0.7
"""Posterior sd of a usual row's x'β, in logits, above which a straight line through its curve is
a rough one."""
NOT_BINARY = 0.7
"""Variance of 0/1 responses over what their mean says, below which they are not 0/1."""
OVERDISPERSED = 1.3
MOST_CUT = 0.01
"""Share of counts that the range may cut."""
MOST_NAMED = 4
RARE = (
    "Only about {events:,.0f} rows have the rarer answer, for {columns} columns: "
    "the coefficients lean on few cases."
)
STRONG_EFFECTS = (
    "Effects are strong: between rows {scale} have a standard deviation of {spread:.1f}. "
    "Where nearly all answers are certain, the releases tell little of how strong, and "
    "coefficients may be off by some per cent."
)
SHAPE = (
    "What is said of {names} rests on the shape that was taken of features which lie near one end "
    "of their ranges, or fill them: were they normal, it would be {moved:.0f} % off. Of one near "
    "an end a function in the study, as log(x), would rest on less."
)
ROUGH_LINE = (
    "The releases tell the {scale} of a usual row to within {spread:.1f} only: intervals are rough."
)
NO_ANSWERS = (
    "The responses vary less than answers of 0 and 1 would: where they are shares or scores, "
    "read the coefficients as those of their mean."
)
SPREAD_OUT = (
    "Counts vary {times:.1f} times as much as a Poisson law has it: intervals of coefficients and "
    "of new counts are widened by it."
)
CUT = (
    "About {share:.0f} % of counts would lie above the range and were taken to be at its end: "
    "a wider range in the study would help."
)


def cautions(
    study: Study, score: Score, family: Family, outcome: Outcome, *, normal: Score, rows: float
) -> list[str]:
    """Sentences on rare answers, strong effects, shapes that matter, and odd responses.

    `normal` is the same family over rows whose numbers are all normal.
    """
    link = score.link
    beta = family.coefficients(outcome.mean())
    index = score.law.rows @ beta
    means = link.mean(index)
    logits = PROBIT_SCALE if link.name == "probit" else 1.0
    told = []
    mean = float(means.mean())
    events = rows * (min(mean, 1 - mean) if link.binary else mean)
    if events < FEW_PER_COLUMN * study.d:
        told.append(RARE.format(events=events, columns=study.d))
    if logits * float(index.std()) > STRONG:
        told.append(STRONG_EFFECTS.format(scale=link.scale, spread=float(index.std())))
    told += _shape(study, normal, family, outcome)
    spread = np.sqrt(np.sum(score.second * _covariance(family, outcome)))
    if logits * spread > ROUGH:
        told.append(ROUGH_LINE.format(scale=link.scale, spread=spread))
    if link.binary and family.dispersion < NOT_BINARY:
        told.append(NO_ANSWERS)
    if not link.binary and family.dispersion > OVERDISPERSED:
        told.append(SPREAD_OUT.format(times=family.dispersion))
    if not link.binary:
        cut = float(np.mean(pdtrc(np.floor(study.response.range[1]), means)))
        if cut > MOST_CUT:
            told.append(CUT.format(share=100 * cut))
    return told


def _covariance(family: Family, outcome: Outcome) -> Array:
    covariance: Array = family.matrix @ outcome.covariance() @ family.matrix.T
    return covariance


def _shape(study: Study, normal: Score, family: Family, outcome: Outcome) -> list[str]:
    """Coefficients that would clearly be others were every number normal."""
    beta = family.coefficients(outcome.mean())
    other = normal.solve(outcome.mean(), outcome.covariance())
    apart = np.abs(other - beta)
    sd = np.sqrt(np.diag(_covariance(family, outcome)))
    moved = (apart > SHAPE_SDS * sd) & (apart > SHAPE_SHARE * np.abs(beta))
    moved[0] = False
    if not moved.any():
        return []
    chosen = [name for name, is_moved in zip(study.columns, moved, strict=True) if is_moved]
    names = [repr(name) for name in chosen[:MOST_NAMED]]
    if len(chosen) > MOST_NAMED:
        names.append(f"{len(chosen) - MOST_NAMED} more columns")
    most = 100 * float(np.max(apart[moved] / np.maximum(np.abs(beta[moved]), 1e-12)))
    listed = names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]}"
    return [SHAPE.format(names=listed, moved=min(most, 100.0))]
