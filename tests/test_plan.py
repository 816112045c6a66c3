"""The planner's forecast against simulation, and its answer to "which epsilon?".

Covers `tacit.plan`, `tacit.imagined`.
"""

import base64
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import tacit
from tacit.cli.study import words as checked
from tacit.demo.hospitals import HOSPITALS, STUDY, patients
from tacit.errors import StudyError
from tacit.imagined import Guess, imagined_rows
from tacit.plan import RUNGS, _Plan, _Widths, epsilon_for, forecast, with_visits
from tacit.privacy.gaussian import EPSILON_RANGE
from tacit.simulation import simulate
from tacit.study import words
from tacit.study.visits import visit_mechanism


def study_of(**fields: object) -> tacit.Study:
    features = [
        {"name": "age", "range": [18, 100]},
        {"name": "bmi", "range": [15, 50]},
        {"name": "sex", "levels": ["f", "m"]},
    ]
    document = {
        "name": "plan",
        "epsilon": 1.0,
        "delta": 1e-6,
        "response": {"name": "days", "range": [0, 30]},
        "features": features,
    }
    return tacit.Study.from_document(document | fields)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_the_forecast_is_within_15_percent_of_simulation(epsilon, relation):
    """Ten simulations: widths vary by 2 to 5 %, so their mean is known to 1.5 %; seeds fixed."""
    study, rows = study_of(epsilon=epsilon, relation=relation), [8000, 3000]
    widths = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        releases = [
            simulate(study, imagined_rows(study, Guess(), rng, n)[0], rng, holder=str(n))
            for n in rows
        ]
        widths.append(
            np.diff(tacit.fit(tacit.collect(releases, allow_simulated=True)).interval(), axis=1)[
                :, 0
            ]
        )
    [found] = forecast(study, rows, [epsilon])
    assert_allclose(np.mean(widths, axis=0), found.widths, rtol=0.15)


@pytest.mark.parametrize("planned", [[], [2000, 1000]])
def test_widths_fall_with_epsilon_rows_and_holders(planned):
    """More of anything is never a wider interval; 1 % is the error of imagined rows' own form."""
    study = study_of(planned_rows=planned, visits=1)
    guess = Guess(fill=0.55)
    budgets = [0.05, 0.2, 0.5, 1.0, 2.0, 3.0, 10.0]
    by_epsilon = [each.widths for each in forecast(study, [2000, 1000], budgets, guess)]
    by_rows = [forecast(study, [n], [1.0], guess)[0].widths for n in (100, 500, 2000, 10_000)]
    by_holders = [
        forecast(study, [500] * j, [1.0], replace(guess, spread=0.0))[0].widths
        for j in (1, 2, 4, 8)
    ]
    for widths in (by_epsilon, by_rows, by_holders):
        assert np.all(np.diff(widths, axis=0) <= 0.01 * np.array(widths[:-1]))


def test_a_band_is_given_where_nothing_is_said_of_the_fill():
    [unsaid] = forecast(study_of(), [5000], [1.0])
    [said] = forecast(study_of(), [5000], [1.0], Guess(fill=0.5))
    assert np.all(unsaid.narrow <= unsaid.widths)
    assert np.all(unsaid.widths <= unsaid.wide)
    assert unsaid.wide[1] > 2 * unsaid.narrow[1]
    assert_allclose(said.narrow, said.wide)


def test_the_verdict_is_fits():
    [few, many] = (forecast(study_of(), [n], [0.5])[0] for n in (60, 200_000))
    assert "too little" in few.verdict
    assert many.verdict == ""


