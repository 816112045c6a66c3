"""The planner's forecast against simulation, and its answer to "which epsilon?".

Covers `tacit.plan`, `tacit.foreseen`, `tacit.imagined`.
"""

import base64
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tacit
from tacit.analyst.collection import Collection
from tacit.analyst.posterior.outlook import expected, widths
from tacit.cli.study import words as checked
from tacit.demo.hospitals import HOSPITALS, STUDY, patients
from tacit.errors import StudyError
from tacit.foreseen import IMAGINED_ROWS, silent
from tacit.holder.places import PLACES
from tacit.holder.statistics import statistics_of
from tacit.holder.tally import Tally, total_of
from tacit.holder.visits import mapped
from tacit.imagined import Guess, imagined_rows
from tacit.plan import Plan, epsilon_for, forecast, planned_for
from tacit.release.question import Question
from tacit.rows.table import table_of
from tacit.simulation import simulate, talk
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


def test_rows_that_are_asked_for_take_the_place_of_planned_ones():
    """The form and the visits of a plan are those of a study that plans these rows."""
    planned, asked = (study_of(planned_rows=rows) for rows in ([50_000], [2000, 1000]))
    [ours] = forecast(planned, [2000, 1000], [1.0], Guess(fill=0.5))
    [theirs] = forecast(asked, [2000, 1000], [1.0], Guess(fill=0.5))
    assert (ours.visits, planned.visit_count) == (4, 10)
    assert_allclose(ours.widths, theirs.widths)
    [unplanned] = forecast(study_of(), [2000, 1000], [1.0], Guess(fill=0.5))
    assert unplanned.visits == 1


