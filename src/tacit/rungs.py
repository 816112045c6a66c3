r"""Rungs: how widths fall with rows and with what privacy leaves of them, by construction.

Let holders have n_j rows each and a budget worth μ. What intervals come to follows from two sizes:
all rows, N = Σ n_j, and what noise leaves of them, K = μ(Σ n_j²)^½, since the noise of holders
adds up in squares. A study's form follows from the same two. One holder with N rows and a budget
worth K/N has both, and stands for all of them. Both grow with every n_j, with every further holder
and with ε: a plan in which widths fall with N and with K is monotone in all of them.

At a given K squared widths are close to A + C/N: noise, and what is cut for its sake, in A, and
sampling in C. Both are found at rungs of K alone, from two numbers of rows: that of one holder with
the study's own ε, and `LANE` times that with less ε. A and C are at least 0, so widths fall with N.
They are nowhere narrower than at a higher rung, and are interpolated between rungs: they fall with
K. (Where noise hides most of the rows intervals are those of what is usual, and may be narrower
than those of what is then learnt, which is no reason to spend less or to have fewer rows.)

How far up is looked: to the rung at which privacy is at most half of every variance, or from which
to the next all widths fall by a tenth. A wider one above would have to undo that; in the studies of
`tests/test_rungs.py` none does.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.gaussian import EPSILON_RANGE, epsilon_of, mu_of
from tacit.study.form import MOST_PLANNED

Array = NDArray[np.float64]
Look = Callable[[int, float], Array]
"""Widths of one holder with so many rows, at an ε."""

STEPS = 3
"""Rungs to a factor of ten."""
LANE = 4
"""How many times more rows the second look at a rung has: those of 16 holders for one."""
LITTLE = 0.5
"""Share of the variance that privacy causes, from which on no higher rung is looked at."""
FALLEN = 0.8
"""Variance over that of the rung below, from which on all higher ones are taken to be less, too."""
TOP = 30
"""The highest rung: there is none above."""


class Size(NamedTuple):
    """All holders' rows, and what privacy leaves of them."""

    rows: float
    weight: float


class Rungs:
    """Widths at any size, found at rungs."""

    def __init__(self, look: Look, epsilon: float, delta: float) -> None:
        self._look = look
        self._delta = delta
        self._mu = mu_of(epsilon, delta)
        self._known: dict[tuple[int, int], Array] = {}

    def widths(self, size: Size, sampling: Array) -> Array:
        """Widths at a size, with what sampling alone leaves of them."""
        place = STEPS * math.log10(size.weight)
        below = math.floor(place)
        high = self._from(below + 1, size.rows, sampling**2)
        low = np.maximum(self._variance(below, size.rows), high)
        widths: Array = np.sqrt(low * (high / low) ** (place - below))
        return widths

    def nearest(self, size: Size) -> tuple[int, float]:
        """Rows and ε at the rung nearest to a size."""
        return self.node(round(STEPS * math.log10(size.weight)))

    def node(self, rung: int, lane: int = 1) -> tuple[int, float]:
        """Rows and ε at a rung; no more rows than a study may plan, with more ε in their place."""
        weight = 10 ** (rung / STEPS)
        rows = lane * min(max(1, round(weight / self._mu)), MOST_PLANNED // LANE)
        return rows, float(np.clip(epsilon_of(weight / rows, self._delta), *EPSILON_RANGE))

    def _from(self, rung: int, rows: float, sampling: Array) -> Array:
        """The widest variances from a rung on, as far up as is looked."""
        here = self._variance(rung, rows)
        widest = here
        while np.any(here > sampling / (1 - LITTLE)) and rung < TOP:
            rung += 1
            if np.all(self._bound(rung, rows) <= FALLEN * here):
                break
            above = self._variance(rung, rows)
            if np.all(above <= FALLEN * here):
                break
            here = above
            widest = np.maximum(widest, above)
        return widest

    def _bound(self, rung: int, rows: float) -> Array:
        """What variances at a rung are at most, from one look: all of it is sampling's."""
        known, _ = self.node(rung)
        bound: Array = self._seen(rung, 1) * max(1.0, known / rows)
        return bound

    def _variance(self, rung: int, rows: float) -> Array:
        """A + C/N at a rung, with any number of rows."""
        few, _ = self.node(rung)
        seen = self._seen(rung, 1)
        if rows == few:
            return seen
        gained = np.maximum(seen - self._seen(rung, LANE), 0.0)
        sampled = np.minimum(few * gained / (1 - 1 / LANE), few * seen)  # C
        variance: Array = seen - sampled / few + sampled / rows
        return variance

    def _seen(self, rung: int, lane: int) -> Array:
        """Squared widths of one holder at a rung; looked at once."""
        if (rung, lane) not in self._known:
            self._known[rung, lane] = self._look(*self.node(rung, lane)) ** 2
        return self._known[rung, lane]
