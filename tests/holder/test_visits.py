"""Several visits at a holder's: one message of a single holder, one a visit among several; the
ledger is charged once for all of them and admits no second answer.

Covers `tacit.holder.visits`, `tacit.holder.stage`, `tacit.holder.publish`, `tacit.visits.ask`,
`tacit.visits.first`, `tacit.release.question` and `tacit.release.places`.
"""

from itertools import pairwise
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

from tacit import Ledger, Release, Study, fit, publish
from tacit.errors import LedgerError, ReleaseError, StudyError, TableError
from tacit.holder import visits as holder_visits
from tacit.holder.statistics import statistics_of
from tacit.release.places import PlacesRelease
from tacit.release.question import Question, hash_of
from tacit.visits.ask import next_question

ROWS = 600


def study(visits=4, planned=(ROWS,), **fields):
    return Study.from_document(
        {
            "name": "visited",
            "epsilon": 3.0,
            "delta": 1e-6,
            "response": {"name": "y", "range": [-50.0, 100.0]},
            "features": [
                {"name": "a", "range": [0.0, 200.0]},
                {"name": "kind", "levels": ["x", "y"]},
            ],
            "planned_rows": list(planned),
            "visits": visits,
        }
        | fields
    )


def rows(seed=0, n=ROWS):
    rng = np.random.default_rng(seed)
    a = rng.normal(60, 8, n)
    kind = rng.integers(2, size=n)
    y = 3 + 0.2 * a + 2.0 * kind + rng.normal(0, 1, n)
    return {"a": a, "kind": np.array(["x", "y"])[kind], "y": y}


def charges(ledger):
    return [charge for account in Ledger(ledger).accounts() for charge in account.charges]


# Rows.


def test_a_long_row_is_shrunk_and_its_residual_is_not():
    """One row three times as long as the radius: X'X has its trace, r'r and X'r its whole residual.

    Shrinking the residual too, as one visit does the response, makes r'r a ninth.
    """
    agreed = study()
    question = Question(
        study_hash=agreed.hash,
        visit=2,
        map=tuple(map(tuple, np.eye(agreed.d).tolist())),
        offset=(0.0,) * agreed.d,
        radius=1 / 3,
        bound=1.0,
    )
    batch = pa.record_batch({"a": [100.0], "kind": ["x"], "y": [55.0]})  # (1, 0, 0), 0.4
    gram = statistics_of(agreed, [batch], question=question).floats()
    assert np.trace(gram[:-1, :-1]) == pytest.approx(1.0, rel=1e-4)
    assert gram[-1, -1] == pytest.approx(0.4**2, rel=1e-4)
    assert gram[0, -1] == pytest.approx(0.4, rel=1e-4)


# One holder.


def test_a_single_holders_visits_leave_as_one_message_for_one_charge(tmp_path):
    agreed = study()
    ledger = tmp_path / "ledger.db"
    release = publish(agreed, rows(), holder="north", ledger=ledger)
    (charge,) = charges(ledger)
    assert (charge.epsilon, charge.mu) == (3.0, agreed.mechanism().mu)
    assert charge.release == release.to_json()
    again = Release.from_json(release.to_json())
    assert again == release
    assert [answer.question.visit for answer in release.answers] == [2, 3, 4]
    assert release.n == ROWS


def test_every_question_is_made_of_the_answers_before_it(tmp_path):
    agreed = study()
    release = publish(agreed, rows(), holder="north", ledger=tmp_path / "l.db")
    answers = release.answers
    assert answers[0].question.after == (hash_of(release.visit.places),)
    for before, after in pairwise(answers):
        assert after.question.after == (hash_of(before),)
    assert answers[1].question.map == answers[2].question.map


@pytest.mark.usefixtures("same_noise")
def test_visits_tell_more_than_one_release_of_the_same_budget(tmp_path):
    table = rows(1, 4000)
    widths = []
    for visits in (1, 5):
        agreed = study(visits, (4000,), epsilon=1.0)
        release = publish(agreed, table, holder="north", ledger=tmp_path / f"{visits}.db")
        low, high = fit(release).interval(0.9)[1]
        widths.append(high - low)
    assert widths[1] < widths[0] / 4


def test_a_kill_between_visits_leaves_a_charge_that_is_finished_for_nothing(tmp_path):
    agreed = study()
    ledger = tmp_path / "ledger.db"
    real = holder_visits.read_table
    calls = []

    def dies(*given):
        calls.append(given)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*given)

    with (
        mock.patch.object(holder_visits, "read_table", dies),
        pytest.raises(KeyboardInterrupt),
    ):
        publish(agreed, rows(), holder="north", ledger=ledger)
    (charge,) = charges(ledger)
    assert charge.release is None
    release = publish(agreed, rows(), holder="north", ledger=ledger)
    (charge,) = charges(ledger)
    assert charge.release == release.to_json()
    with pytest.raises(LedgerError):
        publish(agreed, rows(), holder="north", ledger=ledger)


