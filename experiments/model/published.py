r"""What the published code does where it differs from the text.

For the replication alone, on simulated noise.

**Noise multiplier** (Balle and Wang 2018). $\sigma = (\sqrt{1 + u/2} +
\sqrt{u/2})/\sqrt{2\varepsilon}$ with the smallest u ≥ 0 such that $\Phi(-\sqrt{\varepsilon u}) -
e^\varepsilon\Phi(-\sqrt{\varepsilon(u + 2)}) \le \delta$, for every δ below $\delta_0 = \Phi(0) -
e^\varepsilon\Phi(-\sqrt{2\varepsilon})$. The code has $\sqrt\varepsilon\cdot u$ in the first term,
which then falls faster than the second: u stops near where the two are equal, whatever δ is, and
the noise is too small.

**ada-ssp.** Three releases with ε/3 each, whose noise is that multiplier times X², XY and X², and
Wang's (2018) constants in the ridge.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

from tacit.analyst.evidence import Evidence

Array = NDArray[np.float64]

FAILURE = 0.05  # ρ of Wang's ridge
STEP = (
    0.01  # of the search for u: far below the distance between the excess and its next sign change
)


def published_multiplier(epsilon: float, delta: float) -> float:
    """Noise over sensitivity as the published code computes it.

    1.486 at (1, 1/7655), where (ε, δ) needs 3.119.
    """
    if delta >= 0.5 - math.exp(epsilon) * float(ndtr(-math.sqrt(2 * epsilon))):
        raise ValueError(
            f"delta must be below that of u = 0 for the published formula; got {delta} at epsilon "
            f"{epsilon}"
        )

    def excess(u: float) -> float:
        return (
            float(
                ndtr(-math.sqrt(epsilon) * u)
                - math.exp(epsilon) * ndtr(-math.sqrt(epsilon * (u + 2)))
            )
            - delta
        )

    high = STEP
    while excess(high) > 0:
        high += STEP
    u = float(brentq(excess, high - STEP, high))
    return (math.sqrt(1 + u / 2) + math.sqrt(u / 2)) / math.sqrt(2 * epsilon)


def ada_ssp_thirds(evidence: Evidence, row_bound: float, epsilon: float) -> Array:
    r"""The point estimate with ε/3 for each part.

    $\lambda_j = \max\{0, \sqrt{d\ln(6/\delta)\ln(2d^2/\rho)}\,X^2/(\varepsilon/3) -
    \tilde\lambda_j\}$, $\tilde\lambda_j = \max\{0, \hat\lambda_{\min,j} -
    \ln(6/\delta)X^2/(\varepsilon/3)\}$.
    """
    if evidence.eigenvalues is None:
        raise ValueError("ada-ssp needs the smallest eigenvalues")
    d, tail, unit = evidence.d, math.log(6 / evidence.delta), 3 * row_bound**2 / epsilon
    lower = np.maximum(0.0, evidence.eigenvalues - tail * unit)
    ridges = np.maximum(0.0, math.sqrt(d * tail * math.log(2 * d**2 / FAILURE)) * unit - lower)
    found: Array = np.linalg.solve(
        evidence.grams.sum(axis=0) + ridges.sum() * np.eye(d), evidence.moments.sum(axis=0)
    )
    return found
