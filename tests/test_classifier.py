"""The scikit-learn face for yes/no answers: its own checks, probabilities, labels and spending.

Covers `tacit.classifier`.
"""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import estimator_checks_generator

import tacit
from tacit.classifier import PrivateBayesianClassifier
from tacit.errors import BudgetError, StudyError
from tacit.private_estimator import PrivacyWarning

WIDE = (-1e3, 1e3)


class Seeded(PrivateBayesianClassifier):
    """The same with a seed, as only a test may have it: two fits can be compared."""

    def __init__(self, ranges=None, *, family="logistic", random_state=None):
        super().__init__(ranges=ranges, family=family)
        self.random_state = random_state

    def fit(self, X, y):  # noqa: N803
        return self.simulate(X, y, np.random.default_rng(self.random_state))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = False
        return tags


COMPARE_FITS = {
    "check_classifiers_classes",
    "check_classifiers_train",
    "check_fit_idempotent",
    "check_pipeline_consistency",
    "check_classifier_data_not_an_array",
    "check_supervised_y_2d",
    "check_f_contiguous_array_estimator",
}
"""Checks of what two fits share, which fresh noise keeps apart: for the seeded classifier alone."""
ARRAY_API = "check_array_api_input"


def name_of(check):
    """Of a check, which may be a partial function."""
    return getattr(check, "func", check).__name__


CHECKS = [
    (estimator, check)
    for one in (PrivateBayesianClassifier(ranges=WIDE), Seeded(ranges=WIDE))
    for estimator, check in estimator_checks_generator(one)
    if name_of(check) != ARRAY_API
    and (isinstance(one, Seeded) or name_of(check) not in COMPARE_FITS)
]


@pytest.mark.filterwarnings("ignore::tacit.private_estimator.PrivacyWarning")
@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_scikit_learns_checks(estimator, check):
    """None of them is expected to fail."""
    check(estimator)


def rows(seed=0, count=20_000):
    """Two features, log-odds −3 + 0.05·age − 0.02·bmi."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.uniform(18, 100, count), "bmi": rng.uniform(10, 60, count)})
    likely = expit(-3 + 0.05 * frame["age"] - 0.02 * frame["bmi"])
    return frame, np.where(rng.random(count) < likely, "yes", "no"), likely.to_numpy()


def classifier(**fields):
    ranges = {"age": (18, 100), "bmi": (10, 60)}
    return PrivateBayesianClassifier(**{"ranges": ranges, "classes": ("no", "yes")} | fields)


def test_probabilities_are_the_truth_to_within_their_noise():
    frame, y, likely = rows()
    model = classifier().simulate(frame, y, np.random.default_rng(0))
    told = model.predict_proba(frame)
    assert_allclose(told.sum(axis=1), 1)
    assert np.abs(told[:, 1] - likely).max() < 0.05
    assert_array_equal(model.predict(frame) == "yes", told[:, 1] > 0.5)
    assert_allclose(model.predict_log_proba(frame), np.log(told))
    assert log_loss(y, told[:, 1]) < 0.995 * log_loss(y, np.full(len(y), np.mean(y == "yes")))
    assert_array_equal(model.classes_, ["no", "yes"])
    assert (model.coef_.shape, model.intercept_.shape) == ((1, 2), (1,))
    sd = model.posterior_.sd()[1:]
    assert np.all(np.abs(model.coef_[0] - [0.05, -0.02]) < 5 * sd)
    assert model.posterior_.summary().response == "log-odds of y"


def test_labels_that_are_given_are_not_read_off_the_data():
    frame, y, _ = rows(count=300)
    with pytest.warns(PrivacyWarning, match="read off the data"):
        classifier(classes=None).simulate(frame, y, np.random.default_rng(0))
    one = classifier().simulate(frame, np.full(len(frame), "no"), np.random.default_rng(0))
    assert_array_equal(one.classes_, ["no", "yes"])
    with pytest.raises(ValueError, match="not among classes"):
        classifier(classes=(0, 1)).simulate(frame, y, np.random.default_rng(0))
    with pytest.raises(ValueError, match="two labels"):
        classifier(classes=("no", "no")).simulate(frame, y, np.random.default_rng(0))


def test_a_budget_refuses_a_fit_that_it_does_not_hold():
    frame, y, _ = rows(count=300)
    budget = tacit.Budget(epsilon=1.0, delta=1e-6)
    classifier(budget=budget).fit(frame, y)
    with pytest.raises(BudgetError):
        classifier(budget=budget).fit(frame, y)


def test_ranges_must_be_given():
    frame, y, _ = rows(count=300)
    with pytest.raises(StudyError, match="ranges must be given"):
        classifier(ranges=None).fit(frame, y)


@pytest.mark.filterwarnings("ignore::tacit.private_estimator.PrivacyWarning")
def test_it_is_scored_like_any_classifier():
    frame, y, _ = rows(count=4000)
    model = Seeded(ranges=[(18, 100), (10, 60)], random_state=0)
    scores = cross_val_score(model, frame.to_numpy(), y, scoring="roc_auc", cv=2)
    assert scores.min() > 0.65


def test_visits_find_out_where_values_lie():
    """With ranges ten times too wide, ten visits tell slopes that one does not."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(4000, 2))
    y = (rng.random(4000) < expit(x @ [1.0, -0.5])) * 1
    widths = []
    for visits in (1, 10):
        model = PrivateBayesianClassifier(ranges=(-40, 40), classes=(0, 1), visits=visits)
        model.simulate(x, y, np.random.default_rng(8))
        assert model.study_.visit_count == visits
        low, high = model.posterior_.interval(0.9)[1:].T
        assert np.all((low < [1.0, -0.5]) & (high > [1.0, -0.5]))
        widths.append(np.mean(high - low))
    assert widths[1] < widths[0] / 4
    with pytest.raises(StudyError, match="replace-one"):
        PrivateBayesianClassifier(
            ranges=WIDE, classes=(0, 1), visits=3, relation="add-remove"
        ).simulate(x, y, rng)
