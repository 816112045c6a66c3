"""Tacit itself, through the same door as its competitors.

`one visit` is the default without further visits: one release of every holder, or of their secure
sum, with rows planned, everything else left to the study's rules, and method `noise-aware`. Noise
is seeded, and otherwise what `tacit publish` adds; privacy is argued in docs/privacy.md.
"""

import base64
from dataclasses import dataclass

import numpy as np

from tacit.analyst.collection import collect
from tacit.analyst.fit import fit as fit_releases
from tacit.simulation import simulate, simulate_sum
from tacit.study import Study

from .holders import Budget, Holders, Line


@dataclass(frozen=True)
class Settings:
    """How many visits."""

    visits: int = 1


def study_of(holders: Holders, budget: Budget) -> Study:
    """The study that these holders would agree on: public ranges and planned rows."""
    count = len(holders.designs)
    document: dict[str, object] = {
        "name": "league",
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "response": {"name": "y", "range": [-1.0, 1.0]},
        "features": [{"name": f"x{k}", "range": [-1.0, 1.0]} for k in range(holders.d - 1)],
        "planned_rows": [len(y) for y in holders.responses],
    }
    if holders.secure_sum:
        keys = [base64.b64encode(k.to_bytes(32, "big")).decode() for k in range(count)]
        names = [f"h{k}" for k in range(count)]
        document["secure_sum"] = {
            "holders": dict(zip(names, keys, strict=True)),
            "least": count,
            "colluding": 0,
        }
    return Study.from_document(document)


def fit(rng: np.random.Generator, holders: Holders, budget: Budget, settings: Settings) -> Line:
    """The posterior mean from what the holders release."""
    del settings
    study = study_of(holders, budget)
    pairs = zip(holders.designs, holders.responses, strict=True)
    tables = [np.column_stack([x[:, 1:], y]) for x, y in pairs]
    if holders.secure_sum:
        releases = [simulate_sum(study, tables, rng)]
    else:
        releases = [simulate(study, rows, rng, holder=f"h{k}") for k, rows in enumerate(tables)]
    return Line(fit_releases(collect(releases, allow_simulated=True)).mean())
