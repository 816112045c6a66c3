"""What the package does by default on the same rows.

Its default release, replace-one, and its default method, noise-aware.

The study declares every column within ± its largest value, typical in ±√3 standard deviations (the
interval of a uniform law of that variance), no intercept, every holder's number of rows as planned,
and leaves the rest at its default, the number of visits among it. Those numbers are as public here
as the paper's bounds are: in a real study they come from knowledge of the columns.
"""

import math

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.collection import collect
from tacit.analyst.fit import fit
from tacit.analyst.posterior.posterior import Posterior
from tacit.rows.table import table_of
from tacit.simulation import simulate, simulate_visits
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
            "response": {"name": "y", "range": [-response, response]},
            "features": features,
        }
    )


def posterior_of(
    study: Study, x: Array, y: Array, holders: int, rng: np.random.Generator
) -> Posterior:
    """By the default method, from simulated releases of consecutive blocks of rows."""
    parts = np.array_split(np.column_stack([x, y]), holders)
    tables = [table_of(part, study) for part in parts]
    if study.visit_count > 1 and holders > 1:
        return fit(collect(simulate_visits(study, tables, rng), allow_simulated=True))
    releases = [simulate(study, table, rng, holder=f"h{k}") for k, table in enumerate(tables)]
    return fit(collect(releases, allow_simulated=True))
