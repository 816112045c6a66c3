"""A family's fit: a straight line, then a line that knows how its errors vary, then the map."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.families.cautions import cautions
from tacit.analyst.families.law import law_of
from tacit.analyst.families.links import Link, link_named
from tacit.analyst.families.quiet import level_places, quieter
from tacit.analyst.families.score import Score
from tacit.analyst.families.visited import VisitedScore
from tacit.analyst.frame import Frame
from tacit.analyst.posterior.family import Family
from tacit.analyst.posterior.laws import Mixture, Outcome
from tacit.analyst.posterior.pooled import pool
from tacit.analyst.prior import Prior
from tacit.errors import MethodError
from tacit.study import Study
from tacit.study.columns import Response

Array = NDArray[np.float64]
Infer = Callable[[Evidence, Prior], Outcome]

ROUNDS = 2
"""Times that coefficients and the first answer are found from each other."""
SHARES = (1.0, 2.0, 4.0)
"""What slopes are expected to explain, of what they can (`Score.explainable`), equally likely."""


@dataclass(frozen=True)
class Fitted:
    """The straight line with errors as the family has them, its evidence, the map, and cautions.

    Without a family it is the straight line alone.
    """

    outcome: Outcome
    evidence: Evidence
    family: Family | None
    cautions: tuple[str, ...]


@dataclass(frozen=True)
class Question:
    """What is asked: a model, the study that releases are of, their evidence, and a prior.

    Of several visits, `visits` is the frame of all columns of the study, of which `places` are the
    model's.
    """

    study: Study
    agreed: Study
    evidence: Evidence
    prior: Prior
    visits: Frame | None = None
    places: tuple[int, ...] = ()
    from_first: bool = False  # whether `prior` is what visits answered first


def fit_family(
    name: str,
    asked: Question,
    first: Infer,
    infer: Infer,
) -> Fitted:
    """Fit a family; `infer` gives the posterior of a straight line, `first` a quick one."""
    link = link_named(name)
    check_study(link, asked.agreed, asked.study.response)
    if asked.evidence.counts is None:
        raise MethodError(
            f"family: {name} needs releases with the number of rows: "
            'set release.count to "noisy" or "public" in the study, and publish anew'
        )
    try:
        if asked.visits is not None:
            return _visited(link, asked, asked.visits, first, infer)
        return _fitted(link, asked, first, infer)
    except np.linalg.LinAlgError:
        raise MethodError(
            f"family: {name} cannot be computed with these releases: a column hardly varies, or "
            "their numbers are too far apart in size; leave the column out (without)"
        ) from None


def _fitted(
    link: Link,
    asked: Question,
    first: Infer,
    infer: Infer,
) -> Fitted:
    evidence = quieter(asked.study, asked.evidence, binary=link.binary)
    pilot = first(evidence, asked.prior)
    pooled = pool(evidence, asked.prior, pilot)
    score = score_of(asked.study, link, pooled.gram)
    guess = score.family(pilot)
    beta = guess.coefficients(pilot.mean())
    error_map = score.error_map(
        beta,
        1.0 if link.binary else guess.dispersion,
        asked.agreed.row_radius,
        float(np.clip(pooled.gram[0, 0] / pooled.rows, 0.0, 1.0)),
    )
    unlike = replace(evidence, error_maps=np.tile(error_map, (evidence.holders, 1, 1)))
    most = score.explainable(beta)
    prior = replace(asked.prior, shares=tuple(most * share for share in SHARES))
    outcome = infer(unlike, prior)
    family = score.family(outcome)
    normal = replace(score, law=law_of(asked.study, pooled.gram, normal=True))
    return Fitted(
        outcome=outcome,
        evidence=unlike,
        family=family,
        cautions=tuple(
            cautions(asked.study, score, family, outcome, normal=normal, rows=pooled.rows)
        ),
    )


def _visited(link: Link, asked: Question, visits: Frame, first: Infer, infer: Infer) -> Fitted:
    """The same of several visits, whose moments are those of cut residuals."""
    evidence = asked.evidence
    frame = evidence.frame
    if frame is None or evidence.counts is None:  # pragma: no cover - visits have both
        raise AssertionError
    score = partial(VisitedScore.over, asked.agreed, link, visits, frame, list(asked.places))
    prior = asked.prior
    known = score()
    for _ in range(ROUNDS):
        pilot = first(evidence, prior)
        guess = known.family(frame.outcome(pilot))
        beta = guess.coefficients(frame.outcome(pilot).mean())
        if asked.from_first:
            prior = known.prior(asked.prior, beta)
    rows = float(np.sum(np.maximum(evidence.counts, 1.0)))
    unshrunk = pilot.unshrunk if isinstance(pilot, Mixture) else 1.0
    error_map = known.mapped_errors(
        beta,
        1.0 if link.binary else guess.dispersion,
        pilot.residual_variance() / unshrunk,
    )
    unlike = replace(evidence, error_maps=np.tile(error_map, (evidence.holders, 1, 1)))
    outcome = infer(unlike, prior)
    line = frame.outcome(outcome)
    family = known.family(line)
    told = cautions(asked.study, known, family, line, normal=score(normal=True), rows=rows)
    return Fitted(outcome=outcome, evidence=unlike, family=family, cautions=tuple(told))


def score_of(study: Study, link: Link, gram: Array) -> Score:
    """A family over the law that X'X tells of rows."""
    centre, half = study.response.mapping
    return Score(
        law=law_of(study, gram),
        link=link,
        centre=centre,
        half=half,
        levels=tuple(level_places(study)),
    )


def check_study(link: Link, study: Study, response: Response) -> None:
    """Refuse a response that is not the family's, or a study whose releases cannot tell."""
    low, high = response.range
    if link.binary and (low, high) != (0.0, 1.0):
        raise MethodError(
            f"family: {link.name} needs a response of 0 and 1, whose range is [0, 1] in the study; "
            f"that of {response.name!r} is [{low:g}, {high:g}]"
        )
    if low != 0:
        raise MethodError(
            f"family: {link.name} needs counts, whose range begins at 0 in the study; "
            f"that of {response.name!r} begins at {low:g}"
        )
    if response.function is not None or not study.intercept or study.release.average > 1:
        raise MethodError(
            f"family: {link.name} needs a study with an intercept, without a function of the "
            "response and without averaged rows"
        )
    if study.response_bound < 1:
        raise MethodError(
            f"family: {link.name} needs release.response_bound of 1 or more in the study: "
            "responses that were cut there are no counts"
        )
