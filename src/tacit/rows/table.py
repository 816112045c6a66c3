"""Where rows come from: files, or anything in memory that speaks Arrow, as a stream of batches.

Reading is single-threaded and unbuffered on purpose: memory stays flat in the number of rows.
Errors are rewritten, because those of a reader quote the value it stumbled over.
"""

import glob
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tacit.errors import TableError
from tacit.rows import packages, sheets
from tacit.rows.codes import check_codes, without_codes
from tacit.rows.drivers import rewritten
from tacit.rows.names import check_names
from tacit.rows.objects import texts_of
from tacit.rows.reading import Reading
from tacit.rows.text import text_batches
from tacit.rows.written import PLAIN, Format
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
    `readings` says how each file is written, as far as that is known; `alone` reads one column,
    the study's or another, by itself.
    """

    batches: Callable[[], Batches]
    rows: int | None = None
    by_person: Callable[[Study], Batches] | None = None
    readings: Callable[[], tuple[Reading, ...]] = tuple
    alone: "Callable[[str], Table] | None" = None


def table_of(
    source: object,
    study: Study,
    columns: Sequence[str] | None = None,
    form: Format = PLAIN,
) -> Table:
    """A table from paths or folders; Arrow, pandas, Polars or DuckDB; a mapping or an array.

    `columns` are those to read, by default the study's features, the response, and the person where
    there is one; one that the study does not know is read as it is, and from CSV as text. A
    two-dimensional NumPy array has these columns in this order. `form` says how files are written,
    where that is not found out.
    """
    if isinstance(source, Table):
        return source
    names = list(study.table_names if columns is None else columns)
    if paths := paths_of(source):
        files = [file for path in paths for file in files_at(path)]
        return with_codes(_files(files, names, study, form), study, form.missing)
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
    check_names([str(name) for name in held], names, "the table")
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
    check_names(table.schema.names, names, "the table")
    return Table(lambda: iter(table.select(names).to_batches(BATCH_ROWS)), table.num_rows)


def _stream(source: Any, names: list[str]) -> Table:  # noqa: ANN401
    def batches() -> Batches:
        with reading("the table"):
            reader = pa.RecordBatchReader.from_stream(source)
        check_names(reader.schema.names, names, "the table")
        for batch in _guarded(reader, "the table"):
            yield batch.select(names)

    with reading("the table"):
        return Table(batches, len(source) if hasattr(source, "__len__") else None)


# Files.

TEXT = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")
ARROW = (".parquet", ".feather", ".arrow")
SUFFIXES = (*TEXT, *ARROW, *sheets.SUFFIXES, *packages.READERS)
_IN_FOLDERS = tuple(suffix for suffix in SUFFIXES if not suffix.startswith(".txt"))
"""A text in a folder is as likely a note about the tables: it is read where it is named."""


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
        return sorted(file for file in place.iterdir() if file.name.lower().endswith(_IN_FOLDERS))
    if place.exists():
        return [place]
    return sorted(map(Path, glob.glob(path, recursive=True)))  # noqa: PTH207


def _files(paths: list[Path], names: list[str], study: Study, form: Format) -> Table:
    once = {path.resolve(): path for path in paths}  # a file named twice is read once
    paths = list(once.values())
    for path in paths:
        if not path.name.lower().endswith(SUFFIXES):
            raise TableError(
                f"{path.name!r} is of no known kind: its name must end in {', '.join(SUFFIXES)}"
            )
    readings: list[Reading] = []

    def batches() -> Batches:
        readings.clear()
        for path in paths:
            readings.append(Reading(path.name, kind_of(path)))
            yield from _file(path, names, study, form, readings[-1])

    return Table(
        batches,
        _rows(paths),
        readings=lambda: tuple(readings),
        alone=lambda name: _files(paths, [name], study, form),
    )


def kind_of(path: Path) -> str:
    """What a file is, in a word or two."""
    suffix = path.suffix.lower()
    if suffix in packages.READERS:
        return packages.READERS[suffix][1]
    if suffix in sheets.SUFFIXES:
        return "spreadsheet"
    return "Parquet" if suffix == ".parquet" else "Arrow" if suffix in ARROW else "text"


def with_codes(table: Table, study: Study, codes: Sequence[str]) -> Table:
    """The same table with a holder's own codes for missing values taken out."""
    if not codes:
        return table
    check_codes(codes, [level for feature in study.features for level in feature.all_levels])
    batches = table.batches
    return replace(table, batches=lambda: (without_codes(batch, codes) for batch in batches()))


def _rows(paths: list[Path]) -> int | None:
    """Rows of all files where that stands in their footers: for the progress bar."""
    if not all(path.suffix == ".parquet" for path in paths):
        return None
    total = 0
    for path in paths:
        with reading(path.name):
            total += pq.read_metadata(path).num_rows
    return total


def _file(path: Path, names: list[str], study: Study, form: Format, report: Reading) -> Batches:
    suffix = path.suffix.lower()
    if suffix in ARROW:
        wanted = [form.in_table(name) for name in names]
        batches = (_parquet if suffix == ".parquet" else _arrow)(path, wanted)
        return _counted(batches, dict(zip(wanted, names, strict=True)), report)
    if suffix in packages.READERS:
        return _guarded(packages.package_batches(path, names, study, form, report), path.name)
    if suffix in sheets.SUFFIXES:
        return _guarded(sheets.sheet_batches(path, names, study, form, report), path.name)
    return _guarded(text_batches(path, names, study, form, report), path.name)


def _counted(batches: Batches, own: Mapping[str, str], report: Reading) -> Batches:
    for batch in batches:
        report.given += batch.num_rows
        yield batch.select(list(own)).rename_columns(list(own.values()))


def _parquet(path: Path, names: list[str]) -> Batches:
    with reading(path.name):
        file = pq.ParquetFile(path, pre_buffer=False, buffer_size=READ_BYTES)
        check_names(file.schema_arrow.names, names, path.name)
        reader = file.iter_batches(batch_size=BATCH_ROWS, columns=names, use_threads=False)
    return _guarded(reader, path.name)


def _arrow(path: Path, names: list[str]) -> Batches:
    with reading(path.name):
        schema, _ = _open_arrow(path)
        check_names(schema.names, names, path.name)
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
