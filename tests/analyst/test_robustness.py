"""Wrong models and too little data: the default never predicts much worse than the mean, and says
when it cannot know.

The scenarios are those of benchmarks/robustness.py, with fewer runs.
"""

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tacit.analyst.collection import collect
from tacit.analyst.fit import fit
from tacit.analyst.methods.gram import grams
from tacit.simulation import simulate
from tacit.study import Study


def benchmark(name: str) -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / f"{name}.py"
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # last: its coverage.py is not the package of that name
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


robustness = benchmark("robustness")
RUNS = 2
WRONG = (
    "curved",
    "interactions",
    "heavy residuals",
    "skewed, off centre",
    "collinear",
    "unlike features",
    "unlike coefficients",
)
NARROW = "2,500 rows, d = 20"
WIDE = "5,000 rows, d = 20"


@pytest.mark.parametrize(("holders", "epsilon"), [(1, 1.0), (10, 0.3)])
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_model_predicts_better_than_the_mean(name, holders, epsilon):
    """Least squares has an R² of 0.15 or more in all of these; noise may cost three quarters of it
    here at most.
    """
    scores = robustness.measure(name, holders, epsilon, RUNS)
    assert np.mean(scores.ours) > 0.25 * np.mean(scores.least_squares)
    for ours, best, warned in zip(scores.ours, scores.least_squares, scores.warned, strict=True):
        assert not warned or ours < best / 2, "a warning where most of what there is was found"


def test_it_does_not_chase_noise_where_there_is_nothing_to_find():
    scores = robustness.measure("nothing to find", 10, 1.0, RUNS)
    assert np.mean(scores.ours) > robustness.LEAST
    assert not any(scores.warned)


def test_many_columns_and_few_rows_predict_better_than_the_mean():
    scores = robustness.measure(NARROW, 1, 1.0, 4)
    assert np.mean(scores.ours) > 0.2


def test_swamped_releases_say_so():
    assert all(robustness.measure(NARROW, 10, 0.3, RUNS).warned)
    assert not any(robustness.measure(WIDE, 1, 1.0, RUNS).warned)


def test_the_intercept_is_not_inflated_by_many_noisy_columns():
    """Denoising X'X must not pull Σα², the intercept's entry, towards the other eigenvalues: it
    would divide the mean by too little.
    """
    scenario = robustness.SCENARIOS[WIDE]
    study, ratios = scenario.study(0.3), []
    for run in range(8):
        tables, _ = robustness.holders_of(scenario, 10, run)
        rng = np.random.default_rng(run)
        releases = [simulate(study, table, rng, holder=f"h{k}") for k, table in enumerate(tables)]
        x = np.concatenate(tables)[:, :-1] / math.sqrt(3)
        truth = np.minimum(1.0, study.row_radius**2 / (1 + np.sum(x**2, axis=1))).sum()
        found = grams(collect(releases, allow_simulated=True).evidence)
        first = found.basis[0]
        ratios.append(first @ found.mean.sum(axis=0) @ first / truth)
    # One release's Σα² has a noise of 12 per cent here, so the mean of eight has 4.
    assert abs(np.mean(ratios) - 1) < 0.15


def test_the_residual_is_not_read_off_the_prior():
    """A response that fills little of its range has a residual variance far below the prior's mean:
    y'y must win where it knows better.
    """
    sd, reach, found = 0.25, 4.0, []
    features = [
        {"name": f"x{k}", "range": [-10, 10], "typical": [-math.sqrt(3), math.sqrt(3)]}
        for k in range(9)
    ]
    study = Study.from_document(
        {
            "name": "s",
            "epsilon": 1.0,
            "delta": 1e-6,
            "response": {"name": "y", "range": [-reach, reach]},
            "features": features,
        }
    )
    for run in range(8):
        rng = np.random.default_rng(run)
        x = rng.normal(size=(20_000, 9))
        y = x @ (0.1 * rng.normal(size=9)) + sd * rng.normal(size=20_000)
        release = simulate(study, np.column_stack([x, y]), rng, holder="h")
        found.append(fit(collect(release, allow_simulated=True)).residual_sd())
    assert abs(np.mean(found) / sd - 1) < 0.1
