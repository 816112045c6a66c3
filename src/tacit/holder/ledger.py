"""Ledger: the holder's own durable record of what was spent on which data set.

A charge is committed to disk before any noise is drawn, so a crash never overspends the budget;
the release is stored beside its charge before it is handed out, so it can be exported again for
free. A charge without a release therefore means that nothing left the house: publishing the study
once more finishes it, at no further cost. SQLite's locks make the check and the charge one step,
however many processes publish at once. Charges are a hash chain (chain.py), so a ledger that was
changed or put back from an older copy is noticed.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from tacit.errors import LedgerError
from tacit.holder import refusals
from tacit.holder.account import (
    Account,
    Charge,
    account_of,
    change_limit,
    insert_limit,
    interrupted_charge,
    length,
    reaches,
    receipt_of,
    write_charge,
)
from tacit.holder.chain import Mark, Witness
from tacit.holder.ledger_file import canonical_name, last_head, mark_of, open_tables
from tacit.privacy import account as arithmetic
from tacit.privacy.gaussian import DELTA_RANGE, EPSILON_RANGE, mu_of
from tacit.privacy.sensitivity import Relation
from tacit.release.document import Receipt


def default_path() -> Path:
    """One ledger per user unless said otherwise, so that budgets are not split by folder."""
    if path := os.environ.get("TACIT_LEDGER"):
        return Path(path)
    home = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")
    return home / "tacit" / "ledger.db"


class _Undone(Exception):  # noqa: N818 - no error: it ends a transaction that is not wanted
    """What was done in a transaction is not to be kept."""


class Ledger:
    """A ledger file, made on first use."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def at(cls, place: "Ledger | str | Path") -> "Ledger":
        """The ledger itself, or the one in that file."""
        return place if isinstance(place, Ledger) else cls(place)

    # Limits.

    def set_limit(self, dataset: str, epsilon: float, delta: float) -> Account:
        """Fix the most that may ever be spent on a data set.

        Refuses a limit below what is spent already.
        """
        if not arithmetic.is_limit(epsilon, delta):
            raise LedgerError(
                f"a limit needs epsilon in {EPSILON_RANGE} and delta in {DELTA_RANGE}"
            )
        dataset = canonical_name(dataset)
        with self.transaction() as database:
            insert_limit(database, dataset, epsilon, delta)
            change_limit(database, dataset, epsilon, delta)
            account = account_of(database, dataset)
            if account.spent > account.limit:
                raise LedgerError(
                    f"data set {dataset!r} has already spent epsilon = {account.epsilon_spent:.6g} "
                    f"at delta = {delta:g}: the limit cannot be lower"
                )
        return account

    def cap(self, dataset: str, epsilon: float, delta: float) -> None:
        """Lower a data set's limit to this where it is higher.

        A limit that is lower stays as it is.
        """
        dataset = canonical_name(dataset)
        with self.transaction() as database:
            insert_limit(database, dataset, epsilon, delta)
            if account_of(database, dataset).limit > mu_of(epsilon, delta):
                change_limit(database, dataset, epsilon, delta)

    # Charges.

    def pay(
        self,
        charge: Charge,
        relation: Relation,
        *,
        again: bool = False,
        new_dataset: bool = False,
        limit: tuple[float, float] | None = None,
    ) -> Receipt:
        """Write a charge durably, if the limit admits it, and give its receipt.

        A data set with no limit yet gets `limit` as its own, or else the first charge's (ε, δ). A
        name that the ledger does not know yet, beside others, must be said to be a `new_dataset`.
        The same study is not published twice from a data set unless `again` says that a second,
        separately paid release is wanted. A charge for the same that was interrupted before its
        release was stored is finished instead: its receipt is given.
        """
        charge = replace(charge, dataset=canonical_name(charge.dataset))
        with self.charging() as database:
            number = None if again else interrupted_charge(database, charge)
            if number is None:
                number = insert_charge(
                    database, charge, relation, again=again, new_dataset=new_dataset, limit=limit
                )
            return receipt_of(database, number)

    def trial(
        self,
        charge: Charge,
        relation: Relation,
        *,
        again: bool = False,
        new_dataset: bool = False,
        limit: tuple[float, float] | None = None,
    ) -> Account:
        """The account as it would be after `pay`, which it refuses as that would; nothing is kept.

        A ledger that is not there yet is not made.
        """
        charge = replace(charge, dataset=canonical_name(charge.dataset))
        place = self if self.exists() else Ledger(":memory:")
        with suppress(_Undone), place.transaction() as database:
            if again or interrupted_charge(database, charge) is None:
                insert_charge(
                    database, charge, relation, again=again, new_dataset=new_dataset, limit=limit
                )
            account = account_of(database, charge.dataset)
            raise _Undone
        return account

    def record(self, number: int, release: str) -> None:
        """Store the release that a charge paid for, once."""
        with self.transaction() as database:
            cursor = database.execute(
                "UPDATE charge SET release = ? WHERE id = ? AND release IS NULL", (release, number)
            )
            if cursor.rowcount != 1:
                raise LedgerError(f"the ledger has no charge {number} that waits for its release")

    def receipt(self, number: int) -> Receipt:
        """What a release states of the charge that paid for it."""
        with self.transaction(checked=False) as database:
            return receipt_of(database, number)

    def mend(
        self, charges: Sequence[Charge], relation: Relation, *, accept_loss: bool = False
    ) -> Mark:
        """Enter charges that a ledger put back from an older copy lacks, and go on from there.

        What is still missing then is refused unless `accept_loss`: nobody knows what it spent.
        """
        with self.transaction() as database:
            for charge in charges:
                named = replace(charge, dataset=canonical_name(charge.dataset))
                insert_limit(database, named.dataset, named.epsilon, named.delta)
                _refuse_mixed(account_of(database, named.dataset), relation)
                write_charge(database, named, relation)
            mark = mark_of(database, self.path)
            witness = Witness(self.path)
            known = witness.read()
            if known is not None and known.charges > mark.charges and not accept_loss:
                raise LedgerError(refusals.still_missing(self.path, known.charges - mark.charges))
        witness.replace(mark)
        return mark

    # Reading.

    def accounts(self) -> list[Account]:
        """Every data set with its charges."""
        if not self.exists():
            raise LedgerError(
                f"there is no ledger at {str(self.path)!r}: "
                "publishing or `tacit ledger limit` makes one"
            )
        with self.transaction() as database:
            names = database.execute("SELECT name FROM dataset ORDER BY name").fetchall()
            return [account_of(database, name) for (name,) in names]

    def paying(self, dataset: str | None) -> str:
        """The data set that pays: the one named, else the only one there is, else `default`."""
        if dataset is not None:
            return canonical_name(dataset)
        names = self.datasets()
        return names[0] if len(names) == 1 else "default"

    def datasets(self) -> list[str]:
        """Names of the data sets that have a limit or a charge."""
        return [account.dataset for account in self.accounts()] if self.exists() else []

    def exists(self) -> bool:
        """Whether the file is there."""
        return os.path.exists(self.path)  # noqa: PTH110  (pathlib raises where a folder is closed)

    def released(self, dataset: str, study_hash: str) -> str | None:
        """The latest release of a study from a data set, if there is one."""
        if not self.exists():
            return None
        dataset = canonical_name(dataset)
        texts = [
            charge.release
            for account in self.accounts()
            if account.dataset == dataset
            for charge in account.charges
            if charge.study_hash == study_hash and charge.release
        ]
        return texts[-1] if texts else None

    def release(self, number: int) -> str:
        """The stored release of a charge, or a stream's log, to hand out again at no cost."""
        every = (charge for account in self.accounts() for charge in account.charges)
        charge = next((charge for charge in every if charge.id == number), None)
        if charge is None:
            raise LedgerError(f"the ledger has no charge {number}: `tacit ledger show` lists them")
        if charge.batches is not None:
            return "".join(self.entries(number))
        if charge.release is None:
            raise LedgerError(
                f"charge {number} has no release: publishing was interrupted after it was paid; "
                "publish the study again, which finishes it at no further cost"
            )
        return charge.release

    def entries(self, number: int) -> list[str]:
        """The log of the stream that a charge paid for, line by line."""
        with self.transaction(checked=False) as database:
            rows = database.execute(
                "SELECT entry FROM batch WHERE charge = ? AND entry IS NOT NULL ORDER BY number",
                (number,),
            )
            return [entry for (entry,) in rows]

    # Steps.

    @contextmanager
    def transaction(self, *, checked: bool = True) -> Iterator[sqlite3.Connection]:
        """One serialised step: all of it is on disk when the block ends, or none.

        The whole file is checked for damage first; a run that takes many steps checks it at its
        first one alone.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=120, isolation_level=None)) as database:
                database.execute("PRAGMA synchronous = EXTRA")
                database.execute("BEGIN IMMEDIATE")
                try:
                    open_tables(database, self.path, checked=checked)
                    yield database
                    database.execute("COMMIT")
                except BaseException:
                    if database.in_transaction:
                        database.execute("ROLLBACK")
                    raise
        except (sqlite3.Error, OSError, ValueError) as error:
            raise LedgerError(refusals.unusable(self.path, error)) from None

    @contextmanager
    def charging(self) -> Iterator[sqlite3.Connection]:
        """A transaction that may add a charge.

        A ledger that is older than its witness is refused; afterwards the witness knows of the
        charge.
        """
        witness = Witness(self.path)
        with self.transaction() as database:
            known = witness.read()
            if known is not None and not reaches(database, known):
                raise LedgerError(refusals.older_copy(self.path))
            yield database
            mark = Mark(charges=length(database), head=last_head(database))
        witness.write(mark)


def insert_charge(
    database: sqlite3.Connection,
    charge: Charge,
    relation: Relation,
    *,
    again: bool = False,
    new_dataset: bool = False,
    limit: tuple[float, float] | None = None,
) -> int:
    """Check a charge against the limit and write it, inside a transaction; returns its number."""
    if not new_dataset:
        _refuse_other_name(database, charge)
    insert_limit(database, charge.dataset, *(limit or (charge.epsilon, charge.delta)))
    account = account_of(database, charge.dataset)
    _refuse_mixed(account, relation)
    _refuse_rows(account, charge)
    if not again:
        _refuse_repeated(account, charge.study_hash)
    if not account.admits(charge.mu):
        raise refusals.too_much(account, charge.epsilon, charge.delta)
    return write_charge(database, charge, relation)


def _refuse_other_name(database: sqlite3.Connection, charge: Charge) -> None:
    """Refuse a second name for what may be the same persons."""
    rows = database.execute("SELECT name FROM dataset ORDER BY name").fetchall()
    names = [name for (name,) in rows]
    if names and charge.dataset not in names:
        raise refusals.unknown_dataset(charge.dataset, names)
    other = database.execute(
        "SELECT dataset FROM charge WHERE study_hash = ? AND holder = ? AND dataset <> ?",
        (charge.study_hash, charge.holder, charge.dataset),
    ).fetchone()
    if other is not None:
        raise refusals.other_dataset(charge.dataset, other[0])


def _refuse_mixed(account: Account, relation: Relation) -> None:
    if account.mixes(relation):
        raise LedgerError(
            f"data set {account.dataset!r} was charged under {account.relation}: "
            f"{relation} cannot be added up with it"
        )


def _refuse_rows(account: Account, charge: Charge) -> None:
    """Refuse a promise for rows where all before were for persons: it would cover less."""
    if account.person is not None and charge.person is None:
        raise LedgerError(
            f"data set {account.dataset!r} is of persons, by {account.person!r}, and a study "
            "without a person protects single rows of theirs: nothing was paid; agree on "
            f'person = "{account.person}" in the study'
        )


def _refuse_repeated(account: Account, study_hash: str) -> None:
    for charge in account.charges:
        if charge.study_hash == study_hash and charge.is_used:
            raise refusals.repeated(account.dataset, charge.id)
