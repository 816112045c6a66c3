r"""Visits: how a study's budget is divided over several questions to the same rows.

A visit with a share s of μ² gets noise of 1/(√s·μ) times its sensitivity. Gaussian mechanisms
compose to √Σμ_i² also when a later one is chosen in the light of earlier outputs, so shares that
add up to 1 spend the study's (ε, δ), no more. Proof: docs/privacy.md, "Visits".
"""

import math

from tacit.privacy.gaussian import mu_of
from tacit.privacy.mechanism import (
    LATTICE_BITS,
    Form,
    Mechanism,
    Shape,
    mechanism_of,
)
from tacit.privacy.sensitivity import Relation, Weights, free_square_weight

TWO = (0.4, 0.6)
"""Shares of two visits: a first answer in the study's own columns, one correction."""
BEYOND = 4
"""The first of three visits and more, which asks where values lie, has the share that one of so
many visits more would have; all others have equal parts. With few visits a smaller share misses
where values lie, and no later visit makes good for that (docs/visits.md)."""
LEAST_WITH_PLACES = 3
"""Number of visits from which the first asks where values lie."""
SQUARE_WEIGHT = 0.3
"""Weight of r², against uu', where it is not free: about two per cent more noise on the rest."""
COUNT_WEIGHT = 1 / 8
"""Weight of a noisy n."""
ROUNDING_DOWN = 1 - 1e-12
"""Factor that keeps the sum of shares from passing 1 by rounding."""


def shares_of(visits: int) -> tuple[float, ...]:
    """Share of μ² of each of so many visits."""
    if visits == 1:
        return (1.0,)
    if visits == len(TWO):
        shares: tuple[float, ...] = TWO
    else:
        places = 1 / (visits + BEYOND)
        shares = (places, *([(1 - places) / (visits - 1)] * (visits - 1)))
    return tuple(share * ROUNDING_DOWN for share in shares)


def visit_form(d: int, relation: Relation, *, noisy_count: bool, shape: Shape) -> Form:
    """What a visit publishes of mapped rows: ‖u‖ ≤ 1 and |r| ≤ 1, X'X and X'y balanced."""
    free = relation == "replace-one"
    weights = Weights(
        response=1.0,
        square=free_square_weight(1.0, 1.0, 1.0) if free else SQUARE_WEIGHT,
        count=COUNT_WEIGHT if noisy_count else 0.0,
    )
    return Form(d=d, x=1.0, y=1.0, weights=weights, relation=relation, shape=shape)


def visit_multiplier(
    share: float, entries: int, all_entries: int, epsilon: float, delta: float
) -> float:
    """Noise over sensitivity of a visit of so many `entries`, with the lattice's cost included.

    The discrete Gaussians of all visits together are within a factor 1 ± η of rounded ones.
    """
    eta = all_entries * 2.0**-50
    whole = mu_of(epsilon - 2 * eta, delta * (1 - 2 * eta))
    return 1 / (math.sqrt(share) * whole - math.sqrt(entries) * 2.0**-LATTICE_BITS)


def calibrate_visit(
    form: Form, share: float, all_entries: int, epsilon: float, delta: float
) -> Mechanism:
    """Noise of a visit with this share of (ε, δ); its μ is that of the whole study."""
    entries = form.layout.entries
    multiplier = visit_multiplier(share, entries, all_entries, epsilon, delta)
    return mechanism_of(form, multiplier, epsilon, delta)
