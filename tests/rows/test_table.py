"""Where rows come from: every source of the same rows gives the same statistics, and no error
quotes a value.

Covers `tacit.rows.table`, `tacit.rows.arrow` and `tacit.rows.drivers`.
"""

import gzip
import zipfile
from xml.sax.saxutils import escape

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pyreadstat
import pytest
from studies import agreed

from tacit.errors import TableError
from tacit.holder.statistics import statistics_of
from tacit.rows.packages import READERS
from tacit.rows.table import ARROW, BATCH_ROWS, SUFFIXES, TEXT, table_of
from tacit.study import Study

STUDY = agreed()
NAMES = ["age", "ward", "bmi", "days"]
SECRET = "SECRET7731"  # noqa: S105


def rows(count=1000, seed=3):
    rng = np.random.default_rng(seed)
    return {
        "id": np.arange(count),
        "days": np.round(rng.gamma(2, 4, count), 2),
        "bmi": np.where(rng.random(count) < 0.02, np.nan, np.round(rng.normal(28, 6, count), 1)),
        "age": rng.integers(10, 110, count),
        "note": np.array([f"{SECRET}, with a comma" for _ in range(count)]),
        "ward": rng.integers(1, 4, count),
    }


COLUMNS = rows()
TABLE = pa.table(COLUMNS).set_column(2, "bmi", pa.array(COLUMNS["bmi"], from_pandas=True))


def same(first, second):
    return first.n == second.n and np.array_equal(first.gram, second.gram)


def read(source, study=STUDY):
    return statistics_of(study, table_of(source, study).batches())


EXPECTED = read(TABLE)


# Writers: how each kind of file is made.


def write_delimited(table, path):
    options = pyarrow.csv.WriteOptions(delimiter="\t" if ".tsv" in path.suffixes else ",")
    with pa.output_stream(path) as stream:
        pyarrow.csv.write_csv(table, stream, options)


def write_stream(table, path):
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=300)


def frame(table):
    return table.to_pandas()


def write_sheet(table, path):
    book = openpyxl.Workbook()
    book.active.append(table.column_names)
    for row in table.to_pylist():
        book.active.append(list(row.values()))
    book.save(path)


def write_open_document(table, path):
    """A minimal OpenDocument sheet: only what the format asks for."""

    def cell(value):
        if value is None:
            return "<table:table-cell/>"
        if isinstance(value, str):
            return (
                '<table:table-cell office:value-type="string">'
                f"<text:p>{escape(value)}</text:p></table:table-cell>"
            )
        return f'<table:table-cell office:value-type="float" office:value="{value!r}"/>'

    rows = [table.column_names, *(list(row.values()) for row in table.to_pylist())]
    body = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
    space = "urn:oasis:names:tc:opendocument:xmlns"
    content = (
        f'<?xml version="1.0"?><office:document-content xmlns:office="{space}:office:1.0" '
        f'xmlns:table="{space}:table:1.0" xmlns:text="{space}:text:1.0"><office:body>'
        f'<office:spreadsheet><table:table table:name="Sheet">{body}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = (
        f'<?xml version="1.0"?><m:manifest xmlns:m="{space}:manifest:1.0">'
        f'<m:file-entry m:full-path="/" m:media-type="{kind}"/></m:manifest>'
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", kind)
        archive.writestr("META-INF/manifest.xml", manifest)
        archive.writestr("content.xml", content)


WRITERS = {
    "table.csv": write_delimited,
    "table.csv.gz": write_delimited,
    "table.tsv": write_delimited,
    "table.tsv.gz": write_delimited,
    "table.parquet": lambda table, path: pq.write_table(table, path, row_group_size=170),
    "table.feather": lambda table, path: pyarrow.feather.write_feather(table, path, chunksize=300),
    "table.arrow": write_stream,
    "table.txt": write_delimited,
    "table.txt.gz": write_delimited,
    "table.xlsx": write_sheet,
    "table.xlsm": write_sheet,
    "table.ods": write_open_document,
    "table.dta": lambda table, path: pyreadstat.write_dta(frame(table), path),
    "table.sav": lambda table, path: pyreadstat.write_sav(frame(table), path),
    "table.zsav": lambda table, path: pyreadstat.write_sav(frame(table), path, compress=True),
    "table.xpt": lambda table, path: pyreadstat.write_xport(frame(table), path),
}
UNWRITTEN = {".xls", ".xlsb", ".sas7bdat"}
"""Kinds of file for which there is a reader and no writer that could be used here."""
MEMORY = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas, nullable types": lambda: pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas, categorical": lambda: pd.DataFrame(COLUMNS).astype({"ward": "category"}),
    "Polars": lambda: pl.DataFrame(COLUMNS, nan_to_null=True),
    "Polars, NaN kept": lambda: pl.DataFrame(COLUMNS),
    "Arrow table": lambda: TABLE,
    "Arrow table in chunks": lambda: pa.concat_tables(
        [TABLE.slice(0, 1), TABLE.slice(1, 700), TABLE.slice(701)]
    ),
    "Arrow record batch": lambda: TABLE.combine_chunks().to_batches()[0],
    "Arrow reader": lambda: TABLE.to_reader(max_chunksize=77),
    "mapping of NumPy": lambda: COLUMNS,
    "mapping of lists": lambda: {name: column.tolist() for name, column in COLUMNS.items()},
    "NumPy matrix": lambda: np.column_stack([COLUMNS[name] for name in NAMES]),
    "NumPy matrix, column-major": lambda: np.asfortranarray(
        np.column_stack([COLUMNS[name] for name in NAMES])
    ),
}


