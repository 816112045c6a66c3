"""Holders that differ, for every method: 50 rows beside 5,000,000, and budgets of their own.

Releases go through the real mechanism. The large holder's statistics are those of 50,000 rows, a
hundred times over. Samplers know a mean to about 0.03 posterior sds and a width to about 3 per cent
here; the bounds allow five times that.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tacit.analyst.collection import collect
from tacit.analyst.evidence import Evidence
from tacit.analyst.fit import fit
from tacit.analyst.methods import METHODS, method_named
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.noise_aware import residual
from tacit.analyst.methods.noise_aware.facts import facts_of
from tacit.analyst.methods.noise_aware.model import Model
from tacit.analyst.posterior.convergence import Verdict, mixing, verdict
from tacit.analyst.posterior.laws import Draws, Outcome
from tacit.analyst.prior import Prior
from tacit.holder.charge import Purpose
from tacit.holder.perturb import privatise
from tacit.holder.statistics import Statistics, statistics_of
from tacit.release import Release
from tacit.rows.table import table_of
from tacit.simulation import seeded
from tacit.study import Study

pytestmark = pytest.mark.xdist_group("unequal holders")  # one process compiles what its tests share

STUDY = Study.from_document(
    {
        "name": "unequal",
        "epsilon": 1.0,
        "delta": 1e-6,
        "response": {"name": "y", "range": [-2.0, 2.0]},
        "features": [{"name": "x", "range": [-1.0, 1.0]}],
        "release": {"smallest_eigenvalue": True},
    }
)
CASES = [name for name in METHODS if name not in {"non-private", "normal-x"}] + [
    "normal-x gradient",
    "normal-x metropolis",
]
DEAR = {"bernstein-sheldon", "normal-x metropolis"}
"""Compiled for one holder and for two: a quarter of a minute each."""
SOME_SLOW = [pytest.param(case, marks=pytest.mark.slow) if case in DEAR else case for case in CASES]
SETTINGS = Settings(draws=1_000, warmup=1_000, seed=3)


def release_of(
    holder: str, rows: int, *, times: int = 1, epsilon: float = 1.0, seed: int = 0
) -> Release:
    """A holder with `times` copies of so many rows."""
    rng = np.random.default_rng([seed, rows])
    x = np.clip(0.3 + 0.4 * rng.normal(size=rows), -1, 1)
    y = np.clip(0.2 + 0.5 * x + 0.3 * rng.normal(size=rows), -2, 2)
    part = statistics_of(STUDY, table_of(np.column_stack([x, y]), STUDY).batches())
    whole = Statistics(times * part.n, times * part.gram)
    return privatise(STUDY, whole, Purpose(holder, "simulated", epsilon), seeded(rng))


def outcome_of(case: str, releases: list[Release]) -> Outcome:
    method, _, sampler = case.partition(" ")
    settings = replace(
        SETTINGS,
        sampler=sampler or "gradient",
        draws=20_000 if sampler == "metropolis" else SETTINGS.draws,
    )
    return fit(collect(releases, allow_simulated=True), method, settings=settings).outcome


@cache
def large() -> Release:
    return release_of("large", 50_000, times=100)


@cache
def alone(case: str) -> Outcome:
    return outcome_of(case, [large()])


@pytest.mark.parametrize("case", SOME_SLOW)
@pytest.mark.parametrize("epsilon", [1.0, 0.1])
def test_fifty_rows_beside_five_million_do_no_harm(case, epsilon):
    """They know nothing that the others do not: the posterior stays, and samplers converge as
    before.
    """
    first = alone(case)
    both = outcome_of(case, [large(), release_of("small", 50, epsilon=epsilon)])
    if (
        case == "ada-ssp"
    ):  # a point: its move is held against what the noise of the large release makes of it
        scale = np.sqrt(np.diag(alone("noise-aware").covariance()))
        assert (np.abs(both.mean() - first.mean()) < scale).all()
        return
    scale = np.sqrt(np.diag(first.covariance()))
    sampled = isinstance(both, Draws)
    assert (np.abs(both.mean() - first.mean()) / scale).max() < (0.2 if sampled else 0.05)
    widening = np.sqrt(np.diag(both.covariance())) / scale
    assert (np.abs(widening - 1) < (0.15 if sampled else 0.03)).all()
    if sampled:
        found = mixing(np.concatenate([both.theta, both.noise_variance[..., None]], -1))
        assert verdict(both, found) is Verdict.CONVERGED


def evidence_with(noise: tuple[float, ...], *, shifted: int | None = None) -> Evidence:
    """Exact statistics of alike holders that claim noise of these sds; ẑ of one of them may be
    shifted.
    """
    gram, moment = np.array([[2_000.0, 400.0], [400.0, 500.0]]), np.array([600.0, 330.0])
    holders, sd = len(noise), np.array(noise)
    moments = np.repeat(moment[None], holders, axis=0)
    if shifted is not None:
        moments[shifted] += 20.0
    return Evidence(
        grams=np.repeat(gram[None], holders, axis=0),
        moments=moments,
        gram_sd=sd,
        off_diagonal_sd=sd / np.sqrt(2),
        moment_sd=sd,
        counts=np.full(holders, 2_000.0),
        squares=np.full(holders, 500.0),
        square_sd=sd,
        eigenvalues=np.full(holders, 400.0),
        eigenvalue_sd=sd,
        intercept=True,
    )


@pytest.mark.parametrize("case", [case for case in SOME_SLOW if case != "ada-ssp"])
def test_a_holder_counts_for_less_the_noisier_its_release(case):
    """The same shift of ẑ_j moves the estimate at most half as far where noise is ten times as
    large.
    """
    method, _, sampler = case.partition(" ")
    settings = replace(
        SETTINGS,
        sampler=sampler or "gradient",
        draws=20_000 if sampler == "metropolis" else SETTINGS.draws,
    )

    def estimate(shifted: int | None) -> np.ndarray:
        return (
            method_named(method)
            .fit(evidence_with((10.0, 100.0), shifted=shifted), Prior.weak(2), settings)
            .mean()
        )

    base = estimate(None)
    exact, noisy = (np.linalg.norm(estimate(j) - base) for j in (0, 1))
    assert noisy < 0.5 * exact


def test_the_ridge_of_ada_ssp_follows_each_holders_noise():
    def ridge(noise: tuple[float, ...]) -> float:
        evidence = evidence_with(noise)
        evidence = replace(evidence, eigenvalues=np.zeros(len(noise)))
        found = method_named("ada-ssp").fit(evidence, Prior.weak(2), Settings()).mean()
        total = evidence.grams.sum(0)
        return float(
            np.linalg.lstsq(found[:, None], evidence.moments.sum(0) - total @ found, rcond=None)[0][
                0
            ]
        )

    assert ridge((10.0, 100.0)) == pytest.approx(ridge((100.0, 10.0)))
    assert ridge((10.0, 100.0)) == pytest.approx((ridge((10.0, 10.0)) + ridge((100.0, 100.0))) / 2)


# Holders whose residual variances differ.


def two_kinds(seed: int, sigmas: tuple[float, ...]) -> tuple[np.ndarray, Evidence]:
    """Four holders of an intercept and two features, each feature told of by two of them."""
    rng = np.random.default_rng(seed)
    theta, parts, rows, noise = (
        np.array([0.1, 0.2, -0.3]) + 0.1 * rng.normal(size=3),
        [],
        2_000,
        5.0,
    )
    for j, sigma in enumerate(sigmas):
        spread = (0.6, 0.1) if j < len(sigmas) / 2 else (0.1, 0.6)
        x = np.column_stack([np.ones(rows), np.array(spread) * rng.normal(size=(rows, 2))])
        y, full = x @ theta + sigma * rng.normal(size=rows), rng.normal(size=(3, 3))
        moments = x.T @ y + noise / 2 * rng.normal(size=3)
        parts.append(
            (x.T @ x + noise * (full + full.T) / 2, moments, y @ y + noise / 2 * rng.normal())
        )
    grams, moments, squares = (np.array(part) for part in zip(*parts, strict=True))
    sd, counts = np.full(len(sigmas), noise), np.full(len(sigmas), float(rows))
    return theta, Evidence(
        grams,
        moments,
        sd,
        sd / np.sqrt(2),
        sd / 2,
        counts,
        squares=squares,
        square_sd=sd / 2,
        intercept=True,
    )


def coverage(sigmas: tuple[float, ...], runs: int) -> tuple[np.ndarray, np.ndarray]:
    covered, widths = [], []
    for seed in range(runs):
        theta, evidence = two_kinds(seed, sigmas)
        outcome = method_named("noise-aware").fit(evidence, Prior.weak(3), Settings())
        low, high = outcome.quantiles(np.array([0.05, 0.95]), np.eye(3), np.zeros(3)).T
        covered.append((low <= theta) & (theta <= high))
        widths.append(high - low)
    return np.mean(covered, axis=0), np.mean(widths, axis=0)


def test_intervals_cover_where_residual_variances_differ_by_sixteen(monkeypatch):
    """At 60 runs a right 90 % interval covers under 77 % with probability 2e-3, over all three
    6e-3; seeds are fixed.

    Under one variance for all, the slope that the noisier holders tell of is covered too seldom and
    the other is told too vaguely.
    """
    covered, widths = coverage((0.1, 0.1, 0.4, 0.4), 60)
    assert covered.min() > 0.77
    monkeypatch.setattr(residual, "UNLIKE", np.zeros(1))
    common, vague = coverage((0.1, 0.1, 0.4, 0.4), 60)
    assert common[2] < covered[2]
    assert widths[1] < 0.7 * vague[1]


def test_holders_with_one_residual_variance_share_it():
    """The search for differences must be clearly better than none: then the fit is the one under a
    common variance.
    """
    found = []
    for _, evidence in map(alike, range(10)):
        model = Model(facts_of(evidence, Prior.weak(3)), 1.0)
        law = residual.noise_variances(model, evidence, Prior.weak(3))
        found.append(residual.ratios(model, evidence, residual.centre(law)))
    assert sum(not np.array_equal(ratios, np.ones(4)) for ratios in found) <= 1


def alike(seed: int) -> tuple[np.ndarray, Evidence]:
    return two_kinds(seed, (0.25,) * 4)
