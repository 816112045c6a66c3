"""Routes by which rows leave a holder, each through the public function, and what is exact of them.

A route publishes a table and gives every released number that carries noise, with its stated sd;
and it gives the exact values of the same numbers. Each also has the neighbouring tables that an
optimiser finds furthest apart.
"""

import json
import math
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
import pyarrow as pa
from neighbours import _encoded, _random_rows, worst_pair
from neighbours import table as plain_table
from random_studies import hostile_question

from tacit import Ledger, publish, stream
from tacit.holder.encode import GRID, Encoder
from tacit.holder.places import PLACES
from tacit.holder.share import publish_share
from tacit.holder.statistics import STATISTICS, STEP_BITS
from tacit.holder.tally import total_of
from tacit.holder.visits import mapped
from tacit.privacy.gaussian import part_of
from tacit.privacy.visits import shares_of
from tacit.release import Release
from tacit.release.log import Entry
from tacit.release.question import Question
from tacit.study import Study
from tacit.study.visits import visit_mechanism
from tacit.visits.first import first_question
from tacit.visits.sitting import Sitting

Rows = pa.RecordBatch
Numbers = tuple[np.ndarray, np.ndarray]
"""Released entries, and the stated sd of each."""
SESSION = "ab" * 16
PERSON_ROWS = 3
"""Rows of each person of a study of persons; the last may have fewer."""


