"""A stream: exact batches whatever the pieces, one charge, no batch twice, none lost in silence,
and a log that agrees with the ledger.

Covers `tacit.holder.stream.partial`, `tacit.holder.stream.publish`, `tacit.holder.stream.ledger`.
"""

import itertools
import json
import os
import sqlite3
from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit.errors import BudgetError, LedgerError, ReleaseError, StudyError, TableError
from tacit.holder.chain import GENESIS
from tacit.holder.charge import Purpose
from tacit.holder.ledger import Ledger
from tacit.holder.ledger_file import _SCHEMA
from tacit.holder.persons import counted_alone
from tacit.holder.publish import publish
from tacit.holder.statistics import statistics_of
from tacit.holder.stream import partial
from tacit.holder.stream import publish as streaming
from tacit.holder.stream.ledger import Batch, Terms, find_stream, record_batch
from tacit.holder.stream.log import open_log
from tacit.privacy.gaussian import mu_of
from tacit.release import Release
from tacit.release.log import Entry, LogReader
from tacit.release.signature import new_key, verify
from tacit.rows.arriving import Text
from tacit.study import Study

PLAIN = {
    "name": "stream-test",
    "epsilon": 1.0,
    "delta": 1e-6,
    "response": {"name": "y", "range": [0, 1]},
    "features": [{"name": "x", "range": [0, 1]}],
}
STUDY = Study.from_document(PLAIN)
SUM = {"holders": {"a": "A" * 43 + "=", "b": "B" * 43 + "="}, "least": 2, "colluding": 0}
RNG = np.random.default_rng(5)
ROWS = pa.record_batch({"x": RNG.random(100), "y": RNG.random(100)})


def pieces(*edges, rows=ROWS):
    return [rows.slice(a, b - a) for a, b in itertools.pairwise(edges)]


@pytest.fixture
def run(tmp_path):
    """Run a stream in a house with a ledger and a log."""

    def runs(batches, study=STUDY, **options):
        options = {
            "holder": "north",
            "batch_rows": 30,
            "ledger": tmp_path / "ledger.db",
            "log": tmp_path / "north.log",
        } | options
        return tacit.stream(study, batches, **options)

    runs.ledger, runs.log = Ledger(tmp_path / "ledger.db"), tmp_path / "north.log"
    return runs


def logged(path):
    return [(entry.batch, entry.release.n) for entry in LogReader(path).entries()]


def written(path, rows, header="x,y\n"):
    with path.open("a", encoding="utf-8") as file:
        file.write(
            header
            + "".join(
                f"{x},{y}\n"
                for x, y in zip(rows["x"].to_pylist(), rows["y"].to_pylist(), strict=True)
            )
        )


# Batches.


@settings(max_examples=12, deadline=None)
@given(cuts=st.lists(st.integers(0, 100), max_size=10), batch_rows=st.integers(1, 120))
def test_any_pieces_give_the_exact_statistics_of_the_same_batches(
    tmp_path_factory, cuts, batch_rows
):
    folder, found, privatise = tmp_path_factory.mktemp("split"), [], streaming.privatise

    def looks(study, statistics, purpose):
        found.append(statistics)
        return privatise(study, statistics, purpose)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streaming, "privatise", looks)
        options = {
            "holder": "n",
            "ledger": folder / "l.db",
            "log": folder / "n.log",
            "publish_rest": True,
        }
        tacit.stream(STUDY, pieces(*sorted([0, *cuts, 100])), batch_rows=batch_rows, **options)
    wanted = [
        statistics_of(STUDY, [ROWS.slice(start, batch_rows)]) for start in range(0, 100, batch_rows)
    ]
    assert [one.n for one in found] == [one.n for one in wanted]
    assert all((one.gram == other.gram).all() for one, other in zip(found, wanted, strict=True))


