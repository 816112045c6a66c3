r"""The row radius that a study's planned rows can afford: noise² and bias² together made least.

Let the radius be R = √s·R₁, with R₁ the usual row and s ≥ 1. Noise on X'X grows like R², and is to
be compared with what planned rows hold along one of d directions, N·R₁²/d: their ratio is k·s with

k = d · (sd of the noise on X'X at R = 1) / N,        N² = Σ n_j²,

since the noise of J releases adds up in squares. Bias comes from rows that are longer than R and
so count for less. It falls with s and is gone once no row is longer, at s = Λ = (longest row /
R₁)². On public tables (`benchmarks/real_tables.py`) the share of explainable variance that it
costs falls about like s⁻², and faster near Λ, where rows are rare. So s minimises

(25·k·s)² + (1 − s/Λ)⁶ / s²        over 1 ≤ s ≤ Λ,

a sum of two convex functions, one rising and one falling. Small studies keep s = 1; as k → 0 the
radius goes to the longest row and the estimate to least squares; between them R grows like
k^(−1/4). The constant 25 and the power 6 are those that lost least on the tables, over ε from 1 to
100 and three ways to state ranges; half or twice as much costs a few per cent.
"""

NOISE_COST = 25.0
"""How much noise costs against bias, from public tables."""
TAIL = 6
"""How fast bias vanishes towards the longest row."""
NEARLY_LONGEST = 0.95
"""Share of the longest row from which no row is shrunk at all."""
HALVINGS = 60


def affordable(noise: float, longest: float) -> float:
    """The s between 1 and `longest` = Λ that is best at k = `noise`.

    It has few digits, so that every machine finds the same.
    """
    if longest <= 1:
        return longest
    low = 1.0
    high = longest
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _slope(middle, noise, longest) < 0:
            low = middle
        else:
            high = middle
    return longest if low > NEARLY_LONGEST**2 * longest else round(low, 3)


def _slope(s: float, noise: float, longest: float) -> float:
    """Derivative of the cost."""
    bias = (1 - s / longest) ** TAIL / s**2
    return 2 * (NOISE_COST * noise) ** 2 * s - bias * (TAIL / (longest - s) + 2 / s)
