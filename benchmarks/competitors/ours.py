"""Tacit itself, through the same door as its competitors.

Rows are planned, but for the entry that plans none; everything else is left to the study's rules,
and the method is `noise-aware`.
One visit is one release of every holder, or of their secure sum; several are what `visits` in the
study asks for. Noise is seeded, and otherwise what `tacit publish` adds; privacy is argued in
docs/privacy.md.
"""

import base64
from dataclasses import dataclass

import numpy as np

from tacit.analyst.collection import collect
from tacit.analyst.fit import fit as fit_releases
from tacit.simulation import simulate, simulate_sum, simulate_visits
from tacit.study import Study

from .holders import Budget, Holders, Line


@dataclass(frozen=True)
class Settings:
    """How many visits; 0: as many as the study's rule chooses."""

    visits: int
    planned: bool = True
    """Whether the study states its numbers of rows."""


def study_of(holders: Holders, budget: Budget, settings: Settings) -> Study:
    """The study that these holders would agree on: public ranges and planned rows."""
    count = len(holders.designs)
    document: dict[str, object] = {
        "name": "league",
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "response": {"name": "y", "range": [-1.0, 1.0]},
        "features": [{"name": f"x{k}", "range": [-1.0, 1.0]} for k in range(holders.d - 1)],
    }
    if settings.planned:
        document["planned_rows"] = [len(y) for y in holders.responses]
    if holders.secure_sum:
        keys = [base64.b64encode(k.to_bytes(32, "big")).decode() for k in range(count)]
        names = [f"h{k}" for k in range(count)]
        document["secure_sum"] = {
            "holders": dict(zip(names, keys, strict=True)),
            "least": count,
            "colluding": 0,
        }
    if settings.visits:
        document["visits"] = settings.visits
    return Study.from_document(document)


def chooses_several(holders: Holders, budget: Budget) -> bool:
    """Whether the study's rule chooses several visits."""
    return study_of(holders, budget, Settings(visits=0)).visit_count > 1


def fit(rng: np.random.Generator, holders: Holders, budget: Budget, settings: Settings) -> Line:
    """The posterior mean from what the holders release."""
    study = study_of(holders, budget, settings)
    pairs = zip(holders.designs, holders.responses, strict=True)
    tables = [np.column_stack([x[:, 1:], y]) for x, y in pairs]
    if holders.secure_sum:
        releases = [simulate_sum(study, tables, rng)]
    elif study.visit_count > 1:
        releases = simulate_visits(study, tables, rng)
    else:
        releases = [simulate(study, rows, rng, holder=f"h{k}") for k, rows in enumerate(tables)]
    return Line(fit_releases(collect(releases, allow_simulated=True)).mean())
