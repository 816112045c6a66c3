"""Coefficients of formulas: those of least squares without noise, in the user's units.

Covers `tacit.study.expansion`, `tacit.study.terms`.
"""

import math

import numpy as np
import pyarrow as pa
import pytest
from formulas import FORMULAS, column, our_design, rows, study_of
from numpy.testing import assert_allclose

import tacit
from tacit.analyst.methods import method_named
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.posterior.units import user_units
from tacit.analyst.report import report
from tacit.simulation import exact, simulate
from tacit.study import Study
from tacit.study.transforms import FUNCTIONS


@pytest.mark.parametrize("formula", [formula for formula in FORMULAS if "exp" not in formula])
def test_without_noise_coefficients_are_those_of_least_squares(formula):
    """Exact statistics, a flat prior, no shrinking: the mean is `lm` on the raw columns.

    In the user's units, and to the grid's rounding.
    """
    study, frame = study_of(formula, release={"row_radius": 30.0}), rows(3, 4000)
    raw = np.column_stack([column(name, frame) for name in user_units(study).names])
    rng = np.random.default_rng(4)
    half = study.response.mapping[1]
    design = our_design(study, frame)
    centre = study.response.mapping[0] + half * design @ (
        rng.normal(size=study.d) * 0.15 / math.sqrt(study.d)
    )
    response = np.clip(centre + 0.05 * half * rng.normal(size=len(frame)), *sorted(_image(study)))
    frame["days"] = (
        response
        if study.response.function is None
        else FUNCTIONS[study.response.function].inverse(response)
    )
    evidence = exact(study, pa.Table.from_pandas(frame, preserve_index=False))
    prior = tacit.Prior(
        np.zeros(study.d), 1e10 * np.eye(study.d), 2.0, 0.1, np.eye(study.d), study.d + 2.0
    )
    posterior = Posterior(
        study, "non-private", method_named("non-private").fit(evidence, prior, tacit.Settings()), ()
    )
    scale = np.abs(raw).max(axis=0)
    expected = np.linalg.lstsq(raw / scale, response)[0] / scale
    found = posterior.mean()
    fitted = raw @ expected
    assert_allclose(raw @ found, fitted, atol=2e-4 * half)
    assert_allclose(found * scale, expected * scale, atol=2e-3 * half * np.linalg.cond(raw / scale))
    assert_allclose(found, expected, rtol=0.02, atol=1e-3 * np.abs(posterior.sd()).max())


def _image(study):
    low, high = study.response.range
    return (
        (low, high)
        if study.response.function is None
        else tuple(FUNCTIONS[study.response.function].forward(np.array([low, high])))
    )


def test_private_coefficients_cover_those_of_the_raw_formula():
    """Three holders at epsilon 2: each raw coefficient lies within 4 posterior sds.

    A calibrated posterior misses that once in 2,500.
    """
    study = study_of("days ~ age * sex + poly(bmi, 2)", epsilon=2.0)
    truth = {
        "(intercept)": 4.0,
        "age": 0.1,
        "sex[male]": 3.0,
        "bmi": 0.4,
        "bmi^2": -0.005,
        "age:sex[male]": -0.05,
    }
    releases = []
    for seed in range(3):
        frame = rows(seed, 20_000)
        frame["days"] = sum(value * column(name, frame) for name, value in truth.items())
        frame["days"] += np.random.default_rng(seed).normal(size=len(frame))
        releases.append(simulate(study, frame, np.random.default_rng(seed), holder=str(seed)))
    posterior = tacit.fit(tacit.collect(releases, allow_simulated=True))
    assert posterior.names() == ("(intercept)", "age", "sex[male]", "bmi", "bmi^2", "age:sex[male]")
    assert (
        np.abs(posterior.mean() - [truth[name] for name in posterior.names()]) / posterior.sd()
    ).max() < 4
    assert posterior.sd()[1] < 0.1


def test_predictions_and_reports_of_a_formula():
    """Both follow the encoded columns, in the units of log(days)."""
    study, frame = study_of("log(days) ~ age * sex + poly(bmi, 2)", epsilon=5.0), rows(1, 20_000)
    posterior = tacit.fit(
        tacit.collect(
            [simulate(study, frame, np.random.default_rng(0), holder="north")], allow_simulated=True
        )
    )
    raw = np.column_stack([column(name, frame[:5]) for name in posterior.names()])
    found = posterior.predict(frame[:5].drop(columns="days"))
    assert_allclose(found["mean"].to_numpy(), raw @ posterior.mean(), rtol=1e-6)
    assert "of log(days)" in str(posterior.summary())
    assert len(posterior.units("contrast").names) == study.d - 1
    assert "How the logarithm of days goes with age, sex and bmi" in report(posterior)


def test_a_study_by_hand_says_what_centring_implies():
    """A centred product without its main effects: what it adds to them is named.

    Predictions in either units agree.
    """
    document = study_of("days ~ age + sex + age:bmi").document() | {
        "terms": [{"product": ["age", "bmi"]}, {"product": ["sex"]}]
    }
    study = Study.from_document(document)
    units = user_units(study)
    assert units.names == (
        "(age, implied)",
        "(bmi, implied)",
        "(intercept)",
        "age:bmi",
        "sex[male]",
    )
    frame, theta = rows(5), np.array([0.1, 0.2, 0.3])
    raw = np.column_stack(
        [
            column(
                name.strip("()").removesuffix(", implied").replace("intercept", "(intercept)"),
                frame,
            )
            for name in units.names
        ]
    )
    assert_allclose(
        raw @ (units.matrix @ theta + units.offset), 15.5 + 14.5 * our_design(study, frame) @ theta
    )
