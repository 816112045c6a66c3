"""What a reader should know of single columns, whatever the method: sentences for the summary."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.gram import total_of
from tacit.analyst.methods.noise_aware.slopes import slopes_of
from tacit.analyst.posterior.laws import Mixture, Outcome
from tacit.analyst.prior import Prior

Array = NDArray[np.float64]

SEEN = 3.0
"""A column's sum of squares must be so many standard deviations of its noise to be seen to vary."""
UNTOLD = 0.8
"""Posterior sd over what was expected beforehand from which an interval is the prior's."""
MOST_NAMED = 4
HIDDEN = (
    "The noise hides the spread of {names}, so hardly anything is learnt of the slope there: "
    "narrower typical intervals, or several visits that find where values lie (planned_rows), "
    "would help."
)
HIDDEN_FROM_VISITS = (
    "The noise hides the spread of {names}, from several visits too, so hardly anything is learnt "
    "of the slope there: ranges or typical intervals nearer to where values lie would help, "
    "or more rows."
)
CONSTANT = (
    "Hardly any variation within holders is seen of {names}: what is said there rests on "
    "differences between holders, whatever else these differ in."
)
ASIDE = (
    "Rows of {holders}, left out of the average, tell nothing of {names}: what is shown of it "
    "there is what visits tell of all holders, and no interval of its own."
)
PRIORS = "Of {names} the releases tell hardly more than was expected beforehand."


def cautions(
    evidence: Evidence, columns: tuple[str, ...], prior: Prior, outcome: Outcome
) -> list[str]:
    """Sentences on columns that noise hides, that are constant within holders, or untold."""
    first = int(evidence.intercept)
    names = np.array(columns[first:])
    if not len(names):
        return []
    noise: Array | float = float(np.sqrt(np.sum(evidence.gram_sd**2)))
    if evidence.column_sd is not None:
        noise = evidence.column_sd[first:]
    hidden = _squares(evidence.grams.sum(axis=0)[None], first)[0] < SEEN * noise
    within = _squares(evidence.grams, first).sum(axis=0)
    constant = ~hidden & (within < SEEN * noise) & (evidence.holders > 1)
    untold = ~hidden & ~constant & _untold(evidence, prior, outcome)[first:]
    of_hidden = HIDDEN if evidence.column_sd is None else HIDDEN_FROM_VISITS
    told = [(of_hidden, hidden), (CONSTANT, constant), (PRIORS, untold)]
    return [text.format(names=_list(names[chosen])) for text, chosen in told if chosen.any()]


def of_aside(outcome: Outcome, columns: tuple[str, ...], holders: Sequence[str]) -> list[str]:
    """A sentence on columns of holders, for holders that visits set aside; else nothing."""
    if not isinstance(outcome, Mixture) or outcome.differing is None:
        return []
    differing = outcome.differing
    if not differing.outlying or not differing.constant.any():
        return []
    aside = _list(np.array([holders[j] for j in differing.outlying]))
    names = _list(np.array(columns)[differing.constant])
    return [ASIDE.format(holders=aside, names=names)]


def _squares(grams: Array, first: int) -> Array:
    """Sums of squares of columns about their means, as the noisy matrices have them, (J, p)."""
    squares: Array = np.diagonal(grams, axis1=1, axis2=2)[:, first:].copy()
    if first:
        counts = grams[:, 0, :1]
        squares -= np.divide(
            grams[:, 0, 1:] ** 2, counts, out=np.zeros_like(squares), where=counts > 0
        )
    return squares


def _untold(evidence: Evidence, prior: Prior, outcome: Outcome) -> NDArray[np.bool_]:
    """Coefficients whose posterior is about as wide as the prior, which shrinks only slopes."""
    if not isinstance(outcome, Mixture) or not prior.by_spread:
        return np.zeros(evidence.d, dtype=bool)
    expected = np.diag(slopes_of(evidence, total_of(evidence), prior).covariance(1.0))
    untold: NDArray[np.bool_] = np.diag(outcome.covariance()) > UNTOLD**2 * expected
    return untold


def _list(names: Array) -> str:
    """The names, or the first few of them and how many more."""
    quoted = [repr(str(name)) for name in names[:MOST_NAMED]]
    more = len(names) - len(quoted)
    if more:
        quoted.append(f"{more} more columns")
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + f" and {quoted[-1]}"
