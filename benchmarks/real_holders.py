"""Holders that differ, on real tables: sixteen airlines, and twelve stations in Beijing's air.

The airlines are those of `tacit demo` (extra `demo`). The stations need --data, the file
beijing_air_12sites.csv.gz (UCI Beijing Multi-Site Air Quality, CC BY 4.0; one CSV of all
stations with a header): PM2.5, in µg/m³, on gases and weather, hours with a missing value left
out.

Each holder publishes with seeded noise at the study's ε. Printed for each coefficient, in the
response's units over a feature's whole range: the average holder, the sd between holders with
its 90 % interval, I², and beside it what nobody there could compute: the same sd from every
holder's exact statistics (DerSimonian and Laird). Then, for holders of at least 2,000 rows, how
far own coefficients lie from those of exact statistics: drawn towards the average, each holder
alone, and all holders alike; and how often 90 % intervals of the first hold the exact ones. The
model lets coefficients differ independently of each other. Stations' do not (that of O3 goes
with that of TEMP, correlation −0.8), and at ε = 1 it shows.

    python benchmarks/real_holders.py [--data beijing_air_12sites.csv.gz] [--epsilon 1,3] [--check]

Bar (--check): own coefficients are nearer to the exact ones than those of holders taken to be
alike.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

import tacit
from tacit.analyst.posterior.holders import Holders
from tacit.demo import airlines
from tacit.simulation import exact, simulate
from tacit.study import Study

LEAST_ROWS = 2_000
STATIONS = """
name = "stations"
relation = "replace-one"
epsilon = 1.0
delta = 1e-6
response = { name = "PM2.5", range = [0, 400] }
features = [
  { name = "SO2", range = [0, 500], typical = [0, 60] },
  { name = "NO2", range = [0, 300], typical = [0, 120] },
  { name = "CO", range = [0, 10000], typical = [100, 3500] },
  { name = "O3", range = [0, 1100], typical = [0, 200] },
  { name = "TEMP", range = [-25, 45], typical = [-10, 35] },
  { name = "PRES", range = [980, 1045], typical = [990, 1035] },
  { name = "DEWP", range = [-45, 35], typical = [-25, 25] },
  { name = "WSPM", range = [0, 15], typical = [0, 5] },
]
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="beijing_air_12sites.csv.gz")
    parser.add_argument("--epsilon", default="1,3", help="budgets, with commas between")
    parser.add_argument("--check", action="store_true", help="exit 1 when a bar is missed")
    options = parser.parse_args()
    budgets = [float(part) for part in options.epsilon.split(",")]
    met = True
    if airlines.is_available():
        with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder:
            study, tables = airline_tables(Path(folder))
            for epsilon in budgets:
                met &= measure("airlines", study, tables, epsilon)
    if options.data is not None:
        tables = station_tables(options.data)
        study = Study.from_toml(STATIONS)
        for epsilon in budgets:
            met &= measure("stations", study, tables, epsilon)
    print("bars met" if met else "bars missed")
    sys.exit(0 if met or not options.check else 1)


def airline_tables(folder: Path) -> tuple[Study, dict[str, pa.Table]]:
    story = airlines.airlines(folder)
    tables = {holder: pq.read_table(path) for holder, path in story.tables.items()}
    return Study.load(story.study), tables


def station_tables(path: Path) -> dict[str, pa.Table]:
    study = Study.from_toml(STATIONS)
    names = [feature.name for feature in study.features] + ["PM2.5"]
    table = pyarrow.csv.read_csv(path).select([*names, "station"]).drop_null()
    stations = sorted(pc.unique(table["station"]).to_pylist())
    return {
        station: table.filter(pc.equal(table["station"], station)).select(names)
        for station in stations
    }


