"""`fixed-s-fast`: the closed-form posterior with S̃ and σ² held fixed (Bayes-fixedS-fast).

θ given σ² as in (F3) of docs/methods.md, σ² being `settings.noise_variance` or, where that is not
given, its prior mean. The noise in Ŝ is ignored, so intervals are too narrow whenever it matters.
"""

import math

import numpy as np

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.eigen import eigen, natural_parameters
from tacit.analyst.methods.method import FIXED_S_CAVEAT, Method, Settings, Student
from tacit.analyst.prior import Prior


def fit(evidence: Evidence, prior: Prior, settings: Settings) -> Student:
    """The posterior N(m_p, Σ_p)."""
    noise_variance = settings.assumed_variance(prior)
    precision, shift = natural_parameters(eigen(evidence), noise_variance)
    prior_precision = np.linalg.inv(prior.covariance)
    covariance = np.linalg.inv(prior_precision + precision)
    location = covariance @ (prior_precision @ prior.mean + shift)
    return Student(
        location=location,
        scale=(covariance + covariance.T) / 2,
        degrees=math.inf,
        noise_variance=noise_variance,
    )


METHOD = Method(name="fixed-s-fast", fit=fit, computed=True, caveat=FIXED_S_CAVEAT)
