r"""The row radius that a study's planned rows can afford: noise² and bias² together made least.

Let the radius be R = √s·R₁, with R₁ the usual row and s ≥ 1. Noise on X'X grows like R², and is to
be compared with what planned rows hold along one of d directions, N·R₁²/d: their ratio is k·s with

k = d · (sd of the noise on X'X at R = 1) / N,        N² = Σ n_j²,

since the noise of J releases adds up in squares. Bias comes from rows that are longer than R and
so count for less. It falls with s and is gone once no row is longer, at s = Λ = (longest row /
R₁)². On public tables (`benchmarks/real_tables.py`) the share of explainable variance that it
costs falls about like s⁻², and faster near Λ, where rows are rare. So s minimises

(25·k·s)² + (1 − s/Λ)⁶ / s^p        over 1 ≤ s ≤ Λ,

a sum of two convex functions, one rising and one falling. Small studies keep s = 1; as k → 0 the
radius goes to the longest row and the estimate to least squares; between them R grows like
k^(−1/4). The constant 25 and the power 6 are those that lost least on the tables, over ε from 1 to
100 and three ways to state ranges; half or twice as much costs a few per cent.

p is 2 unless ranges reach so far beyond typical intervals that rows must have long tails. Of N rows
whose lengths have a Pareto tail of index a the longest is N^(1/a) usual ones, so that Λ = N^(2/a);
of their squares a share of about s^(1 − a/2) lies beyond R, and what it costs goes with its square:

p = a − 2 = 2 ln N / ln Λ − 2,        2 at most and ¼ at least,

which is below 2 where Λ > √N. (Columns of `keggdirected` have ranges of up to 110 typical ones: p =
0.3, and the best s at ε = 100 is four times that of p = 2.)
"""

import math
from typing import TYPE_CHECKING

from tacit.privacy.gaussian import mu_of
from tacit.privacy.sensitivity import Weights, sensitivity
from tacit.study.form import NEAR_SPHERE

if TYPE_CHECKING:
    from tacit.study.study import Study

NOISE_COST = 25.0
"""How much noise costs against bias, from public tables."""
TAIL = 6
"""How fast bias vanishes towards the longest row."""
NEARLY_LONGEST = 0.95
"""Share of the longest row from which no row is shrunk at all."""
POWERS = (0.25, 2.0)
"""Least and largest p."""
HALVINGS = 60


def affordable(noise: float, longest: float, power: float = POWERS[1]) -> float:
    """The s between 1 and `longest` = Λ that is best at k = `noise` and p = `power`.

    It has few digits, so that every machine finds the same.
    """
    if longest <= 1:
        return longest
    low = 1.0
    high = longest
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _slope(middle, noise, longest, power) < 0:
            low = middle
        else:
            high = middle
    return longest if low > NEARLY_LONGEST**2 * longest else round(low, 3)


def _slope(s: float, noise: float, longest: float, power: float) -> float:
    """Derivative of the cost."""
    bias = (1 - s / longest) ** TAIL / math.pow(s, power)
    return 2 * (NOISE_COST * noise) ** 2 * s - bias * (TAIL / (longest - s) + power / s)


def tail_power(rows: int, longest: float) -> float:
    """How fast bias falls with s: the p of so many rows and Λ = `longest`."""
    least, most = POWERS
    if longest <= 1:
        return most
    return min(most, max(least, 2 * math.log(rows) / math.log(longest) - 2))


def affordable_radius(study: "Study") -> float:
    """The radius that noise and bias make best for a study's planned rows."""
    least = study.usual_row * (1.0 if study.is_anchored else NEAR_SPHERE)
    most = (study.longest_row / least) ** 2
    power = tail_power(sum(study.planned_rows), most)
    square = affordable(study.d * _planned_noise(study), most, power)
    radius = study.longest_row if square >= most else least * math.sqrt(square)
    return min(radius, study.most_entry) if study.widest > study.most_entry else radius


def _planned_noise(study: "Study") -> float:
    """Noise on X'X at R = 1, in standard deviations, over what the planned rows weigh."""
    one_row = sensitivity(1.0, 1.0, Weights(1.0), study.relation, study.release.average)
    noise = one_row / mu_of(study.epsilon, study.delta)
    if study.secure_sum is None:
        return noise / math.hypot(*study.planned_rows)
    shares = len(study.secure_sum.holders) / study.secure_sum.covering
    return noise * math.sqrt(shares) / sum(study.planned_rows)