def table(study: Study, rows: np.ndarray) -> Rows:
    """Raw values of rows in unit coordinates, with whose they are and what they weigh.

    Every other row, from the first on, is heavier than weights may be.
    """
    raw = plain_table(study, rows)
    places = np.arange(len(rows))
    if study.person is not None:
        raw = raw.append_column(study.person, pa.array(places // PERSON_ROWS))
    if study.weight is not None:
        weights = study.weight.most * np.where(places % 2 == 0, 2.0, 0.3)
        raw = raw.append_column(study.weight.column, pa.array(weights))
    return raw


def exchanged(study: Study, rest: np.ndarray, first: np.ndarray, second: np.ndarray | None):
    """Two tables: the rest with the first row, and with the second or without one.

    Where persons have several rows the first has its row so often, and the second once. A public
    number of rows stays what it is: a person who leaves becomes a row of nothing.
    """
    often = PERSON_ROWS if study.person is not None else 1
    whole = np.vstack([rest, np.tile(first, (often, 1))])
    if study.relation == "replace-one":
        other = np.vstack([rest, second])
    elif study.count == "public" and study.missing != "refuse":
        other = np.vstack([rest, np.full(rest.shape[1], np.nan)])
    else:
        other = rest
    return table(study, whole), table(study, other)


class Route(ABC):
    """One form of publishing, for one study and two neighbouring tables."""

    def __init__(self, study: Study, rng: np.random.Generator) -> None:
        self.study = study
        self.tables = self.neighbours(rng)

    @property
    def epsilon(self) -> float:
        """What is claimed, at the study's δ."""
        return self.study.epsilon

    @abstractmethod
    def neighbours(self, rng: np.random.Generator) -> tuple[Rows, Rows]:
        """Two neighbouring tables, far apart."""

    @abstractmethod
    def publish(self, rows: Rows, folder: Path) -> Numbers:
        """Publish a table with a ledger of its own in that folder."""

    @abstractmethod
    def exact(self, rows: Rows) -> np.ndarray:
        """The same numbers without noise."""


class OfTables(Route):
    """A release of a table."""

    def neighbours(self, rng: np.random.Generator) -> tuple[Rows, Rows]:
        """Some random rows, and among them the pair that the optimiser finds."""
        study = self.study
        alone = study.model_copy(update={"person": None, "weight": None})
        pair = worst_pair(alone, rng, rounds=20, width=60)
        rest = _random_rows(_complete(study), rng, 2 * PERSON_ROWS)
        return exchanged(study, rest, pair.first, pair.second)

    def publish(self, rows: Rows, folder: Path) -> Numbers:
        """Publish by `tacit.publish`."""
        return self.numbers(publish(self.study, rows, holder="h", ledger=folder / "ledger.db"))

    def numbers(self, release: Release) -> Numbers:
        """Every entry of a release that carries noise; X'X's diagonal, what is above it, X'y, …"""
        noise = release.noise
        d = self.study.d
        upper = np.triu_indices(d, 1)
        k = self.study.response_count
        values = [*np.diag(release.gram), *release.gram[upper], *release.moments.ravel()]
        sds = [noise.xtx_diagonal] * d + [noise.xtx_off_diagonal] * len(upper[0])
        sds += [noise.xty] * (d * k)
        squares = [None] * k if release.squares is None else release.squares
        extra = [(square, noise.yty) for square in squares]
        extra += [(release.n, noise.count), (release.smallest_eigenvalue, noise.eigenvalue)]
        for value, sd in extra:
            if sd is not None:
                values.append(value)
                sds.append(sd)
        return np.array(values, dtype=float), np.array(sds)

    def exact(self, rows: Rows) -> np.ndarray:
        """From the exact statistics."""
        statistics = total_of(STATISTICS, self.study, rows)
        unit = 2.0**STEP_BITS * statistics.average
        gram = statistics.gram.astype(float) / unit
        d = self.study.d
        xtx = gram[:d, :d]
        values = [*np.diag(xtx), *xtx[np.triu_indices(d, 1)], *gram[d:, :d].ravel()]
        values += [*np.diag(gram)[d:]] if self.study.response_square else []
        values += [statistics.n] if self.study.count == "noisy" else []
        values += [np.linalg.eigvalsh(xtx)[0]] if self.study.release.smallest_eigenvalue else []
        return np.array(values, dtype=float)


class OfAverages(OfTables):
    """A release of averaged rows. One group: its sum does not depend on how rows are dealt."""

    def neighbours(self, rng: np.random.Generator) -> tuple[Rows, Rows]:
        """Equal rows, as long as can be, of which one is exchanged or leaves."""
        study = self.study
        candidates = _random_rows(_complete(study), rng, 400)
        longest = candidates[np.argmax(_lengths(study, candidates))]
        group = np.tile(longest, (study.release.average, 1))
        first = table(study, group)
        if study.relation == "add-remove":
            return first, table(study, group[1:])
        mechanism = study.mechanism()
        sds = np.array(mechanism.layout.each(mechanism.noise.by_part()))
        others = [table(study, np.vstack([row, group[1:]])) for row in candidates[:100]]
        here = self.exact(first)
        apart = [np.linalg.norm((self.exact(other) - here) / sds) for other in others]
        return first, others[int(np.argmax(apart))]


class OfStreams(OfTables):
    """A stream of one batch."""

    def publish(self, rows: Rows, folder: Path) -> Numbers:
        """Publish by `tacit.stream`."""
        options = {"holder": "h", "ledger": folder / "ledger.db", "log": folder / "h.log"}
        stream(self.study, [rows], batch_rows=rows.num_rows, **options)
        (line,) = (folder / "h.log").read_bytes().splitlines(keepends=True)
        return self.numbers(Entry.from_line(line).release)


class OfSums(OfTables):
    """A secure sum, as far as those who do not collude can be told from it.

    The first of them has one of the two tables, each other the first of them.
    """

    @property
    def honest(self) -> int:
        """How many shares of noise there are at least."""
        return self.study.secure_sum.covering

    @property
    def sittings(self) -> tuple[Sitting, ...]:
        """The sums that are asked for, one after the other."""
        return (Sitting(self.study),)

    def publish(self, rows: Rows, folder: Path) -> Numbers:
        """Publish each holder's share, and add up those that nobody can take out."""
        sums = [self._summed(sitting, rows, folder) for sitting in self.sittings]
        values, sds = zip(*sums, strict=True)
        return np.concatenate(values), np.concatenate(sds)

    def _summed(self, sitting: Sitting, rows: Rows, folder: Path) -> Numbers:
        shares = [
            self._share(sitting, rows if place == 0 else self.tables[0], place, folder)
            for place in range(self.honest)
        ]
        mechanism = sitting.mechanism(self.honest)
        sds = mechanism.layout.each(mechanism.noise.by_part())
        steps = np.sum(shares, axis=0)[: len(sds)]
        return np.array([math.ldexp(step, mechanism.lattice) for step in steps]), np.array(sds)

    def _share(self, sitting, rows, place, folder):
        holder = list(self.study.secure_sum.holders)[place]
        ledger = Ledger(folder / f"{holder}.db")
        session = SESSION if sitting.question is None else "later"
        payment = {"holder": holder, "ledger": ledger, "dataset": "default", "session": session}
        share = publish_share(sitting, rows, json.dumps, **payment)
        return np.array(json.loads(share), dtype=object)

    def exact(self, rows: Rows) -> np.ndarray:
        """Their sum."""
        return super().exact(rows) + (self.honest - 1) * super().exact(self.tables[0])


class OfPlaces(Route):
    """Where values lie: the first of several visits, with its part of the budget."""

    @property
    def epsilon(self) -> float:
        """The first visit's part."""
        share = shares_of(self.study.visit_count)[0]
        return part_of(self.study.epsilon, self.study.delta, share)

    def neighbours(self, rng: np.random.Generator) -> tuple[Rows, Rows]:
        """From one end of every range to the other, or to no row at all."""
        rest = _random_rows(_complete(self.study), rng, 2 * PERSON_ROWS)
        ends = np.ones(rest.shape[1])
        for place, feature in enumerate(self.study.features):
            if feature.levels is not None:
                ends[place] = 0
        return exchanged(self.study, rest, ends, -ends)

    def publish(self, rows: Rows, folder: Path) -> Numbers:
        """Publish the first visit by `tacit.publish`."""
        places = publish(self.study, rows, holder="h", ledger=folder / "ledger.db").places
        width = len(places.totals)
        noise = places.noise
        values = [places.count, *places.totals, *places.squares]
        return np.array(values), np.repeat(
            [noise.count, noise.total, noise.square], [1, width, width]
        )

    def exact(self, rows: Rows) -> np.ndarray:
        """From the exact sums."""
        sums = total_of(PLACES, self.study, rows)
        return np.array(sums[1:], dtype=float) / 2.0**STEP_BITS


class OfVisits(OfTables):
    """Two visits to the same rows, the second with the first one's question.

    So one pair of tables is furthest apart at both, and together they show the whole claim.
    """

    def __init__(self, study: Study, rng: np.random.Generator) -> None:
        self.questions = (first_question(study, []), self.second(study, rng))
        super().__init__(study, rng)

    def second(self, study: Study, rng: np.random.Generator) -> Question:  # noqa: ARG002
        """What is asked at the second visit."""
        return first_question(study, []).model_copy(update={"visit": 2})

    def neighbours(self, rng: np.random.Generator) -> tuple[Rows, Rows]:
        """The pair of rows that a random search through the encoder finds furthest apart."""
        study = self.study
        rows = _random_rows(_complete(study), rng, 90)
        numeric = np.array(
            [feature.range is not None for feature in (*study.features, study.response)]
        )
        alone = study.relation == "add-remove"
        for _ in range(25):
            told = self._contributions(rows)
            apart = told if alone else told[:, None] - told[None]
            sizes = np.linalg.norm(apart, axis=-1)
            order = np.argsort(-(sizes if alone else sizes.max(axis=1)))[:30]
            step = rng.normal(size=(60, rows.shape[1])) * 10.0 ** rng.uniform(-4, 0, size=(60, 1))
            kept = np.repeat(rows[order], 2, axis=0)
            moved = np.where(numeric, np.clip(kept + step, -1, 1), kept)
            rows = np.vstack([rows[order], moved])
        told = self._contributions(rows)
        furthest = rows[int(np.argmax(np.linalg.norm(told[:1] - told, axis=1)))]
        return exchanged(study, _random_rows(_complete(study), rng, 6), rows[0], furthest)

    def _contributions(self, rows: np.ndarray) -> np.ndarray:
        """What each row adds to the sums of all visits, in units of the noise."""
        budget = self.study.budget()
        mechanisms = [
            visit_mechanism(self.study, question.visit, budget) for question in self.questions
        ]
        sds = np.concatenate([each.layout.each(each.noise.by_part()) for each in mechanisms])
        return np.hstack([self._each(rows, question) for question in self.questions]) / sds

    def _each(self, rows: np.ndarray, question: Question) -> np.ndarray:
        """What each row, of a person of its own, adds to the sums of a visit."""
        alone = self.study.model_copy(update={"person": None})
        encoder = Encoder(alone, question=question)
        x, y = np.split(np.hstack(list(encoder.blocks(plain_table(alone, rows)))) / GRID, [alone.d])
        first, second = np.triu_indices(alone.d, 1)
        parts = [x * x, x[first] * x[second], x * y, y * y]
        parts += [np.ones_like(y)] if self.study.count == "noisy" else []
        return np.vstack(parts).T

    def publish(self, rows: Rows, folder: Path) -> Numbers:
        """Publish both visits by `tacit.publish`."""
        terms = {"holder": "h", "ledger": folder / "ledger.db"}
        releases = [
            publish(self.study, rows, **terms),
            publish(self.study, rows, question=self.questions[1], **terms),
        ]
        values, sds = zip(*map(self.numbers, releases), strict=True)
        return np.concatenate(values), np.concatenate(sds)

    def exact(self, rows: Rows) -> np.ndarray:
        """The sums of both visits."""
        return np.concatenate([self._sums(rows, question) for question in self.questions])

    def _sums(self, rows: Rows, question: Question) -> np.ndarray:
        statistics = total_of(mapped(question), self.study, rows)
        gram = statistics.gram.astype(float) / 2.0**STEP_BITS
        xtx = gram[:-1, :-1]
        values = [*np.diag(xtx), *xtx[np.triu_indices(self.study.d, 1)], *gram[:, -1]]
        values += [statistics.n] if self.study.count == "noisy" else []
        return np.array(values, dtype=float)


class OfQuestions(OfVisits):
    """Two visits, the second with a question that is made to do harm."""

    def second(self, study: Study, rng: np.random.Generator) -> Question:
        """Anything that is accepted."""
        return hostile_question(study, rng)


class OfSummedQuestions(OfSums, OfQuestions):
    """A secure sum of two visits, the second with a question that is made to do harm."""

    @property
    def sittings(self) -> tuple[Sitting, ...]:
        """Both visits; the first pays."""
        return Sitting(self.study), Sitting(self.study, self.questions[1], SESSION)


ROUTES: dict[str, type[Route]] = {
    "table": OfTables,
    "averaged": OfAverages,
    "stream": OfStreams,
    "sum": OfSums,
    "places": OfPlaces,
    "visits": OfVisits,
    "questions": OfQuestions,
    "summed": OfSummedQuestions,
    "persons": OfTables,
    "weighted": OfTables,
    "responses": OfTables,
}


def _complete(study):
    """The same study, for which random rows have no missing value."""
    return study.model_copy(update={"missing": "refuse"})


def _lengths(study, rows):
    """‖t(x, y)‖² of each row."""
    x, y = _encoded(study, rows)
    weights = study.form.weights
    norms = np.sum(x * x, axis=0)
    return norms**2 + (weights.response * y) ** 2 * norms + (weights.square * y * y) ** 2
