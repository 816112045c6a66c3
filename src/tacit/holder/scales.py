"""Private scales: the first of two stages, from a table to noisy moments of its numeric columns.

A value is mapped by its column's public range, not by a typical interval, clamped, and rounded to a multiple of 2⁻¹⁸;
sums are whole numbers, exact in any order, and memory does not grow with the table.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.holder.charge import Purpose, charge_of, paid, signer_of
from tacit.holder.encode import Diagnostics, refuse_missing
from tacit.holder.ledger import Ledger
from tacit.holder.perturb import drawn_by, perturb
from tacit.holder.statistics import STEP_BITS
from tacit.holder.tally import Tally, total_of
from tacit.privacy.noise import Sampler, secure_noise
from tacit.release.document import check_holder, provenance
from tacit.release.scales import Moments, ScalesRelease
from tacit.release.statistics import from_steps
from tacit.rows.arrow import numbers_of
from tacit.study import Study
from tacit.study.grid import GRID, GRID_BITS

BLOCK_ROWS = 2**15
"""Rows summed at once: squares of at most 2³⁶ then add up to at most 2⁵¹, which double precision holds exactly."""

Sums = tuple[int, int, int]
"""Number of values, Σu and Σu² of a column, in whole steps of 2⁻³⁶."""


def publish_scales(
    study: Study,
    table: object,
    *,
    holder: str,
    ledger: Ledger | str | Path,
    dataset: str = "default",
    epsilon: float | None = None,
    delta: float | None = None,
    key: str | Path | None = None,
    again: bool = False,
    new_dataset: bool = False,
    diagnostics: Diagnostics | None = None,
    on_rows: Callable[[int], None] = lambda _rows: None,
) -> ScalesRelease:
    """Publish the moments of a table's columns with the first stage's part of the study's budget.

    The ledger is charged, durably, after the table was read and before any noise is drawn; a data set without a limit
    gets the whole study's, so that both stages fit and no more. `key` is the path of a private key to sign with.
    """
    sign = signer_of(key)
    check_holder(holder)
    purpose = Purpose(holder, dataset, epsilon, delta)
    charge = charge_of(study, purpose, study.scales_mechanism(epsilon, delta))
    charge = replace(charge, study=f"{study.name} (scales)", study_hash=f"{study.hash}/scales")
    sums = total_of(SCALES, study, table, diagnostics=diagnostics, on_rows=on_rows)
    return paid(
        Ledger.at(ledger),
        charge,
        study.relation,
        lambda receipt: sign(privatise_scales(study, sums, purpose).paid_by(receipt)),
        ScalesRelease.to_json,
        again=again,
        new_dataset=new_dataset,
        limit=(study.epsilon, study.delta),
    )


def privatise_scales(
    study: Study, sums: list[Sums], purpose: Purpose, sampler: Sampler | None = None
) -> ScalesRelease:
    """Add the mechanism's noise. A `sampler` other than the secure one marks the release as simulated."""
    mechanism = study.scales_mechanism(purpose.epsilon, purpose.delta)
    counts, totals, squares = zip(*sums, strict=True)
    noise = mechanism.noise
    sds = [sd for sd in (noise.count, noise.total, noise.square) for _ in sums]
    steps = perturb([*counts, *totals, *squares], sds, mechanism.lattice, sampler or secure_noise)
    noisy = np.reshape(
        [from_steps(step, mechanism.lattice) for step in steps], (3, len(sums))
    ).T.tolist()
    return ScalesRelease(
        study_hash=study.hash,
        study=study.resolved(),
        holder=purpose.holder,
        columns=tuple(
            Moments(name=feature.name, count=count, total=total, square=square)
            for feature, (count, total, square) in zip(study.scaled, noisy, strict=True)
        ),
        noise=noise,
        **provenance(mechanism, drawn_by(sampler), simulated=sampler is not None),
    )


def moments_of(
    study: Study,
    batches: Iterable[pa.RecordBatch],
    *,
    diagnostics: Diagnostics | None = None,
    on_rows: Callable[[int], None] = lambda _rows: None,
) -> list[Sums]:
    """Exact sums of the columns whose scale is to be found, over a stream of record batches."""
    features = study.scaled
    totals = np.zeros((len(features), 3), dtype=object)
    for batch in batches:
        incomplete = np.zeros(batch.num_rows, dtype=bool)
        for k, feature in enumerate(features):
            values = numbers_of(batch, feature.name)
            missing = np.isnan(values)
            incomplete |= missing
            units = _units(values, feature.mapping)
            for start in range(0, len(units), BLOCK_ROWS):
                totals[k] += _sums(
                    units[start : start + BLOCK_ROWS], missing[start : start + BLOCK_ROWS]
                )
            if diagnostics is not None:
                low, high = feature.range or (-np.inf, np.inf)
                outside = int(np.count_nonzero((values < low) | (values > high)))
                diagnostics.clamped[feature.name] = (
                    diagnostics.clamped.get(feature.name, 0) + outside
                )
        if study.missing == "refuse" and incomplete.any():
            refuse_missing()
        if diagnostics is not None:
            diagnostics.rows += batch.num_rows
            diagnostics.incomplete += int(np.count_nonzero(incomplete))
        on_rows(batch.num_rows)
    return [(count, total, square) for count, total, square in totals.tolist()]


def _units(values: NDArray[np.float64], mapping: tuple[float, float]) -> NDArray[np.float64]:
    """Values as whole steps of 2⁻¹⁸ of half the range from its middle, clamped at its ends; 0 where missing."""
    middle, half = mapping
    with np.errstate(
        over="ignore"
    ):  # a value of 1e300 may become infinite: it is clamped like any other
        units = (values - middle) * (GRID / half)
    return np.nan_to_num(np.rint(np.clip(units, -GRID, GRID)), copy=False, nan=0.0)


def _sums(units: NDArray[np.float64], missing: NDArray[np.bool_]) -> NDArray[np.object_]:
    """Sums of at most `BLOCK_ROWS` rows in whole steps of 2⁻³⁶: every partial sum is a whole number below 2⁵³, so exact."""
    count = len(units) - int(np.count_nonzero(missing))
    return np.array(
        [count << STEP_BITS, int(units.sum()) << GRID_BITS, int((units * units).sum())],
        dtype=object,
    )


def _numbers(sums: list[Sums]) -> list[int]:
    return [number for column in sums for number in column]


def _from_numbers(_study: Study, numbers: Sequence[int]) -> list[Sums]:
    return list(zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True))


SCALES = Tally(moments_of, _numbers, _from_numbers)
