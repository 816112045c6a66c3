"""What the coefficients are coefficients of, in words: which rows counted for less, by how much."""

import numpy as np

from tacit.analyst.posterior.posterior import Posterior

NEARLY_ALL = 0.98
"""Mean weight of rows from which on none is said to count for less."""
AS_THEY_ARE = "The coefficients are those of the best {line} for rows as they are."
SHORTENED = (
    "The coefficients are those of the best {line} for rows weighted by length: encoded "
    "rows longer than {radius:.3g} count for less, rows on average {weight:.2g} of a whole one. "
    "Where the relation is {straight} this changes nothing."
)
UNKNOWN = (
    "The coefficients are those of the best {line} for rows weighted by length: encoded "
    "rows longer than {radius:.3g} count for less, how many is not told without an intercept. "
    "Where the relation is {straight} this changes nothing."
)


def estimand(posterior: Posterior) -> str:
    """The sentence for a posterior's summary."""
    study = posterior.study
    words = {"line": "straight line", "straight": "straight", "radius": study.row_radius}
    if study.terms:
        words |= {"line": "sum of the terms", "straight": "such a sum"}
    if study.row_radius >= study.longest_row:
        return AS_THEY_ARE.format(**words)
    if not study.intercept or posterior.pooled is None or study.release.average > 1:
        return UNKNOWN.format(**words)
    pooled = posterior.pooled
    weight = float(np.clip(pooled.gram[0, 0] / pooled.rows, 0.0, 1.0))
    if weight >= NEARLY_ALL:
        return AS_THEY_ARE.format(**words)
    return SHORTENED.format(weight=weight, **words)
