"""The planner's forecast against simulation, and its answer to "which epsilon?".

Covers `tacit.plan`.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tacit
from tacit.errors import StudyError
from tacit.plan import Guess, epsilon_for, forecast, imagined_rows
from tacit.simulation import simulate


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


def test_two_stages_are_forecast_at_what_the_first_leaves():
    study = study_of(scales_share=0.2)
    [found] = forecast(study, [8000], [1.0])
    [second] = forecast(study_of(), [8000], [study.stages[1]])
    assert_allclose(found.widths, second.widths)
