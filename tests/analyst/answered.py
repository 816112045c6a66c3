"""Rows of every kind of feature with yes/no answers or counts, for tests of families."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from tacit.analyst.collection import collect
from tacit.analyst.evidence import Evidence
from tacit.analyst.families.fit import Question, fit_family
from tacit.analyst.families.links import LINKS
from tacit.analyst.fit import fit
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.noise_aware import fit as noise_aware
from tacit.analyst.posterior.laws import Outcome
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.prior import Prior
from tacit.simulation import exact, simulate
from tacit.study import Study

Array = NDArray[np.float64]
Rows = dict[str, NDArray[np.generic]]


def study_of(
    features: list[dict[str, Any]], top: float = 1.0, epsilon: float = 1.0, **fields: Any
) -> Study:
    return Study.from_document(
        {
            "name": "families",
            "epsilon": epsilon,
            "delta": 1e-6,
            "response": {"name": "y", "range": [0, top]},
            "features": features,
            **fields,
        }
    )


def numbers(count: int) -> list[dict[str, Any]]:
    return [{"name": f"x{k}", "range": [-4, 4]} for k in range(count)]


NORMAL = numbers(3)
SKEWED = [{"name": f"x{k}", "range": [0, 8]} for k in range(3)]
BINARY = [{"name": f"x{k}", "levels": ["a", "b"]} for k in range(3)]
MIXED = [NORMAL[0], SKEWED[1], {"name": "x2", "levels": ["a", "b", "c"]}]


def drawn(features: list[dict[str, Any]], rng: np.random.Generator, n: int) -> tuple[Rows, Array]:
    """Correlated features of each kind as a table, and the columns of the design."""
    normal = np.sqrt(0.3) * rng.standard_normal((n, 1)) + np.sqrt(0.7) * rng.standard_normal(
        (n, len(features))
    )
    table: Rows = {}
    columns: list[Array] = []
    for k, feature in enumerate(features):
        if "levels" in feature:
            levels = feature["levels"]
            codes = np.searchsorted([-0.3, 0.8][: len(levels) - 1], normal[:, k])
            table[feature["name"]] = np.array(levels)[codes]
            columns += [(codes == level) * 1.0 for level in range(1, len(levels))]
            continue
        values = np.clip(normal[:, k], -4, 4)
        if feature["range"][0] == 0:
            values = np.minimum(-np.log(ndtr(-normal[:, k])), 8.0)
        table[feature["name"]] = values
        columns.append(values)
    return table, np.column_stack([np.ones(n), *columns])


def slopes_for(x: Array, spread: float) -> Array:
    """Slopes of both signs whose sum has this standard deviation."""
    slopes = np.array([1.0, -0.7, 0.8, 0.5, -0.9][: x.shape[1] - 1]) / x[:, 1:].std(axis=0)
    scaled: Array = slopes * spread / (x[:, 1:] @ slopes).std()
    return scaled


def of_line(evidence: Evidence, prior: Prior) -> Outcome:
    return noise_aware(evidence, prior, Settings())


def told(study: Study, table: Rows, family: str) -> Array:
    """A family's coefficients, scaled, from statistics without noise."""
    evidence = exact(study, table)
    asked = Question(study=study, agreed=study, evidence=evidence, prior=Prior.weak(study.d))
    fitted = fit_family(family, asked, of_line, of_line)
    return fitted.family.coefficients(fitted.outcome.mean())


def in_scaled(study: Study, beta: Array) -> Array:
    """User's coefficients in the study's scaled columns."""
    halves = [feature.mapping[1] for feature in study.features if feature.range is not None]
    middles = [feature.mapping[0] for feature in study.features if feature.range is not None]
    scaled = beta.copy()
    places = [k for k, name in enumerate(study.columns) if "[" not in name and k > 0]
    scaled[places] *= halves
    scaled[0] += beta[places] @ np.array(middles)
    return scaled


def posterior_of(
    features: list[dict[str, Any]],
    beta: Array,
    seed: int,
    *,
    n: int = 5000,
    epsilon: float = 1.0,
    holders: int = 1,
    family: Any = "logistic",
) -> Posterior:
    rng = np.random.default_rng(seed)
    study = study_of(features, 1.0 if family != "poisson" else 20.0, epsilon)
    releases = []
    for k in range(holders):
        table, x = drawn(features, rng, n // holders)
        mean = LINKS[family].mean(x @ beta)
        table["y"] = (rng.random(len(mean)) < mean) * 1.0
        if family == "poisson":
            table["y"] = rng.poisson(mean) * 1.0
        releases.append(simulate(study, table, rng, holder=f"h{k}"))
    return fit(collect(releases, allow_simulated=True), family=family)


RARE = np.array([-4.2, 0.9, -0.7, 0.8])
"""About 4 % of rows have the rarer answer, and log-odds a standard deviation of 1.3."""
