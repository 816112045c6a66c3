"""Slopes of several visits are not drawn to 0 by the error of X'X that two visits share.

Covers `tacit.visits.estimate` (`attenuation_of`) and what `tacit.analyst.visited` makes of it.
"""

from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from tacit import Study
from tacit.analyst.collection import collect
from tacit.analyst.fit import fit, refit
from tacit.analyst.posterior.posterior import Posterior
from tacit.simulation import simulate_visits
from tacit.visits.estimate import attenuation_of
from tacit.visits.known import Known

Array = NDArray[np.float64]
SLOPES = 0.15 * np.array([1.0, -1.0, 0.8, -0.6, 0.9, 0.7, -0.8, 1.0, 0.5])
RUNS = 6


def test_it_is_the_mean_of_what_errors_of_x_do_twice() -> None:
    """Within five standard errors of 40,000 draws, entry by entry."""
    rng = np.random.default_rng(1)
    d = 4
    mixed = rng.normal(size=(d, d))
    gram = mixed @ mixed.T + np.eye(d)
    wide = rng.uniform(0.01, 0.05, (d, d))
    variance = wide + wide.T
    prior = np.diag([0.5, 1.0, 2.0, 0.3])
    covariance = np.linalg.inv(np.linalg.inv(prior) + 3 * gram)
    theta = rng.normal(size=d)
    known = Known(gram=gram, variance=variance, axes=np.eye(d))
    told = attenuation_of(known, prior, theta, covariance)
    gain = covariance @ (3 * gram) @ np.linalg.inv(gram)
    drawn = []
    for _ in range(40_000):
        upper = np.triu(rng.normal(size=(d, d)) * np.sqrt(variance))
        error = upper + np.triu(upper, 1).T
        drawn.append(error @ gain @ error @ theta)
    error = np.std(drawn, axis=0) / np.sqrt(len(drawn))
    assert np.all(np.abs(np.mean(drawn, axis=0) - told) < 5 * error)
    assert np.linalg.norm(told) > 20 * np.linalg.norm(error)


def study(limits: tuple[float, float]) -> Study:
    """Three visits of 2,000 rows of four holders: noise of X'X decides on slopes."""
    return Study.from_document(
        {
            "name": "drawn",
            "epsilon": 1.0,
            "delta": 1e-6,
            "response": {"name": "y", "range": list(limits)},
            "features": [{"name": f"x{k}", "range": [-4.0, 4.0]} for k in range(len(SLOPES))],
            "planned_rows": [2000] * 4,
            "visits": 3,
        }
    )


def posterior_of(seed: int) -> Posterior:
    rng = np.random.default_rng(seed)
    agreed = study((-3.0, 3.0))
    x = rng.normal(size=(8000, len(SLOPES)))
    y = x @ SLOPES + rng.normal(0, 0.4, 8000)
    tables = np.array_split(np.column_stack([x, y]), 4)
    return fit(collect(simulate_visits(agreed, list(tables), rng), allow_simulated=True))


def along(posterior: Posterior) -> float:
    """How long slopes are told along the true ones, over their length."""
    told = posterior.mean()[1:]
    return float(told @ SLOPES / (SLOPES @ SLOPES))


def without(posterior: Posterior) -> Posterior:
    """The same where the error in common is left aside."""
    source = posterior.source
    assert source is not None
    frame = source.evidence.frame
    assert frame is not None
    bare = replace(source.evidence, frame=replace(frame, attenuation=None))
    return replace(posterior, source=replace(source, evidence=bare))


def test_slopes_are_not_drawn_to_zero() -> None:
    """Within five standard errors of what they are; left aside, it takes a hundredth off them."""
    posteriors = [posterior_of(seed) for seed in range(RUNS)]
    lengths = np.array([along(refit(each)) for each in posteriors])
    drawn = np.array([along(refit(without(each))) for each in posteriors])
    assert_allclose(lengths, [along(each) for each in posteriors], rtol=1e-9)
    assert abs(lengths.mean() - 1) < 5 * 0.028 / np.sqrt(RUNS)
    assert 0.01 < (lengths - drawn).mean() < 0.03
    assert np.all(lengths > drawn)


def test_a_submodel_is_not_drawn_to_zero_either() -> None:
    posterior = posterior_of(0)
    kept = ",".join(f"x{k}" for k in range(7))
    told = refit(posterior, only=kept).mean()[1:]
    drawn = refit(without(posterior), only=kept).mean()[1:]
    assert (told - drawn) @ SLOPES[:7] > 0.01 * SLOPES[:7] @ SLOPES[:7]


def test_nor_are_log_odds() -> None:
    """A family reads the same X'r: left aside, the error takes a hundredth off its slopes too."""
    rng = np.random.default_rng(3)
    log_odds = 5 * SLOPES
    agreed = study((0.0, 1.0))
    x = rng.normal(size=(8000, len(SLOPES)))
    y = (rng.random(8000) < 1 / (1 + np.exp(-x @ log_odds))).astype(float)
    tables = np.array_split(np.column_stack([x, y]), 4)
    releases = collect(simulate_visits(agreed, list(tables), rng), allow_simulated=True)
    posterior = fit(releases, family="logistic")
    told = refit(posterior).mean()[1:]
    drawn = refit(without(posterior)).mean()[1:]
    assert_allclose(told, posterior.mean()[1:], rtol=1e-9)
    assert (told - drawn) @ log_odds > 0.01 * log_odds @ log_odds
