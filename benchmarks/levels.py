"""Levels: how far X'r of a visit moves with the coefficients, over what X'X tells.

A long row u is shrunk by α, its residual is not: X'X = Σα²uu', and X'r moves by Σαuu' for a change
of the coefficients. What is published of lengths is the level, the mean of α², in the intercept's
entry; a reading takes Σαuu' for X'X over the level (`visits/joined.py`).

*shown*: trace of Σαuu' of slopes over that of Σα²uu'; *taken*: 1/level; *off*: one over the other,
less 1. Rows are cut at ρ times their usual length, in columns that are equally long and go with no
other. Made rows are normal, or have t's law of five degrees of freedom in each column; with `--data
DIR` every table of DIR/real, or of DIR where there is no such folder, is beside them.

Bar (--check): within 10 % on all made rows, and in the middle of tables within 5 %.

    python benchmarks/levels.py [--data DIR] [--quick] [--check]
"""

from pathlib import Path

import numpy as np
from frame import Bench, Table
from public_tables import load

REACHES = (1.0, 1.3, 2.0)
COLUMNS = (2, 5, 10, 20)
ROWS = 100_000
MADE = 0.10
MIDDLE = 0.05


def equally_long(features: np.ndarray) -> np.ndarray:
    """Rows with an intercept, the other columns of variance 1 and going with no other."""
    about = features - features.mean(axis=0)
    spreads, axes = np.linalg.eigh(about.T @ about / len(about))
    kept = spreads > 1e-9 * spreads[-1]
    scaled = about @ axes[:, kept] / np.sqrt(spreads[kept])
    return np.column_stack([np.ones(len(about)), scaled])


def told(rows: np.ndarray, reach: float) -> tuple[float, float]:
    """What X'r shows of a change over X'X, and what it is taken for."""
    lengths = np.linalg.norm(rows, axis=1)
    shrunk = np.minimum(1.0, reach * np.sqrt(rows.shape[1]) / lengths)
    squares = np.sum(rows[:, 1:] ** 2, axis=1)
    return float(shrunk @ squares / (shrunk**2 @ squares)), float(1 / np.mean(shrunk**2))


def main() -> None:
    bench = Bench(__doc__, quick="10,000 made rows")
    bench.option("--data", type=Path, help="the folder of the tables")
    options = bench.options()
    count = 10_000 if options.quick else ROWS
    columns = {"rows": "<14", "columns": "d", "ρ": "g", "shown": ".3f", "taken": ".3f"}
    table = bench.table("levels", columns | {"off": "+.1f%"})
    rng = np.random.default_rng(7)
    for d in COLUMNS:
        made = {"normal": rng.normal(size=(count, d)), "heavy": rng.standard_t(5, (count, d))}
        for name, features in made.items():
            rows = equally_long(features)
            for reach in REACHES:
                shown, taken = told(rows, reach)
                table.row(name, d, reach, shown, taken, taken / shown - 1)
                sentence = f"{name}, {d} columns, ρ = {reach:g}: within {MADE:.0%}"
                bench.bar(sentence, met=abs(taken / shown - 1) <= MADE)
    if options.data is not None:
        tables(bench, table, options.data)
    bench.finish()


def tables(bench: Bench, table: Table, data: Path) -> None:
    """Public tables, and the middle of them at every ρ."""
    folder = data / "real" if (data / "real").is_dir() else data
    paths = sorted(folder.glob("*.csv")) + sorted(folder.glob("*.csv.gz"))
    populations = [load(path) for path in paths]
    for reach in REACHES:
        offs = []
        for each in populations:
            rows = equally_long(each.x)
            shown, taken = told(rows, reach)
            table.row(each.name, rows.shape[1] - 1, reach, shown, taken, taken / shown - 1)
            offs.append(abs(taken / shown - 1))
        middle = float(np.median(offs))
        bench.bar(f"tables, ρ = {reach:g}: {middle:.1%} in the middle, 5 %", met=middle <= MIDDLE)


if __name__ == "__main__":
    main()
