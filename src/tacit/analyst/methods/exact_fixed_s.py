"""`exact-fixed-s`: the posterior that `fixed-s` samples, computed instead.

There is no chain, no draw, and no error to speak of. Given S̃, θ | σ² is Gaussian and its marginal
likelihood is known in closed form, so σ² is the only unknown left: (F5) of docs/methods.md, for θ
measured from its prior mean. It is integrated by the trapezoidal rule in log σ², which for a smooth
density that vanishes at both ends converges faster than any power of the step.
"""

import math

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.eigen import Eigen, eigen, natural_parameters
from tacit.analyst.methods.method import FIXED_S_CAVEAT, Method, Mixture, Settings
from tacit.analyst.prior import Prior

Array = NDArray[np.float64]

COARSE = np.linspace(math.log(1e-10), math.log(1e4), 65)
FINE = 48
"""Nodes in log σ²: a coarse net finds the mass, a fine one integrates it."""
NEGLIGIBLE = 30.0
"""Log-density this far below the top does not count."""


def fit(evidence: Evidence, prior: Prior, settings: Settings) -> Mixture:
    """Mixture over the nodes of σ²."""
    basis = eigen(evidence)
    rotated_mean = np.einsum("jab,a->jb", basis.vectors, prior.mean)
    centred = basis._replace(moments=basis.moments - basis.values * rotated_mean)
    if settings.noise_variance is not None:
        return _mixture(centred, prior, np.array([math.log(settings.noise_variance)]))
    coarse = np.array([_node(centred, prior, log_variance)[0] for log_variance in COARSE])
    if not np.isfinite(coarse).all():
        raise np.linalg.LinAlgError("the likelihood is not finite")
    mass = COARSE[coarse >= coarse.max() - NEGLIGIBLE]
    step = COARSE[1] - COARSE[0]
    return _mixture(centred, prior, np.linspace(mass[0] - step, mass[-1] + step, FINE))


def _mixture(basis: Eigen, prior: Prior, nodes: Array) -> Mixture:
    logs, locations, covariances = zip(*(_node(basis, prior, node) for node in nodes), strict=True)
    weights = np.exp(np.array(logs) - max(logs))
    kept = weights > math.exp(-NEGLIGIBLE)
    return Mixture(
        weights=weights[kept] / weights[kept].sum(),
        locations=np.array(locations)[kept] + prior.mean,
        covariances=np.array(covariances)[kept],
        noise_variances=np.exp(nodes[kept]),
    )


def _node(basis: Eigen, prior: Prior, log_variance: float) -> tuple[float, Array, Array]:
    """Log-density of log σ², and mean and covariance of θ − m there."""
    variance = math.exp(log_variance)
    precision, shift = natural_parameters(basis, variance)
    total = precision + np.linalg.inv(prior.covariance)
    scale = np.linalg.inv(total)
    location = scale @ shift
    spread = np.maximum(variance * basis.values + basis.moment_variance[:, None], 1e-300)
    likelihood = np.sum(np.log(spread) + basis.moments**2 / spread) - shift @ location
    determinant = np.linalg.slogdet(total)[1] + np.linalg.slogdet(prior.covariance)[1]
    log_prior = -prior.shape * log_variance - prior.rate / variance
    return float(log_prior - 0.5 * (likelihood + determinant)), location, (scale + scale.T) / 2


METHOD = Method(name="exact-fixed-s", fit=fit, computed=True, caveat=FIXED_S_CAVEAT)
