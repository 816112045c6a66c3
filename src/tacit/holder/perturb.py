"""Perturb: where noise is added, to exact sums rounded to the mechanism's lattice."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from tacit.errors import TableError
from tacit.holder.averaging import refuse_pieces
from tacit.holder.charge import Purpose
from tacit.holder.statistics import STEP_BITS, Statistics
from tacit.privacy.layout import Layout, PartName
from tacit.privacy.mechanism import Mechanism, lattice_for
from tacit.privacy.noise import Sampler, rehearsal, sampler_name, secure_noise
from tacit.release import Release
from tacit.study import Study

MOST_ROWS_FOR_EIGENVALUE = 2**28
SEEDED = "seeded pseudo-random noise: protects nobody"
"""What a simulated release says of its noise."""


def privatise(
    study: Study, statistics: Statistics, purpose: Purpose, sampler: Sampler | None = None
) -> Release:
    """Add the mechanism's noise; any `sampler` but the secure one makes it a simulated release."""
    refuse_unpublishable(study, statistics)
    mechanism = study.mechanism(purpose.epsilon, purpose.delta)
    return Release.of(
        study,
        mechanism,
        noisy_steps(statistics, mechanism, sampler or secure_noise),
        statistics.n,
        holder=purpose.holder,
        drawn_by=drawn_by(sampler),
        simulated=sampler is not None,
    )


def blank(study: Study, purpose: Purpose) -> Release:
    """A release of no rows and no noise, to throw away: what can fail fails before it is paid."""
    nothing = replace(Statistics.zero(study), average=study.release.average)
    return privatise(study, nothing, purpose, rehearsal)


def drawn_by(sampler: Sampler | None) -> str:
    """What draws the noise, as a release states it."""
    return sampler_name() if sampler is None else SEEDED


def noisy_steps(statistics: Statistics, mechanism: Mechanism, sampler: Sampler) -> list[int]:
    """Every published number with its noise, in whole lattice steps and in the layout's order."""
    layout = mechanism.layout
    values = layout.joined(_parts(statistics, layout))
    sds = layout.each(mechanism.noise.by_part())
    return perturb(values, sds, mechanism.lattice, sampler, statistics.average)


def perturb(
    values: Sequence[int], sds: Sequence[float], lattice: int, sampler: Sampler, average: int = 1
) -> list[int]:
    """Round whole steps of 2⁻³⁶/`average` to the lattice and add noise there.

    Numbers with far larger noise than others are rounded to a coarser lattice inside it.
    """
    noisy: list[int] = []
    entries = zip(values, sds, strict=True)
    for own, group in groupby(entries, lambda entry: lattice_for(entry[1], lattice)):
        alike = list(group)
        noise = sampler([sd for _, sd in alike], own)
        noisy += [
            (to_lattice(value, own, average) + step) << (own - lattice)
            for (value, _), step in zip(alike, noise, strict=True)
        ]
    return noisy


def to_lattice(value: int, lattice: int, average: int) -> int:
    """The multiple of 2**`lattice` nearest to `value`·2⁻³⁶/`average`."""
    shift = lattice + STEP_BITS
    whole = value << max(-shift, 0)
    part = average << max(shift, 0)
    return (2 * whole + part) // (2 * part)


def refuse_unpublishable(study: Study, statistics: Statistics) -> None:
    """Refuse statistics that the study's mechanism was not proven for."""
    if study.release.smallest_eigenvalue and statistics.n > MOST_ROWS_FOR_EIGENVALUE:
        raise TableError(
            "smallest_eigenvalue is published for tables of at most 2**28 rows: leave it out of "
            "the study"
        )
    if statistics.average != study.release.average:
        refuse_pieces()


def _parts(statistics: Statistics, layout: Layout) -> dict[PartName, list[int]]:
    """Exact values of every part, in whole steps of 2⁻³⁶, or 2⁻³⁶/k where k rows are averaged."""
    gram = statistics.gram
    d = layout.d
    responses = range(d, d + layout.responses)
    return {
        "xtx_diagonal": [gram[i, i] for i in range(d)],
        "xtx_off_diagonal": [gram[i, k] for i in range(d) for k in range(i + 1, d)],
        "xty": [gram[i, k] for k in responses for i in range(d)],
        "yty": [gram[k, k] for k in responses],
        "count": [statistics.n * statistics.average << STEP_BITS],
        "eigenvalue": [_smallest_eigenvalue(statistics, layout)] if layout.eigenvalue else [],
    }


def _smallest_eigenvalue(statistics: Statistics, layout: Layout) -> int:
    smallest = float(np.linalg.eigvalsh(statistics.xtx(layout.responses))[0])
    return round(smallest * 2.0**STEP_BITS * statistics.average)
