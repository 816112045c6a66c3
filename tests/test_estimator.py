"""The scikit-learn face: its own checks, what a fit spends, predictions that know their error.

Covers `tacit.estimator`, `tacit.private_estimator`, `tacit.scikit`, `tacit.budget`.
"""

import copy
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import AdaBoostRegressor, BaggingRegressor
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.linear_model import RANSACRegressor
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator

import tacit
from tacit.errors import BudgetError, PriorError, StudyError
from tacit.estimator import PrivateBayesianRegression
from tacit.privacy.gaussian import compose, mu_of
from tacit.private_estimator import PrivacyWarning
from tacit.simulation import simulate

DELTA = 1e-6


def rows(seed=0, count=5000):
    """Two features, y = 3 + 0.2·age − 0.1·bmi + N(0, 1)."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.uniform(18, 100, count), "bmi": rng.uniform(10, 60, count)})
    return frame, 3 + 0.2 * frame["age"] - 0.1 * frame["bmi"] + rng.normal(size=count)


def seeded(seed):
    return np.random.default_rng(seed)


RANGES = {"age": (18, 100), "bmi": (10, 60)}


def estimator(**fields):
    return PrivateBayesianRegression(**{"ranges": RANGES, "response_range": (-10, 30)} | fields)


# Scikit-learn's own.


def name_of(check):
    """Of a check, which may be a partial function."""
    return getattr(check, "func", check).__name__


WIDE = {"ranges": (-1e3, 1e3), "response_range": (-1e3, 1e3)}


class Seeded(PrivateBayesianRegression):
    """The same with a seed, as only a test may have it: two fits can be compared."""

    def __init__(
        self,
        ranges=None,
        response_range=None,
        *,
        fit_intercept=True,
        relation="replace-one",
        random_state=None,
    ):
        super().__init__(
            ranges=ranges,
            response_range=response_range,
            fit_intercept=fit_intercept,
            relation=relation,
        )
        self.random_state = random_state

    def fit(self, X, y):  # noqa: N803
        return self.simulate(X, y, np.random.default_rng(self.random_state))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = False
        return tags


CHECKED = [
    PrivateBayesianRegression(**WIDE),
    Seeded(**WIDE),
    Seeded(**WIDE, fit_intercept=False, relation="add-remove"),
]
COMPARE_FITS = {
    "check_fit_idempotent",
    "check_pipeline_consistency",
    "check_regressor_data_not_an_array",
    "check_regressors_int",
    "check_supervised_y_2d",
}
"""Checks of what two fits share, which fresh noise keeps apart: for the seeded estimator alone."""
CHECKS = [
    (estimator, check)
    for one in CHECKED
    for estimator, check in estimator_checks_generator(one)
    if isinstance(one, Seeded) or name_of(check) not in COMPARE_FITS
]
ARRAY_API = "check_array_api_input"
"""The one check left out: it runs only under a switch of SciPy's, and the estimator does not claim
what it checks."""


@pytest.mark.filterwarnings("ignore::tacit.private_estimator.PrivacyWarning")
@pytest.mark.parametrize(
    ("estimator", "check"), [pair for pair in CHECKS if name_of(pair[1]) != ARRAY_API]
)
def test_scikit_learns_checks(estimator, check):
    """Wide ranges, because the checks bring their own data; none of them is expected to fail."""
    check(estimator)


# Estimates.


def test_at_much_budget_the_fit_is_least_squares():
    frame, y = rows(count=50_000)
    found = estimator(epsilon=100.0, delta=0.1).simulate(frame, y, seeded(0))
    raw = np.column_stack([np.ones(len(frame)), frame])
    expected = np.linalg.lstsq(raw, y)[0]
    assert_allclose(
        [found.intercept_, *found.coef_], expected, atol=5 * found.posterior_.sd().max(), rtol=0.02
    )
    assert_allclose(found.coef_, [0.2, -0.1], atol=0.01)
    assert_allclose(found.sigma_, 1.0, rtol=0.05)
    assert_array_equal(found.feature_names_in_, ["age", "bmi"])
    assert (found.n_features_in_, found.simulated_) == (2, True)


def test_without_intercept_the_model_goes_through_the_origin():
    frame, y = rows(count=50_000)
    unfitted = estimator(epsilon=100.0, delta=0.1, fit_intercept=False)
    found = unfitted.simulate(frame, y - 3, seeded(0))
    assert found.intercept_ == 0.0
    assert_allclose(found.coef_, np.linalg.lstsq(frame.to_numpy(), y - 3)[0], rtol=0.02)
    assert_allclose(found.predict(frame), frame.to_numpy() @ found.coef_, rtol=1e-9)


def test_predictions_are_the_line_and_know_their_error():
    """About 95 % of new responses lie within 1.96 sds of their prediction.

    At epsilon 1 and 100,000 rows; the seed is fixed.
    """
    frame, y = rows(count=100_000)
    found = estimator().simulate(frame, y, seeded(0))
    mean, sd = found.predict(frame, return_std=True)
    assert_allclose(mean, found.predict(frame))
    assert_allclose(mean, found.intercept_ + frame.to_numpy() @ found.coef_)
    fresh, response = rows(1)
    mean, sd = found.predict(fresh, return_std=True)
    assert 0.93 < np.mean(np.abs(response - mean) < 1.96 * sd) < 0.97
    assert (sd >= found.sigma_).all()


def test_a_value_outside_its_range_is_clamped():
    frame, y = rows(count=500)
    found = estimator().fit(frame, y)
    assert_allclose(
        found.predict(pd.DataFrame({"age": [1e9], "bmi": [-1.0]})),
        found.predict(pd.DataFrame({"age": [100.0], "bmi": [10.0]})),
    )


@pytest.mark.parametrize(
    ("ranges", "frame"),
    [
        ((10, 100), True),
        ([(18, 100), (10, 60)], True),
        (np.array([(18, 100), (10, 60)]), False),
        ({"x0": (18, 100), "x1": (10, 60)}, False),
        (pd.DataFrame(RANGES).T.to_numpy(), False),
    ],
    ids=["one pair", "pairs", "array", "mapping of an array", "of a frame"],
)
def test_ranges_may_be_given_in_several_ways(ranges, frame):
    x, y = rows(count=200)
    found = estimator(ranges=ranges).fit(x if frame else x.to_numpy(), y)
    assert found.coef_.shape == (2,)
    assert [feature.range for feature in found.study_.features] == (
        [(10, 100)] * 2 if np.shape(ranges) == (2,) else [(18, 100), (10, 60)]
    )


def test_a_column_may_be_called_y():
    x = pd.DataFrame({"y": [0.1, 0.5], "y_": [0.2, 0.3]})
    assert (
        PrivateBayesianRegression(ranges=(0, 1), response_range=(0, 1))
        .fit(x, [0.0, 1.0])
        .study_.response.name
        == "y__"
    )


def test_a_fit_keeps_no_row():
    frame, y = rows(count=300)
    found = estimator().fit(frame, y)
    assert not any(
        isinstance(value, np.ndarray) and len(value) == 300 for value in vars(found).values()
    )
    assert len(pickle.dumps(found)) < 60_000


# Refusals.


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"ranges": None}, "ranges and response_range must be given"),
        ({"response_range": None}, "ranges and response_range must be given"),
        ({"ranges": {"age": (18, 100)}}, "ranges: 'bmi' has no range"),
        ({"ranges": RANGES | {"height": (1, 2)}}, "ranges: 'height' is not among the columns of X"),
        (
            {"ranges": [(0, 1)] * 3},
            "ranges must be one pair .low, high., or one for each of the 2 columns of X",
        ),
        ({"ranges": (1, 0)}, "range must be .low, high. with low clearly below high"),
        ({"ranges": ("a", "b")}, "a range must be a pair of numbers"),
        ({"response_range": 3}, "a range must be a pair of numbers"),
        ({"epsilon": 0}, "epsilon: must be at least 0.001"),
        ({"relation": "swap"}, "relation: must be"),
        ({"prior": "vague"}, "prior must be one of weak, paper"),
    ],
)
def test_each_wrong_parameter_is_refused_in_one_sentence_before_anything_is_spent(fields, sentence):
    budget = tacit.Budget(epsilon=1.0, delta=DELTA)
    with pytest.raises((StudyError, PriorError), match=sentence):
        estimator(**fields, budget=budget).fit(*rows(count=50))
    assert budget.charges == ()


def test_predicting_needs_a_fit():
    with pytest.raises(NotFittedError):
        estimator().predict(rows()[0])


# What a fit spends.


def test_every_fit_is_charged_and_overspending_is_refused():
    budget = tacit.Budget(epsilon=1.0, delta=DELTA)
    frame, y = rows(count=200)
    half = estimator(epsilon=0.5, budget=budget)
    fitted = half.fit(frame, y)
    copy.deepcopy(half).fit(frame, y)
    clone(half).fit(frame, y)
    assert len(budget.charges) == 3  # three times epsilon 0.5 is less than 1 by exact composition
    assert 0.5 < budget.epsilon_spent < 1.0
    assert compose(budget.charges) == pytest.approx(np.sqrt(3) * mu_of(0.5, DELTA))
    before = fitted.coef_.copy()
    with pytest.raises(
        BudgetError, match=r"the fit needs epsilon = 0\.5 .* but 3 fits left epsilon = 0\.[34]"
    ):
        half.fit(frame, y)
    assert len(budget.charges) == 3
    assert_array_equal(fitted.coef_, before)
    assert estimator(epsilon=budget.epsilon_left * (1 - 1e-6), budget=budget).fit(
        frame, y
    ).coef_.shape == (2,)
    assert budget.epsilon_left < 0.01


def test_the_whole_budget_pays_for_just_one_such_fit():
    budget = tacit.Budget(epsilon=1.0, delta=DELTA)
    estimator(budget=budget).fit(*rows(count=100))
    assert (budget.epsilon_left, budget.epsilon_spent) == (0.0, pytest.approx(1.0))
    with pytest.raises(BudgetError):
        estimator(epsilon=0.001, budget=budget).fit(*rows(count=100))


def test_relations_do_not_add_up():
    budget = tacit.Budget(epsilon=5.0, delta=DELTA)
    estimator(budget=budget).fit(*rows(count=100))
    with pytest.raises(
        BudgetError, match="charged under replace-one: add-remove cannot be added up with it"
    ):
        estimator(budget=budget, relation="add-remove").fit(*rows(count=100))


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 1e-6), (1, 0), (np.nan, 1e-6), (1, 0.5)])
def test_a_budget_that_means_nothing_is_refused(epsilon, delta):
    with pytest.raises(BudgetError, match="a budget needs epsilon in"):
        tacit.Budget(epsilon=epsilon, delta=delta)


def test_cross_validation_shares_the_budget_and_stops_where_it_ends():
    frame, y = rows(count=400)
    budget = tacit.Budget(epsilon=1.0, delta=DELTA)
    with pytest.warns(FitFailedWarning, match="2 fits failed"):
        scores = cross_val_score(
            estimator(epsilon=0.5, budget=budget), frame, y, cv=5, error_score=np.nan
        )
    assert np.isnan(scores).sum() == 2
    assert len(budget.charges) == 3


def test_a_search_is_paid_for_fit_by_fit():
    frame, y = rows(count=2000)
    budget = tacit.Budget(epsilon=3.0, delta=DELTA)
    search = GridSearchCV(
        estimator(epsilon=0.5, budget=budget), {"fit_intercept": [True, False]}, cv=2
    ).fit(frame, y)
    assert len(budget.charges) == 5  # two models, two folds, and the best one again
    assert search.best_estimator_.budget is budget


@pytest.mark.slow
def test_another_process_cannot_charge_the_budget():
    """A worker gets a sealed copy: it refuses, and nothing is released or spent."""
    budget = tacit.Budget(epsilon=3.0, delta=DELTA)
    search = GridSearchCV(
        estimator(epsilon=0.5, budget=budget), {"fit_intercept": [True, False]}, cv=2, n_jobs=2
    )
    with pytest.raises(ValueError, match="is sealed: fit where it was made"):
        search.fit(*rows(count=400))
    assert budget.charges == ()


def test_a_pickled_budget_is_sealed_and_a_pickled_model_still_predicts():
    frame, y = rows(count=200)
    found = estimator(budget=tacit.Budget(epsilon=2.0, delta=DELTA)).fit(frame, y)
    loaded = pickle.loads(pickle.dumps(found))  # noqa: S301
    assert_array_equal(loaded.predict(frame), found.predict(frame))
    assert loaded.budget.charges == found.budget.charges
    with pytest.raises(BudgetError, match="came from a pickle and is sealed"):
        loaded.fit(frame, y)


def test_fits_without_a_budget_are_counted_over_clones():
    frame, y = rows(count=200)
    first = estimator(epsilon=0.5)
    second, third = clone(first), clone(first)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first.fit(frame, y)
    with pytest.warns(
        PrivacyWarning,
        match=r"fitted 2 times without a budget: on the same rows that is epsilon = 0\.7",
    ):
        second.fit(frame, y)
    with pytest.warns(PrivacyWarning, match="fitted 3 times"):
        clone(third).fit(frame, y)


def test_a_seed_is_for_simulation_and_says_so():
    frame, y = rows(count=200)
    first, second = (estimator().simulate(frame, y, seeded(7)) for _ in range(2))
    assert first.simulated_
    assert first.release_.simulated
    assert_array_equal(first.coef_, second.coef_)
    with pytest.raises(BudgetError, match="a simulation cannot be paid for"):
        estimator(budget=tacit.Budget(epsilon=1.0, delta=DELTA)).simulate(frame, y, seeded(7))
    with pytest.warns(PrivacyWarning):  # the second fit of one estimator
        assert not first.fit(frame, y).fit(frame, y).simulated_


@pytest.mark.filterwarnings("ignore::tacit.private_estimator.PrivacyWarning")
@pytest.mark.parametrize(
    "ensemble",
    [
        BaggingRegressor(estimator(), n_estimators=2, random_state=0),
        RANSACRegressor(
            estimator(), min_samples=50, max_trials=2, residual_threshold=9.0, random_state=0
        ),
        AdaBoostRegressor(estimator(), n_estimators=2, random_state=0),
        MultiOutputRegressor(estimator()),
    ],
    ids=lambda one: type(one).__name__,
)
def test_no_meta_estimator_seeds_the_noise(ensemble):
    """They seed whatever calls a parameter `random_state`, or ends a name in it."""
    frame, y = rows(count=300)
    ensemble.estimator.set_params(ranges=list(RANGES.values()))
    many = isinstance(ensemble, MultiOutputRegressor)
    ensemble.fit(frame.to_numpy(), y.to_numpy()[:, None] if many else y.to_numpy())
    fitted = getattr(ensemble, "estimators_", None) or [ensemble.estimator_]
    assert not any(one.simulated_ for one in fitted)
    assert not any("random_state" in name for name in estimator().get_params())


def test_a_copy_from_a_pickle_says_that_its_fits_are_not_counted():
    frame, y = rows(count=100)
    first = estimator()
    loaded = pickle.loads(pickle.dumps(first))  # noqa: S301
    with pytest.warns(PrivacyWarning, match="came from a pickle, as in a worker process"):
        loaded.fit(frame, y)
    with pytest.warns(PrivacyWarning, match="fitted 2 times"):
        copy.deepcopy(first.fit(frame, y)).fit(frame, y)


def test_fits_in_worker_processes_warn():
    code = """