def measure(name: str, study: Study, tables: dict[str, pa.Table], epsilon: float) -> bool:
    """Publish, fit in three ways, and print; whether the bars are met."""
    study = Study.from_document(study.model_dump(exclude={"release"}) | {"epsilon": epsilon})
    rng = np.random.default_rng(0)
    releases = [simulate(study, table, rng, holder=holder) for holder, table in tables.items()]
    collection = tacit.collect(releases, allow_simulated=True)
    posterior = tacit.fit(collection)
    to = posterior.units("contrast")
    truths, spread = exact_of(study, tables, to.matrix)
    holders = posterior.holders(units="contrast")
    rows = sum(table.num_rows for table in tables.values())
    print(f"\n{name}: {len(tables)} holders, {rows:,} rows, epsilon {study.epsilon:g}")
    print(f"{'':<14}{'average':>9}{'sd between':>12}{'90 % interval':>18}{'I2':>6}{'exact sd':>10}")
    mean = posterior.mean("contrast")
    for k, one in enumerate(holders.between):
        interval = f"{one.low:.2f} to {one.high:.2f}"
        share = f"{100 * one.inconsistency:.0f}%"
        print(
            f"{one.name:<14}{mean[k]:>9.2f}{one.sd:>12.2f}{interval:>18}{share:>6}{spread[k]:>10.2f}"
        )
    large = np.array([table.num_rows >= LEAST_ROWS for table in tables.values()])
    return own_errors(collection, holders, truths, large)


def exact_of(
    study: Study, tables: dict[str, pa.Table], matrix: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Each holder's coefficients from exact statistics, and their sd between holders by moments.

    Where a holder's own rows do not tell a coefficient (a level that it never has) it is left out.
    """
    values, variances = [], []
    for table in tables.values():
        evidence = exact(study, table)
        gram = evidence.grams[0]
        inverse = np.linalg.pinv(gram, rcond=1e-6, hermitian=True)
        theta = inverse @ evidence.moments[0]
        residual = max(evidence.squares[0] - theta @ evidence.moments[0], 0.0)
        covariance = inverse * residual / evidence.counts[0]
        unknown = np.diag(matrix @ (np.eye(len(gram)) - inverse @ gram) @ matrix.T) > 1e-6
        values.append(np.where(unknown, np.nan, matrix @ theta))
        variances.append(np.where(unknown, np.inf, np.diag(matrix @ covariance @ matrix.T)))
    truths = np.array(values)
    weights = 1 / np.array(variances)
    total = weights.sum(axis=0)
    centre = np.nansum(weights * np.nan_to_num(truths), axis=0) / total
    excess = np.nansum(weights * (np.nan_to_num(truths) - centre) ** 2, axis=0)
    excess -= np.isfinite(truths).sum(axis=0) - 1
    spread = excess / (total - np.sum(weights**2, axis=0) / total)
    return truths, np.sqrt(np.maximum(spread, 0.0))


def own_errors(
    collection: tacit.Collection, holders: Holders, truths: np.ndarray, large: np.ndarray
) -> bool:
    """How far large holders' own coefficients lie from exact ones."""
    alone = tacit.fit(collection, holders="separate").holders(units="contrast")
    alike = tacit.fit(collection, holders="common").mean("contrast")
    own = np.array([one.mean for one in holders.own])
    low, high = (np.array([getattr(one, end) for one in holders.own]) for end in ("low", "high"))
    errors = {
        "drawn towards the average": own - truths,
        "each alone": np.array([one.mean for one in alone.own]) - truths,
        "all alike": alike - truths,
    }
    sizes = {way: float(np.nanmedian(np.abs(error[large]))) for way, error in errors.items()}
    known = np.isfinite(truths) & large[:, None]
    held = float(np.mean(((low <= truths) & (truths <= high))[known]))
    print("median distance of own coefficients from exact ones, in the response's units:")
    print("; ".join(f"{way} {size:.2f}" for way, size in sizes.items()))
    print(f"90 % intervals of own coefficients hold {100 * held:.0f} % of the exact ones")
    return sizes["drawn towards the average"] < sizes["all alike"]


if __name__ == "__main__":
    main()
