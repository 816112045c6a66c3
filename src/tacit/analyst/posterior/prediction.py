r"""Prediction: what the posterior says of the response of new rows, in the response's units.

With x the encoded row (never shrunk: shrinking multiplies a row and its response alike, so θ is
that of whole rows), the mean response is x'θ and a new response x'θ + e, e ~ N(0, σ²), both under
the posterior. Quantiles are those of the exact law (laws.py), not of draws of e. The variance of a
new response is split into that of e, that which exact statistics would leave in x'θ (pooled.py),
and the rest, which is due to privacy.
"""

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tacit.analyst.posterior.family_prediction import family_fields
from tacit.analyst.posterior.frames import frame_class
from tacit.analyst.posterior.holders import at_holder
from tacit.analyst.posterior.posterior import Posterior
from tacit.errors import PosteriorError, TableError
from tacit.files import whole_file
from tacit.rows.design import Design
from tacit.rows.table import BATCH_ROWS, Table, table_of

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

FIELDS = (
    *("mean", "mean_sd", "mean_low", "mean_high", "sd", "low", "high"),
    *("variance_residual", "variance_sampling", "variance_privacy"),
)
"""Columns of a prediction."""
SUFFIXES = (".parquet", ".csv")
MOST_HEADER = 2**20
"""Longest first line of a CSV file that is looked at."""
MOST_NUMBERS = 2**21
"""Size of the arrays that a block of rows may need, which keeps memory flat however many draws
there are."""


@dataclass(frozen=True)
class Predictions:
    """An Arrow table with a row for each that was asked for, and the columns `FIELDS`.

    Whatever reads Arrow takes it as it is (polars, DuckDB, pyarrow).
    """

    arrow: pa.Table

    def to_pandas(self) -> "pd.DataFrame":
        """The same as a data frame."""
        frame_class("to_pandas()")
        frame: pd.DataFrame = self.arrow.to_pandas()
        return frame

    def to_pylist(self) -> list[dict[str, float | None]]:
        """The rows as plain values; None where a row has no prediction."""
        rows: list[dict[str, float | None]] = self.arrow.to_pylist()
        return rows

    def __getitem__(self, column: str) -> pa.ChunkedArray:
        return self.arrow[column]

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.arrow.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<Predictions of {len(self):,} rows: {', '.join(FIELDS)}>"

    def _repr_html_(self) -> str:
        """The first rows, as a notebook shows them."""
        from tacit.analyst.report.notebook import predictions_html

        return predictions_html(self)


@dataclass
class RowCounts:
    """What was met on the way: rows, those without a prediction, and values that were clamped."""

    rows: int = 0
    incomplete: int = 0
    outside: dict[str, int] = field(default_factory=dict)  # values outside their range, by column

    def count_outside(self, column: str, values: int) -> None:
        """Count values of a column that lay outside its range."""
        if values:
            self.outside[column] = self.outside.get(column, 0) + values


