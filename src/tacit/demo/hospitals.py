"""Built-in data for the demonstration: length of stay after surgery in three made-up hospitals."""

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from tacit.errors import TableError
from tacit.files import write_whole

STUDY = """\
# What three hospitals and an analyst agreed on before anybody looked at data.
name = "length-of-stay"
relation = "replace-one"
epsilon = 1.0
delta = 1e-6

[response]
name = "days"
range = [0, 30]

[[features]]
name = "age"
range = [18, 100]

[[features]]
name = "bmi"
range = [15, 50]

[[features]]
name = "sex"
levels = ["female", "male"]

[[features]]
name = "admission"
levels = ["planned", "emergency"]
"""
TRUTH = {
    "(intercept)": 0.9,
    "age": 0.08,
    "bmi": 0.15,
    "sex[male]": 0.5,
    "admission[emergency]": 3.0,
}
"""Days: what the generator put in, and the analyst should find."""
RESIDUAL_SD = 2.5
MISSING = 0.01
NEW_PATIENTS = 200
"""Patients whose length of stay nobody knows yet."""
HOSPITALS = {
    "north": ("north.parquet", 6000),
    "south": ("south.csv", 9000),
    "east": ("east.csv.gz", 4000),
}


def patients(rng: np.random.Generator, rows: int) -> pa.Table:
    """Patients of one hospital; a few values are missing, a few outside the public ranges."""
    age = np.clip(rng.normal(58, 17, rows), 18, 104)
    bmi = rng.gamma(28, 1.0, rows)
    sex = rng.choice(["female", "male"], rows)
    admission = rng.choice(["planned", "emergency"], rows, p=[0.65, 0.35])
    days = (
        TRUTH["(intercept)"]
        + TRUTH["age"] * age
        + TRUTH["bmi"] * bmi
        + TRUTH["sex[male]"] * (sex == "male")
        + TRUTH["admission[emergency]"] * (admission == "emergency")
        + rng.normal(0, RESIDUAL_SD, rows)
    )
    return pa.table(
        {
            "patient": np.arange(rows),
            "age": np.round(age),
            "bmi": pa.array(np.round(bmi, 1), mask=rng.random(rows) < MISSING),
            "sex": sex,
            "admission": admission,
            "days": np.round(days, 1),
        }
    )


@dataclass(frozen=True)
class Story:
    """What the demonstration is told about: who holds what, and what can be compared in the end."""

    holders: str
    holder: str
    study: Path
    tables: dict[str, Path]
    new: Path  # rows that nobody published, responses included
    kept: tuple[str, ...]  # their columns to keep beside predictions
    response: str
    truth: str  # what an analyst cannot see, in words


def hospitals(folder: Path) -> Story:
    """Write the study, each hospital's table and some patients who came later."""
    tables = write_hospitals(folder)
    later = folder / "later-patients.csv"
    pyarrow.csv.write_csv(patients(np.random.default_rng(2025), 10 * NEW_PATIENTS), later)
    values = ", ".join(f"{name} {value:g}" for name, value in TRUTH.items())
    return Story(
        holders="hospitals",
        holder="hospital",
        study=folder / "study.toml",
        tables=tables,
        new=later,
        kept=("patient", "days"),
        response="days",
        truth=f"The data were made with: {values}; residual sd {RESIDUAL_SD:g}.",
    )


def write_new_patients(path: Path, seed: int = 2024) -> None:
    """Write a table of patients without the response, to predict it for."""
    table = patients(np.random.default_rng(seed), NEW_PATIENTS)
    pyarrow.csv.write_csv(table.drop_columns(["days"]), path)


def write_hospitals(folder: Path, seed: int = 2023) -> dict[str, Path]:
    """Write the study and each hospital's table, of three kinds of file; give the tables' paths."""
    rng = np.random.default_rng(seed)
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    paths = {}
    for name, (file, rows) in HOSPITALS.items():
        paths[name] = folder / name / file
        paths[name].parent.mkdir(exist_ok=True)
        table = patients(rng, rows)
        if file.endswith(".parquet"):
            pq.write_table(table, paths[name])
        else:
            with pa.output_stream(paths[name]) as stream:
                pyarrow.csv.write_csv(table, stream)
    return paths


TUTORIAL = {"north": "patients.csv", "south": "south.csv", "east": "east.csv"}
"""The tables of the tutorials, of the same patients."""


def write_tables(folder: Path, seed: int = 2023) -> list[str]:
    """Write what the tutorials work with, and give the files' names.

    A file that is there already stays, and one that is another is refused.
    """
    rng = np.random.default_rng(seed)
    contents = {"study.toml": STUDY.encode()}
    for holder, (_, rows) in HOSPITALS.items():
        stream = io.BytesIO()
        pyarrow.csv.write_csv(patients(rng, rows), stream)
        contents[TUTORIAL[holder]] = stream.getvalue()
    for name, content in contents.items():
        place = folder / name
        if place.exists() and place.read_bytes() != content:
            raise TableError(f"{str(place)!r} exists already and is another file: use a new folder")
    for name, content in contents.items():
        write_whole(folder / name, content)
    return list(contents)
