"""A holder's share in a secure sum: its statistics with part of the noise, which leave the house masked and in no other way.

A share by itself has too little noise to be published. It is sealed, by whoever knows the masks, before it is stored in the
ledger or handed out; the guarantee is that of the sum (docs/privacy.md, "Secure sum").
"""

from collections.abc import Callable
from dataclasses import replace

from tacit.errors import StudyError
from tacit.holder.ledger import Ledger
from tacit.holder.publish import Purpose, _charge, noisy_steps
from tacit.holder.statistics import statistics_of
from tacit.privacy.noise import check_sampler, secure_noise
from tacit.rows.table import table_of
from tacit.study import Study

Seal = Callable[[list[int]], str]
"""Masks a share: whole lattice steps, and at their end the exact number of rows where the study publishes that."""


def publish_share(study: Study, table: object, seal: Seal, *, holder: str, ledger: Ledger, dataset: str, session: str) -> str:
    """The sealed share of a table in one session of a secure sum, charged, durably, before any noise is drawn.

    Each session is charged by itself, since two sums over different holders tell more than one. Asked again for the same session
    it gives what was stored, at no cost.
    """
    if study.secure_sum is None or holder not in study.secure_sum.holders:
        message = f"the study has no secure_sum in which {holder!r} takes part"
        raise StudyError(message)
    paid_for = f"{study.hash}/sum/{session}"
    if (stored := ledger.released(dataset, paid_for)) is not None:
        return stored
    charge = replace(_charge(study, Purpose(holder, dataset), study.mechanism()), study=f"{study.name} (sum)", study_hash=paid_for)
    statistics = statistics_of(study, table_of(table, study).batches())
    check_sampler()
    number = ledger.charge(charge, study.relation)
    steps = noisy_steps(statistics, study.summed(1), secure_noise)
    sealed = seal([*steps, statistics.n] if study.count in {"exact", "public"} else steps)
    ledger.record(number, sealed)
    return sealed
