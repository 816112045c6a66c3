"""Each holder alone: no holder's release tells of another's coefficients.

The average of holders is then that of their own coefficients, each counted once: its covariance is
the sum of theirs over J². Nothing is said of a holder that has not published.
"""

import numpy as np

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.method import Mixture, Settings
from tacit.analyst.methods.noise_aware import fit
from tacit.analyst.posterior.differing import Differing
from tacit.analyst.prior import Prior


def separate(evidence: Evidence, prior: Prior, settings: Settings) -> Mixture:
    """Every holder's own fit, and the average of all."""
    alone = [fit(evidence.alone(j), prior, settings) for j in range(evidence.holders)]
    locations = np.array([one.mean() for one in alone])
    covariances = np.array([one.covariance() for one in alone])
    variances = np.array([one.residual_variance() for one in alone])
    d = evidence.d
    return Mixture(
        weights=np.ones(1),
        locations=locations.mean(axis=0)[None],
        covariances=covariances.sum(axis=0)[None] / evidence.holders**2,
        noise_variances=np.array([variances.mean()]),
        unshrunk=float(np.mean([one.unshrunk for one in alone])),
        differing=Differing(
            spreads=np.zeros((1, d)),
            locations=locations,
            covariances=covariances,
            within=covariances.mean(axis=0),
            ratios=variances / variances.mean(),
            told=np.zeros(d, dtype=bool),
            constant=np.zeros(d, dtype=bool),
            alone=True,
        ),
    )
