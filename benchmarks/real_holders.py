"""Holders that differ, on real tables: sixteen airlines, and twelve stations in Beijing's air.

The airlines are those of `tacit demo` (extra `demo`). The stations need --data, a folder
with beijing_air_12sites.csv.gz (UCI Beijing Multi-Site Air Quality, CC BY 4.0; one CSV of all
stations with a header): PM2.5, in µg/m³, on gases and weather, hours with a missing value left
out.

Each holder publishes with seeded noise at the study's ε. Printed for each coefficient, in the
response's units over a feature's whole range: the average holder, the sd between holders with
its 90 % interval, I², and beside it what nobody there could compute: the same sd from every
holder's exact statistics (DerSimonian and Laird). Then, for holders of at least 2,000 rows and
`RUNS` drawings of the noise, how far own coefficients lie from those of exact statistics: drawn
towards the average, each holder alone, and all holders alike; and how often 90 % intervals of the
first two hold the exact ones. The two coefficients whose exact values go together most are named.
Where every holder's rows tell all
coefficients, two more fits say what that costs: one that is told the sds of exact coefficients
between holders instead of estimating them, and one that is told their whole covariance.

    python benchmarks/real_holders.py [--quick] [--check] [--out DIR] [--data DIR] [--epsilon 1,3]

Bar (--check): own coefficients are nearer to the exact ones than those of holders taken to be
alike.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from frame import Bench

import tacit
from tacit.analyst.methods.noise_aware import net
from tacit.analyst.methods.noise_aware.model import Model
from tacit.analyst.posterior.holders import Own
from tacit.demo import airlines
from tacit.simulation import exact, simulate
from tacit.study import Study

LEAST_ROWS = 2_000
MOST_CONDITION = 1e4
"""Of X'X, beyond which a holder's rows do not tell all coefficients."""
RUNS = 8
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
    bench = Bench(__doc__, quick="one epsilon")
    bench.option("--data", type=Path, help="the folder of beijing_air_12sites.csv.gz")
    bench.option("--epsilon", default="1,3", help="budgets, with commas between")
    options = bench.options()
    budgets = [float(part) for part in options.epsilon.split(",")]
    sets: dict[str, tuple[Study, dict[str, pa.Table]]] = {}
    if airlines.is_available():
        with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder:
            sets["airlines"] = airline_tables(Path(folder))
    if options.data is not None:
        path = options.data / "beijing_air_12sites.csv.gz"
        sets["stations"] = Study.from_toml(STATIONS), station_tables(path)
    runs = 1 if options.quick else RUNS
    fits = [
        [Fit(name, study, tables, epsilon, run) for run in range(runs)]
        for name, (study, tables) in sets.items()
        for epsilon in budgets[: 1 if options.quick else None]
    ]
    for some in fits:
        show_between(bench, some[0])
        say_together(bench, some[0])
    show_own(bench, fits)
    bench.finish()


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


class Fit:
    """One set of holders at one ε and one drawing of the noise: fitted, and exact."""

    def __init__(
        self, name: str, study: Study, tables: dict[str, pa.Table], epsilon: float, run: int
    ) -> None:
        self.name = name
        self.epsilon = epsilon
        study = Study.from_document(study.model_dump(exclude={"release"}) | {"epsilon": epsilon})
        rng = np.random.default_rng(run)
        releases = [simulate(study, table, rng, holder=holder) for holder, table in tables.items()]
        self.collection = tacit.collect(releases, allow_simulated=True)
        self.posterior = tacit.fit(self.collection)
        self.exact, self.spread = exact_of(study, tables, self.posterior.units("contrast").matrix)
        self.covariance = covariance_of(study, tables)
        self.large = np.array([table.num_rows >= LEAST_ROWS for table in tables.values()])

    def own(self, way: str) -> tuple[Own, ...]:
        """Every holder's own coefficients, drawn towards the average or alone."""
        if way == "differ":
            return self.posterior.holders(units="contrast").own
        if way in {"told sds", "told all"} and self.covariance is not None:
            with told(self.covariance, together=way == "told all"):
                return tacit.fit(self.collection).holders(units="contrast").own
        return tacit.fit(self.collection, holders=way).holders(units="contrast").own


