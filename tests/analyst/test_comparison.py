"""Comparison: probabilities of models, Bayesian model averaging, selection over all sub-models.

Covers `tacit.analyst.comparison.subsets`, `tacit.analyst.comparison.likelihood`,
`tacit.analyst.comparison.models`, `tacit.analyst.comparison.averaging`,
`tacit.analyst.comparison.compare` and `tacit.cli.compare`.
"""

import itertools
import json
import time
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from studies import agreed

from tacit.analyst.collection import collect
from tacit.analyst.comparison.averaging import averaged
from tacit.analyst.comparison.compare import compare, joint_probabilities, select_terms
from tacit.analyst.comparison.likelihood import likelihoods
from tacit.analyst.comparison.models import all_models
from tacit.analyst.comparison.subsets import all_subsets
from tacit.analyst.fit import fit
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.noise_aware import fit as noise_aware
from tacit.analyst.posterior import convergence
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.posterior.source import Source
from tacit.analyst.prior import Prior
from tacit.errors import PosteriorError
from tacit.simulation import exact, simulate
from tacit.study import Study

NUMBERS = [{"name": f"x{k}", "range": [-1, 1]} for k in range(4)]


def plain(features=NUMBERS, **fields):
    return agreed(features, response={"name": "y", "range": [-1, 1]}, **fields)


def rows(n=300, seed=0, slopes=(0.3, 0.0, 0.05, 0.0)):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, len(slopes)))
    if len(slopes) > 1:
        x[:, 1] = (x[:, 0] + x[:, 1]) / 2
    y = 0.1 + x @ np.array(slopes) + rng.normal(0, 0.2, n)
    return {f"x{k}": x[:, k] for k in range(len(slopes))} | {"y": y.clip(-1, 1)}


@pytest.fixture(scope="module")
def posterior():
    rng = np.random.default_rng(1)
    released = [simulate(plain(), rows(4000, j), rng, holder=f"h{j}") for j in range(2)]
    return fit(collect(released, allow_simulated=True))


# The algebra.


def test_all_subsets_are_those_found_one_by_one():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 9))
    matrix = x.T @ x
    vector = x.T @ rng.normal(size=50)
    widths = [1, 3, 1, 2]
    starts = np.cumsum([2, *widths])
    values = all_subsets(matrix, vector, widths, 2)
    assert len(values) == 16
    for code in range(16):
        columns = [0, 1]
        for k, width in enumerate(widths):
            if code >> k & 1:
                columns += range(starts[k], starts[k] + width)
        block = matrix[np.ix_(columns, columns)]
        expected = 0.5 * vector[columns] @ np.linalg.solve(block, vector[columns])
        expected -= 0.5 * np.linalg.slogdet(block)[1]
        assert values[code] == pytest.approx(expected, rel=1e-10)


def test_only_models_with_their_lower_terms_are_weighed():
    columns = {"age": (18, 100), "sex": ["f", "m"], "bmi": (15, 50), "days": (0, 60)}
    study = Study.from_formula("days ~ age * sex + poly(bmi, 2)", columns, epsilon=1, delta=1e-6)
    models = all_models(study, 0.5)
    names = {models.name(k) for k in range(len(models.codes))}
    assert len(names) == 15  # (4 without the interaction + 1 with) · (1, bmi, bmi + bmi^2)
    assert "(intercept) alone" in names
    assert "age + sex + age:sex" in names
    assert not {name for name in names if "age:sex" in name and "age + sex" not in name}
    assert models.prior.sum() == pytest.approx(1)
    sparse = all_models(study, 0.1)
    assert sparse.prior[sparse.bits.sum(axis=1) == 0].sum() > 0.5


# Against a reference: rows, their normal law, and every model by itself.


def of_exact(study, table, prior, variance):
    evidence = exact(study, table)
    settings = Settings(noise_variance=variance)
    outcome = noise_aware(evidence, prior, settings)
    source = Source(evidence, prior, "(given in code)", "differ", settings)
    return Posterior(study, "noise-aware", outcome, (), source=source)


