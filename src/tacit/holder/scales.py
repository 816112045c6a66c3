"""Private scales: the first of two stages, from a table to noisy moments of its numeric columns.

A value is mapped by its column's public range, not by a typical interval, clamped, and rounded to a
multiple of 2⁻¹⁸; sums are whole numbers, exact in any order, and memory does not grow with the
table. In a study of persons the 1 and the value u of a row are both divided by √m and cut towards
zero, so that a person adds at most the mean of what its rows would (docs/privacy.md, "Persons").
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.holder.account import Charge
from tacit.holder.charge import Purpose, charge_of
from tacit.holder.division import Division
from tacit.holder.encode import Diagnostics, refuse_missing
from tacit.holder.perturb import drawn_by, perturb
from tacit.holder.stage import Stage
from tacit.holder.tally import Tally
from tacit.privacy.noise import Sampler, rehearsal, secure_noise
from tacit.release.document import from_steps, provenance
from tacit.release.scales import Moments, ScalesRelease
from tacit.rows.arrow import numbers_of
from tacit.rows.design import outside
from tacit.study import Study
from tacit.study.grid import GRID

BLOCK_ROWS = 2**15
"""Rows summed at once: squares of at most 2³⁶ then add up to 2⁵¹, exact in double precision."""

Sums = tuple[int, int, int]
"""Number of values, Σu and Σu² of a column, in whole steps of 2⁻³⁶."""


def privatise_scales(
    study: Study, sums: list[Sums], purpose: Purpose, sampler: Sampler | None = None
) -> ScalesRelease:
    """Add the mechanism's noise; any `sampler` but the secure one makes it a simulated release."""
    mechanism = study.scales_mechanism(purpose.epsilon, purpose.delta)
    counts, totals, squares = zip(*sums, strict=True)
    noise = mechanism.noise
    sds = [sd for sd in (noise.count, noise.total, noise.square) for _ in sums]
    steps = perturb([*counts, *totals, *squares], sds, mechanism.lattice, sampler or secure_noise)
    noisy = [from_steps(step, mechanism.lattice) for step in steps]
    by_column = np.reshape(noisy, (3, len(sums))).T.tolist()
    return ScalesRelease(
        study_hash=study.hash,
        study=study.resolved(),
        holder=purpose.holder,
        columns=tuple(
            Moments(name=feature.name, count=count, total=total, square=square)
            for feature, (count, total, square) in zip(study.scaled, by_column, strict=True)
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
    division = None if study.person is None else Division(study)
    for batch in batches:
        incomplete = np.zeros(batch.num_rows, dtype=bool)
        ones = _ones(batch, division)
        for k, feature in enumerate(features):
            values = numbers_of(batch, feature.name)
            missing = np.isnan(values)
            incomplete |= missing
            units = _units(values, feature.mapping)
            totals[k] += _sums_of_column(
                np.trunc(units * (ones / GRID)), np.where(missing, 0.0, ones)
            )
            if diagnostics is not None:
                diagnostics.count_clamped(feature.name, outside(values, feature.range))
                if diagnostics.watch is not None:
                    diagnostics.watch.see_numbers(feature, batch, values)
        is_watched = diagnostics is not None and diagnostics.watch is not None
        if study.missing == "refuse" and incomplete.any() and not is_watched:
            refuse_missing()
        if diagnostics is not None:
            diagnostics.rows += batch.num_rows
            diagnostics.incomplete += int(np.count_nonzero(incomplete))
        on_rows(batch.num_rows)
    return [(count, total, square) for count, total, square in totals.tolist()]


def _units(values: NDArray[np.float64], mapping: tuple[float, float]) -> NDArray[np.float64]:
    """Values as whole steps of 2⁻¹⁸ of half the range, clamped at its ends; 0 where missing."""
    middle, half = mapping
    # A value of 1e300 may become infinite: it is clamped like any other.
    with np.errstate(over="ignore"):
        units = (values - middle) * (GRID / half)
    return np.nan_to_num(np.rint(np.clip(units, -GRID, GRID)), copy=False, nan=0.0)


def _ones(batch: pa.RecordBatch, division: Division | None) -> NDArray[np.float64]:
    """What stands for 1 in each row, in whole steps: less where a person has several rows."""
    if division is None:
        return np.full(batch.num_rows, GRID)
    return np.trunc(GRID * division.roots(division.rows_of(batch)))


def _sums_of_column(units: NDArray[np.float64], ones: NDArray[np.float64]) -> NDArray[np.object_]:
    """Sums of any number of rows, in Python integers."""
    total = np.zeros(3, dtype=object)
    for start in range(0, len(units), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        total += _sums(units[rows], ones[rows])
    return total


def _sums(units: NDArray[np.float64], ones: NDArray[np.float64]) -> NDArray[np.object_]:
    """Sums of at most `BLOCK_ROWS` rows in whole steps of 2⁻³⁶: partial sums stay below 2⁵³."""
    products = (ones * ones, ones * units, units * units)
    return np.array([int(product.sum()) for product in products], dtype=object)


def _numbers(sums: list[Sums]) -> list[int]:
    return [number for column in sums for number in column]


def _from_numbers(_study: Study, numbers: Sequence[int]) -> list[Sums]:
    return list(zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True))


SCALES = Tally(moments_of, _numbers, _from_numbers, "scales")


class ScalesStage(Stage[list[Sums], ScalesRelease]):
    """The moments of a table's columns, with the first stage's part of the study's budget."""

    name = "scales"
    tally = SCALES

    def charge(self, study: Study, purpose: Purpose) -> Charge:
        """What the first stage costs."""
        mechanism = study.scales_mechanism(purpose.epsilon, purpose.delta)
        charge = charge_of(study, purpose, mechanism)
        return replace(charge, study=f"{study.name} (scales)", study_hash=f"{study.hash}/scales")

    def limit(self, study: Study) -> tuple[float, float]:
        """The whole study's, so that both stages fit and no more."""
        return study.epsilon, study.delta

    def check(self, study: Study, total: list[Sums]) -> None:
        """Moments can always be published."""

    def blank(self, study: Study, purpose: Purpose) -> ScalesRelease:
        """Moments of no rows."""
        return privatise_scales(study, [(0, 0, 0)] * len(study.scaled), purpose, rehearsal)

    def privatise(self, study: Study, total: list[Sums], purpose: Purpose) -> ScalesRelease:
        """The moments with the mechanism's noise."""
        return privatise_scales(study, total, purpose)


publish_scales = ScalesStage().publish
"""Publish the moments of a table's columns: the first of two stages, at its part of the cost."""
rehearse_scales = ScalesStage().rehearse
"""Everything that publishing them does but the charge and the noise; what it shows stays here."""
