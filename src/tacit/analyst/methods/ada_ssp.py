"""`ada-ssp`: ridge regression with a privately chosen ridge (Wang 2018), for J holders.

A point, no posterior: (A1) and (A2) of docs/methods.md.
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
    ridge = float(np.sum(ridges(evidence)))
    gram = evidence.grams.sum(axis=0) + ridge * np.eye(evidence.d)
    return Student(
        location=np.linalg.solve(gram, evidence.moments.sum(axis=0)),
        scale=None,
        degrees=math.inf,
        noise_variance=settings.assumed_variance(prior),
    )


def ridges(evidence: Evidence) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """λ_j of every holder, (A2)."""
    if evidence.eigenvalues is None or evidence.eigenvalue_sd is None:
        raise AssertionError("analyst.fit has checked")  # pragma: no cover
    caution = math.sqrt(math.log(6 / evidence.delta)) * evidence.eigenvalue_sd
    lower = np.maximum(0.0, evidence.eigenvalues - caution)
    wanted = math.sqrt(evidence.d * math.log(2 * evidence.d**2 / FAILURE)) * evidence.gram_sd
    return np.maximum(0.0, wanted - lower)


METHOD = Method(name="ada-ssp", fit=fit, computed=True, needs=("eigenvalues",))
