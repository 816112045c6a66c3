"""Answer: from a study that somebody asks for to a release, or to a reason without data.

The policy is asked first, then the ledger (what was published once is given again), then the data
officer; only then are rows read. Whatever goes wrong on the way becomes one of the agreed reasons,
and its detail a line in the site's own log.
"""

import logging
from pathlib import Path

from tacit.errors import (
    BudgetError,
    LedgerError,
    ReleaseError,
    StudyError,
    TableError,
    TacitError,
)
from tacit.federation.client.policy import Policy
from tacit.federation.client.requests import Requests
from tacit.federation.client.sources import TooFewRowsError, table_at
from tacit.federation.secure_sum.holder import Holder
from tacit.federation.secure_sum.masks import SumError
from tacit.federation.secure_sum.session import Folder
from tacit.federation.wire import Answer, Reason, Step, Visit
from tacit.holder.charge import visit_hash
from tacit.holder.ledger import Ledger
from tacit.holder.publish import publish
from tacit.holder.share import Seal, publish_share
from tacit.holder.visits import check_question
from tacit.release.question import Question
from tacit.study import Study
from tacit.visits.sitting import Sitting

LOG = logging.getLogger("tacit.federation")


def answer(asked: str | Step | Visit, policy: Policy) -> Answer:
    """What this site says to a study's text, a later visit, or a round of a secure sum."""
    question = None
    try:
        study = Study.from_toml(asked if isinstance(asked, str) else asked.study)
        if not isinstance(asked, str) and asked.question:
            question = Question.from_json(asked.question)
            check_question(study, question)
    except (StudyError, ReleaseError) as error:
        return _refuse(Reason.UNREADABLE, error)
    if isinstance(asked, Step) != (study.secure_sum is not None):
        return _refuse(
            Reason.UNREADABLE, "a study with a secure sum is asked for in rounds, and no other is"
        )
    try:
        if objection := policy.objection(study):
            return _refuse(objection, f"study {study.name!r} ({study.hash})")
        if isinstance(asked, Step):
            return _sum(Sitting(study, question, asked.opening), asked, policy)
        return _release(study, policy, question)
    except TacitError as error:
        return _refuse(next(reason for kind, reason in _REASONS if isinstance(error, kind)), error)


_REASONS: tuple[tuple[type[TacitError], Reason], ...] = (
    (SumError, Reason.SUM),
    (TooFewRowsError, Reason.ROWS),
    (TableError, Reason.TABLE),
    (BudgetError, Reason.BUDGET),
    (LedgerError, Reason.LEDGER),
    (TacitError, Reason.SITE),
)


def _release(study: Study, policy: Policy, question: Question | None) -> Answer:
    """The release; of a later visit under the approval that the study has."""
    ledger = Ledger(policy.ledger)
    name = study.hash if question is None else visit_hash(study, question.visit)
    if (stored := ledger.released(policy.dataset, name)) is not None:
        LOG.info(
            "study %r: the release that was published before is given again, at no cost", study.name
        )
        return Answer("released", release=stored)
    if policy.asks_a_person(study) and (pending := _pending(study, policy)) is not None:
        return pending
    ledger.cap(policy.dataset, policy.most.epsilon_in_all, policy.most.delta_in_all)
    release = publish(
        study,
        table_at(study, policy),
        holder=policy.holder,
        ledger=ledger,
        dataset=policy.dataset,
        key=policy.key,
        question=question,
    )
    LOG.info("study %r: published; the charge is in %s", study.name, policy.ledger)
    return Answer("released", release=release.to_json())


def _sum(sitting: Sitting, step: Step, policy: Policy) -> Answer:
    """One round of a secure sum; its first needs what a release needs, and the third pays.

    A later visit needs the approval that the study has.
    """
    study = sitting.study
    if policy.asks_a_person(study) and (pending := _pending(study, policy)) is not None:
        return pending
    if policy.key is None:
        return _refuse(Reason.SITE, "a secure sum needs a key in the policy")
    ledger = Ledger(policy.ledger)
    paying = {"holder": policy.holder, "dataset": policy.dataset, "session": step.session}

    def pay_and_mask(seal: Seal) -> str:
        ledger.cap(policy.dataset, policy.most.epsilon_in_all, policy.most.delta_in_all)
        return publish_share(sitting, table_at(study, policy), seal, ledger=ledger, **paying)

    holder = Holder(
        name=policy.holder,
        key=policy.key,
        sitting=sitting,
        store=Folder(Path(policy.ledger).with_name("sums")),
        publish=pay_and_mask,
    )
    document = holder.answer(step)
    LOG.info(
        "study %r, visit %d: round %r of secure sum %s",
        study.name,
        sitting.number,
        step.round,
        step.session,
    )
    return Answer("released", release=document)


def _pending(study: Study, policy: Policy) -> Answer | None:
    """The answer as long as no person has approved."""
    decision = Requests(policy.requests).ask(study)
    if decision == "waiting":
        LOG.info("study %r waits for approval: `tacit federate approve` shows it", study.name)
        return Answer("waiting", Reason.WAITING)
    if decision is None:
        return Answer("waiting", Reason.CROWDED)
    return _refuse(Reason.DECLINED, f"study {study.name!r}") if decision == "refused" else None


def _refuse(reason: Reason, detail: object) -> Answer:
    LOG.warning("refused (%s): %s", reason.value, detail)
    return Answer("refused", reason)
