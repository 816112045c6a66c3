"""Where rows come from: files, or anything in memory that speaks Arrow, as a stream of batches.

Reading is single-threaded and unbuffered on purpose: memory stays flat in the number of rows.
Errors are rewritten, because those of a reader quote the value it stumbled over.
"""

import glob
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tacit.errors import TableError
from tacit.rows import packages, sheets
from tacit.rows.arrow import Batches
from tacit.rows.codes import check_codes, without_codes
from tacit.rows.drivers import guarded, reading
from tacit.rows.names import check_names
from tacit.rows.objects import texts_of
from tacit.rows.pieces import ARROW, MOST_BATCH_ROWS, Files
from tacit.rows.reading import Reading
from tacit.rows.written import PLAIN, Format
from tacit.study import Study

BATCH_ROWS = MOST_BATCH_ROWS
ROWS = "tacit: rows of this person"
"""Column that says how many rows a row's person has; missing where the person is."""
ONE = "tacit: one row of each person"
"""Column that is true in exactly one row of each person."""


@dataclass(frozen=True)
class Table:
    """A source of record batches that hold the study's columns; `rows` where known beforehand.

    `by_person` gives those of a study of persons with `ROWS` and `ONE` beside them, counted where
    the rows lie; without it the holder counts (holder/persons.py).
    `readings` says how each file is written, as far as that is known; `columns` names all columns
    there are, and `alone` reads one, the study's or another, by itself. `fixed` is there where rows
    have one order, whichever columns are read. `files` are those that may be read in pieces.
    `enough` hears how many rows there were, and raises where they are too few.
    """

    batches: Callable[[], Batches]
    rows: int | None = None
    by_person: Callable[[Study], Batches] | None = None
    readings: Callable[[], tuple[Reading, ...]] = tuple
    columns: Callable[[], tuple[str, ...]] = tuple
    alone: "Callable[[str], Table] | None" = None
    fixed: "Fixed | None" = None
    files: Files | None = None
    enough: Callable[[int], None] = lambda _rows: None


@dataclass(frozen=True)
class Fixed:
    """A table whose rows have one order: `without` a column, and a `stamp` of what it is read from.

    As long as the stamp is the same, so are the rows.
    """

    without: Callable[[str], Table]
    stamp: Callable[[], object]


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
        _check_codes(form.missing, study)
        return _files(files, names, study, form)
    if isinstance(source, np.ndarray) and source.ndim == 2:  # noqa: PLR2004
        source = _columns_of(source, names)
    if isinstance(source, Mapping) or _is_pandas(source):
        return _of_columns(source, names, study)
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


def _of_columns(source: Any, names: list[str], study: Study) -> Table:  # noqa: ANN401
    """A table of columns in memory that are not Arrow's."""
    held = tuple(str(name) for name in (source.columns if _is_pandas(source) else source))
    check_names(held, names, "the table")
    return replace(
        _in_memory(_converted(source, names, study), names),
        columns=lambda: held,
        alone=lambda name: _of_columns(source, [name], study),
    )


def _converted(source: Any, names: list[str], study: Study) -> pa.Table:  # noqa: ANN401
    """Columns in memory as Arrow; those of Python objects value by value, each by itself."""
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
    return Table(
        lambda: iter(table.select(names).to_batches(BATCH_ROWS)),
        table.num_rows,
        columns=lambda: tuple(table.schema.names),
        alone=lambda name: _in_memory(table, [name]),
    )


def _stream(source: Any, names: list[str]) -> Table:  # noqa: ANN401
    def batches() -> Batches:
        with reading("the table"):
            reader = pa.RecordBatchReader.from_stream(source)
        check_names(reader.schema.names, names, "the table")
        for batch in guarded(reader, "the table"):
            yield batch.select(names)

    with reading("the table"):
        if not hasattr(source, "__len__"):
            return Table(batches)  # perhaps it can be read once alone
        return Table(
            batches,
            len(source),
            columns=lambda: tuple(pa.RecordBatchReader.from_stream(source).schema.names),
            alone=lambda name: _stream(source, [name]),
        )


# Files.

TEXT = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")
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
    files = Files(tuple(paths), tuple(names), form)
    return Table(
        lambda: files.batches(study),
        _rows(paths),
        readings=lambda: tuple(files.readings),
        columns=files.columns,
        alone=lambda name: _files(paths, [name], study, form),
        fixed=_fixed(files, study),
        files=files,
    )


def _fixed(files: Files, study: Study) -> Fixed | None:
    """Parquet and Arrow files hold rows in one order; a text's, out of shape, may come later."""
    if not all(path.name.lower().endswith(ARROW) for path in files.paths):
        return None

    def without(column: str) -> Table:
        others = replace(files, names=tuple(name for name in files.names if name != column))
        return Table(lambda: others.batches(study))

    return Fixed(without, lambda: [_stamp(path) for path in files.paths])


def _stamp(path: Path) -> tuple[int, ...]:
    """What is another as soon as a file is another, or was written to."""
    with reading(path.name):
        state = path.stat()
    return (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


def with_codes(table: Table, study: Study, codes: Sequence[str]) -> Table:
    """The same rows with a holder's own codes for missing values taken out."""
    if not codes:
        return table
    _check_codes(codes, study)
    batches = table.batches
    alone = table.alone
    return replace(
        table,
        batches=lambda: (without_codes(batch, codes) for batch in batches()),
        alone=None if alone is None else lambda name: with_codes(alone(name), study, codes),
        fixed=None,
        files=None,
    )


def _check_codes(codes: Sequence[str], study: Study) -> None:
    check_codes(codes, [level for feature in study.features for level in feature.all_levels])


def _rows(paths: list[Path]) -> int | None:
    """Rows of all files where that stands in their footers: for the progress bar."""
    if not all(path.suffix == ".parquet" for path in paths):
        return None
    total = 0
    for path in paths:
        with reading(path.name):
            total += pq.read_metadata(path).num_rows
    return total
