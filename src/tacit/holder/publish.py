"""Publish: from a table to a release, charged before it exists."""

from collections.abc import Callable
from pathlib import Path

from tacit.errors import TableError
from tacit.holder.charge import Purpose, charge_of, paid, refuse_sum, refuse_two_stages, signer_of
from tacit.holder.encode import Diagnostics
from tacit.holder.ledger import Ledger
from tacit.holder.perturb import privatise, refuse_unpublishable
from tacit.holder.statistics import STATISTICS, Statistics
from tacit.holder.tally import total_of
from tacit.release import Release
from tacit.release.document import check_holder
from tacit.study import Study


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
    new_dataset: bool = False,
    diagnostics: Diagnostics | None = None,
    on_rows: Callable[[int], None] = lambda _rows: None,
) -> Release:
    """Publish a table's statistics under the study's guarantee.

    The ledger is charged, durably, after the table was read and before any noise is drawn. `epsilon` and `delta`
    may be smaller than the study's. `key` is the path of a private key to sign with. `again` pays for the same
    study once more; `new_dataset` says that a name new to the ledger is of other persons.
    """
    refuse_two_stages(study)
    refuse_sum(study)
    sign = signer_of(key)
    check_holder(holder)
    purpose = Purpose(holder, dataset, epsilon, delta)
    charge = charge_of(study, purpose, study.mechanism(epsilon, delta))
    statistics = total_of(STATISTICS, study, table, diagnostics=diagnostics, on_rows=on_rows)
    _refuse_empty(study, statistics)
    refuse_unpublishable(study, statistics)
    return paid(
        Ledger.at(ledger),
        charge,
        study.relation,
        lambda receipt: sign(privatise(study, statistics, purpose).paid_by(receipt)),
        Release.to_json,
        again=again,
        new_dataset=new_dataset,
    )


def _refuse_empty(study: Study, statistics: Statistics) -> None:
    """Only where the number of rows is public: else a refusal would tell it."""
    if statistics.n == 0 and study.count in {"exact", "public"}:
        raise TableError(
            "the table has no row: nothing was published or paid; check the files or the query"
        )
