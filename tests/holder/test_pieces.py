"""A table read in pieces by several processes is the table read by one, to the last bit and word.

Covers `tacit.holder.pieces`, `tacit.holder.processes`, `tacit.holder.worker`, `tacit.rows.pieces`,
`tacit.holder.tally` and `tacit.cores`.
"""

import io
import json
import os
import signal
import sys
import threading
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from studies import AGE, BMI, agreed

from tacit import cores as tacit_cores
from tacit.errors import TableError
from tacit.holder import pieces, processes, worker
from tacit.holder.encode import Diagnostics
from tacit.holder.pieces import Adder, Part, Task
from tacit.holder.places import PLACES
from tacit.holder.publish import publish, rehearse
from tacit.holder.rehearse import SEEN
from tacit.holder.statistics import STATISTICS, statistics_of
from tacit.holder.tally import total_of
from tacit.holder.visits import mapped
from tacit.holder.watch import Watch
from tacit.release.question import Question
from tacit.rows import pieces as rows_pieces
from tacit.rows.pieces import Files, batch_rows
from tacit.rows.table import table_of
from tacit.rows.written import Format
from tacit.study.grid import GRID

SEX = {"name": "sex", "levels": ["f", "m"], "other": "other"}
STUDY = agreed([AGE, SEX, BMI])
COUNT = 3000
QUOTED = "Mrs Brown, 1234.5"
GROUP = 250


def columns(**changed):
    rng = np.random.default_rng(3)
    plain = {
        "age": rng.uniform(10, 90, COUNT),
        "sex": rng.choice(["f", "m", "x", None], COUNT).tolist(),
        "bmi": np.where(rng.random(COUNT) < 0.01, np.nan, rng.normal(28, 6, COUNT)),
        "days": rng.uniform(1, 40, COUNT),
    }
    return pa.table(plain | changed)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Files of every kind that has pieces and one that has none; small pieces are shared out."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rows_pieces, "PIECE_CELLS", 2 * GROUP * 4)
    monkeypatch.setattr(pieces, "LEAST_WORK", 1)
    table = columns()
    (tmp_path / "rows").mkdir()
    pq.write_table(table, "rows/a.parquet", row_group_size=GROUP)
    pyarrow.feather.write_feather(table, "rows/b.feather", "uncompressed", chunksize=GROUP)
    pyarrow.csv.write_csv(table, "rows/c.csv")
    return tmp_path


@pytest.fixture
def use(monkeypatch):
    """Say how many processes there are."""
    return lambda count: monkeypatch.setenv(processes.VARIABLE, str(count))


@pytest.fixture
def idle(monkeypatch):
    """This process only listens: all pieces are read by workers."""
    take = processes._Crew._take
    monkeypatch.setattr(
        processes._Crew,
        "_take",
        lambda crew, *, wait: take(crew, wait=True) if wait else -1,
    )


def workers():
    """Threads that lead a worker; each ends with its process."""
    return [thread for thread in threading.enumerate() if "_lead" in thread.name]


def question():
    """One that maps rows, as a later visit's does."""
    d = STUDY.d
    return Question(
        study_hash=STUDY.hash,
        visit=2,
        map=tuple(tuple(row) for row in np.eye(d).tolist()),
        offset=(0.0,) * d,
        radius=2.0,
        bound=1.0,
    )


def test_pieces_follow_from_the_files_and_cover_them(folder):
    found = Files(tuple(sorted((folder / "rows").iterdir())), STUDY.table_names).pieces()
    by_name = defaultdict(list)
    for each in found:
        by_name[each.path.name].append(each)
    groups = COUNT // GROUP
    for name in ("a.parquet", "b.feather"):
        spans = [(each.first, each.first + each.parts) for each in by_name[name]]
        assert [span[0] for span in spans] == [0, *(span[1] for span in spans[:-1])]
        assert spans[-1][1] == groups
        assert len(spans) > 1
    assert [(each.first, each.parts) for each in by_name["c.csv"]] == [(0, None)]


def test_many_columns_are_read_in_fewer_rows():
    assert batch_rows(20) == 2**16
    assert batch_rows(128) == 2**14
    assert batch_rows(10_000) == 2**13


@pytest.mark.usefixtures("idle")
def test_the_total_is_the_same_by_workers(use):
    totals = []
    for count in (1, 3):
        use(count)
        read = []
        totals.append(total_of(STATISTICS, STUDY, "rows", on_rows=read.append).numbers)
        assert sum(read) == 3 * COUNT
    whole = statistics_of(STUDY, pa.concat_tables([columns()] * 3).to_batches())
    assert totals == [whole.numbers, whole.numbers]


