"""Whether a GPU pays for adding up rows: exact blocks in FP64, against one core and against all.

Rows of 19 features and a response, normal, in memory. Three ways of the same sums:

  core    what a worker does with a batch: range, row scaling, grid, products (`statistics_of`)
  copy    the columns' way to the GPU alone, from pinned memory
  gpu     copy, then the same steps there: products of blocks in FP64, exact as here, sums in int64

and `read`: a Parquet file of the same rows decoded by one core, which no GPU takes off the
processor here. The sums of `gpu` must be those of `core` to the last bit. What a GPU can give in
all follows from them: all cores read, the GPU adds up; against all cores doing both. Needs PyTorch
with CUDA, and is left out, and says so, where there is none.

    python benchmarks/gpu_blocks.py [--quick] [--check]

`--quick` takes an eighth of the rows.
"""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from frame import Bench
from publish import COLUMNS, make_table
from scale_rows import study

from tacit.holder.encode import BLOCK_ROWS
from tacit.holder.statistics import statistics_of
from tacit.rows.pieces import MOST_BATCH_ROWS, READ_BYTES
from tacit.study.grid import GRID

ROWS = 2**23
AT_ONCE = 2**21
"""Rows that are sent to the GPU together: sums of their blocks fit into 64 bits."""
WORTH = 1.2
"""A GPU is worth its trouble from so many times the speed on."""


def main() -> None:
    bench = Bench(__doc__, quick="an eighth of the rows")
    options = bench.options()
    try:
        import torch
    except ImportError:
        torch = None
    if torch is None or not torch.cuda.is_available():
        print("gpu_blocks: left out, there is no GPU that PyTorch knows")
        return
    compare(bench, torch, ROWS // 8 if options.quick else ROWS)
    bench.finish()


def compare(bench: Bench, torch: Any, rows: int) -> None:  # noqa: ANN401
    """Measure the steps, and say what they come to together."""
    batch = batch_of(rows)
    columns = np.stack([batch.column(name).to_numpy() for name in COLUMNS])
    width = min(rows, AT_ONCE)
    pieces = columns.reshape(len(COLUMNS), -1, width).transpose(1, 0, 2)
    pinned = torch.from_numpy(np.ascontiguousarray(pieces)).pin_memory()
    gpu = Gpu(torch)
    exact = statistics_of(study(), [batch])
    bench.bar(
        "the GPU's sums are those of the processor to the last bit",
        met=bool((exact.gram == gpu.gram(pinned)).all()),
    )
    times = {
        "read": read(rows),
        "core": timed(lambda: statistics_of(study(), [batch]), 3),
        "copy": timed(lambda: gpu.copied(pinned), 5),
        "gpu": timed(lambda: gpu.gram(pinned), 5),
    }
    table = bench.table("gpu_blocks", {"step": "<8", "rows": ",", "million rows per s": ".1f"})
    rates = {name: rows / seconds for name, seconds in times.items()}
    for name, rate in rates.items():
        table.row(name, rows, rate / 1e6)
    cores = len(os.sched_getaffinity(0))
    both = cores / (1 / rates["read"] + 1 / rates["core"])
    shared = min(cores * rates["read"], rates["gpu"])
    bench.say(
        f"{cores} cores read and add up {both / 1e6:.0f} million rows per second; "
        f"reading alone, with the GPU adding up, at most {shared / 1e6:.0f}: "
        f"{shared / both:.2f} times, {'worth' if shared / both >= WORTH else 'not worth'} it"
    )
    needed = rates["gpu"] / rates["read"]
    bench.say(
        f"{needed:.1f} cores of reading keep the GPU busy; the copy alone allows "
        f"{rates['copy'] / 1e6:.0f} million rows per second"
    )


def batch_of(rows: int) -> pa.RecordBatch:
    """Normal columns; one value in 370 lies outside the study's range."""
    rng = np.random.default_rng(rows)
    return pa.record_batch({name: rng.standard_normal(rows) for name in COLUMNS})


def timed(work: Callable[[], Any], repeats: int) -> float:
    """Seconds on the clock, the least of some runs."""
    least = float("inf")
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        least = min(least, time.perf_counter() - begun)
    return least


def read(rows: int) -> float:
    """Seconds that one core takes to decode a Parquet file of so many rows."""
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder:
        path = make_table(Path(folder) / "table.parquet", rows)

        def decode() -> None:
            file = pq.ParquetFile(path, pre_buffer=False, buffer_size=READ_BYTES)
            for _ in file.iter_batches(batch_size=MOST_BATCH_ROWS, use_threads=False):
                pass

        return timed(decode, 3)


class Gpu:
    """The steps of `Encoder` for a study of plain ranges ±3 with row scaling, on a GPU."""

    def __init__(self, torch: Any) -> None:  # noqa: ANN401
        self._torch = torch
        agreed = study()
        self._d = agreed.d
        self._radius = agreed.row_radius * GRID - np.sqrt(agreed.d)
        self._bound = float(np.floor(agreed.response_bound * GRID))
        self._is_whole = agreed.row_radius >= agreed.longest_row
        self._intercept = bool(agreed.intercept)

    def copied(self, host: Any) -> Any:  # noqa: ANN401
        """The last piece on the GPU, after all of them were there."""
        there = None
        for piece in host:
            there = piece.to("cuda", non_blocking=True)
        self._torch.cuda.synchronize()
        return there

    def gram(self, host: Any) -> np.ndarray[Any, Any]:  # noqa: ANN401
        """The sums of products, as Python integers."""
        total = np.zeros((self._d + 1, self._d + 1), dtype=object)
        for piece in host:
            block = self._encoded(piece.to("cuda", non_blocking=True))
            blocks = block.reshape(self._d + 1, -1, BLOCK_ROWS).permute(1, 0, 2)
            sums = (blocks @ blocks.transpose(1, 2)).to(self._torch.int64).sum(0)
            total += sums.cpu().numpy().astype(object)
        return total

    def _encoded(self, columns: Any) -> Any:  # noqa: ANN401
        """Whole numbers: mapped, clamped, shrunk, cut and rounded as `Encoder` does it."""
        torch = self._torch
        scaled = ((columns - 0.0) * (GRID / 3.0)).clamp_(-GRID, GRID)
        if self._intercept:
            ones = torch.full_like(scaled[:1], GRID)
            scaled = torch.cat([ones, scaled])
        if not self._is_whole:
            squares = torch.zeros_like(scaled[0])
            for column in scaled[:-1]:
                squares += column * column
            norms = torch.sqrt(squares)
            scaled *= self._radius / torch.clamp(norms, min=self._radius)
        scaled[-1].clamp_(-self._bound, self._bound)
        return scaled.round_()


if __name__ == "__main__":
    main()
