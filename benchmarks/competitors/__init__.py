"""Methods of the league (`benchmarks/league.py`), one file each.

Every file names its source, argues its privacy in a few sentences, and has `fit`, the settings that
are `FIXED` for all tables, and a `GRID` from which the best is chosen in hindsight.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import (
    adassp,
    binagg,
    boosted_adassp,
    gradient_descent,
    iterative_hessian_mixing,
    package_diffprivlib,
    tukey_em,
)
from .holders import Budget, Holders, Line

Fit = Callable[[np.random.Generator, Holders, Budget, Any], Line | None]


@dataclass(frozen=True)
class Competitor:
    """A method, what is open in it, and where it can take part."""

    name: str
    fit: Fit
    fixed: object
    grid: tuple[object, ...]
    separate: bool = True
    """Whether it has a form for several holders who publish apart."""
    summed: bool = True
    """Whether it has a form for a secure sum."""

    def enters(self, holders: Holders) -> bool:
        """Whether it can take part."""
        if holders.secure_sum:
            return self.summed
        return self.separate or len(holders.designs) == 1


COMPETITORS = (
    Competitor("AdaSSP", adassp.fit, adassp.FIXED, adassp.GRID),
    Competitor("boosted AdaSSP", boosted_adassp.fit, boosted_adassp.FIXED, boosted_adassp.GRID),
    Competitor(
        "Hessian mixing",
        iterative_hessian_mixing.fit,
        iterative_hessian_mixing.FIXED,
        iterative_hessian_mixing.GRID,
    ),
    Competitor(
        "gradient descent", gradient_descent.fit, gradient_descent.FIXED, gradient_descent.GRID
    ),
    Competitor("BinAgg", binagg.fit, binagg.FIXED, binagg.GRID, summed=False),
    Competitor("TukeyEM", tukey_em.fit, tukey_em.FIXED, tukey_em.GRID, summed=False),
)
PACKAGES = (
    Competitor(
        "diffprivlib",
        package_diffprivlib.fit,
        package_diffprivlib.FIXED,
        package_diffprivlib.GRID,
        separate=False,
        summed=False,
    ),
)


def entered() -> tuple[Competitor, ...]:
    """All competitors that can run here."""
    return COMPETITORS + (PACKAGES if package_diffprivlib.available() else ())
