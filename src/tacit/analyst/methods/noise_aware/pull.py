r"""How far the default prior pulls slopes to 0: what intervals are widened by.

Where releases tell little of an axis its slope rests on the prior (`slopes.py`). With a posterior
N(m, P) under a prior N(m₀, C) the mean is off by −PC⁻¹(θ − m₀) on average, and P counts that as far
as slopes are of the size that was expected. Real tables have slopes that are not, above all along
flat directions of near-collinear columns; which table does, X'X does not tell. But what was learnt
does: m itself then lies far from m₀. So the law keeps its mean, and gets the pull at that mean,

    q = PC⁻¹(m − m₀),    P + qq',

as one more standard deviation (N11). By so much, to first order in the prior's share PC⁻¹, the mean
would move were there no prior. It is nothing where releases tell a slope (PC⁻¹ = 0) and nothing
where they tell nothing (m = m₀). Of slopes that come from the prior, an axis of which it has the
share s gets on average s(1 − s) of its variance more, a quarter at most.

A prior that somebody states is taken at its word.
"""

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.methods.noise_aware.slopes import Slopes

Array = NDArray[np.float64]


def pulled(slopes: Slopes, share: float, location: Array, covariance: Array) -> Array:
    """Covariance of a law N(m, P) at one ρ, P + qq', in the evidence's own columns."""
    if not slopes.prior.by_spread:
        return covariance
    away = np.linalg.solve(slopes.covariance(share), location - slopes.prior.mean)
    pull = covariance @ away
    widened: Array = covariance + np.outer(pull, pull)
    return widened
