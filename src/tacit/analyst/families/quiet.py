r"""What is known of X'X beforehand, where columns are levels and the response is 0 or 1.

A level x is 0 or 1, so x² = x: its entry on the diagonal of X'X is that of its product with the
intercept, and the difference of the two released ones is noise alone. With R the symmetric matrix
of length 1 that takes this difference, ⟨R, X'X⟩ = 0, and ⟨R, Ŝ⟩R is taken off Ŝ: what is left has
no noise along R, and a third less variance in a level's product with the intercept. No other use
of the difference is better, since noise with one law in every direction (`frobenius`) has parts
along orthogonal matrices that tell nothing of each other.

A response of 0 or 1 is ±1 as it is scaled, and shrinks with its row, so that y'y = Σα² is the
intercept's entry of X'X, seen once more and with less noise: both are joined by their variances.
Where the two are further apart than noise makes them, responses are others, and nothing is joined.

Rare answers gain most: their straight line has a constant near the end of the range, by which the
noise in the intercept's row of X'X is multiplied.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.study import Study

Array = NDArray[np.float64]

APART = 3.0
"""Standard deviations that y'y and the intercept's entry may be apart."""


def quieter(study: Study, evidence: Evidence, *, binary: bool) -> Evidence:
    """Evidence of the study's columns without what is known to be noise; the intercept is one."""
    if not np.allclose(evidence.off_diagonal_sd, evidence.gram_sd / math.sqrt(2)):
        return evidence
    rules = np.zeros((0, study.d, study.d))
    levels = level_places(study)
    if levels:
        rules = np.array([_rule(place, study.d) for place in levels])
    along = np.einsum("rab,jab->jr", rules, evidence.grams)
    grams = evidence.grams - np.tensordot(along, rules, 1)
    share = _share(evidence) if binary else 0.0
    if evidence.squares is not None and share > 0:
        grams[:, 0, 0] += share * (evidence.squares - grams[:, 0, 0])
        entry = np.zeros((1, study.d, study.d))
        entry[0, 0, 0] = math.sqrt(share)
        rules = np.concatenate([rules, entry])
    return replace(evidence, grams=grams, quiet=rules)


def level_places(study: Study) -> list[int]:
    """Columns that are a level by themselves."""
    columns = study.columns
    names = [name for each in study.features if each.range is None for name in each.columns]
    return [columns.index(name) for name in names if name in columns]


def _rule(place: int, d: int) -> Array:
    """R of a level: length 1, and orthogonal to X'X and to that of every other level."""
    rule = np.zeros((d, d))
    rule[place, place] = math.sqrt(2 / 3)
    rule[0, place] = -math.sqrt(1 / 6)
    rule[place, 0] = -math.sqrt(1 / 6)
    return rule


def _share(evidence: Evidence) -> float:
    """How much y'y counts as the intercept's entry of X'X; 0 where responses are not 0 and 1."""
    if evidence.squares is None or evidence.square_sd is None:
        return 0.0
    entry = float(np.sum(evidence.gram_sd**2))
    square = float(np.sum(evidence.square_sd**2))
    apart = float(np.sum(evidence.squares - evidence.grams[:, 0, 0]))
    if entry == 0 or abs(apart) > APART * math.sqrt(entry + square):
        return 0.0
    return entry / (entry + square)
