"""Accounts in the ledger's file: a data set's limit and charges, and how both are written.

Every function here runs inside one of the ledger's transactions.
"""

import sqlite3
from dataclasses import dataclass

from tacit.errors import LedgerError
from tacit.holder.chain import Mark, next_head
from tacit.holder.ledger_file import CHAINED, last_head
from tacit.privacy import account as arithmetic
from tacit.privacy.sensitivity import Relation
from tacit.release.document import Receipt


@dataclass(frozen=True)
class Charge:
    """One entry: what was spent, for which study, and the release if it was made.

    A stream's has `batches` published so far. One that is about to be made has the study's
    `person`, which its data set keeps.
    """

    id: int
    dataset: str
    study: str
    study_hash: str
    holder: str
    epsilon: float
    delta: float
    mu: float
    time: str
    release: str | None
    batches: int | None = None
    person: str | None = None

    @property
    def is_used(self) -> bool:
        """Whether something left the house under it."""
        return self.release is not None or self.batches is not None


@dataclass(frozen=True)
class Account(arithmetic.Account):
    """State of one data set: its limit and all charges.

    Where all of them protect whole persons, `person` is the column that tells them apart.
    """

    dataset: str
    charges: tuple[Charge, ...]
    person: str | None = None


def write_charge(database: sqlite3.Connection, charge: Charge, relation: Relation) -> int:
    """Write a charge as the next link of the chain; returns its number."""
    database.execute(
        "UPDATE dataset SET relation = ?, person = CASE "
        "WHEN EXISTS (SELECT 1 FROM charge WHERE dataset = name) THEN person ELSE ? END "
        "WHERE name = ?",
        (relation, charge.person, charge.dataset),
    )
    fields = (
        charge.dataset,
        charge.study,
        charge.study_hash,
        charge.holder,
        charge.epsilon,
        charge.delta,
        charge.mu,
        charge.time,
    )
    head = next_head(last_head(database), fields)
    cursor = database.execute(
        f"INSERT INTO charge ({CHAINED}, release, head) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*fields, charge.release, head),
    )
    if cursor.lastrowid is None:
        raise LedgerError("the ledger did not number the charge")
    return cursor.lastrowid


def insert_limit(database: sqlite3.Connection, dataset: str, epsilon: float, delta: float) -> None:
    """Give a data set its first limit; one that it has already stays."""
    database.execute(
        "INSERT OR IGNORE INTO dataset (name, epsilon, delta) VALUES (?, ?, ?)",
        (dataset, epsilon, delta),
    )


def change_limit(database: sqlite3.Connection, dataset: str, epsilon: float, delta: float) -> None:
    """Give a data set another limit."""
    database.execute(
        "UPDATE dataset SET epsilon = ?, delta = ? WHERE name = ?", (epsilon, delta, dataset)
    )


def account_of(database: sqlite3.Connection, dataset: str) -> Account:
    """The account of a data set that the ledger knows."""
    relation, epsilon, delta, person = database.execute(
        "SELECT relation, epsilon, delta, person FROM dataset WHERE name = ?", (dataset,)
    ).fetchone()
    batches = (
        "(SELECT count(entry) FROM stream LEFT JOIN batch USING (charge) "
        "WHERE charge = charge.id GROUP BY stream.charge)"
    )
    rows = database.execute(
        f"SELECT id, {CHAINED}, release, {batches} FROM charge WHERE dataset = ? ORDER BY id",
        (dataset,),
    )
    charges = tuple(Charge(*fields) for fields in rows)
    return Account(
        epsilon=epsilon,
        delta=delta,
        mus=tuple(charge.mu for charge in charges),
        relation=relation,
        dataset=dataset,
        charges=charges,
        person=person,
    )


def receipt_of(database: sqlite3.Connection, number: int) -> Receipt:
    """What a release states of the charge that paid for it."""
    row = database.execute("SELECT head FROM charge WHERE id = ?", (number,)).fetchone()
    if row is None:
        raise LedgerError(f"the ledger has no charge {number}")
    return Receipt(charge=number, head=row[0])


def length(database: sqlite3.Connection) -> int:
    """How many charges there are."""
    (count,) = database.execute("SELECT count(*) FROM charge").fetchone()
    return int(count)


def reaches(database: sqlite3.Connection, known: Mark) -> bool:
    """Whether the chain passes through a mark that was made earlier."""
    if known.charges == 0:
        return True
    row = database.execute(
        "SELECT head FROM charge ORDER BY id LIMIT 1 OFFSET ?", (known.charges - 1,)
    ).fetchone()
    return row is not None and row[0] == known.head


def interrupted_charge(database: sqlite3.Connection, charge: Charge) -> int | None:
    """An earlier charge for just this whose release was never stored, and so never left.

    A stream's is none.
    """
    known = database.execute("SELECT 1 FROM dataset WHERE name = ?", (charge.dataset,)).fetchone()
    if known is None:
        return None
    account = account_of(database, charge.dataset)
    same = [each for each in account.charges if each.study_hash == charge.study_hash]
    if any(earlier.is_used for earlier in same):
        return None
    paid = (charge.holder, charge.epsilon, charge.delta, charge.mu)
    return next(
        (each.id for each in same if (each.holder, each.epsilon, each.delta, each.mu) == paid),
        None,
    )
