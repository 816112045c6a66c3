"""Sentences on single columns, and what the coefficients are coefficients of.

Covers `tacit.analyst.cautions`, `tacit.analyst.posterior.estimand`,
`tacit.analyst.methods.noise_aware.verdict`.
"""

import numpy as np
import pytest

import tacit
from tacit.analyst.cautions import of_aside
from tacit.analyst.posterior.differing import Differing
from tacit.analyst.posterior.laws import Mixture
from tacit.analyst.posterior.posterior import Posterior
from tacit.simulation import simulate


def study_of(*, wide: float = 1.0, epsilon: float = 3.0, **fields: object) -> tacit.Study:
    """Two features in [−1, 1]; the second's public range is `wide` times that."""
    features = [{"name": "age", "range": [-1, 1]}, {"name": "dose", "range": [-wide, wide]}]
    document = {"name": "cautions", "epsilon": epsilon, "delta": 1e-6, "features": features}
    return tacit.Study.from_document(
        document | {"response": {"name": "y", "range": [-2, 2]}} | fields
    )


def table(rng: np.random.Generator, rows: int, dose: float | None = None) -> dict[str, np.ndarray]:
    age = rng.uniform(-1, 1, rows)
    dosed = rng.uniform(-1, 1, rows) if dose is None else np.full(rows, dose)
    return {"age": age, "dose": dosed, "y": 0.5 * age + 0.5 * dosed + 0.3 * rng.normal(size=rows)}


def fitted(
    study: tacit.Study, *tables: dict[str, np.ndarray], holders: str = "differ"
) -> Posterior:
    rng = np.random.default_rng(0)
    releases = [simulate(study, rows, rng, holder=f"h{k}") for k, rows in enumerate(tables)]
    return tacit.fit(tacit.collect(releases, allow_simulated=True), holders=holders)


def test_a_good_study_has_no_caution():
    posterior = fitted(study_of(), table(np.random.default_rng(1), 20_000))
    assert posterior.summary().caveat == ""


def test_a_feature_whose_spread_the_noise_hides_is_named():
    posterior = fitted(study_of(wide=100.0), table(np.random.default_rng(2), 20_000))
    caveat = posterior.summary().caveat
    assert "hides the spread of 'dose'" in caveat
    assert "typical" in caveat
    assert "'age'" not in caveat
    assert posterior.summary().to_dict()["caveat"] == caveat


def test_a_column_constant_within_each_holder_is_named():
    rng = np.random.default_rng(3)
    tables = [table(rng, 10_000, dose) for dose in (-0.9, 0.1, 0.8)]
    caveat = fitted(study_of(), *tables).summary().caveat
    assert "Hardly any variation within holders is seen of 'dose'" in caveat
    assert "within holders" not in fitted(study_of(), table(rng, 10_000)).summary().caveat


def test_an_interval_that_is_the_priors_is_named():
    """A third feature equal to the first but for a little: their contrast is hardly told."""
    features = [{"name": name, "range": [-1, 1]} for name in ("age", "dose", "copy")]
    study = study_of(epsilon=0.3, features=features)
    rng = np.random.default_rng(4)
    rows = table(rng, 8_000)
    rows["copy"] = np.clip(rows["age"] + 0.01 * rng.normal(size=8_000), -1, 1)
    caveat = fitted(study, rows).summary().caveat
    assert "beforehand" in caveat
    assert "'dose'" not in caveat


@pytest.mark.parametrize("method", ["exact-fixed-s", "fixed-s-fast"])
def test_cautions_hold_for_every_method(method):
    study = study_of(wide=100.0)
    rng = np.random.default_rng(2)
    release = simulate(study, table(rng, 20_000), rng, holder="h")
    posterior = tacit.fit(tacit.collect([release], allow_simulated=True), method)
    assert "hides the spread of 'dose'" in posterior.summary().caveat


