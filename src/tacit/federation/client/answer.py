"""Answer: from a study that somebody asks for to a release, or to a reason without data.

The policy is heard first, then the ledger (what was published once is given again), then the data officer; only then are
rows read. Whatever goes wrong on the way becomes one of the agreed reasons, and its detail a line in the site's own log.
"""

import logging
from collections.abc import Iterator

import pyarrow as pa

from tacit.errors import BudgetError, LedgerError, StudyError, TableError, TacitError
from tacit.federation.client.policy import Policy
from tacit.federation.client.requests import Requests
from tacit.federation.wire import Answer, Reason
from tacit.holder.ledger import Ledger
from tacit.holder.publish import publish
from tacit.rows.table import Table, table_of
from tacit.study import Study

LOG = logging.getLogger("tacit.federation")


class TooFewRowsError(TableError):
    """The table has fewer rows than the policy asks for."""


def answer(text: str, policy: Policy) -> Answer:
    """What this site says to a study."""
    try:
        study = Study.from_toml(text)
    except StudyError as error:
        return _refuse(Reason.UNREADABLE, error)
    try:
        return _answer(study, policy)
    except TacitError as error:
        return _refuse(next(reason for kind, reason in _REASONS if isinstance(error, kind)), error)


_REASONS: tuple[tuple[type[TacitError], Reason], ...] = (
    (TooFewRowsError, Reason.ROWS),
    (TableError, Reason.TABLE),
    (BudgetError, Reason.BUDGET),
    (LedgerError, Reason.LEDGER),
    (TacitError, Reason.SITE),
)


def _answer(study: Study, policy: Policy) -> Answer:
    if objection := policy.objection(study):
        return _refuse(objection, f"study {study.name!r} ({study.hash})")
    ledger = Ledger(policy.ledger)
    if (stored := ledger.released(policy.dataset, study.hash)) is not None:
        LOG.info("study %r: the release that was published before is given again, at no cost", study.name)
        return Answer("released", release=stored)
    if policy.approval and (pending := _pending(study, policy)) is not None:
        return pending
    ledger.cap(policy.dataset, policy.most.epsilon_in_all, policy.most.delta_in_all)
    table = _counted(table_of(list(policy.data), study), policy.least_rows)
    release = publish(study, table, holder=policy.holder, ledger=ledger, dataset=policy.dataset, key=policy.key)
    LOG.info("study %r: published; the charge is in %s", study.name, policy.ledger)
    return Answer("released", release=release.to_json())


def _pending(study: Study, policy: Policy) -> Answer | None:
    """The answer as long as no person has approved."""
    decision = Requests(policy.requests).ask(study)
    if decision == "waiting":
        LOG.info("study %r waits for approval: `tacit federate approve` shows it", study.name)
        return Answer("waiting", Reason.WAITING)
    if decision is None:
        return Answer("waiting", Reason.CROWDED)
    return _refuse(Reason.DECLINED, f"study {study.name!r}") if decision == "refused" else None


def _counted(table: Table, least: int) -> Table:
    """The same table, which is refused at its end, before anything is paid, where it has too few rows."""

    def batches() -> Iterator[pa.RecordBatch]:
        rows = 0
        for batch in table.batches():
            rows += batch.num_rows
            yield batch
        if rows < least:
            message = f"the table has fewer rows than least_rows = {least} of the policy"
            raise TooFewRowsError(message)

    return Table(batches, table.rows)


def _refuse(reason: Reason, detail: object) -> Answer:
    LOG.warning("refused (%s): %s", reason.value, detail)
    return Answer("refused", reason)