def of_several(study: tacit.Study, rows: list[int], guess: Guess) -> np.ndarray:
    """Widths where each holder's own releases are imagined, and its own noise is stated."""
    table, _ = imagined_rows(study, guess, np.random.default_rng(0), IMAGINED_ROWS)

    def read(holder: int, question: Question | None) -> Any:
        tally: Tally[Any] = PLACES if question is None else mapped(question)
        numbers = tally.to_numbers(total_of(tally, study, table))
        return tally.from_numbers(study, [each * rows[holder] // IMAGINED_ROWS for each in numbers])

    if study.visit_count == 1:
        gram = statistics_of(study, table_of(table, study).batches()).floats() / IMAGINED_ROWS
        return widths(expected(study, rows, gram, [1.0] * len(rows)), 0.9, "user")
    releases = tuple(talk(study, len(rows), read, silent))
    return widths(tacit.fit(Collection(study=study, releases=releases)), 0.9, "user")


@pytest.mark.parametrize("visits", [1, 4])
@pytest.mark.parametrize(
    ("rows", "off"),
    [([2000] * 4, 0.08), ([8000, 1000], 0.08), ([300] * 10, 0.08), ([5000, 500, 50], 0.2)],
)
def test_one_holder_with_all_rows_and_less_budget_stands_for_several(rows, off, visits):
    """No noise is drawn: within 6 % was seen, and 15 % where one has a hundredth of the rows."""
    study = planned_for(study_of(), rows, visits)
    [plan] = forecast(study, rows, [1.0], Guess(fill=0.55))
    assert_allclose(plan.widths, of_several(study, rows, Guess(fill=0.55)), rtol=off)


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


def test_what_is_imagined_is_told_for_a_progress_bar_and_once():
    """Two rungs from two sides, what is needed above, and a band; a second budget finds them."""
    told: list[None] = []
    plan = Plan(study_of(), [5000], Guess(), lambda: told.append(None))
    plan.forecast(1.0)
    assert 6 <= len(told) <= 12
    before = len(told)
    plan.forecast(1.01)
    assert len(told) == before + 2  # the band's two ends


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
    study = planned_for(study_of(), [5000], visits)
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
    first, second = (forecast(study, rows, [epsilon], guess)[0].widths for study in (one, several))
    return float(np.median(second) / np.median(first))


@pytest.mark.parametrize(("rows", "epsilon"), [([600], 0.2), ([20_000], 1.0), ([5000] * 4, 1.0)])
def test_the_rule_takes_several_visits_where_they_are_forecast_to_help(rows, epsilon):
    """Values that lie within a third of their ranges, as on many public tables."""
    assert ratio_of_visits(rows, epsilon, Guess(fill=0.3)) < 1


@pytest.mark.parametrize(
    ("rows", "epsilon", "most"), [([600], 0.2, 0.5), ([20_000], 1.0, 1.05), ([5000] * 4, 1.0, 1.22)]
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


def test_a_forecast_of_visits_has_a_band_and_a_secure_sum():
    keys = {f"h{k}": base64.b64encode(k.to_bytes(32, "big")).decode() for k in range(4)}
    agreed = {"holders": keys, "least": 4, "colluding": 0}
    rows = [3000] * 4
    guess = Guess(fill=0.55)
    [apart] = forecast(planned_for(study_of(), rows, 3), rows, [10.0], guess)
    [summed] = forecast(planned_for(study_of(secure_sum=agreed), rows, 3), rows, [10.0])
    [whole] = forecast(planned_for(study_of(), [12_000], 3), [12_000], [10.0], guess)
    assert np.all(summed.narrow < summed.wide)
    assert_allclose(summed.widths, whole.widths, rtol=0.02)
    assert np.all(summed.widths < apart.widths)


@pytest.mark.parametrize("visits", [1, 3])
def test_holders_that_differ_widen_a_forecast_and_are_no_noise(visits):
    """Of very many rows the average of J holders that differ by τ has the variance τ²/J."""
    rows = [5000, 5000, 5000]
    study = planned_for(study_of(), rows, visits)
    [alike] = forecast(study, rows, [10.0], Guess(fill=0.5, spread=0.0))
    [unlike] = forecast(study, rows, [10.0], Guess(fill=0.5, spread=0.1))
    assert np.all(unlike.widths > alike.widths)
    assert np.all(unlike.privacy_share < alike.privacy_share)
    [many] = forecast(study, [10**8] * 4, [10.0], Guess(fill=0.5, spread=0.1))
    assert_allclose(many.scaled_widths, 2 * 1.645 * 0.1 / 2, rtol=0.01)
    assert np.all(many.privacy_share < 0.01)


def test_a_family_of_visits_is_forecast():
    response = {"name": "y", "range": [0, 20]}
    study = planned_for(study_of(response=response), [8000], 5)
    guess = Guess(fill=0.3, family="poisson", rate=2.0)
    [few, many] = forecast(study, [8000], [10.0, 100.0], guess)
    assert few.visits == 5
    assert np.all(many.widths < few.widths)


def test_no_budget_is_said_to_bring_wider_intervals_than_a_smaller_one():
    """Where noise hides thirteen overlapping features, what is usual is narrower than what is told.

    A budget alone is then narrower than a larger one; forecasts, each made by itself, are not.
    """
    features = [{"name": f"x{k}", "range": [-1, 1]} for k in range(13)]
    study = study_of(features=features, planned_rows=[506])
    plan = Plan(study, [506], Guess(fill=0.5))
    few, more = (plan._look(506, epsilon)[1:14] for epsilon in (1.0, 1.78))
    assert np.all(more > few)
    alone = [forecast(study, [506], [epsilon], Guess(fill=0.5))[0] for epsilon in (1.0, 1.78)]
    assert np.all(alone[1].widths <= alone[0].widths)
    assert np.all(alone[0].widths[1:] > few)


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
    assert_allclose(days.std(), 0.28, rtol=0.1)


def test_without_an_intercept_imagined_rows_lie_about_zero():
    """As they do in public tables less their means, where responses fill less of a range, too."""
    features = [{"name": f"x{k}", "range": [-1, 1]} for k in range(3)]
    response = {"name": "y", "range": [-1, 1]}
    spreads = []
    for intercept in (True, False):
        study = study_of(features=features, response=response, intercept=intercept)
        table, _ = imagined_rows(study, Guess(), np.random.default_rng(0), 20_000)
        spreads.append(table["y"].std())
    rows = np.array([table[f"x{k}"] for k in range(3)])
    assert_allclose(rows.mean(axis=1), 0.0, atol=0.01)
    assert_allclose(rows.std(axis=1), 0.55 / np.sqrt(3), rtol=0.1)
    assert_allclose(spreads, [0.28, 0.22], rtol=0.03)


def test_a_feature_of_0_to_1_is_planned_as_answers():
    """Unless a fill is stated; its slope is known far better than that of a number would be."""
    features = [{"name": "smokes", "range": [0, 1]}, {"name": "bmi", "range": [15, 50]}]
    study = study_of(features=features)
    table, _ = imagined_rows(study, Guess(), np.random.default_rng(0), 20_000)
    assert set(table["smokes"]) == {0.0, 1.0}
    assert table["smokes"].mean() == pytest.approx(0.2, abs=0.02)
    [answers] = forecast(study, [5000], [1.0])
    [number] = forecast(study, [5000], [1.0], Guess(fill=0.55))
    assert answers.widths[1] < 0.6 * number.widths[1]
    assert answers.wide[1] > number.widths[1]  # should it be a share after all
