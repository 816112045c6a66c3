"""A holder's share in a secure sum: statistics with part of the noise, which leave masked only.

A share by itself has too little noise to be published. It is sealed, by whoever knows the masks,
before it is stored in the ledger or handed out; the guarantee is that of the sum (docs/privacy.md,
"Secure sum").
"""

from collections.abc import Callable
from dataclasses import replace

from tacit.errors import StudyError
from tacit.holder.charge import Purpose, charge_of, paid
from tacit.holder.ledger import Ledger
from tacit.holder.perturb import noisy_steps
from tacit.holder.statistics import STATISTICS, Statistics
from tacit.holder.tally import total_of
from tacit.privacy.noise import rehearsal, secure_noise
from tacit.release.document import Receipt
from tacit.study import Study

Seal = Callable[[list[int]], str]
"""Masks a share: whole lattice steps, then the number of rows where the study publishes it."""


def publish_share(
    study: Study,
    table: object,
    seal: Seal,
    *,
    holder: str,
    ledger: Ledger,
    dataset: str,
    session: str,
) -> str:
    """The sealed share of a table in one session of a secure sum, charged before noise is drawn.

    Each session is charged by itself, since two sums over different holders tell more than one.
    Asked again for the same session it gives what was stored, at no cost.
    """
    if study.secure_sum is None or holder not in study.secure_sum.holders:
        raise StudyError(f"the study has no secure_sum in which {holder!r} takes part")
    paid_for = f"{study.hash}/sum/{session}"
    if (stored := ledger.released(dataset, paid_for)) is not None:
        return stored
    charge = charge_of(study, Purpose(holder, dataset), study.mechanism())
    charge = replace(charge, study=f"{study.name} (sum)", study_hash=paid_for)
    share = study.summed(1)
    noisy_steps(Statistics.zero(study.d), share, rehearsal)
    statistics = total_of(STATISTICS, study, table)

    def sealed(_receipt: Receipt) -> str:
        steps = noisy_steps(statistics, share, secure_noise)
        return seal([*steps, statistics.n] if study.count in {"exact", "public"} else steps)

    return paid(ledger, charge, study.relation, sealed, str)
