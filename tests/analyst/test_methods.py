"""One suite over every method: limits, symmetries, and what each asks for.

Covers `tacit.analyst.methods`, `tacit.analyst.methods.method`, `tacit.analyst.methods.ada_ssp`,
`tacit.analyst.methods.exact_fixed_s`, `tacit.analyst.methods.fixed_s_fast`,
`tacit.analyst.methods.non_private`, `tacit.analyst.methods.eigen`.
"""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods import METHODS, method_named
from tacit.analyst.methods.method import Settings
from tacit.analyst.posterior.laws import Draws
from tacit.analyst.prior import Prior
from tacit.errors import MethodError

pytestmark = pytest.mark.xdist_group("samplers")  # one process compiles what these files share

D, HOLDERS, ROWS = 2, 3, 2_000  # as other tests of samplers, for which these are compiled once
SETTINGS = Settings(chains=4, draws=1_500, warmup=1_000, seed=3)
POINT = {"ada-ssp"}


def evidence_of(noise: float, *, seed: int = 1, order: list[int] | None = None) -> Evidence:
    """Statistics of normal rows, with frobenius noise of sd `noise` on every part."""
    rng = np.random.default_rng(seed)
    x = 0.5 * rng.normal(size=(HOLDERS, ROWS, D)) @ (np.eye(D) + 0.3 * np.tri(D, k=-1))
    y = x @ np.array([0.5, -0.3]) + 0.3 * rng.normal(size=(HOLDERS, ROWS))
    full = rng.normal(size=(HOLDERS, D, D))
    sd = np.full(HOLDERS, noise)
    grams = np.einsum("jni,jnk->jik", x, x)
    evidence = Evidence(
        grams=grams + noise * (full + full.swapaxes(1, 2)) / 2,
        moments=np.einsum("jni,jn->ji", x, y) + noise * rng.normal(size=(HOLDERS, D)),
        gram_sd=sd,
        off_diagonal_sd=sd / np.sqrt(2),
        moment_sd=sd,
        counts=np.full(HOLDERS, float(ROWS)),
        squares=np.einsum("jn,jn->j", y, y) + noise * rng.normal(size=HOLDERS),
        square_sd=sd,
        eigenvalues=np.linalg.eigvalsh(grams)[:, 0],
        eigenvalue_sd=sd,
    )
    if order is None:
        return evidence
    arrays = {
        name: value[order]
        for name, value in vars(evidence).items()
        if isinstance(value, np.ndarray)
    }
    return Evidence(**arrays)


