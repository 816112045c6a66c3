"""The posterior as ArviZ takes it."""

from typing import TYPE_CHECKING

import numpy as np

from tacit.analyst.posterior.laws import Draws
from tacit.analyst.posterior.posterior import Posterior, UnitsName
from tacit.errors import PosteriorError

if TYPE_CHECKING:
    from xarray import DataTree


def to_arviz(posterior: Posterior, units: UnitsName, draws: int) -> "DataTree":
    """A DataTree with a `posterior` group: `coefficient` by name, and `residual_sd`."""
    try:
        from arviz_base import from_dict
    except ModuleNotFoundError:
        raise PosteriorError("ArviZ is not installed: pip install 'tacit-dp[arviz]'") from None
    outcome = posterior.outcome
    to = posterior.units(units)
    if isinstance(outcome, Draws):
        theta, variance = outcome.theta, outcome.noise_variance
    else:
        theta, variance = (part[None] for part in outcome.sample(draws, np.random.default_rng(0)))
    tree: DataTree = from_dict(
        {
            "posterior": {
                "coefficient": theta @ to.matrix.T + to.offset,
                "residual_sd": np.sqrt(variance) * to.response,
            }
        },
        coords={"term": list(posterior.names(units))},
        dims={"coefficient": ["term"]},
        attrs={
            "posterior": {"method": posterior.method, "units": units, "study": posterior.study.hash}
        },
    )
    return tree