def test_the_demonstration_is_as_wide_as_planned():
    """The tutorial's data, at the defaults: median of realised over planned widths.

    Six simulations of five intervals; a realised width varies by about 5 %.
    """
    study = tacit.Study.from_toml(STUDY)
    rows = [count for _, count in HOSPITALS.values()]
    widths = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        releases = [simulate(study, patients(rng, n), rng, holder=str(n)) for n in rows]
        bounds = tacit.fit(tacit.collect(releases, allow_simulated=True)).interval()
        widths.append(bounds[:, 1] - bounds[:, 0])
    [planned] = forecast(study, rows, [1.0])
    realised = np.median(widths, axis=0)
    assert 0.8 < np.median(realised / planned.widths) < 1.25
    assert np.all(realised < planned.wide)


def test_the_share_of_privacy_falls_with_epsilon():
    shares = [
        found.privacy_share.mean() for found in forecast(study_of(), [20_000], [0.1, 1.0, 10.0])
    ]
    assert shares[0] > 0.9 > shares[1] > shares[2]


def test_the_wanted_width_is_met_just_so():
    epsilon = epsilon_for(study_of(), [10_000, 10_000], 0.05)
    [at] = forecast(study_of(), [10_000, 10_000], [epsilon])
    [below] = forecast(study_of(), [10_000, 10_000], [epsilon * 0.95])
    assert at.scaled_widths[1:].max() <= 0.05 < below.scaled_widths[1:].max()


def test_no_epsilon_makes_up_for_missing_rows():
    assert epsilon_for(study_of(), [100], 0.001) is None


def test_rows_are_needed():
    with pytest.raises(StudyError, match="rows must list"):
        forecast(study_of(), [], [1.0])


def test_a_secure_sum_is_forecast_as_one_release_with_the_noise_of_all_shares():
    keys = {name: letter * 43 + "=" for name, letter in zip("abcd", "ABCD", strict=True)}
    apart, summed = study_of(), study_of(secure_sum={"holders": keys, "least": 4, "colluding": 0})
    [alone] = forecast(apart, [8000], [1.0])
    [together] = forecast(summed, [2000] * 4, [1.0])
    assert_allclose(together.widths, alone.widths, rtol=1e-6)
    with pytest.raises(StudyError, match="rows must list 4 to 4 holders"):
        forecast(summed, [2000], [1.0])


@pytest.mark.parametrize(("family", "top", "rate"), [("logistic", 1, 0.1), ("poisson", 20, 3.0)])
def test_a_familys_forecast_is_within_15_percent_of_simulation(family, top, rate):
    """Ten simulations: widths vary by 2 to 5 %, so their mean is known to 1.5 %; seeds fixed."""
    study = study_of(response={"name": "days", "range": [0, top]})
    guess = Guess(r_squared=0.2, family=family, rate=rate)
    widths = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        table, beta = imagined_rows(study, guess, rng, 11_000)
        assert table["days"].mean() == pytest.approx(rate, rel=0.1)
        release = simulate(study, table, rng, holder="a")
        posterior = tacit.fit(tacit.collect([release], allow_simulated=True), family=family)
        widths.append(np.diff(posterior.interval(), axis=1)[:, 0])
    assert len(beta) == study.d
    [told] = forecast(study, [11_000], [1.0], guess)
    assert_allclose(np.mean(widths, axis=0), told.widths, rtol=0.15)


def test_a_rate_must_lie_within_the_range_and_goes_with_a_family():
    study = study_of(response={"name": "days", "range": [0, 1]})
    with pytest.raises(StudyError, match="rate must lie between 0 and 1"):
        forecast(study, [1000], [1.0], Guess(family="logistic", rate=1.0))
    with pytest.raises(StudyError, match="rate goes with a family"):
        Guess(rate=0.1)


@pytest.mark.parametrize("visits", [2, 6])
def test_several_visits_are_forecast_as_they_come_out(visits):
    """Medians over six runs within a quarter: seen on these seeds within 11 %."""
    study = with_visits(study_of(), [5000], visits)
    widths = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        table, _ = imagined_rows(study, Guess(), rng, 5000)
        release = simulate(study, table, rng, holder="a")
        posterior = tacit.fit(tacit.collect(release, allow_simulated=True))
        widths.append(np.diff(posterior.interval(), axis=1)[:, 0])
    [planned] = forecast(study, [5000], [study.epsilon])
    assert planned.visits == visits
    assert_allclose(np.median(widths, axis=0), planned.widths, rtol=0.25)


