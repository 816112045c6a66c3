"""Charge: what publishing costs, and its order: pay, durably, then make, store and hand out."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from tacit.errors import StudyError
from tacit.holder.account import Charge
from tacit.holder.ledger import Ledger
from tacit.holder.ledger_file import canonical_name
from tacit.privacy.mechanism import Mechanism
from tacit.privacy.noise import check_sampler
from tacit.privacy.places import PlacesMechanism
from tacit.privacy.sensitivity import Relation
from tacit.records import now
from tacit.release import Release
from tacit.release.document import Published, Receipt
from tacit.study import Study

Signed = TypeVar("Signed", bound=Published)
Made = TypeVar("Made")


@dataclass(frozen=True)
class Purpose:
    """Who publishes, which data set pays, and how much of the study's budget is spent."""

    holder: str
    dataset: str = "default"
    epsilon: float | None = None
    delta: float | None = None


def charge_of(study: Study, purpose: Purpose, mechanism: Mechanism | PlacesMechanism) -> Charge:
    """What a release of the study costs, as the ledger will state it."""
    refuse_stranger(study, purpose.holder)
    return Charge(
        id=0,
        dataset=canonical_name(purpose.dataset),
        study=study.name,
        study_hash=study.hash,
        holder=purpose.holder,
        epsilon=mechanism.epsilon,
        delta=mechanism.delta,
        mu=mechanism.mu,
        time=now(),
        release=None,
        person=study.person,
    )


def visit_hash(study: Study, number: int) -> str:
    """How the ledger names a visit: the first by the study's own hash."""
    return study.hash if number == 1 else f"{study.hash}/visit-{number}"


def at_visit(charge: Charge, study: Study, number: int) -> Charge:
    """The charge of a later visit: entered by its own name, at no further cost."""
    if number == 1:
        return charge
    return replace(
        charge,
        study=f"{study.name} (visit {number})",
        study_hash=visit_hash(study, number),
        epsilon=0.0,
        mu=0.0,
    )


def charges_behind(release: Published, dataset: str) -> list[Charge]:
    """The charges that a release tells of, for a ledger that lost them.

    A message of a later visit was made after all those before: each visit is answered once, so all
    of them are entered.
    """
    whole = _charge_behind(release, dataset)
    visit = release.visit if isinstance(release, Release) else None
    if visit is None or len(release.study.planned_rows) == 1:
        return [whole]
    return [at_visit(whole, release.study, number) for number in range(1, visit.question.visit + 1)]


def _charge_behind(release: Published, dataset: str) -> Charge:
    """The charge that paid for a release, as the release tells it."""
    return Charge(
        id=0,
        dataset=canonical_name(dataset),
        study=release.study.name,
        study_hash=release.study_hash,
        holder=release.holder,
        epsilon=release.epsilon,
        delta=release.delta,
        mu=release.mu,
        time=release.created,
        release=release.to_json(),
        person=release.study.person,
    )


def paid(
    ledger: Ledger,
    charge: Charge,
    relation: Relation,
    make: Callable[[Receipt], Made],
    text: Callable[[Made], str],
    *,
    again: bool = False,
    new_dataset: bool = False,
    limit: tuple[float, float] | None = None,
) -> Made:
    """What `make` makes of its receipt, once it is paid for.

    Its text is in the ledger before it is handed out.
    """
    check_sampler()
    receipt = ledger.pay(charge, relation, again=again, new_dataset=new_dataset, limit=limit)
    made = make(receipt)
    ledger.record(receipt.charge, text(made))
    return made


def signer_of(path: str | Path | None) -> Callable[[Signed], Signed]:
    """What signs a release.

    The key is read here, so a wrong one is found before anything is paid.
    """
    if path is None:
        return lambda release: release
    from tacit.release.signature import (  # cryptography is needed for signed releases alone
        load_key,
        sign,
    )

    key = load_key(path)
    return lambda release: sign(release, key)


def refuse_stranger(study: Study, holder: str) -> None:
    """Refuse a holder that the study, which names its holders, does not expect."""
    if study.holders and holder not in study.holders:
        raise StudyError(
            f"the study does not expect a holder {holder!r}: it names "
            f"{', '.join(study.holders)[:200]}; use that name, or agree on a study with this one"
        )


def refuse_sum(study: Study) -> None:
    """Refuse a study of which no holder publishes a release of its own."""
    if study.secure_sum is not None:
        raise StudyError(
            "this study publishes a secure sum alone: a share by itself would not be private; "
            "run it as a federation"
        )