def test_a_table_without_rows_is_refused_before_it_is_paid(tmp_path):
    ledger = tmp_path / "ledger.db"
    empty = {name: values[:0] for name, values in rows().items()}
    with pytest.raises(TableError, match="no row"):
        publish(study(), empty, holder="north", ledger=ledger)
    assert not ledger.exists()


# Several holders.


def exchange(agreed, folder, tables):
    """Every visit of every holder by files; the last messages, and all questions."""
    names = ["north", "south", "west"][: len(tables)]
    messages = []
    questions = [None]
    for _ in range(agreed.visit_count):
        messages = [
            publish(
                agreed, table, holder=name, ledger=folder / f"{name}.db", question=questions[-1]
            )
            for name, table in zip(names, tables, strict=True)
        ]
        if len(questions) < agreed.visit_count:
            questions.append(next_question(agreed, messages))
    return messages, questions


@pytest.mark.usefixtures("same_noise")
def test_holders_answer_question_after_question_and_pay_once(tmp_path):
    agreed = study(4, (ROWS, ROWS))
    messages, questions = exchange(agreed, tmp_path, [rows(0), rows(1)])
    assert [question.visit for question in questions[1:]] == [2, 3, 4]
    for name in ("north", "south"):
        spent = charges(tmp_path / f"{name}.db")
        assert [charge.epsilon for charge in spent] == [3.0, 0.0, 0.0, 0.0]
        assert [charge.mu > 0 for charge in spent] == [True, False, False, False]
    posterior = fit(messages)
    low, high = posterior.interval(0.99)[1]
    assert high - low < 0.3
    low, high = posterior.interval(0.999)[1]
    assert low < 0.2 < high


def test_two_visits_have_no_places(tmp_path):
    agreed = study(2, (ROWS, ROWS))
    messages, _ = exchange(agreed, tmp_path, [rows(0), rows(1)])
    assert messages[0].visit.places is None
    assert [answer.question.visit for answer in messages[0].answers] == [1, 2]


def test_a_visit_is_answered_once_whatever_is_asked(tmp_path):
    agreed = study(3, (ROWS, ROWS))
    ledger = tmp_path / "north.db"
    first = publish(agreed, rows(), holder="north", ledger=ledger)
    assert isinstance(first, PlacesRelease)
    question = next_question(agreed, [first])
    publish(agreed, rows(), holder="north", ledger=ledger, question=question)
    other = question.model_copy(update={"offset": tuple(1.0 for _ in question.offset)})
    with pytest.raises(LedgerError, match="already"):
        publish(agreed, rows(), holder="north", ledger=ledger, question=other)
    with pytest.raises(LedgerError, match="already"):
        publish(agreed, rows(), holder="north", ledger=ledger)
    with pytest.raises(StudyError, match="answered once"):
        publish(agreed, rows(), holder="north", ledger=ledger, question=other, again=True)


def test_a_later_visit_needs_the_one_before_and_the_same_budget(tmp_path):
    agreed = study(4, (ROWS, ROWS))
    ledger = tmp_path / "north.db"
    first = publish(agreed, rows(), holder="north", ledger=ledger)
    question = next_question(agreed, [first])
    skipped = question.model_copy(update={"visit": 3})
    with pytest.raises(LedgerError, match="no answer to visit 2"):
        publish(agreed, rows(), holder="north", ledger=ledger, question=skipped)
    with pytest.raises(StudyError, match="those of the first visit"):
        publish(agreed, rows(), holder="north", ledger=ledger, question=question, epsilon=1.0)
    strange = question.model_copy(update={"study_hash": "sha256:" + "0" * 64})
    with pytest.raises(StudyError, match="another study"):
        publish(agreed, rows(), holder="north", ledger=ledger, question=strange)


def test_a_visit_that_was_paid_by_other_shares_is_not_followed_by_another(tmp_path, monkeypatch):
    """Of software that gave places more: with today's shares of the rest, all would be too much."""
    agreed = study(visits=10, planned=(ROWS, ROWS))
    monkeypatch.setattr(
        "tacit.study.visits.shares_of", lambda visits: (0.1, *[0.9 / (visits - 1)] * (visits - 1))
    )
    tables = [rows(seed) for seed in range(2)]
    ledgers = [tmp_path / f"{k}.db" for k in range(2)]
    pairs = zip(tables, ledgers, strict=True)
    first = [publish(agreed, table, holder="h", ledger=ledger) for table, ledger in pairs]
    question = next_question(agreed, first)
    monkeypatch.undo()
    with pytest.raises(ReleaseError, match=r"noise\.count is impossible"):
        publish(agreed, tables[0], holder="h", ledger=ledgers[0], question=question)