def ratio_of_visits(rows: list[int], epsilon: float, guess: Guess) -> float:
    """Median width that the rule's several visits are forecast to have, over that of one visit."""
    several = study_of(planned_rows=rows, epsilon=epsilon)
    assert several.visit_count > 1
    one = study_of(planned_rows=rows, epsilon=epsilon, visits=1)
    first, second = (_Plan(study, rows, guess)._alone(epsilon).user for study in (one, several))
    return float(np.median(second) / np.median(first))


@pytest.mark.parametrize(("rows", "epsilon"), [([600], 0.2), ([20_000], 1.0), ([5000] * 4, 1.0)])
def test_the_rule_takes_several_visits_where_they_are_forecast_to_help(rows, epsilon):
    """Values that lie within a third of their ranges, as on many public tables."""
    assert ratio_of_visits(rows, epsilon, Guess(fill=0.3)) < 1


@pytest.mark.parametrize(
    ("rows", "epsilon", "most"), [([600], 0.2, 0.5), ([20_000], 1.0, 1.0), ([5000] * 4, 1.0, 1.1)]
)
def test_visits_cost_little_where_values_fill_their_ranges(rows, epsilon, most):
    """One visit has nothing to find out there, and intervals hold what bounds may have cut.

    No study knows beforehand that its values do so: the rule takes visits all the same.
    """
    assert ratio_of_visits(rows, epsilon, Guess(fill=0.75, response_sd=0.22)) <= most


def test_the_rule_takes_one_visit_where_rows_are_very_many():
    study = study_of(planned_rows=[10**6], epsilon=10.0)
    assert study.visit_count == 1
    assert "below 1e-05, so that one visit tells as much" in words.visits(study)


def test_of_several_visits_no_figure_of_one_visit_is_told():
    study = study_of(planned_rows=[2000])
    last = visit_mechanism(study, study.visit_count, (study.epsilon, study.delta))
    told = checked(study)
    assert f"X'X on the diagonal      {last.noise.xtx_diagonal:.4g}" in told
    assert "noise multiplier" not in told
    assert words.shrinking(study).startswith("each question says")
    assert "noise multiplier" in checked(study_of())


def test_widths_of_visits_fall_with_epsilon_and_rows():
    """1 % is the error of imagined rows' own form."""
    study = with_visits(study_of(), [2000, 1000], 4)
    guess = Guess(fill=0.55)
    by_epsilon = [each.widths for each in forecast(study, [2000, 1000], [0.2, 1.0, 5.0], guess)]
    by_rows = [forecast(study, [n, n], [10.0], guess)[0].widths for n in (500, 2000, 10_000)]
    for widths in (by_epsilon, by_rows):
        assert np.all(np.diff(widths, axis=0) <= 0.01 * np.array(widths[:-1]))


def test_a_forecast_of_visits_has_a_band_and_a_secure_sum():
    keys = {f"h{k}": base64.b64encode(k.to_bytes(32, "big")).decode() for k in range(4)}
    agreed = {"holders": keys, "least": 4, "colluding": 0}
    rows = [3000] * 4
    guess = Guess(fill=0.55)
    [apart] = forecast(with_visits(study_of(), rows, 3), rows, [10.0], guess)
    [summed] = forecast(with_visits(study_of(secure_sum=agreed), rows, 3), rows, [10.0])
    [whole] = forecast(with_visits(study_of(), [12_000], 3), [12_000], [10.0], guess)
    assert np.all(summed.narrow < summed.wide)
    assert_allclose(summed.widths, whole.widths, rtol=0.02)
    assert np.all(summed.widths < apart.widths)


