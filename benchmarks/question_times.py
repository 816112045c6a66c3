"""How long answers take: processor seconds of every kind of question, 20 terms and ten holders.

Of one visit and of three, a straight line and each family; 20,000 rows of an intercept and 20
normal features, ε = 1, seeded. `questions.py` prints them and holds them against its bars.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
from frame import Bench, Table

from tacit.analyst.collection import Collection, collect
from tacit.analyst.comparison.compare import compare, select_terms
from tacit.analyst.families.links import FamilyName
from tacit.analyst.fit import fit
from tacit.analyst.posterior.posterior import Posterior
from tacit.simulation import simulate, simulate_visits
from tacit.study import Study

TERMS = 20
HOLDERS = 10
ROWS = 20_000
SECOND = 1.0
MINUTE = 60.0
FAMILIES: tuple[FamilyName, ...] = ("logistic", "probit", "poisson")
MOST_COUNTED = 10
Given = TypeVar("Given")


@dataclass(frozen=True)
class Clock:
    """A table of seconds, and bars for them."""

    bench: Bench
    table: Table
    visits: int

    def timed(self, what: str, work: Callable[[], Given], most: float = SECOND) -> Given:
        """What the work gives; how long it took is a row and a bar."""
        begun = time.process_time()
        given = work()
        seconds = time.process_time() - begun
        self.table.row(what, self.visits, seconds)
        name = f"{what}, visits = {self.visits}, takes at most {most:g} s"
        self.bench.bar(name, met=seconds <= most)
        return given


def tell_times(bench: Bench) -> None:
    """Print every time, with its bar."""
    table = bench.table("seconds", {"what": "<30", "visits": "", "seconds": ".3f"})
    for visits in (1, 3):
        clock = Clock(bench=bench, table=table, visits=visits)
        _time_line(clock, _released(None, visits))
        for family in FAMILIES:
            collection = _released(family, visits)
            posterior = clock.timed(f"{family} fit", partial(fit, collection, family=family))
            _time_readings(clock, posterior, f"{family} ")


def _time_line(clock: Clock, collection: Collection) -> None:
    posterior = clock.timed("fit", lambda: fit(collection))
    _time_readings(clock, posterior, "")
    small = clock.timed("sub-model", lambda: posterior.submodel(without="x2"))
    clock.timed("two models compared", lambda: compare(posterior, small))
    chosen = clock.timed("all sub-models", lambda: select_terms(posterior), MINUTE)
    clock.bench.say(f"{chosen.weighed:,} sub-models")


def _time_readings(clock: Clock, posterior: Posterior, of: str) -> None:
    clock.timed(f"{of}summary", posterior.summary)
    clock.timed(f"{of}effects", lambda: posterior.effects("x1 * 1", "x1: 1 - 0", "mean"))


def _released(family: str | None, visits: int) -> Collection:
    """Releases of rows with a response of the family's kind, or of a straight line."""
    rng = np.random.default_rng(0)
    names = [f"x{k}" for k in range(1, TERMS + 1)]
    features = rng.normal(size=(ROWS, len(names)))
    response, reach = _response(family, 0.5 * features[:, 0] - 0.3 * features[:, 1], rng)
    columns = dict(zip(names, features.T, strict=True))
    table = pa.table(columns | {"y": response})
    size = ROWS // HOLDERS
    document = {
        "name": "made",
        "epsilon": 1.0,
        "delta": 1e-6,
        "response": {"name": "y", "range": reach},
        "features": [{"name": name, "range": [-6, 6], "typical": [-1.7, 1.7]} for name in names],
        "planned_rows": [size] * HOLDERS,
        "visits": visits,
    }
    study = Study.from_document(document)
    tables = [table.slice(j * size, size) for j in range(HOLDERS)]
    if visits > 1:
        return collect(simulate_visits(study, tables, rng), allow_simulated=True)
    releases = [simulate(study, each, rng, holder=f"h{j}") for j, each in enumerate(tables)]
    return collect(releases, allow_simulated=True)


def _response(
    family: str | None, line: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, list[float]]:
    """Responses, and their public range."""
    if family is None:
        return line + rng.normal(size=len(line)), [-6.0, 6.0]
    if family == "poisson":
        counts = rng.poisson(np.exp(0.5 + 0.3 * line))
        return np.minimum(counts, MOST_COUNTED).astype(float), [0.0, float(MOST_COUNTED)]
    return (rng.random(len(line)) < 1 / (1 + np.exp(-line))).astype(float), [0.0, 1.0]
