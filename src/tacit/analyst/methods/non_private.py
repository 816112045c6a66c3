r"""`non-private`: the conjugate posterior from exact S, z and y'y. For reference only: no release can feed it.

Prior θ | σ² ~ N(m, σ²Λ₀⁻¹) with Λ₀ = E[σ²]·C⁻¹, so that its covariance is C at the prior mean of σ², and σ² ~ IG(a, b).
Posterior: Λ_n = S + Λ₀, μ_n = Λ_n⁻¹(z + Λ₀m), a_n = a + n/2, b_n = b + ½(y'y + m'Λ₀m − μ_n'Λ_nμ_n), so θ is Student
with 2a_n degrees of freedom, location μ_n and scale (b_n/a_n)Λ_n⁻¹.
"""

import numpy as np

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.method import Method, Settings, Student
from tacit.analyst.prior import Prior
from tacit.errors import MethodError


def fit(evidence: Evidence, prior: Prior, _settings: Settings) -> Student:
    """The Student posterior of θ, and the posterior mean of σ²."""
    if evidence.gram_sd.any() or evidence.moment_sd.any():
        raise MethodError(
            "non-private needs exact statistics, which no release holds: "
            "use it in simulations, with the evidence of tacit.simulation.exact(study, table)"
        )
    if (
        evidence.counts is None or evidence.squares is None
    ):  # pragma: no cover  (`fit` of the analyst has checked)
        raise AssertionError
    prior_precision = prior.noise_variance * np.linalg.inv(prior.covariance)
    precision = evidence.grams.sum(axis=0) + prior_precision
    location = np.linalg.solve(
        precision, evidence.moments.sum(axis=0) + prior_precision @ prior.mean
    )
    shape = prior.shape + evidence.counts.sum() / 2
    explained = location @ precision @ location - prior.mean @ prior_precision @ prior.mean
    rate = prior.rate + (evidence.squares.sum() - explained) / 2
    return Student(
        location, rate / shape * np.linalg.inv(precision), 2 * shape, float(rate / (shape - 1))
    )


METHOD = Method("non-private", ("counts", "squares"), fit)
