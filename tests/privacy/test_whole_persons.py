"""The sensitivity for whole persons, attacked: an optimiser searches persons of 1 to 50 rows whose
exchange, or removal, moves the statistics most, through the real code.

Covers `tacit.holder.division` and `tacit.holder.persons`, with `tacit.privacy.sensitivity`.
"""

import numpy as np
import pyarrow as pa
import pytest
from neighbours import distance, make_study, table, worst_pair

from tacit.holder.division import Division
from tacit.holder.places import PLACES
from tacit.holder.statistics import STATISTICS, Statistics
from tacit.holder.tally import total_of
from tacit.holder.visits import mapped
from tacit.release.question import Question
from tacit.study import Study
from tacit.study.visits import placed, places_mechanism, statistics_form

RELATIONS = ("replace-one", "add-remove")
MOST_ROWS = 50


def person_study(seed: int, relation: str, **fields) -> Study:
    """Rows that fill a ball, in every release form by turns, with a person."""
    rng = np.random.default_rng(seed)
    ratio, radius = 10 ** rng.uniform(-1, 1), rng.uniform(0.3, 1.0)
    bound = min(1.0, radius / ratio)
    radius = ratio * bound
    release = {
        "row_radius": radius,
        "response_bound": bound,
        "response_weight": radius / bound * float(np.exp(rng.uniform(-2, 2))),
        "response_square": bool(seed % 2),
        "noise": ["frobenius", "triangular"][seed % 2],
    }
    if relation == "add-remove":
        release["count"] = ["noisy", "withheld", "public"][seed % 3]
    return make_study(
        int(rng.integers(2, 9)),
        seed=seed,
        relation=relation,
        intercept=False,
        person="id",
        release=release | fields,
    )


def persons_table(study: Study, persons: list[np.ndarray]) -> pa.Table:
    """Rows of persons, in unit coordinates, mixed."""
    rows = table(study, np.vstack(persons))
    ids = np.repeat(np.arange(len(persons)), [len(person) for person in persons])
    mixed = np.random.default_rng(len(ids)).permutation(len(ids))
    batch = rows.append_column("id", pa.array(ids)).take(pa.array(mixed))
    return pa.Table.from_batches([batch])


def statistics(
    study: Study, persons: list[np.ndarray], question: Question | None = None
) -> Statistics:
    if not persons:
        return Statistics.zero(study)
    tally = STATISTICS if question is None else mapped(question)
    return total_of(tally, study, persons_table(study, persons))


def change(study: Study, first, second, others=(), question: Question | None = None) -> float:
    """How far the statistics move when one person takes the place of another, or leaves."""
    rest = [*others] if study.relation == "add-remove" else [*others, second]
    before = statistics(study, [*others, first], question)
    return distance(study, before, statistics(study, rest, question), question)


def attack(
    study: Study,
    rng: np.random.Generator,
    rounds: int = 40,
    question: Question | None = None,
) -> float:
    """The largest change found: persons of rows about the worst ones, improved by random moves."""
    plain = study.model_copy(update={"person": None})
    pair = worst_pair(plain, rng, rounds=20, question=question)
    second = pair.first if pair.second is None else pair.second
    sizes = rng.integers(1, MOST_ROWS + 1, 2)
    persons = [
        np.repeat(row[None], m, axis=0) for row, m in zip((pair.first, second), sizes, strict=True)
    ]
    best = change(study, *persons, question=question)
    for scale in np.geomspace(0.5, 1e-4, rounds):
        moved = [_moved(study, rng, person, scale) for person in persons]
        if (further := change(study, *moved, question=question)) > best:
            best = further
            persons = moved
    return best


def _moved(study: Study, rng, person: np.ndarray, scale: float) -> np.ndarray:
    """Some rows of a person moved, now and then one more or one less."""
    step = rng.normal(size=person.shape) * scale * (rng.random((len(person), 1)) < 0.3)
    moved = person + step * min(1.0, study.row_radius)
    if rng.random() < 0.2 and len(moved) > 1:
        return moved[1:]
    if rng.random() < 0.2 and len(moved) < MOST_ROWS:
        return np.vstack([moved, moved[:1]])
    return moved


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("seed", range(18))
def test_an_optimiser_reaches_the_claim_and_never_exceeds_it(relation, seed):
    study, rng = person_study(seed, relation), np.random.default_rng(seed)
    found = attack(study, rng)
    assert 0.99 * study.form.sensitivity <= found <= study.form.sensitivity


@pytest.mark.parametrize("relation", RELATIONS)
def test_other_persons_do_not_matter(relation):
    study, rng = person_study(1, relation), np.random.default_rng(4)
    width = len(study.features) + 1
    others = [rng.uniform(-1.5, 1.5, (m, width)) for m in rng.integers(1, 20, 10)]
    first, second = rng.uniform(-1.5, 1.5, (2, 30, width))
    assert change(study, first, second) == pytest.approx(
        change(study, first, second, others), rel=1e-12
    )


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("seed", range(4))
def test_random_persons_stay_below_the_claim(relation, seed):
    """Also with an intercept, levels, missing values and the smallest eigenvalue."""
    study = make_study(
        2,
        (3,),
        seed=seed,
        relation=relation,
        person="id",
        release={"smallest_eigenvalue": bool(seed % 2)},
    )
    rng = np.random.default_rng(seed)
    for _ in range(30):
        others, first, second = (
            _random_person(rng, int(rng.integers(1, MOST_ROWS + 1))) for _ in range(3)
        )
        assert change(study, first, second, [others]) <= study.form.sensitivity