def test_the_estimand_is_told_in_words():
    rng = np.random.default_rng(5)
    rows = table(rng, 20_000)
    shrunk = fitted(study_of(release={"row_radius": 1.0}), rows).summary()
    assert "count for less" in shrunk.estimand
    x = np.column_stack([np.ones(20_000), rows["age"], rows["dose"]])
    weight = float(np.mean(1 / np.sum(x**2, axis=1)))
    assert f"on average {weight:.2g} of" in shrunk.estimand
    whole = fitted(study_of(release={"row_radius": 5.0}), rows).summary()
    assert whole.estimand.endswith("rows as they are.")
    assert whole.to_dict()["estimand"] in str(whole)
    bare = fitted(study_of(intercept=False), rows).summary()
    assert "not told without an intercept" in bare.estimand
    alone = fitted(study_of(release={"row_radius": 1.0}), rows, rows, holders="separate")
    assert "how many is not told. Where" in alone.summary().estimand


def test_a_study_too_small_to_tell_says_so_and_one_with_nothing_to_find_does_not():
    rng = np.random.default_rng(6)
    few = fitted(study_of(epsilon=0.3), table(rng, 100)).summary()
    assert "too little to learn most coefficients" in few.caveat
    nothing = table(rng, 20_000) | {"y": 0.3 * rng.normal(size=20_000)}
    assert "too little" not in fitted(study_of(), nothing).summary().caveat


def test_where_rows_are_few_a_larger_epsilon_is_not_advised():
    """Noise is next to none at ε = 100; with it, the same rows may have more of either."""
    names = [f"x{k}" for k in range(15)]
    features = [{"name": name, "range": [-1, 1]} for name in names]
    rng = np.random.default_rng(9)
    rows = {name: rng.uniform(-1, 1, 24) for name in (*names, "y")}
    few, noisy = (
        fitted(study_of(epsilon=epsilon, features=features), rows).summary().caveat
        for epsilon in (100.0, 1.0)
    )
    assert "rows are few for so many columns" in few
    assert "a larger epsilon would help" not in few
    assert "more rows or a larger epsilon would help" in noisy


def test_who_has_visits_is_not_told_to_have_visits():
    """A range 10,000 times too wide hides a column from several visits, too."""
    study = study_of(wide=10_000.0, planned_rows=[4000], visits=3)
    caveat = fitted(study, table(np.random.default_rng(6), 4000)).summary().caveat
    assert "hides the spread of 'dose', from several visits too" in caveat
    assert "planned_rows" not in caveat


@pytest.mark.parametrize("intercept", [True, False])
def test_the_line_that_visits_tell_is_told_in_words(intercept):
    study = study_of(planned_rows=[4000], visits=3, intercept=intercept)
    estimand = fitted(study, table(np.random.default_rng(7), 4000)).summary().estimand
    assert "beyond a visit's bound, count for less" in estimand
    assert "encoded rows longer than" not in estimand
    assert "average 1 of" not in estimand
    assert estimand.endswith("rows as they are may lie from it.")


def test_what_the_last_offset_explains_is_not_too_little():
    """Six columns that go together tell the response well, though a correction adds little."""
    names = [f"x{k}" for k in range(6)]
    features = [{"name": name, "range": [-1, 1]} for name in names]
    study = study_of(epsilon=2.0, features=features, planned_rows=[400], visits=6)
    rng = np.random.default_rng(8)
    common = rng.uniform(-1, 1, 400)
    rows = {name: np.clip(0.7 * common + 0.3 * rng.uniform(-1, 1, 400), -1, 1) for name in names}
    posterior = fitted(study, rows | {"y": 1.2 * common + 0.15 * rng.normal(size=400)})
    assert posterior.explained().low > 0.5
    assert "too little" not in posterior.summary().caveat


@pytest.mark.parametrize(
    ("aside", "constant", "said"), [((2,), True, True), ((), True, False), ((2,), False, False)]
)
def test_what_rows_of_a_holder_left_out_do_not_tell_is_said(aside, constant, said):
    differing = Differing(
        spreads=np.zeros((1, 2)),
        locations=np.zeros((4, 2)),
        covariances=np.zeros((4, 2, 2)),
        within=np.eye(2),
        ratios=np.ones(4),
        told=np.ones(2, dtype=bool),
        constant=np.array([False, constant]),
        outlying=aside,
    )
    outcome = Mixture(
        weights=np.ones(1),
        locations=np.zeros((1, 2)),
        covariances=np.eye(2)[None],
        noise_variances=np.ones(1),
        differing=differing,
    )
    sentences = of_aside(outcome, ("(intercept)", "teaching"), ["a", "b", "c", "d"])
    assert [("'c'" in text and "'teaching'" in text) for text in sentences] == [True] * said
