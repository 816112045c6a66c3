"""Stage: what is published of a table, charged before it exists."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from tacit.errors import TableError
from tacit.holder.account import Charge
from tacit.holder.charge import Purpose, paid, signer_of
from tacit.holder.encode import Diagnostics
from tacit.holder.ledger import Ledger
from tacit.holder.paying import Paying
from tacit.holder.rehearsal import Confirm, Rehearsal
from tacit.holder.rehearse import SEEN, opened, persons_of, refuse_seen, rehearsal_of
from tacit.holder.tally import Tally, total_of
from tacit.holder.watch import Watch
from tacit.release.document import Published, check_holder
from tacit.study import Study
from tacit.study.grid import GRID

Total = TypeVar("Total")
Document = TypeVar("Document", bound=Published)


class Stage(ABC, Generic[Total, Document]):
    """What is published of a table for a study: how rows add up, what it costs, what it becomes."""

    tally: Tally[Total]

    @abstractmethod
    def charge(self, study: Study, purpose: Purpose) -> Charge:
        """What publishing costs; a study that has no such stage is refused."""

    @abstractmethod
    def limit(self, study: Study) -> tuple[float, float] | None:
        """The limit, (ε, δ), that a data set without one gets; None: what is charged."""

    @abstractmethod
    def check(self, study: Study, total: Total) -> None:
        """Refuse a total that cannot be published."""

    @abstractmethod
    def blank(self, study: Study, purpose: Purpose) -> Document:
        """The document of no rows and no noise, which is thrown away.

        Whatever can fail in making one fails here, before anything is paid.
        """

    @abstractmethod
    def privatise(self, study: Study, total: Total, purpose: Purpose) -> Document:
        """The document, with its noise."""

    def publish(
        self,
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
        confirm: Confirm | None = None,
        on_rows: Callable[[int], None] = lambda _rows: None,
    ) -> Document:
        """Publish what this stage tells of a table, under the study's guarantee.

        The ledger is charged, durably, after the table was read and before any noise is drawn.
        `epsilon` and `delta` may be smaller than the study's. `key` is the path of a private key to
        sign with. `again` pays for the same study once more; `new_dataset` says that a name new to
        the ledger is of other persons. `confirm` is given the rehearsal of the very rows that were
        read, before anything is paid; it raises to stop.
        """
        sign = signer_of(key)
        check_holder(holder)
        purpose = Purpose(holder, dataset, epsilon, delta)
        charge = self.charge(study, purpose)
        sign(self.blank(study, purpose)).to_json()
        paying = Paying(
            ledger=Ledger.at(ledger),
            charge=charge,
            relation=study.relation,
            again=again,
            new_dataset=new_dataset,
            limit=self.limit(study),
        )
        if confirm is not None:
            diagnostics = diagnostics or Diagnostics()
            diagnostics.watch = Watch(study, GRID)
            table = opened(table, study)
        total = total_of(self.tally, study, table, diagnostics=diagnostics, on_rows=on_rows)
        if confirm is not None and diagnostics is not None:
            refuse_seen(study, diagnostics)
            confirm(rehearsal_of(study, table, paying, diagnostics))
        self.check(study, total)
        return paid(
            paying.ledger,
            charge,
            study.relation,
            lambda receipt: sign(self.privatise(study, total, purpose).paid_by(receipt)),
            lambda document: document.to_json(),
            again=again,
            new_dataset=new_dataset,
            limit=paying.limit,
        )

    def rehearse(
        self,
        study: Study,
        table: object,
        *,
        holder: str,
        ledger: Ledger | str | Path,
        dataset: str = "default",
        epsilon: float | None = None,
        delta: float | None = None,
        again: bool = False,
        new_dataset: bool = False,
        person: str | None = None,
        on_rows: Callable[[int], None] = lambda _rows: None,
    ) -> Rehearsal:
        """Everything that `publish` does but the charge and the noise.

        What comes back tells of single rows: it is for the holder's own eyes, and stays here.
        `person` is a column of the table that tells persons apart, to be told whether some have
        several rows; by default the study's, if it has one.
        """
        check_holder(holder)
        purpose = Purpose(holder, dataset, epsilon, delta)
        paying = Paying(
            ledger=Ledger.at(ledger),
            charge=self.charge(study, purpose),
            relation=study.relation,
            again=again,
            new_dataset=new_dataset,
            limit=self.limit(study),
        )
        self.blank(study, purpose).to_json()
        diagnostics = Diagnostics(watch=Watch(study, GRID))
        source = opened(table, study)
        total_of(SEEN, study, source, diagnostics=diagnostics, on_rows=on_rows)
        persons = persons_of(study, source, person)
        return rehearsal_of(study, source, paying, diagnostics, persons=persons)


def refuse_no_rows(study: Study, rows: int) -> None:
    """Refuse no rows, where their number is public: else a refusal would tell it."""
    if rows == 0 and study.count in {"exact", "public"}:
        raise TableError(
            "the table has no row: nothing was published or paid; check the files or the query"
        )
