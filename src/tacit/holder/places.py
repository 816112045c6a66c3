"""Places: the first of several visits, from a table to noisy sums that tell where values lie.

A value is mapped by its column's public range, clamped, and rounded to a multiple of 2⁻¹⁸; sums are
whole numbers, exact in any order, and memory does not grow with the table.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa

from tacit.holder.charge import Purpose
from tacit.holder.encode import Diagnostics, refuse_missing
from tacit.holder.perturb import drawn_by, perturb
from tacit.holder.statistics import STEP_BITS
from tacit.holder.tally import Tally
from tacit.privacy.noise import Sampler, secure_noise
from tacit.release.document import provenance
from tacit.release.places import PlacesRelease
from tacit.release.statistics import from_steps
from tacit.rows.design import Block, Design
from tacit.study import Study
from tacit.study.grid import GRID, GRID_BITS
from tacit.study.visits import placed, places_mechanism

BLOCK_ROWS = 2**15
"""Rows summed at once: squares of at most 2³⁶ then add up to 2⁵¹, exact in double precision."""

Sums = list[int]
"""Number of rows; then that of complete ones, Σu and Σu² of each column, in steps of 2⁻³⁶."""


def privatise_places(
    study: Study, sums: Sums, purpose: Purpose, sampler: Sampler | None = None
) -> PlacesRelease:
    """Add the mechanism's noise; any `sampler` but the secure one makes it a simulated release."""
    mechanism = places_mechanism(study, study.budget(purpose.epsilon, purpose.delta))
    columns = len(placed(study)) + 1
    noise = mechanism.noise
    sds = [noise.count, *([noise.total] * columns), *([noise.square] * columns)]
    steps = perturb(sums[1:], sds, mechanism.lattice, sampler or secure_noise)
    noisy = [from_steps(step, mechanism.lattice) for step in steps]
    return PlacesRelease(
        study_hash=study.hash,
        study=study.resolved(),
        holder=purpose.holder,
        count=noisy[0],
        totals=tuple(noisy[1 : columns + 1]),
        squares=tuple(noisy[columns + 1 :]),
        noise=noise,
        **provenance(mechanism, drawn_by(sampler), simulated=sampler is not None),
    )


def places_of(
    study: Study,
    batches: Iterable[pa.RecordBatch],
    *,
    diagnostics: Diagnostics | None = None,
    on_rows: Callable[[int], None] = lambda _rows: None,
) -> Sums:
    """Exact sums of the placed columns and the response over a stream of record batches."""
    on_outside = None if diagnostics is None else diagnostics.count_clamped
    design = Design(study, response=True, unit=GRID, on_outside=on_outside)
    chosen = [*placed(study), study.d]
    total = no_places(study)
    for batch in batches:
        for block in design.blocks(batch, BLOCK_ROWS):
            incomplete = np.isnan(block).any(axis=0)
            if study.missing == "refuse" and incomplete.any():
                refuse_missing()
            if diagnostics is not None:
                diagnostics.rows += block.shape[1]
                diagnostics.incomplete += int(np.count_nonzero(incomplete))
            block[:, incomplete] = 0.0
            complete = block.shape[1] - int(np.count_nonzero(incomplete))
            total = _added(total, _sums(block[chosen], complete))
        on_rows(batch.num_rows)
    return total


def no_places(study: Study) -> Sums:
    """Sums of no rows."""
    return [0] * (2 * len(placed(study)) + 4)


def _sums(block: Block, complete: int) -> Sums:
    """Sums of at most `BLOCK_ROWS` rows in whole steps of 2⁻³⁶: partial sums stay below 2⁵³."""
    units = np.rint(block)
    totals = [int(value) << GRID_BITS for value in units.sum(axis=1).tolist()]
    squares = [int(value) for value in (units * units).sum(axis=1).tolist()]
    return [block.shape[1], complete << STEP_BITS, *totals, *squares]


def _added(some: Sums, more: Sums) -> Sums:
    return [a + b for a, b in zip(some, more, strict=True)]


def _numbers(sums: Sums) -> list[int]:
    return sums


def _from_numbers(_study: Study, numbers: Sequence[int]) -> Sums:
    return list(numbers)


PLACES = Tally(places_of, _numbers, _from_numbers)
