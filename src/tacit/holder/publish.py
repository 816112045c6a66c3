"""Publish: from a table to a release, charged before it exists."""

from pathlib import Path
from typing import Any

from tacit.errors import StudyError
from tacit.holder.account import Charge
from tacit.holder.charge import Purpose, charge_of, refuse_sum
from tacit.holder.ledger import Ledger
from tacit.holder.perturb import blank, privatise, refuse_unpublishable
from tacit.holder.rehearsal import Rehearsal
from tacit.holder.stage import Stage, refuse_no_rows
from tacit.holder.statistics import STATISTICS, Statistics
from tacit.holder.visits import Message, stage_of
from tacit.release import Release
from tacit.release.question import Question
from tacit.study import Study


class StatisticsStage(Stage[Statistics, Release]):
    """The statistics of a study of one visit."""

    tally = STATISTICS

    def charge(self, study: Study, purpose: Purpose) -> Charge:
        """What one release costs."""
        refuse_sum(study)
        return charge_of(study, purpose, study.mechanism(purpose.epsilon, purpose.delta))

    def limit(self, study: Study) -> None:  # noqa: ARG002
        """What is charged."""
        return

    def check(self, study: Study, total: Statistics) -> None:
        """Refuse no rows, where their number is public: else a refusal would tell it."""
        refuse_no_rows(study, total.n)
        refuse_unpublishable(study, total)

    def blank(self, study: Study, purpose: Purpose) -> Release:
        """A release of no rows."""
        return blank(study, purpose)

    def privatise(self, study: Study, total: Statistics, purpose: Purpose) -> Release:
        """The statistics with the mechanism's noise."""
        return privatise(study, total, purpose)


def publish(
    study: Study,
    table: object,
    *,
    ledger: Ledger | str | Path,
    dataset: str = "default",
    question: Question | str | Path | None = None,
    **terms: Any,  # noqa: ANN401
) -> Release:
    """Publish a table's statistics under the study's guarantee, charged before noise is drawn.

    The `terms` are `holder`, and those that `Stage.publish` explains: `epsilon`, `delta`, `key`,
    `again`, `new_dataset`, `diagnostics`, `confirm`, `on_rows`. In a study of several visits a
    single holder's happen here, one after the other, and one message leaves; among several holders
    this publishes the first visit or, with a `question`, the answer to that.
    """
    stage = _stage(study, table, ledger, dataset, question, again=bool(terms.get("again")))
    message: Any = stage.publish(study, table, ledger=ledger, dataset=dataset, **terms)
    published: Release = message
    return published


def rehearse(
    study: Study,
    table: object,
    *,
    ledger: Ledger | str | Path,
    dataset: str = "default",
    question: Question | str | Path | None = None,
    **terms: Any,  # noqa: ANN401
) -> Rehearsal:
    """Everything that publishing does but the charge and the noise; what it shows stays here."""
    stage = _stage(study, table, ledger, dataset, question)
    return stage.rehearse(study, table, ledger=ledger, dataset=dataset, **terms)


def _stage(
    study: Study,
    table: object,
    ledger: Ledger | str | Path,
    dataset: str,
    question: Question | str | Path | None,
    *,
    again: bool = False,
) -> Stage[Any, Release] | Stage[Any, Message]:
    """What is to be published now."""
    if study.visit_count == 1:
        if question is not None:
            raise StudyError("the study has one visit: publish without a question")
        return StatisticsStage()
    if again and len(study.planned_rows) > 1:
        raise StudyError("a visit is answered once: make a new study to ask the same rows again")
    asked = (
        question if isinstance(question, Question) or question is None else Question.load(question)
    )
    return stage_of(study, table, asked, Ledger.at(ledger), dataset)
