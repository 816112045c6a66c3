"""Visits: a holder's answers to several questions about the same rows.

A single holder asks itself: every question follows from its own noisy answers, and one message
leaves at the end. Among several holders each visit is a message, and the question of the next one
is made of all of them.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pyarrow as pa

from tacit.errors import LedgerError, StudyError, TableError
from tacit.holder.account import Charge
from tacit.holder.charge import Purpose, at_visit, charge_of, refuse_sum, visit_hash
from tacit.holder.ledger import Ledger
from tacit.holder.perturb import drawn_by, noisy_steps
from tacit.holder.places import PLACES, Sums, no_places, privatise_places
from tacit.holder.stage import Stage, refuse_no_rows
from tacit.holder.statistics import STATISTICS, Statistics, statistics_of
from tacit.holder.tally import Tally, total_of
from tacit.privacy.noise import Sampler, rehearsal, secure_noise
from tacit.release import Release
from tacit.release.places import PlacesRelease
from tacit.release.question import Question
from tacit.release.statistics import Visit
from tacit.rows.table import table_of
from tacit.study import Study
from tacit.study.visits import has_places, visit_mechanism
from tacit.visits.ask import next_question
from tacit.visits.first import first_question

Message = PlacesRelease | Release
Read = Callable[[Question | None], Sums | Statistics]
"""Reads the rows: places where nothing is asked yet, else statistics as a question maps them."""


def answer(
    study: Study,
    statistics: Statistics,
    question: Question,
    *,
    before: Message | None,
    purpose: Purpose,
    sampler: Sampler | None = None,
) -> Release:
    """The message that answers a question, with its holder's answers before it."""
    mechanism = visit_mechanism(study, question.visit, study.budget(purpose.epsilon, purpose.delta))
    return Release.of(
        study,
        mechanism,
        noisy_steps(statistics, mechanism, sampler or secure_noise),
        statistics.n,
        holder=purpose.holder,
        drawn_by=drawn_by(sampler),
        simulated=sampler is not None,
        visit=Visit.after(before, question),
    )


def said(
    study: Study,
    total: Sums | Statistics,
    question: Question | None,
    *,
    before: Message | None,
    purpose: Purpose,
    sampler: Sampler | None = None,
) -> Message:
    """The message of one visit: the answer to a question or, without one, places."""
    if question is None:
        return privatise_places(study, _sums(total), purpose, sampler)
    statistics = _statistics(total)
    return answer(study, statistics, question, before=before, purpose=purpose, sampler=sampler)


def converse(study: Study, read: Read, purpose: Purpose, sampler: Sampler | None = None) -> Release:
    """All visits of a single holder, one after the other; the last message holds them all."""
    message: Message | None = None
    while True:
        question = None
        if message is not None or not has_places(study):
            question = next_question(study, [] if message is None else [message])
        total = read(question)
        message = said(study, total, question, before=message, purpose=purpose, sampler=sampler)
        if isinstance(message, Release) and _is_last(message):
            return message


def _is_last(message: Release) -> bool:
    """Whether nothing is asked after a message."""
    return message.answers[-1].question.visit == message.study.visit_count


def _sums(total: Sums | Statistics) -> Sums:
    if isinstance(total, Statistics):  # pragma: no cover
        raise TypeError
    return total


def _statistics(total: Sums | Statistics) -> Statistics:
    if not isinstance(total, Statistics):  # pragma: no cover
        raise TypeError
    return total


def mapped(question: Question) -> Tally[Statistics]:
    """How rows add up once a question has mapped them."""
    return replace(
        STATISTICS,
        add_up=partial(statistics_of, question=question),
        question=question.to_json(),
    )


