"""What people read off a fit: P(> 0), R², standardised coefficients, rows, holders and budgets.

Covers `tacit.analyst.posterior.reading` and `tacit.analyst.posterior.summary`.
"""

from dataclasses import replace

import numpy as np
import pytest
from studies import agreed

from tacit.analyst.collection import collect
from tacit.analyst.fit import fit
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.noise_aware import fit as noise_aware
from tacit.analyst.posterior.laws import Draws, Student
from tacit.analyst.posterior.pooled import pool
from tacit.analyst.posterior.posterior import Contribution, Posterior
from tacit.analyst.posterior.reading import Explained
from tacit.analyst.posterior.source import Source, of_columns
from tacit.analyst.prior import Prior
from tacit.errors import PosteriorError
from tacit.simulation import exact, simulate, simulate_visits
from tacit.study import Study


def rows(n=4000, seed=2):
    rng = np.random.default_rng(seed)
    age = rng.uniform(18, 100, n)
    bmi = (20 + 0.1 * age + rng.normal(0, 3, n)).clip(15, 50)
    ward = rng.choice(["1", "2", "3"], n)
    days = 3 + 0.1 * age + 0.2 * bmi + 2 * (ward == "3") + rng.normal(0, 2, n)
    return {"age": age, "ward": ward, "bmi": bmi, "days": days.clip(0, 30)}


def of_exact(study, table):
    """The posterior of exact statistics under a prior that says nothing."""
    evidence = exact(study, table)
    d = study.d
    prior = replace(Prior.weak(d), covariance=1e6 * np.eye(d), by_spread=False)
    outcome = noise_aware(evidence, prior, Settings())
    return Posterior(
        study,
        "noise-aware",
        outcome,
        (),
        pooled=pool(evidence, prior, outcome),
        source=Source(evidence, prior, "(given in code)", "differ", Settings()),
    )


def whole(**fields):
    return agreed(release={"row_radius": 100.0}, missing="refuse", **fields)


def least_squares(table, *, intercept=True):
    ward = np.array(table["ward"])
    columns = [table["age"], ward == "2", ward == "3", table["bmi"]]
    design = np.stack([np.ones(len(ward)), *columns] if intercept else columns, axis=1)
    return design.astype(float), np.linalg.lstsq(design.astype(float), table["days"])[0]


def test_of_exact_statistics_r2_and_standardised_coefficients_are_the_usual_ones():
    table = rows()
    posterior = of_exact(whole(), table)
    design, slopes = least_squares(table)
    left = table["days"] - design @ slopes
    share = 1 - left.var() / table["days"].var()
    told = posterior.explained()
    assert told.mean == pytest.approx(share, abs=1e-4)
    expected = slopes[1:] * design[:, 1:].std(axis=0) / table["days"].std()
    np.testing.assert_allclose(posterior.mean("standardised"), expected, atol=1e-4)
    shown = [row.standardised for row in posterior.summary().rows]
    assert shown[0] is None
    np.testing.assert_allclose(shown[1:], expected, atol=1e-4)


@pytest.mark.parametrize("radius", [100.0, 1.3])
def test_r2_is_as_unsure_as_rows_make_it(radius):
    """Of exact statistics: by what each row moves it, as it counts; uniform ages are no normal."""
    table = rows()
    study = agreed(release={"row_radius": radius}, missing="refuse")
    told = of_exact(study, table).explained()
    design, _ = least_squares(table)
    encoded = design.copy()
    encoded[:, 1] = (table["age"] - 59) / 41
    encoded[:, 4] = (table["bmi"] - 32.5) / 17.5
    counts = np.minimum(1, study.row_radius**2 / np.sum(encoded**2, axis=1))
    root = np.sqrt(counts)
    slopes = np.linalg.lstsq(design * root[:, None], table["days"] * root)[0]
    fitted = design @ slopes
    fitted -= np.average(fitted, weights=counts)
    left = table["days"] - design @ slopes
    signal = np.average(fitted**2, weights=counts)
    residual = np.average(left**2, weights=counts)
    total = signal + residual
    moves = residual * (2 * fitted * left + fitted**2 - signal) - signal * (left**2 - residual)
    sampling = np.sqrt(np.sum((counts * moves) ** 2)) / counts.sum() / total**2
    assert told.mean == pytest.approx(signal / total, abs=1e-3)
    assert told.high - told.low == pytest.approx(2 * 1.645 * sampling, rel=0.04)


