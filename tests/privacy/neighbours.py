"""Neighbouring tables, searched for the pair whose statistics differ most, through the real
encoder.

A candidate row is a vector of unit coordinates: a numeric column at −1..1 of its range (or beyond:
it is clamped; NaN: it is missing), a categorical one as the index of its level (−1: missing), the
response last. `table` turns rows into raw values. The encoder rounds, so there is no gradient to
follow: `worst_pair` starts from the pairs that the proofs say are worst, adds random ones, and
improves the best by random moves; every comparison of m rows with m others is one call of the
encoder and three small matrix products.
"""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tacit.holder.encode import GRID, Encoder
from tacit.holder.statistics import STEP_BITS, Statistics, statistics_of
from tacit.privacy.sensitivity import Weights
from tacit.release.question import Question
from tacit.study import Study
from tacit.study.visits import statistics_form


def make_study(
    features: int = 2, levels: tuple[int, ...] = (), *, seed: int = 0, further: int = 0, **fields
) -> Study:
    """A study with awkward numeric ranges, then categorical features of so many levels.

    It has so many `further` responses beside its own.
    """
    rng = np.random.default_rng(seed)
    spans = 10.0 ** rng.integers(-3, 7, features + 1)
    lows = rng.normal(size=features + 1) * spans
    ranges = [(float(low), float(low + span)) for low, span in zip(lows, spans, strict=True)]
    columns = [{"name": f"x{i}", "range": bounds} for i, bounds in enumerate(ranges[:-1])]
    columns += [
        {"name": f"c{i}", "levels": [f"level {k}" for k in range(count)]}
        for i, count in enumerate(levels)
    ]
    others = [f"z{i}" for i in range(further)]
    columns += [{"name": name, "range": (-0.3, 10.0**i)} for i, name in enumerate(others)]
    document = {
        "name": "test",
        "epsilon": 1.0,
        "delta": 1e-5,
        "response": {"name": "y", "range": ranges[-1]},
        "features": columns,
        "responses": ["y", *others] if others else [],
    }
    return Study.from_document(document | fields)


def table(study: Study, rows: np.ndarray) -> pa.RecordBatch:
    """Raw values of rows in unit coordinates."""
    columns = {}
    for feature, column in zip((*study.features, study.response), rows.T, strict=True):
        if feature.range is not None:
            low, high = feature.range
            columns[feature.name] = pa.array(low + (high - low) * (column + 1) / 2)
        else:
            columns[feature.name] = pa.array(
                [feature.all_levels[int(k)] if k >= 0 else None for k in column], pa.string()
            )
    return pa.record_batch(columns)


def statistics(study: Study, rows: np.ndarray, **options) -> Statistics:
    """Exact statistics by the holder's own code."""
    return statistics_of(study, [table(study, rows)], **options)


def weights_of(study: Study, question: Question | None) -> Weights:
    """Weights of the parts of what is published: at a visit, or at once."""
    return (study.form if question is None else statistics_form(study)).weights


def distance(
    study: Study, first: Statistics, second: Statistics, question: Question | None = None
) -> float:
    """Weighted L2 distance of two statistics, from the exact difference of their whole numbers."""
    d = study.d
    weights = weights_of(study, question)
    step = np.ldexp((first.gram - second.gram).astype(float), -STEP_BITS) / first.average
    parts = [
        np.linalg.norm(step[:d, :d]),
        weights.response * np.linalg.norm(step[:d, d:]),
        weights.square * np.linalg.norm(np.diag(step)[d:]),
    ]
    parts.append(weights.count * (first.n - second.n))
    if weights.eigenvalue:
        smallest = [
            np.linalg.eigvalsh(each.xtx(study.response_count))[0] if each.n else 0.0
            for each in (first, second)
        ]
        parts.append(weights.eigenvalue * (smallest[0] - smallest[1]))
    return math.hypot(*parts)


class Pair(NamedTuple):
    """Rows that a neighbour exchanges; under add-remove the second is absent (None)."""

    first: np.ndarray
    second: np.ndarray | None

    def change(self, study: Study, others: np.ndarray | None = None) -> float:
        """How far the statistics of a table move when this pair is exchanged in it, by the real
        code.
        """
        others = np.empty((0, len(self.first))) if others is None else others
        with_first = statistics(study, np.vstack([others, self.first]))
        rest = others if self.second is None else np.vstack([self.second, others])
        return distance(
            study, with_first, statistics(study, rest) if len(rest) else Statistics.zero(study)
        )


def worst_pair(
    study: Study,
    rng: np.random.Generator,
    *,
    rounds: int = 40,
    width: int = 120,
    question: Question | None = None,
) -> Pair:
    """The neighbours found to differ most, as a question maps them where there is one."""
    starts = np.vstack([_proofs_rows(study, rng), _random_rows(study, rng, 4 * width)])
    first, second = _best(study, starts, starts, question)
    for scale in np.geomspace(0.5, 1e-4, rounds):
        firsts = _moves(study, rng, first, scale, width)
        seconds = _moves(study, rng, second, scale, width)
        first, second = _best(study, firsts, seconds, question)
    return Pair(first, second if study.relation == "replace-one" else None)