def _random_person(rng, rows: int) -> np.ndarray:
    person = np.column_stack(
        [rng.uniform(-2, 2, (rows, 2)), rng.integers(-1, 3, rows), rng.uniform(-2, 2, rows)]
    )
    if rng.random() < 0.5:
        person[:] = person[0]
    return person


@pytest.mark.parametrize("relation", RELATIONS)
def test_rows_that_are_not_divided_are_caught(relation, monkeypatch):
    monkeypatch.setattr(Division, "_factors", lambda _self, rows: np.ones_like(rows))
    study = person_study(2, relation)
    assert attack(study, np.random.default_rng(2)) > 2 * study.form.sensitivity


@pytest.mark.parametrize("relation", RELATIONS)
def test_rows_that_are_rounded_up_are_caught(relation, monkeypatch):
    """Without the slack for rounding a person of many rows passes the bound."""
    study = person_study(2, relation, response_bound=3e-4, row_radius=3e-3, response_weight=10.0)
    honest = attack(study, np.random.default_rng(2))
    assert honest <= study.form.sensitivity
    monkeypatch.setattr(Division, "_factors", lambda _self, rows: 1 / np.sqrt(rows))
    assert attack(study, np.random.default_rng(2)) > study.form.sensitivity


# Visits.


def visit_of_persons(seed: int, relation: str) -> tuple[Study, Question]:
    """Persons in a study of three visits, and a turned and stretched map that fills the ball."""
    rng = np.random.default_rng(seed)
    count = {} if relation == "replace-one" else {"count": ["noisy", "public"][seed % 2]}
    fields = {"relation": relation, "person": "id", "visits": 3, "release": count}
    fields["planned_rows"] = [5000, 5000]
    study = make_study(int(rng.integers(2, 9)), seed=seed, intercept=False, **fields)
    turned, _ = np.linalg.qr(rng.normal(size=(study.d, study.d)))
    size = 10 ** rng.uniform(-3, 3)
    question = Question(
        study_hash=study.hash,
        visit=2,
        map=tuple(map(tuple, (size * turned).tolist())),
        offset=tuple((1e-3 * rng.normal(size=study.d)).tolist()),
        radius=size * study.row_radius * rng.uniform(0.1, 0.8),
        bound=study.response_bound * rng.uniform(0.1, 0.8),
    )
    return study, question


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("seed", range(4))
def test_an_optimiser_reaches_the_claim_of_a_visit_and_never_exceeds_it(relation, seed):
    study, question = visit_of_persons(seed, relation)
    claimed = statistics_form(study).sensitivity
    moved = attack(study, np.random.default_rng(seed), question=question)
    assert 0.99 * claimed <= moved <= claimed


@pytest.mark.parametrize("relation", RELATIONS)
def test_rows_that_are_not_divided_at_a_visit_are_caught(relation, monkeypatch):
    monkeypatch.setattr(Division, "_factors", lambda _self, rows: np.ones_like(rows))
    study, question = visit_of_persons(2, relation)
    moved = attack(study, np.random.default_rng(2), rounds=5, question=question)
    assert moved > 2 * statistics_form(study).sensitivity


# Where values lie.


def places(study: Study, persons: list[np.ndarray]) -> np.ndarray:
    """The weighted sums of persons, by the holder's own code."""
    columns = len(placed(study)) + 1
    weights = [np.sqrt(columns), *[1.0] * columns, *[np.sqrt(2)] * columns]
    sums = total_of(PLACES, study, persons_table(study, persons))
    return np.array(sums[1:], dtype=float) * 2.0**-36 * weights


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("seed", range(6))
def test_the_places_of_persons_keep_to_the_sensitivity_of_rows(relation, seed):
    rng = np.random.default_rng(seed)
    several = {"visits": 3, "planned_rows": [9]}
    study = make_study(1 + seed % 3, seed=seed, relation=relation, person="id", **several)
    claimed = places_mechanism(study, study.budget()).sensitivity
    width = len(study.features) + 1
    others = [rng.uniform(-1, 1, (3, width))]
    largest = 0.0
    for _ in range(60):
        sizes = rng.integers(1, MOST_ROWS + 1, 2)
        first, second = (rng.choice([-1.0, 0.3, 1.0, np.nan], (m, width)) for m in sizes)
        if rng.random() < 0.5:
            first[:] = 1.0
            second[:] = -1.0
        rest = others if relation == "add-remove" else [*others, second]
        apart = np.linalg.norm(places(study, [*others, first]) - places(study, rest))
        assert apart <= claimed
        largest = max(largest, apart)
    assert largest >= 0.99 * claimed


def test_places_of_rows_that_are_not_divided_are_caught(monkeypatch):
    study = make_study(2, person="id", visits=3, planned_rows=[9])
    persons = [np.ones((30, 3)), -np.ones((30, 3))]
    claimed = places_mechanism(study, study.budget()).sensitivity
    apart = places(study, persons[:1]) - places(study, persons[1:])
    assert np.linalg.norm(apart) <= claimed
    monkeypatch.setattr(Division, "roots", staticmethod(np.ones_like))
    apart = places(study, persons[:1]) - places(study, persons[1:])
    assert np.linalg.norm(apart) > 2 * claimed
