"""Studies of several visits for tests: three features, rows that are made, what intervals hold."""

import numpy as np

from tacit import Study
from tacit.simulation import simulate, simulate_visits

SLOPES = (0.3, -0.2, 0.1)


def study(n, holders=1, visits=5, epsilon=1.0, **fields):
    return Study.from_document(
        {
            "name": "visited",
            "epsilon": epsilon,
            "delta": 1e-6,
            "response": {"name": "y", "range": [-3.0, 3.0]},
            "features": [{"name": f"x{k}", "range": [-2.0, 2.0]} for k in range(len(SLOPES))],
            "planned_rows": [n // holders] * holders,
            "visits": visits,
        }
        | fields
    )


def rows(rng, n):
    x = 0.15 * rng.normal(size=(n, len(SLOPES))) @ np.array([[1, 0.6, 0], [0, 0.8, 0.3], [0, 0, 1]])
    y = 0.1 + x @ SLOPES + rng.normal(0, 0.15, n)
    return np.column_stack([x, y])


def held(posterior):
    """Which of the coefficients that the rows were made with lie in their 90 % intervals."""
    truth = np.array([0.1, *SLOPES])
    low, high = posterior.interval(0.9).T
    return (low <= truth) & (truth <= high)


def simulated(agreed, tables, rng):
    if len(tables) == 1:
        return [simulate(agreed, tables[0], rng, holder="north")]
    return simulate_visits(agreed, tables, rng)
