"""Releases for simulation: seeded noise of the right size, and a mark that says so.

A release whose seed is known protects nobody. It carries `simulated: true`, and collecting it needs
an explicit flag.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from tacit.analyst.evidence import Evidence
from tacit.holder.charge import Purpose
from tacit.holder.persons import batches_of
from tacit.holder.perturb import SEEDED, privatise
from tacit.holder.places import PLACES, privatise_places
from tacit.holder.scales import moments_of, privatise_scales
from tacit.holder.share import shared_steps, sum_tally
from tacit.holder.statistics import statistics_of
from tacit.holder.tally import total_of
from tacit.holder.visits import Message, answer, converse, mapped, read_table
from tacit.privacy.noise import Sampler
from tacit.release import Release
from tacit.release.scales import ScalesRelease
from tacit.study import Study
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
    sampler = seeded(rng)
    purposes = [Purpose(f"holder {j}", "simulated") for j in range(1, len(tables) + 1)]
    pairs = list(zip(purposes, tables, strict=True))
    messages: list[Message | None] = [None] * len(pairs)
    if has_places(study):
        messages = [
            privatise_places(study, total_of(PLACES, study, table), purpose, sampler)
            for purpose, table in pairs
        ]
    while True:
        question = next_question(study, [each for each in messages if each is not None])
        releases = [
            answer(
                study,
                total_of(mapped(question), study, table),
                question,
                before=before,
                purpose=purpose,
                sampler=sampler,
            )
            for (purpose, table), before in zip(pairs, messages, strict=True)
        ]
        if question.visit == study.visit_count:
            return releases
        messages = list(releases)


def simulate_sum(study: Study, tables: Sequence[object], rng: np.random.Generator) -> Release:
    """What a secure sum would publish over these tables' holders, all of whom stay.

    Noise is from `rng`; there are no masks and no ledger.
    """
    message: Message | None = None
    while True:
        sitting = Sitting(study)
        if message is not None:
            sitting = Sitting(study, next_question(study, [message]), SIMULATED_SESSION)
        message = _simulate_sitting(sitting, tables, rng, message)
        if sitting.number == study.visit_count:
            return message


def _simulate_sitting(
    sitting: Sitting, tables: Sequence[object], rng: np.random.Generator, before: Message | None
) -> Message:
    """The sum of one sitting over all tables."""
    tally = sum_tally(sitting)
    study = sitting.study
    numbers = [tally.to_numbers(total_of(tally, study, table)) for table in tables]
    total = tally.from_numbers(study, [sum(column) for column in zip(*numbers, strict=True)])
    steps = shared_steps(total, sitting.mechanism(len(tables)), seeded(rng))
    vector = [*steps, total.n] if sitting.states_rows else steps
    return sitting.message(vector, len(tables), before, drawn_by=SEEDED, simulated=True)


def simulate_scales(
    study: Study, table: object, rng: np.random.Generator, *, holder: str, **budget: float | None
) -> ScalesRelease:
    """What `publish_scales` would make of a table, with noise from `rng` and no ledger.

    `budget` may hold an epsilon and a delta below those of the study's first stage.
    """
    sums = moments_of(study, batches_of(study, table))
    return privatise_scales(study, sums, Purpose(holder, "simulated", **budget), seeded(rng))


def seeded(rng: np.random.Generator) -> Sampler:
    """Gaussian noise from `rng`, rounded to the lattice."""

    def noise(sds: Sequence[float], lattice: int) -> list[int]:
        steps = rng.standard_normal(len(sds)) * np.asarray(sds) * 2.0**-lattice
        return [round(step) for step in steps.tolist()]

    return noise


def exact(study: Study, table: object) -> Evidence:
    """Exact statistics as evidence without noise.

    The method `non-private` takes them, and no release holds them.
    """
    statistics = statistics_of(study, batches_of(study, table))
    gram = statistics.floats()
    return Evidence.of(
        study,
        None,
        grams=gram[None, :-1, :-1],
        moments=gram[None, :-1, -1],
        rows=[statistics.n],
        squares=gram[None, -1, -1],
        eigenvalues=np.linalg.eigvalsh(statistics.xtx())[:1],
    )
