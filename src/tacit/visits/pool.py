"""Pools: noisy statistics of mapped rows, of one holder or of all, over one visit or several."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tacit.release.statistics import Answer
from tacit.visits.cut import cut_of, whole_sd

Array = NDArray[np.float64]

NOISY_ROWS = 5.0
"""Standard deviations up to which two noisy numbers of rows are taken for one."""
LEAST_SHARE = 0.1
"""Smallest sd of residuals over their bound."""


@dataclass(frozen=True)
class Pool:
    """X'X, X'r and r'r of rows u = T'x, r = y − x'θ, shrunk and cut, with the sd of their noise."""

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


@dataclass(frozen=True)
class Joined:
    """Several visits to the same mapped rows as one, at the last visit's offset."""

    pool: Pool  # X'X times the rate; r'r as cut, over the rate
    rate: float  # κ: how much of a change of the coefficients cut residuals show
    whole: float  # residual variance over that of r'r in `pool`


def joined(pools: Sequence[Pool], apart: Sequence[Array], known: "Known | None" = None) -> Joined:
    """Join visits; `apart` are the last offset minus each one's, in mapped units.

    Residuals of two visits differ by u'δ, so X'r by κX'Xδ. All visits see the same rows: only their
    noise is averaged. `known` is what the first answer says of X'X.
    """
    pools = alike(pools)
    gram, gram_sd = _gram(pools, known)
    sd, square_sd = _whole_sd(pools, apart, gram)
    cuts = [cut_of(sd, pool.bound) for pool in pools]
    precisions = []
    moments = []
    for pool, shift, cut in zip(pools, apart, cuts, strict=True):
        size = float(shift @ shift) * cut.rate**2
        precisions.append(1 / (pool.moment_sd**2 + size * gram_sd**2 / 2))
        moments.append(pool.moment - cut.rate * gram @ shift)
    total = math.fsum(precisions)
    weights = np.array(precisions) / total
    rate = float(weights @ [cut.rate for cut in cuts])
    square = float(weights @ [cut.square for cut in cuts]) / rate
    pool = replace(
        pools[-1],
        gram=rate * gram,
        moment=np.tensordot(weights, np.array(moments), axes=1),
        square=pools[-1].rows * square,
        gram_sd=rate * gram_sd,
        moment_sd=1 / math.sqrt(total),
        square_sd=square_sd * square / sd**2,
    )
    return Joined(pool=pool, rate=rate, whole=sd**2 / square)


def _whole_sd(pools: Sequence[Pool], apart: Sequence[Array], gram: Array) -> tuple[float, float]:
    """Sd of residuals at the last offset, as if none was cut, and the noise's sd on their sum."""
    sums = []
    precisions = []
    for pool, shift in zip(pools, apart, strict=True):
        sd = whole_sd(pool.square / pool.rows, pool.bound)
        rate = cut_of(sd, pool.bound).rate
        size = float(shift @ shift)
        sums.append(pool.rows * sd**2 - 2 * shift @ pool.moment / rate + shift @ gram @ shift)
        noise = (pool.square_sd / rate**2) ** 2 + 4 * size * (pool.moment_sd / rate) ** 2
        precisions.append(1 / noise)
    total = math.fsum(precisions)
    rows = pools[-1].rows
    square = float(np.dot(precisions, sums)) / total / rows
    least = (LEAST_SHARE * pools[-1].bound) ** 2
    return math.sqrt(max(square, least)), 1 / math.sqrt(total)


@dataclass(frozen=True)
class Known:
    """What an earlier visit says of X'X per row, in the later visits' mapped units."""

    gram: Array  # (d, d)
    variance: Array  # (d, d): of its entries


def _gram(pools: Sequence[Pool], known: Known | None) -> tuple[Array, float]:
    """X'X from all visits, and its noise as one sd."""
    precisions = [1 / pool.gram_sd**2 for pool in pools]
    total = math.fsum(precisions)
    gram = np.sum([w * pool.gram for w, pool in zip(precisions, pools, strict=True)], axis=0)
    gram = gram / total
    d = len(gram)
    variance = (np.ones((d, d)) + np.eye(d)) / (2 * total)
    if known is not None:
        rows = pools[-1].rows
        told = 1 / (known.variance * rows**2)
        gram = (gram / variance + rows * known.gram * told) / (1 / variance + told)
        variance = 1 / (1 / variance + told)
    mean = float(np.sum(variance[np.triu_indices(d)])) / (d * (d + 1) / 2)
    return gram, math.sqrt(mean)
