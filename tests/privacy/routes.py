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
from neighbours import _encoded, _random_rows, table, worst_pair

from tacit import Ledger, publish, publish_scales, stream
from tacit.holder.scales import moments_of
from tacit.holder.share import publish_share
from tacit.holder.statistics import STEP_BITS, statistics_of
from tacit.release import Release
from tacit.release.log import Entry
from tacit.study import Study
from tacit.study.visits import visit_mechanism
from tacit.visits.first import first_question
from tacit.visits.sitting import Sitting

Rows = pa.RecordBatch
Numbers = tuple[np.ndarray, np.ndarray]
"""Released entries, and the stated sd of each."""


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
        """Some random rows, and among them the pair that the optimiser finds.

        A public number of rows stays what it is: a person who leaves becomes a row of nothing.
        """
        study = self.study
        pair = worst_pair(study, rng, rounds=20, width=60)
        rest = _random_rows(_complete(study), rng, 6)
        if study.relation == "replace-one":
            second = np.vstack([rest, pair.second])
        elif study.count == "public" and study.missing != "refuse":
            second = np.vstack([rest, np.full(rest.shape[1], np.nan)])
        else:
            second = rest
        return table(study, np.vstack([rest, pair.first])), table(study, second)

    def publish(self, rows: Rows, folder: Path) -> Numbers:
        """Publish by `tacit.publish`."""
        return self.numbers(publish(self.study, rows, holder="h", ledger=folder / "ledger.db"))

    def numbers(self, release: Release) -> Numbers:
        """Every entry of a release that carries noise; X'X's diagonal, what is above it, X'y, …"""
        noise = release.noise
        d = self.study.d
        upper = np.triu_indices(d, 1)
        values = [*np.diag(release.gram), *release.gram[upper], *release.moment]
        sds = [noise.xtx_diagonal] * d + [noise.xtx_off_diagonal] * len(upper[0]) + [noise.xty] * d
        extra = [(release.yty, noise.yty), (release.smallest_eigenvalue, noise.eigenvalue)]
        extra.insert(1, (release.n, noise.count))
        for value, sd in extra:
            if sd is not None:
                values.append(value)
                sds.append(sd)
        return np.array(values, dtype=float), np.array(sds)

    def exact(self, rows: Rows) -> np.ndarray:
        """From the exact statistics."""
        statistics = statistics_of(self.study, [rows])
        unit = 2.0**STEP_BITS * statistics.average
        gram = statistics.gram.astype(float) / unit
        xtx = gram[:-1, :-1]
        values = [*np.diag(xtx), *xtx[np.triu_indices(self.study.d, 1)], *gram[:-1, -1]]
        values += [gram[-1, -1]] if self.study.response_square else []
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

    def publish(self, rows: Rows, folder: Path) -> Numbers:
        """Publish each holder's share, and add up those that nobody can take out."""
        shares = [
            self._share(rows if place == 0 else self.tables[0], place, folder)
            for place in range(self.honest)
        ]
        mechanism = self.study.summed(self.honest)
        sds = mechanism.layout.each(mechanism.noise.by_part())
        steps = np.sum(shares, axis=0)[: len(sds)]
        return np.array([math.ldexp(step, mechanism.lattice) for step in steps]), np.array(sds)

    def _share(self, rows, place, folder):
        holder = list(self.study.secure_sum.holders)[place]
        ledger = Ledger(folder / f"{holder}.db")
        payment = {"holder": holder, "ledger": ledger, "dataset": "default", "session": "one"}
        share = publish_share(Sitting(self.study), rows, json.dumps, **payment)
        return np.array(json.loads(share), dtype=object)

    def exact(self, rows: Rows) -> np.ndarray:
        """Their sum."""
        return super().exact(rows) + (self.honest - 1) * super().exact(self.tables[0])


