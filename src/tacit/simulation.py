"""Releases for simulation: seeded noise of the right size, and a mark that says so.

A release whose seed is known protects nobody. It carries `simulated: true`, and collecting it needs
an explicit flag.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from tacit.analyst.evidence import Evidence
from tacit.holder.charge import Purpose
from tacit.holder.persons import batches_of
from tacit.holder.perturb import SEEDED, privatise
from tacit.holder.places import Sums
from tacit.holder.share import shared_steps, sum_tally
from tacit.holder.statistics import Statistics, statistics_of
from tacit.holder.tally import total_of
from tacit.holder.visits import Message, converse, read_table, said
from tacit.privacy.noise import Sampler
from tacit.release import Release
from tacit.release.question import Question
from tacit.study import Study
from tacit.study.responses import place_of
from tacit.study.visits import has_places
from tacit.visits.ask import next_question
from tacit.visits.sitting import Sitting

SIMULATED_SESSION = "0" * 32
"""Stands for the session of a first visit, where there is none."""


def simulate(
    study: Study,
    table: object,
    rng: np.random.Generator,
    *,
    holder: str,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Release:
    """What `publish` would make of a table, with noise from `rng` and no ledger.

    Of a study of several visits it is all of them, as a single holder's.
    """
    if study.visit_count > 1:
        purpose = Purpose(holder, "simulated", epsilon, delta)
        return converse(study, partial(read_table, study, table), purpose, seeded(rng))
    statistics = statistics_of(study, batches_of(study, table), order=rng.permutation)
    return privatise(study, statistics, Purpose(holder, "simulated", epsilon, delta), seeded(rng))


def simulate_visits(
    study: Study, tables: Sequence[object], rng: np.random.Generator
) -> list[Release]:
    """What holders of these tables would publish at the last of a study's visits.

    Noise is from `rng`, and there is no ledger.
    """
    if study.visit_count == 1:
        return [
            simulate(study, table, rng, holder=f"holder {j}")
            for j, table in enumerate(tables, start=1)
        ]

    def read(j: int, question: Question | None) -> Sums | Statistics:
        return read_table(study, tables[j], question)

    return talk(study, len(tables), read, seeded(rng))


def talk(
    study: Study,
    holders: int,
    read: Callable[[int, Question | None], Sums | Statistics],
    sampler: Sampler,
) -> list[Release]:
    """The last messages of so many holders, of whom `read` tells what rows add up to."""
    purposes = [Purpose(f"holder {j}", "simulated") for j in range(1, holders + 1)]
    messages: list[Message] = []
    while True:
        question = None
        if messages or not has_places(study):
            question = next_question(study, messages)
        latest = dict(enumerate(messages))
        messages = [
            said(
                study,
                read(j, question),
                question,
                before=latest.get(j),
                purpose=purposes[j],
                sampler=sampler,
            )
            for j in range(holders)
        ]
        if question is not None and question.visit == study.visit_count:
            return [message for message in messages if isinstance(message, Release)]


def simulate_sum(study: Study, tables: Sequence[object], rng: np.random.Generator) -> Release:
    """What a secure sum would publish over these tables' holders, all of whom stay.

    Noise is from `rng`; there are no masks and no ledger. Of several visits it is all of them.
    """

    def read(sitting: Sitting) -> Sums | Statistics:
        tally = sum_tally(sitting)
        numbers = [tally.to_numbers(total_of(tally, study, table)) for table in tables]
        added = [sum(each) for each in zip(*numbers, strict=True)]
        total: Sums | Statistics = tally.from_numbers(study, added)
        return total

    return talk_in_sum(study, len(tables), read, seeded(rng))


def sums_of(
    study: Study, holders: int, read: Callable[[Sitting], Sums | Statistics], sampler: Sampler
) -> Iterator[tuple[Sitting, Message]]:
    """Every secure sum of a study with its message; `read` tells what all rows add up to."""
    message: Message | None = None
    sitting = Sitting(study)
    while True:
        total = read(sitting)
        vector = shared_steps(total, sitting.mechanism(holders), sampler)
        if isinstance(total, Statistics) and sitting.states_rows:
            vector.append(total.n)
        message = sitting.message(vector, holders, message, drawn_by=SEEDED, simulated=True)
        yield sitting, message
        if sitting.number == study.visit_count:
            return
        sitting = Sitting(study, next_question(study, [message]), SIMULATED_SESSION)


def talk_in_sum(
    study: Study, holders: int, read: Callable[[Sitting], Sums | Statistics], sampler: Sampler
) -> Release:
    """The last message of a secure sum, of which `read` tells what all rows add up to."""
    messages = [message for _, message in sums_of(study, holders, read, sampler)]
    [*_, last] = [message for message in messages if isinstance(message, Release)]
    return last


def seeded(rng: np.random.Generator) -> Sampler:
    """Gaussian noise from `rng`, rounded to the lattice."""

    def noise(sds: Sequence[float], lattice: int) -> list[int]:
        steps = rng.standard_normal(len(sds)) * np.asarray(sds) * 2.0**-lattice
        return [round(step) for step in steps.tolist()]

    return noise


def exact(study: Study, table: object, response: str | None = None) -> Evidence:
    """Exact statistics as evidence without noise, of one response where there are several.

    The method `non-private` takes them, and no release holds them.
    """
    statistics = statistics_of(study, batches_of(study, table))
    gram = statistics.floats()
    d = study.d
    place = d + place_of(study, response)
    return Evidence.of(
        study,
        None,
        grams=gram[None, :d, :d],
        moments=gram[None, :d, place],
        rows=[statistics.n],
        squares=gram[None, place, place],
        eigenvalues=np.linalg.eigvalsh(gram[:d, :d])[:1],
    )
