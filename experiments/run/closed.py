"""The closed forms on one release of the paper.

Fixed-s-fast and ada-ssp, and the non-private posterior.
"""

import numpy as np
from numpy.typing import NDArray

from experiments.model.priors import SIGMA, fast_variance, paper_prior
from experiments.model.published import ada_ssp_thirds
from experiments.model.release import (
    Budget,
    Calibration,
    Standard,
    Statistics,
    exact,
    noise_sds,
    noisy,
)
from tacit.analyst.methods import ada_ssp, fixed_s_fast, non_private
from tacit.analyst.methods.method import Settings, Student
from tacit.analyst.prior import Prior

Array = NDArray[np.float64]
TEXT = "ada-ssp-text"
"""ada-ssp with the budget of the paper's text, 2ε/3 for (S, z) and ε/3 for λ_min."""


def fixed_s_fast_of(
    calibration: Calibration, statistics: Statistics, noise: Standard, budget: Budget, prior: Prior
) -> Student:
    """Its Gaussian posterior."""
    evidence = noisy(statistics, noise_sds(calibration, "pair", statistics, budget), noise, budget)
    return fixed_s_fast.fit(
        evidence,
        prior,
        Settings(noise_variance=fast_variance(calibration, statistics.response_bound)),
    )


def ada_ssp_of(
    calibration: Calibration, statistics: Statistics, noise: Standard, budget: Budget
) -> Array:
    """Its point: with ε/3 for each part as published, with one joint release honestly."""
    evidence = noisy(statistics, noise_sds(calibration, "eigen", statistics, budget), noise, budget)
    if calibration == "as-published":
        return ada_ssp_thirds(evidence, statistics.row_bound, budget.epsilon)
    return ada_ssp.fit(
        evidence, paper_prior(np.eye(statistics.d)), Settings(noise_variance=SIGMA)
    ).mean()


def ada_ssp_text(statistics: Statistics, noise: Standard, budget: Budget) -> Array:
    """Its point with the budget of the paper's text: 2ε/3 for (S, z), ε/3 for λ_min."""
    sds = noise_sds("as-published", "text", statistics, budget)
    evidence = noisy(statistics, sds, noise, budget)
    return ada_ssp_thirds(evidence, statistics.row_bound, budget.epsilon)


def non_private_of(statistics: Statistics, prior: Prior) -> Student:
    """The conjugate posterior from exact statistics."""
    return non_private.fit(exact(statistics), prior, Settings())
