"""What the package does by default on the same rows.

Its default release, replace-one, and its default method, noise-aware.

The study declares every column within ± its largest value, typical in ±√3 standard deviations (the
interval of a uniform law of that variance), no intercept, every holder's number of rows as planned,
and leaves the rest at its default. Those numbers are as public here as the paper's bounds are: in a
real study they come from knowledge of the columns, or are bought with budget.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.collection import Collection, collect
from tacit.analyst.fit import fit
from tacit.analyst.posterior.posterior import Posterior
from tacit.holder.charge import Purpose
from tacit.holder.perturb import privatise
from tacit.holder.statistics import Statistics, statistics_of
from tacit.rows.table import table_of
from tacit.simulation import seeded
from tacit.study import Study

Array = NDArray[np.float64]


def default_study(x: Array, response: float, holders: int, epsilon: float, delta: float) -> Study:
    """The study for rows x, dealt to so many holders, and responses within ±`response`."""
    features = []
    for k, column in enumerate(x.T):
        most = float(np.abs(column).max())
        usual = min(most, math.sqrt(3) * float(column.std()))
        features.append({"name": f"x{k}", "range": [-most, most], "typical": [-usual, usual]})
    return Study.from_document(
        {
            "name": "paper",
            "epsilon": epsilon,
            "delta": delta,
            "intercept": False,
            "planned_rows": [len(part) for part in np.array_split(x, holders)],
            "visits": 1,
            "response": {"name": "y", "range": [-response, response]},
            "features": features,
        }
    )


def statistics_by_holder(study: Study, x: Array, y: Array, holders: int) -> list[Statistics]:
    """Exact statistics of consecutive blocks of rows."""
    return [
        statistics_of(study, table_of(part, study).batches())
        for part in np.array_split(np.column_stack([x, y]), holders)
    ]


def collection_of(
    study: Study, statistics: Sequence[Statistics], rng: np.random.Generator
) -> Collection:
    """Simulated releases."""
    noise = seeded(rng)
    releases = [
        privatise(study, part, Purpose(f"h{k}", "simulated"), noise)
        for k, part in enumerate(statistics)
    ]
    return collect(releases, allow_simulated=True)


def posterior_of(collection: Collection) -> Posterior:
    """By the default method."""
    return fit(collection)