def test_full_batches_are_published_and_the_rest_is_reported_as_lost(run):
    heard = []
    report = run(pieces(0, 45, 100), on_batch=heard.append)
    assert (report.published, report.rows, report.waiting) == (3, 90, 0)
    assert report.lost == [Batch(4, 91, 100)]
    assert [(one.number, one.first_row, one.last_row, one.entry is None) for one in heard] == [
        (1, 1, 30, False),
        (2, 31, 60, False),
        (3, 61, 90, False),
        (4, 91, 100, True),
    ]
    assert logged(run.log) == [(1, 30), (2, 30), (3, 30)]


def test_a_second_run_goes_on_under_the_one_charge(run):
    run(pieces(0, 60))
    report = run(pieces(60, 100), publish_rest=True)
    assert report.lost == []
    assert logged(run.log) == [(1, 30), (2, 30), (3, 30), (4, 10)]
    (account,) = run.ledger.accounts()
    (charge,) = account.charges
    assert (charge.mu, charge.batches, charge.release) == (STUDY.mechanism().mu, 4, None)
    assert account.epsilon_left == 0
    assert len({entry.release.xtx for entry in LogReader(run.log).entries()}) == 4


def test_a_file_keeps_its_place_and_loses_nothing(run, tmp_path):
    path = tmp_path / "rows.csv"
    written(path, ROWS.slice(0, 70))
    assert run(Text(STUDY, path, idle=0)).waiting == 10
    assert run(Text(STUDY, path, idle=0)).published == 0
    written(path, ROWS.slice(70, 25), header="")
    report = run(Text(STUDY, path, idle=0))
    assert (report.published, report.waiting, report.lost) == (1, 5, [])
    assert run(Text(STUDY, path, idle=0), publish_rest=True).rows == 5
    assert logged(run.log) == [(1, 30), (2, 30), (3, 30), (4, 5)]
    assert [(b["first_row"], b["last_row"]) for b in batches(run.ledger)] == [
        (1, 30),
        (31, 60),
        (61, 90),
        (91, 95),
    ]


def batches(ledger):
    with closing(sqlite3.connect(ledger.path)) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM batch ORDER BY number")]


def test_what_a_broken_run_took_is_reported_when_the_stream_goes_on(run):
    def breaks():
        yield ROWS.slice(0, 50)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        run(breaks())
    report = run(pieces(50, 100))
    assert report.lost == [Batch(2, 31, 50), Batch(4, 81, 100)]
    assert logged(run.log) == [(1, 30), (3, 30)]


def test_rows_taken_are_noted_before_they_are_used(run, monkeypatch):
    seen, add = [], partial._Sums.add

    def looks(self, rows):
        with closing(sqlite3.connect(run.ledger.path)) as database:
            seen.append(database.execute("SELECT taken FROM stream").fetchone()[0])
        add(self, rows)

    monkeypatch.setattr(partial._Sums, "add", looks)
    run(pieces(0, 20, 50, 60))
    assert seen == [20, 50, 50, 60]


def test_no_row_costs_nothing_and_leaves_nothing(run, tmp_path):
    assert run([]).stream is None
    assert list(tmp_path.iterdir()) == []


def test_each_release_is_signed(run, tmp_path):
    public = new_key(tmp_path / "north.key")
    run(pieces(0, 60), key=tmp_path / "north.key")
    for entry in LogReader(run.log).entries():
        verify(entry.release)
        assert entry.release.signature.public_key == public


# The charge.


def test_the_charge_is_durable_before_noise_is_drawn(run, monkeypatch):
    privatise, found = streaming.privatise, []

    def looks(*arguments):
        found.extend(charge.mu for account in run.ledger.accounts() for charge in account.charges)
        return privatise(*arguments)

    monkeypatch.setattr(streaming, "privatise", looks)
    run(pieces(0, 30))
    assert found == [STUDY.mechanism().mu]