def test_a_later_visit_is_the_same_by_this_process_and_another(use):
    totals = []
    for count in (1, 2):
        use(count)
        totals.append(total_of(mapped(question()), STUDY, "rows").numbers)
    assert totals[0] == totals[1]
    assert totals[0] != total_of(STATISTICS, STUDY, "rows/a.parquet").numbers


@pytest.mark.parametrize("tally", [PLACES, SEEN, STATISTICS], ids=["places", "seen", "statistics"])
def test_every_tally_reaches_a_worker_and_adds_up_by_pieces(use, tally):
    use(1)
    assert worker.tally_of(tally.name, tally.question) is tally
    whole = tally.to_numbers(total_of(tally, STUDY, columns()))
    assert tally.to_numbers(total_of(tally, STUDY, "rows/a.parquet")) == whole


def test_a_task_and_its_answer_survive_the_way_to_another_process(folder):
    form = Format(missing=("-999",), columns={"age": "age"})
    files = Files((folder / "rows/a.parquet",), STUDY.table_names, form)
    task = Task(STATISTICS, files, is_counted=True, is_watched=True)
    adder = worker.adder_of(json.loads(json.dumps(task.plain(STUDY))))
    for piece in files.pieces():
        there = json.loads(json.dumps(adder.part(piece, lambda _rows: None).plain()))
        here = Adder(task, STUDY).part(piece, lambda _rows: None)
        assert Part.from_plain(STUDY, there).plain() == here.plain()


@pytest.mark.usefixtures("idle")
def test_a_rehearsal_says_the_same_by_workers(use):
    said = []
    for count in (1, 3):
        use(count)
        said.append(str(rehearse(STUDY, "rows", holder="north", ledger="ledger.db")))
    assert said[0] == said[1]
    assert "a.parquet:" in said[0]


def test_what_pieces_saw_is_what_one_reading_saw():
    table = columns()
    whole = Diagnostics(watch=Watch(STUDY, GRID))
    total_of(SEEN, STUDY, table, diagnostics=whole)
    parts = Diagnostics(watch=Watch(STUDY, GRID))
    for start in range(0, COUNT, GROUP):
        part = Diagnostics(watch=Watch(STUDY, GRID))
        total_of(SEEN, STUDY, table.slice(start, GROUP), diagnostics=part)
        parts.add(part)
    assert (parts.rows, parts.shrunk, parts.incomplete) == (
        whole.rows,
        whole.shrunk,
        whole.incomplete,
    )
    for name, seen in whole.watch.numbers.items():
        joined = parts.watch.numbers[name]
        for figure in ("rows", "missing", "unreadable", "below", "above", "least", "most"):
            assert getattr(joined, figure) == getattr(seen, figure), figure
        assert joined.rows_outside == seen.rows_outside
        assert joined.rows_missing == seen.rows_missing
        assert (joined.bins == seen.bins).all()
    sex = parts.watch.levels["sex"]
    assert sex.rows_unknown == whole.watch.levels["sex"].rows_unknown
    assert sex.strangers == whole.watch.levels["sex"].strangers
    assert (parts.watch.lengths.bins == whole.watch.lengths.bins).all()


def test_counts_of_a_piece_before_any_row_was_seen_are_added():
    parts = Diagnostics()
    parts.add(Diagnostics(rows=2, shrunk=1, incomplete=1, clamped={"age": 3}))
    parts.add(Diagnostics(rows=1, clamped={"age": 1}))
    assert parts == Diagnostics(rows=3, shrunk=1, incomplete=1, clamped={"age": 4})


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.usefixtures("idle")
def test_the_first_refusal_is_the_one_that_is_told(use, count):
    strict = agreed([AGE, {"name": "sex", "levels": ["f", "m", "x"]}, BMI], missing="refuse")
    full = {"sex": ["f"] * COUNT, "bmi": np.full(COUNT, 20.0)}
    sex = ["f"] * COUNT
    sex[GROUP * 5] = "unheard-of"
    bmi = full["bmi"].copy()
    bmi[-1] = np.nan
    pq.write_table(columns(sex=sex, bmi=bmi), "mixed.parquet", row_group_size=GROUP)
    use(count)
    with pytest.raises(TableError, match="'sex' holds a level") as told:
        publish(strict, "mixed.parquet", holder="north", ledger="ledger.db")
    assert "unheard-of" not in str(told.value)
    assert not Path("ledger.db").exists()