def test_holders_that_differ_widen_a_forecast_of_visits():
    rows = [5000, 5000, 5000]
    study = with_visits(study_of(), rows, 3)
    [alike] = forecast(study, rows, [10.0], Guess(fill=0.5, spread=0.0))
    [unlike] = forecast(study, rows, [10.0], Guess(fill=0.5, spread=0.1))
    assert np.all(unlike.widths > alike.widths)


def test_a_family_of_visits_is_forecast():
    response = {"name": "y", "range": [0, 20]}
    study = with_visits(study_of(response=response), [8000], 5)
    guess = Guess(fill=0.3, family="poisson", rate=2.0)
    [few, many] = forecast(study, [8000], [10.0, 100.0], guess)
    assert few.visits == 5
    assert np.all(many.widths < few.widths)


class Invented(_Plan):
    """A plan whose rungs have any widths."""

    def __init__(self, rungs: list[float]) -> None:
        super().__init__(study_of(), [1000], Guess())
        self.rungs = dict(zip(RUNGS, rungs, strict=True))

    def _alone(self, epsilon: float) -> _Widths:
        return _Widths(user=np.array([self.rungs[epsilon]]), scaled=np.ones(1))


@given(
    st.lists(st.floats(0.01, 10.0), min_size=len(RUNGS), max_size=len(RUNGS)),
    st.lists(st.floats(*EPSILON_RANGE), min_size=2, max_size=5),
)
def test_widths_fall_with_epsilon_whatever_the_rungs_are(rungs, epsilons):
    """Of any budgets, each asked for by itself; 1e-12 is rounding."""
    planned = [Invented(rungs).widths(epsilon).user[0] for epsilon in sorted(epsilons)]
    assert all(after <= before * (1 + 1e-12) for before, after in pairwise(planned))
    at_rungs = [Invented(rungs).widths(rung).user[0] for rung in RUNGS]
    assert at_rungs == [max(rungs[place:]) for place in range(len(RUNGS))]


def test_no_budget_is_said_to_bring_wider_intervals_than_a_smaller_one():
    """Where noise hides thirteen overlapping features, what is usual is narrower than what is told.

    A budget alone is then narrower than a larger one; forecasts, each made by itself, are not.
    """
    features = [{"name": f"x{k}", "range": [-1, 1]} for k in range(13)]
    study = study_of(features=features, planned_rows=[506])
    plan = _Plan(study, [506], Guess(fill=0.5))
    one, more = (plan._alone(epsilon).user[1:] for epsilon in (RUNGS[12], RUNGS[13]))
    assert np.all(more > one)
    alone = [forecast(study, [506], [epsilon], Guess(fill=0.5))[0] for epsilon in (1.0, 3.0)]
    assert np.all(alone[1].widths <= alone[0].widths)
    assert np.all(alone[0].widths[1:] >= more)


def test_imagined_rows_are_as_public_tables_are_in_the_middle():
    """20,000 rows of ten features: spread, place, tail and overlap within 10 to 15 % of that."""
    features = [{"name": f"x{k}", "range": [-1, 1]} for k in range(10)]
    table, _ = imagined_rows(study_of(features=features), Guess(), np.random.default_rng(0), 20_000)
    rows = np.array([table[f"x{k}"] for k in range(10)])
    assert_allclose(rows.std(axis=1), 0.55 / np.sqrt(3), rtol=0.1)
    assert_allclose(rows.mean(axis=1), -0.3, rtol=0.1)
    skews = np.mean((rows - rows.mean(axis=1, keepdims=True)) ** 3, axis=1) / rows.std(axis=1) ** 3
    assert_allclose(skews, 0.7, rtol=0.15)
    overlap = np.diag(np.linalg.inv(np.corrcoef(rows)))
    assert_allclose(overlap[1:-1], 6.6, rtol=0.1)
    days = (table["days"] - 15) / 15
    assert_allclose(days.std(), 0.25, rtol=0.1)
