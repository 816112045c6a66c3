r"""`ada-ssp`: ridge regression with a privately chosen ridge (Wang 2018), for J holders. A point, no posterior.

θ̂ = (Σ_j Ŝ_j + Σ_j λ_j I)⁻¹ Σ_j ẑ_j with, per holder,

    λ̃_j = max{0, λ̂_min,j − √ln(6/δ)·s_λ}        λ_j = max{0, √(d ln(2d²/ρ))·s_S − λ̃_j}        ρ = 0.05,

where λ̂_min is the published smallest eigenvalue, and s_λ and s_S are the standard deviations of its noise and of the
noise in Ŝ. With Wang's own noise, s_S = s_λ = √ln(6/δ)·X²/(ε/3), these are his formulas; with the joint Gaussian
mechanism used here the same budget gives far smaller s.
"""

import math

import numpy as np

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.method import Method, Settings, Student
from tacit.analyst.prior import Prior

FAILURE = 0.05
"""ρ: the chance, over the noise in Ŝ, that the ridge does not dominate it."""


def fit(evidence: Evidence, prior: Prior, settings: Settings) -> Student:
    """The point estimate; the prior gives σ² its nominal value and is otherwise unused."""
    d = evidence.d
    ridge = float(np.sum(ridges(evidence)))
    location = np.linalg.solve(
        evidence.grams.sum(axis=0) + ridge * np.eye(d), evidence.moments.sum(axis=0)
    )
    noise_variance = (
        prior.noise_variance if settings.noise_variance is None else settings.noise_variance
    )
    return Student(location, None, math.inf, noise_variance)


def ridges(evidence: Evidence) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """λ_j of every holder."""
    if (
        evidence.eigenvalues is None or evidence.eigenvalue_sd is None
    ):  # pragma: no cover  (`fit` of the analyst has checked)
        raise AssertionError
    lower = np.maximum(
        0.0, evidence.eigenvalues - math.sqrt(math.log(6 / evidence.delta)) * evidence.eigenvalue_sd
    )
    wanted = math.sqrt(evidence.d * math.log(2 * evidence.d**2 / FAILURE)) * evidence.gram_sd
    return np.maximum(0.0, wanted - lower)


METHOD = Method("ada-ssp", ("eigenvalues",), fit)
