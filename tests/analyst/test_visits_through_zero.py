"""Several visits without an intercept: X'X is κ times that of rows, and no entry of it tells κ."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tacit import Study
from tacit.analyst.collection import collect
from tacit.analyst.comparison.compare import select_terms
from tacit.analyst.fit import fit
from tacit.analyst.posterior.posterior import Posterior
from tacit.simulation import simulate_visits

SLOPES = np.array([0.3, -0.2, 0.1, 0.0])


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    rng = np.random.default_rng(1)
    agreed = Study.from_document(
        {
            "name": "through zero",
            "epsilon": 3.0,
            "delta": 1e-6,
            "intercept": False,
            "response": {"name": "y", "range": [-3.0, 3.0]},
            "features": [{"name": f"x{k}", "range": [-2.0, 2.0]} for k in range(len(SLOPES))],
            "planned_rows": [4000, 4000],
            "visits": 3,
        }
    )
    x = 0.5 * rng.normal(size=(8000, len(SLOPES)))
    table = np.column_stack([x, x @ SLOPES + rng.normal(0, 0.15, 8000)])
    releases = simulate_visits(agreed, np.array_split(table, 2), rng)
    return fit(collect(releases, allow_simulated=True))


def cut(posterior: Posterior, share: float) -> Posterior:
    """The same rows where a bound left only this share of κ and of X'X."""
    source = posterior.source
    pooled = posterior.pooled
    assert source is not None
    assert pooled is not None
    frame = source.evidence.frame
    assert frame is not None
    less = replace(frame, rate=share * frame.rate, gram=share * frame.gram)
    return replace(
        posterior,
        pooled=replace(pooled, gram=share * pooled.gram),
        source=replace(source, evidence=replace(source.evidence, frame=less)),
    )


def test_what_a_bound_cuts_is_not_taken_off_what_slopes_explain(posterior: Posterior) -> None:
    """R² and slopes in standard deviations stay, and R² is that of the rows."""
    told = posterior.explained()
    less = cut(posterior, 0.8).explained()
    assert told is not None
    assert less is not None
    assert less.mean == pytest.approx(told.mean, rel=0.003)
    signal = 0.25 * SLOPES @ SLOPES
    assert told.low < signal / (signal + 0.15**2) < told.high
    standard = cut(posterior, 0.8).mean("standardised")
    assert_allclose(standard, posterior.mean("standardised"), rtol=0.003)


def test_models_are_weighed_alike_whatever_a_bound_cuts(posterior: Posterior) -> None:
    """The prior of slopes rests on the variance of the response and of the columns of rows."""
    told = [each.probability for each in select_terms(posterior).inclusion]
    less = [each.probability for each in select_terms(cut(posterior, 0.8)).inclusion]
    assert_allclose(less, told, rtol=1e-6)
    assert 0.01 < told[-1] < 0.5
