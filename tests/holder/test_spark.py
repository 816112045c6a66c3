"""Spark tables on a small cluster of processes: the statistics of a local table to the bit, and
nothing of a row on the driver.

Covers `tacit.holder.spark` and `tacit.holder.tally`.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from studies import agreed

from tacit.errors import TableError
from tacit.holder.encode import Diagnostics
from tacit.holder.ledger import Ledger
from tacit.holder.persons import repeats
from tacit.holder.places import PLACES
from tacit.holder.publish import publish
from tacit.holder.spark import numbers_of_partitions, repeats_in, total_of_partitions
from tacit.holder.statistics import STATISTICS, Statistics
from tacit.holder.tally import total_of
from tacit.holder.visits import mapped
from tacit.release import Release
from tacit.release.question import Question
from tacit.study import Study

if not shutil.which("java") and not os.environ.get("CI"):
    pytest.skip("Spark needs Java, which is not installed", allow_module_level=True)

pytestmark = pytest.mark.xdist_group("spark")  # one cluster, not one per process

SECRET = "SECRET6614"  # noqa: S105
STUDY = agreed()
COUNT = 100_000
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Virtual machines of a minute are not worth a thorough compilation."""
ROWS_SQL = (
    "CAST(id * 37 % 103 AS INT) AS age",
    "CAST(id * 7 % 3 + 1 AS STRING) AS ward",
    "CASE WHEN id % 50 = 0 THEN NULL ELSE CAST(id * 11 % 410 AS DECIMAL(9, 1)) / 10 END AS bmi",
    "(id * 13 % 3111) / 100.0D AS days",
)


def rows(count=COUNT):
    """The same rows as `ROWS_SQL`, made here."""
    ids = np.arange(count)
    bmi = pa.array(np.where(ids % 50 == 0, np.nan, (ids * 11 % 410) / 10), from_pandas=True)
    ward = (ids * 7 % 3 + 1).astype(str)
    return pa.table(
        {"age": ids * 37 % 103, "ward": ward, "bmi": bmi, "days": (ids * 13 % 3111) / 100.0}
    )


@pytest.fixture(scope="module")
def spark():
    """Two workers with an executor each, in processes of their own; the driver may collect a
    megabyte and no more.
    """
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "1g",
        "spark.driver.maxResultSize": "1m",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.executor.extraJavaOptions": SHORT_LIVED,
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("tacit-test")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def frame_of(spark, count=COUNT, partitions=7):
    return spark.range(0, count, 1, partitions).selectExpr(*ROWS_SQL)


def same(first, second):
    return first.n == second.n and np.array_equal(first.gram, second.gram)


# Exactness.


@pytest.mark.parametrize("partitions", [1, 12])
def test_the_statistics_are_those_of_a_local_table(spark, partitions):
    counted, expected, read = Diagnostics(), Diagnostics(), []
    total = total_of(
        STATISTICS,
        STUDY,
        frame_of(spark, partitions=partitions),
        diagnostics=counted,
        on_rows=read.append,
    )
    assert same(total, total_of(STATISTICS, STUDY, rows(), diagnostics=expected))
    assert counted == expected
    assert list(counted.clamped) == list(expected.clamped)
    assert sum(read) == COUNT


def test_a_visits_sums_are_those_of_a_local_table(spark):
    """Places and mapped rows, whose map travels to the executors."""
    study = Study.from_document(STUDY.document() | {"planned_rows": [COUNT], "visits": 3})
    assert total_of(PLACES, study, frame_of(spark)) == total_of(PLACES, study, rows())
    question = Question(
        study_hash=study.hash,
        visit=2,
        map=(np.eye(study.d) + 0.1).tolist(),
        offset=[0.1] * study.d,
        radius=1.5,
        bound=0.5,
    )
    asked = mapped(question)
    assert same(total_of(asked, study, frame_of(spark)), total_of(asked, study, rows()))


def test_few_rows_and_none_are_tables_too(spark):
    for count in (0, 3):
        assert same(
            total_of(STATISTICS, STUDY, frame_of(spark, count, 5)),
            total_of(STATISTICS, STUDY, rows(count)),
        )


def test_names_are_taken_by_the_letter(spark):
    study = agreed([{"name": name, "range": [0, 100]} for name in ("a.b", "Age", "age", "`x`")])
    columns = {
        "a.b": [1.0, 2.0],
        "Age": [3.0, 4.0],
        "age": [50.0, 60.0],
        "`x`": [7.0, 9.0],
        "days": [1.0, 2.0],
    }
    frame = spark.createDataFrame(list(zip(*columns.values(), strict=True)), list(columns))
    assert same(total_of(STATISTICS, study, frame), total_of(STATISTICS, study, columns))