def test_a_person_in_several_batches_is_paid_for(run):
    run(pieces(0, 30), batches_per_person=4)
    (charge,) = run.ledger.accounts()[0].charges
    assert charge.mu == 2 * STUDY.mechanism().mu
    assert mu_of(charge.epsilon, charge.delta) == pytest.approx(charge.mu, rel=1e-9)
    (entry,) = LogReader(run.log).entries()
    assert entry.release.epsilon == STUDY.epsilon


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1e-3, 1e-15), (0.1, 1e-9), (1.0, 1e-6), (3.0, 1e-3), (10.0, 0.1)]
)
def test_a_limit_of_what_a_stream_costs_admits_it_however_often_a_person_comes(epsilon, delta):
    study = Study.from_document(PLAIN | {"epsilon": epsilon, "delta": delta})
    for count in range(2, 20):
        charge = streaming._stream_charge(study, Purpose("north"), count)
        assert charge.mu <= mu_of(charge.epsilon, charge.delta) <= charge.mu * (1 + 1e-6)


def test_an_exhausted_budget_refuses_a_stream_before_anything_is_written(run):
    other = Study.from_document(PLAIN | {"name": "other"})
    publish(other, ROWS, holder="north", ledger=run.ledger)
    with pytest.raises(BudgetError):
        run(pieces(0, 60))
    assert not run.log.exists()


def test_a_study_is_published_as_a_table_or_as_a_stream(run):
    run(pieces(0, 60))
    run.ledger.set_limit("default", 10, 1e-6)
    with pytest.raises(LedgerError, match="published from data set 'default' already"):
        publish(STUDY, ROWS, holder="north", ledger=run.ledger)
    publish(STUDY, ROWS, holder="north", ledger=run.ledger, dataset="other", new_dataset=True)
    with pytest.raises(LedgerError, match="published from data set 'other' already"):
        run(pieces(0, 60), dataset="other", new_dataset=True, log=run.log.with_name("other.log"))


@pytest.mark.parametrize(
    "other",
    [
        {"batch_rows": 31},
        {"holder": "south"},
        {"epsilon": 0.5},
        {"delta": 1e-7},
        {"batches_per_person": 2},
    ],
    ids=str,
)
def test_a_stream_keeps_to_its_terms(run, other):
    run(pieces(0, 60))
    with pytest.raises(LedgerError, match="has a stream of this study with"):
        run(pieces(60, 100), **other)
    assert logged(run.log) == [(1, 30), (2, 30)]


def test_a_stream_keeps_to_its_source(run, tmp_path):
    run(pieces(0, 60))
    written(tmp_path / "rows.csv", ROWS)
    with pytest.raises(
        LedgerError, match="source: data set 'default' has a stream of this study with '-'"
    ):
        run(Text(STUDY, tmp_path / "rows.csv", idle=0))


@pytest.mark.parametrize(
    ("change", "options", "rule"),
    [
        ({"relation": "add-remove"}, {}, 'set release.count = "public"'),
        ({"relation": "add-remove", "release": {"count": "withheld"}}, {}, "public number of rows"),
        ({"release": {"smallest_eigenvalue": True}}, {}, "do not add up"),
        ({"release": {"average": 4}}, {}, "needs all rows of a batch at once"),
        ({"planned_rows": [900], "visits": 3, "release": {}}, {}, "forgets its rows"),
        ({"secure_sum": SUM}, {}, "a secure sum alone"),
        ({}, {"batch_rows": 0}, "batch_rows must be at least 1"),
        ({}, {"batches_per_person": 0}, "batches_per_person must be at least 1"),
        ({}, {"epsilon": 2.0}, "epsilon must lie between"),
        ({}, {"holder": "two\nlines"}, "holder"),
        ({}, {"log": "nowhere/north.log"}, "cannot write"),
    ],
    ids=str,
)
def test_what_cannot_be_streamed_is_found_before_it_is_paid(run, tmp_path, change, options, rule):
    with pytest.raises((StudyError, ReleaseError), match=rule):
        run(pieces(0, 60), study=Study.from_document(PLAIN | change), **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["rows.parquet", "rows.feather", "rows.csv.gz"])
