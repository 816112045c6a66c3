"""Where rows come from: files of several kinds, or anything in memory that speaks Arrow, as a stream of batches.

Reading is single-threaded and unbuffered on purpose: memory stays flat in the number of rows. Errors are
rewritten, because those of a reader quote the value it stumbled over.
"""

import glob
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from tacit.errors import TableError
from tacit.study import Study

BATCH_ROWS = 2**16
READ_BYTES = 2**16
"""Piece in which a Parquet column is read; without it a whole row group, which may be the whole file, is held."""
NULLS = ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL"]
"""Spellings of a missing value in CSV files."""

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Table:
    """A source of record batches that hold at least the study's columns; `rows` where it is known beforehand."""

    batches: Callable[[], Batches]
    rows: int | None = None


def table_of(source: object, study: Study, columns: Sequence[str] | None = None) -> Table:
    """A table from a path, glob, folder or list of them; an Arrow, pandas, Polars or DuckDB table; a mapping or matrix.

    `columns` are those to read, by default the study's features and then the response; one that the study does not know
    is read as it is, and from CSV as text. A two-dimensional NumPy array has these columns in this order.
    """
    if isinstance(source, Table):
        return source
    names = column_names(study) if columns is None else list(columns)
    if isinstance(source, (str, Path)):
        return _files(files_at(str(source)), names, study)
    if (
        isinstance(source, Sequence)
        and source
        and all(isinstance(path, (str, Path)) for path in source)
    ):
        return _files([file for path in source for file in files_at(str(path))], names, study)
    if isinstance(source, np.ndarray) and source.ndim == 2:  # noqa: PLR2004
        if source.shape[1] != len(names):
            order = "the study's features in their order" + (
                ", then the response" if columns is None else ""
            )
            raise TableError(f"an array needs {len(names)} columns: {order}")
        with reading("the array"):
            source = dict(zip(names, np.asarray(source, dtype=float).T, strict=True))
    if isinstance(source, pa.RecordBatch):
        source = pa.table([source[i] for i in range(source.num_columns)], schema=source.schema)
    if isinstance(source, Mapping):
        with reading("the mapping"):
            source = pa.table({name: source[name] for name in names if name in source})
    if isinstance(source, pa.Table):
        return _in_memory(source, names)
    if hasattr(source, "__arrow_c_stream__"):
        return _stream(source, names)
    raise TableError(
        "a table must be a path, a query (sql_table), an Arrow, pandas, Polars or Spark table, a mapping or a two-dimensional array"
    )


def column_names(study: Study) -> list[str]:
    """What a table must have: the study's features in their order, then the response."""
    return [feature.name for feature in study.features] + [study.response.name]


def _in_memory(table: pa.Table, names: list[str]) -> Table:
    check_names(table.schema, names, "the table")
    return Table(lambda: iter(table.select(names).to_batches(BATCH_ROWS)), table.num_rows)


def _stream(source: Any, names: list[str]) -> Table:  # noqa: ANN401
    def batches() -> Batches:
        with reading("the table"):
            reader = pa.RecordBatchReader.from_stream(source)
        check_names(reader.schema, names, "the table")
        for batch in _guarded(reader, "the table"):
            yield batch.select(names)

    with reading("the table"):
        return Table(batches, len(source) if hasattr(source, "__len__") else None)


# Files.

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".feather", ".arrow")


def files_at(path: str) -> list[Path]:
    """The files behind a path, a folder or a glob pattern."""
    with reading(repr(path)):
        if Path(path).is_dir():
            found = sorted(file for file in Path(path).iterdir() if file.name.endswith(SUFFIXES))
        else:
            found = (
                [Path(path)]
                if Path(path).exists()
                else sorted(Path(match) for match in glob.glob(path, recursive=True))  # noqa: PTH207
            )
    if not found:
        raise TableError(
            f"no table at {path!r}: give a file, a folder or a pattern of files ending in {', '.join(SUFFIXES)}"
        )
    return found


def _files(paths: list[Path], names: list[str], study: Study) -> Table:
    paths = list(
        {path.resolve(): path for path in paths}.values()
    )  # a file named twice is read once
    for path in paths:
        if not path.name.endswith(SUFFIXES):
            raise TableError(
                f"{path.name!r} is of no known kind: its name must end in {', '.join(SUFFIXES)}"
            )

    def batches() -> Batches:
        for path in paths:
            yield from _file(path, names, study)

    return Table(batches, _rows(paths))


