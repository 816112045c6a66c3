"""Streams in the ledger: one charge for a whole stream, and every batch once, published or lost.

A stream is known by its data set and study. Its terms (batch size, holder, budget, source) are fixed when it is charged, durably,
before the first noise is drawn; later runs go on under the same charge. A batch is stored with its release and with the place where
the source stands after it, in one step, before the release is logged: a number that is there is never published again.
"""

import os
import secrets
import sqlite3
from dataclasses import dataclass

from tacit.errors import LedgerError
from tacit.holder.ledger import Charge, Ledger, insert_charge
from tacit.privacy.sensitivity import Relation
from tacit.records import now


@dataclass(frozen=True)
class Terms:
    """What a stream keeps to from its first run to its last."""

    batch_rows: int
    batches_per_person: int
    source: str


@dataclass(frozen=True)
class Progress:
    """How far a stream is: `batches` numbered and `rows` counted so far, lost ones included, and where its source stands."""

    charge: int
    stream: str
    batches: int
    rows: int
    taken: int
    position: int | None


@dataclass(frozen=True)
class Batch:
    """A numbered batch: the rows that it spans, and its line of the log; None where it was lost."""

    number: int
    first_row: int
    last_row: int
    entry: str | None = None


def find_stream(ledger: Ledger, charge: Charge, terms: Terms) -> Progress | None:
    """The stream of a data set and study, if it was charged before; refuses to go on with it on other terms."""
    if not os.path.exists(ledger.path):  # noqa: PTH110  (pathlib raises where a folder may not be entered)
        return None
    with ledger.transaction() as database:
        found = database.execute(
            "SELECT charge.id, holder, epsilon, delta, batch_rows, batches_per_person, source FROM stream "
            "JOIN charge ON charge.id = stream.charge WHERE dataset = ? AND study_hash = ?",
            (charge.dataset, charge.study_hash),
        ).fetchone()
        if found is None:
            return None
        _refuse_other_terms(charge, terms, found[1:])
        return _progress(database, found[0])


def start_stream(ledger: Ledger, charge: Charge, relation: Relation, terms: Terms) -> Progress:
    """Charge a new stream, as one step with its terms."""
    with ledger.transaction() as database:
        number = insert_charge(database, charge, relation)
        fields = (
            number,
            secrets.token_hex(8),
            terms.batch_rows,
            terms.batches_per_person,
            terms.source,
        )
        database.execute(
            "INSERT INTO stream (charge, id, batch_rows, batches_per_person, source, taken) VALUES (?, ?, ?, ?, ?, 0)",
            fields,
        )
        return _progress(database, number)


def note_taken(ledger: Ledger, progress: Progress, taken: int) -> None:
    """Note durably, before they are used, how many rows were taken in all from a source that can be read only once."""
    with ledger.transaction(checked=False) as database:
        database.execute("UPDATE stream SET taken = ? WHERE charge = ?", (taken, progress.charge))


def record_batch(
    ledger: Ledger, progress: Progress, batch: Batch, position: int | None
) -> Progress:
    """Store a batch, published or lost, and where the source stands after it; refuses a number that is there already."""
    with ledger.transaction(checked=False) as database:
        if _progress(database, progress.charge).batches != batch.number - 1:
            raise LedgerError(
                f"batch {batch.number} of this stream is in the ledger already: another process publishes the same stream"
            )
        fields = (
            progress.charge,
            batch.number,
            batch.first_row,
            batch.last_row,
            now(),
            batch.entry,
        )
        database.execute(
            "INSERT INTO batch (charge, number, first_row, last_row, time, entry) VALUES (?, ?, ?, ?, ?, ?)",
            fields,
        )
        database.execute(
            "UPDATE stream SET position = ? WHERE charge = ?", (position, progress.charge)
        )
        return _progress(database, progress.charge)


def batches_of(ledger: Ledger, progress: Progress) -> list[Batch]:
    """Every batch of a stream in its order."""
    with ledger.transaction(checked=False) as database:
        found = database.execute(
            "SELECT number, first_row, last_row, entry FROM batch WHERE charge = ? ORDER BY number",
            (progress.charge,),
        )
        return [Batch(*fields) for fields in found]


def _progress(database: sqlite3.Connection, charge: int) -> Progress:
    stream, taken, position = database.execute(
        "SELECT id, taken, position FROM stream WHERE charge = ?", (charge,)
    ).fetchone()
    last = database.execute(
        "SELECT number, last_row FROM batch WHERE charge = ? ORDER BY number DESC LIMIT 1",
        (charge,),
    ).fetchone()
    batches, rows = last or (0, 0)
    return Progress(charge, stream, batches, rows, taken, position)


def _refuse_other_terms(charge: Charge, terms: Terms, stored: tuple[str | float, ...]) -> None:
    wanted = (
        charge.holder,
        charge.epsilon,
        charge.delta,
        terms.batch_rows,
        terms.batches_per_person,
        terms.source,
    )
    names = (
        "holder",
        "epsilon (for all batches of a person)",
        "delta",
        "batch rows",
        "batches per person",
        "source",
    )
    for name, given, fixed in zip(names, wanted, stored, strict=True):
        if given != fixed:
            raise LedgerError(
                f"{name}: data set {charge.dataset!r} has a stream of this study with {fixed!r}, not {given!r}: "
                "go on with that, or agree on another study for another stream"
            )
