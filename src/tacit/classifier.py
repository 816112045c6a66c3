"""The scikit-learn face for yes/no answers: holder and analyst in one process."""

import warnings
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.analyst.families.links import FamilyName
from tacit.analyst.fit import fit
from tacit.analyst.posterior.family_prediction import mean_responses
from tacit.budget import Budget
from tacit.privacy.noise import Sampler
from tacit.privacy.sensitivity import Relation
from tacit.private_estimator import Array, PrivacyWarning, PrivateEstimator
from tacit.scikit import (
    ClassifierMixin,
    check_classification_targets,
    type_of_target,
    validate_data,
)

TWO = 2
"""Classes that there are."""


class PrivateBayesianClassifier(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """Bayesian logistic (or probit) regression whose every fit is (ε, δ)-differentially private.

    Parameters
    ----------
    epsilon, delta
        What one fit spends; delta well below one over the number of persons.
    ranges
        Public range of every feature: one pair for all, a pair for each, or a mapping from column
        names to pairs. It must not be read off the data. Values outside are clamped.
    classes
        The two labels, the second of which is the one whose probability is modelled. Without them
        they are read off the data, with a warning: that both are there is then shown.
    family
        "logistic" or "probit".
    relation, prior, budget
        As in `PrivateBayesianRegression`.
    visits
        Questions to the same rows within one budget. Ten tell more where ranges fit badly and
        neither class is below a fifth of rows; one where a class is rare.

    Attributes
    ----------
    classes_
        The two labels.
    coef_, intercept_
        Posterior means of log-odds (or of the probit index), in the units of the data, with the
        shapes of scikit-learn's `LogisticRegression`.
    posterior_, release_, study_, simulated_, n_features_in_, feature_names_in_
        As in `PrivateBayesianRegression`; `posterior_.predict` gives intervals of probabilities.
    """

    _given = "ranges"

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        ranges: Any = None,  # noqa: ANN401
        classes: Any = None,  # noqa: ANN401
        *,
        family: FamilyName = "logistic",
        relation: Relation = "replace-one",
        prior: Any = "weak",  # noqa: ANN401
        budget: Budget | None = None,
        visits: int = 1,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            ranges=ranges,
            relation=relation,
            prior=prior,
            budget=budget,
            visits=visits,
        )
        self.classes = classes
        self.family = family

    def _fit(
        self,
        X: Any,  # noqa: ANN401, N803
        y: Any,  # noqa: ANN401
        persons: pa.Array | None,
        sampler: Sampler | None,
    ) -> Self:
        x, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_ = self._labels(labels)
        study = self._agreed((0.0, 1.0), intercept=True, persons=persons is not None)
        answers = (labels == self.classes_[1]).astype(float)
        collection = self._release(study, x, answers, persons, sampler)
        self.posterior_ = fit(collection, prior=self.prior, family=self.family)
        mean = self.posterior_.mean()
        self.intercept_ = mean[:1]
        self.coef_ = mean[None, 1:]
        return self

    def _labels(self, labels: NDArray[Any]) -> NDArray[Any]:
        """The two classes, as they were given or as the data have them."""
        if self.classes is not None:
            classes = np.asarray(self.classes)
            if classes.shape != (TWO,) or classes[0] == classes[1]:
                raise ValueError("classes must be two labels, such as classes=(0, 1)")
            if not np.isin(labels, classes).all():
                raise ValueError("y holds a label that is not among classes: name both, or map it")
            return classes
        kind = type_of_target(labels, input_name="y")
        if kind != "binary":
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}."
            )
        classes = np.unique(labels)
        if len(classes) < TWO:
            raise ValueError(
                "y holds one class only: name both by classes, such as classes=(0, 1), "
                "if the other may be absent"
            )
        warnings.warn(
            "the two labels were read off the data: give them by classes, such as "
            "classes=(0, 1), where they are not public knowledge",
            PrivacyWarning,
            5,
        )
        return classes

    def predict_proba(self, X: Any) -> Array:  # noqa: ANN401, N803
        """Probability of each class at each row, averaged over the posterior."""
        design = self._design(X)
        likely = mean_responses(self.posterior_, design.T)
        return np.column_stack([1 - likely, likely])

    def predict_log_proba(self, X: Any) -> Array:  # noqa: ANN401, N803
        """Logarithms of these."""
        return np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny))

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: ANN401, N803
        """The likelier class of each row."""
        likelier = self.predict_proba(X)[:, 1] > 1 / TWO
        predicted: NDArray[Any] = self.classes_[likelier.astype(int)]
        return predicted

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # few rows of a test hold little but noise
        return tags
