"""Ledger: the holder's own durable record of what was spent on which data set.

A charge is committed to disk before any noise is drawn, so a crash never overspends the budget; the release is stored
beside its charge before it is handed out, so it can be exported again for free. A charge without a release therefore
means that nothing left the house: publishing the study once more finishes it, at no further cost. SQLite's locks make
the check and the charge one step, however many processes publish at once.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import BudgetError, LedgerError
from tacit.privacy.gaussian import DELTA_RANGE, EPSILON_RANGE, compose, epsilon_of, mu_of, remaining
from tacit.privacy.sensitivity import Relation

_APPLICATION = 0x7AC17
_SCHEMA = """
CREATE TABLE dataset (
    name TEXT PRIMARY KEY,
    relation TEXT,
    epsilon REAL NOT NULL,
    delta REAL NOT NULL
) STRICT;
CREATE TABLE charge (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    dataset TEXT NOT NULL REFERENCES dataset (name),
    study TEXT NOT NULL,
    study_hash TEXT NOT NULL,
    holder TEXT NOT NULL,
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    mu REAL NOT NULL,
    time TEXT NOT NULL,
    release TEXT
) STRICT;
"""
_STREAMS = """
CREATE TABLE IF NOT EXISTS stream (
    charge INTEGER PRIMARY KEY REFERENCES charge (id),
    id TEXT NOT NULL UNIQUE,
    batch_rows INTEGER NOT NULL,
    batches_per_person INTEGER NOT NULL,
    source TEXT NOT NULL,
    taken INTEGER NOT NULL,
    position INTEGER
) STRICT;
CREATE TABLE IF NOT EXISTS batch (
    charge INTEGER NOT NULL REFERENCES stream (charge),
    number INTEGER NOT NULL,
    first_row INTEGER NOT NULL,
    last_row INTEGER NOT NULL,
    time TEXT NOT NULL,
    entry TEXT,
    PRIMARY KEY (charge, number)
) STRICT;
"""
"""Added to a ledger of any age when it is opened: one charge pays for a whole stream, and each batch is there once."""


@dataclass(frozen=True)
class Charge:
    """One entry: what was spent, for which study, and the release if it was made; a stream's has `batches` published so far."""

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


@dataclass(frozen=True)
class Account:
    """State of one data set: its limit and all charges, composed exactly."""

    dataset: str
    relation: Relation | None
    epsilon: float
    delta: float
    charges: tuple[Charge, ...]

    @property
    def limit(self) -> float:
        """The limit as μ."""
        return mu_of(self.epsilon, self.delta)

    @property
    def spent(self) -> float:
        """All charges as one μ."""
        return compose(charge.mu for charge in self.charges)

    @property
    def epsilon_spent(self) -> float:
        """ε of all charges together, at the limit's δ."""
        return epsilon_of(self.spent, self.delta) if self.charges else 0.0

    @property
    def epsilon_left(self) -> float:
        """ε of the largest release that still fits, at the limit's δ."""
        left = remaining(self.limit, self.spent)
        return min(epsilon_of(left, self.delta), self.epsilon) if left > 0 else 0.0

    def admits(self, mu: float) -> bool:
        """Whether one more charge stays within the limit."""
        return compose([*(charge.mu for charge in self.charges), mu]) <= self.limit


def default_path() -> Path:
    """Where a holder's ledger is unless said otherwise: one place per user, so that budgets are not split by folder."""
    if path := os.environ.get("TACIT_LEDGER"):
        return Path(path)
    return (
        Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")
        / "tacit"
        / "ledger.db"
    )


