"""Tacit: one Bayesian linear regression over several data holders, without showing a row to anyone."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.analyst.collection import Collection, collect
    from tacit.analyst.fit import fit
    from tacit.analyst.follow import Follower
    from tacit.analyst.methods.method import Settings
    from tacit.analyst.posterior.posterior import Posterior
    from tacit.analyst.prior import Prior
    from tacit.analyst.typical import fix_scales
    from tacit.budget import Budget
    from tacit.errors import TacitError
    from tacit.estimator import PrivateBayesianRegression
    from tacit.holder.ledger import Ledger
    from tacit.holder.publish import publish
    from tacit.holder.scales import publish_scales
    from tacit.holder.stream.publish import Report, stream
    from tacit.plan import Guess, forecast
    from tacit.release.scales import ScalesRelease
    from tacit.release.statistics import Release
    from tacit.rows.sql import sql_table
    from tacit.simulation import simulate
    from tacit.study.columns import Feature, Response
    from tacit.study.study import ReleaseForm, SecureSum, Study
    from tacit.study.terms import Factor, Term

_HOMES = {
    "Budget": "tacit.budget",
    "Collection": "tacit.analyst.collection",
    "Factor": "tacit.study.terms",
    "Feature": "tacit.study.columns",
    "Follower": "tacit.analyst.follow",
    "Guess": "tacit.plan",
    "Ledger": "tacit.holder.ledger",
    "Posterior": "tacit.analyst.posterior.posterior",
    "Prior": "tacit.analyst.prior",
    "PrivateBayesianRegression": "tacit.estimator",
    "Release": "tacit.release.statistics",
    "ReleaseForm": "tacit.study.study",
    "Report": "tacit.holder.stream.publish",
    "Response": "tacit.study.columns",
    "ScalesRelease": "tacit.release.scales",
    "SecureSum": "tacit.study.study",
    "Settings": "tacit.analyst.methods.method",
    "Study": "tacit.study.study",
    "TacitError": "tacit.errors",
    "Term": "tacit.study.terms",
    "collect": "tacit.analyst.collection",
    "fit": "tacit.analyst.fit",
    "fix_scales": "tacit.analyst.typical",
    "forecast": "tacit.plan",
    "publish": "tacit.holder.publish",
    "publish_scales": "tacit.holder.scales",
    "simulate": "tacit.simulation",
    "sql_table": "tacit.rows.sql",
    "stream": "tacit.holder.stream.publish",
}
__all__ = [  # noqa: PLE0604 - the names above, which a test compares with the imports
    *_HOMES,
    "__version__",
]


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