def test_whole_numbers_keep_all_of_the_statistics():
    gram = np.array([[2**70, -3], [-3, 5]], dtype=object)
    study = agreed([])
    there = Statistics(2**40, gram)
    back = Statistics.from_numbers(study, there.numbers)
    assert same(back, there)
    assert (
        vars(back).keys() == vars(there).keys() == {"n", "gram", "average"}
    )  # a new field must travel too


def test_a_study_that_averages_rows_needs_its_table_in_one_piece():
    averaging = agreed(release={"average": 2})
    with pytest.raises(TableError, match="must be read in one piece"):
        total_of_partitions(
            STATISTICS, averaging, None, diagnostics=None, on_rows=lambda _rows: None
        )


# What reaches the driver.


def test_the_driver_collects_as_many_numbers_as_there_are_statistics(spark):
    frame = frame_of(spark, partitions=12)
    with pytest.raises(Exception, match="maxResultSize"):
        frame.collect()  # rows would not fit through
    collected = numbers_of_partitions(STATISTICS, STUDY, frame, count=False)
    numbers = collected.collect()
    d = STUDY.d + 1
    assert len(numbers) == 2 + d * (d + 1) // 2
    assert {row["kind"] for row in numbers} == {"total", "read"}
    plan = collected._jdf.queryExecution().executedPlan().toString()
    steps = [line.strip(" :+-*()0123456789") for line in plan.splitlines()]
    assert next(k for k, step in enumerate(steps) if "HashAggregate" in step) < next(
        k for k, step in enumerate(steps) if "MapInArrow" in step
    )


def test_publishing_charges_once_and_signs_nothing_of_a_row(spark, tmp_path):
    release = publish(STUDY, frame_of(spark), holder="north", ledger=tmp_path / "ledger.db")
    assert release.n == COUNT
    expected = np.ldexp(total_of(STATISTICS, STUDY, rows()).gram.astype(float), -36)
    error = np.abs(release.gram - expected[:-1, :-1]) / release.noise.xtx_diagonal
    assert error.max() < 7  # 15 Gaussian entries: false alarm below 1e-10
    (account,) = Ledger(tmp_path / "ledger.db").accounts()
    assert account.epsilon_left == 0


# Errors.


def refusal(source, study=STUDY):
    with pytest.raises(TableError) as caught:
        total_of(STATISTICS, study, source)
    sentence = str(caught.value)
    assert SECRET not in sentence
    assert "\n" not in sentence
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return sentence


def test_an_error_on_an_executor_comes_back_as_its_sentence(spark):
    frame = frame_of(spark, 1000, 2)
    late = frame.selectExpr(
        "age", f"CASE WHEN age = 77 THEN '{SECRET}' ELSE ward END AS ward", "bmi", "days"
    )
    assert refusal(late).startswith("column 'ward' holds a level that the study does not list")
    assert "'bmi' must hold numbers" in refusal(
        frame.selectExpr("age", "ward", "current_date() AS bmi", "days")
    )
    assert "'bmi' must hold numbers" in refusal(
        frame.selectExpr("age", "ward", f"named_struct('a', '{SECRET}') AS bmi", "days")
    )
    assert "missing values" in refusal(frame, agreed(missing="refuse"))


def test_an_error_inside_spark_is_not_quoted(spark, tmp_path):
    frame = frame_of(spark, 1000, 2).selectExpr(
        "CAST(concat(ward, 'SECRET', '6614') AS INT) AS age", "ward", "bmi", "days"
    )
    with pytest.raises(TableError, match="Spark could not read the table") as caught:
        publish(STUDY, frame, holder="north", ledger=tmp_path / "ledger.db")
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__
    assert not (tmp_path / "ledger.db").exists()


def test_an_absent_or_doubled_column_is_named(spark):
    assert "exactly one column named 'bmi'" in refusal(frame_of(spark).drop("bmi"))
    assert "exactly one column named 'age'" in refusal(frame_of(spark).selectExpr("*", "age"))


# A killed executor.


def slowed(frame, folder):
    """The same rows, each partition after a pause; a file per run of a partition tells which
    process ran it.
    """

    def pause(batches):
        import psutil
        from pyspark import TaskContext

        executor = psutil.Process().parent().ppid()
        yield from batches
        time.sleep(0.5)
        name = f"{TaskContext.get().partitionId()}-{TaskContext.get().taskAttemptId()}"
        (folder / name).write_text(str(executor))

    return frame.mapInArrow(pause, frame.schema)


def kill_the_first(folder, killed):
    """Kill the executor that finished a partition first, once four partitions are done: their
    results were its to keep.
    """
    while len(runs := sorted(folder.iterdir(), key=os.path.getmtime)) < 4:
        time.sleep(0.05)
    victim = int(runs[0].read_text())
    os.kill(victim, 9)
    killed.append(victim)


