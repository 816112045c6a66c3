"""Collection, fit, posterior: from simulated releases to tables, files and ArviZ.

Covers `tacit.analyst.fit`, `tacit.analyst.posterior.posterior`, `tacit.analyst.posterior.storage`,
`tacit.analyst.posterior.summary`, `tacit.analyst.posterior.arviz`, `tacit.analyst.posterior.laws`,
`tacit.analyst.posterior.units`, `tacit.analyst.posterior.text_table`,
`tacit.analyst.posterior.frames`.
"""

import json
import math
import sys

import numpy as np
import pytest
from analyst.stays import STUDY
from numpy.testing import assert_allclose

import tacit
from tacit.analyst.posterior.convergence import Verdict
from tacit.analyst.posterior.laws import Draws, Mixture, Student
from tacit.analyst.posterior.posterior import Contribution, Posterior
from tacit.analyst.posterior.units import user_units
from tacit.errors import MethodError, PosteriorError, PriorError, ReleaseError, SignatureError
from tacit.simulation import exact, simulate

TRUTH = np.array([2.0, 0.1, 3.0])  # days, days per year, days


def rows(seed: int, n: int = 20_000) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    age, sex = rng.uniform(20, 100, n), rng.choice(["f", "m"], n)
    return {
        "age": age,
        "sex": sex,
        "days": TRUTH[0] + TRUTH[1] * age + TRUTH[2] * (sex == "m") + 2 * rng.normal(size=n),
    }


@pytest.fixture(scope="module")
def releases() -> list[tacit.Release]:
    return [simulate(STUDY, rows(k), np.random.default_rng(k), holder=f"h{k}") for k in range(3)]


@pytest.fixture(scope="module")
def collection(releases) -> tacit.Collection:
    return tacit.collect(releases, allow_simulated=True)


def test_the_default_recovers_the_truth_in_user_units(collection):
    """Within four posterior sds: a calibrated posterior fails this once in 16,000."""
    posterior = tacit.fit(collection)
    assert posterior.names() == ("(intercept)", "age", "sex[m]")
    assert (np.abs(posterior.mean() - TRUTH) / posterior.sd()).max() < 4
    assert_allclose(posterior.residual_sd(), 2.0, rtol=0.1)


def test_units_are_an_exact_change_of_variables(collection):
    posterior = tacit.fit(collection)
    theta, beta = posterior.mean("scaled"), posterior.mean("user")
    age, male = 47.0, 1.0
    scaled = theta[0] + theta[1] * (age - 60) / 40 + theta[2] * male
    assert_allclose(15 + 15 * scaled, beta[0] + beta[1] * age + beta[2] * male)
    assert_allclose(
        posterior.interval(0.9, "user")[1], posterior.interval(0.9, "scaled")[1] * 15 / 40
    )
    assert_allclose(posterior.correlation()[1, 1], 1.0)


def test_without_intercept_the_constant_is_implied():
    study = tacit.Study.from_document(STUDY.model_dump(exclude={"release"}) | {"intercept": False})
    posterior = tacit.fit(
        tacit.collect(
            [simulate(study, rows(1), np.random.default_rng(1), holder="a")], allow_simulated=True
        )
    )
    assert posterior.names()[0] == "(intercept, implied)"
    theta, beta = posterior.mean("scaled"), posterior.mean("user")
    assert_allclose(
        beta[0] + beta[1] * 47 + beta[2], 15 + 15 * (theta[0] * (47 - 60) / 40 + theta[1])
    )


def test_holders_may_spend_less(releases):
    poor = simulate(STUDY, rows(9), np.random.default_rng(9), holder="poor", epsilon=0.2)
    evidence = tacit.collect([*releases, poor], allow_simulated=True).evidence
    assert evidence.gram_sd[3] > 3 * evidence.gram_sd[0]


def test_publishing_a_merged_table_equals_publishing_the_whole():
    whole = rows(3)
    halves = {
        name: np.concatenate([column[10_000:], column[:10_000]]) for name, column in whole.items()
    }
    first, second = (
        simulate(STUDY, table, np.random.default_rng(0), holder="a") for table in (whole, halves)
    )
    assert first.xtx == second.xtx
    assert first.xty == second.xty


def test_large_epsilon_gives_the_conjugate_posterior():
    study = tacit.Study.from_document(
        STUDY.model_dump(exclude={"release"}) | {"epsilon": 100.0, "delta": 0.1}
    )
    table = rows(4, 200_000)
    private = tacit.fit(
        tacit.collect(
            [simulate(study, table, np.random.default_rng(0), holder="a")], allow_simulated=True
        )
    )
    evidence = exact(study, table)
    reference = Posterior(study, "non-private", _non_private(evidence), ())
    assert (np.abs(private.mean() - reference.mean()) / reference.sd()).max() < 0.5
    assert_allclose(private.sd(), reference.sd(), rtol=0.25)


def _non_private(evidence):
    from tacit.analyst.methods import method_named

    return method_named("non-private").fit(evidence, tacit.Prior.weak(evidence.d), tacit.Settings())


