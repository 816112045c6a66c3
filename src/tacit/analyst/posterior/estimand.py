"""What the coefficients are coefficients of, in words: which rows counted for less, by how much."""

from typing import Any

import numpy as np

from tacit.analyst.posterior.posterior import Posterior
from tacit.study.submodel import term_names

NEARLY_ALL = 0.98
"""Mean weight of rows from which on none is said to count for less."""
AS_THEY_ARE = "The coefficients are those of the best {line} for rows as they are."
PERSONS = "All rows of a person count together as one."
SHORTENED = (
    "The coefficients are those of the best {line} for rows weighted by length: encoded "
    "rows longer than {radius:.3g} count for less, rows on average {weight:.2g} of a whole one."
)
WEIGHTED = (
    "The coefficients are those of the best {line} for rows weighted by {column!r}, encoded rows "
    "longer than {radius:.3g} for less."
)
UNKNOWN = (
    "The coefficients are those of the best {line} for rows weighted by length: encoded "
    "rows longer than {radius:.3g} count for less, how many is not told{reason}."
)
VISITED = (
    "The coefficients are those of the best {line} for rows of which those far from the rest, and "
    "residuals beyond a visit's bound, count for less{share}."
)
ALLOWED = "Intervals allow for how far the best one for rows as they are may lie from it{but}."
STATED = ", but not for rows far beyond a stated typical interval"
NORMAL_TAILS = (
    "The residual sd is that of residuals with normal tails, since bounds cut longer ones off; R2 "
    "allows for what is told of these."
)
HARDLY_CUT = 0.995
"""Share of residuals within a visit's bound from which on tails are not spoken of."""
HARMLESS = "Where the relation is {straight} this changes nothing."
LEFT_OUT = (
    "Left out of the study's terms: {names}. What these explain is in the residual, and in the "
    "coefficients of columns that go with them."
)
SHRUNK_BY_ALL = (
    "Rows count by their length in all columns of the study, those left out included; where these "
    "matter, the best line is that for rows so weighted."
)
MOST_NAMED = 4


def estimand(posterior: Posterior) -> str:
    """The sentences for a posterior's summary."""
    persons = PERSONS if posterior.study.person is not None else ""
    return " ".join(filter(None, [_line(posterior), persons, _dropped(posterior)]))


def _share(posterior: Posterior) -> str:
    """How much rows of several visits count for, where that is told and is not all."""
    if posterior.pooled is None or not posterior.study.intercept:
        return ""
    weight = float(np.clip(posterior.pooled.gram[0, 0] / posterior.pooled.rows, 0.0, 1.0))
    return "" if weight >= NEARLY_ALL else f": on average {weight:.2g} of a whole one"


def left_out(posterior: Posterior) -> list[str]:
    """Terms of the study that a sub-model leaves out."""
    kept = term_names(posterior.model)
    return [name for name in term_names(posterior.study) if name not in kept]


def _dropped(posterior: Posterior) -> str:
    """What it means that a sub-model leaves terms out."""
    names = left_out(posterior)
    if not names:
        return ""
    study = posterior.study
    listed = ", ".join(names[:MOST_NAMED])
    if len(names) > MOST_NAMED:
        listed += f" and {len(names) - MOST_NAMED} more"
    shrunk = study.row_radius < study.longest_row
    return " ".join([LEFT_OUT.format(names=listed), *([SHRUNK_BY_ALL] if shrunk else [])])


def _line(posterior: Posterior) -> str:
    """Which line it is the best of, and for which rows."""
    study = posterior.study
    words: dict[str, Any] = {
        "line": "straight line",
        "straight": "straight",
        "radius": study.row_radius,
    }
    if posterior.model.terms:
        words |= {"line": "sum of the terms", "straight": "such a sum"}
    if study.weight is not None:
        return WEIGHTED.format(column=study.weight.column, **words)
    if posterior.family is not None:
        words |= {"line": f"{posterior.family.name} model", "straight": "such a model's"}
    if study.visit_count > 1:
        return _visited(posterior, words)
    if study.row_radius >= study.longest_row:
        return AS_THEY_ARE.format(**words)
    if not study.intercept or posterior.pooled is None or study.release.average > 1:
        reason = "" if study.intercept else " without an intercept"
        return _told(posterior, UNKNOWN, words | {"reason": reason})
    pooled = posterior.pooled
    weight = float(np.clip(pooled.gram[0, 0] / pooled.rows, 0.0, 1.0))
    if weight >= NEARLY_ALL:
        return AS_THEY_ARE.format(**words)
    return _told(posterior, SHORTENED, words | {"weight": weight})


def _visited(posterior: Posterior, words: dict[str, Any]) -> str:
    """Which line several visits tell; a family's intervals are those of its own line."""
    told = _told(posterior, VISITED, words | {"share": _share(posterior)})
    if posterior.family is not None:
        return told
    stated = any(product.is_typical for product in posterior.study.products)
    sentences = [told, ALLOWED.format(but=STATED if stated else ""), _tails(posterior)]
    return " ".join(filter(None, sentences))


def _tails(posterior: Posterior) -> str:
    """What is told of residuals whose tails bounds cut off."""
    frame = None if posterior.source is None else posterior.source.evidence.frame
    return "" if frame is None or frame.inside >= HARDLY_CUT else NORMAL_TAILS


def _told(posterior: Posterior, sentence: str, words: dict[str, Any]) -> str:
    """A sentence on weights, and what they do; of a sub-model its own sentences say that."""
    after = "" if left_out(posterior) else f" {HARMLESS}"
    return (sentence + after).format(**words)