def test_every_kind_of_file_is_tried():
    written = {f".{name.split('.', 1)[1]}" for name in WRITERS}
    assert written | UNWRITTEN == set(SUFFIXES)


@pytest.mark.parametrize("name", WRITERS)
def test_every_kind_of_file_gives_the_same_statistics(tmp_path, name):
    WRITERS[name](TABLE, tmp_path / name)
    assert same(read(tmp_path / name), EXPECTED)
    assert same(read(str(tmp_path / name)), EXPECTED)


@pytest.mark.parametrize("kind", MEMORY)
def test_every_kind_of_memory_gives_the_same_statistics(kind):
    assert same(read(MEMORY[kind]()), EXPECTED)


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_feather_files_may_be_compressed(tmp_path, compression):
    pyarrow.feather.write_feather(TABLE, tmp_path / "table.feather", compression=compression)
    assert same(read(tmp_path / "table.feather"), EXPECTED)


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd"])
def test_parquet_files_may_be_compressed(tmp_path, compression):
    pq.write_table(
        TABLE, tmp_path / "table.parquet", compression=compression, use_dictionary=["ward"]
    )
    assert same(read(tmp_path / "table.parquet"), EXPECTED)


def test_a_folder_a_pattern_and_a_list_add_up_files_of_different_kinds(tmp_path):
    for number, name in enumerate(WRITERS):
        part = TABLE.slice(number * 150, 150 if number < len(WRITERS) - 1 else None)
        WRITERS[name](part, tmp_path / f"part{number}.{name.split('.', 1)[1]}")
    (tmp_path / "README.txt").write_text("not a table")
    everything = sorted(path for path in tmp_path.iterdir() if path.suffix != ".txt")
    assert same(read(tmp_path), EXPECTED)
    assert same(read(str(tmp_path / "part*")), EXPECTED)
    assert same(read(everything[::-1]), EXPECTED)
    assert same(read([str(tmp_path / "part[0-2]*"), *everything[3:]]), EXPECTED)


def test_rows_are_counted_beforehand_where_that_is_cheap(tmp_path):
    for name, write in WRITERS.items():
        write(TABLE, tmp_path / name)
        assert table_of(tmp_path / name, STUDY).rows == (1000 if name == "table.parquet" else None)
    assert table_of(TABLE, STUDY).rows == table_of(pd.DataFrame(COLUMNS), STUDY).rows == 1000


@pytest.mark.parametrize("order", [[5, 4, 3, 2, 1, 0], [3, 5, 2, 1, 0, 4]])
def test_the_order_of_columns_is_irrelevant(tmp_path, order):
    table = TABLE.select(order)
    assert same(read(table), EXPECTED)
    for name, write in WRITERS.items():
        write(table, tmp_path / name)
        assert same(read(tmp_path / name), EXPECTED), name


@pytest.mark.parametrize("name", WRITERS)
def test_other_columns_are_ignored(tmp_path, name):
    WRITERS[name](TABLE.select(NAMES), tmp_path / name)
    assert same(read(tmp_path / name), EXPECTED)