def reference(table, covariance, variance):
    """Probabilities and averaged coefficients from rows themselves."""
    y = table["y"]
    design = np.stack([np.ones(len(y)), *(table[f"x{k}"] for k in range(4))], axis=1)
    logs, means = [], []
    sets = [[0, *(k + 1 for k in range(4) if code >> k & 1)] for code in range(16)]
    for columns in sets:
        x = design[:, columns]
        inner = covariance[np.ix_(columns, columns)]
        law = multivariate_normal(np.zeros(len(y)), variance * np.eye(len(y)) + x @ inner @ x.T)
        logs.append(law.logpdf(y))
        mean = np.zeros(5)
        precision = x.T @ x / variance + np.linalg.inv(inner)
        mean[columns] = np.linalg.solve(precision, x.T @ y / variance)
        means.append(mean)
    weights = np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    inclusion = [sum(w for w, s in zip(weights, sets, strict=True) if k in s) for k in range(1, 5)]
    return weights, inclusion, weights @ np.array(means)


def test_of_exact_statistics_it_equals_averaging_over_rows():
    study = plain(release={"row_radius": 10.0}, missing="refuse")
    table = rows()
    covariance = np.diag([1.0, 0.3, 0.2, 0.4, 0.1])
    prior = replace(Prior.weak(5), covariance=covariance, by_spread=False)
    comparison = select_terms(of_exact(study, table, prior, 0.04))
    weights, inclusion, mean = reference(table, covariance, 0.04)
    told = [term.probability for term in comparison.inclusion]
    np.testing.assert_allclose(told, inclusion, atol=1e-5)  # rows are rounded to 2**-18
    best = max(weights)
    assert comparison.models[0].probability == pytest.approx(best, abs=1e-5)
    draws = comparison.average.outcome.flat
    error = 5 * draws.std(axis=0) / np.sqrt(len(draws)) + 1e-9
    assert (np.abs(draws.mean(axis=0) - mean) < error).all()  # false alarm: 3e-6


def test_averaged_moments_are_those_of_the_reference():
    study = plain(release={"row_radius": 10.0}, missing="refuse")
    covariance = np.diag([1.0, 0.3, 0.2, 0.4, 0.1])
    prior = replace(Prior.weak(5), covariance=covariance, by_spread=False)
    told = likelihoods(exact(study, rows()), prior, Settings(noise_variance=0.04))
    models = all_models(study, 0.5)
    joint = joint_probabilities(models, told)
    moments = averaged(models, told, joint, 1.0)
    np.testing.assert_allclose(moments.mean, reference(rows(), covariance, 0.04)[2], atol=1e-5)
    drawn = np.cov(moments.draws.flat, rowvar=False)
    sizes = np.sqrt(np.diag(moments.covariance))
    np.testing.assert_allclose(
        drawn / np.outer(sizes, sizes), moments.covariance / np.outer(sizes, sizes), atol=0.05
    )


# What it says.


def test_a_slope_is_found_and_the_rest_is_not(posterior):
    comparison = select_terms(posterior)
    told = {term.term: term.probability for term in comparison.inclusion}
    assert told["x0"] > 0.99
    assert told["x1"] < 0.5
    assert told["x3"] < 0.5
    assert sum(model.probability for model in comparison.models) <= 1 + 1e-9
    assert comparison.weighed == 16
    zeros = np.mean(comparison.average.outcome.flat == 0, axis=0)
    np.testing.assert_allclose(1 - zeros[1:], list(told.values()), atol=0.01)


def test_named_models_agree_with_the_selection(posterior):
    every = {one.terms: one.probability for one in select_terms(posterior).models}
    named = compare(posterior, posterior.submodel(without="x3"), posterior.submodel(only="x0"))
    told = {one.terms: one.probability for one in named.models}
    for one, other in itertools.combinations(told, 2):
        if one in every and other in every and every[other] > 1e-6:
            assert told[one] / told[other] == pytest.approx(every[one] / every[other], rel=1e-6)
    assert named.answer == ""


def test_whether_a_term_is_needed_is_answered_in_one_line(posterior):
    needed = compare(posterior, posterior.submodel(without="x0"))
    assert (
        "x0: needed with probability 1.000 (0.5 beforehand); the releases speak for it more than "
        "1,000,000 to 1."
    ) in str(needed)
    idle = compare(posterior.submodel(without="x3"), posterior)
    assert "speak against it" in idle.answer or "hardly tell" in idle.answer


