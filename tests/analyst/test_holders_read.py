"""What is read off a posterior about holders: tables, sentences, predictions, files, and
refusals.

Covers `tacit.analyst.posterior.holders`, `tacit.analyst.report.differing`.
"""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from analyst.stays import DOCUMENT
from numpy.testing import assert_allclose

import tacit
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.report import report
from tacit.errors import MethodError, PosteriorError
from tacit.simulation import simulate

STUDY = tacit.Study.from_document(DOCUMENT | {"epsilon": 3.0})
SLOPES = {"north": 0.02, "south": 0.12, "east": 0.05, "west": -0.04, "coast": 0.09}


def release_of(holder: str, slope: float, seed: int, *, teaching: float = 0.0) -> tacit.Release:
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 100, 8000)
    sex = rng.choice(["f", "m"], 8000)
    days = 12 + slope * (age - 60) + 1.5 * (sex == "m") + teaching + 2 * rng.normal(size=8000)
    return simulate(STUDY, {"age": age, "sex": sex, "days": days}, rng, holder=holder)


@cache
def releases(*, alike: bool = False) -> tuple[tacit.Release, ...]:
    slopes = {name: 0.05 if alike else slope for name, slope in SLOPES.items()}
    return tuple(release_of(name, slope, k) for k, (name, slope) in enumerate(slopes.items()))


def fitted(holders: str = "differ", *, alike: bool = False, count: int = 5) -> Posterior:
    collection = tacit.collect(releases(alike=alike)[:count], allow_simulated=True)
    return tacit.fit(collection, holders=holders)


@cache
def posterior() -> Posterior:
    return fitted()


def test_the_slope_that_differs_is_named_and_no_budget_is_asked_for():
    summary = posterior().summary()
    assert posterior().holders().differ == ("age",)
    assert "Holders differ in age" in summary.caveat
    assert "more holders, not more rows or epsilon" in summary.caveat
    assert "larger epsilon would help" not in str(summary)
    assert str(summary).splitlines()[-1] == summary.caveat
    assert "between holders" in str(summary)


def test_opposed_slopes_are_not_called_too_little_evidence():
    """The review's case: each holder knows its slope well, and together they say nothing."""
    opposed = [
        release_of(name, slope, 20 + k)
        for k, (name, slope) in enumerate(zip("abcd", (0.09, -0.09, 0.084, -0.08), strict=True))
    ]
    found = tacit.fit(tacit.collect(opposed, allow_simulated=True))
    caveat = found.summary().caveat
    assert "too little" not in caveat
    assert "epsilon would help" not in caveat
    assert "Holders differ in age" in caveat


def test_holders_that_are_alike_are_said_to_be():
    summary = fitted(alike=True).summary()
    assert summary.caveat == ""
    assert "no sign that holders differ" in str(summary)


def test_the_spread_is_in_the_units_that_were_asked_for():
    """A slope's sd is the scaled one, times half the response's range over half the feature's."""
    user, scaled = (posterior().holders(units=units).between[1] for units in ("user", "scaled"))
    assert user.name == scaled.name == "age"
    assert_allclose(user.sd, scaled.sd * 15 / 40)
    assert user.low < np.std(list(SLOPES.values()), ddof=1) < user.high
    assert user.inconsistency == pytest.approx(scaled.inconsistency)
    assert user.inconsistency > 0.8
    assert user.new[0] < user.half[0] < user.half[1] < user.new[1]
    assert "half of them lie between" in user.sentence


def test_an_interval_of_the_spread_holds_its_mean_where_nearly_all_says_that_none_differ():
    outcome = posterior().outcome
    spreads = np.zeros_like(outcome.differing.spreads)
    spreads[0] = 1.0
    weights = np.full(len(spreads), 0.98 / (len(spreads) - 1))
    weights[0] = 0.02  # beyond the upper quantile, which is 0
    outcome = replace(
        outcome, weights=weights, differing=replace(outcome.differing, spreads=spreads)
    )
    for one in replace(posterior(), outcome=outcome).holders(units="scaled").between:
        assert one.sd == pytest.approx(0.02)
        assert one.low <= one.sd <= one.high


def test_each_holder_has_its_own_line():
    own = {one.holder: one for one in posterior().holders().own}
    assert list(own) == list(SLOPES)
    for name, slope in SLOPES.items():
        assert own[name].low[1] < slope < own[name].high[1]
    table = posterior().holders().table().splitlines()
    assert table[1].split()[0] == "north"
    assert len(table) == 6


