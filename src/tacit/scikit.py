"""What the estimators take from scikit-learn, or one sentence that says how to get it."""

from tacit.errors import TacitError

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data
except ImportError:
    raise TacitError(
        "the estimator needs scikit-learn: install it with pip install 'tacit-dp[sklearn]'"
    ) from None

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "RegressorMixin",
    "check_classification_targets",
    "check_consistent_length",
    "check_is_fitted",
    "type_of_target",
    "validate_data",
]