import numpy as np
from sklearn.model_selection import cross_val_score
import tacit
rng = np.random.default_rng(0)
model = tacit.PrivateBayesianRegression(ranges=(0, 1), response_range=(0, 1))
cross_val_score(model, rng.uniform(size=(90, 2)), rng.uniform(size=90), cv=2, n_jobs=2)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "PrivacyWarning: this estimator came from a pickle" in done.stderr


def test_noise_is_fresh_in_every_fit():
    frame, y = rows(count=200)
    budget = tacit.Budget(epsilon=5.0, delta=DELTA)
    first, second = (estimator(budget=budget).fit(frame, y).coef_ for _ in range(2))
    assert not np.any(first == second)


def test_it_works_in_a_pipeline():
    frame, y = rows(count=3000)
    pipeline = make_pipeline(
        FunctionTransformer(np.log), estimator(ranges=(np.log(10), np.log(100)))
    ).fit(frame.to_numpy(), y)
    assert pipeline.score(frame.to_numpy(), y) > 0.7


def test_without_scikit_learn_the_extra_is_named():
    code = """
import sys
sys.modules["sklearn"] = None
import tacit
try:
    tacit.PrivateBayesianRegression
except tacit.TacitError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (
        done.stdout
        == "the estimator needs scikit-learn: install it with pip install 'tacit-dp[sklearn]'\n"
    )


def test_visits_make_one_call_more_exact():
    rng = np.random.default_rng(3)
    x = rng.normal(50, 5, size=(3000, 2))
    y = x @ [0.3, -0.2] + rng.normal(0, 1, 3000)
    told = {"ranges": (0, 200), "response_range": (-100, 100)}
    one = PrivateBayesianRegression(**told).simulate(x, y, rng)
    six = PrivateBayesianRegression(**told, visits=6).simulate(x, y, rng)
    widths = [np.ptp(each.posterior_.interval(0.9)[1]) for each in (one, six)]
    assert widths[1] < widths[0] / 4
    assert np.allclose(six.coef_, [0.3, -0.2], atol=0.1)
    with pytest.raises(StudyError, match="replace-one"):
        PrivateBayesianRegression(**told, visits=6, relation="add-remove").fit(x, y)


# Groups: rows of a person.


def test_rows_of_a_group_are_one_person():
    frame, response = rows(count=600)
    groups = np.arange(600) % 200
    model = estimator(epsilon=50.0).simulate(frame, response, seeded(1), groups=groups)
    assert (model.study_.person, model.release_.n) == ("group", 200)
    assert "200 persons" in str(model.posterior_.summary())
    table = pa.table({"age": frame["age"], "bmi": frame["bmi"], "y": response, "group": groups})
    expected = simulate(model.study_, table, seeded(1), holder="estimator")
    assert np.array_equal(model.release_.gram, expected.gram)
    assert np.array_equal(model.release_.moment, expected.moment)


def test_groups_in_several_visits_count_persons():
    frame, response = rows(count=3000)
    groups = [f"p{k % 1000}" for k in range(3000)]
    model = estimator(visits=3).simulate(frame, response, seeded(1), groups=groups)
    assert model.study_.planned_rows == (1000,)
    assert model.release_.n == 1000


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        ([1] * 599, "inconsistent numbers of samples"),
        (np.ones((600, 2)), "one label for each row"),
        ([None] + ["a"] * 599, "missing labels"),
    ],
    ids=["short", "table", "missing"],
)
def test_groups_that_do_not_say_whose_a_row_is_are_refused_before_paying(groups, sentence):
    frame, response = rows(count=600)
    budget = tacit.Budget(1.0, DELTA)
    with pytest.raises(ValueError, match=sentence):
        estimator(budget=budget).fit(frame, response, groups=groups)
    assert budget.charges == ()


def test_groups_are_routed_by_scikit_learn():
    frame, response = rows(count=600)
    groups = np.arange(600) % 200
    with sklearn.config_context(enable_metadata_routing=True):
        model = estimator(epsilon=50.0, budget=tacit.Budget(100.0, DELTA))
        model.set_fit_request(groups=True)
        scores = cross_validate(
            model,
            frame,
            response,
            params={"groups": groups},
            cv=GroupKFold(2),
            return_estimator=True,
        )
    assert [each.release_.n for each in scores["estimator"]] == [100, 100]
