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

from experiments.model.priors import SIGMA
from tacit.analyst.collection import Collection, collect
from tacit.analyst.fit import fit
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.prior_file import prior_from_table
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


def collected(
    study: Study, x: Array, y: Array, holders: int, rng: np.random.Generator
) -> Collection:
    """Simulated releases of consecutive blocks of rows."""
    parts = np.array_split(np.column_stack([x, y]), holders)
    tables = [table_of(part, study) for part in parts]
    if study.visit_count > 1 and holders > 1:
        return collect(simulate_visits(study, tables, rng), allow_simulated=True)
    releases = [simulate(study, table, rng, holder=f"h{k}") for k, table in enumerate(tables)]
    return collect(releases, allow_simulated=True)


def posterior_of(
    study: Study, x: Array, y: Array, holders: int, rng: np.random.Generator
) -> Posterior:
    """By the default method."""
    return fit(collected(study, x, y, holders, rng))


def informed(collection: Collection) -> Posterior:
    """With what the paper's methods take for known: θ ~ N(0, 0.0263 I), and holders that are alike.

    θ is in the units of the data there. Their prior of σ² is left out: its mean is 0.0263 as well,
    where the data have 1.
    """
    names = [feature.name for feature in collection.study.features]
    table = {"units": "user", "coefficient_sd": dict.fromkeys(names, math.sqrt(SIGMA))}
    prior = prior_from_table(table, collection.study)
    return fit(collection, prior=prior, holders="common")
