"""`normal-x`: features are normal.

Three samplers, and one posterior: by gradient, by the paper's Metropolis kernel, pseudo-marginal.
"""

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.method import RESIDUAL_CAVEAT, Draws, Method, Settings
from tacit.analyst.methods.normal_x import gradient, metropolis, pseudo_marginal
from tacit.analyst.prior import Prior

SAMPLERS = {
    "gradient": gradient.fit,
    "metropolis": metropolis.fit,
    "pseudo-marginal": pseudo_marginal.fit,
}


def fit(evidence: Evidence, prior: Prior, settings: Settings) -> Draws:
    """Draws by the sampler that the settings name."""
    return SAMPLERS[settings.sampler](evidence, prior, settings)


METHOD = Method(
    name="normal-x",
    fit=fit,
    computed=False,
    needs=("counts",),
    samplers=tuple(SAMPLERS),
    caveat=RESIDUAL_CAVEAT,
)
