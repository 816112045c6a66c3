"""Whether draws can be trusted: effective sizes, R-hat, and a verdict in plain words."""

from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.posterior.laws import Draws
from tacit.errors import MethodError

ENOUGH_DRAWS = 400
"""Effective draws below which quantiles are too rough to report [Vehtari et al. 2021]."""
CONVERGED_RHAT = 1.01
STUCK_RHAT = 1.05
STUCK_ACCEPTANCE = 0.01

Array = NDArray[np.float64]


class Verdict(Enum):
    """What the diagnostics say, with what to do."""

    COMPUTED = "Computed, not sampled: there is no sampling error."
    DRAWN = "Computed, then drawn: the draws are independent, and there is no chain to judge."
    POINT = "A point estimate: this method has no posterior, so there is no interval."
    CONVERGED = "Converged: every R-hat is below 1.01 and every effective size above 400."
    TOO_SHORT = (
        "Not converged, too short: run more draws and warm-up "
        "until every effective size exceeds 400."
    )
    STUCK = (
        "Not converged, stuck: the chains disagree or hardly move; "
        "do not use these numbers, choose another method."
    )


@dataclass(frozen=True)
class Mixing:
    """Per quantity: effective size of the bulk and the tails, and R-hat."""

    bulk: Array
    tail: Array
    rhat: Array


def mixing(draws: Array) -> Mixing:
    """Diagnostics of draws with axes (chain, draw, quantity)."""
    # Half a second or more: only where there are draws.
    try:
        array_stats: Any = import_module("arviz_stats.base").array_stats
    except ModuleNotFoundError as missing:
        raise MethodError(
            "draws are judged with arviz-stats, which is not installed: "
            "pip install 'tacit-dp[sampling]'"
        ) from missing
    axes = {"chain_axis": 0, "draw_axis": 1}
    # A chain that never moved has no R-hat: NaN, which is stuck.
    with np.errstate(invalid="ignore", divide="ignore"):
        bulk = array_stats.ess(draws, method="bulk", **axes)
        tail = array_stats.ess(draws, method="tail", prob=(0.05, 0.95), **axes)
        rhat = array_stats.rhat(draws, method="rank", **axes)
    return Mixing(bulk=np.atleast_1d(bulk), tail=np.atleast_1d(tail), rhat=np.atleast_1d(rhat))


def verdict(draws: Draws, mixed: Mixing) -> Verdict:
    """Judge a run by its worst quantity."""
    size = np.min(np.minimum(mixed.bulk, mixed.tail))
    rhat = np.max(mixed.rhat)
    accepted = min((float(rates.min()) for rates in draws.acceptance.values()), default=1.0)
    if not np.isfinite([size, rhat]).all() or rhat > STUCK_RHAT or accepted < STUCK_ACCEPTANCE:
        return Verdict.STUCK
    if rhat > CONVERGED_RHAT or size < ENOUGH_DRAWS:
        return Verdict.TOO_SHORT
    return Verdict.CONVERGED
