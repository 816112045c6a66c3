"""Streams in the ledger: one charge for a whole stream, and every batch once, published or lost.

A stream is known by its data set and study. Its terms (batch size, holder, budget, source) are
fixed when it is charged, durably, before the first noise is drawn; later runs go on under the same
charge. A batch is stored with its release and with the place where the source stands after it, in
one step, before the release is logged: a number that is there is never published again.
"""

import secrets
import sqlite3
from dataclasses import dataclass

from tacit.errors import LedgerError
from tacit.holder.account import Charge
from tacit.holder.ledger import Ledger, insert_charge
from tacit.privacy.sensitivity import Relation
from tacit.records import now
from tacit.rows.arriving import Place


@dataclass(frozen=True)
class Terms:
    """What a stream keeps to from its first run to its last."""

    batch_rows: int
    batches_per_person: int
    source: str


@dataclass(frozen=True)
class Progress:
    """How far a stream is, lost batches included.

    `batches` are numbered and `rows` counted so far; `place` is where its source stands, where it
    can be read again.
    """

    charge: int
    stream: str
    batches: int
    rows: int
    taken: int
    place: Place | None


@dataclass(frozen=True)
class Batch:
    """A numbered batch: the rows that it spans, and its line of the log; None where it was lost."""

    number: int
    first_row: int
    last_row: int
    entry: str | None = None


def find_stream(ledger: Ledger, charge: Charge, terms: Terms) -> Progress | None:
    """The stream of a data set and study, if it was charged before.

    Refuses to go on with it on other terms.
    """
    if not ledger.exists():
        return None
    with ledger.transaction() as database:
        stored = database.execute(
            "SELECT charge.id, holder, epsilon, delta, batch_rows, batches_per_person, source "
            "FROM stream JOIN charge ON charge.id = stream.charge "
            "WHERE dataset = ? AND study_hash = ?",
            (charge.dataset, charge.study_hash),
        ).fetchone()
        if stored is None:
            return None
        _refuse_other_terms(charge, terms, stored[1:])
        return _progress(database, stored[0])


def start_stream(
    ledger: Ledger, charge: Charge, relation: Relation, terms: Terms, *, new_dataset: bool = False
) -> Progress:
    """Charge a new stream, as one step with its terms."""
    with ledger.charging() as database:
        number = insert_charge(database, charge, relation, new_dataset=new_dataset)
        database.execute(
            "INSERT INTO stream (charge, id, batch_rows, batches_per_person, source, taken) "
            "VALUES (?, ?, ?, ?, ?, 0)",
            (
                number,
                secrets.token_hex(8),
                terms.batch_rows,
                terms.batches_per_person,
                terms.source,
            ),
        )
        return _progress(database, number)


def note_taken(ledger: Ledger, progress: Progress, taken: int) -> None:
    """Note durably, before they are used, how many rows a source read only once has given."""
    with ledger.transaction(checked=False) as database:
        database.execute("UPDATE stream SET taken = ? WHERE charge = ?", (taken, progress.charge))


def record_batch(ledger: Ledger, progress: Progress, batch: Batch, place: Place | None) -> Progress:
    """Store a batch, published or lost, and where the source stands after it.

    A number that is there already is refused.
    """
    with ledger.transaction(checked=False) as database:
        if _progress(database, progress.charge).batches != batch.number - 1:
            raise LedgerError(
                f"batch {batch.number} of this stream is in the ledger already: "
                "another process publishes the same stream"
            )
        database.execute(
            "INSERT INTO batch (charge, number, first_row, last_row, time, entry) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (
                progress.charge,
                batch.number,
                batch.first_row,
                batch.last_row,
                now(),
                batch.entry,
            ),
        )
        position, digest = (None, None) if place is None else (place.position, place.digest)
        database.execute(
            "UPDATE stream SET position = ?, digest = ? WHERE charge = ?",
            (position, digest, progress.charge),
        )
        return _progress(database, progress.charge)


def batches_of(ledger: Ledger, progress: Progress) -> list[Batch]:
    """Every batch of a stream in its order."""
    with ledger.transaction(checked=False) as database:
        rows = database.execute(
            "SELECT number, first_row, last_row, entry FROM batch WHERE charge = ? ORDER BY number",
            (progress.charge,),
        )
        return [Batch(*fields) for fields in rows]


def _progress(database: sqlite3.Connection, charge: int) -> Progress:
    stream, taken, position, digest = database.execute(
        "SELECT id, taken, position, digest FROM stream WHERE charge = ?", (charge,)
    ).fetchone()
    last = database.execute(
        "SELECT number, last_row FROM batch WHERE charge = ? ORDER BY number DESC LIMIT 1",
        (charge,),
    ).fetchone()
    batches, rows = last or (0, 0)
    return Progress(
        charge=charge,
        stream=stream,
        batches=batches,
        rows=rows,
        taken=taken,
        place=None if position is None else Place(position, digest),
    )


def _refuse_other_terms(charge: Charge, terms: Terms, stored: tuple[str | float, ...]) -> None:
    wanted = {
        "holder": charge.holder,
        "epsilon (for all batches of a person)": charge.epsilon,
        "delta": charge.delta,
        "batch rows": terms.batch_rows,
        "batches per person": terms.batches_per_person,
        "source": terms.source,
    }
    for (name, given), fixed in zip(wanted.items(), stored, strict=True):
        if given != fixed:
            raise LedgerError(
                f"{name}: data set {charge.dataset!r} has a stream of this study with {fixed!r}, "
                f"not {given!r}: go on with that, or agree on another study for another stream"
            )