def test_rows_in_any_order_and_split_anywhere_give_the_same_statistics():
    shuffled = TABLE.take(np.random.default_rng(0).permutation(1000))
    assert same(read(shuffled), EXPECTED)
    for cut in (0, 1, 499, 1000):
        assert same(read(TABLE.slice(0, cut)) + read(TABLE.slice(cut)), EXPECTED)


def test_more_rows_than_a_batch_add_up():
    count = 2 * BATCH_ROWS + 4321
    many = pa.table(rows(count))
    parts = [read(many.slice(start, 7777)) for start in range(0, count, 7777)]
    total = parts[0]
    for part in parts[1:]:
        total += part
    assert same(read(many), total)
    assert total.n == count


def test_no_rows_are_a_table_too(tmp_path):
    empty = TABLE.slice(0, 0)
    assert read(empty).n == 0
    for name, write in WRITERS.items():
        write(empty, tmp_path / name)
        assert read(tmp_path / name).n == 0, name


# CSV in the wild.


def csv(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


ONE_ROW = read({"age": [40.0], "ward": ["2"], "bmi": [25.5], "days": [3.0]})


@pytest.mark.parametrize(
    "text",
    [
        "age,ward,bmi,days\n40,2,25.5,3\n",
        "age,ward,bmi,days\r\n40,2,25.5,3\r\n",
        "age,ward,bmi,days\n40,2,25.5,3",
        "\ufeffage,ward,bmi,days\n40,2,25.5,3\n",
        '"age","ward","bmi","days"\n"40","2","25.5","3"\n',
        "age,ward,bmi,days\n4e1,2,2.55e1,3.000\n",
        "age,ward,bmi,days\n\n40,2,25.5,3\n\n",
    ],
    ids=ascii,
)
def test_csv_as_people_write_it(tmp_path, text):
    assert same(read(csv(tmp_path, text)), ONE_ROW)


def test_a_name_with_tsv_inside_is_still_a_csv(tmp_path):
    assert same(read(csv(tmp_path, "age,ward,bmi,days\n40,2,25.5,3\n", "export.tsv.csv")), ONE_ROW)


@pytest.mark.parametrize("name", ["a.b", "x y", "'quoted'", "Ålder", "größe[kg]", 'say "no"'])
def test_columns_may_have_any_name(tmp_path, name):
    document = STUDY.document() | {"features": [{"name": name, "range": [18, 100]}], "release": {}}
    study = Study.from_document(document)
    table = pa.table({"a": [{"b": 1.0}] * 3, name: [20.0, 50.0, 80.0], "days": [1.0, 2.0, 3.0]})
    expected = read(table, study)
    for file, write in WRITERS.items():
        if file.endswith(tuple(READERS)):
            continue  # a package's names are of letters and digits
        write(
            table if file.endswith((".parquet", ".arrow")) else table.drop_columns("a"),
            tmp_path / file,
        )
        assert same(read(tmp_path / file, study), expected), file


# What is refused. No message holds a value from the table.


def refusal(source, study=STUDY):
    with pytest.raises(TableError) as caught:
        read(source, study)
    sentence = str(caught.value)
    assert SECRET not in sentence
    assert "\n" not in sentence
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return sentence


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("missing", NAMES)
def test_an_absent_column_is_named(tmp_path, name, missing):
    WRITERS[name](TABLE.drop_columns(missing), tmp_path / name)
    assert (
        refusal(tmp_path / name)
        == f"{name} needs exactly one column named '{missing}', as the study says"
    )


@pytest.mark.parametrize("name", [name for name in WRITERS if name.endswith((*TEXT, *ARROW))])
def test_a_column_that_is_there_twice_is_refused(tmp_path, name):
    WRITERS[name](TABLE.append_column("age", pa.array([SECRET] * 1000)), tmp_path / name)
    assert (
        refusal(tmp_path / name)
        == f"{name} needs exactly one column named 'age', as the study says, and has 2: rename or "
        "remove the others"
    )


def test_a_column_absent_or_doubled_in_memory_is_refused():
    assert "exactly one column named 'bmi'" in refusal(TABLE.drop_columns("bmi"))
    assert "exactly one column named 'bmi'" in refusal(
        {name: COLUMNS[name] for name in COLUMNS if name != "bmi"}
    )
    assert "exactly one column named 'bmi'" in refusal(pd.DataFrame(COLUMNS).drop(columns="bmi"))
    assert "exactly one column named 'age'" in refusal(TABLE.append_column("age", TABLE["age"]))
    frame = pd.DataFrame(COLUMNS)
    assert "exactly one column named 'age'" in refusal(pd.concat([frame, frame[["age"]]], axis=1))


def test_an_ignored_column_may_be_there_twice(tmp_path):
    text = f"note,age,ward,bmi,days,note\n{SECRET},40,2,25.5,3,{SECRET}\n"
    assert same(read(csv(tmp_path, text)), ONE_ROW)


@pytest.mark.parametrize("row", [f'40,2,25.5,"3{SECRET}\n40,2', f"40,{SECRET},25.5,3"])
def test_a_csv_row_that_is_refused_is_not_quoted(tmp_path, row):
    study = agreed(missing="refuse")
    refusal(csv(tmp_path, f"age,ward,bmi,days\n40,2,25.5,3\n{row}\n"), study)


@pytest.mark.parametrize(
    "source",
    [
        {"age": [40], "ward": ["2", SECRET], "bmi": [25.0], "days": [3.0]},
        {"age": 40, "ward": SECRET, "bmi": 25.0, "days": 3.0},
        pd.DataFrame({"age": [40], "ward": [SECRET], "bmi": [25.0], "days": [3.0]}),
        np.array([[40, SECRET, 25.0, 3.0]], dtype=object),
        np.array([[40.0, 2.0, 25.0]]),
        np.array([40.0, 2.0, 25.0, 3.0]),
        [],
        [1, 2],
        None,
        7,
        {},
    ],
    ids=lambda source: type(source).__name__,
)
def test_odd_things_in_memory_are_refused(source):
    refusal(source)


def test_paths_to_nothing_are_refused(tmp_path):
    assert "no table at" in refusal(tmp_path / "absent.csv")
    assert "no table at" in refusal(tmp_path)
    assert "no table at" in refusal(str(tmp_path / "*.csv"))
    assert "File name too long" in refusal("x" * 5000)
    (tmp_path / "table.pdf").write_text(SECRET)
    assert "'table.pdf' is of no known kind" in refusal(tmp_path / "table.pdf")
    (tmp_path / "folder.csv").mkdir()
    refusal([tmp_path / "folder.csv"])


@pytest.mark.parametrize("name", [name for name in WRITERS if name.endswith((*TEXT, *ARROW))])
def test_a_file_of_another_kind_or_cut_short_is_refused(tmp_path, name):
    path = tmp_path / name
    if name.endswith((".gz", ".parquet", ".feather", ".arrow")):
        path.write_text(f"age,ward,bmi,days\n40,2,25.5,{SECRET}\n")
        assert "cannot be read as a table" in refusal(path)
        WRITERS[name](TABLE, path)
        whole = path.read_bytes()
        for length in (0, 5, len(whole) // 2, len(whole) - 30):
            path.write_bytes(whole[:length])
            if not (
                name == "table.arrow" and length == len(whole) - 30
            ):  # a stream may end before its end mark
                refusal(path)
    else:
        path.write_bytes(gzip.compress(SECRET.encode()))
        refusal(path)
        path.write_bytes(b"")
        refusal(path)


@pytest.mark.parametrize("name", ["table.feather", "table.arrow"])
def test_damaged_offsets_raise_and_do_not_crash(tmp_path, name):
    table = pa.table({"age": [40.0] * 9, "ward": ["2"] * 9, "bmi": [25.5] * 9, "days": [3.0] * 9})
    if name == "table.feather":
        pyarrow.feather.write_feather(table, tmp_path / name, compression="uncompressed")
    else:
        write_stream(table, tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    offsets = np.arange(10, dtype="<i4")
    assert whole.count(offsets.tobytes()) == 1
    damaged = whole.replace(
        offsets.tobytes(), np.where(offsets == 9, 2**30, offsets).astype("<i4").tobytes()
    )
    (tmp_path / name).write_bytes(damaged)
    assert "cannot be read as a table" in refusal(tmp_path / name)


def test_damage_in_a_column_of_no_interest_is_not_looked_at(tmp_path):
    assert same(read(csv(tmp_path, b"note,age,ward,bmi,days\n\xff\xfe,40,2,25.5,3\n")), ONE_ROW)