@pytest.mark.usefixtures("idle")
def test_a_worker_that_is_killed_ends_it_all_in_one_sentence_unpaid(use, monkeypatch, capfd):
    use(2)
    monkeypatch.setattr(processes, "AHEAD", 1)  # so that some pieces are left to be read

    def kill(_rows):
        for task in Path("/proc/self/task").iterdir():
            for child in (task / "children").read_text(encoding="ascii").split():
                os.kill(int(child), signal.SIGKILL)

    with pytest.raises(TableError, match="ended from outside"):
        publish(STUDY, "rows", holder="north", ledger="ledger.db", on_rows=kill)
    assert not Path("ledger.db").exists()
    assert "".join(capfd.readouterr()) == ""
    assert not workers()


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (TableError("a sentence"), TableError, "a sentence"),
        (MemoryError(QUOTED), TableError, "not enough memory"),
        (ZeroDivisionError(QUOTED), RuntimeError, "failed with ZeroDivisionError"),
    ],
    ids=["refused", "memory", "unforeseen"],
)
def test_what_goes_wrong_in_a_worker_is_told_without_quoting_a_row(error, kind, words):
    class Failing:
        def part(self, _piece, _on_rows):
            raise error

    heard = worker.answer(Failing(), None, io.BytesIO())
    with pytest.raises(kind, match=words) as told:
        processes.answered(*heard)
    assert QUOTED not in str(told.value)


def test_a_refusal_of_this_process_waits_for_its_turn(monkeypatch):
    class Absent:
        process = None

        def begin(self, _task):
            return False

    monkeypatch.setattr(processes, "_Worker", Absent)
    monkeypatch.setattr(processes._Crew, "dismiss", lambda _crew: None)

    def here(place):
        if place == 1:
            raise TableError("the second")
        return place

    answers = processes.shared_out({}, [[], [], []], 2, lambda _rows: None, here)
    assert next(answers) == 0
    with pytest.raises(TableError, match="the second"):
        next(answers)


def test_without_a_worker_the_table_is_read_here(use, monkeypatch):
    use(2)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert total_of(STATISTICS, STUDY, "rows").n == 3 * COUNT


@pytest.mark.usefixtures("idle")
def test_who_stops_listening_leaves_no_process_behind(use):
    use(2)

    def stop(_rows):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        total_of(STATISTICS, STUDY, "rows", on_rows=stop)
    assert not workers()


def test_own_codes_for_missing_values_are_taken_out_of_every_piece(use):
    pq.write_table(columns(bmi=np.full(COUNT, -999.0)), "coded.parquet", row_group_size=GROUP)
    use(1)
    table = table_of("coded.parquet", STUDY, form=Format(missing=("-999",)))
    counted = Diagnostics()
    total_of(STATISTICS, STUDY, table, diagnostics=counted)
    assert counted.incomplete == COUNT
    assert table.readings()[0].given == COUNT


@pytest.mark.parametrize("said", ["0", "-1", "two", "1.5"])
def test_a_number_of_processes_that_is_none_is_refused(use, said):
    use(said)
    with pytest.raises(TableError, match="must be a whole number from 1 on"):
        processes.process_count()


def test_a_container_gets_its_share_of_cores(monkeypatch, tmp_path):
    monkeypatch.delenv(processes.VARIABLE, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(8)), raising=False)
    monkeypatch.setattr(tacit_cores, "QUOTA", tmp_path / "cpu.max")
    assert processes.process_count() == 8
    for text, cores in (("max 100000", 8), ("250000 100000", 3), ("50000 100000", 1)):
        (tmp_path / "cpu.max").write_text(text + "\n", encoding="ascii")
        assert processes.process_count() == cores
    monkeypatch.setattr(sys, "executable", "")
    assert processes.process_count() == 1


def test_a_small_table_starts_no_process(use, monkeypatch):
    use(2)
    monkeypatch.setattr(pieces, "LEAST_WORK", 10**8)
    monkeypatch.setattr(sys, "executable", "/nowhere")
    assert total_of(STATISTICS, STUDY, "rows").n == 3 * COUNT


def test_the_command_takes_the_number_of_processes(tacit, house, monkeypatch):
    monkeypatch.setenv(processes.VARIABLE, "7")
    code, _, told = tacit(
        *("publish", "study.toml", "table.csv", "--holder", "north", "--out", "north.json"),
        *("--processes", "3", "--anyway"),
    )
    assert code == 0, told
    assert processes.process_count() == 3
    assert (house / "north.json").exists()
