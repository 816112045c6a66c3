"""CSV text: cells that cannot be read are missing values, and so are all of a row out of shape.

What a row says must not decide whether a table can be read (docs/study.md, "What is refused"). So
every cell is read as text, numbers are made of it afterwards, and a row with too many or too few
cells stays a row, of missing values: the number of rows is part of what is published.
"""

import codecs
import re
import time
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv

from tacit.rows.cells import Numbers, decimal_of
from tacit.rows.codes import NULLS
from tacit.rows.reading import Reading
from tacit.rows.written import (
    HEAD_BYTES,
    MOST_TITLE_LINES,
    SEPARATORS,
    Format,
    Header,
    check_header,
    encoding_of,
    header_of,
)
from tacit.study import Study

BLOCK_BYTES = 2**22
"""Text that is parsed at once: in smaller pieces a fifth more time goes into calls."""
PATIENCE_S = 10.0
"""How long Arrow's thread may take to let go of a file: a moment, but on a busy machine."""
_NO_ROW = re.compile(r"[\s|+=-]*|\(\d+ (rows?|Zeilen?|lignes?)( affected)?\)\s*")
"""A line that a database's client draws around rows."""


def _windows_1252(error: UnicodeError) -> tuple[str, int]:
    """Read bytes that are no UTF-8 one by one as Windows-1252, whatever stands beside them."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    lost = error.object[error.start : error.end]
    return lost.decode("windows-1252", "replace"), error.end


codecs.register_error("tacit-windows-1252", _windows_1252)


class _Decoding:
    """Turns text of any encoding into UTF-8, piece by piece."""

    def __init__(self, encoding: str) -> None:
        errors = "tacit-windows-1252" if encoding == "utf-8" else "replace"
        self._decoder = codecs.getincrementaldecoder(encoding)(errors)

    def __call__(self, piece: pa.Buffer) -> bytes:
        return self._decoder.decode(piece, final=len(piece) == 0).encode("utf-8", "replace")


def text_at(path: Path, decoding: _Decoding) -> pa.NativeFile:
    """The text of a file, decompressed; Arrow's parser stumbles over bytes that are none."""
    return pa.TransformInputStream(pa.input_stream(str(path)), decoding)


def _await_end_of(decoding: "weakref.ref[_Decoding]") -> None:
    """Wait until Arrow's reading thread has let go of Python.

    Where it does so only while the program ends, the whole process is aborted.
    """
    end = time.monotonic() + PATIENCE_S
    while decoding() is not None and time.monotonic() < end:
        time.sleep(0.001)


def is_text(line: bytearray) -> bool:
    """Whether bytes are UTF-8, found out without copying them."""
    ends = pa.array([0, len(line)], pa.int32()).buffers()[1]
    try:
        pa.StringArray.from_buffers(1, ends, pa.py_buffer(line)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def make_text(line: bytearray) -> None:
    """Turn every byte that is not ASCII into a question mark, in place."""
    view = np.frombuffer(line, np.uint8)
    view[view >= 2**7] = ord("?")


def usual_separator(name: str) -> str:
    """Tabs between cells where the name of the source says so, else commas."""
    return "\t" if name.endswith((".tsv", ".tsv.gz")) else ","


class Dialect:
    """How the text of one source is read, and how many of its rows were out of shape so far."""

    def __init__(
        self,
        columns: Sequence[str],
        study: Study,
        *,
        separator: str = ",",
        form: Format | None = None,
        skipped: int = 1,
        reading: Reading | None = None,
    ) -> None:
        """`columns` are named as in the table; `skipped` lines stand before the first row."""
        form = form or Format()
        self.out_of_shape = 0
        self._skipped = skipped
        self._reading = reading
        own = {form.in_table(feature.name): feature for feature in study.features}
        levels = {level for feature in study.features for level in feature.all_levels}
        self.parse = pyarrow.csv.ParseOptions(
            delimiter=separator, invalid_row_handler=self._skip, newlines_in_values=True
        )
        self.convert = pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()),
            include_columns=columns,
            null_values=[code for code in NULLS if code not in levels],
            strings_can_be_null=True,
            check_utf8=False,
        )
        ranged = {name for name, feature in own.items() if feature.range is not None}
        ranged.add(form.in_table(study.response.name))
        self.numbers = Numbers(decimal_of(form, separator), form.thousands)
        self._numeric = [place for place, name in enumerate(columns) if name in ranged]
        types = [pa.float64() if name in ranged else pa.string() for name in columns]
        self._schema = pa.schema(list(zip(columns, types, strict=True)))

    def _skip(self, row: pyarrow.csv.InvalidRow) -> str:
        if _NO_ROW.fullmatch(row.text) is None:
            self.out_of_shape += 1
            if self._reading is not None:
                self._reading.add_misshapen(row.number and row.number - self._skipped)
        return "skip"

    def typed(self, batch: pa.RecordBatch, pool: pa.MemoryPool | None = None) -> pa.RecordBatch:
        """A batch of text with numbers in the columns that the study gives a range."""
        columns = list(batch.columns)
        for place in self._numeric:
            columns[place] = self.numbers.read(columns[place], self._schema.names[place], pool)
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def missing(self, rows: int) -> pa.RecordBatch:
        """Rows of which every value is missing."""
        columns = [pa.nulls(rows, kind) for kind in self._schema.types]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


