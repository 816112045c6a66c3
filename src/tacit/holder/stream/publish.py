"""Stream: rows arrive, each full batch is published like a table, and its rows are forgotten.

Rows are added up as they come, so that between two of them only the partial batch's statistics are
held. Batches are disjoint: where each person's rows are in one batch only, the whole stream has the
guarantee of one release (docs/privacy.md, "Streams"), and the ledger is charged once. Where a
person may be in k batches, it is charged √k times the μ.

Order: first row → charge (durable) → noise → batch and release in the ledger (durable) → line in
the log (durable) → next rows.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from tacit.errors import StudyError
from tacit.holder.account import Charge
from tacit.holder.charge import Purpose, charge_of, refuse_sum, signer_of
from tacit.holder.ledger import Ledger
from tacit.holder.perturb import blank, privatise
from tacit.holder.stream.ledger import (
    Batch,
    Progress,
    Terms,
    batches_of,
    find_stream,
    note_taken,
    record_batch,
    start_stream,
)
from tacit.holder.stream.log import LogFile, open_log
from tacit.holder.stream.partial import partial_of
from tacit.privacy.gaussian import epsilon_of, mu_of
from tacit.release import Release
from tacit.release.document import check_holder
from tacit.release.log import Entry
from tacit.rows.arriving import Handed, Place, Source, Text
from tacit.study import Study


@dataclass
class Report:
    """What a run did, for the holder's eyes.

    `stream` is None where no row came for a new one, which then costs nothing.

    `charge` is what the whole stream costs. Batches in `lost` had been taken when the last run
    broke off, or were not full when this one ended. `waiting` rows of a file were read, but not
    published: the next run reads them again. `mended` lines of the log were missing.
    """

    stream: str | None
    charge: Charge
    published: int = 0
    rows: int = 0
    lost: list[Batch] = field(default_factory=list)
    waiting: int = 0
    mended: int = 0


def stream(
    study: Study,
    batches: Iterable[pa.RecordBatch] | Text,
    *,
    holder: str,
    ledger: Ledger | str | Path,
    log: str | Path,
    batch_rows: int,
    dataset: str = "default",
    epsilon: float | None = None,
    delta: float | None = None,
    key: str | Path | None = None,
    batches_per_person: int = 1,
    publish_rest: bool = False,
    new_dataset: bool = False,
    on_start: Callable[[Charge], None] = lambda _charge: None,
    on_batch: Callable[[Batch], None] = lambda _batch: None,
) -> Report:
    """Publish arriving rows in batches of exactly `batch_rows`, each as a line of the release log.

    `batches` are Arrow record batches of any sizes, or a `tacit.rows.arriving.Text`. A later run
    with the same study, data set and ledger goes on with the same stream, under the one charge made
    at its start. `publish_rest` publishes the last, partial batch too. `on_start` hears what the
    whole stream costs, `on_batch` of each batch, published or lost (its `entry` is None).
    """
    _refuse_unstreamable(study, batch_rows, batches_per_person)
    sign = signer_of(key)
    check_holder(holder)
    ledger = Ledger.at(ledger)
    purpose = Purpose(holder, dataset, epsilon, delta)
    source: Source = batches if isinstance(batches, Text) else Handed(batches, study)
    terms = Terms(batch_rows, batches_per_person, source.name)
    charge = _stream_charge(study, purpose, batches_per_person)
    sign(blank(study, purpose)).to_json()
    with open_log(log) as file:
        progress = find_stream(ledger, charge, terms)
        if progress is None:
            file.mend([])  # a new stream has a log of its own, and pays when its first row is there
            if not source.wait():
                return Report(None, charge)
            progress = start_stream(ledger, charge, study.relation, terms, new_dataset=new_dataset)
        on_start(charge)
        run = _Run(study, purpose, terms, charge, sign, ledger, file, progress, on_batch)
        run.take_up(source)
        run.publish_all(source, publish_rest=publish_rest)
    return run.report


def _stream_charge(study: Study, purpose: Purpose, batches_per_person: int) -> Charge:
    """What a whole stream costs: one release, or the k batches that one person may be in."""
    mechanism = study.mechanism(purpose.epsilon, purpose.delta)
    charge = charge_of(study, purpose, mechanism)
    if batches_per_person == 1:
        return charge
    mu = mechanism.mu * math.sqrt(batches_per_person)
    epsilon = epsilon_of(mu, mechanism.delta)
    while mu_of(epsilon, mechanism.delta) < mu:  # a limit of this ε must admit the charge
        epsilon *= 1 + 2.0**-40
    return replace(charge, mu=mu, epsilon=epsilon)


@dataclass
class _Run:
    """One run of a stream, from where the last one ended."""

    study: Study
    purpose: Purpose
    terms: Terms
    charge: Charge
    sign: Callable[[Release], Release]
    ledger: Ledger
    log: LogFile
    progress: Progress
    on_batch: Callable[[Batch], None]

    def __post_init__(self) -> None:
        self.partial = partial_of(self.study)
        self.noted = self.progress.taken
        self.receipt = self.ledger.receipt(self.progress.charge)
        self.report = Report(self.progress.stream, self.charge)

    def take_up(self, source: Source) -> None:
        """Go on where the last run ended.

        The log is completed from the ledger, what was taken and not published is given up, and the
        place in a file is found.
        """
        entries = (batch.entry for batch in batches_of(self.ledger, self.progress))
        self.report.mended = self.log.mend(entry for entry in entries if entry is not None)
        if self.progress.taken > self.progress.rows:
            self._lose(self.progress.taken)
        if self.progress.place is not None:
            source.resume(self.progress.place)

    def publish_all(self, source: Source, *, publish_rest: bool) -> None:
        """Publish batch after batch until the source ends."""
        before = self.progress.taken
        while source.wait():
            if source.name == "-" and before + source.taken > self.noted:
                self.noted = before + source.taken
                note_taken(self.ledger, self.progress, self.noted)
            source.read(self.terms.batch_rows - self.partial.rows, self.partial.add)
            if self.partial.rows == self.terms.batch_rows:
                self._publish(source.place)
        if self.partial.rows and publish_rest:
            self._publish(source.place)
        elif self.partial.rows and source.name == "-":
            self._lose(self.noted)
        self.report.waiting = self.partial.rows
        self.partial = partial_of(self.study)

    def _publish(self, place: Place | None) -> None:
        """Noise, ledger, log, in this order; then nothing of the batch is left but its release."""
        release = privatise(self.study, self.partial.statistics(), self.purpose)
        release = release.in_stream(self.progress.stream, self.progress.batches + 1)
        line = Entry(self.sign(release.paid_by(self.receipt))).to_line()
        batch = self._next(self.partial.rows, line)
        self.progress = record_batch(self.ledger, self.progress, batch, place)
        self.log.append(line.encode())
        self.report.published += 1
        self.report.rows += self.partial.rows
        self.partial = partial_of(self.study)
        self.on_batch(batch)

    def _lose(self, taken: int) -> None:
        """Give a number to rows that were taken and cannot be had again."""
        batch = self._next(taken - self.progress.rows, None)
        self.progress = record_batch(self.ledger, self.progress, batch, None)
        self.partial = partial_of(self.study)
        self.report.lost.append(batch)
        self.on_batch(batch)

    def _next(self, rows: int, entry: str | None) -> Batch:
        return Batch(
            self.progress.batches + 1, self.progress.rows + 1, self.progress.rows + rows, entry
        )


def _refuse_unstreamable(study: Study, batch_rows: int, batches_per_person: int) -> None:
    refuse_sum(study)
    if study.visit_count > 1:
        raise StudyError(
            "a stream forgets its rows after each batch, so no later question can be put to them: "
            "set visits = 1 in the study"
        )
    for name, value in (("batch_rows", batch_rows), ("batches_per_person", batches_per_person)):
        if value < 1:
            raise StudyError(f"{name} must be at least 1; got {value}")
    if study.count not in {"exact", "public"}:
        raise StudyError(
            "a stream's batches have a public number of rows, which add-remove would hide: "
            'set release.count = "public" in the study, or relation = "replace-one"'
        )
    if study.release.average > 1:
        raise StudyError(
            "release.average needs all rows of a batch at once, and a stream forgets them "
            "as they come: leave it out of the study"
        )
    if study.release.smallest_eigenvalue:
        raise StudyError(
            "smallest_eigenvalue: those of batches do not add up, so a stream cannot publish it: "
            "leave it out of the study"
        )
