"""Pieces: parts of a holder's files that are read by themselves, in any order, by any process.

A Parquet file has its row groups, an Arrow file its record batches; any other file is one piece.
Where pieces begin and end follows from the files alone, never from how many processes there are.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tacit.rows import packages, sheets
from tacit.rows.arrow import Batches
from tacit.rows.codes import without_codes
from tacit.rows.drivers import guarded, reading
from tacit.rows.names import check_names
from tacit.rows.reading import Reading
from tacit.rows.text import opened, text_batches
from tacit.rows.written import PLAIN, Format
from tacit.study import Study

ARROW = (".parquet", ".feather", ".arrow")
MOST_BATCH_ROWS = 2**16
LEAST_BATCH_ROWS = 2**13
BATCH_CELLS = 2**21
"""Cells of a batch, where that leaves it a number of rows between the two."""
READ_BYTES = 2**16
"""Piece in which a Parquet column is read; else a whole row group, perhaps the file, is held."""
PIECE_CELLS = 2**24
"""Cells of a piece, at least: a fraction of a second's work."""
CELL_BYTES = 8


class Piece(NamedTuple):
    """The row groups or record batches of a file from `first` on, or all of it.

    `work` says how long it takes: in cells of Parquet or, as each takes about as long, bytes of
    text. All pieces of a table but the first are later ones.
    """

    path: Path
    work: int
    first: int = 0
    parts: int | None = None
    is_later: bool = False


@dataclass(frozen=True)
class Files:
    """A holder's files: the columns that are wanted of them, and how they are written.

    `readings` says how each was understood, once it was read.
    """

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    form: Format = PLAIN
    readings: list[Reading] = field(default_factory=list, compare=False)

    def pieces(self) -> list[Piece]:
        """All pieces, in the order of their rows."""
        pieces = [piece for path in self.paths for piece in _pieces_of(path, len(self.names))]
        return [*pieces[:1], *(piece._replace(is_later=True) for piece in pieces[1:])]

    def columns(self) -> tuple[str, ...]:
        """The names of all columns of the first file, as far as its beginning shows them."""
        path = self.paths[0]
        with reading(path.name):
            if path.suffix.lower() == ".parquet":
                return tuple(pq.read_schema(path).names)
            if path.suffix.lower() in ARROW:
                return tuple(_open_arrow(Piece(path, 0))[0].names)
            if kind_of(path) != "text":
                return ()
            wanted = [self.form.in_table(name) for name in self.names]
            return tuple(opened(path, wanted, self.form).header.names)

    def note(self, piece: Piece, report: Reading) -> None:
        """Add how a piece was understood to what is known of its file; pieces come in order."""
        if piece.first:
            self.readings[-1].given += report.given
        else:
            self.readings.append(report)

    def batches(self, study: Study) -> Batches:
        """The batches of all pieces."""
        reader = Reader(self, study)
        self.readings.clear()
        for piece in self.pieces():
            report = report_of(piece)
            yield from reader.batches(piece, report)
            self.note(piece, report)


def report_of(piece: Piece) -> Reading:
    """What is known of a piece before it is read."""
    return Reading(piece.path.name, kind_of(piece.path))


def kind_of(path: Path) -> str:
    """What a file is, in a word or two."""
    suffix = path.suffix.lower()
    if suffix in packages.READERS:
        return packages.READERS[suffix][1]
    if suffix in sheets.SUFFIXES:
        return "spreadsheet"
    return "Parquet" if suffix == ".parquet" else "Arrow" if suffix in ARROW else "text"


# Where pieces begin.