class OfScales(Route):
    """The private scales of a study with two stages."""

    @property
    def epsilon(self) -> float:
        """The first stage's part."""
        return self.study.stages[0]

    def neighbours(self, rng: np.random.Generator) -> tuple[Rows, Rows]:
        """From one end of every range to the other, or to no row at all."""
        rest = _random_rows(_complete(self.study), rng, 4)
        ends = np.ones(rest.shape[1])
        for place, feature in enumerate(self.study.features):
            if feature.levels is not None:
                ends[place] = 0
        opposite = np.vstack([rest, -ends])
        second = opposite if self.study.relation == "replace-one" else rest
        return table(self.study, np.vstack([rest, ends])), table(self.study, second)

    def publish(self, rows: Rows, folder: Path) -> Numbers:
        """Publish by `tacit.publish_scales`."""
        release = publish_scales(self.study, rows, holder="h", ledger=folder / "ledger.db")
        moments = [(each.count, each.total, each.square) for each in release.columns]
        noise = release.noise
        sds = np.repeat([noise.count, noise.total, noise.square], len(moments))
        return np.array(moments).T.ravel(), sds

    def exact(self, rows: Rows) -> np.ndarray:
        """From the exact moments."""
        moments = np.array(moments_of(self.study, [rows]), dtype=float)
        return moments.T.ravel() / 2.0**STEP_BITS


class OfVisits(OfTables):
    """Two visits to the same rows, the second with the first one's question.

    So one pair of tables is furthest apart at both, and together they show the whole claim.
    """

    def __init__(self, study: Study, rng: np.random.Generator) -> None:
        self.first = first_question(study, [])
        self.second = self.first.model_copy(update={"visit": 2})
        super().__init__(study, rng)

    def neighbours(self, rng: np.random.Generator) -> tuple[Rows, Rows]:
        """The pair of rows that a random search through the encoder finds furthest apart."""
        study = self.study
        rows = _random_rows(_complete(study), rng, 90)
        numeric = [feature.range is not None for feature in (*study.features, study.response)]
        alone = study.relation == "add-remove"
        for _ in range(25):
            told = self._contributions(rows)
            apart = told if alone else told[:, None] - told[None]
            sizes = np.linalg.norm(apart, axis=-1)
            order = np.argsort(-(sizes if alone else sizes.max(axis=1)))[:30]
            step = rng.normal(size=(60, rows.shape[1])) * 10.0 ** rng.uniform(-4, 0, size=(60, 1))
            moved = np.clip(np.repeat(rows[order], 2, axis=0) + step * numeric, -1, 1)
            moved[:, ~np.array(numeric)] = np.repeat(rows[order], 2, axis=0)[:, ~np.array(numeric)]
            rows = np.vstack([rows[order], moved])
        sizes = np.linalg.norm(self._contributions(rows[:1]) - self._contributions(rows), axis=1)
        rest = _random_rows(_complete(study), rng, 6)
        kept = np.vstack([rest, rows[:1]])
        if not alone:
            return table(study, kept), table(
                study, np.vstack([rest, rows[[int(np.argmax(sizes))]]])
            )
        nothing = np.vstack([rest, np.full((1, rest.shape[1]), np.nan)])
        other = nothing if study.count == "public" and study.missing != "refuse" else rest
        return table(study, kept), table(study, other)

    def _contributions(self, rows: np.ndarray) -> np.ndarray:
        """What each row adds to the sums, in units of the noise."""
        mechanism = visit_mechanism(self.study, 2, self.study.budget())
        sds = np.array(mechanism.layout.each(mechanism.noise.by_part()))
        return np.array([self._sums(table(self.study, row[None])) / sds for row in rows])

    def publish(self, rows: Rows, folder: Path) -> Numbers:
        """Publish both visits by `tacit.publish`."""
        terms = {"holder": "h", "ledger": folder / "ledger.db"}
        releases = [
            publish(self.study, rows, **terms),
            publish(self.study, rows, question=self.second, **terms),
        ]
        values, sds = zip(*map(self.numbers, releases), strict=True)
        return np.concatenate(values), np.concatenate(sds)

    def exact(self, rows: Rows) -> np.ndarray:
        """The same sums at both visits."""
        return np.tile(self._sums(rows), 2)

    def _sums(self, rows: Rows) -> np.ndarray:
        statistics = statistics_of(self.study, [rows], question=self.second)
        gram = statistics.gram.astype(float) / 2.0**STEP_BITS
        xtx = gram[:-1, :-1]
        values = [*np.diag(xtx), *xtx[np.triu_indices(self.study.d, 1)], *gram[:, -1]]
        values += [statistics.n] if self.study.count == "noisy" else []
        return np.array(values, dtype=float)


ROUTES: dict[str, type[Route]] = {
    "table": OfTables,
    "averaged": OfAverages,
    "stream": OfStreams,
    "sum": OfSums,
    "scales": OfScales,
    "visits": OfVisits,
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
