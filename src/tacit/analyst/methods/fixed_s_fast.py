r"""`fixed-s-fast`: the closed-form posterior with S̃ and σ² held fixed (Bayes-fixedS-fast).

θ ~ N(m_p, Σ_p) with Σ_p⁻¹ = C⁻¹ + Σ_j S̃_j(σ²S̃_j + σ_z²I)⁻¹S̃_j and Σ_p⁻¹m_p = C⁻¹m + Σ_j S̃_j(σ²S̃_j + σ_z²I)⁻¹ẑ_j.

σ² is `settings.noise_variance` or, where that is not given, its prior mean. The noise in Ŝ is ignored, so intervals
are too narrow whenever that noise matters.
"""

import math

import numpy as np

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.eigen import eigen, natural_parameters
from tacit.analyst.methods.method import FIXED_S_CAVEAT, Method, Settings, Student
from tacit.analyst.prior import Prior


def fit(evidence: Evidence, prior: Prior, settings: Settings) -> Student:
    """The posterior N(m_p, Σ_p)."""
    noise_variance = (
        prior.noise_variance if settings.noise_variance is None else settings.noise_variance
    )
    precision, shift = natural_parameters(eigen(evidence), noise_variance)
    prior_precision = np.linalg.inv(prior.covariance)
    covariance = np.linalg.inv(prior_precision + precision)
    location = covariance @ (prior_precision @ prior.mean + shift)
    return Student(location, (covariance + covariance.T) / 2, math.inf, noise_variance)


METHOD = Method("fixed-s-fast", (), fit, FIXED_S_CAVEAT)