def covariance_of(study: Study, tables: dict[str, pa.Table]) -> np.ndarray | None:
    """Covariance of exact coefficients between holders, scaled; none where some are not told."""
    values = []
    for table in tables.values():
        evidence = exact(study, table)
        if np.linalg.cond(evidence.grams[0]) > MOST_CONDITION:
            return None
        values.append(np.linalg.solve(evidence.grams[0], evidence.moments[0]))
    return np.cov(np.array(values).T)


@contextmanager
def told(covariance: np.ndarray, *, together: bool) -> Iterator[None]:
    """Fits that know how far holders differ: by these sds, or by the whole covariance."""
    spread = np.sqrt(np.diag(covariance))
    draw = net.Law.draw
    may = net.may_go_together
    between = Model.between

    def covariance_in(model: Model) -> np.ndarray:
        back = model.facts.back
        return back @ covariance @ back.T if model.spread.any() else np.zeros_like(covariance)

    net.may_go_together = lambda *_: False
    net.Law.draw = lambda _, cube: (np.tile(spread, (len(cube), 1)), np.zeros(len(cube)))
    if together:
        Model.between = property(covariance_in)
    try:
        yield
    finally:
        net.Law.draw = draw
        net.may_go_together = may
        Model.between = between


def show_between(bench: Bench, fit: Fit) -> None:
    """Every coefficient: average, sd between holders, and that of exact statistics."""
    columns = {"coefficient": "<14", "average": ".2f", "sd between": ".2f", "5%": ".2f"}
    columns |= {"95%": ".2f", "I2": ".0f%", "exact sd": ".2f"}
    table = bench.table(f"{fit.name} at {fit.epsilon:g}", columns)
    mean = fit.posterior.mean("contrast")
    for k, one in enumerate(fit.posterior.holders(units="contrast").between):
        spread = fit.spread[k]
        table.row(one.name, mean[k], one.sd, one.low, one.high, one.inconsistency, spread)


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


def say_together(bench: Bench, fit: Fit) -> None:
    """Which two coefficients of exact statistics go together most, over large holders."""
    names = [one.name for one in fit.posterior.holders(units="contrast").between]
    values = fit.exact[fit.large]
    known = np.flatnonzero(np.isfinite(values).all(axis=0))
    together = np.triu(np.corrcoef(values[:, known].T), 1)
    one, other = np.unravel_index(np.argmax(np.abs(together)), together.shape)
    bench.say(
        f"{fit.name}: exact {names[known[one]]} goes with {names[known[other]]}, "
        f"correlation {together[one, other]:.2f}"
    )


def show_own(bench: Bench, fits: list[list[Fit]]) -> None:
    """How far large holders' own coefficients lie from exact ones."""
    ways = ("drawn to the average", "each alone", "all alike")
    columns = {"holders": "<10", "epsilon": "g", "runs": "d"} | dict.fromkeys(ways, ".2f")
    columns |= {"held": ".0f%", "held alone": ".0f%"}
    columns |= {"held, told sds": ".0f%", "held, told covariance": ".0f%"}
    table = bench.table("own", columns)
    for some in fits:
        first = some[0]
        sizes = np.mean([distances(fit) for fit in some], axis=0)
        shown = ("differ", "separate", "told sds", "told all")
        shares = [
            None
            if way.startswith("told") and first.covariance is None
            else float(np.mean([held(fit, way) for fit in some]))
            for way in shown
        ]
        table.row(first.name, first.epsilon, len(some), *sizes, *shares)
        bench.bar(
            f"{first.name} at {first.epsilon:g}: own coefficients are nearer than common ones",
            met=bool(sizes[0] < sizes[2]),
        )


def distances(fit: Fit) -> list[float]:
    """Median distances of own coefficients from exact ones: drawn, alone, and all alike."""
    own = [np.array([one.mean for one in fit.own(way)]) for way in ("differ", "separate")]
    alike = tacit.fit(fit.collection, holders="common").mean("contrast")
    errors = [np.abs(values - fit.exact)[fit.large] for values in (*own, alike)]
    return [float(np.nanmedian(error)) for error in errors]


def held(fit: Fit, way: str) -> float:
    """Share of own intervals that hold the exact coefficients."""
    low, high = (np.array([getattr(one, e) for one in fit.own(way)]) for e in ("low", "high"))
    known = np.isfinite(fit.exact) & fit.large[:, None]
    return float(np.mean(((low <= fit.exact) & (fit.exact <= high))[known]))


if __name__ == "__main__":
    main()
