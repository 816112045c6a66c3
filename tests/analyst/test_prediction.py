"""Prediction: exact laws, the split of the variance, missing values, files, and calibration on
simulated data.

Covers `tacit.analyst.posterior.prediction`.
"""

import math
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from analyst.stays import STUDY
from numpy.testing import assert_allclose
from scipy import stats

import tacit
from tacit.analyst.methods import method_named
from tacit.analyst.posterior.laws import Draws, Mixture, ScalarMixtures, Student
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.posterior.prediction import FIELDS, predict_to
from tacit.errors import PosteriorError, TableError
from tacit.simulation import exact, simulate

TRUTH, RESIDUAL = np.array([2.0, 0.1, 3.0]), 2.0


def rows(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    age, sex = rng.uniform(20, 100, n), rng.choice(["f", "m"], n)
    return {
        "age": age,
        "sex": sex,
        "days": TRUTH[0] + TRUTH[1] * age + TRUTH[2] * (sex == "m") + RESIDUAL * rng.normal(size=n),
    }


def fitted(
    seed: int,
    *,
    epsilon: float = 1.0,
    n: int = 5000,
    method: str = "noise-aware",
    missing: str = "drop",
) -> Posterior:
    study = tacit.Study.from_document(
        STUDY.model_dump(exclude={"release"}) | {"epsilon": epsilon, "missing": missing}
    )
    rng = np.random.default_rng(seed)
    releases = [simulate(study, rows(rng, n), rng, holder=f"h{k}") for k in range(2)]
    return tacit.fit(
        tacit.collect(releases, allow_simulated=True),
        method,
        settings=tacit.Settings(chains=2, draws=500, warmup=500),
    )


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    return fitted(0)


RNG = np.random.default_rng(3)
OUTCOMES = {
    "draws": Draws(
        RNG.normal([0.2, 0.3, 0.1], 0.1, (2, 400, 3)),
        0.05 * np.exp(0.3 * RNG.normal(size=(2, 400))),
    ),
    "normal": Student(np.array([0.2, 0.3, 0.1]), 0.01 * np.eye(3), math.inf, 0.05),
    "student": Student(np.array([0.2, 0.3, 0.1]), 0.01 * np.eye(3), 5.0, 0.05),
    "mixture": Mixture(
        np.array([0.3, 0.7]),
        np.array([[0.0, 0.5, 0.1], [0.2, 0.1, 0.3]]),
        np.array([0.01, 0.04])[:, None, None] * np.eye(3),
        np.array([0.02, 0.1]),
    ),
}


def new_responses(outcome, x, rng, count):
    """Draws of x'θ + e under an outcome. A Student law's θ and σ² share one χ² variable: θ's scale
    is proportional to σ².
    """
    if isinstance(outcome, Student) and np.isfinite(outcome.degrees):
        nu = outcome.degrees
        factor = nu / rng.chisquare(nu, count)
        sd = np.sqrt(x @ outcome.scale @ x + outcome.noise_variance * (nu - 2) / nu)
        return x @ outcome.location + sd * np.sqrt(factor) * rng.standard_normal(count)
    theta, variance = outcome.sample(count, rng)
    return theta @ x + np.sqrt(variance) * rng.standard_normal(count)


@pytest.mark.parametrize("outcome", OUTCOMES.values(), ids=OUTCOMES)
def test_predictions_agree_with_brute_force(outcome):
    """400,000 draws: within 5 standard errors of the density at the quantile, false alarms below
    1e-5.
    """
    found = Posterior(STUDY, "m", outcome, ()).predict({"age": [47.0], "sex": ["m"]}).to_pylist()[0]
    x = np.array([1.0, (47 - 60) / 40, 1.0])
    drawn = 15 + 15 * new_responses(outcome, x, np.random.default_rng(0), 400_000)
    assert_allclose(found["mean"], drawn.mean(), atol=5 * drawn.std() / math.sqrt(400_000))
    assert_allclose(found["sd"], drawn.std(), rtol=0.02)
    assert_allclose(
        [found["low"], found["high"]], np.quantile(drawn, [0.05, 0.95]), atol=0.012 * found["sd"]
    )
    assert found["mean_sd"] < found["sd"]


def test_quantiles_of_a_mixture_are_exact_to_the_last_digits():
    """Two far peaks with next to nothing between them: Newton's steps alone would leave the
    table.
    """
    weights, centres, widths = (
        np.array([0.5, 0.5]),
        np.array([[-50.0, 0.0], [50.0, 0.1]]),
        np.array([[1.0, 1.0], [0.01, 2.0]]),
    )
    probabilities = np.array([1e-6, 0.05, 0.4999, 0.5001, 0.95])
    found = ScalarMixtures(weights, centres, widths).quantiles(probabilities)
    for i in range(2):
        law = sum(
            w * stats.norm.cdf(found[i], c, s)
            for w, c, s in zip(weights, centres[:, i], widths[:, i], strict=True)
        )
        assert_allclose(law, probabilities, rtol=1e-7)


def test_quantiles_far_from_zero_lose_no_digits():
    found = ScalarMixtures(
        np.array([0.4, 0.6]), 1e9 + np.array([[-1e-3], [1e-3]]), np.array([[1e-3], [2e-3]])
    ).quantiles(np.array([0.05, 0.95]))
    near = ScalarMixtures(
        np.array([0.4, 0.6]), np.array([[-1e-3], [1e-3]]), np.array([[1e-3], [2e-3]])
    ).quantiles(np.array([0.05, 0.95]))
    assert_allclose(found - 1e9, near, atol=1e-6)


def test_the_mean_is_the_regression_line_and_rows_are_not_shrunk(posterior):
    """The longest row of the domain, which publishing would shrink, is predicted by the line
    itself.
    """
    assert STUDY.row_radius < STUDY.longest_row
    found = posterior.predict({"age": [20.0, 100.0], "sex": ["m", "m"]})
    beta = posterior.mean()
    assert_allclose(found["mean"].to_numpy(), beta[0] + beta[1] * np.array([20.0, 100.0]) + beta[2])


def test_intervals_of_the_mean_are_those_of_the_coefficients(posterior):
    """At age 60 and the reference level the scaled row is the intercept alone."""
    found = posterior.predict({"age": [60.0], "sex": ["f"]}, interval=0.8).to_pylist()[0]
    low, high = posterior.interval(0.8, "scaled")[0]
    assert_allclose(
        [found["mean_low"], found["mean_high"]], [15 + 15 * low, 15 + 15 * high], rtol=1e-6
    )


def test_the_parts_of_the_variance_add_up(posterior):
    found = posterior.predict(rows(np.random.default_rng(1), 50))
    parts = {
        name: found[f"variance_{name}"].to_numpy() for name in ("residual", "sampling", "privacy")
    }
    assert_allclose(sum(parts.values()), found["sd"].to_numpy() ** 2)
    assert_allclose(parts["sampling"] + parts["privacy"], found["mean_sd"].to_numpy() ** 2)
    assert all((part >= 0).all() for part in parts.values())


@pytest.mark.parametrize(
    ("epsilon", "shares", "factor"),
    [(30.0, (0.0, 0.35), 1.05), (1.0, (0.6, 0.999), 1.2), (0.1, (0.97, 1.0), 2.0)],
)
def test_the_sampling_part_is_what_exact_statistics_leave(epsilon, shares, factor):
    """Against the conjugate posterior of the same rows, which no release could feed; noise hides
    X'X and σ² the more, the smaller ε.
    """
    rng = np.random.default_rng(5)
    table = rows(rng, 10_000)
    study = tacit.Study.from_document(STUDY.model_dump(exclude={"release"}) | {"epsilon": epsilon})
    found = tacit.fit(
        tacit.collect([simulate(study, table, rng, holder="a")], allow_simulated=True)
    )
    reference = method_named("non-private").fit(
        exact(study, table), tacit.Prior.weak(study.d), tacit.Settings()
    )
    wanted = np.sqrt(np.diag(reference.covariance()))
    assert np.abs(np.log(np.sqrt(np.diag(found.pooled.sampling)) / wanted)).max() < math.log(factor)
    share = found.privacy_share("contrast")
    assert ((share >= shares[0]) & (share <= shares[1])).all(), share


def test_holders_that_differ_are_not_blamed_on_privacy():
    """At a huge ε what is left between two holders with other coefficients is no privacy noise."""
    study = tacit.Study.from_document(
        STUDY.model_dump(exclude={"release"}) | {"epsilon": 100.0, "delta": 0.1}
    )
    rng = np.random.default_rng(6)
    releases = []
    for k, slope in enumerate((0.0, 0.05, 0.1, 0.15)):
        table = rows(rng, 20_000)
        table["days"] = table["days"] - TRUTH[1] * table["age"] + slope * table["age"]
        releases.append(simulate(study, table, rng, holder=f"h{k}"))
    found = tacit.fit(tacit.collect(releases, allow_simulated=True))
    assert found.holders(units="scaled").between[1].clear
    assert found.privacy_share("contrast").max() < 0.4


def test_a_point_estimate_predicts_the_mean_alone():
    found = Posterior(
        STUDY, "m", Student(np.array([0.2, 0.3, 0.1]), None, math.inf, 0.5), ()
    ).predict({"age": [47.0], "sex": ["m"]})
    assert found["mean"].null_count == 0
    assert all(found[name].null_count == 1 for name in FIELDS[1:])


def test_a_posterior_without_a_pool_splits_nothing(posterior):
    bare = Posterior(STUDY, "m", posterior.outcome, ())
    found = bare.predict({"age": [47.0], "sex": ["m"]})
    assert found["sd"].null_count == 0
    assert found["variance_privacy"].null_count == 1
    assert np.isnan(bare.privacy_share()).all()


@pytest.mark.parametrize(
    "form",
    [
        pd.DataFrame,
        pl.DataFrame,
        pa.table,
        dict,
        lambda table: np.column_stack([table["age"], table["dose"]]),
    ],
    ids=range(5),
)
def test_tables_of_every_kind_without_a_response(form):
    study = tacit.Study.from_document(
        STUDY.model_dump(exclude={"release", "features"})
        | {"features": [{"name": "age", "range": [20, 100]}, {"name": "dose", "range": [0, 1]}]}
    )
    table = {"age": np.array([30.0, 70.0]), "dose": np.array([0.5, 1.0])}
    assert_allclose(
        Posterior(study, "m", OUTCOMES["normal"], ()).predict(form(table))["mean"].to_numpy(),
        [15 + 15 * -0.025, 15 + 15 * 0.375],
    )


class TestMissingAndUnseen:
    TABLE = pa.table({"age": [50.0, None, 60.0], "sex": ["f", "m", None]})

    def predict(self, missing: str, table: object = None) -> pa.Table:
        study = tacit.Study.from_document(
            STUDY.model_dump(exclude={"release"}) | {"missing": missing}
        )
        return Posterior(study, "m", OUTCOMES["normal"], ()).predict(
            self.TABLE if table is None else table
        )

    def test_drop_gives_null(self):
        found = self.predict("drop")
        assert [value is None for value in found["mean"].to_pylist()] == [False, True, True]
        assert [value is None for value in found["high"].to_pylist()] == [False, True, True]

    def test_impute_takes_the_middle_and_the_reference(self):
        found = self.predict("impute")["mean"].to_pylist()
        assert (
            found[1:]
            == self.predict("drop", {"age": [60.0, 60.0], "sex": ["m", "f"]})["mean"].to_pylist()
        )

    def test_refuse_refuses(self):
        with pytest.raises(TableError, match="the study refuses them"):
            self.predict("refuse")

    def test_an_unseen_level_is_an_error_unless_the_study_has_other(self):
        with pytest.raises(TableError, match="does not list"):
            self.predict("drop", {"age": [50.0], "sex": ["x"]})

    def test_values_outside_are_clamped_and_counted(self, tmp_path):
        tally = predict_to(
            tmp_path / "p.csv",
            Posterior(STUDY, "m", OUTCOMES["normal"], ()),
            {"age": [120.0, 100.0], "sex": ["f", "f"]},
        )
        assert tally.outside == {"age": 1}
        assert len(set(pyarrow.csv.read_csv(tmp_path / "p.csv")["mean"].to_pylist())) == 1


class TestFiles:
    @pytest.mark.parametrize("suffix", [".csv", ".parquet"])
    def test_a_file_holds_the_same_as_the_table(self, tmp_path, suffix):
        posterior = Posterior(STUDY, "m", OUTCOMES["student"], ())
        table = pa.table({**rows(np.random.default_rng(2), 70_000), "id": np.arange(70_000)})
        pyarrow.csv.write_csv(table, tmp_path / "rows.csv")
        tally = predict_to(
            tmp_path / f"p{suffix}", posterior, tmp_path / "rows.csv", keep=["id", "age"]
        )
        found = (
            pq.read_table(tmp_path / "p.parquet")
            if suffix == ".parquet"
            else pyarrow.csv.read_csv(tmp_path / "p.csv")
        )
        assert found.column_names == ["id", "age", *FIELDS]
        assert found["id"].cast(pa.int64()).to_pylist() == list(range(70_000))
        assert tally.rows == 70_000
        direct = posterior.predict(table)
        assert_allclose(found["low"].to_numpy(), direct["low"].to_numpy())
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
            ["rows.csv", f"p{suffix}"]
        )

    def test_an_empty_table_gives_an_empty_file(self, posterior, tmp_path):
        predict_to(
            tmp_path / "p.parquet",
            posterior,
            {"age": pa.array([], pa.float64()), "sex": pa.array([], pa.string())},
        )
        assert pq.read_table(tmp_path / "p.parquet").column_names == list(FIELDS)

    def test_a_failure_leaves_no_file(self, posterior, tmp_path):
        with pytest.raises(TableError, match="does not list"):
            predict_to(tmp_path / "p.parquet", posterior, {"age": [50.0], "sex": ["x"]})
        assert list(tmp_path.iterdir()) == []

    def test_names_that_would_clash_and_other_suffixes_are_refused(self, posterior, tmp_path):
        with pytest.raises(TableError, match="'mean' is the name of a prediction"):
            predict_to(tmp_path / "p.csv", posterior, {"age": [50.0], "sex": ["f"]}, keep=["mean"])
        with pytest.raises(PosteriorError, match="must end in"):
            predict_to(tmp_path / "p.xlsx", posterior, {"age": [50.0], "sex": ["f"]})
        with pytest.raises(PosteriorError, match="between 0 and 1"):
            posterior.predict({"age": [50.0], "sex": ["f"]}, interval=90)

    def test_memory_does_not_grow_with_the_rows(self, tmp_path):
        found = Posterior(STUDY, "m", OUTCOMES["normal"], ())
        peaks = []
        for count in (300_000, 1_200_000):
            pq.write_table(
                pa.table(rows(np.random.default_rng(2), count)),
                tmp_path / "rows.parquet",
                row_group_size=65_536,
            )
            tracemalloc.start()
            predict_to(tmp_path / "p.parquet", found, tmp_path / "rows.parquet")
            peaks.append(
                tracemalloc.get_traced_memory()[1] + pa.default_memory_pool().bytes_allocated()
            )
            tracemalloc.stop()
        assert peaks[1] < 1.2 * peaks[0]