def _pieces_of(path: Path, columns: int) -> list[Piece]:
    with reading(path.name):
        size = path.stat().st_size
        if path.suffix.lower() == ".parquet":
            footer = pq.read_metadata(path)
            groups = range(footer.num_row_groups)
            return _grouped(path, [footer.row_group(i).num_rows * columns for i in groups])
        if path.suffix.lower() in ARROW:
            count = _arrow_batches(path)
            return _grouped(path, [size // CELL_BYTES // max(1, count)] * count)
        return [Piece(path, size)]


def _arrow_batches(path: Path) -> int:
    """Record batches of an Arrow file; 0 of a stream, which has no list of them."""
    try:
        return int(pa.ipc.open_file(pa.OSFile(str(path))).num_record_batches)
    except pa.ArrowInvalid:
        return 0


def _grouped(path: Path, works: list[int]) -> list[Piece]:
    """Neighbours put together until they are worth a piece; all of the file where it has no parts.

    A list that is empty may be of a stream, which is read from its beginning to its end.
    """
    pieces = []
    first = 0
    work = 0
    for place, more in enumerate(works, 1):
        work += more
        if work >= PIECE_CELLS or place == len(works):
            pieces.append(Piece(path, work, first, place - first))
            first = place
            work = 0
    return pieces or [Piece(path, path.stat().st_size // CELL_BYTES)]


# Reading one.


class Reader:
    """Reads pieces one after the other; the footer of a file that was just open is not read anew.

    A holder's own codes for missing values are taken out.
    """

    def __init__(self, files: Files, study: Study) -> None:
        self._names = list(files.names)
        self._form = files.form
        self._study = study
        self._known: tuple[Path, pq.FileMetaData] | None = None

    def batches(self, piece: Piece, report: Reading) -> Batches:
        """The rows of a piece, as record batches with the study's names."""
        batches = self._batches(piece, report)
        codes = self._form.missing
        return (without_codes(batch, codes) for batch in batches) if codes else batches

    def _batches(self, piece: Piece, report: Reading) -> Batches:
        path = piece.path
        suffix = path.suffix.lower()
        if suffix in ARROW:
            wanted = [self._form.in_table(name) for name in self._names]
            read = self._parquet if suffix == ".parquet" else _arrow
            own = dict(zip(wanted, self._names, strict=True))
            return _counted(read(piece, wanted), own, report)
        given = (self._names, self._study, self._form, report)
        if suffix in packages.READERS:
            return guarded(packages.package_batches(path, *given), path.name)
        if suffix in sheets.SUFFIXES:
            return guarded(sheets.sheet_batches(path, *given), path.name)
        return guarded(text_batches(path, *given), path.name)

    def _parquet(self, piece: Piece, names: list[str]) -> Batches:
        path = piece.path
        footer = self._known[1] if self._known is not None and self._known[0] == path else None
        with reading(path.name):
            file = pq.ParquetFile(path, metadata=footer, pre_buffer=False, buffer_size=READ_BYTES)
            self._known = (path, file.metadata)
            check_names(file.schema_arrow.names, names, path.name)
            groups = range(piece.first, piece.first + (piece.parts or 0))
            reader = file.iter_batches(
                batch_size=batch_rows(len(names)),
                row_groups=list(groups),
                columns=names,
                use_threads=False,
            )
        return guarded(reader, path.name)


def batch_rows(columns: int) -> int:
    """Rows that are read at once: fewer where columns are many, so that memory is the same."""
    return max(LEAST_BATCH_ROWS, min(MOST_BATCH_ROWS, BATCH_CELLS // max(1, columns)))


def _counted(batches: Batches, own: Mapping[str, str], report: Reading) -> Batches:
    for batch in batches:
        report.given += batch.num_rows
        yield batch.select(list(own)).rename_columns(list(own.values()))


def _arrow(piece: Piece, names: list[str]) -> Batches:
    path = piece.path
    with reading(path.name):
        schema, _ = _open_arrow(piece)
        check_names(schema.names, names, path.name)
        _, batches = _open_arrow(piece, [schema.get_field_index(name) for name in names])
    return guarded(map(_validated, batches), path.name)


def _open_arrow(
    piece: Piece, fields: list[int] | None = None
) -> tuple[pa.Schema, Iterable[pa.RecordBatch]]:
    """Schema and batches of an Arrow file or stream: read, not mapped, so a damaged one raises."""
    source = pa.OSFile(str(piece.path))
    options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
    try:
        file = pa.ipc.open_file(source, options=options)
    except pa.ArrowInvalid:
        source.seek(0)
        stream = pa.ipc.open_stream(source, options=options)
        return stream.schema, stream
    count = file.num_record_batches if piece.parts is None else piece.parts
    places = range(piece.first, piece.first + count)
    return file.schema, (file.get_batch(place) for place in places)


_BYTES = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}


def _validated(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Refuse damaged offsets, which Arrow trusts and would follow out of its buffers."""
    for column in batch.columns:
        # Seen as bytes: letters that are none are a value like any other, and no damage.
        as_bytes = _BYTES.get(column.type)
        (column if as_bytes is None else column.cast(as_bytes)).validate(full=True)
    return batch
