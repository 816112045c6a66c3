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

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from frame import Bench, Table

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
    bench = Bench(__doc__, quick="one budget")
    bench.option("--data", type=Path, help="beijing_air_12sites.csv.gz")
    bench.option("--epsilon", default="1,3", help="budgets, with commas between")
    options = bench.options()
    budgets = [float(part) for part in options.epsilon.split(",")][: 1 if options.quick else None]
    tables = {
        "between": bench.table("between", BETWEEN),
        "own": bench.table("own", {"set": "<10", "epsilon": "g"} | dict.fromkeys(WAYS, ".2f")),
    }
    if airlines.is_available():
        with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder:
            study, rows = airline_tables(Path(folder))
            for epsilon in budgets:
                measure(bench, tables, "airlines", study_at(study, epsilon), rows)
    if options.data is not None:
        rows = station_tables(options.data)
        for epsilon in budgets:
            measure(bench, tables, "stations", study_at(Study.from_toml(STATIONS), epsilon), rows)
    bench.finish()


BETWEEN = {"set": "<10", "epsilon": "g", "coefficient": "<14", "average": ".2f"}
BETWEEN |= {"sd between": ".2f", "from": ".2f", "to": ".2f", "I²": ".0f%", "exact sd": ".2f"}
WAYS = ("drawn towards the average", "each alone", "all alike")


def study_at(study: Study, epsilon: float) -> Study:
    """The study with another budget, and the release's defaults that go with it."""
    return Study.from_document(study.model_dump(exclude={"release"}) | {"epsilon": epsilon})


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


def measure(
    bench: Bench, shown: dict[str, Table], name: str, study: Study, tables: dict[str, pa.Table]
) -> None:
    """Publish, fit in three ways, and show."""
    rng = np.random.default_rng(0)
    releases = [simulate(study, table, rng, holder=holder) for holder, table in tables.items()]
    collection = tacit.collect(releases, allow_simulated=True)
    posterior = tacit.fit(collection)
    to = posterior.units("contrast")
    truths, spread = exact_of(study, tables, to.matrix)
    holders = posterior.holders(units="contrast")
    rows = sum(table.num_rows for table in tables.values())
    mean = posterior.mean("contrast")
    for k, one in enumerate(holders.between):
        figures = (mean[k], one.sd, one.low, one.high, one.inconsistency, spread[k])
        shown["between"].row(name, study.epsilon, one.name, *figures)
    bench.say(f"{name}: {len(tables)} holders, {rows:,} rows, epsilon {study.epsilon:g}")
    large = np.array([table.num_rows >= LEAST_ROWS for table in tables.values()])
    sizes, held = own_errors(collection, holders, truths, large)
    shown["own"].row(name, study.epsilon, *sizes.values())
    bench.say(f"90 % intervals of own coefficients hold {100 * held:.0f} % of the exact ones")
    bench.bar(
        f"{name}, epsilon {study.epsilon:g}: own coefficients nearer than all alike",
        met=sizes[WAYS[0]] < sizes[WAYS[2]],
    )


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
) -> tuple[dict[str, float], float]:
    """Median distance of large holders' own coefficients from exact ones, and coverage."""
    alone = tacit.fit(collection, holders="separate").holders(units="contrast")
    alike = tacit.fit(collection, holders="common").mean("contrast")
    own = np.array([one.mean for one in holders.own])
    low, high = (np.array([getattr(one, end) for one in holders.own]) for end in ("low", "high"))
    each = np.array([one.mean for one in alone.own])
    errors = dict(zip(WAYS, (own - truths, each - truths, alike - truths), strict=True))
    sizes = {way: float(np.nanmedian(np.abs(error[large]))) for way, error in errors.items()}
    known = np.isfinite(truths) & large[:, None]
    return sizes, float(np.mean(((low <= truths) & (truths <= high))[known]))


if __name__ == "__main__":
    main()