def test_powers_are_standardised_by_their_own_spread():
    columns = {"age": (18, 100), "days": (0, 30)}
    study = Study.from_formula(
        "days ~ poly(age, 2)",
        columns,
        epsilon=1.0,
        delta=1e-6,
        missing="refuse",
        release={"row_radius": 10.0},
    )
    table = rows()
    age = table["age"]
    posterior = of_exact(study, {"age": age, "days": table["days"]})
    design = np.stack([np.ones(len(age)), age, age**2], axis=1)
    slopes = np.linalg.lstsq(design, table["days"])[0]
    expected = slopes[1:] * design[:, 1:].std(axis=0) / table["days"].std()
    np.testing.assert_allclose(posterior.mean("standardised"), expected, atol=1e-3)


def test_the_probability_of_a_positive_slope_is_that_of_the_draws():
    posterior = fit(
        collect(
            [simulate(agreed(), rows(300), np.random.default_rng(0), holder="a")],
            allow_simulated=True,
        )
    )
    draws = posterior.sample(40_000, np.random.default_rng(0))
    np.testing.assert_allclose(posterior.positive(), np.mean(draws > 0, axis=0), atol=0.01)
    matrix = np.eye(2)
    for degrees in (5.0, np.inf):
        law = Student(np.array([0.3, -1.0]), np.array([[0.5, 0.1], [0.1, 1.0]]), degrees, 0.1)
        drawn, _ = law.sample(200_000, np.random.default_rng(1))
        above = law.positive(matrix, np.zeros(2))
        np.testing.assert_allclose(above, np.mean(drawn > 0, axis=0), atol=0.005)
        chains = Draws(drawn.reshape(2, -1, 2), np.ones((2, len(drawn) // 2)))
        np.testing.assert_array_equal(
            chains.positive(matrix, np.zeros(2)), np.mean(drawn > 0, axis=0)
        )
    point = Student(np.zeros(2), None, np.inf, 0.1)
    assert np.isnan(point.positive(matrix, np.zeros(2))).all()


def test_a_summary_names_rows_holders_and_the_budget():
    study = agreed()
    rng = np.random.default_rng(0)
    releases = [
        simulate(study, rows(400, j), rng, holder=f"h{j}", epsilon=epsilon)
        for j, epsilon in enumerate((0.5, 1.0))
    ]
    summary = fit(collect(releases, allow_simulated=True)).summary()
    said = str(summary)
    assert "800 rows of 2 holders; epsilon 0.5 to 1 at delta 1e-06 each, replace-one" in said
    assert f"R2 {summary.explained.mean:.3f}, 90 % interval" in said
    assert "P(>0)" in said
    told = summary.to_dict()
    assert told["n"] == 800
    assert [release["epsilon"] for release in told["releases"]] == [0.5, 1.0]
    assert set(told["explained"]) == {"mean", "low", "high"}
    assert "positive" in summary.to_pandas().columns


def test_without_what_it_takes_they_are_left_out():
    study = agreed(release={"response_square": False})
    released = simulate(study, rows(400), np.random.default_rng(0), holder="a")
    posterior = fit(collect([released], allow_simulated=True))
    assert posterior.explained() is None
    assert posterior.summary().rows[1].standardised is None
    with pytest.raises(PosteriorError, match="need a straight line, releases with y'y"):
        posterior.interval(units="standardised")
    bare = Posterior(agreed(), "m", posterior.outcome, (Contribution("a", None, 1.0, 1e-6),))
    assert bare.explained() is None
    assert "rows not published of 1 holder, a" in str(bare.summary())
    summed = replace(bare.contributions[0], holder="secure sum of 5 holders")
    assert "rows not published of a secure sum of 5 holders;" in str(
        replace(bare, contributions=(summed,)).summary()
    )


def test_r2_of_nothing_but_noise_starts_at_zero():
    table = rows(500)
    table["days"] = np.random.default_rng(5).uniform(0, 30, 500)
    released = simulate(agreed(epsilon=0.5), table, np.random.default_rng(6), holder="a")
    told = fit(collect([released], allow_simulated=True)).explained()
    assert told.low == 0
    assert told.low <= told.mean <= told.high <= 1


@pytest.mark.parametrize(
    ("share", "rough"),
    [
        (Explained(mean=0.16, low=0.0, high=0.44), True),
        (Explained(mean=0.16, low=0.1, high=0.22), False),
        (Explained(mean=0.02, low=0.0, high=0.05), False),  # so little that it does not matter
    ],
)
def test_r2_is_rough_where_half_of_it_is_unsure(share, rough):
    assert share.is_rough == rough


def long_tailed(rng, n=4000):
    """A line through responses of which one in twenty lies far out."""
    x = rng.uniform(-1, 1, (n, 4))
    far = rng.random(n) < 0.05
    y = 0.05 * x[:, 0] - 0.03 * x[:, 1] + np.where(far, 0.5, 0.05) * rng.normal(size=n)
    return np.column_stack([x, y.clip(-1, 1)])


def of_visits(epsilon, rng):
    study = Study.from_document(
        {
            "name": "tails",
            "epsilon": epsilon,
            "delta": 1e-6,
            "response": {"name": "y", "range": [-1.0, 1.0]},
            "features": [{"name": f"x{k}", "range": [-1.0, 1.0]} for k in range(4)],
            "planned_rows": [4000],
        }
    )
    table = long_tailed(rng)
    release = simulate(study, table, rng, holder="h")
    return table, fit(collect([release], allow_simulated=True))


@pytest.mark.parametrize(("epsilon", "says"), [(3.0, True), (100.0, False)])
def test_a_summary_says_where_r2_is_rough(epsilon, says):
    """A tail that bounds cut leaves open how much is explained, until noise leaves room for it."""
    _, posterior = of_visits(epsilon, np.random.default_rng(1))
    for summary in (posterior.summary(), posterior.summary(0.5)):  # whatever is shown
        assert ("told roughly" in summary.caveat) == says, summary
    assert ("told roughly" in posterior.summary().to_dict()["caveat"]) == says


@pytest.mark.parametrize(("epsilon", "says"), [(0.3, True), (100.0, False)])
def test_a_summary_says_that_bounds_cut_tails(epsilon, says):
    _, posterior = of_visits(epsilon, np.random.default_rng(1))
    assert ("normal tails" in posterior.summary().estimand) == says


def test_a_bound_far_beyond_residuals_does_not_make_them_larger():
    """Bounds follow tails, here to over ten sds of residuals; R² is that of the table."""
    table, posterior = of_visits(100.0, np.random.default_rng(1))
    design = np.column_stack([np.ones(len(table)), table[:, :-1]])
    y = table[:, -1]
    left = y - design @ np.linalg.lstsq(design, y)[0]
    assert posterior.residual_sd() == pytest.approx(left.std(), rel=0.1)
    assert posterior.explained().mean == pytest.approx(1 - left.var() / y.var(), abs=0.02)


@pytest.mark.parametrize("epsilon", [10.0, 100.0])
def test_a_tail_counts_in_r2_once(epsilon):
    """Bounds follow it there, so that visits tell of it themselves."""
    table, posterior = of_visits(epsilon, np.random.default_rng(1))
    design = np.column_stack([np.ones(len(table)), table[:, :-1]])
    y = table[:, -1]
    left = y - design @ np.linalg.lstsq(design, y)[0]
    assert posterior.explained().mean == pytest.approx(1 - left.var() / y.var(), abs=0.01)


def test_tails_that_visits_leave_out_count_in_r2():
    """Of 0.08 that the table has, 0.21 is told where they are left out, and 0.14 with them.

    Those of a sub-model are what its larger residuals have of them.
    """
    table, posterior = of_visits(3.0, np.random.default_rng(0))
    design = np.column_stack([np.ones(len(table)), table[:, :-1]])
    y = table[:, -1]
    left = y - design @ np.linalg.lstsq(design, y)[0]
    true = 1 - left.var() / y.var()
    told = posterior.explained()
    assert told.mean < 2 * true
    frame = posterior.source.evidence.frame
    bare = replace(frame, tail=0.0, tail_sd=0.0)
    evidence = replace(posterior.source.evidence, frame=bare)
    without = replace(posterior, source=replace(posterior.source, evidence=evidence)).explained()
    assert without.mean > 2.5 * true
    assert told.high - told.low > (without.high - without.low) * told.mean / without.mean
    small = of_columns(posterior.source.evidence, (0, 2, 3, 4)).frame
    assert 0.3 * frame.tail < small.tail < frame.tail
    assert 0 < small.tail_sd < frame.tail_sd


def test_r2_may_be_large_where_next_to_nothing_is_told_of_slopes():
    """Six features explain 0.8, of which four holders of 50 rows tell little at ε = 0.5.

    Of 16 intervals of 90 % 15 hold it; to first order alone, 10.
    """
    study = Study.from_document(
        {
            "name": "few",
            "epsilon": 0.5,
            "delta": 1e-6,
            "response": {"name": "y", "range": [-1.0, 1.0]},
            "features": [{"name": f"x{k}", "range": [-1.0, 1.0]} for k in range(6)],
            "planned_rows": [50] * 4,
            "visits": 4,
        }
    )
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, (200, 6))
    signal = x @ np.array([0.2, -0.2, 0.15, 0.15, -0.1, 0.1])
    y = signal + np.sqrt(signal.var() / 4) * rng.normal(size=200)
    parts = np.array_split(np.column_stack([x, y.clip(-1, 1)]), 4)
    runs = (simulate_visits(study, parts, np.random.default_rng(run)) for run in range(16))
    told = [fit(collect(each, allow_simulated=True)).explained() for each in runs]
    assert sum(each.low <= 0.8 <= each.high for each in told) >= 13
