"""`normal-x`: features are normal; by gradient, or by the paper's Metropolis kernel.

The posterior is the same either way.
"""

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.method import RESIDUAL_CAVEAT, Draws, Method, Settings
from tacit.analyst.methods.normal_x import gradient, metropolis
from tacit.analyst.prior import Prior


def fit(evidence: Evidence, prior: Prior, settings: Settings) -> Draws:
    """Draws by the sampler that the settings name."""
    sampler = metropolis if settings.sampler == "metropolis" else gradient
    draws: Draws = sampler.fit(evidence, prior, settings)
    return draws


METHOD = Method(
    name="normal-x",
    fit=fit,
    computed=False,
    needs=("counts",),
    samplers=("gradient", "metropolis"),
    caveat=RESIDUAL_CAVEAT,
)