class TestRefusals:
    def test_simulated_releases_need_a_flag(self, releases):
        with pytest.raises(ReleaseError, match="simulated"):
            tacit.collect(releases)

    def test_a_holder_twice(self, releases):
        with pytest.raises(ReleaseError, match="twice"):
            tacit.collect([releases[0], releases[0]], allow_simulated=True)

    def test_another_study(self, releases):
        other = tacit.Study.from_document(STUDY.model_dump(exclude={"release"}) | {"name": "other"})
        release = simulate(other, rows(5, 100), np.random.default_rng(0), holder="x")
        with pytest.raises(ReleaseError, match="different studies"):
            tacit.collect([releases[0], release], allow_simulated=True)

    def test_relations_never_mix(self, releases):
        other = tacit.Study.from_document(
            STUDY.model_dump(exclude={"release"}) | {"relation": "add-remove"}
        )
        release = simulate(other, rows(5, 100), np.random.default_rng(0), holder="x")
        with pytest.raises(ReleaseError, match="never mix"):
            tacit.collect([releases[0], release], allow_simulated=True)

    def test_nothing(self):
        with pytest.raises(ReleaseError, match="at least one"):
            tacit.collect([])

    def test_an_unsigned_release_where_keys_are_trusted(self, releases):
        with pytest.raises(SignatureError, match="no trusted key was given"):
            tacit.collect(releases, allow_simulated=True, trusted_keys={})

    def test_a_method_that_needs_more(self, collection):
        with pytest.raises(MethodError, match="smallest_eigenvalue = true"):
            tacit.fit(collection, "ada-ssp")

    def test_a_prior_of_another_size(self, collection):
        with pytest.raises(PriorError, match="5 coefficients"):
            tacit.fit(collection, prior=tacit.Prior.weak(5))


class TestPriorFile:
    def test_a_table_overrides_the_named_prior(self, tmp_path):
        from tacit.analyst.prior_file import load_prior

        path = tmp_path / "prior.toml"
        path.write_text(
            '[prior]\nname = "paper"\ncoefficient_sd = { "age" = 0.5 }\nnoise_rate = 0.2\n',
            encoding="utf-8",
        )
        prior = load_prior(path, STUDY)
        assert_allclose(np.diag(prior.covariance), [0.5 / 19, 0.25, 0.5 / 19])
        assert (prior.shape, prior.rate, prior.feature_degrees) == (20.0, 0.2, 4.0)

    def test_a_prior_may_be_stated_in_the_units_of_the_data(self, tmp_path):
        from tacit.analyst.prior_file import load_prior

        path = tmp_path / "prior.toml"
        path.write_text(
            '[prior]\nunits = "user"\ncoefficient_mean = { "age" = 0.2 }\n'
            'coefficient_sd = { "age" = 0.05 }\n',
            encoding="utf-8",
        )
        prior = load_prior(path, STUDY)
        units = user_units(STUDY)
        place = units.names.index("age")
        covariance = units.matrix @ prior.covariance @ units.matrix.T
        assert_allclose((units.matrix @ prior.mean + units.offset)[place], 0.2)
        assert_allclose(np.sqrt(covariance[place, place]), 0.05)

    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ("[prior]\ncoefficient_sd = -1", "coefficient_sd"),
            ('[prior]\nunits = "user"\ncoefficient_sd = 1.0', "a table by coefficient"),
            ('[prior]\nunits = "user"\ncoefficient_sd = { "agee" = 1.0 }', "data's units"),
            ('[prior]\nunits = "user"\ncoefficient_sd = { "(intercept)" = 1.0 }', "leave it out"),
            ('[prior]\ncoefficient_sd = { "agee" = 1.0 }', "no column"),
            ("[prior]\nfeature_degrees = 1", "feature_degrees"),
            ("[other]\nx = 1", r"\[prior\]"),
            ("[prior", "not valid TOML"),
        ],
    )
    def test_wrong_tables_get_one_sentence(self, tmp_path, text, complaint):
        from tacit.analyst.prior_file import load_prior

        path = tmp_path / "prior.toml"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(PriorError, match=complaint):
            load_prior(path, STUDY)


OUTCOMES = {
    "draws": Draws(
        np.random.default_rng(0).normal(size=(2, 500, 3)),
        np.exp(np.random.default_rng(1).normal(size=(2, 500))),
        {"s": np.array([0.2, 0.3])},
    ),
    "normal": Student(np.array([1.0, 2.0, 3.0]), np.diag([1.0, 4.0, 9.0]), math.inf, 0.5),
    "student": Student(np.array([1.0, 2.0, 3.0]), np.diag([1.0, 4.0, 9.0]), 5.0, 0.5),
    "point": Student(np.array([1.0, 2.0, 3.0]), None, math.inf, 0.5),
    "mixture": Mixture(
        np.array([0.3, 0.7]),
        np.array([[0.0, 0, 0], [1.0, 2, 3]]),
        np.array([np.eye(3), 2 * np.eye(3)]),
        np.array([0.5, 1.0]),
        "beware",
    ),
}


