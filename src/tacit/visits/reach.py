r"""How long rows and how large residuals may be, from public quantities and released numbers.

Let h = d/(nμ) be the noise on one of d directions over what n rows hold there, with n and μ as the
study plans them. Bounds balance noise, which grows with them, against what they take away.
Residuals of sd σ that are cut at tσ show a change of the coefficients at the rate erf(t/√2), under
noise in proportion to t: for t → 0 the ratio of the two is 1.25σ, for t = 2 it is 2.1σ. So bounds
are small where noise decides, and grow as h^(−0.4) where what is cut does: noise² + bias² of a
bias that falls off like t^(−3/2), chosen on public tables (docs/visits.md). Rows are kept whole up
to ρ√d, ρ = 1 where noise decides, and none is longer than its public ranges let it be. Who states
where all columns typically lie says that rows far beyond are few: more length would be noise on
directions along which columns hardly differ.

What n rows leave unsure does not fall with μ. Rows of length ρ√d and residuals of tσ put noise on
a slope that is √2·ρ·t·h·√(n/d) of its sampling error (`noise_share`; 1.6 times that where a row is
replaced by another). Noise far below the error buys nothing, while what is cut stays cut: where the
share is below `LEAST_SHARE`, bounds grow as it falls, so that t → ∞ with μ√n, and bias goes to 0.
Two bounds tell how long residuals' tails are: without tails both show the same sd. So where noise
leaves room the first correction, whose offset is the least good anyway, has a wider bound. If that
shows a variance τ² beyond the next one's, later bounds grow by √(b/a): slopes are moved by about
b ∝ √n·τ/σ sampling errors, which fall with the bound, under noise a that grows with it.

All columns share a row's length, so noise on the mean response grows with √(1 + γ²(d − 1)) where
the others have size γ, and noise on slopes falls with γ. Let slopes explain the response's variance
in equal parts, and let the mean be as far off as is usual: the γ that loses least is 1 up to about
h = 1/3, and then falls like 1/(3h), for any d. Where noise hides slopes, the mean is what is left.
"""

import math

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.visits import shares_of
from tacit.study import Study
from tacit.study.visits import has_places
from tacit.study.visits import hidden as whole_hidden

SLOPES_FROM = 1 / 3
RADIUS = 0.36
RADIUS_POWER = -0.3
RADII = (1.0, 20.0)
MOST_STATED = 3.0
"""Most of ρ where the typical intervals of all columns are stated: their corner lies at √3."""
REACH = 0.47
REACH_POWER = -0.4
REACHES = (0.4, 4.0)
LEAST_SHARE = 0.2
"""Noise on a slope over its sampling error, were all directions equally long, below which bounds
grow beyond those ranges. Along directions that the map leaves short it is two to three times
that: widths grow by 4 to 8 %."""
ROW_GROWTH = 0.25
RESIDUAL_GROWTH = 0.5
"""Powers of how far below it is, by which ρ and t grow."""
MOST_GROWN = 8.0
"""What ρ grows to at most: noise on X'X grows with its square, and hides directions along which
columns hardly differ."""
PROBED_SHARE = 0.5
"""The same, below which the first correction has a wider bound, which shows tails."""
PROBE = 4.0
"""How many times wider that is."""
LEAST_PROBED = 8
"""Visits from which on there are enough corrections for one to be spent on it."""
TAIL = 0.05
"""What a bound takes off a long tail moves slopes by this, in units of its sd, over the noise along
a short direction: 0.05 of the sd, with noise 1.7 times what `noise_share` says."""


def hidden(study: Study, share: float) -> float:
    """Noise over signal along a direction, h, with a share of the budget."""
    return whole_hidden(study) / math.sqrt(share)


def noise_share(study: Study) -> float:
    """Noise on a slope over its sampling error where rows and residuals have their usual reach."""
    rows = sum(study.planned_rows)
    reach = _row_reach(study) * _residual_reach(study, study.visit_count)
    return math.sqrt(2 * rows / study.d) * reach * whole_hidden(study)


def row_reach(study: Study) -> float:
    """ρ: how long a row may be, over the root mean square of rows."""
    usual = _row_reach(study)
    reach = max(usual, min(usual * math.pow(_growth(study), ROW_GROWTH), MOST_GROWN))
    stated = all(product.is_typical for product in study.products)
    return min(reach, MOST_STATED) if stated else reach


def residual_reach(study: Study, visit: int) -> float:
    """t: how large a residual may be at a visit, in standard deviations."""
    probe = PROBE if visit == probed(study) else 1.0
    return probe * _residual_reach(study, visit) * math.pow(_growth(study), RESIDUAL_GROWTH)


def probed(study: Study) -> int:
    """The visit whose bound is wider, the first correction; 0 where there is none."""
    if study.visit_count < LEAST_PROBED or noise_share(study) > PROBED_SHARE:
        return 0
    return int(has_places(study)) + 2


def tail_reach(study: Study, tail: float) -> float:
    """How much further a bound reaches where a wider one showed a tail, in sds of residuals."""
    if not probed(study):
        return 1.0
    moved = TAIL * math.sqrt(sum(study.planned_rows)) * tail
    return float(np.clip(math.sqrt(moved / noise_share(study)), 1.0, PROBE))


def _growth(study: Study) -> float:
    """Factor of ρ and of t where noise is less than what matters."""
    return max(1.0, LEAST_SHARE / noise_share(study))


def _row_reach(study: Study) -> float:
    left = sum(shares_of(study.visit_count)[has_places(study) :])
    return float(np.clip(RADIUS * hidden(study, left) ** RADIUS_POWER, *RADII))


def _residual_reach(study: Study, visit: int) -> float:
    share = shares_of(study.visit_count)[visit - 1]
    return float(np.clip(REACH * hidden(study, share) ** REACH_POWER, *REACHES))


def slope_size(study: Study) -> float:
    """γ: size of the columns beside the intercept, over their usual one of 1."""
    if not study.intercept:
        return 1.0
    return min(1.0, SLOPES_FROM / whole_hidden(study))


def longest_mapped(study: Study, matrix: NDArray[np.float64]) -> float:
    """How long a row within the public ranges can be once it is mapped, at most."""
    first = int(study.intercept)
    lengths = np.abs(matrix[:first]).sum(axis=0)
    for product in study.products:
        rows = matrix[first : first + product.width]
        lengths = lengths + product.longest * np.linalg.norm(rows, axis=0)
        first += product.width
    return float(np.linalg.norm(lengths))
