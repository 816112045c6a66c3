"""Families: log-odds and log-rates from sums, against truths and references.

Covers `tacit.analyst.families.fit`, `tacit.analyst.families.law`,
`tacit.analyst.families.links`, `tacit.analyst.families.score`.
"""

from typing import Any

import numpy as np
import pytest
from answered import (
    BINARY,
    MIXED,
    NORMAL,
    SKEWED,
    Rows,
    drawn,
    in_scaled,
    slopes_for,
    study_of,
    told,
)
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit

from tacit.analyst.collection import collect
from tacit.analyst.families.law import law_of, logit_normal
from tacit.analyst.families.links import LINKS
from tacit.analyst.families.score import Score
from tacit.analyst.fit import fit
from tacit.errors import MethodError
from tacit.simulation import exact, simulate

MANY = 40_000


@pytest.mark.parametrize(
    ("features", "tolerance"),
    [(NORMAL, 0.015), (SKEWED, 0.03), (BINARY, 0.02), (MIXED, 0.03)],
    ids=["normal", "skewed", "binary", "mixed"],
)
@pytest.mark.parametrize("family", ["logistic", "probit", "poisson"])
def test_without_noise_a_family_gives_its_truth(
    family: str, features: list[dict[str, Any]], tolerance: float
) -> None:
    """Responses are their own means, so that nothing but the approximation is left."""
    rng = np.random.default_rng(1)
    link = LINKS[family]
    table, x = drawn(features, rng, MANY)
    beta = np.array([-0.8, *slopes_for(x, 0.7 if link.binary else 0.4)])
    table["y"] = link.mean(x @ beta)
    study = study_of(features, 1.0 if link.binary else 20.0)
    scaled = in_scaled(study, beta)
    errors = told(study, table, family) - scaled
    assert np.abs(errors[1:]).max() < tolerance * np.abs(scaled[1:]).max()
    assert abs(errors[0]) < 2 * tolerance


def test_normal_rows_are_steins_lemma() -> None:
    """β = b/E[g'(x'β)] for normal rows, whatever the law's rows are."""
    rng = np.random.default_rng(2)
    table, x = drawn(NORMAL, rng, MANY)
    table["y"] = expit(x @ np.array([-0.5, 0.6, -0.4, 0.3]))
    study = study_of(NORMAL)
    gram = exact(study, table).grams[0]
    law = law_of(study, gram, normal=True)
    score = Score(law=law, link=LINKS["logistic"], centre=0.5, half=0.5, levels=())
    beta = np.array([-0.5, 2.4, -1.6, 1.2])
    line = score.line(beta)[1:]
    factor = 0.5 / float(np.mean(LINKS["logistic"].slope(law.rows @ beta)))
    assert_allclose(line * factor, beta[1:], rtol=0.01)


def test_a_level_of_every_kind_is_drawn_with_its_own_moments() -> None:
    rng = np.random.default_rng(3)
    table, _ = drawn(MIXED, rng, MANY)
    table["y"] = np.zeros(MANY)
    study = study_of(MIXED)
    gram = exact(study, table).grams[0]
    law = law_of(study, gram)
    assert_allclose(law.second(), gram / gram[0, 0], atol=1e-9)
    levels = law.rows[:, 3:]
    near = np.minimum(np.abs(levels), np.abs(levels - 1))
    assert np.quantile(near, 0.99) < 0.05  # the matching map moves a 0 or a 1 by little
    assert np.mean(levels.round().sum(axis=1) > 1) < 1e-3  # hardly a row has two levels
    skewed = law.rows[:, 2]
    assert float(stats.skew(skewed)) > 1