@pytest.mark.parametrize("outcome", OUTCOMES.values(), ids=OUTCOMES)
def test_saving_and_loading_changes_nothing(outcome, tmp_path):
    before = Posterior(STUDY, "m", outcome, (Contribution("a", 10, 1.0, 1e-6),), "careful", 3, 100)
    before.save(tmp_path / "p.parquet")
    after = Posterior.load(tmp_path / "p.parquet")
    assert after.contributions == before.contributions
    assert (after.method, after.caveat, after.seed, after.warmup) == ("m", "careful", 3, 100)
    for read in (
        lambda p: p.mean(),
        lambda p: p.covariance(),
        lambda p: p.interval(0.8),
        lambda p: p.residual_sd(),
    ):
        assert_allclose(read(after), read(before))
    assert json.dumps(after.summary().to_dict()) == json.dumps(before.summary().to_dict())
    assert list(tmp_path.iterdir()) == [tmp_path / "p.parquet"]


@pytest.mark.parametrize(
    "outcome",
    [OUTCOMES[name] for name in ("normal", "student", "mixture")],
    ids=["normal", "student", "mixture"],
)
def test_closed_forms_agree_with_their_own_samples(outcome):
    """200,000 draws: quantiles within 5 standard errors or so."""
    theta = outcome.sample(200_000, np.random.default_rng(0))[0]
    assert_allclose(theta.mean(axis=0), outcome.mean(), atol=0.05)
    matrix = np.array([[1.0, -1.0, 0.5]])
    quantiles = outcome.quantiles(np.array([0.05, 0.5, 0.95]), matrix, np.array([2.0]))
    assert_allclose(np.quantile(theta @ matrix[0] + 2, [0.05, 0.5, 0.95]), quantiles[0], atol=0.06)
    assert_allclose(np.cov(theta, rowvar=False), outcome.covariance(), rtol=0.1, atol=0.15)


@pytest.mark.parametrize("content", [b"", b"PAR1 nonsense", b"{}"])
def test_a_damaged_posterior_is_refused(content, tmp_path):
    path = tmp_path / "p.parquet"
    path.write_bytes(content)
    with pytest.raises(PosteriorError):
        Posterior.load(path)


def test_arviz_takes_every_outcome():
    for outcome in (OUTCOMES["draws"], OUTCOMES["mixture"]):
        tree = Posterior(STUDY, "m", outcome, ()).to_arviz()
        assert list(tree["posterior"]["coefficient"].coords["term"].values) == [
            "(intercept)",
            "age",
            "sex[m]",
        ]


class TestVerdict:
    def judge(self, theta: np.ndarray, **acceptance: float) -> Verdict:
        rates = {name: np.full(theta.shape[0], rate) for name, rate in acceptance.items()}
        outcome = Draws(
            theta, np.exp(0.1 * np.random.default_rng(9).normal(size=theta.shape[:2])), rates
        )
        return Posterior(STUDY, "m", outcome, ()).summary().verdict

    def test_independent_draws_have_converged(self):
        assert (
            self.judge(np.random.default_rng(0).normal(size=(4, 1000, 3)), s=0.3)
            is Verdict.CONVERGED
        )

    def test_few_draws_are_too_short(self):
        assert (
            self.judge(np.random.default_rng(0).normal(size=(4, 50, 3)), s=0.3) is Verdict.TOO_SHORT
        )

    def test_chains_that_disagree_are_stuck(self):
        theta = np.random.default_rng(0).normal(size=(4, 1000, 3)) + np.arange(4)[:, None, None]
        assert self.judge(theta, s=0.3) is Verdict.STUCK

    def test_chains_that_never_accept_are_stuck(self):
        assert (
            self.judge(np.random.default_rng(0).normal(size=(4, 1000, 3)), s=0.001) is Verdict.STUCK
        )

    def test_a_slow_walk_is_not_converged(self):
        theta = np.cumsum(np.random.default_rng(0).normal(size=(4, 2000, 3)), axis=1)
        assert self.judge(theta, s=0.3) in {Verdict.STUCK, Verdict.TOO_SHORT}


def test_draws_without_what_judges_them_are_refused_in_one_sentence(monkeypatch):
    """As where the core alone is installed, and models were averaged."""
    rng = np.random.default_rng(0)
    draws = Draws(rng.normal(size=(4, 100, 2)), np.ones((4, 100)))
    study = tacit.Study.from_document(
        {
            "name": "s",
            "epsilon": 1.0,
            "delta": 1e-6,
            "response": {"name": "y", "range": [0, 1]},
            "features": [{"name": "x", "range": [0, 1]}],
        }
    )
    posterior = Posterior(study, "normal-x", draws, ())
    assert len(posterior.summary().rows) == 2
    monkeypatch.setitem(sys.modules, "arviz_stats.base", None)
    with pytest.raises(MethodError, match=r"pip install 'tacit-dp\[sampling\]'"):
        posterior.summary()
