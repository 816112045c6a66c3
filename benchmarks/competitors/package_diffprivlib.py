"""diffprivlib's LinearRegression, as the package is used: one table, pure ε-DP.

Source: Holohan, Braghin, Mac Aonghusa and Levacher, "Diffprivlib: the IBM differential privacy
library", 2019; the model follows Sheffet 2015. An optional extra (`pip install 'tacit-dp[bench]'`):
where it is missing, it is left out with a word. There is no form for several holders.

Privacy: the package's own promise, ε-DP with no δ, for bounds stated in advance; it is not checked
here. It is stricter than what the others promise at the same ε.
"""

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from .holders import Budget, Holders, Line


@dataclass(frozen=True)
class Settings:
    """Nothing is left open."""


FIXED = Settings()
GRID = (FIXED,)


def available() -> bool:
    """Whether the package is installed, with a scikit-learn that it knows."""
    if find_spec("diffprivlib") is None:
        return False
    try:
        from diffprivlib.models import LinearRegression  # noqa: F401
    except ImportError:
        return False
    return True


def fit(rng: np.random.Generator, holders: Holders, budget: Budget, settings: Settings) -> Line:
    """The package's fit."""
    del settings
    from diffprivlib.models import LinearRegression

    [design] = holders.designs
    [y] = holders.responses
    ones = np.ones(holders.d - 1)
    model = LinearRegression(
        epsilon=budget.epsilon,
        bounds_X=(-ones, ones),
        bounds_y=(-1.0, 1.0),
        random_state=int(rng.integers(2**31)),
    ).fit(design[:, 1:], y)
    return Line(np.concatenate([[model.intercept_], model.coef_]))
