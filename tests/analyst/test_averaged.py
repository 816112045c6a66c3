"""Fits of averaged releases: the model they satisfy, the counts that methods see, and intervals
that cover.

Covers `tacit.analyst.evidence`.
"""

import numpy as np
import pytest

from tacit.analyst.collection import collect
from tacit.analyst.fit import fit
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.non_private import METHOD as NON_PRIVATE
from tacit.analyst.posterior.units import user_units
from tacit.analyst.prior import Prior
from tacit.simulation import exact, simulate
from tacit.study import Study

TRUTH = np.array([0.1, 0.3, -0.2])
RESIDUAL_SD = 0.2


def study_of(size, **changes):
    document = {
        "name": "averaged",
        "epsilon": 5.0,
        "delta": 1e-6,
        "response": {"name": "y", "range": [-1, 1]},
        "features": [{"name": "a", "range": [0, 2]}, {"name": "b", "range": [0, 2]}],
        "release": {"average": size},
    }
    return Study.from_document(document | changes)


def rows_of(rng, rows):
    """Skewed features; the response is linear in them."""
    x = np.minimum(rng.lognormal(-1.0, 0.6, (rows, 2)), 2.0)
    return {
        "a": x[:, 0],
        "b": x[:, 1],
        "y": TRUTH[0] + x @ TRUTH[1:] + RESIDUAL_SD * rng.normal(size=rows),
    }


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_counts_are_those_of_averaged_rows(relation):
    study = study_of(4, relation=relation)
    release = simulate(
        study, rows_of(np.random.default_rng(0), 1000), np.random.default_rng(1), holder="h"
    )
    evidence = collect(release, allow_simulated=True).evidence
    assert evidence.average == 4
    assert evidence.counts == pytest.approx(release.n / 4)
    if relation == "add-remove":
        assert evidence.count_sd == pytest.approx(release.noise.count / 4)
    posterior = fit(collect(release, allow_simulated=True))
    assert posterior.contributions[0].n == release.n
    assert posterior.pooled.rows == pytest.approx(release.n)


def test_without_noise_averages_satisfy_the_same_regression():
    """Coefficients and residual sd of the conjugate posterior, within five of its standard
    deviations; √(2/n) of σ² goes with n/k.
    """
    radius = {
        "row_radius": 2.0
    }  # no row is shrunk, so that the residual variance is that of the rows
    for size in (1, 4, 16):
        evidence = exact(
            study_of(size, release=radius | {"average": size}),
            rows_of(np.random.default_rng(2), 40_000),
        )
        found = NON_PRIVATE.fit(evidence, Prior.weak(3), Settings())
        units = user_units(study_of(size))
        scaled = np.linalg.solve(units.matrix, TRUTH - units.offset)
        assert np.all(np.abs(found.mean() - scaled) < 5 * np.sqrt(np.diag(found.covariance())))
        assert found.residual_sd() == pytest.approx(RESIDUAL_SD, rel=5 * np.sqrt(size / 40_000 / 2))
        assert found.degrees == pytest.approx(2 * (2 + 40_000 / size / 2))


@pytest.mark.parametrize("holders", [1, 4])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_the_default_method_covers(relation, holders):
    """90 % intervals of all coefficients over 40 runs of 20,000 rows, k = 4: false-alarm rate about
    1e-4 were coverage 85 to 95 %.

    The residual sd is right to a tenth on average.
    """
    study = study_of(4, relation=relation)
    covered, sds = [], []
    for run in range(40):
        rng = np.random.default_rng([run, holders])
        tables = [rows_of(rng, 20_000 // holders) for _ in range(holders)]
        posterior = fit(
            collect(
                [simulate(study, t, rng, holder=f"h{k}") for k, t in enumerate(tables)],
                allow_simulated=True,
            )
        )
        low, high = posterior.interval(0.9).T
        covered.append(np.mean((low <= TRUTH) & (high >= TRUTH)))
        sds.append(posterior.residual_sd())
    error = max(np.std(covered, ddof=1), 0.1) / np.sqrt(len(covered))
    assert 0.85 - 3.7 * error < np.mean(covered) < 0.95 + 3.7 * error
    assert np.mean(sds) == pytest.approx(RESIDUAL_SD, rel=0.1)