def _best(
    study: Study, firsts: np.ndarray, seconds: np.ndarray, question: Question | None
) -> tuple[np.ndarray, np.ndarray]:
    """The two rows whose contributions t(x, y) lie furthest apart; under add-remove the longest,
    twice.
    """
    (x, y), (other_x, other_y) = (_encoded(study, rows, question) for rows in (firsts, seconds))
    weights = weights_of(study, question)

    def product(inner, outer):  # of t(x, y) with t(x', y'), from x·x' and each response's y·y'
        squares = np.sum(outer**2, axis=0)
        crossed = inner * np.sum(outer, axis=0)
        return inner**2 + weights.response**2 * crossed + weights.square**2 * squares

    own = product(np.sum(x * x, axis=0), y * y)
    if study.relation == "add-remove":
        return firsts[np.argmax(own)], firsts[np.argmax(own)]
    theirs = product(np.sum(other_x * other_x, axis=0), other_y * other_y)
    apart = own[:, None] + theirs - 2 * product(x.T @ other_x, y[:, :, None] * other_y[:, None])
    i, k = np.unravel_index(np.argmax(apart), apart.shape)
    return firsts[i], seconds[k]


def _encoded(
    study: Study, rows: np.ndarray, question: Question | None = None
) -> tuple[np.ndarray, np.ndarray]:
    blocks = Encoder(study, question=question).blocks(table(study, rows))
    block = np.hstack(list(blocks)) / GRID
    return block[: study.d], block[study.d :]


def _answers(study: Study) -> list[int]:
    """Coordinates of the responses."""
    further = [i for i, each in enumerate(study.features) if each.name in study.responses]
    return [*further, len(study.features)]


def _proofs_rows(study: Study, rng: np.random.Generator) -> np.ndarray:
    """Rows of norm R and all cosines, the proofs' among them, with responses ±Y, 0 and the parallel
    case's t.
    """
    answers = _answers(study)
    numeric = [
        i
        for i, feature in enumerate(study.features)
        if feature.range is not None and i not in answers
    ]
    if not numeric:
        return _random_rows(study, rng, 8)
    angles = np.arccos(np.clip([1.0, 0.0, _cosine(study), -1.0, 0.5], -1, 1))
    rows = []
    for angle in angles:
        row = _random_rows(study, rng, 1)[0]
        row[numeric] = 0.0
        row[numeric[0]] = math.cos(angle) * study.row_radius
        row[numeric[-1]] += math.sin(angle) * study.row_radius * (len(numeric) > 1)
        for response in (1.0, -1.0, 0.0, -_parallel_response(study)):
            row[answers] = response * study.response_bound
            rows.append(row.copy())
    return np.array(rows)


def _cosine(study: Study) -> float:
    """Cosine of the worst pair whose responses are all ±Y: W²/2 with W² = Σ(wY/R)²."""
    one = (study.response_weight * study.response_bound / study.row_radius) ** 2
    return min(1.0, study.response_count * one / 2)


def _parallel_response(study: Study) -> float:
    w, v = (
        study.response_weight * study.row_radius,
        study.form.weights.square * study.response_bound,
    )
    return (1 - math.sqrt(1 - 2 * (w / v) ** 2)) / 2 if v * v > 2 * w * w else 0.5


def _random_rows(study: Study, rng: np.random.Generator, count: int) -> np.ndarray:
    """Directions on the sphere at lengths about R, corners, values far outside the ranges, and
    incomplete rows.
    """
    width = len(study.features) + 1
    rows = rng.normal(size=(count, width))
    rows *= (
        study.row_radius
        * rng.uniform(0.9, 1.5, (count, 1))
        / np.maximum(np.linalg.norm(rows[:, :-1], axis=1, keepdims=True), 1e-9)
    )
    kinds = np.arange(count) % 4
    answers = _answers(study)
    values = [-2.0, -1.0, -study.response_bound, 0.0, 0.3, study.response_bound, 1.0, 2.0]
    drawn = rng.choice(values, (count, len(answers)))
    corners = rng.choice([-1.0, 0.0, 1.0], (count, width), p=[0.45, 0.1, 0.45])
    rows[kinds == 1] = corners[kinds == 1]
    rows[kinds == 2] *= rng.choice([1.0, 10.0, 1e30], (count, 1))[kinds == 2]
    rows[:, answers] = drawn
    if study.missing != "refuse":
        incomplete = np.flatnonzero(kinds == 3)[: count // 20 + 1]
        rows[incomplete, rng.integers(0, width, len(incomplete))] = np.nan
    return _with_levels(study, rng, rows)


def _with_levels(study: Study, rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
    lowest = -1 if study.missing != "refuse" else 0
    for i, feature in enumerate(study.features):
        if feature.levels is not None:
            rows[:, i] = rng.integers(lowest, len(feature.all_levels), len(rows))
    return rows


def _moves(
    study: Study, rng: np.random.Generator, row: np.ndarray, scale: float, count: int
) -> np.ndarray:
    """The row itself and random moves of some of its coordinates."""
    rows = np.repeat(row[None], count, axis=0)
    step = (
        rng.normal(size=rows.shape)
        * scale
        * (rng.random(rows.shape) < rng.uniform(0.2, 1.0, (count, 1)))
    )
    rows = rows + step * min(1.0, study.row_radius)
    for i, feature in enumerate(study.features):
        if feature.levels is not None:
            change = rng.random(count) < 0.2
            rows[:, i] = np.where(change, rng.integers(0, len(feature.all_levels), count), row[i])
    return np.vstack([row, rows])


def splits(rng: np.random.Generator, rows: int, parts: int) -> list[slice]:
    """Cut so many rows into consecutive parts, some of them empty."""
    cuts = [0, *sorted(rng.integers(0, rows + 1, parts - 1).tolist()), rows]
    return [slice(*each) for each in pairwise(cuts)]
