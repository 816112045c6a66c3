r"""What Gaussian noise buys: (ε, δ), μ, and the way between them.

A Gaussian mechanism whose noise is `multiplier` times its L2 sensitivity is μ-Gaussian DP with
μ = 1 / multiplier, and it is (ε, δ)-DP exactly when [Balle and Wang 2018, theorem 8]

    δ ≥ Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ).

Several such mechanisms compose to μ = √Σμ_i² exactly [Dong, Roth and Su 2022, corollary 3.3].
Every conversion here rounds to the private side: multipliers and ε up, μ down.
"""

import math
from collections.abc import Callable, Iterable
from functools import lru_cache

from scipy.special import erfcx

EPSILON_RANGE = (1e-3, 100.0)
"""Budgets that a study may state; calibration is tested over the whole of it."""
DELTA_RANGE = (1e-15, 0.1)

_SAFETY = 1e-10
"""Relative head-room in δ: more than the rounding error of `delta_at` in the two ranges."""


def delta_at(epsilon: float, mu: float) -> float:
    r"""Smallest δ for which a μ-Gaussian mechanism is (ε, δ)-DP.

    With a = ε/μ − μ/2 and b = ε/μ + μ/2 we have b² − a² = 2ε, so the two terms share one factor:
    δ = ½ e^{−a²/2} (erfcx(a/√2) − erfcx(b/√2)), which neither overflows nor underflows early.
    """
    if mu <= 0.0:
        return 0.0
    a = epsilon / mu - mu / 2
    b = epsilon / mu + mu / 2
    if a < -30:  # noqa: PLR2004  (erfcx would overflow; δ is 1 to double precision)
        return 1.0
    return float(0.5 * math.exp(-a * a / 2) * (erfcx(a / math.sqrt(2)) - erfcx(b / math.sqrt(2))))


@lru_cache(maxsize=256)
def mu_of(epsilon: float, delta: float) -> float:
    """Largest μ whose Gaussian mechanism is (ε, δ)-DP, rounded down.

    Remembered, since every release of a collection is checked against its budget's.
    """
    return _last_true(lambda mu: delta_at(epsilon, mu) <= delta * (1 - _SAFETY), 1e-9, 1e3)


def multiplier(epsilon: float, delta: float) -> float:
    """Smallest noise-to-sensitivity ratio that gives (ε, δ)-DP, rounded up; 3.7306 at (1, 1e-5)."""
    return 1 / mu_of(epsilon, delta)


def epsilon_of(mu: float, delta: float) -> float:
    """Smallest ε for which a μ-Gaussian mechanism is (ε, δ)-DP, rounded up; 0 if δ covers it."""
    if delta_at(0.0, mu) <= delta * (1 - _SAFETY):
        return 0.0
    above = _last_true(
        lambda inverse: delta_at(1 / inverse, mu) <= delta * (1 - _SAFETY), 1e-7, 1e12
    )
    return 1 / above


def _last_true(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Bisect on a log scale for the largest x that `holds`, true at `low`, false from some x on."""
    while (middle := math.sqrt(low * high)) not in (low, high):
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def compose(mus: Iterable[float]) -> float:
    """μ of Gaussian mechanisms run on the same table, whatever their order or adaptivity: √Σμ²."""
    return math.sqrt(math.fsum(mu * mu for mu in mus))


def part_of(epsilon: float, delta: float, share: float) -> float:
    """ε at δ of a `share` of the μ² of (ε, δ); where `epsilon_of` rounds up, this rounds down.

    A part whose μ is so small that δ alone covers it has ε = 0: no noise can be calibrated to
    that, and callers refuse it.
    """
    most = math.sqrt(share) * mu_of(epsilon, delta)
    epsilon = epsilon_of(most, delta)
    step = 2.0**-52
    while epsilon > 0 and mu_of(epsilon, delta) > most:
        epsilon *= max(0.0, 1 - step)
        step *= 2
    return epsilon


def remaining(limit: float, spent: float) -> float:
    """μ that may still be spent when `spent` of `limit` is gone."""
    return math.sqrt(max(0.0, (limit - spent) * (limit + spent)))
