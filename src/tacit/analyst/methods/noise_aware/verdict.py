"""What releases cannot support, from the posterior's own account of the response's variance."""

import math

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.noise_aware.facts import Facts
from tacit.analyst.posterior.laws import Mixture

Array = NDArray[np.float64]

MOST_UNKNOWN = 0.1
"""Share of the response's variance that slopes may leave in doubt, where that is more than what
they are known to explain."""
MOST_LEVEL = 0.05
"""The same for the mean response."""
SEEN = 3.0
"""What responses' sum of squares must be, over the noise on it, for them to be seen to vary."""
MOST_SPREAD = 0.5
"""Posterior sd of σ² over its mean above which little is known of it: where noise hides it, which
intervals for a new response show by holding 93 % and more (`hidden` in benchmarks/coverage.py), it
is above that in three runs of four or more."""
TOO_LITTLE = "The releases carry too little to learn most coefficients from: "
NOISE = (
    f"{TOO_LITTLE}the noise is larger than what the data could show; more rows or a larger epsilon "
    "would help."
)
WIDE_RANGE = (
    f"{NOISE[:-1]}, and a narrower range of the response if it is far wider than responses are."
)
FEW_ROWS = (
    f"{TOO_LITTLE}rows are few for so many columns, without any noise too; more rows or fewer "
    "columns would help, and a larger epsilon little."
)
VAGUE_RESIDUAL = (
    "The releases say little of the residual variance: intervals for a new response are rough."
)


def warning(mixture: Mixture, covariance: Array, facts: Facts, evidence: Evidence) -> str:
    """The sentence that a summary carries; empty where releases tell enough.

    `covariance` is that of θ were holders alike: their differences are no lack of evidence. What
    noise may hide of X'X counts by half, as it does in the residual variance. Of visits, what the
    last offset explains is known, too. d coefficients of n rows leave σ²d/n in doubt by themselves.
    Where noise hides how far responses spread, no doubt is small beside that.
    """
    basis = facts.grams.basis
    first = facts.slopes.first
    seen = facts.sampling.sum(axis=0) / facts.grams.sizes.sum() + facts.slopes.hidden / 2
    gram = mixture.unshrunk * basis @ seen @ basis.T
    level = 0.0
    if first:
        middle = gram[0] / max(gram[0, 0], 1e-12)
        level = float(middle @ covariance @ middle)
        gram = gram - np.outer(middle, gram[0])
    frame = evidence.frame
    offset = 0.0 if frame is None else np.linalg.solve(frame.map, frame.start)
    slopes = (mixture.mean() + offset)[first:]
    known = float(slopes @ gram[first:, first:] @ slopes)
    unknown = float(np.sum(gram[first:, first:] * covariance[first:, first:]))
    variance = mixture.residual_variance()
    total = variance + known + unknown
    is_hidden = _is_hidden(evidence)
    is_much = unknown > MOST_UNKNOWN * total or is_hidden
    if level > MOST_LEVEL * total or (unknown > known and is_much):
        sampled = variance * len(covariance) / facts.grams.sizes.sum()
        by_noise = WIDE_RANGE if is_hidden else NOISE
        return FEW_ROWS if sampled > (unknown + level) / 2 else by_noise
    square = float(mixture.weights @ mixture.noise_variances**2)
    spread = math.sqrt(max(square - variance**2, 0.0))
    return VAGUE_RESIDUAL if spread > MOST_SPREAD * variance else ""


def _is_hidden(evidence: Evidence) -> bool:
    """Whether noise hides how far responses spread, as where their range is far too wide."""
    if evidence.squares is None or evidence.square_sd is None or evidence.frame is not None:
        return False
    square = float(evidence.squares.sum())
    rows = float(evidence.grams[:, 0, 0].sum())
    if evidence.intercept and rows > 0:
        square -= float(evidence.moments[:, 0].sum()) ** 2 / rows
    return square < SEEN * math.sqrt(float(np.sum(evidence.square_sd**2)))
