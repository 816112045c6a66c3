"""Broken table files, odd cells: one sentence, exit code 2, nothing half-written, no cell quoted.

Covers `tacit.cli.publish` and `tacit.rows.table`.
"""

import gzip
import io
import math
import shutil

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from fuzzing import (
    AGREED,
    SECRET,
    examples,
    fuzz,
    mutated_bytes,
    one_sentence,
    rows,
    tacit,
)
from hypothesis import strategies as st

from tacit.demo.hospitals import STUDY
from tacit.errors import TableError
from tacit.holder.statistics import statistics_of
from tacit.release import Release
from tacit.rows.table import table_of


def stored(kind):
    """The bytes of a whole table file of a kind."""
    sink = io.BytesIO()
    if kind == "table.parquet":
        pq.write_table(rows(), sink)
    elif kind == "table.feather":
        pyarrow.feather.write_feather(rows(), sink, compression="uncompressed")
    elif kind == "table.arrow":
        with pa.ipc.new_stream(sink, rows().schema) as writer:
            writer.write_table(rows())
    else:
        pyarrow.csv.write_csv(rows(), sink)
    return gzip.compress(sink.getvalue(), mtime=0) if kind.endswith(".gz") else sink.getvalue()


KINDS = ["table.csv", "table.csv.gz", "table.parquet", "table.feather", "table.arrow"]


@pytest.fixture
def house(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    return tmp_path


def publish_file(house, name, content):
    """Publish a table file and check what must hold whatever was in it."""
    (house / name).write_bytes(content)
    arguments = (
        "study.toml",
        name,
        "--holder",
        "north",
        "--out",
        "north.json",
        "--ledger",
        "books/ledger.db",
        "--local-diagnostics",
    )
    code, out, err = tacit(house, "publish", *arguments)
    left = {path.name for path in house.rglob("*") if path.is_file()} - {"study.toml", name}
    if code == 0:
        assert left == {"north.json", "ledger.db", "ledger.db.head"}
        Release.load(house / "north.json")
    else:
        one_sentence(code, out, err)
        assert left == set(), "nothing half-written, and nothing paid"
    for text in (
        out,
        err,
        *(
            path.read_bytes().decode("latin-1")
            for path in house.rglob("*")
            if path.is_file() and path.name in left
        ),
    ):
        assert SECRET not in text
        assert (
            "7731" not in text.replace("sha256:", "") or code == 0
        )  # digits may occur by chance in noisy numbers
    shutil.rmtree(house / "books", ignore_errors=True)
    (house / "north.json").unlink(missing_ok=True)
    (house / name).unlink()
    return code


@pytest.mark.parametrize("name", KINDS)
def test_the_whole_file_is_published(house, name):
    assert publish_file(house, name, stored(name)) == 0


@pytest.mark.parametrize("name", KINDS)
@examples(70, 1000)
def test_damaged_table_files(number, house, name):
    fuzz(number, mutated_bytes(stored(name)), lambda content: publish_file(house, name, content))


@pytest.mark.parametrize("name", KINDS)
@examples(25, 400)
def test_random_bytes_as_tables(number, house, name):
    heads = st.sampled_from(
        [
            b"",
            b"PAR1",
            b"ARROW1\x00\x00",
            b"\x1f\x8b\x08\x00",
            b"age,bmi,sex,admission,days\n",
            b"\xff\xff\xff\xff\x10\x00\x00\x00",
        ]
    )
    strategy = st.tuples(heads, st.binary(max_size=80)).map(
        lambda parts: parts[0] + SECRET.encode() + parts[1]
    )
    fuzz(number, strategy, lambda content: publish_file(house, name, content))


CELLS = st.sampled_from(
    [
        *(
            "50",
            "1e400",
            "-inf",
            "NaN",
            "-nan",
            "0x10",
            "1_000",
            "1,5",
            " 7 ",
            "٣",
            "1.5.2",
            "--1",
            "+3",
            "true",
            "NA",
            "",
            "null",
            '""',
            '"',
        ),
        *(
            SECRET,
            f'"{SECRET}\n{SECRET}"',
            f"{SECRET},{SECRET}",
            f"7731{SECRET}",
            f"'{SECRET}'",
            f"\x00{SECRET}",
            f"\ufeff{SECRET}",
            f"{SECRET}\r",
        ),
        *(
            "female",
            "male",
            "planned",
            "emergency",
            "Female",
            "x" * 5000,
            "\U0001f4a5",
            "\\",
            "a\tb",
            f"#{SECRET}",
            f"{{{SECRET}}}",
            f"%s{SECRET}%n",
        ),
        f"In CSV column #7731: CSV conversion error to double: invalid value '{SECRET}'",
        f"Column '{SECRET}' in include_columns does not exist",
    ]
)


@examples(150, 3000)
def test_odd_cells(number, house):
    row = st.lists(CELLS, min_size=5, max_size=5) | st.lists(CELLS, max_size=7)
    good = ["50", "25", "female", "planned", "3"]
    one_bad = st.tuples(st.integers(0, 4), CELLS).map(
        lambda change: [*good[: change[0]], change[1], *good[change[0] + 1 :]]
    )

    def check(lines):
        text = "\n".join(["age,bmi,sex,admission,days", *(",".join(line) for line in lines)])
        publish_file(house, "table.csv", text.encode())

    fuzz(number, st.lists(row | one_bad | st.just(good), max_size=5), check)


@examples(40, 1000)
def test_odd_headers(number, house):
    names = st.permutations(["age", "bmi", "sex", "admission", "days"]) | st.lists(
        CELLS | st.sampled_from(["age", "days", "AGE"]), max_size=6
    )

    def check(header):
        publish_file(
            house,
            "table.csv",
            (",".join(header) + f"\n50,25,female,planned,3\n{SECRET},1,1,1,1\n").encode(),
        )

    fuzz(number, names, check)


TYPES = [
    *(
        pa.null(),
        pa.bool_(),
        pa.int8(),
        pa.uint64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
    ),
    *(
        pa.large_binary(),
        pa.binary(10),
        pa.date32(),
        pa.date64(),
        pa.time32("s"),
        pa.time64("us"),
        pa.timestamp("s"),
        pa.timestamp("ns", "UTC"),
    ),
    *(
        pa.duration("s"),
        pa.month_day_nano_interval(),
        pa.decimal128(10, 2),
        pa.decimal256(40, 3),
        pa.list_(pa.string()),
        pa.struct([("a", pa.string())]),
    ),
    *(
        pa.map_(pa.string(), pa.string()),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.float64()),
        pa.list_view(pa.int8()),
    ),
    *(
        pa.run_end_encoded(pa.int32(), pa.string()),
        pa.dense_union([pa.field("a", pa.int8())]),
        pa.uuid(),
        pa.bool8(),
        pa.float16(),
    ),
    pa.dictionary(pa.uint32(), pa.string_view()),
]


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("name", ["age", "sex", "days"])
def test_columns_of_any_type(kind, name):
    column = pa.nulls(2, kind)
    if (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary(kind)
    ):
        column = pa.array([SECRET, None], pa.string()).cast(kind)
    elif pa.types.is_floating(kind):
        column = pa.array([math.inf, math.nan], kind)
    table = rows(2)
    table = table.set_column(table.schema.get_field_index(name), name, column)
    try:
        statistics_of(AGREED, table_of(table, AGREED).batches())
    except TableError as error:
        assert SECRET not in str(error)  # noqa: PT017