def test_json_holds_everything():
    facts = json.loads(json.dumps(posterior().summary().to_dict()))["holders"]
    assert facts["differ"] == ["age"]
    assert [one["name"] for one in facts["between"]] == ["(intercept)", "age", "sex[m]"]
    assert {"sd", "low", "high", "inconsistency", "half", "new", "sentence"} <= set(
        facts["between"][0]
    )
    assert [one["holder"] for one in facts["own"]] == list(SLOPES)


def test_a_file_keeps_what_is_known_of_holders(tmp_path):
    posterior().save(tmp_path / "p.parquet")
    again = Posterior.load(tmp_path / "p.parquet")
    assert again.summary().to_dict() == posterior().summary().to_dict()


def test_predictions_for_a_known_holder_a_new_one_and_the_average():
    row = {"age": [100.0], "sex": ["f"]}
    means, widths = {}, {}
    for holder in (None, "south", "west", "new"):
        table = posterior().predict(row, holder=holder).arrow.to_pylist()[0]
        means[holder] = table["mean"]
        widths[holder] = table["mean_high"] - table["mean_low"]
    assert_allclose(means["south"], 12 + 40 * 0.12, atol=0.3)
    assert_allclose(means["west"], 12 - 40 * 0.04, atol=0.3)
    assert means["new"] == pytest.approx(means[None])
    assert widths["south"] < widths[None] < widths["new"]


def test_a_holder_nobody_knows_is_refused():
    with pytest.raises(PosteriorError, match="holder must be 'new' or one of north, south"):
        posterior().predict({"age": [50.0], "sex": ["f"]}, holder="nowhere")
    with pytest.raises(PosteriorError, match="alike"):
        fitted("common").predict({"age": [50.0], "sex": ["f"]}, holder="south")


def test_separate_fits_borrow_nothing():
    apart = fitted("separate")
    alone = tacit.fit(tacit.collect(releases()[1:2], allow_simulated=True))
    own = apart.holders().own[1]
    assert_allclose(own.mean, alone.mean(), rtol=1e-9)
    assert_allclose(apart.mean(), np.mean([one.mean for one in apart.holders().own], axis=0))
    assert apart.holders().between == ()
    assert apart.summary().caveat == ""
    assert "--holders separate" in apart.options
    with pytest.raises(PosteriorError, match="a new one cannot be told"):
        apart.predict({"age": [50.0], "sex": ["f"]}, holder="new")


def test_common_holders_have_no_spread():
    common = fitted("common")
    assert common.holders() is None
    assert common.summary().to_dict()["holders"] is None
    assert (common.sd() < posterior().sd())[:2].all()
    assert "taken to be alike" in common.summary().caveat


def test_two_holders_are_told_that_they_are_too_few():
    assert "Two holders are too few" in fitted(count=2).summary().caveat


def test_other_methods_take_holders_to_be_alike():
    collection = tacit.collect(releases(), allow_simulated=True)
    with pytest.raises(MethodError, match="exact-fixed-s takes holders to be alike"):
        tacit.fit(collection, "exact-fixed-s", holders="separate")


def test_the_report_says_it_at_its_head_and_holder_by_holder():
    page = report(posterior())
    head, _, rest = page.partition('<section id="found"')
    assert "Holders differ in age" in head
    assert "How holders differ" in head
    section = rest[rest.index('id="differ"') : rest.index('id="privacy"')]
    assert "age: 100 against 20 differs between holders: half of them lie between" in section
    assert all(f">{name}<" in section for name in SLOPES)
    assert "a new holder" in section
    assert "only more holders help much" in rest
    assert "twice the holders" in rest


def test_an_outlying_holder_is_named_in_the_summary_and_the_report():
    wrong = release_of("wrong", 0.05, 99, teaching=12.0)
    collection = tacit.collect([*releases(alike=True), wrong], allow_simulated=True)
    found = tacit.fit(collection)
    assert found.holders().outlying == ("wrong",)
    assert "left out of the average: wrong." in found.summary().caveat
    assert "left out of the average: wrong." in report(found)
    assert_allclose(found.mean(), fitted(alike=True).mean(), atol=2 * fitted(alike=True).sd().max())


def test_a_plot_by_holder():
    axes = posterior().plot_holders("age")
    assert [label.get_text() for label in axes.get_yticklabels()] == sorted(SLOPES, key=SLOPES.get)
    with pytest.raises(PosteriorError, match="name must be one of age"):
        posterior().plot_holders("height")
    with pytest.raises(PosteriorError, match="no spread of holders"):
        fitted("common").plot_holders("age")
