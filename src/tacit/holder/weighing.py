r"""Weighing: survey weights, whose largest is public. A row is multiplied by √(weight/most).

The heaviest row is then what every row is without weights, and any other is shorter, response
included: y = x'θ + e stays as it is, and no bound moves. A weight is clamped at 0 and `most`; a row
without one is incomplete, like any row with a missing value.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from tacit.rows.arrow import numbers_of
from tacit.rows.design import Block
from tacit.study.form import Weight


def weighed(blocks: Iterable[Block], batch: pa.RecordBatch, weight: Weight) -> Iterator[Block]:
    """Blocks of a batch's design, each row times the root of its weight; in place."""
    shares = np.clip(numbers_of(batch, weight.column), 0.0, weight.most) / weight.most
    roots = np.sqrt(shares)
    start = 0
    for block in blocks:
        end = start + block.shape[1]
        yield np.multiply(block, roots[start:end], out=block)
        start = end
