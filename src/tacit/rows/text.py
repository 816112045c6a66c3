"""CSV text: cells that cannot be read are missing values, and so are all of a row out of shape.

What a row says must not decide whether a table can be read (docs/study.md, "What is refused"). So
every cell is read as text, numbers are made of it afterwards, and a row with too many or too few
cells stays a row, of missing values: the number of rows is part of what is published.
"""

import codecs
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from tacit.rows.arrow import numbers_in
from tacit.study import Study

NULLS = ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL"]
"""Spellings of a missing value in CSV files."""


class _Replacing:
    """Turns bytes that are no UTF-8 into the sign of replacement, piece by piece."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def __call__(self, piece: pa.Buffer) -> bytes:
        return self._decoder.decode(piece, final=len(piece) == 0).encode()


def text_at(path: Path) -> pa.NativeFile:
    """The text of a file, decompressed; Arrow's parser stumbles over bytes that are none."""
    return pa.TransformInputStream(pa.input_stream(str(path)), _Replacing())


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


class Dialect:
    """How the text of one source is read, and how many of its rows were out of shape so far."""

    def __init__(self, name: str, columns: Sequence[str], study: Study) -> None:
        """Tabs between cells where the name of the source says so, else commas."""
        self.out_of_shape = 0
        self.parse = pyarrow.csv.ParseOptions(
            delimiter="\t" if name.endswith((".tsv", ".tsv.gz")) else ",",
            invalid_row_handler=self._skip,
        )
        self.convert = pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()),
            include_columns=columns,
            null_values=NULLS,
            strings_can_be_null=True,
            check_utf8=False,
        )
        ranged = {feature.name for feature in study.features if feature.range is not None}
        ranged.add(study.response.name)
        self._numeric = [place for place, name in enumerate(columns) if name in ranged]
        types = [pa.float64() if name in ranged else pa.string() for name in columns]
        self._schema = pa.schema(list(zip(columns, types, strict=True)))

    def _skip(self, _row: object) -> str:
        self.out_of_shape += 1
        return "skip"

    def typed(self, batch: pa.RecordBatch, pool: pa.MemoryPool | None = None) -> pa.RecordBatch:
        """A batch of text with numbers in the columns that the study gives a range."""
        columns = list(batch.columns)
        for place in self._numeric:
            columns[place] = numbers_in(columns[place], pool)
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def missing(self, rows: int) -> pa.RecordBatch:
        """Rows of which every value is missing."""
        columns = [pa.nulls(rows, kind) for kind in self._schema.types]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)
