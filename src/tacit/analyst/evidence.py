"""Evidence: a collection as plain arrays, which is all that a method sees."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Evidence:
    """Noisy statistics of J holders, in the study's scaled units, with the standard deviation of their noise.

    Every array has the holder as its first axis. `counts`, `squares` and `eigenvalues` are None where the study
    does not publish them. Exact statistics are evidence whose noise is zero.
    """

    grams: Array  # (J, d, d): noisy X'X, symmetric
    moments: Array  # (J, d): noisy X'y
    gram_sd: Array  # (J,): of a diagonal entry
    off_diagonal_sd: Array  # (J,): of an entry off the diagonal; gram_sd / √2 for frobenius noise
    moment_sd: Array  # (J,)
    counts: Array | None = (
        None  # (J,): rows of X, exact unless count_sd > 0; where rows are averaged, n/k
    )
    count_sd: Array | None = None
    squares: Array | None = None  # (J,): noisy y'y
    square_sd: Array | None = None
    eigenvalues: Array | None = None  # (J,): noisy smallest eigenvalue of X'X
    eigenvalue_sd: Array | None = None
    intercept: bool = False  # whether the first column is the intercept
    average: int = 1  # k: each row of X is the sum of so many rows over √k, and so is its response
    whole_rows: bool = (
        False  # whether no row was shrunk or left out: the intercept is then 1 in every row
    )
    delta: float = 1e-6  # the study's δ, which ada-ssp's formula uses

    @property
    def holders(self) -> int:
        """J."""
        return len(self.grams)

    def only(self, chosen: Sequence[int]) -> "Evidence":
        """The evidence of these holders alone."""
        places = list(chosen)
        per_holder: dict[str, Any] = {
            field.name: value[places]
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), np.ndarray)
        }
        return replace(self, **per_holder)

    @property
    def d(self) -> int:
        """Number of columns."""
        return int(self.grams.shape[1])

    @property
    def constant(self) -> bool:
        """Whether the first column is known to be 1 in every row, and its entry of X'X therefore to be n."""
        exact = self.counts is not None and (self.count_sd is None or not np.any(self.count_sd))
        return self.intercept and self.whole_rows and self.average == 1 and exact