class Predictor:
    """Predicts batch by batch; `met` counts along."""

    def __init__(self, posterior: Posterior, interval: float) -> None:
        if not 0 < interval < 1:
            raise PosteriorError(
                f"an interval's probability must lie between 0 and 1; got {interval}"
            )
        self.met = RowCounts()
        self._posterior = posterior
        self._design = Design(posterior.model, response=False, on_outside=self.met.count_outside)
        self._tails = np.array([(1 - interval) / 2, (1 + interval) / 2])
        outcome = posterior.outcome
        fitting = MOST_NUMBERS // (outcome.parts * posterior.model.d)
        self._most_rows = max(1, min(BATCH_ROWS, fitting))
        self._mean = outcome.mean()
        self._covariance = outcome.covariance()

    def batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch with the same rows.

        Those with a missing value that the study does not impute are null.
        """
        blocks = [self._block(block.T) for block in self._design.blocks(batch, self._most_rows)]
        columns = np.concatenate(blocks, axis=1) if blocks else np.empty((len(FIELDS), 0))
        arrays = [pa.array(column, pa.float64(), from_pandas=True) for column in columns]
        return pa.record_batch(arrays, list(FIELDS))

    def _block(self, rows: Array) -> Array:
        complete = ~np.isnan(rows).any(axis=1)
        missing = len(rows) - int(complete.sum())
        if missing and self._posterior.model.missing == "refuse":
            raise TableError(
                "the table has missing values, and the study refuses them: "
                "fill them before predicting"
            )
        self.met.rows += len(rows)
        self.met.incomplete += missing
        fields = np.full((len(FIELDS), len(rows)), np.nan)
        if complete.any():
            fields[:, complete] = self._predict(rows[complete])
        return fields

    def _predict(self, rows: Array) -> Array:
        """The fields of complete rows, (field, row)."""
        family = self._posterior.family
        if family is None:
            fields = self._line_fields(rows)
        else:
            fields = family_fields(self._posterior, family, rows, self._tails)
        return np.stack([fields[name] for name in FIELDS])

    def _line_fields(self, rows: Array) -> dict[str, Array]:
        """Those of a straight line with normal residuals."""
        outcome = self._posterior.outcome
        pooled = self._posterior.pooled
        middle, half = self._posterior.model.response.mapping
        matrix = half * rows
        offset = np.full(len(rows), middle)
        known = _variances(matrix, self._covariance)
        residual = np.full(len(rows), half**2 * outcome.residual_variance())
        sampling = np.full(len(rows), np.nan)
        if pooled is not None:
            sampling = np.minimum(_variances(matrix, pooled.sampling), known)
        mean_low, mean_high = outcome.quantiles(self._tails, matrix, offset).T
        low, high = outcome.quantiles(self._tails, matrix, offset, half).T
        return {
            "mean": matrix @ self._mean + offset,
            "mean_sd": np.sqrt(known),
            "mean_low": mean_low,
            "mean_high": mean_high,
            "sd": np.sqrt(known + residual),
            "low": low,
            "high": high,
            "variance_residual": residual,
            "variance_sampling": sampling,
            "variance_privacy": known - sampling,
        }


def _variances(matrix: Array, covariance: Array) -> Array:
    variances: Array = np.einsum("ia,ab,ib->i", matrix, covariance, matrix, optimize=True)
    return variances


def predict(
    posterior: Posterior, source: object, interval: float, holder: str | None = None
) -> Predictions:
    """Predict every row of a table that fits into memory."""
    predictor = Predictor(at_holder(posterior, holder), interval)
    batches = [predictor.batch(batch) for batch in table_for(posterior, source).batches()]
    schema = pa.schema([(name, pa.float64()) for name in FIELDS])
    return Predictions(arrow=pa.Table.from_batches(batches, schema))


def predict_to(
    path: Path,
    posterior: Posterior,
    source: object,
    interval: float = 0.9,
    *,
    holder: str | None = None,
    keep: Sequence[str] = (),
    on_rows: Callable[[int], None] = lambda _rows: None,
) -> RowCounts:
    """Predict batch by batch into a Parquet or CSV file, beside the columns to `keep`.

    Memory does not grow with the rows.
    """
    if path.suffix not in SUFFIXES:
        raise PosteriorError(
            f"a file of predictions must end in {' or '.join(SUFFIXES)}; got {path.name!r}"
        )
    if taken := set(keep) & set(FIELDS):
        raise TableError(
            f"keep: {min(taken)!r} is the name of a prediction; rename that column of the table"
        )
    predictor = Predictor(at_holder(posterior, holder), interval)
    table = table_for(posterior, source, keep)
    with whole_file(path) as file, _writer(path.suffix, file) as write:
        for batch in table.batches():
            kept = batch.select(list(keep))
            if path.suffix == ".csv":
                kept = without_formulas(kept)
            fields = predictor.batch(batch)
            write(pa.record_batch([*kept.columns, *fields.columns], [*keep, *FIELDS]))
            on_rows(batch.num_rows)
        if not predictor.met.rows:
            kept_fields = [(name, pa.string()) for name in keep]
            own_fields = [(name, pa.float64()) for name in FIELDS]
            write(pa.RecordBatch.from_pylist([], pa.schema([*kept_fields, *own_fields])))
    return predictor.met


def refuse_foreign(path: Path) -> None:
    """Refuse to overwrite what is not a file of predictions."""
    try:
        columns = _columns_of(path) if path.is_file() and path.stat().st_size else list(FIELDS)
    except (OSError, ValueError):
        columns = []
    if columns[-len(FIELDS) :] != list(FIELDS):
        raise PosteriorError(
            f"{str(path)!r} exists already and holds no predictions: choose another file, "
            "or remove it"
        )


def _columns_of(path: Path) -> list[str]:
    """Names of the columns of a Parquet file, or in the first line of a CSV file."""
    if path.suffix == ".parquet":
        names: list[str] = pq.read_schema(path).names
        return names
    with path.open("rb") as file:
        line = file.readline(MOST_HEADER).decode("utf-8", errors="replace")
    return next(csv.reader([line.rstrip("\r\n")]), [])


def without_formulas(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Texts that a spreadsheet would run, with an apostrophe before them, as spreadsheets write it.

    A cell that begins with = + - @, a tab or a carriage return is a formula to a program that opens
    the CSV file; the apostrophe makes it a text. Numbers are left alone.
    """
    columns = [_text_only(column) for column in batch.columns]
    return pa.record_batch(columns, names=batch.schema.names)


def _text_only(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    return pc.replace_substring_regex(column, pattern="^([=+\\-@\t\r])", replacement="'\\1")


def table_for(posterior: Posterior, source: object, keep: Sequence[str] = ()) -> Table:
    """The table to predict from: the study's features, and the columns to keep; no response."""
    features = [feature.name for feature in posterior.model.features]
    return table_of(source, posterior.model, list(dict.fromkeys([*features, *keep])))


@contextmanager
def _writer(suffix: str, file: BinaryIO) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """What writes batches to a file, of the schema that the first one has."""
    kind = pq.ParquetWriter if suffix == ".parquet" else pyarrow.csv.CSVWriter
    opened: list[pq.ParquetWriter | pyarrow.csv.CSVWriter] = []
    schema: list[pa.Schema] = []

    def write(batch: pa.RecordBatch) -> None:
        if not opened:
            schema.append(batch.schema)
            opened.append(kind(file, batch.schema))
        opened[0].write_batch(batch.cast(schema[0]))

    try:
        yield write
    finally:
        for writer in opened:
            writer.close()
