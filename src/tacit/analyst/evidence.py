"""Evidence: a collection as plain arrays, which is all that a method sees."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:  # chains are also run where there are NumPy, SciPy and jax alone
    from tacit.analyst.frame import Frame
    from tacit.privacy.layout import PartName
    from tacit.privacy.mechanism import Noise
    from tacit.study import Study

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Evidence:
    """Noisy statistics of J holders, in the study's scaled units, with the sd of their noise.

    Every array has the holder as its first axis. `counts`, `squares` and `eigenvalues` are None
    where the study does not publish them. Exact statistics are evidence whose noise is zero.
    """

    grams: Array  # (J, d, d): noisy X'X, symmetric
    moments: Array  # (J, d): noisy X'y
    gram_sd: Array  # (J,): of a diagonal entry
    off_diagonal_sd: Array  # (J,): of an entry off the diagonal; gram_sd / √2 for frobenius noise
    moment_sd: Array  # (J,)
    counts: Array | None = None  # (J,): rows of X, n/k where rows are averaged, or what they weigh
    count_sd: Array | None = None  # (J,): None or 0 where counts are exact
    squares: Array | None = None  # (J,): noisy y'y
    square_sd: Array | None = None
    eigenvalues: Array | None = None  # (J,): noisy smallest eigenvalue of X'X
    eigenvalue_sd: Array | None = None
    intercept: bool = False  # whether the first column is the intercept
    average: int = 1  # k: each row of X is the sum of so many rows over √k, and so is its response
    whole_rows: bool = False  # whether no row was shrunk or left out: the intercept is then 1
    delta: float = 1e-6  # the study's δ, which ada-ssp's formula uses
    column_sd: Array | None = None  # (d,): noise on a column's sum of squares; None: gram_sd's
    frame: "Frame | None" = None  # where columns are a visit's: what they say of the study's
    error_maps: Array | None = None  # (J, d, d): C where Cov(z | X) is σ²CSC', not σ²S
    quiet: Array | None = None  # (r, d, d): along which X'X has no noise any more (`quiet.py`)

    @classmethod
    def of(
        cls,
        study: "Study",
        noise: "Sequence[Noise] | None",
        *,
        grams: ArrayLike,
        moments: ArrayLike,
        rows: ArrayLike | None,
        squares: ArrayLike | None,
        eigenvalues: ArrayLike | None = None,
    ) -> Self:
        """What holders know of a study, with each one's noise; None for exact statistics.

        `rows`, `squares` and `eigenvalues` are None where they are not published.
        """
        average = study.release.average
        statistics = np.asarray(grams, dtype=float)
        holders = len(statistics)
        counts = _array(rows)
        count_sd = _sds(noise, "count", holders)
        if study.weight is not None:
            counts = statistics[:, 0, 0]
            count_sd = _known_sds(noise, "xtx_diagonal", holders)
        return cls(
            grams=statistics,
            moments=np.asarray(moments, dtype=float),
            gram_sd=_known_sds(noise, "xtx_diagonal", holders),
            off_diagonal_sd=_known_sds(noise, "xtx_off_diagonal", holders),
            moment_sd=_known_sds(noise, "xty", holders),
            counts=None if counts is None else counts / average,
            count_sd=None if count_sd is None else count_sd / average,
            squares=_array(squares),
            square_sd=_sds(noise, "yty", holders),
            eigenvalues=_array(eigenvalues),
            eigenvalue_sd=_sds(noise, "eigenvalue", holders),
            intercept=study.intercept,
            average=average,
            whole_rows=study.whole_rows,
            delta=study.delta,
        )

    @property
    def holders(self) -> int:
        """J."""
        return len(self.grams)

    def only(self, chosen: Sequence[int]) -> "Evidence":
        """The evidence of these holders alone."""
        places = slice(chosen.start, chosen.stop) if isinstance(chosen, range) else list(chosen)
        per_holder: dict[str, Any] = {
            field.name: value[places]
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), np.ndarray)
            and field.name not in ("column_sd", "quiet")
        }
        return replace(self, **per_holder)

    def alone(self, j: int) -> "Evidence":
        """The evidence of one holder to whom the X'X of the others says nothing."""
        one = self.only([j])
        if one.frame is None:
            return one
        rows = 1.0 if one.counts is None else max(float(one.counts[0]), 1.0)
        gram = one.grams[0] / rows
        own = replace(one.frame, gram=gram, gram_sd=float(one.gram_sd[0]) / rows, shown=None)
        return replace(one, frame=own)

    @property
    def d(self) -> int:
        """Number of columns."""
        return int(self.grams.shape[1])

    @property
    def constant(self) -> bool:
        """Whether the first column is known to be 1 in every row, and its entry of X'X to be n."""
        exact = self.counts is not None and (self.count_sd is None or not np.any(self.count_sd))
        return self.intercept and self.whole_rows and self.average == 1 and exact


def _array(values: ArrayLike | None) -> Array | None:
    return None if values is None else np.asarray(values, dtype=float)


def _known_sds(noise: "Sequence[Noise] | None", part: "PartName", holders: int) -> Array:
    """Noise sd of a part that every release holds."""
    if noise is None:
        return np.zeros(holders)
    return np.array([getattr(each, part) for each in noise], dtype=float)


def _sds(noise: "Sequence[Noise] | None", part: "PartName", holders: int) -> Array | None:
    """Noise sd of a part that releases may leave out, or give without noise."""
    if noise is not None and getattr(noise[0], part) is None:
        return None
    return _known_sds(noise, part, holders)
