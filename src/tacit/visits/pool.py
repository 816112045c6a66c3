"""Pools: noisy statistics of mapped rows, of one holder or of all, at one visit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tacit.release.statistics import Answer

Array = NDArray[np.float64]

NOISY_ROWS = 5.0
"""Standard deviations up to which two noisy numbers of rows are taken for one."""
USUAL_LEVEL = 0.8
USUAL_LEVEL_SD = 0.2
LEAST_LEVEL = 0.1
"""What rows keep of their squared length: usually, with its sd, and at least."""


@dataclass(frozen=True)
class Pool:
    """X'X, X'r and r'r of shrunk rows u = T'x and cut r = y − x'θ, with the sd of their noise."""

    rows: float
    gram: Array  # (d, d)
    moment: Array  # (d,)
    square: float
    gram_sd: float  # of a diagonal entry; off the diagonal it is 1/√2 of that
    moment_sd: float
    square_sd: float
    bound: float  # at which residuals were cut
    count_sd: float = 0.0

    @classmethod
    def of(cls, answer: Answer) -> Self:
        """An answer in the units of the mapped rows."""
        radius = answer.question.radius
        bound = answer.question.bound
        noise = answer.noise
        return cls(
            rows=max(float(answer.n), 1.0),
            gram=np.array(answer.xtx) * radius**2,
            moment=np.array(answer.xty) * radius * bound,
            square=answer.yty * bound**2,
            gram_sd=noise.xtx_diagonal * radius**2,
            moment_sd=noise.xty * radius * bound,
            square_sd=(noise.yty or 0.0) * bound**2,
            bound=bound,
            count_sd=noise.count or 0.0,
        )

    def of_rows(self, rows: float) -> "Pool":
        """The same sums as if they were of so many rows."""
        factor = rows / self.rows
        return replace(
            self,
            rows=rows,
            gram=factor * self.gram,
            moment=factor * self.moment,
            square=factor * self.square,
            gram_sd=factor * self.gram_sd,
            moment_sd=factor * self.moment_sd,
            square_sd=factor * self.square_sd,
        )


def alike(pools: Sequence[Pool]) -> list[Pool]:
    """Visits of which some had other holders than the last, as sums of as many rows as that.

    Numbers of rows that noise alone tells apart are left as they are.
    """
    last = pools[-1]
    return [
        pool.of_rows(last.rows)
        if abs(pool.rows - last.rows) > NOISY_ROWS * math.hypot(pool.count_sd, last.count_sd)
        else pool
        for pool in pools
    ]


def together(pools: Sequence[Pool]) -> Pool:
    """All holders' rows as one pool; a holder with more noise counts for less."""
    least = min(pool.gram_sd for pool in pools)
    weights = [(least / pool.gram_sd) ** 2 for pool in pools]
    pairs = list(zip(weights, pools, strict=True))
    return Pool(
        rows=math.fsum(w * pool.rows for w, pool in pairs),
        gram=np.sum([w * pool.gram for w, pool in pairs], axis=0),
        moment=np.sum([w * pool.moment for w, pool in pairs], axis=0),
        square=math.fsum(w * pool.square for w, pool in pairs),
        gram_sd=math.hypot(*(w * pool.gram_sd for w, pool in pairs)),
        moment_sd=math.hypot(*(w * pool.moment_sd for w, pool in pairs)),
        square_sd=math.hypot(*(w * pool.square_sd for w, pool in pairs)),
        bound=pools[0].bound,
        count_sd=math.hypot(*(w * pool.count_sd for w, pool in pairs)),
    )


def level_of(pool: Pool, *, intercept: bool) -> float:
    """What rows kept of their squared length, on average: it stands in the intercept's entry."""
    if not intercept:
        return 1.0
    noise = (pool.gram_sd / pool.rows) ** 2
    doubt = USUAL_LEVEL_SD**2
    told = (pool.gram[0, 0] / pool.rows / noise + USUAL_LEVEL / doubt) / (1 / noise + 1 / doubt)
    return float(np.clip(told, LEAST_LEVEL, 1.0))