def test_a_file_that_has_no_lines_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"PAR1")
    with pytest.raises(
        TableError, match="stream a CSV file, or publish this one with `tacit publish`"
    ):
        Text(STUDY, tmp_path / name, idle=0)


def test_a_wrong_table_is_found_before_it_is_paid(run, tmp_path):
    with pytest.raises(TableError, match="exactly one column named 'x'"):
        run([pa.record_batch({"y": [0.5]})])
    assert list(tmp_path.iterdir()) == []


def test_add_remove_streams_with_a_public_count(run):
    study = Study.from_document(PLAIN | {"relation": "add-remove", "release": {"count": "public"}})
    run(pieces(0, 60), study=study)
    assert logged(run.log) == [(1, 30), (2, 30)]


# The ledger and the log.


def test_an_old_ledger_is_opened_and_goes_on(run):
    with closing(sqlite3.connect(run.ledger.path)) as database:
        database.executescript(_SCHEMA)
        database.execute(f"PRAGMA application_id = {0x7AC17}")
        database.execute("INSERT INTO dataset VALUES ('old', 'replace-one', 1.0, 1e-6)")
        database.execute(
            "INSERT INTO charge VALUES (1, 'old', 's', 'h', 'n', 1.0, 1e-6, 0.2, "
            "'2026-01-31T09:30:00Z', 'text')"
        )
        database.commit()
    assert run.ledger.release(1) == "text"
    assert run.ledger.receipt(1).head != GENESIS
    run(pieces(0, 60), new_dataset=True)
    assert [(a.dataset, a.charges[0].batches) for a in run.ledger.accounts()] == [
        ("default", 2),
        ("old", None),
    ]


def test_the_ledger_gives_the_log_again(run):
    run(pieces(0, 90))
    assert run.ledger.release(1) == run.log.read_text(encoding="utf-8")


def test_a_batch_is_in_the_ledger_before_it_is_in_the_log(run, monkeypatch):
    append, found = streaming.LogFile.append, []

    def looks(self, text):
        found.append(batches(run.ledger)[-1]["entry"] == text.decode())
        append(self, text)

    monkeypatch.setattr(streaming.LogFile, "append", looks)
    run(pieces(0, 60))
    assert found == [True, True]


@pytest.mark.parametrize("kept", [0.0, 0.2, 0.5, 0.99, "line", "gone"])
def test_a_log_that_was_cut_is_mended_from_the_ledger(run, kept):
    run(pieces(0, 90))
    whole = run.log.read_bytes()
    if kept == "gone":
        run.log.unlink()
    else:
        run.log.write_bytes(
            whole[: whole.index(b"\n") + 1 if kept == "line" else int(kept * len(whole))]
        )
    report = run([])
    assert run.log.read_bytes() == whole
    assert report.mended == {0.0: 3, 0.2: 3, 0.5: 2, 0.99: 1, "line": 2, "gone": 3}[kept]
    assert run([]).mended == 0


@pytest.mark.parametrize("change", ["first", "last", "longer", "other"])
def test_a_log_that_holds_something_else_is_refused_and_left_alone(run, change):
    run(pieces(0, 90))
    whole = run.log.read_bytes()
    changed = {
        "first": b"x" + whole[1:],
        "last": whole[:-2] + b"!\n",
        "longer": whole + b"{",
        "other": b"notes\n",
    }[change]
    run.log.write_bytes(changed)
    with pytest.raises(ReleaseError, match="holds something else than this stream's releases"):
        run(pieces(90, 100))
    assert run.log.read_bytes() == changed


def test_a_new_stream_wants_a_log_of_its_own(run):
    run.log.write_text("notes\n", encoding="utf-8")
    with pytest.raises(ReleaseError, match="holds something else"):
        run(pieces(0, 60))
    assert not run.ledger.path.exists()


def test_two_processes_cannot_run_one_stream(run):
    run(pieces(0, 30))
    with open_log(run.log), pytest.raises(ReleaseError, match="another process writes"):
        run(pieces(30, 60))