def least_squares(evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
    """Estimate and covariance from exact statistics: the conjugate posterior when the prior is far
    weaker than the data.
    """
    gram, moment = evidence.grams.sum(axis=0), evidence.moments.sum(axis=0)
    estimate = np.linalg.solve(gram, moment)
    variance = (evidence.squares.sum() - moment @ estimate) / evidence.counts.sum()
    return estimate, variance * np.linalg.inv(gram)


@pytest.mark.parametrize("name", METHODS)
def test_vanishing_noise_gives_the_conjugate_posterior(name):
    """6,000 rows: the prior moves the mean by under 0.02 sd.

    Samplers estimate a mean to about 0.03 sd, so 0.2 sd is over five standard errors (false alarm
    below 1e-6 each). The fixed-S family learns σ² from the z_j alone (about 6 degrees of freedom),
    so only its location is compared.
    """
    evidence = evidence_of(0.0)
    alike = replace(SETTINGS, spread=0.0)  # one law for all holders, as least squares has it
    outcome = method_named(name).fit(evidence, Prior.weak(D), alike)
    estimate, covariance = least_squares(evidence)
    sd = np.sqrt(np.diag(covariance))
    assert np.abs(outcome.mean() - estimate).max() < 0.2 * sd.min()
    if name in {"noise-aware", "bernstein-sheldon", "non-private"}:
        assert_allclose(np.sqrt(np.diag(outcome.covariance())), sd, rtol=0.1)


@pytest.mark.parametrize("name", [name for name in METHODS if name != "non-private"])
def test_permuting_holders_changes_nothing(name):
    first = method_named(name).fit(evidence_of(5.0), Prior.weak(D), SETTINGS)
    second = method_named(name).fit(evidence_of(5.0, order=[2, 0, 1]), Prior.weak(D), SETTINGS)
    if isinstance(first, Draws):  # other random numbers meet other holders: equal in law only
        sd = np.sqrt(np.diag(first.covariance()))
        assert (np.abs(first.mean() - second.mean()) / sd).max() < 0.4
    else:
        assert_allclose(first.mean(), second.mean(), rtol=1e-6)


@pytest.mark.parametrize("name", [name for name in METHODS if name not in POINT | {"non-private"}])
def test_more_noise_means_wider_posteriors(name):
    widths = [
        np.trace(method_named(name).fit(evidence_of(noise), Prior.weak(D), SETTINGS).covariance())
        for noise in (1.0, 40.0)
    ]
    assert widths[0] < widths[1]


@pytest.mark.parametrize("name", METHODS)
def test_a_seed_fixes_the_outcome(name):
    evidence = evidence_of(0.0 if name == "non-private" else 5.0)
    first, second = (method_named(name).fit(evidence, Prior.weak(D), SETTINGS) for _ in range(2))
    assert_allclose(first.mean(), second.mean(), rtol=0, atol=0)


def test_non_private_refuses_noise():
    with pytest.raises(MethodError, match="exact statistics"):
        method_named("non-private").fit(evidence_of(1.0), Prior.weak(D), SETTINGS)


def test_an_unknown_name_lists_the_known():
    with pytest.raises(MethodError, match="fixed-s-fast"):
        method_named("fixed")


def test_the_exact_posterior_is_what_fixed_s_samples():
    """Means within five Monte Carlo standard errors of about 0.02 sd each (false alarm below 1e-5
    over all entries).
    """
    evidence = evidence_of(20.0)
    exact = method_named("exact-fixed-s").fit(evidence, Prior.weak(D), SETTINGS)
    sampled = method_named("fixed-s").fit(
        evidence, Prior.weak(D), Settings(chains=4, draws=4_000, warmup=1_000, seed=1)
    )
    sd = np.sqrt(np.diag(exact.covariance()))
    assert (np.abs(exact.mean() - sampled.mean()) / sd).max() < 0.1
    assert_allclose(np.sqrt(np.diag(sampled.covariance())), sd, rtol=0.08)
    assert_allclose(sampled.residual_sd(), exact.residual_sd(), rtol=0.08)


def test_ada_ssp_with_wangs_noise_is_wangs_formula():
    """His s = √ln(6/δ)·X²/(ε/3) on X'X and on the eigenvalue."""
    d, delta, epsilon, bound = 4, 1e-5, 1.0, 1.0
    noise = np.sqrt(np.log(6 / delta)) * bound**2 / (epsilon / 3)
    rng = np.random.default_rng(0)
    gram, moment, smallest = 400 * np.eye(d), rng.normal(size=d), np.array([80.0])
    sd = np.array([noise])
    evidence = Evidence(
        gram[None], moment[None], sd, sd, sd, eigenvalues=smallest, eigenvalue_sd=sd, delta=delta
    )
    found = method_named("ada-ssp").fit(evidence, Prior.weak(d), SETTINGS)
    lower = max(0.0, 80.0 - np.log(6 / delta) * bound**2 / (epsilon / 3))
    ridge = max(
        0.0,
        np.sqrt(d * np.log(6 / delta) * np.log(2 * d**2 / 0.05)) * bound**2 / (epsilon / 3) - lower,
    )
    assert_allclose(found.mean(), moment / (400 + ridge))
    assert ridge > 0
