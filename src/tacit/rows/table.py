"""Where rows come from: files, or anything in memory that speaks Arrow, as a stream of batches.

Reading is single-threaded and unbuffered on purpose: memory stays flat in the number of rows.
Errors are rewritten, because those of a reader quote the value it stumbled over.
"""

import glob
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tacit.errors import TableError
from tacit.rows.drivers import rewritten
from tacit.rows.objects import texts_of
from tacit.rows.reading import Reading
from tacit.rows.text import Dialect, text_at
from tacit.study import Study

BATCH_ROWS = 2**16
READ_BYTES = 2**16
"""Piece in which a Parquet column is read; else a whole row group, perhaps the file, is held."""

Batches = Iterator[pa.RecordBatch]
ROWS = "tacit: rows of this person"
"""Column that says how many rows a row's person has; missing where the person is."""
ONE = "tacit: one row of each person"
"""Column that is true in exactly one row of each person."""


@dataclass(frozen=True)
class Table:
    """A source of record batches that hold the study's columns; `rows` where known beforehand.

    `by_person` gives those of a study of persons with `ROWS` and `ONE` beside them, counted where
    the rows lie; without it the holder counts (holder/persons.py).
    `readings` says how each file is written, as far as that was found out.
    """

    batches: Callable[[], Batches]
    rows: int | None = None
    by_person: Callable[[Study], Batches] | None = None
    readings: Callable[[], tuple[Reading, ...]] = tuple


def table_of(source: object, study: Study, columns: Sequence[str] | None = None) -> Table:
    """A table from paths or folders; Arrow, pandas, Polars or DuckDB; a mapping or an array.

    `columns` are those to read, by default the study's features, the response, and the person where
    there is one; one that the study does not know is read as it is, and from CSV as text. A
    two-dimensional NumPy array has these columns in this order.
    """
    if isinstance(source, Table):
        return source
    names = list(study.table_names if columns is None else columns)
    if paths := paths_of(source):
        return _files([file for path in paths for file in files_at(path)], names, study)
    if isinstance(source, np.ndarray) and source.ndim == 2:  # noqa: PLR2004
        source = _columns_of(source, names)
    if isinstance(source, Mapping) or _is_pandas(source):
        return _in_memory(_converted(source, names, study), names)
    if isinstance(source, pa.RecordBatch):
        source = pa.table(source.columns, schema=source.schema)
    if isinstance(source, pa.Table):
        return _in_memory(source, names)
    if hasattr(source, "__arrow_c_stream__"):
        return _stream(source, names)
    raise TableError(
        "a table must be a path, a query (sql_table), an Arrow, pandas, Polars or Spark table, "
        "a mapping or a two-dimensional array"
    )


def paths_of(source: object) -> list[str]:
    """The paths that a source is; none where it is something else."""
    paths = source if isinstance(source, Sequence) and not isinstance(source, str) else [source]
    return list(map(str, paths)) if all(isinstance(path, (str, Path)) for path in paths) else []


def _columns_of(array: NDArray[Any], names: list[str]) -> dict[str, NDArray[Any]]:
    if array.shape[1] != len(names):
        raise TableError(
            f"an array needs {len(names)} columns, in this order: {', '.join(names)[:200]}"
        )
    return dict(zip(names, array.T, strict=True))


def _is_pandas(source: object) -> bool:
    return type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns")


def _converted(source: Any, names: list[str], study: Study) -> pa.Table:  # noqa: ANN401
    """Columns in memory as Arrow; those of Python objects value by value, each by itself."""
    held = list(source.columns if _is_pandas(source) else source)
    for name in names:
        if held.count(name) != 1:
            raise TableError(
                f"the table needs exactly one column named {name!r}, as the study says"
            )
    numeric = {column.name for column in study.features if column.range is not None}
    numeric.add(study.response.name)
    with reading("the table"):
        columns = {name: _column(source[name], numeric=name in numeric) for name in names}
        return pa.table(columns)


def _column(values: Any, *, numeric: bool) -> pa.Array:  # noqa: ANN401
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if getattr(getattr(values, "dtype", None), "kind", "O") in "biufmM":
        return pa.array(values, from_pandas=True)
    return texts_of(values, true="1", false="0") if numeric else texts_of(values)


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
        files = _files_at(path)
    if not files:
        raise TableError(
            f"no table at {path!r}: give a file, a folder or a pattern of files ending in "
            f"{', '.join(SUFFIXES)}"
        )
    return files


def _files_at(path: str) -> list[Path]:
    place = Path(path)
    if place.is_dir():
        return sorted(file for file in place.iterdir() if file.name.endswith(SUFFIXES))
    if place.exists():
        return [place]
    return sorted(map(Path, glob.glob(path, recursive=True)))  # noqa: PTH207


def _files(paths: list[Path], names: list[str], study: Study) -> Table:
    once = {path.resolve(): path for path in paths}  # a file named twice is read once
    paths = list(once.values())
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
    """Schema and batches of an Arrow file or stream: read, not mapped, so a damaged one raises."""
    source = pa.OSFile(str(path))
    options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
    try:
        file = pa.ipc.open_file(source, options=options)
    except pa.ArrowInvalid:
        source.seek(0)
        stream = pa.ipc.open_stream(source, options=options)
        return stream.schema, iter(stream)
    return file.schema, (file.get_batch(i) for i in range(file.num_record_batches))


_BYTES = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}


def _validated(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Refuse damaged offsets, which Arrow trusts and would follow out of its buffers."""
    for column in batch.columns:
        # Seen as bytes: letters that are none are a value like any other, and no damage.
        as_bytes = _BYTES.get(column.type)
        (column if as_bytes is None else column.cast(as_bytes)).validate(full=True)
    return batch


def _csv(path: Path, names: list[str], study: Study) -> Batches:
    dialect = Dialect(path.name, names, study)
    with reading(path.name):
        schema = pyarrow.csv.open_csv(text_at(path), parse_options=dialect.parse).schema
        check_names(schema, names, path.name)
    dialect.out_of_shape = 0  # in what was just looked at: it is read once more
    return _guarded(_csv_batches(path, dialect), path.name)


def _csv_batches(path: Path, dialect: Dialect) -> Batches:
    for batch in pyarrow.csv.open_csv(
        text_at(path), parse_options=dialect.parse, convert_options=dialect.convert
    ):
        yield dialect.typed(batch)
    yield dialect.missing(dialect.out_of_shape)


def check_names(schema: pa.Schema, names: Sequence[str], source: str) -> None:
    """Refuse a table without exactly one column of each name."""
    for name in names:
        if len(schema.get_all_field_indices(name)) != 1:
            raise TableError(f"{source} needs exactly one column named {name!r}, as the study says")


def _guarded(reader: Iterable[pa.RecordBatch], source: str) -> Batches:
    """The reader's batches, its errors rewritten; those of who consumes them do not pass here."""
    with reading(source):
        yield from reader


@contextmanager
def reading(source: str) -> Iterator[None]:
    """Replace a reader's error, which may quote data, by one that names the place alone."""
    unreadable = (
        f"{source} cannot be read as a table: check that it is whole, "
        "and that each column holds values of one kind"
    )
    twice = ("Duplicate column names", f"{source} has two columns of the same name: rename one")
    with rewritten([twice], unreadable):
        try:
            yield
        except OSError as error:
            if error.strerror:
                raise TableError(f"cannot read {source}: {error.strerror}") from None
            raise
