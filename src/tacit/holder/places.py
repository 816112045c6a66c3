"""Places: the first of several visits, from a table to noisy sums that tell where values lie.

A value is mapped by its column's public range, clamped, and rounded to a multiple of 2⁻¹⁸; sums are
whole numbers, exact in any order, and memory does not grow with the table. In a study of persons
the 1 and the values of a row are divided by √m and cut towards zero, so that a person adds at most
the mean of what its rows would.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.holder.charge import Purpose
from tacit.holder.division import Division, persons_in
from tacit.holder.encode import Diagnostics, refuse_missing
from tacit.holder.perturb import drawn_by, perturb
from tacit.holder.tally import Tally
from tacit.privacy.noise import Sampler, secure_noise
from tacit.privacy.places import PlacesMechanism
from tacit.release.places import PlacesRelease
from tacit.rows.design import Block, Design
from tacit.study import Study
from tacit.study.grid import GRID
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
    return PlacesRelease.of(
        study,
        mechanism,
        noisy_places(sums, mechanism, sampler or secure_noise),
        holder=purpose.holder,
        drawn_by=drawn_by(sampler),
        simulated=sampler is not None,
    )


def noisy_places(sums: Sums, mechanism: PlacesMechanism, sampler: Sampler) -> list[int]:
    """The sums with their noise, in whole lattice steps."""
    return perturb(sums[1:], mechanism.sds, mechanism.lattice, sampler)


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
    division = None if study.person is None else Division(study)
    total = no_places(study)
    for batch in batches:
        ones = _ones(batch, division)
        start = 0
        for block in design.blocks(batch, BLOCK_ROWS):
            own = ones[start : start + block.shape[1]]
            start += block.shape[1]
            incomplete = np.isnan(block).any(axis=0)
            if study.missing == "refuse" and incomplete.any():
                refuse_missing()
            if diagnostics is not None:
                diagnostics.rows += block.shape[1]
                diagnostics.incomplete += int(np.count_nonzero(incomplete))
            block[:, incomplete] = 0.0
            total = _added(total, _sums(block[chosen], np.where(incomplete, 0.0, own)))
        total[0] += batch.num_rows if division is None else persons_in(batch)
        on_rows(batch.num_rows)
    return total


def no_places(study: Study) -> Sums:
    """Sums of no rows."""
    return [0] * (2 * len(placed(study)) + 4)


def _ones(batch: pa.RecordBatch, division: Division | None) -> NDArray[np.float64]:
    """What stands for 1 in each row, in whole steps: less where a person has several rows."""
    if division is None:
        return np.full(batch.num_rows, GRID)
    return np.trunc(GRID * division.roots(division.rows_of(batch)))


def _sums(block: Block, ones: NDArray[np.float64]) -> Sums:
    """Sums of at most `BLOCK_ROWS` rows in whole steps of 2⁻³⁶: partial sums stay below 2⁵³."""
    units = np.trunc(np.rint(block) * (ones / GRID))
    products = ((ones * ones)[None], ones * units, units * units)
    return [0, *(int(value) for product in products for value in product.sum(axis=1).tolist())]


def _added(some: Sums, more: Sums) -> Sums:
    return [a + b for a, b in zip(some, more, strict=True)]


def _numbers(sums: Sums) -> list[int]:
    return sums


def _from_numbers(_study: Study, numbers: Sequence[int]) -> Sums:
    return list(numbers)


PLACES = Tally(places_of, _numbers, _from_numbers, "places")