def test_the_ledger_takes_each_number_once(run):
    run(pieces(0, 30))
    charge = run.ledger.accounts()[0].charges[0]
    progress = find_stream(run.ledger, charge, Terms(30, 1, "-"))
    with pytest.raises(LedgerError, match="batch 1 of this stream is in the ledger already"):
        record_batch(run.ledger, progress, Batch(1, 1, 30, "again"), None)
    assert logged(run.log) == [(1, 30)]


def test_a_log_that_cannot_grow_says_where_the_batch_is(run, monkeypatch):
    def full(*_arguments):
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr("tacit.holder.stream.log.os.write", full)
        with pytest.raises(
            ReleaseError, match="the ledger has the batch, and a later run will log it"
        ):
            run(pieces(0, 30))
    assert run([]).mended == 1
    assert logged(run.log) == [(1, 30)]


# A line.


def test_a_line_reads_back_and_holds_the_release_as_its_file_would(run):
    run(pieces(0, 30))
    (line,) = run.log.read_bytes().splitlines(keepends=True)
    entry = Entry.from_line(line)
    assert entry.to_line().encode() == line
    fields = json.loads(line)
    assert set(fields) == {"format", "version", "stream", "batch", "release"}
    assert Release.from_json(json.dumps(fields["release"])) == entry.release


@pytest.mark.parametrize(
    "change",
    [
        {"format": "x"},
        {"version": 2},
        {"batch": 0},
        {"batch": True},
        {"batch": "1"},
        {"stream": "a b"},
        {"release": []},
        {"more": 1},
    ],
    ids=str,
)
def test_a_changed_line_is_refused_with_its_place(run, change):
    run(pieces(0, 30))
    fields = json.loads(run.log.read_text(encoding="utf-8"))
    run.log.write_text(json.dumps(fields | change) + "\n", encoding="utf-8")
    with pytest.raises(ReleaseError, match=r"north\.log, line 1: "):
        list(LogReader(run.log).entries())


# Persons.

PERSONS = Study.from_document(PLAIN | {"person": "who", "missing_person": "alone"})
VISITS = ROWS.append_column("who", pa.array(RNG.integers(0, 12, 100)))


@pytest.mark.parametrize("pieces_of", [(0, 100), (0, 7, 8, 55, 100)])
def test_a_persons_rows_are_counted_within_each_batch(run, monkeypatch, pieces_of):
    found, privatise = [], streaming.privatise

    def looks(study, statistics, purpose):
        found.append(statistics)
        return privatise(study, statistics, purpose)

    monkeypatch.setattr(streaming, "privatise", looks)
    run(pieces(*pieces_of, rows=VISITS), study=PERSONS, batch_rows=40, publish_rest=True)
    for start, one in zip((0, 40, 80), found, strict=True):
        batch = counted_alone(VISITS.slice(start, 40), "who")
        wanted = statistics_of(PERSONS, [batch])
        assert one.n == wanted.n == len(set(batch.column("who").to_pylist()))
        assert (one.gram == wanted.gram).all()
    assert [n for _, n in logged(run.log)] == [one.n for one in found]


def test_text_gives_the_same_and_a_row_without_a_person_is_alone(run, tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("x,y,who\n0.1,0.2,a\n0.3,0.4,a\n0.5,0.6,\n0.7,0.8\n")
    with path.open("rb") as file:
        source = Text(PERSONS, descriptor=file.fileno())
        report = run(source, study=PERSONS, batch_rows=4)
    assert report.published == 1
    assert logged(run.log) == [(1, 3)]


def test_a_stream_stops_at_a_row_without_a_person_where_the_study_says_so(run):
    study = Study.from_document(PLAIN | {"person": "who"})
    unknown = VISITS.set_column(2, "who", pa.nulls(100, pa.int64()))
    with pytest.raises(TableError, match="without a person"):
        run([unknown], study=study)