def test_a_killed_executor_changes_nothing(spark, tmp_path):
    killed = []
    (tmp_path / "runs").mkdir()
    killer = threading.Thread(target=kill_the_first, args=(tmp_path / "runs", killed))
    killer.start()
    total = total_of(STATISTICS, STUDY, slowed(frame_of(spark, partitions=12), tmp_path / "runs"))
    killer.join()
    partitions = [path.name.split("-")[0] for path in (tmp_path / "runs").iterdir()]
    executors = {path.read_text() for path in (tmp_path / "runs").iterdir()}
    assert len(killed) == 1
    assert len(set(partitions)) == 12
    assert len(partitions) > 12  # the killed executor's partitions were computed again
    assert len(executors) > 1
    assert same(total, total_of(STATISTICS, STUDY, rows()))


# The command.


def command(folder, *arguments):
    program = [
        sys.executable,
        "-c",
        "from tacit.cli import main; main()",
        "publish",
        "study.toml",
        *arguments,
        "--holder",
        "north",
    ]
    environment = os.environ | {
        "TACIT_LEDGER": str(folder / "ledger.db"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    environment.pop("PYSPARK_PYTHON", None)
    return subprocess.run(
        [*program, "--out", "north.json"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


STUDY_FILE = """name = "spark-test"
epsilon = 1
delta = 1e-6
response = { name = "days", range = [0, 30] }
features = [
    { name = "age", range = [18, 100] },
    { name = "ward", levels = ["1", "2", "3"] },
    { name = "bmi", range = [15, 50] },
]
"""


@pytest.mark.slow
def test_the_command_reads_a_folder_of_parquet_files(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY_FILE)
    (tmp_path / "stays").mkdir()
    for part in range(3):
        pq.write_table(rows().slice(part * 1000, 1000), tmp_path / "stays" / f"{part}.parquet")
    done = command(
        tmp_path,
        "--spark-table",
        f"parquet.`{tmp_path}/stays`",
        "--spark-master",
        "local[2]",
        "--json",
        "--anyway",  # a third of bmi is beyond its range, which would be asked about
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["epsilon_left"] == 0
    assert Release.load(tmp_path / "north.json").n == 3000


@pytest.mark.slow
def test_the_command_shows_no_value_when_spark_fails(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY_FILE)
    (tmp_path / "stays").mkdir()
    levels = rows(100).set_column(1, "ward", pa.array([SECRET] * 100))
    for name, table in (("a", rows(100)), ("b", levels)):
        pq.write_table(table, tmp_path / "stays" / f"{name}.parquet")
    done = command(
        tmp_path, "--spark-table", f"parquet.`{tmp_path}/stays`", "--spark-master", "local[2]"
    )
    assert done.returncode == 2
    assert "column 'ward' holds a level" in done.stderr
    other = rows(100).set_column(0, "age", pa.array([SECRET] * 100))
    pq.write_table(other, tmp_path / "stays" / "b.parquet")
    failed = command(
        tmp_path, "--spark-table", f"parquet.`{tmp_path}/stays`", "--spark-master", "local[2]"
    )
    assert failed.returncode == 2
    absent = command(tmp_path, "--spark-table", "no.such_table")
    assert "Spark has no table 'no.such_table'" in absent.stderr
    assert SECRET not in done.stdout + done.stderr + failed.stdout + failed.stderr
    assert not (tmp_path / "ledger.db").exists()
    assert not Path(tmp_path / "north.json").exists()


def test_a_missing_extra_is_named():
    code = (
        "import sys; sys.modules['pyspark'] = None; "
        "from tacit.holder.spark import spark_table; spark_table('x')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith(
        "TableError: Spark tables need the extra spark: pip install 'tacit-dp[spark]'"
    )


# Persons.


@pytest.mark.parametrize("partitions", [1, 12])
def test_persons_are_counted_on_the_executors(spark, partitions):
    study = agreed(person="who", missing_person="alone")
    count = 50_000
    who = "CASE WHEN id % 1000 = 7 THEN NULL ELSE CAST(id * 31 % 5003 AS DOUBLE) END AS who"
    frame = spark.range(0, count, 1, partitions).selectExpr(*ROWS_SQL, who)
    ids = np.arange(count)
    whose = pa.array(ids * 31 % 5003, mask=ids % 1000 == 7)
    expected = total_of(STATISTICS, study, rows(count).append_column("who", whose))
    found = total_of(STATISTICS, study, frame)
    assert same(found, expected)
    assert found.n == 5003 + count // 1000
    with pytest.raises(TableError, match="without a person"):
        total_of(STATISTICS, agreed(person="who"), frame)
    assert repeats_in(frame, "who") == repeats(
        pa.table({"who": whose.cast(pa.float64())}).to_batches(), "who"
    )
