"""Openings: after some corrections visits begin anew, in a map made of all that was told.

Covers `tacit.visits.opening`.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tacit import Study
from tacit.analyst.collection import collect
from tacit.analyst.fit import fit
from tacit.holder.charge import Purpose
from tacit.holder.visits import read_table, said
from tacit.release.places import PlacesRelease
from tacit.simulation import seeded, simulate
from tacit.visits.ask import next_question
from tacit.visits.opening import REOPENED, opening_of, reopened_after

ROWS = 3000
SLOPES = np.array([0.3, -0.3, 0.2, 0.4])


def study(visits, rows=(ROWS,), epsilon=1.0):
    return Study.from_document(
        {
            "name": "openings",
            "epsilon": epsilon,
            "delta": 1e-6,
            "response": {"name": "y", "range": [-3.0, 3.0]},
            "features": [{"name": f"x{k}", "range": [-4.0, 4.0]} for k in range(len(SLOPES))],
            "planned_rows": list(rows),
            "visits": visits,
        }
    )


def collinear(rng, rows):
    """Rows whose columns nearly lie in one direction: what is left of each is a tenth."""
    common = rng.standard_normal((rows, 1))
    x = common + 0.3 * rng.standard_normal((rows, len(SLOPES)))
    return np.column_stack([x, x @ SLOPES + 0.5 * rng.standard_normal(rows)])


def released(visits, epsilon=1.0):
    rng = np.random.default_rng(3)
    table = collinear(rng, ROWS)
    return table, simulate(study(visits, epsilon=epsilon), table, rng, holder="north")


def test_the_map_is_made_anew_where_as_many_corrections_follow():
    assert [reopened_after(study(visits)) for visits in range(2, 13)] == [0] * 6 + [REOPENED] * 5
    _, release = released(8)
    maps = [np.array(answer.question.map) for answer in release.answers[1:]]
    for place, matrix in enumerate(maps):
        assert_allclose(matrix, maps[0] if place < REOPENED else maps[-1])
    assert not np.allclose(maps[0], maps[-1])


def test_where_noise_hides_next_to_nothing_the_first_map_serves_to_the_end():
    assert reopened_after(study(10, rows=(20_000,))) == REOPENED
    assert reopened_after(study(10, rows=(50_000,))) == 0
    assert reopened_after(study(10, rows=(20_000,), epsilon=10.0)) == 0


@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_directions_are_nearer_to_one_length_in_the_later_map(epsilon):
    """Seeds are fixed; the ratio of lengths falls from 11 and 8 to 1.9 and 1.4."""
    table, release = released(10, epsilon)
    design = np.column_stack([np.ones(ROWS), table[:, :-1] / 4])
    ratios = []
    for answer in (release.answers[1], release.answers[-1]):
        mapped = design @ answer.question.matrix
        lengths = np.linalg.eigvalsh(np.cov(mapped[:, 1:].T))
        ratios.append(lengths[-1] / lengths[0])
    assert ratios[1] < 0.4 * ratios[0]


def test_whoever_has_the_releases_finds_the_same_map_and_offset():
    _, release = released(8)
    first, none = opening_of(release.study, [release], correction=REOPENED)
    later, before = opening_of(release.study, [release], correction=REOPENED + 1)
    assert (none, before) == (0, REOPENED)
    assert_allclose(first.map, release.answers[1].question.matrix)
    assert_allclose(first.theta, release.answers[1].question.start)
    assert_allclose(later.map, release.answers[REOPENED + 1].question.matrix)
    assert_allclose(later.theta, release.answers[REOPENED + 1].question.start)


def test_a_holder_that_leaves_before_the_new_opening_counts_up_to_it():
    """What it said is in the opening, and the fit is of those who stayed."""
    rng = np.random.default_rng(5)
    rows = (ROWS // 3,) * 3
    agreed = study(8, rows, epsilon=5.0)
    tables = [collinear(rng, count) for count in rows]
    messages = []
    while len(messages) == 0 or isinstance(messages[0], PlacesRelease) or not done(messages[0]):
        question = next_question(agreed, messages) if messages else None
        for j, table in enumerate(tables):
            before = messages[j] if len(messages) > j else None
            if j == 2 and question is not None and question.visit > REOPENED:
                continue
            purpose = Purpose(f"holder {j}", "simulated")
            rows_read = read_table(agreed, table, question)
            message = said(
                agreed, rows_read, question, before=before, purpose=purpose, sampler=seeded(rng)
            )
            messages[j : j + 1] = [message]
    stayed, _ = opening_of(agreed, messages[:2], correction=REOPENED + 1)
    everyone, _ = opening_of(agreed, messages, correction=REOPENED + 1)
    assert_allclose(everyone.theta, messages[0].answers[REOPENED + 1].question.start)
    assert not np.allclose(everyone.theta, stayed.theta)
    mean = fit(collect(messages, allow_simulated=True)).mean("scaled")
    assert_allclose(mean[1:], SLOPES * 4 / 3, atol=0.15)


def done(message):
    return len(message.answers) == message.study.visit_count - 1
