"""Sub-models, comparisons and effects of studies of several visits.

Covers `tacit.analyst.asked_of_visits`.
"""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from tacit import Study
from tacit.analyst.asked_of_visits import kept_columns
from tacit.analyst.collection import Collection, collect
from tacit.analyst.comparison.compare import compare, joint_probabilities, select_terms
from tacit.analyst.comparison.likelihood import likelihoods
from tacit.analyst.comparison.models import named_models
from tacit.analyst.evidence import Evidence
from tacit.analyst.fit import fit, refit
from tacit.analyst.frame import Frame
from tacit.analyst.methods import method_named
from tacit.analyst.methods.method import Settings
from tacit.analyst.posterior.effects import effects
from tacit.analyst.posterior.laws import Mixture
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.posterior.reading import spread_of
from tacit.analyst.prior import Prior
from tacit.simulation import simulate, simulate_visits

Array = NDArray[np.float64]
SLOPES = np.array([0.3, -0.2, 0.1, 0.0])
MIX = np.array([[1, 0.6, 0, 0], [0, 0.8, 0.3, 0.3], [0, 0, 1, 0], [0, 0, 0, 1]])


def study(n: int, holders: int = 1, visits: int = 5) -> Study:
    return Study.from_document(
        {
            "name": "visited",
            "epsilon": 1.0,
            "delta": 1e-6,
            "response": {"name": "y", "range": [-3.0, 3.0]},
            "features": [{"name": f"x{k}", "range": [-2.0, 2.0]} for k in range(len(SLOPES))],
            "planned_rows": [n // holders] * holders,
            "visits": visits,
        }
    )


def rows(rng: np.random.Generator, n: int) -> Array:
    x = 0.15 * rng.normal(size=(n, len(SLOPES))) @ MIX
    y = 0.1 + x @ SLOPES + rng.normal(0, 0.15, n)
    return np.column_stack([x, y])


def visited(seed: int, n: int = 4000, holders: int = 1) -> Collection:
    rng = np.random.default_rng(seed)
    tables = [rows(rng, n // holders) for _ in range(holders)]
    agreed = study(n, holders)
    if holders == 1:
        releases = [simulate(agreed, tables[0], rng, holder="north")]
    else:
        releases = simulate_visits(agreed, tables, rng)
    return collect(releases, allow_simulated=True)


def framed(seed: int, noise: float = 0.0) -> tuple[Array, Array, Evidence]:
    """Rows with an intercept, their response, and both as two holders' evidence in a frame."""
    rng = np.random.default_rng(seed)
    table = rows(rng, 600)
    x = np.column_stack([np.ones(len(table)), table[:, :-1]])
    y = table[:, -1]
    d = x.shape[1]
    mixed = rng.normal(size=(d, d)) + 3 * np.eye(d)
    mixed[1:, 0] = 0.0  # the intercept stays a column
    start = 0.2 * rng.normal(size=d)
    u = x @ mixed
    r = y - x @ start
    parts = [slice(0, 250), slice(250, 600)]
    sd = np.full(2, noise)
    evidence = Evidence(
        grams=np.array([u[part].T @ u[part] for part in parts]),
        moments=np.array([u[part].T @ r[part] for part in parts]),
        gram_sd=sd,
        off_diagonal_sd=sd / np.sqrt(2),
        moment_sd=np.full(2, max(noise, 1e-9)),
        counts=np.array([250.0, 350.0]),
        squares=np.array([r[part] @ r[part] for part in parts]),
        square_sd=sd,
        intercept=True,
        frame=Frame(
            map=mixed,
            start=start,
            first=start,
            covariance=np.eye(d),
            shared=1e-4,
            later=1e-4,
            gram=u.T @ u / len(u),
            gram_sd=noise / len(u),
        ),
    )
    return x, y, evidence


def least_squares(evidence: Evidence) -> Array:
    """The study's coefficients that exact evidence in a frame says."""
    frame = evidence.frame
    assert frame is not None
    b = np.linalg.solve(evidence.grams.sum(axis=0), evidence.moments.sum(axis=0))
    theta: Array = frame.start + frame.map @ b
    return theta


@pytest.mark.parametrize("places", [[0], [0, 2], [0, 1, 4], [0, 1, 2, 3]])
def test_a_sub_model_of_exact_visits_is_least_squares_on_its_columns(places):
    x, y, evidence = framed(1)
    frame = evidence.frame
    assert frame is not None
    kept = kept_columns(evidence, frame, places)
    assert kept.frame is not None
    expected, squares, *_ = np.linalg.lstsq(x[:, places], y)
    assert_allclose(least_squares(kept), expected, atol=1e-9)
    assert_allclose(kept.frame.map[1:, 0], 0.0, atol=1e-12)  # its first column is the intercept
    rest = y - x[:, places] @ kept.frame.start
    assert kept.squares is not None
    assert_allclose(kept.squares.sum(), rest @ rest, rtol=1e-9)
    first = np.linalg.lstsq(x[:, places], x @ frame.first)[0]
    assert_allclose(kept.frame.first, first, atol=1e-9)
    assert squares


def test_noise_of_a_sub_model_is_what_it_is_said_to_be():
    """20,000 draws: a ratio of variances outside 5 % would be seen about once in 10⁵ entries."""
    _, _, evidence = framed(2, noise=0.7)
    frame = evidence.frame
    assert frame is not None
    rng = np.random.default_rng(3)
    d = evidence.d
    draws = 20_000
    full = 0.7 * rng.normal(size=(draws, d, d)) / np.sqrt(2)
    noise = (full + full.swapaxes(1, 2)) / np.sqrt(2)
    said = kept_columns(evidence, frame, [0, 1, 3])
    noisy = replace(
        evidence,
        grams=evidence.grams[:1] + noise,
        moments=evidence.moments[:1] + 0.7 * rng.normal(size=(draws, d)),
        gram_sd=np.full(draws, 0.7),
        moment_sd=np.full(draws, 0.7),
        squares=np.full(draws, evidence.squares[0]) + 0.7 * rng.normal(size=draws),
        square_sd=np.full(draws, 0.7),
    )
    kept = kept_columns(noisy, frame, [0, 1, 3])
    assert_allclose(kept.moments.std(axis=0) / said.moment_sd[0], 1.0, atol=0.05)
    assert_allclose(np.std(kept.squares) / said.square_sd[0], 1.0, atol=0.05)
    entries = kept.grams.reshape(draws, -1)
    expected = np.where(np.eye(3), 0.7, 0.7 / np.sqrt(2)).ravel()
    assert_allclose(entries.std(axis=0) / expected, 1.0, atol=0.05)
    both = np.corrcoef(np.column_stack([entries, kept.moments, kept.squares]), rowvar=False)
    assert np.abs(both[:9, 9:]).max() < 0.05


@pytest.mark.parametrize("holders", [1, 2])
def test_sub_models_of_visits_hold_the_best_line(holders):
    """25 runs of 3 coefficients: under 78 % would be seen at 90 % once in about 500 trials."""
    many = rows(np.random.default_rng(99), 400_000)
    x = np.column_stack([np.ones(len(many)), many[:, [0, 2]]])
    truth = np.linalg.lstsq(x, many[:, -1])[0]
    shares = []
    for seed in range(25):
        low, high = fit(visited(seed, holders=holders), only="x0,x2").interval(0.9).T
        shares.append(np.mean((low <= truth) & (truth <= high)))
    assert np.mean(shares) >= 0.78


def test_exact_visits_weigh_models_as_exact_statistics_do():
    x, y, evidence = framed(4)
    plain = replace(
        evidence,
        grams=np.array([x[:250].T @ x[:250], x[250:].T @ x[250:]]),
        moments=np.array([x[:250].T @ y[:250], x[250:].T @ y[250:]]),
        frame=None,
    )
    prior = replace(Prior.weak(5), by_spread=False)
    settings = Settings(noise_variance=0.02, spread=0.0)
    models = named_models(study(4000, visits=1), [("x0", "x1"), ("x0", "x1", "x2"), ("x1", "x3")])
    mapped = joint_probabilities(models, likelihoods(evidence, prior, settings))
    assert_allclose(
        mapped, joint_probabilities(models, likelihoods(plain, prior, settings)), atol=1e-4
    )


def test_visits_tell_which_terms_are_needed():
    told = visited(7, n=8000)
    whole = fit(told)
    chosen = {term.term: term.probability for term in select_terms(whole).inclusion}
    assert chosen["x0"] > 0.9
    assert chosen["x3"] < 0.4
    both = compare(whole, fit(told, without="x3"))
    assert both.answer.startswith("x3: needed with probability 0.")


def test_a_file_of_visits_answers_further_questions(tmp_path):
    told = visited(5)
    fit(told).save(tmp_path / "whole.parquet")
    whole = Posterior.load(tmp_path / "whole.parquet")
    small = refit(whole, only="x0,x2")
    assert_allclose(small.interval(), fit(told, only="x0,x2").interval(), rtol=1e-6)
    row = effects(small, ["x0: 1 - 0", "mean"]).rows
    assert_allclose(row[0].mean, small.mean()[1], rtol=1e-9)
    assert row[1].low < row[1].mean < row[1].high


# What people read off a fit.


def test_r_squared_and_standardised_slopes_of_visits_are_those_of_the_rows() -> None:
    """With next to no noise they are the table's own, those of a sub-model included."""
    rng = np.random.default_rng(5)
    table = rows(rng, 4000)
    document = study(4000).model_dump(mode="json") | {"epsilon": 100.0}
    release = simulate(Study.from_document(document), table, rng, holder="north")
    posterior = fit(collect([release], allow_simulated=True))
    small = refit(posterior, only="x0,x1")
    for model, columns in ((posterior, [0, 1, 2, 3]), (small, [0, 1])):
        x = table[:, columns] - table[:, columns].mean(axis=0)
        y = table[:, -1] - table[:, -1].mean()
        slopes = np.linalg.lstsq(x, y)[0]
        told = model.explained()
        assert told is not None
        assert told.mean == pytest.approx(1 - np.var(y - x @ slopes) / np.var(y), abs=0.01)
        assert told.high - told.low == pytest.approx(
            2 * 1.645 * 2 * np.sqrt(told.mean / 4000) * (1 - told.mean), rel=0.3
        )
        standard = slopes * x.std(axis=0) / y.std()
        assert_allclose(model.mean("standardised"), standard, atol=0.01)


def test_r_squared_of_visits_holds_its_truth_under_noise() -> None:
    """Of 12 runs at ε = 1 all but 4: fewer once in 1,000 times where they cover 90 %."""
    x = 0.15 * MIX.T @ np.diag([1.0] * 4) @ (0.15 * MIX)
    signal = SLOPES @ x @ SLOPES
    truth = signal / (signal + 0.15**2)
    told = [fit(visited(seed)).explained() for seed in range(40, 52)]
    assert sum(each is not None and each.low <= truth <= each.high for each in told) >= 8


def test_r_squared_of_visits_is_the_posteriors_own_mean_and_no_misfit() -> None:
    """What slopes may yet explain: within a quarter that of the fit that the mean comes from."""
    posterior = fit(visited(3, 1000))
    source = posterior.source
    pooled = posterior.pooled
    assert source is not None
    assert pooled is not None
    frame = source.evidence.frame
    assert frame is not None
    word = replace(source.evidence, frame=replace(frame, surely=0.0))
    prior = frame.prior(source.prior, at_its_word=True)
    own = method_named("noise-aware").fit(word, prior, Settings()).covariance()
    spread = spread_of(pooled, intercept=True)
    slopes = posterior.outcome.mean()
    told = posterior.explained()
    assert told is not None
    residual = posterior.outcome.residual_variance()
    beyond = residual * told.mean / (1 - told.mean) - slopes @ spread @ slopes
    assert beyond == pytest.approx(np.trace(spread @ frame.map @ own @ frame.map.T), rel=0.25)
    far = replace(frame, misfit=100 * frame.misfit)
    of_far = replace(source, evidence=replace(source.evidence, frame=far))
    assert replace(posterior, source=of_far).explained() == told


def test_how_far_holders_may_differ_is_not_stretched_with_the_columns() -> None:
    """Columns fill a tenth of their ranges: stretched, all uncertainty was holders' differences."""
    shares = fit(visited(3, holders=4)).privacy_share("scaled")
    assert shares[1:].min() > 0.3


def test_r_squared_and_means_of_visits_count_the_noise_that_all_visits_leave() -> None:
    """X'X is told by all of them, and the last evidence by those since the map was made anew."""
    posterior = fit(visited(3))
    source = posterior.source
    assert source is not None
    frame = source.evidence.frame
    assert frame is not None
    loud = {"gram_sd": 10 * source.evidence.gram_sd}
    loud |= {"off_diagonal_sd": 10 * source.evidence.off_diagonal_sd}
    known = _widths(posterior)
    of_some = replace(source, evidence=replace(source.evidence, **loud))
    assert_allclose(_widths(replace(posterior, source=of_some)), known, rtol=1e-12)
    louder = replace(frame, gram_sd=10 * frame.gram_sd)
    of_all = replace(source, evidence=replace(source.evidence, frame=louder))
    assert np.all(_widths(replace(posterior, source=of_all)) > 1.05 * known)


def _widths(posterior: Posterior) -> Array:
    """How wide R² and the mean response are told."""
    told = posterior.explained()
    assert told is not None
    [row] = effects(posterior, ["mean"]).rows
    return np.array([told.high - told.low, row.high - row.low])


@pytest.mark.parametrize("level", [0.8, 1.02])
def test_residuals_of_visits_are_those_of_rows_as_they_are(level: float) -> None:
    """Rows are shrunk and residuals are not: the intercept's entry raises no variance of them."""
    _, _, evidence = framed(1)
    assert evidence.frame is not None
    frame = replace(evidence.frame, rate=0.9, whole=1.1)
    shrunk = 0.02
    told = Mixture(
        weights=np.ones(1),
        locations=np.zeros((1, 5)),
        covariances=np.eye(5)[None],
        noise_variances=np.array([shrunk / (0.9 * level)]),
        unshrunk=1 / (0.9 * level),
    )
    moved = frame.outcome(told)
    assert isinstance(moved, Mixture)
    assert moved.residual_variance() == pytest.approx(1.1 * shrunk)
    assert moved.unshrunk == pytest.approx(1.1)


@pytest.mark.slow
@pytest.mark.parametrize("holders", [1, 4])
def test_r_squared_and_standardised_slopes_of_visits_cover(
    holders: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """150 runs: R² outside 82 to 97 % once in 1,000 times where it covers 90 %.

    What intervals are widened by for relations that bend (`tacit.analyst.misfit`) is left aside:
    these do not, and have ranges so wide that all would be held.
    """
    monkeypatch.setattr(
        "tacit.analyst.visited.misfit_of", lambda study, *_: np.zeros((study.d, study.d))
    )
    x = 0.15 * MIX.T @ (0.15 * MIX)
    signal = SLOPES @ x @ SLOPES
    variance = signal + 0.15**2
    standard = SLOPES * np.sqrt(np.diag(x) / variance)
    held = []
    held_slopes = []
    for seed in range(150):
        posterior = fit(visited(200 + seed, 8000, holders))
        told = posterior.explained()
        assert told is not None
        held.append(told.low <= signal / variance <= told.high)
        low, high = posterior.interval(0.9, "standardised").T
        held_slopes.append((low <= standard) & (standard <= high))
    assert 0.82 < np.mean(held) < 0.97
    assert 0.84 < np.mean(held_slopes) < 0.96
