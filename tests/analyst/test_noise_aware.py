"""What the default method promises: intervals that cover, sense when noise swamps the data, no
attenuation.

Covers `tacit.analyst.methods.noise_aware`, `tacit.analyst.methods.gram`,
`tacit.analyst.methods.quadrature`, `tacit.analyst.prior`, `tacit.analyst.prior_file`.

Covers also `tacit.analyst.methods.noise_aware.model`, `tacit.analyst.methods.noise_aware.profile`,
`tacit.analyst.methods.noise_aware.residual`, `tacit.analyst.methods.noise_aware.verdict`.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods import method_named
from tacit.analyst.methods.gram import grams
from tacit.analyst.methods.method import Settings
from tacit.analyst.prior import Prior


def simulated(
    rng: np.random.Generator, *, d: int, holders: int, rows: int, noise: float, mixed: bool = False
) -> tuple[np.ndarray, Evidence]:
    """θ and evidence of rows with an intercept; `mixed` gives every holder features of its own
    law.
    """
    theta = np.concatenate([0.2 * rng.normal(size=1), 0.25 * rng.normal(size=d - 1)])
    parts = []
    for _ in range(holders):
        spread = rng.uniform(0.2, 0.9, size=d - 1) if mixed else np.full(d - 1, 0.5)
        x = np.column_stack([np.ones(rows), spread * rng.normal(size=(rows, d - 1))])
        y = x @ theta + 0.25 * rng.normal(size=rows)
        parts.append((x.T @ x, x.T @ y, y @ y))
    exact, moments, squares = (np.array(part) for part in zip(*parts, strict=True))
    full = rng.normal(size=exact.shape)
    sd = np.full(holders, noise)
    return theta, Evidence(
        grams=exact + noise * (full + full.swapaxes(1, 2)) / 2,
        moments=moments + noise / 2 * rng.normal(size=moments.shape),
        gram_sd=sd,
        off_diagonal_sd=sd / np.sqrt(2),
        moment_sd=sd / 2,
        counts=np.full(holders, float(rows)),
        squares=squares + noise / 2 * rng.normal(size=holders),
        square_sd=sd / 2,
        intercept=True,
    )


def coverage(method: str, *, repeats: int, **design: object) -> tuple[int, int]:
    """How many of all 90 % intervals hold the truth."""
    hits, total = 0, 0
    for seed in range(repeats):
        theta, evidence = simulated(np.random.default_rng(seed), **design)
        outcome = method_named(method).fit(evidence, Prior.weak(len(theta)), Settings())
        d = len(theta)
        low, high = outcome.quantiles(np.array([0.05, 0.95]), np.eye(d), np.zeros(d)).T
        hits += int(np.sum((low <= theta) & (theta <= high)))
        total += d
    return hits, total


DESIGNS = {
    "one holder": {"d": 5, "holders": 1, "rows": 3_000, "noise": 25.0},
    "many holders": {"d": 4, "holders": 30, "rows": 300, "noise": 30.0},
    "unlike holders": {"d": 4, "holders": 8, "rows": 800, "noise": 15.0, "mixed": True},
    "swamped": {"d": 8, "holders": 20, "rows": 100, "noise": 30.0},
}


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_intervals_cover(design):
    """Between 84 % and 96 %, at 200 or more intervals; entries of one fit are dependent, so limits
    are wide.

    Seeds are fixed. A method that ignores the noise in X'X covers 60 to 75 % here (see the next
    test).
    """
    hits, total = coverage("noise-aware", repeats=60, **design)
    assert 0.84 < hits / total < 0.97, f"{hits} of {total}"


def test_ignoring_the_noise_in_xtx_does_not_cover():
    hits, total = coverage("exact-fixed-s", repeats=60, **DESIGNS["many holders"])
    assert stats.binom.cdf(hits, total, 0.9) < 1e-6


def test_many_noisy_holders_do_not_attenuate():
    """The mean over simulations of θ̂ − θ, regressed on θ: fixed-S pulls coefficients to zero, this
    method hardly does.
    """

    def slope(method: str) -> float:
        truths, found = [], []
        for seed in range(30):
            theta, evidence = simulated(
                np.random.default_rng(seed), d=4, holders=40, rows=250, noise=30.0
            )
            truths.append(theta[1:])
            found.append(method_named(method).fit(evidence, Prior.weak(4), Settings()).mean()[1:])
        truth, estimate = np.ravel(truths), np.ravel(found)
        return float(truth @ estimate / (truth @ truth))

    assert slope("exact-fixed-s") < 0.8
    assert slope("noise-aware") > 0.93


def test_a_tiny_holder_beside_a_huge_one_does_no_harm():
    theta, huge = simulated(np.random.default_rng(1), d=4, holders=1, rows=50_000, noise=20.0)
    _, tiny = simulated(np.random.default_rng(2), d=4, holders=1, rows=50, noise=20.0)
    both = Evidence(
        **{
            name: np.concatenate([value, getattr(tiny, name)])
            for name, value in vars(huge).items()
            if isinstance(value, np.ndarray)
        },
        intercept=True,
    )
    alone, together = (
        method_named("noise-aware").fit(e, Prior.weak(4), Settings()) for e in (huge, both)
    )
    sd = np.sqrt(np.diag(alone.covariance()))
    assert (np.abs(alone.mean() - together.mean()) / sd).max() < 0.5
    assert_allclose(np.sqrt(np.diag(together.covariance())), sd, rtol=0.1)
    assert np.abs(together.mean() - theta).max() < 0.02


def test_triangular_noise_is_spread_over_the_basis_exactly():
    """Empirical variance of every rotated entry; 20,000 draws give 1 % error, 6 % is six of
    them.
    """
    rng = np.random.default_rng(0)
    d, sd = 4, 3.0
    basis_source = np.diag([40.0, 30.0, 20.0, 10.0]) + 5.0
    gram_sd, off = np.array([sd]), np.array([sd])
    evidence = Evidence(
        basis_source[None] * 100, np.zeros((1, d)), gram_sd, off, gram_sd, np.array([100.0])
    )
    from tacit.analyst.methods.gram import _rotated_noise

    basis = np.linalg.eigh(basis_source)[1]
    upper = np.triu(rng.normal(size=(20_000, d, d)) * sd)
    noise = upper + np.triu(upper, 1).swapaxes(1, 2)
    rotated = np.einsum("ai,nab,bk->nik", basis, noise, basis)
    assert_allclose(rotated.var(axis=0), _rotated_noise(evidence, basis)[0], rtol=0.06)


def test_unlike_holders_are_found_and_like_ones_pooled():
    like = grams(simulated(np.random.default_rng(3), d=5, holders=10, rows=2_000, noise=10.0)[1])
    unlike = grams(
        simulated(np.random.default_rng(3), d=5, holders=10, rows=2_000, noise=10.0, mixed=True)[1]
    )
    assert like.heterogeneity < 0.005
    assert unlike.heterogeneity > 0.02


def test_without_counts_and_squares_it_still_answers():
    theta, evidence = simulated(np.random.default_rng(4), d=4, holders=3, rows=5_000, noise=10.0)
    bare = Evidence(
        evidence.grams,
        evidence.moments,
        evidence.gram_sd,
        evidence.off_diagonal_sd,
        evidence.moment_sd,
        intercept=True,
    )
    outcome = method_named("noise-aware").fit(bare, Prior.weak(4), Settings())
    assert np.abs(outcome.mean() - theta).max() < 0.05