def test_a_number_that_can_only_be_zero_or_one_is_drawn_so() -> None:
    """A 0/1 column stated as a range has the largest variance that its mean allows."""
    rng = np.random.default_rng(4)
    features = [{"name": "x0", "range": [0, 1]}, NORMAL[1]]
    sex = (rng.random(MANY) < 0.3) * 1.0
    other = np.clip(0.3 * sex + rng.standard_normal(MANY), -4, 4)
    eta = -2 + 1.5 * sex + 0.5 * other
    study = study_of(features)
    table: Rows = {"x0": sex, "x1": other, "y": expit(eta)}
    law = law_of(study, exact(study, table).grams[0])
    assert np.quantile(1 - np.abs(law.rows[:, 1]), 0.99) < 0.05
    scaled = told(study, table, "logistic")
    assert_allclose(scaled[1:], [0.75, 2.0], rtol=0.01)


def test_products_and_powers_follow_from_their_factors() -> None:
    rng = np.random.default_rng(5)
    features = [NORMAL[0], {"name": "x1", "levels": ["a", "b"]}]
    terms = [
        {"product": ["x0"]},
        {"product": [{"of": "x0", "degree": 2}]},
        {"product": ["x1"]},
        {"product": ["x0", "x1"]},
    ]
    study = study_of(features, terms=terms)
    table, x = drawn(features, rng, MANY)
    table["y"] = expit(-0.5 + 0.6 * x[:, 1] + 0.4 * x[:, 2] - 0.5 * x[:, 1] * x[:, 2])
    law = law_of(study, exact(study, table).grams[0])
    assert np.corrcoef(law.rows[:, 4], law.rows[:, 1] * law.rows[:, 3])[0, 1] > 0.999
    assert np.corrcoef(law.rows[:, 2], law.rows[:, 1] ** 2)[0, 1] > 0.999
    scaled = told(study, table, "logistic")
    assert_allclose(scaled[[1, 3, 4]], [2.4, 0.4, -2.0], atol=0.05)
    assert abs(scaled[2]) < 0.05


@pytest.mark.parametrize("mean", [0.02, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("share", [0.01, 0.2, 0.6])
def test_a_logit_normal_law_has_the_moments_asked_for(mean: float, share: float) -> None:
    variance = share * mean * (1 - mean)
    centre, scale = logit_normal(mean, variance)
    law = stats.norm(centre, scale)
    first = law.expect(expit)
    second = law.expect(lambda value: (expit(value) - first) ** 2)
    assert_allclose([first, second], [mean, variance], rtol=5e-3)


def test_without_features_the_rate_is_told() -> None:
    rng = np.random.default_rng(12)
    study = study_of([], epsilon=5.0)
    table: Rows = {"y": (rng.random(5000) < 0.2) * 1.0}
    release = simulate(study, table, rng, holder="a")
    posterior = fit(collect([release], allow_simulated=True), family="logistic")
    assert_allclose(expit(posterior.mean()), [0.2], atol=0.03)


def test_a_level_that_nobody_has_is_no_traceback() -> None:
    """Without noise nothing hides that its column is 0; a release's noise does."""
    rng = np.random.default_rng(13)
    features = [NORMAL[0], {"name": "x1", "levels": ["a", "b", "c"]}]
    table, x = drawn(features, rng, 3000)
    table["x1"] = np.where(table["x1"] == "c", "b", table["x1"])
    table["y"] = (rng.random(len(x)) < 0.3) * 1.0
    study = study_of(features)
    release = simulate(study, table, rng, holder="a")
    posterior = fit(collect([release], allow_simulated=True), family="logistic")
    low, high = posterior.interval()[3]
    assert high - low > 2
    with pytest.raises(MethodError, match="hardly varies"):
        told(study, table, "logistic")


def test_what_slopes_may_explain_follows_the_rate() -> None:
    study = study_of(NORMAL)
    rng = np.random.default_rng(3)
    _, x = drawn(NORMAL, rng, 4000)
    score = Score(
        law=law_of(study, (x / 4).T @ (x / 4)),
        link=LINKS["logistic"],
        centre=0.5,
        half=0.5,
        levels=(),
    )
    shares = [score.explainable(np.array([at, 0.0, 0.0, 0.0])) for at in (0.0, np.log(0.05 / 0.95))]
    assert_allclose(shares, [1.0, 4 * 0.05 * 0.95], rtol=1e-6)
