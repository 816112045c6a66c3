"""The public agreement: what holders and analyst fix before anybody looks at data."""

from tacit.study.columns import Feature, Response
from tacit.study.form import ReleaseForm, SecureSum
from tacit.study.study import Study
from tacit.study.terms import Factor, Term

__all__ = ["Factor", "Feature", "ReleaseForm", "Response", "SecureSum", "Study", "Term"]
