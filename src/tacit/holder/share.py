"""A holder's share in a secure sum: statistics with part of the noise, which leave masked only.

A share by itself has too little noise to be published. It is sealed, by whoever knows the masks,
before it is stored in the ledger or handed out; the guarantee is that of the sum (docs/privacy.md,
"Secure sum").
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tacit.errors import LedgerError, StudyError
from tacit.holder.account import Charge
from tacit.holder.charge import Purpose, charge_of, paid
from tacit.holder.ledger import Ledger
from tacit.holder.perturb import noisy_steps
from tacit.holder.places import PLACES, Sums, no_places, noisy_places
from tacit.holder.statistics import STATISTICS, Statistics
from tacit.holder.tally import Tally, total_of
from tacit.holder.visits import mapped
from tacit.privacy.mechanism import Mechanism
from tacit.privacy.noise import Sampler, rehearsal, secure_noise
from tacit.privacy.places import PlacesMechanism
from tacit.release.document import Receipt
from tacit.visits.sitting import Sitting

Seal = Callable[[list[int]], str]
"""Masks a share: whole lattice steps, then the number of rows where the study publishes it."""


def publish_share(
    sitting: Sitting,
    table: object,
    seal: Seal,
    *,
    holder: str,
    ledger: Ledger,
    dataset: str,
    session: str,
) -> str:
    """The sealed share of a table in one session of a secure sum, charged before noise is drawn.

    Each session is charged by itself, since two sums over different holders tell more than one. The
    first of several visits pays for all that follow it; each of those is entered once, at no
    further cost. Asked again for the same it gives what was stored.
    """
    study = sitting.study
    if study.secure_sum is None or holder not in study.secure_sum.holders:
        raise StudyError(f"the study has no secure_sum in which {holder!r} takes part")
    charge = share_charge(sitting, Purpose(holder, dataset), session)
    if (stored := ledger.released(dataset, charge.study_hash)) is not None:
        return stored
    _refuse_unopened(sitting, ledger, dataset)
    share = sitting.mechanism(1)
    nothing = no_places(study) if sitting.asks_places else Statistics.zero(study)
    shared_steps(nothing, share, rehearsal)
    total = total_of(sum_tally(sitting), study, table)

    def sealed(_receipt: Receipt) -> str:
        steps = shared_steps(total, share, secure_noise)
        return seal([*steps, total.n] if sitting.states_rows else steps)

    return paid(ledger, charge, study.relation, sealed, str)


def share_charge(sitting: Sitting, purpose: Purpose, session: str) -> Charge:
    """What a share costs: all visits of a study at the first one, and nothing at the others."""
    study = sitting.study
    charge = charge_of(study, purpose, sitting.mechanism(1))
    if sitting.question is None:
        return replace(
            charge, study=f"{study.name} (sum)", study_hash=f"{study.hash}/sum/{session}"
        )
    return replace(
        charge,
        study=f"{study.name} (sum, visit {sitting.number})",
        study_hash=f"{study.hash}/sum/{sitting.opening}/visit-{sitting.number}",
        epsilon=0.0,
        mu=0.0,
    )


def _refuse_unopened(sitting: Sitting, ledger: Ledger, dataset: str) -> None:
    """Refuse a later visit of a sum whose first one this data set has not paid for."""
    if sitting.question is None:
        return
    first = f"{sitting.study.hash}/sum/{sitting.opening}"
    if ledger.released(dataset, first) is None:
        raise LedgerError(
            f"the ledger holds no share in the first visit of this sum from data set {dataset!r}, "
            "which pays for all: a holder takes part from the first visit on"
        )


def sum_tally(sitting: Sitting) -> Tally[Any]:
    """How rows add up to what a sitting asks for."""
    if sitting.asks_places:
        return PLACES
    return STATISTICS if sitting.mapping is None else mapped(sitting.mapping)


def shared_steps(
    total: Sums | Statistics, mechanism: Mechanism | PlacesMechanism, sampler: Sampler
) -> list[int]:
    """A total with a mechanism's noise, in whole lattice steps."""
    if isinstance(total, Statistics) and isinstance(mechanism, Mechanism):
        return noisy_steps(total, mechanism, sampler)
    if isinstance(total, Statistics) or isinstance(mechanism, Mechanism):  # pragma: no cover
        raise TypeError
    return noisy_places(total, mechanism, sampler)