def test_little_information_leaves_probabilities_near_the_priors():
    released = simulate(plain(epsilon=0.05), rows(200), np.random.default_rng(2), holder="a")
    comparison = select_terms(fit(collect([released], allow_simulated=True)))
    for term in comparison.inclusion:
        assert term.probability == pytest.approx(term.prior, abs=0.15)


def test_the_average_is_a_posterior_like_any_other(posterior, tmp_path, monkeypatch):
    average = select_terms(posterior).average
    average.save(tmp_path / "average.parquet")
    back = Posterior.load(tmp_path / "average.parquet")
    row = {f"x{k}": [0.5] for k in range(4)}
    assert back.predict(row)["mean"].to_pylist() == pytest.approx(
        posterior.predict(row)["mean"].to_pylist(), abs=0.05
    )
    monkeypatch.setattr(convergence, "import_module", None)  # of the sampling extra
    assert "Averaged over 16 models" in str(back.summary())
    assert "is zero there, and no part of P(>0)." in back.caveat
    assert "the draws are independent" in str(back.summary())
    assert "R-hat" not in str(back.summary())
    assert back.privacy_share("scaled") == pytest.approx(posterior.privacy_share("scaled"))
    back.report(tmp_path / "average.html")
    page = (tmp_path / "average.html").read_text(encoding="utf-8")
    assert "Averaged over 16 models" in page
    assert "the chains that sampled it" not in page


@pytest.mark.slow
def test_a_million_models_take_less_than_a_minute():
    features = [{"name": f"x{k}", "range": [-1, 1]} for k in range(20)]
    rng = np.random.default_rng(0)
    slopes = np.where(np.arange(20) < 5, 0.1, 0.0)
    released = [
        simulate(plain(features), rows(2000, j, slopes), rng, holder=f"h{j}") for j in range(10)
    ]
    posterior = fit(collect(released, allow_simulated=True))
    begun = time.perf_counter()
    assert select_terms(posterior).weighed == 2**20
    assert time.perf_counter() - begun < 60


# Refusals.


def test_what_cannot_be_compared_is_refused(posterior):
    with pytest.raises(PosteriorError, match="two posteriors at least"):
        compare(posterior)
    with pytest.raises(PosteriorError, match="two of the models are the same"):
        compare(posterior, posterior)
    with pytest.raises(PosteriorError, match="does not hold the statistics"):
        select_terms(replace(posterior, source=None))
    with pytest.raises(PosteriorError, match="between 0 and 1"):
        select_terms(posterior, inclusion=1.0)
    other = replace(posterior, contributions=posterior.contributions[:1])
    with pytest.raises(PosteriorError, match="the same releases"):
        compare(posterior, other)
    apart = replace(posterior, source=replace(posterior.source, holders="separate"))
    with pytest.raises(PosteriorError, match="not separate ones"):
        select_terms(apart)
    many = plain([{"name": f"x{k}", "range": [-1, 1]} for k in range(21)])
    with pytest.raises(PosteriorError, match=r"21 terms.* up to 20"):
        all_models(many, 0.5)


def test_holders_taken_to_be_alike_are_compared_so(posterior):
    alike = replace(posterior, source=replace(posterior.source, holders="common"))
    assert select_terms(alike).weighed == 16


def test_the_command(tacit, posterior, house):
    posterior.save(house / "p.parquet")
    posterior.submodel(without="x3").save(house / "q.parquet")
    code, out, _ = tacit("compare", "p.parquet", "q.parquet")
    assert code == 0
    assert "x3: needed with probability" in out
    code, out, _ = tacit("compare", "p.parquet", "--without", "x3", "--json")
    assert json.loads(out)["answer"].startswith("x3: needed")
    code, out, _ = tacit("compare", "p.parquet", "--out", "average.parquet")
    assert "the 10 likeliest of 16 models" in out
    assert Posterior.load(house / "average.parquet").names() == posterior.names()
    code, _, error = tacit("compare", "p.parquet", "q.parquet", "--without", "x3")
    assert code == 2
    assert "--without goes with one posterior" in error
    for named in (["q.parquet"], ["--without", "x3"]):
        code, _, error = tacit("compare", "p.parquet", *named, "--inclusion", "0.2")
        assert code == 2
        assert "--inclusion goes with one posterior" in error