class Opened(NamedTuple):
    """What is known of a text file once its first lines were looked at."""

    encoding: str
    header: Header


def opened(path: Path, wanted: Sequence[str], form: Format) -> Opened:
    """Look at the lines up to the names, and refuse names that are not those wanted."""
    with pa.input_stream(str(path)) as file:
        head = file.read(HEAD_BYTES)
    encoding = encoding_of(head, form.encoding)
    decoded = _Decoding(encoding)
    lines = decoded(head).decode("utf-8").splitlines()
    most = MOST_TITLE_LINES if form.header is None else form.header
    header = header_of(lines[:most], wanted, form, usual_separator(path.name))
    check_header(header, wanted, path.name)
    return Opened(encoding, header)


def text_batches(
    path: Path, names: Sequence[str], study: Study, form: Format, reading: Reading
) -> Iterator[pa.RecordBatch]:
    """The rows of a text file; `names` are those of the study, and so are the batches'."""
    wanted = [form.in_table(name) for name in names]
    known = opened(path, wanted, form)
    header = known.header
    dialect = Dialect(
        wanted,
        study,
        separator=header.separator,
        form=form,
        skipped=header.line,
        reading=reading,
    )
    reading.facts |= _facts(known, dialect)
    placed = [
        name if name in wanted else f"column {place}" for place, name in enumerate(header.names)
    ]
    decoding = _Decoding(known.encoding)
    held = weakref.ref(decoding)
    batches = pyarrow.csv.open_csv(
        text_at(path, decoding),
        read_options=pyarrow.csv.ReadOptions(
            use_threads=False,
            block_size=BLOCK_BYTES,
            skip_rows=header.line,
            column_names=placed,
        ),
        parse_options=dialect.parse,
        convert_options=dialect.convert,
    )
    del decoding
    try:
        for batch in batches:
            reading.given += batch.num_rows
            yield dialect.typed(batch).rename_columns(list(names))
    finally:
        del batches
        _await_end_of(held)
    reading.doubts += dialect.numbers.doubts()
    yield dialect.missing(dialect.out_of_shape).rename_columns(list(names))


def _facts(known: Opened, dialect: Dialect) -> dict[str, str]:
    header = known.header
    return {
        "names in": f"line {header.line}",
        "separator": SEPARATORS.get(header.separator, repr(header.separator)),
        "encoding": "UTF-8, single bytes Windows-1252"
        if known.encoding == "utf-8"
        else known.encoding,
        "decimal sign": {
            "plain": "point",
            ".": "point",
            ",": "comma",
            "free": "point or comma, by cell",
        }[dialect.numbers.decimal],
    }
