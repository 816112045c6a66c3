"""Tacit: one Bayesian linear regression over several data holders, without showing a row."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.analyst.collection import Collection as Collection
    from tacit.analyst.collection import collect as collect
    from tacit.analyst.comparison.compare import compare as compare
    from tacit.analyst.comparison.compare import select_terms as select_terms
    from tacit.analyst.fit import fit as fit
    from tacit.analyst.follow import Follower as Follower
    from tacit.analyst.methods.method import Settings as Settings
    from tacit.analyst.posterior.posterior import Posterior as Posterior
    from tacit.analyst.prior import Prior as Prior
    from tacit.budget import Budget as Budget
    from tacit.classifier import PrivateBayesianClassifier as PrivateBayesianClassifier
    from tacit.errors import TacitError as TacitError
    from tacit.estimator import PrivateBayesianRegression as PrivateBayesianRegression
    from tacit.holder.ledger import Ledger as Ledger
    from tacit.holder.publish import publish as publish
    from tacit.holder.publish import rehearse as rehearse
    from tacit.holder.rehearsal import Rehearsal as Rehearsal
    from tacit.holder.stream.publish import Report as Report
    from tacit.holder.stream.publish import stream as stream
    from tacit.imagined import Guess as Guess
    from tacit.plan import forecast as forecast
    from tacit.release.statistics import Release as Release
    from tacit.rows.sql import sql_table as sql_table
    from tacit.simulation import simulate as simulate
    from tacit.study.columns import Feature as Feature
    from tacit.study.columns import Response as Response
    from tacit.study.form import ReleaseForm as ReleaseForm
    from tacit.study.form import SecureSum as SecureSum
    from tacit.study.study import Study as Study
    from tacit.study.terms import Factor as Factor
    from tacit.study.terms import Term as Term

_HOMES = {
    "Budget": "tacit.budget",
    "Collection": "tacit.analyst.collection",
    "Factor": "tacit.study.terms",
    "Feature": "tacit.study.columns",
    "Follower": "tacit.analyst.follow",
    "Guess": "tacit.imagined",
    "Ledger": "tacit.holder.ledger",
    "Posterior": "tacit.analyst.posterior.posterior",
    "Prior": "tacit.analyst.prior",
    "PrivateBayesianClassifier": "tacit.classifier",
    "PrivateBayesianRegression": "tacit.estimator",
    "Rehearsal": "tacit.holder.rehearsal",
    "Release": "tacit.release.statistics",
    "ReleaseForm": "tacit.study.form",
    "Report": "tacit.holder.stream.publish",
    "Response": "tacit.study.columns",
    "SecureSum": "tacit.study.form",
    "Settings": "tacit.analyst.methods.method",
    "Study": "tacit.study.study",
    "TacitError": "tacit.errors",
    "Term": "tacit.study.terms",
    "collect": "tacit.analyst.collection",
    "compare": "tacit.analyst.comparison.compare",
    "fit": "tacit.analyst.fit",
    "forecast": "tacit.plan",
    "publish": "tacit.holder.publish",
    "rehearse": "tacit.holder.publish",
    "select_terms": "tacit.analyst.comparison.compare",
    "simulate": "tacit.simulation",
    "sql_table": "tacit.rows.sql",
    "stream": "tacit.holder.stream.publish",
}
__all__ = [*_HOMES, "__version__"]  # noqa: PLE0604 - all of them are strings


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Import what is asked for on first use, so that `import tacit` costs next to nothing."""
    if name == "__version__":
        from importlib.metadata import version

        return version("tacit-dp")
    if name not in _HOMES:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """What tab completion shows: what this module offers, and nothing that it merely uses."""
    return sorted(__all__)
