"""What is known of X'X beforehand, where columns are levels and responses are 0 or 1.

Covers `tacit.analyst.families.quiet`.
"""

import numpy as np
import pytest
from answered import BINARY, MIXED, NORMAL, drawn, study_of
from numpy.testing import assert_allclose

from tacit.analyst.collection import collect
from tacit.analyst.evidence import Evidence
from tacit.analyst.families import fit as families
from tacit.analyst.families.quiet import level_places, quieter
from tacit.analyst.fit import fit
from tacit.analyst.methods.gram import grams
from tacit.analyst.methods.noise_aware.facts import facts_of
from tacit.analyst.methods.noise_aware.model import _spread
from tacit.analyst.prior import Prior
from tacit.simulation import exact, simulate
from tacit.study import Study

STUDY = study_of(BINARY)


def rows_of(study: Study, n: int = 4000) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    features = [feature.model_dump(exclude_none=True) for feature in study.features]
    table, x = drawn(features, rng, n)
    table["y"] = (rng.random(len(x)) < 0.2) * 1.0
    return table


def released(study: Study, seed: int, n: int = 4000) -> Evidence:
    rng = np.random.default_rng(seed)
    release = simulate(study, rows_of(study, n), rng, holder="a")
    return collect([release], allow_simulated=True).evidence


def test_columns_that_are_levels_are_found() -> None:
    assert level_places(study_of(MIXED)) == [3, 4]
    assert level_places(study_of(NORMAL)) == []
    terms = [{"product": [name]} for name in ("x0", "x2", "x1")] + [{"product": ["x0", "x2"]}]
    assert level_places(study_of(MIXED, terms=terms)) == [2, 3]


def test_without_noise_nothing_is_taken_off() -> None:
    study = study_of(MIXED)
    evidence = exact(study, rows_of(study))
    assert_allclose(
        quieter(study, evidence, binary=True).grams, evidence.grams, rtol=1e-4, atol=0.1
    )


def test_a_levels_sum_and_the_intercepts_entry_have_less_noise() -> None:
    """Over 300 releases sds of noise are told to 4 %: within 15 % but in 1 of 5,000 cases."""
    truth = exact(STUDY, rows_of(STUDY, 200)).grams[0]
    errors = []
    raw = []
    for seed in range(300):
        evidence = released(STUDY, seed, 200)
        errors.append(quieter(STUDY, evidence, binary=True).grams[0] - truth)
        raw.append(evidence.grams[0] - truth)
    ratios = np.std(errors, axis=0) / np.std(raw, axis=0)
    noise = STUDY.mechanism().noise
    assert noise.yty is not None
    joined = noise.yty / np.hypot(noise.yty, noise.xtx_diagonal)
    assert_allclose(ratios[0, 1:], np.sqrt(2 / 3), rtol=0.15)
    assert_allclose(np.diag(ratios)[1:], np.sqrt(1 / 3), rtol=0.15)
    assert ratios[0, 0] == pytest.approx(joined, rel=0.15)
    assert ratios[1, 2] == 1


def test_the_model_counts_the_noise_that_is_left() -> None:
    """Cov(Mθ) against draws of M, of which 20,000 tell an entry to a hundredth."""
    evidence = quieter(STUDY, released(STUDY, 0), binary=True)
    facts = facts_of(evidence, Prior.weak(STUDY.d))
    posterior = grams(evidence)
    rng = np.random.default_rng(2)
    theta = rng.standard_normal(STUDY.d)
    d = STUDY.d
    variance = (1 + np.eye(d)) / 2
    draws = rng.standard_normal((20_000, d, d))
    noise = (draws + draws.swapaxes(1, 2)) / 2
    assert evidence.quiet is not None
    for rule in evidence.quiet:
        share = np.sum(rule**2)
        along = np.einsum("ab,nab->n", rule, noise) / share
        noise -= np.multiply.outer((1 - np.sqrt(1 - share)) * along, rule)
    turned = posterior.basis.T @ noise @ posterior.basis @ theta
    second = np.outer(theta, theta)
    told = _spread(variance, second, facts.quiet)
    assert_allclose(told, np.cov(turned, rowvar=False), atol=0.05 * np.trace(told) / d)
    assert np.trace(told) < 0.9 * np.trace(_spread(variance, second, facts.quiet[:0]))


def test_triangular_noise_is_left_as_it_is() -> None:
    study = study_of(BINARY, release={"noise": "triangular"})
    evidence = released(study, 0)
    assert quieter(study, evidence, binary=True) is evidence


def test_responses_that_are_not_answers_say_nothing_of_the_intercept() -> None:
    table = rows_of(STUDY) | {"y": np.full(4000, 0.4)}
    release = simulate(STUDY, table, np.random.default_rng(3), holder="a")
    evidence = collect([release], allow_simulated=True).evidence
    freed = quieter(STUDY, evidence, binary=True)
    assert freed.grams[0, 0, 0] == evidence.grams[0, 0, 0]
    assert freed.quiet is not None
    assert len(freed.quiet) == len(level_places(STUDY))


def test_rare_answers_are_told_more_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """One release, whose answers are 4 % yes, with and without what is known."""
    rng = np.random.default_rng(4)
    table, x = drawn(BINARY, rng, 6000)
    table["y"] = (rng.random(len(x)) < 0.04) * 1.0
    release = simulate(STUDY, table, rng, holder="a")
    collection = collect([release], allow_simulated=True)
    known = fit(collection, family="logistic").sd()
    monkeypatch.setattr(families, "quieter", lambda _, evidence, **__: evidence)
    unknown = fit(collection, family="logistic").sd()
    assert np.all(known < 0.98 * unknown)
    assert_allclose(known, unknown, rtol=0.4)
