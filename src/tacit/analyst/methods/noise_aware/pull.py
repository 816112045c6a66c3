r"""How far the default prior pulls slopes along flat directions to 0: intervals are widened by it.

Where releases tell little of an axis its slope rests on the prior (`slopes.py`). With a posterior
N(m, P) under a prior N(m₀, C) the mean is off by −PC⁻¹(θ − m₀) on average, and P counts that as far
as slopes are of the size that was expected. Along flat directions of near-collinear columns real
tables have slopes that are not; which table does, X'X does not tell. But what was learnt does: m
itself then lies far from m₀. So the law keeps its mean, and gets the pull at that mean,

    q = 1.5PD(m − m₀),    P + qq',    D = U diag(√w_k / C_k) U',    w_k = (1 − (λ_k + 2f)/λ̄)₊,

as one more standard deviation (N11). C_k is the prior's variance along the axis u_k, and w_k says
how flat that surely is: λ̄ is the mean of the λ, f the sd of their noise. Columns that do not go
with each other have w = 0, and so have those of which noise hides whether they do. Where the prior
has a third of the say m is two thirds of what releases tell; hence the 1.5, which was chosen with
public tables in view.

A prior that somebody states is taken at its word.
"""

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.methods.noise_aware.slopes import Slopes

Array = NDArray[np.float64]

SURELY = 2.0
"""Standard deviations of noise by which an axis must be flatter than the others."""
AGAIN = 1.5
"""What releases tell of a slope over the mean, where the prior has a third of the say."""


def pulled(slopes: Slopes, share: float, location: Array, covariance: Array) -> Array:
    """Covariance of a law N(m, P) at one ρ, P + qq', in the evidence's own columns."""
    flat = flatness(slopes)
    if not slopes.prior.by_spread or not flat.any():
        return covariance
    first = slopes.first
    expected = slopes.covariance(share)[first:, first:]
    variances = np.einsum("ak,ab,bk->k", slopes.axes, expected, slopes.axes, optimize=True)
    along = slopes.axes.T @ (location - slopes.prior.mean)[first:]
    away = slopes.axes @ (np.sqrt(flat) / variances * along)
    pull = AGAIN * covariance[:, first:] @ away
    widened: Array = covariance + np.outer(pull, pull)
    return widened


def flatness(slopes: Slopes) -> Array:
    """w, (p,): 0 along axes that are not surely flatter than usual, near 1 along flat ones."""
    if not len(slopes.spreads):
        return np.zeros(0)
    least = 1 - (slopes.spreads + SURELY * slopes.noise) / slopes.spreads.mean()
    return np.asarray(np.maximum(least, 0.0))
