"""Interval arithmetic (Arb): what a Gaussian mechanism really costs, enclosed.

A ball is compared with `<=` only: the answer is yes if it holds for every number in the ball.
"""

from flint import arb, ctx

PRECISION = 256
"""Bits: enough for 10⁻³⁰⁰ and the cancellation of two terms of the same size."""


def delta_ball(epsilon, mu):
    """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ): the δ at ε of a mechanism with μ, as an interval."""
    with ctx.workprec(PRECISION):
        return tail(epsilon / mu - mu / 2) - epsilon.exp() * tail(epsilon / mu + mu / 2)


def tail(z):
    """The chance that a standard normal exceeds z."""
    return (z / arb(2).sqrt()).erfc() / 2


def is_private(epsilon, delta, mu):
    """Whether a mechanism with `mu` is (ε, δ)-DP, beyond doubt; all three are taken as they are."""
    with ctx.workprec(PRECISION):
        return bool(delta_ball(arb(epsilon), arb(mu)) <= arb(delta))