@pytest.mark.parametrize(
    ("method", "epsilon", "replicates"),
    [
        ("noise-aware", 1.0, 40),
        ("noise-aware", 0.1, 40),
        pytest.param("noise-aware", 1.0, 400, marks=pytest.mark.slow),
        pytest.param("noise-aware", 0.3, 400, marks=pytest.mark.slow),
    ],
)
def test_predictive_intervals_cover(method, epsilon, replicates):
    """Simulated data, new rows: 90 % intervals of a new response, and of the mean response, cover.

    One new row per fit, so replicates are independent. The mean's interval may cover more than 90
    %, never clearly less; a calibrated one fails with probability 1e-4 at most. A new response's
    must cover neither clearly less nor clearly more: 1e-4 each.
    """
    new, mean = [], []
    for seed in range(replicates):
        rng = np.random.default_rng(1000 + seed)
        table = rows(rng, 1)
        found = fitted(seed, epsilon=epsilon, n=2000, method=method).predict(table).to_pylist()[0]
        line = TRUTH[0] + TRUTH[1] * table["age"][0] + TRUTH[2] * (table["sex"][0] == "m")
        new.append(found["low"] <= table["days"][0] <= found["high"])
        mean.append(found["mean_low"] <= line <= found["mean_high"])
    assert stats.binom.cdf(sum(new), replicates, 0.9) > 1e-4, sum(new)
    assert stats.binom.cdf(sum(mean), replicates, 0.9) > 1e-4, sum(mean)
    if epsilon >= 1:
        assert stats.binom.sf(sum(new) - 1, replicates, 0.9) > 1e-4, sum(new)