def _rows(paths: list[Path]) -> int | None:
    """Rows of all files where that stands in their footers: for the progress bar."""
    if not all(path.suffix == ".parquet" for path in paths):
        return None
    total = 0
    for path in paths:
        with reading(path.name):
            total += pq.read_metadata(path).num_rows
    return total


def _file(path: Path, names: list[str], study: Study) -> Batches:
    if path.suffix == ".parquet":
        return _parquet(path, names)
    if path.suffix in {".feather", ".arrow"}:
        return _arrow(path, names)
    return _csv(path, names, study)


def _parquet(path: Path, names: list[str]) -> Batches:
    with reading(path.name):
        file = pq.ParquetFile(path, pre_buffer=False, buffer_size=READ_BYTES)
        check_names(file.schema_arrow, names, path.name)
        reader = file.iter_batches(batch_size=BATCH_ROWS, columns=names, use_threads=False)
    return _guarded(reader, path.name)


def _arrow(path: Path, names: list[str]) -> Batches:
    with reading(path.name):
        schema, _ = _open_arrow(path)
        check_names(schema, names, path.name)
        _, reader = _open_arrow(path, [schema.get_field_index(name) for name in names])
    return _guarded(map(_validated, reader), path.name)


def _open_arrow(path: Path, fields: list[int] | None = None) -> tuple[pa.Schema, Batches]:
    """Schema and batches of an Arrow file or stream. It is read, not mapped: a damaged one then raises instead of crashing."""
    source = pa.OSFile(str(path))
    options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
    try:
        file = pa.ipc.open_file(source, options=options)
    except pa.ArrowInvalid:
        source.seek(0)
        stream = pa.ipc.open_stream(source, options=options)
        return stream.schema, iter(stream)
    return file.schema, (file.get_batch(i) for i in range(file.num_record_batches))


def _validated(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Arrow trusts the offsets that a file states, and would follow damaged ones out of its buffers."""
    batch.validate(full=True)
    return batch


def _csv(path: Path, names: list[str], study: Study) -> Batches:
    parse = csv_dialect(path.name)
    with reading(path.name):
        check_names(pyarrow.csv.open_csv(path, parse_options=parse).schema, names, path.name)
        reader = pyarrow.csv.open_csv(
            path, parse_options=parse, convert_options=csv_types(names, study)
        )
    return _guarded(reader, path.name)


def csv_dialect(name: str) -> pyarrow.csv.ParseOptions:
    """Tabs where a file's name says so, else commas."""
    return pyarrow.csv.ParseOptions(delimiter="\t" if name.endswith((".tsv", ".tsv.gz")) else ",")


def csv_types(names: list[str], study: Study) -> pyarrow.csv.ConvertOptions:
    """Numbers where the study gives a range, else text; other columns are not converted at all."""
    numeric = {
        study.response.name,
        *(feature.name for feature in study.features if feature.range is not None),
    }
    types = {name: pa.float64() if name in numeric else pa.string() for name in names}
    return pyarrow.csv.ConvertOptions(
        column_types=types, include_columns=names, null_values=NULLS, strings_can_be_null=True
    )


def check_names(schema: pa.Schema, names: Sequence[str], source: str) -> None:
    """Refuse a table without exactly one column of each name."""
    for name in names:
        if len(schema.get_all_field_indices(name)) != 1:
            raise TableError(f"{source} needs exactly one column named {name!r}, as the study says")


def _guarded(reader: Any, source: str) -> Batches:  # noqa: ANN401
    """The reader's batches, its errors rewritten."""
    batches = iter(reader)
    while True:
        with reading(source):
            try:
                batch = next(batches)
            except StopIteration:
                return
        yield batch


@contextmanager
def reading(source: str) -> Iterator[None]:
    """Replace a reader's error, which may quote data, by one that names the place alone."""
    try:
        yield
    except TableError:
        raise
    except Exception as error:  # noqa: BLE001  (nor may an answer that breaks its reader)
        if isinstance(error, OSError) and error.strerror:
            message = f"cannot read {source}: {error.strerror}"
        elif column := re.match(
            r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error to double", str(error)
        ):
            place = int(column[1]) + 1
            message = f"{source}: its column number {place} holds something that is neither a number nor {NULLS[1]}, as its range asks"
        elif str(error).startswith("Duplicate column names"):
            message = f"{source} has two columns of the same name: rename one"
        else:
            message = f"{source} cannot be read as a table: check that it is whole, and that each column holds values of one kind"
        raise TableError(message) from None