@pytest.mark.usefixtures("same_noise")
def test_a_holder_that_misses_the_last_visit_still_helps(tmp_path):
    agreed = study(4, (ROWS, ROWS))
    names = ["north", "south"]
    question = None
    messages = {}
    for visit in range(1, 5):
        for name, table in zip(names, [rows(0), rows(1)], strict=True):
            if (name, visit) == ("south", 4):
                continue
            messages[name] = publish(
                agreed, table, holder=name, ledger=tmp_path / f"{name}.db", question=question
            )
        if visit < 4:
            question = next_question(agreed, list(messages.values()))
    low, high = fit(list(messages.values())).interval(0.999)[1]
    assert low < 0.2 < high


@pytest.mark.usefixtures("same_noise")
def test_holders_of_unequal_budgets_of_whom_one_misses_visits(tmp_path):
    """Who spends more is asked again; the other's first answer still counts."""
    agreed = study(visits=4, planned=(ROWS, ROWS))
    budgets = {"north": 3.0, "south": 0.5}

    def visit(holder, question):
        return publish(
            agreed,
            rows(len(holder)),
            holder=holder,
            ledger=tmp_path / f"{holder}.db",
            question=question,
            epsilon=budgets[holder],
        )

    messages = [visit(holder, None) for holder in budgets]
    first = [visit(holder, next_question(agreed, messages)) for holder in budgets]
    with pytest.raises(ReleaseError, match="these are first answers"):
        fit(first)
    assert [release.epsilon for release in first] == [3.0, 0.5]
    north, south = first
    for _ in range(2):
        north = visit("north", next_question(agreed, [north, south]))
    posterior = fit([north, south])
    low, high = posterior.interval(0.999)[posterior.names().index("a")]
    assert low < 0.2 < high
    assert [each.epsilon for each in posterior.contributions] == [3.0, 0.5]


def test_answers_to_different_questions_are_refused_together(tmp_path):
    agreed = study(3, (ROWS, ROWS))
    alone = []
    for seed, name in enumerate(["north", "south"]):
        ledger = tmp_path / f"{name}.db"
        first = publish(agreed, rows(seed), holder=name, ledger=ledger)
        question = next_question(agreed, [first])
        alone.append(publish(agreed, rows(seed), holder=name, ledger=ledger, question=question))
    with pytest.raises(ReleaseError, match="different questions at visit 2"):
        next_question(agreed, alone)


# Documents.


def test_a_question_is_read_as_it_was_written(tmp_path):
    agreed = study(3, (ROWS, ROWS))
    first = publish(agreed, rows(), holder="north", ledger=tmp_path / "l.db")
    question = next_question(agreed, [first])
    question.save(tmp_path / "question.json")
    assert Question.load(tmp_path / "question.json") == question


def test_a_release_with_another_visits_noise_is_refused(tmp_path):
    release = publish(study(), rows(), holder="north", ledger=tmp_path / "l.db")
    document = release.document()
    document["visit"]["earlier"][0]["noise"]["xty"] /= 2
    with pytest.raises(ReleaseError, match=r"visit\.earlier"):
        Release.from_fields(document)


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"planned_rows": []}, "planned_rows"),
        ({"release": {"average": 2}}, "average"),
        ({"release": {"noise": "triangular"}}, "triangular"),
        ({"relation": "add-remove", "release": {"count": "withheld"}}, "number of rows"),
        ({"stage_one": "sha256:" + "0" * 64}, "stage_one"),
    ],
)
def test_a_study_of_visits_says_what_it_excludes(fields, rule):
    with pytest.raises(StudyError, match=rule):
        study(**fields)


@pytest.mark.parametrize("held", [0, 3], ids=["empty", "rows"])
def test_a_reader_is_refused_whatever_it_holds(tmp_path, held):
    """Later visits would find it empty; and a refusal of held rows alone would tell of them."""
    batch = pa.record_batch(rows()).slice(0, held)
    reader = pa.RecordBatchReader.from_batches(batch.schema, [batch])
    ledger = tmp_path / "ledger.db"
    with pytest.raises(TableError, match="can be read once alone"):
        publish(study(relation="add-remove"), reader, holder="h", ledger=ledger)
    assert not ledger.exists()
