r"""How long rows and how large residuals may be, from public quantities alone.

Let h = d/(nμ) be the noise on one of d directions over what n rows hold there, with n and μ as the
study plans them. Bounds balance noise, which grows with them, against what they take away.
Residuals of sd σ that are cut at tσ show a change of the coefficients at the rate erf(t/√2), under
noise in proportion to t: for t → 0 the ratio of the two is 1.25σ, for t = 2 it is 2.1σ. So bounds
are small where noise decides, and grow as h^(−1/3) where what is cut does: noise² + bias² of a
bias that falls off like t^(−2). Rows are kept whole up to ρ√d, ρ = 1 where noise decides, and none
is longer than its public ranges let it be. Who states where all columns typically lie says that
rows far beyond are few: more length would be noise on directions along which columns hardly differ.

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
RADIUS = 0.4
RADIUS_POWER = -0.3
RADII = (1.0, 20.0)
MOST_STATED = 3.0
"""Most of ρ where the typical intervals of all columns are stated: their corner lies at √3."""
REACH = 0.45
REACH_POWER = -1 / 3
REACHES = (0.4, 4.0)


def hidden(study: Study, share: float) -> float:
    """Noise over signal along a direction, h, with a share of the budget."""
    return whole_hidden(study) / math.sqrt(share)


def row_reach(study: Study) -> float:
    """ρ: how long a row may be, over the root mean square of rows."""
    left = sum(shares_of(study.visit_count)[has_places(study) :])
    reach = float(np.clip(RADIUS * hidden(study, left) ** RADIUS_POWER, *RADII))
    stated = all(product.is_typical for product in study.products)
    return min(reach, MOST_STATED) if stated else reach


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


def residual_reach(study: Study, visit: int) -> float:
    """t: how large a residual may be at a visit, in standard deviations."""
    share = shares_of(study.visit_count)[visit - 1]
    return float(np.clip(REACH * hidden(study, share) ** REACH_POWER, *REACHES))
