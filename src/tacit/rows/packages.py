"""Files of statistics packages, Stata, SPSS and SAS, by pyreadstat.

Missing values of all kinds that the package knows are missing. A column of levels is read by its
value labels where one of these is a level of the study, else by its codes: labels are part of the
file's description, not of a row.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from tacit.rows.drivers import rewritten
from tacit.rows.names import check_names
from tacit.rows.objects import texts_of
from tacit.rows.reading import Reading
from tacit.rows.written import Format
from tacit.study import Study

READERS = {
    ".dta": ("read_dta", "Stata"),
    ".sav": ("read_sav", "SPSS"),
    ".zsav": ("read_sav", "SPSS"),
    ".sas7bdat": ("read_sas7bdat", "SAS"),
    ".xpt": ("read_xport", "SAS transport"),
}
_REASONS = (
    (
        "^(ModuleNotFound|Import)Error",
        "files of Stata, SPSS and SAS need the extra tables: pip install 'tacit-dp[tables]'",
    ),
)


def package_batches(
    path: Path, names: Sequence[str], study: Study, form: Format, reading: Reading
) -> Iterator[pa.RecordBatch]:
    """The study's columns of a file, read whole."""
    reader, _ = READERS[path.suffix.lower()]
    wanted = [form.in_table(name) for name in names]
    damaged = f"{path.name} cannot be read: check that it is whole, or export it as CSV"
    with rewritten(_REASONS, damaged):
        import pyreadstat

        read = getattr(pyreadstat, reader)
        _, known = read(str(path), metadataonly=True, output_format="dict", encoding=form.encoding)
        check_names(known.column_names, wanted, path.name)
        values, known = read(
            str(path),
            usecols=wanted,
            output_format="dict",
            disable_datetime_conversion=True,
            encoding=form.encoding,
        )
    columns = {
        own: _column(values[name], known.variable_value_labels.get(name, {}), study, own)
        for own, name in zip(names, wanted, strict=True)
    }
    table = pa.table(columns)
    reading.given = table.num_rows
    labelled = [own for own in names if _labels_used(known, form.in_table(own), study, own)]
    if labelled:
        reading.facts["levels by label"] = ", ".join(labelled)
    yield from table.to_batches(2**16)


def _labels_used(known: Any, name: str, study: Study, own: str) -> bool:  # noqa: ANN401
    labels = known.variable_value_labels.get(name, {})
    return bool(set(labels.values()) & set(_levels(study, own)))


def _levels(study: Study, name: str) -> Sequence[str]:
    return next((each.all_levels for each in study.features if each.name == name), ())


def _column(values: Sequence[Any], labels: Mapping[Any, str], study: Study, name: str) -> pa.Array:
    if set(labels.values()) & set(_levels(study, name)):
        values = [labels.get(value, value) for value in values]
    is_numeric = all(value is None or isinstance(value, float) for value in values)
    if is_numeric and not _levels(study, name):
        return pa.array(values, pa.float64(), from_pandas=True)
    return texts_of(None if value == "" else value for value in values)
