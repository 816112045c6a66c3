"""How far rounding can take `gaussian.delta_at` below the truth, over all budgets at once.

In the coordinates a = ε/μ − μ/2 and μ, with b = a + μ and q = ε/μ = a + μ/2, the truth is
½e^{−a²/2}·(erfcx(a/√2) − erfcx(b/√2)). Each operation of the program is off by at most u = 2⁻⁵³,
relatively; `exp` by 2u; `erfcx` by `erfcx_units` times u. To first order, with `REST` for the rest:

- a is off by at most u(q + |a|), its share of √2 by u(q + 3|a|)/√2; the same for b;
- the exponent is off by |a|·u(q + |a|) + u·a²;
- erfcx is convex and decreasing, so that it moves by no more than its slope at the smaller end.

The sum of these over the difference of the two terms bounds the relative loss. On a box of (a, μ)
each part is largest, and the difference smallest, at a corner; boxes that are too wide are halved.
"""

import math
from dataclasses import dataclass, replace

from flint import arb, ctx

with ctx.workprec(128):
    UNIT = arb(2) ** -53
    ROOT = arb(2).sqrt()
REST = arb("1.0001")
"""Covers products of two roundings."""


def erfcx(x):
    return (x * x).exp() * x.erfc()


def erfcx_units(x):
    """What the program's erfcx is trusted to: its relative error at x and above, over 2⁻⁵³."""
    return 16.0 if x >= 0 else 16.0 + 2 * x * x


def slope(x):
    """|erfcx′|, which decreases."""
    return 2 / arb.pi().sqrt() - 2 * x * erfcx(x)


@dataclass(frozen=True)
class Box:
    """left ≤ a ≤ right and e^start ≤ μ ≤ e^end."""

    left: float
    right: float
    start: float
    end: float

    @property
    def low(self):
        return math.exp(self.start)

    @property
    def high(self):
        return math.exp(self.end)

    def halves(self):
        if (self.right - self.left) / 10 > self.end - self.start:
            middle = (self.left + self.right) / 2
            return [replace(self, right=middle), replace(self, left=middle)]
        middle = (self.start + self.end) / 2
        return [replace(self, end=middle), replace(self, start=middle)]

    def is_small(self):
        return self.right - self.left < 1e-3 and self.end - self.start < 1e-3


def difference(a, mu):
    """erfcx(a/√2) − erfcx(b/√2): decreases in a, increases in μ."""
    return erfcx(arb(a) / ROOT) - erfcx((arb(a) + arb(mu)) / ROOT)


def loss_is_below(limit, box):
    """Whether the relative loss is certainly below a limit in the whole box."""
    smallest = difference(box.right, box.low)
    ratio = arb(box.right) + arb(box.high) / 2
    size = max(abs(box.left), abs(box.right))
    top = max(size, box.right + box.high)
    first = arb(box.left) / ROOT
    second = (arb(box.left) + arb(box.low)) / ROOT
    at_a = UNIT * (ratio + size) * REST
    at_first = UNIT * (ratio + 3 * size) * REST / ROOT
    at_second = UNIT * (ratio + 3 * top) * REST / ROOT
    exponent = size * at_a + at_a * at_a + UNIT * size * size
    trust = erfcx_units(box.left / math.sqrt(2) - 1e-6) * UNIT
    values = trust * (erfcx(first) + erfcx(second))
    moves = at_first * slope(first) + 2 * at_second * slope(second - at_second)
    loss = (exponent + 4 * UNIT) * smallest + values + moves
    return bool(smallest > 0 and loss * REST < limit * smallest)


def has_no_budget(box, least_delta, epsilons):
    """Whether ε is out of range, or δ below the least, in the whole box."""
    smallest, largest = epsilons
    if box.high * (box.right + box.high / 2) < smallest * 0.999:
        return True
    if box.low * (box.left + box.low / 2) > largest * 1.001:
        return True
    if box.left < 0:
        return False
    factor = (-(arb(box.left) ** 2) / 2).exp() / 2
    return bool(factor * difference(box.left, box.high) < least_delta)


def unproven_boxes(limit, least_delta, epsilons):
    """Boxes, at most 10⁻³ wide, on which the loss is not shown to be below `limit`.

    They cover −30.1 ≤ a ≤ 40 and e⁻¹¹ ≤ μ ≤ e⁷. Below −30 the program says δ = 1; above 40, and for
    smaller μ at ε ≥ 10⁻³, the true δ is below 10⁻³⁰⁰; a larger μ is never tried.
    """
    waiting = [Box(-30.1, 0.0, -11.0, 7.0), Box(0.0, 40.0, -11.0, 7.0)]
    while waiting:
        box = waiting.pop()
        if has_no_budget(box, least_delta, epsilons) or loss_is_below(limit, box):
            continue
        if box.is_small():
            yield box
        else:
            waiting += box.halves()