class VisitStage(Stage[Sums | Statistics, Message]):
    """One visit to one of several holders' tables: its answer, with those before it."""

    def __init__(self, question: Question | None, before: Message | None) -> None:
        self.question = question
        self.before = before
        self.tally = PLACES if question is None else mapped(question)  # type: ignore[assignment]

    def charge(self, study: Study, purpose: Purpose) -> Charge:
        """The first visit pays for all; each later one is entered once, at no further cost."""
        charge = whole_charge(study, purpose)
        if self.before is None or self.question is None:
            return charge
        number = self.question.visit
        if (charge.epsilon, charge.delta) != (self.before.epsilon, self.before.delta):
            raise StudyError(
                "epsilon and delta must be those of the first visit, which paid for all of them"
            )
        return at_visit(charge, study, number)

    def limit(self, study: Study) -> tuple[float, float]:
        """The whole study's."""
        return study.epsilon, study.delta

    def check(self, study: Study, total: Sums | Statistics) -> None:
        """Refuse no rows, where their number is public."""
        refuse_no_rows(study, _rows_of(total))

    def blank(self, study: Study, purpose: Purpose) -> Message:
        """An answer of no rows."""
        return self._made(study, nothing(study, self.question), purpose, rehearsal)

    def privatise(self, study: Study, total: Sums | Statistics, purpose: Purpose) -> Message:
        """The answer with its noise."""
        return self._made(study, total, purpose, None)

    def _made(
        self, study: Study, total: Sums | Statistics, purpose: Purpose, sampler: Sampler | None
    ) -> Message:
        return said(
            study, total, self.question, before=self.before, purpose=purpose, sampler=sampler
        )


class AloneStage(VisitStage):
    """All visits to the only holder's table, in one message; the first is read before it is paid.

    Every later one reads the table again.
    """

    def __init__(self, question: Question | None, table: object) -> None:
        super().__init__(question, None)
        self.table = table

    def check(self, study: Study, total: Sums | Statistics) -> None:
        """Refuse no rows, and rows that are gone once they were read."""
        super().check(study, total)
        if hasattr(self.table, "mapInArrow"):
            return
        if isinstance(self.table, pa.RecordBatchReader) or (
            _rows_of(total) and is_gone(study, self.table)
        ):
            raise TableError(
                f"the table can be read once alone, and the study's {study.visit_count} visits "
                "read it again: give a file, a query or a table in memory"
            )

    def blank(self, study: Study, purpose: Purpose) -> Message:
        """All visits of no rows."""
        return converse(study, partial(nothing, study), purpose, rehearsal)

    def privatise(self, study: Study, total: Sums | Statistics, purpose: Purpose) -> Message:
        """Every visit in turn."""

        def read(question: Question | None) -> Sums | Statistics:
            is_first = question is None or question.visit == 1
            return total if is_first else read_table(study, self.table, question)

        return converse(study, read, purpose)


def whole_charge(study: Study, purpose: Purpose) -> Charge:
    """What all visits of a study cost together."""
    refuse_sum(study)
    budget = study.budget(purpose.epsilon, purpose.delta)
    return charge_of(study, purpose, visit_mechanism(study, study.visit_count, budget))


def stage_of(
    study: Study, table: object, question: Question | None, ledger: Ledger, dataset: str
) -> VisitStage:
    """What is to be published now for a study of several visits."""
    if len(study.planned_rows) == 1:
        if question is not None:
            raise StudyError("a single holder asks itself: publish without a question")
        return AloneStage(_opening(study), table)
    if question is None:
        return VisitStage(_opening(study), None)
    check_question(study, question)
    return VisitStage(question, earlier_message(study, question, ledger, dataset))


def check_question(study: Study, question: Question) -> None:
    """Refuse a question that is none of this study's."""
    try:
        question.check(study)
    except ValueError as error:
        raise StudyError(f"question: {error}") from None


def _opening(study: Study) -> Question | None:
    """What the first visit asks; None for places."""
    return None if has_places(study) else first_question(study, [])


def earlier_message(study: Study, question: Question, ledger: Ledger, dataset: str) -> Message:
    """The holder's message of the visit before, from its ledger."""
    number = question.visit - 1
    text = ledger.released(dataset, visit_hash(study, number)) if number else None
    if text is None:
        raise LedgerError(
            f"the ledger holds no answer to visit {number} of this study from data set "
            f"{dataset!r}: publish that visit first, or name the right ledger and data set"
        )
    if number == 1 and has_places(study):
        return PlacesRelease.from_json(text)
    return Release.from_json(text)


def read_table(study: Study, table: object, question: Question | None) -> Sums | Statistics:
    """What a table's rows add up to, for a question or, without one, for places."""
    if question is None:
        return total_of(PLACES, study, table)
    return total_of(mapped(question), study, table)


def _rows_of(total: Sums | Statistics) -> int:
    return total.n if isinstance(total, Statistics) else total[0]


def is_gone(study: Study, table: object) -> bool:
    """Whether a table that held rows holds none when it is read again."""
    return next(iter(table_of(table, study).batches()), None) is None


def nothing(study: Study, question: Question | None) -> Sums | Statistics:
    """What no rows add up to, for a question or for places."""
    return no_places(study) if question is None else Statistics.zero(study)