class Ledger:
    """A ledger file, made on first use."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def at(cls, place: "Ledger | str | Path") -> "Ledger":
        """The ledger itself, or the one in that file."""
        return place if isinstance(place, Ledger) else cls(place)

    def set_limit(self, dataset: str, epsilon: float, delta: float) -> Account:
        """Fix the most that may ever be spent on a data set; refuses a limit below what is spent already."""
        if not (
            EPSILON_RANGE[0] <= epsilon <= EPSILON_RANGE[1]
            and DELTA_RANGE[0] <= delta <= DELTA_RANGE[1]
        ):
            raise LedgerError(
                f"a limit needs epsilon in {EPSILON_RANGE} and delta in {DELTA_RANGE}"
            )
        with self.transaction() as database:
            _insert_limit(database, dataset, epsilon, delta)
            database.execute(
                "UPDATE dataset SET epsilon = ?, delta = ? WHERE name = ?",
                (epsilon, delta, dataset),
            )
            account = _account(database, dataset)
            if account.spent > account.limit:
                raise LedgerError(
                    f"data set {dataset!r} has already spent epsilon = {account.epsilon_spent:.6g} at delta = {delta:g}: "
                    "the limit cannot be lower"
                )
        return account

    def charge(
        self,
        charge: Charge,
        relation: Relation,
        *,
        again: bool = False,
        limit: tuple[float, float] | None = None,
    ) -> int:
        """Write a charge durably, if the limit admits it, and return its number.

        A data set with no limit yet gets `limit` as its own, or else the first charge's (ε, δ). The same study is not published
        twice from a data set unless `again` says that a second, separately paid release is wanted. A charge for the same that
        was interrupted before its release was stored is finished instead: its number is returned.
        """
        with self.transaction() as database:
            _insert_limit(database, charge.dataset, *(limit or (charge.epsilon, charge.delta)))
            interrupted = (
                None if again else _interrupted(_account(database, charge.dataset), charge)
            )
            return (
                insert_charge(database, charge, relation, again=again, limit=limit)
                if interrupted is None
                else interrupted
            )

    def record(self, number: int, release: str) -> None:
        """Store the release that a charge paid for, once."""
        with self.transaction() as database:
            cursor = database.execute(
                "UPDATE charge SET release = ? WHERE id = ? AND release IS NULL", (release, number)
            )
            if cursor.rowcount != 1:
                raise LedgerError(f"the ledger has no charge {number} that waits for its release")

    def accounts(self) -> list[Account]:
        """Every data set with its charges."""
        if not os.path.exists(self.path):  # noqa: PTH110  (pathlib raises where a folder may not be entered)
            raise LedgerError(
                f"there is no ledger at {str(self.path)!r}: publishing or `tacit ledger limit` makes one"
            )
        with self.transaction() as database:
            return [
                _account(database, name)
                for (name,) in database.execute("SELECT name FROM dataset ORDER BY name").fetchall()
            ]

    def cap(self, dataset: str, epsilon: float, delta: float) -> None:
        """Lower a data set's limit to this where it is higher; a limit that is lower stays as it is."""
        with self.transaction() as database:
            _insert_limit(database, dataset, epsilon, delta)
            if _account(database, dataset).limit > mu_of(epsilon, delta):
                database.execute(
                    "UPDATE dataset SET epsilon = ?, delta = ? WHERE name = ?",
                    (epsilon, delta, dataset),
                )

    def released(self, dataset: str, study_hash: str) -> str | None:
        """The latest release of a study from a data set, if there is one."""
        if not os.path.exists(self.path):  # noqa: PTH110  (pathlib raises where a folder may not be entered)
            return None
        found = [
            charge
            for account in self.accounts()
            if account.dataset == dataset
            for charge in account.charges
        ]
        return next(
            (
                charge.release
                for charge in reversed(found)
                if charge.study_hash == study_hash and charge.release
            ),
            None,
        )

    def release(self, number: int) -> str:
        """The stored release of a charge, or the log of a stream's, to hand out again at no cost."""
        for account in self.accounts():
            for charge in account.charges:
                if charge.id == number:
                    if charge.batches is not None:
                        return "".join(self.entries(number))
                    if charge.release is None:
                        raise LedgerError(
                            f"charge {number} has no release: publishing was interrupted after it was paid; "
                            "publish the study again, which finishes it at no further cost"
                        )
                    return charge.release
        raise LedgerError(f"the ledger has no charge {number}: `tacit ledger show` lists them")

    def entries(self, number: int) -> list[str]:
        """The log of the stream that a charge paid for, line by line."""
        with self.transaction(checked=False) as database:
            found = database.execute(
                "SELECT entry FROM batch WHERE charge = ? AND entry IS NOT NULL ORDER BY number",
                (number,),
            )
            return [entry for (entry,) in found]

    @contextmanager
    def transaction(self, *, checked: bool = True) -> Iterator[sqlite3.Connection]:
        """One serialised step: all of it is on disk when the block ends, or none.

        The whole file is checked for damage first; a run that takes many steps checks it at its first one alone.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=120, isolation_level=None)) as database:
                database.execute("PRAGMA synchronous = EXTRA")
                database.execute("BEGIN IMMEDIATE")
                try:
                    _open_schema(database, self.path, checked=checked)
                    yield database
                    database.execute("COMMIT")
                except BaseException:
                    if database.in_transaction:
                        database.execute("ROLLBACK")
                    raise
        except (sqlite3.Error, OSError, ValueError) as error:
            reason = "".join(
                letter if letter.isprintable() else " " for letter in str(error)[:200]
            )  # SQLite quotes what is damaged
            raise LedgerError(f"the ledger {str(self.path)!r} cannot be used: {reason}") from None


def _open_schema(database: sqlite3.Connection, path: Path, *, checked: bool) -> None:
    (application,) = database.execute("PRAGMA application_id").fetchone()
    if application == _APPLICATION:
        if checked and database.execute("PRAGMA integrity_check").fetchone() != ("ok",):
            raise LedgerError(
                f"the ledger {str(path)!r} is damaged, so what was spent is not certain: restore it from a backup"
            )
        _make(database, _STREAMS)
        return
    if (
        database.execute("SELECT count(*) FROM sqlite_schema").fetchone() != (0,)
        or application != 0
    ):
        raise LedgerError(f"{str(path)!r} is a database, but not a Tacit ledger")
    _make(database, _SCHEMA + _STREAMS)
    database.execute(f"PRAGMA application_id = {_APPLICATION}")


def _make(database: sqlite3.Connection, tables: str) -> None:
    for statement in tables.split(";")[:-1]:
        database.execute(statement)


def insert_charge(
    database: sqlite3.Connection,
    charge: Charge,
    relation: Relation,
    *,
    again: bool = False,
    limit: tuple[float, float] | None = None,
) -> int:
    """Check a charge against the limit and write it, inside a transaction; returns its number."""
    _insert_limit(database, charge.dataset, *(limit or (charge.epsilon, charge.delta)))
    account = _account(database, charge.dataset)
    _refuse_mixed(account, relation)
    if not again:
        _refuse_repeated(account, charge.study_hash)
    if not account.admits(charge.mu):
        raise BudgetError(_too_much(account, charge))
    database.execute("UPDATE dataset SET relation = ? WHERE name = ?", (relation, charge.dataset))
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
    cursor = database.execute(
        "INSERT INTO charge (dataset, study, study_hash, holder, epsilon, delta, mu, time) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        fields,
    )
    if cursor.lastrowid is None:
        raise LedgerError("the ledger did not number the charge")
    return cursor.lastrowid


def _insert_limit(database: sqlite3.Connection, dataset: str, epsilon: float, delta: float) -> None:
    database.execute(
        "INSERT OR IGNORE INTO dataset (name, epsilon, delta) VALUES (?, ?, ?)",
        (dataset, epsilon, delta),
    )


def _account(database: sqlite3.Connection, dataset: str) -> Account:
    name, relation, epsilon, delta = database.execute(
        "SELECT name, relation, epsilon, delta FROM dataset WHERE name = ?", (dataset,)
    ).fetchone()
    batches = "(SELECT count(entry) FROM stream LEFT JOIN batch USING (charge) WHERE charge = charge.id GROUP BY stream.charge)"
    rows = database.execute(
        f"SELECT id, dataset, study, study_hash, holder, epsilon, delta, mu, time, release, {batches} "
        "FROM charge WHERE dataset = ? ORDER BY id",
        (dataset,),
    )
    return Account(name, relation, epsilon, delta, tuple(Charge(*fields) for fields in rows))


def _refuse_mixed(account: Account, relation: Relation) -> None:
    if account.relation not in (None, relation):
        raise LedgerError(
            f"data set {account.dataset!r} was charged under {account.relation}: {relation} cannot be added up with it"
        )


def _refuse_repeated(account: Account, study_hash: str) -> None:
    for charge in account.charges:
        if charge.study_hash == study_hash and (
            charge.release is not None or charge.batches is not None
        ):
            raise LedgerError(
                f"this study was published from data set {account.dataset!r} already, as charge {charge.id}: "
                f"`tacit ledger export {charge.id}` gives that release again for free, and `again` pays for a new one"
            )


def _interrupted(account: Account, charge: Charge) -> int | None:
    """An earlier charge for just this whose release was never stored, and so never left; a stream's is no such charge."""
    same = [earlier for earlier in account.charges if earlier.study_hash == charge.study_hash]
    if any(earlier.release is not None or earlier.batches is not None for earlier in same):
        return None
    paid = (charge.holder, charge.epsilon, charge.delta, charge.mu)
    return next(
        (
            earlier.id
            for earlier in same
            if (earlier.holder, earlier.epsilon, earlier.delta, earlier.mu) == paid
        ),
        None,
    )


def _too_much(account: Account, charge: Charge) -> str:
    return (
        f"publishing needs epsilon = {charge.epsilon:g} at delta = {charge.delta:g}, but data set {account.dataset!r} has "
        f"epsilon = {account.epsilon_left:.4g} at delta = {account.delta:g} left of its limit {account.epsilon:g}: "
        "nothing was published; lower --epsilon, or raise the limit with `tacit ledger limit`"
    )
