"""`non-private`: the conjugate posterior from exact S, z and y'y, (P1) of docs/methods.md.

For reference only: no release can feed it.
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
    if evidence.counts is None or evidence.squares is None:
        raise AssertionError("analyst.fit has checked")  # pragma: no cover
    prior_precision = prior.noise_variance * np.linalg.inv(prior.covariance)
    precision = evidence.grams.sum(axis=0) + prior_precision
    shift = evidence.moments.sum(axis=0) + prior_precision @ prior.mean
    location = np.linalg.solve(precision, shift)
    shape = prior.shape + evidence.counts.sum() / 2
    explained = location @ precision @ location - prior.mean @ prior_precision @ prior.mean
    rate = prior.rate + (evidence.squares.sum() - explained) / 2
    return Student(
        location=location,
        scale=rate / shape * np.linalg.inv(precision),
        degrees=2 * shape,
        noise_variance=float(rate / (shape - 1)),
    )


METHOD = Method(name="non-private", fit=fit, computed=True, needs=("counts", "squares"))
