"""Publish: from a table to a release, charged before it exists."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tacit.document import Published, check_holder, now, provenance
from tacit.errors import StudyError, TableError
from tacit.holder.averaging import refuse_pieces
from tacit.holder.encode import Diagnostics
from tacit.holder.ledger import Charge, Ledger
from tacit.holder.statistics import STATISTICS, STEP_BITS, Statistics
from tacit.holder.tally import total_of
from tacit.privacy.mechanism import Mechanism
from tacit.privacy.noise import Sampler, check_sampler, sampler_name, secure_noise
from tacit.privacy.scales import ScalesMechanism
from tacit.release import Release, from_steps, noise_record, statistics_fields
from tacit.study import Study

MOST_ROWS_FOR_EIGENVALUE = 2**28

Document = TypeVar("Document", bound=Published)


@dataclass(frozen=True)
class Purpose:
    """Who publishes, which data set pays, and how much of the study's budget is spent."""

    holder: str
    dataset: str = "default"
    epsilon: float | None = None
    delta: float | None = None


def publish(
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
    diagnostics: Diagnostics | None = None,
    on_rows: Callable[[int], None] = lambda _rows: None,
) -> Release:
    """Publish a table's statistics under the study's guarantee.

    The ledger is charged, durably, after the table was read and before any noise is drawn. `epsilon` and `delta`
    may be smaller than the study's. `key` is the path of a private key to sign with.
    """
    _refuse_two_stages(study)
    _refuse_sum(study)
    signer = _signer(key)
    check_holder(holder)
    ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    purpose = Purpose(holder, dataset, epsilon, delta)
    mechanism = study.mechanism(epsilon, delta)
    statistics = total_of(STATISTICS, study, table, diagnostics=diagnostics, on_rows=on_rows)
    _refuse_empty(study, statistics)
    _refuse_unpublishable(study, statistics)
    check_sampler()
    number = ledger.charge(_charge(study, purpose, mechanism), study.relation, again=again)
    release = signer(privatise(study, statistics, purpose))
    ledger.record(number, release.to_json())
    return release


def privatise(study: Study, statistics: Statistics, purpose: Purpose, sampler: Sampler | None = None) -> Release:
    """Add the mechanism's noise. A `sampler` other than the secure one marks the release as simulated."""
    _refuse_unpublishable(study, statistics)
    mechanism = study.mechanism(purpose.epsilon, purpose.delta)
    steps = noisy_steps(statistics, mechanism, sampler or secure_noise)
    noisy = (from_steps(step, mechanism.lattice) for step in steps)
    return Release(
        study_hash=study.hash,
        study=study.resolved(),
        holder=purpose.holder,
        noise_shape=mechanism.shape,
        noise=noise_record(mechanism),
        **statistics_fields(study, noisy, statistics.n),
        **_provenance(mechanism, sampler),
    )


def noisy_steps(statistics: Statistics, mechanism: Mechanism, sampler: Sampler) -> list[int]:
    """Every published number with its noise, in whole lattice steps and in the order of `statistics_fields`."""
    gram, scales, d = statistics.gram, mechanism.scales, len(statistics.gram) - 1
    parts: list[tuple[Sequence[int], float]] = [
        ([gram[i, i] for i in range(d)], scales.xtx_diagonal),
        ([gram[i, k] for i in range(d) for k in range(i + 1, d)], scales.xtx_off_diagonal),
        ([gram[i, d] for i in range(d)], scales.xty),
    ]
    if scales.yty is not None:
        parts.append(([gram[d, d]], scales.yty))
    if scales.count is not None:
        parts.append(([statistics.n * statistics.average << STEP_BITS], scales.count))
    if scales.eigenvalue is not None:
        parts.append(([_smallest_eigenvalue(statistics)], scales.eigenvalue))
    return _perturb(parts, mechanism.lattice, sampler, statistics.average)


def _provenance(mechanism: Mechanism | ScalesMechanism, sampler: Sampler | None) -> dict[str, Any]:
    drawn = sampler_name() if sampler is None else "seeded pseudo-random noise: protects nobody"
    return provenance(mechanism, drawn, simulated=sampler is not None)


def _perturb(parts: Sequence[tuple[Sequence[int], float]], lattice: int, sampler: Sampler, average: int = 1) -> list[int]:
    """Round whole steps of 2⁻³⁶/`average` to the lattice and add noise there."""
    values = [value for part, _ in parts for value in part]
    noise = sampler([sd for part, sd in parts for _ in part], lattice)
    return [_to_lattice(value, lattice, average) + step for value, step in zip(values, noise, strict=True)]


def _to_lattice(value: int, lattice: int, average: int) -> int:
    """The multiple of 2**`lattice` nearest to `value`·2⁻³⁶/`average`."""
    shift = lattice + STEP_BITS
    whole, part = value << max(-shift, 0), average << max(shift, 0)
    return (2 * whole + part) // (2 * part)


def _refuse_two_stages(study: Study) -> None:
    if study.scales_share is not None:
        message = (
            "this study has two stages (scales_share): publish with --stage scales, "
            "then publish for the study that `tacit scales` makes of all holders' scales"
        )
        raise StudyError(message)


def _refuse_sum(study: Study) -> None:
    if study.secure_sum is not None:
        message = "this study publishes a secure sum alone: a share by itself would not be private; run it as a federation"
        raise StudyError(message)


def _refuse_empty(study: Study, statistics: Statistics) -> None:
    """Only where the number of rows is public: else a refusal would tell it."""
    if statistics.n == 0 and study.count in {"exact", "public"}:
        message = "the table has no row: nothing was published or paid; check the files or the query"
        raise TableError(message)


def _refuse_unpublishable(study: Study, statistics: Statistics) -> None:
    if study.release.smallest_eigenvalue and statistics.n > MOST_ROWS_FOR_EIGENVALUE:
        message = "smallest_eigenvalue is published for tables of at most 2**28 rows: leave it out of the study"
        raise TableError(message)
    if statistics.average != study.release.average:
        refuse_pieces()


def _smallest_eigenvalue(statistics: Statistics) -> int:
    return round(float(np.linalg.eigvalsh(statistics.xtx())[0]) * 2.0**STEP_BITS * statistics.average)


def _signer(path: str | Path | None) -> Callable[[Document], Document]:
    """What signs the release; the key is read here, so a wrong one is found before anything is paid."""
    if path is None:
        return lambda release: release
    from tacit.signature import load_key, sign  # cryptography is needed for signed releases alone

    key = load_key(path)
    return lambda release: sign(release, key)


def _charge(study: Study, purpose: Purpose, mechanism: Mechanism | ScalesMechanism) -> Charge:
    return Charge(
        id=0,
        dataset=purpose.dataset,
        study=study.name,
        study_hash=study.hash,
        holder=purpose.holder,
        epsilon=mechanism.epsilon,
        delta=mechanism.delta,
        mu=mechanism.mu,
        time=now(),
        release=None,
    )
